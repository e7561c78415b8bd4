"""Small programs for `tuck run`, unlike those of the corpus: what they compute is all that matters.

    PROGRAMS[name] = (function, inputs of a rank, levels at which it is run)

A function gets tensors and returns a tuple of them; those that end in train() return the loss and its gradients by all
float inputs, averaged over ranks. Nothing is random, and nothing is close to a corner of what it computes.
"""

import math

import torch
import torch.nn.functional as F

GROUP = "0"
comm = torch.ops._c10d_functional
PROGRAMS = {}


LEVELS = ("traced", "post_grad")


def program(inputs, levels=LEVELS):
    def add(f):
        PROGRAMS[f.__name__] = (f, inputs, levels)
        return f

    return add


class Draw:
    """Numbers of a rank."""

    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)

    def __call__(self, *size):
        return torch.randn(size, generator=self.g) * 0.3

    def below(self, n, *size):
        return torch.randint(0, n, size, generator=self.g)


def reduced(x, op="sum"):
    return comm.wait_tensor(comm.all_reduce(x.contiguous(), op, GROUP))


def train(f):
    def step(*given):
        given = [t.detach().requires_grad_(t.is_floating_point()) for t in given]
        loss = f(*given)
        grads = torch.autograd.grad(loss, [t for t in given if t.requires_grad])
        return (loss.detach(), *[reduced(g, "avg") for g in grads])

    step.__name__ = f.__name__
    return step


def attend(q, k, v, heads, mask=None):
    b, n, c = q.shape
    q, k, v = (t.view(b, t.shape[1], heads, -1).transpose(1, 2) for t in (q, k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(c // heads)
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    return (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, c)


def cross_inputs(rank):
    d = Draw(rank)
    source = d.below(15, 2, 6) + 1
    source[:, 4:] = 0
    return [d(16, 8), source, d.below(16, 2, 5), d(8, 8), d(8, 8), d(8, 8), d(8, 16), d(16, 8), d(8), d(8)]


@program(cross_inputs)
@train
def encoder_decoder(table, source, target, wq, wk, wv, w1, w2, g, b):
    """Padding, causal and cross attention, tied embeddings, smoothed labels of which some do not count."""
    e, d = F.embedding(source, table, padding_idx=0), F.embedding(target, table)
    padded = (source == 0)[:, None, None, :]
    later = torch.ones(5, 5, dtype=torch.bool).triu(1)
    e = e + attend(e @ wq, e @ wk, e @ wv, 2, padded)
    d = F.layer_norm(d + attend(d @ wq, d @ wk, d @ wv, 2, later), (8,), g, b)
    d = d + attend(d @ wq, e @ wk, e @ wv, 2, padded)
    d = d + F.gelu(d @ w1, approximate="tanh") @ w2
    return F.cross_entropy((d @ table.t()).flatten(0, 1), target.flatten(), ignore_index=0, label_smoothing=0.1)


def cache_inputs(rank):
    d = Draw(rank)
    turns = torch.polar(torch.ones(8, 2), torch.arange(16.0).view(8, 2) * 0.3)
    return [d(2, 4, 8), d(2, 10, 8), d(2, 10, 8), d(8, 8), d(8, 8), d(8, 8), turns]


@program(cache_inputs)
def cached_attention(x, keys, values, wq, wk, wv, turns):
    """Rotary embeddings as complex numbers, their conjugates, caches that are inputs and written."""
    b, n, c = x.shape

    def pairs(t):
        return torch.view_as_complex(t.reshape(b, n, 2, c // 4, 2).contiguous())

    def turned(t, by):
        return torch.view_as_real(pairs(t) * by[:n].view(1, n, 1, -1)).flatten(2)

    q, k, v = turned(x @ wq, turns), turned(x @ wk, turns), x @ wv
    back = turned(q, turns.conj())
    keys[:, 3 : 3 + n].copy_(k)
    values[:, 3 : 3 + n] = v
    return reduced(attend(q, keys[:, : 3 + n], values[:, : 3 + n], 2)), back


def bert_inputs(rank):
    d = Draw(rank)
    labels, mask = d.below(16, 2, 6), torch.ones(2, 6, dtype=torch.int64)
    labels[:, ::2] = -100
    mask[1, 4:] = 0
    return [d.below(16, 2, 6), mask, d(16, 8), d(6, 8), d(8, 8), d(8, 8), d(8, 8), d(8), d(8), d(16, 8), d(16), d(8, 16), labels]


@program(bert_inputs)
@train
def masked_bert(ids, mask, table, places, wq, wk, wv, g, b, w1, b1, w2, labels):
    """Attention that Inductor's patterns find; it leaves annotations behind that are older than the graph."""
    x = F.layer_norm(F.embedding(ids, table) + places[torch.arange(6)], (8,), g, b, 1e-12)
    bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
    q, k, v = ((x @ w).view(2, 6, 2, 4).permute(0, 2, 1, 3) for w in (wq, wk, wv))
    scores = torch.matmul(q, k.transpose(-1, -2)) / 2 + bias
    x = x + (F.dropout(scores.softmax(-1), 0.0) @ v).permute(0, 2, 1, 3).contiguous().view(2, 6, 8)
    x = x + F.linear(F.gelu(F.linear(x, w1, b1)), w2)
    return F.cross_entropy(F.linear(x, table).view(-1, 16), labels.view(-1))


def gqa_inputs(rank):
    d = Draw(rank)
    angle = torch.arange(5.0)[:, None] * torch.tensor([1.0, 0.1, 1.0, 0.1])
    return [d(2, 5, 16), d(16, 16), d(16, 16), d(16, 16), d(16, 24), d(16, 24), d(24, 16), d(16), angle.cos(), angle.sin()]


@program(gqa_inputs)
@train
def grouped_queries(x, wq, wkv, wo, w1, w3, w2, g, cos, sin):
    """Heads that share keys by an expanded dimension, rotary embeddings of halves, RMS norm, SwiGLU."""
    b, n, c = x.shape

    def turned(t):
        first, second = t.chunk(2, -1)
        return t * cos[:, None] + torch.cat((-second, first), -1) * sin[:, None]

    h = F.rms_norm(x, (c,), g, 1e-6)
    q = turned((h @ wq).view(b, n, 4, 4))
    k, v = (h @ wkv).view(b, n, 2, 2, 4).unbind(2)
    k, v = (t[:, :, :, None, :].expand(b, n, 2, 2, 4).reshape(b, n, 4, 4) for t in (turned(k), v))
    o = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
    x = x + o.transpose(1, 2).reshape(b, n, c) @ wo
    h = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * g
    return (x + (F.silu(h @ w1) * (h @ w3)) @ w2).pow(2).mean()


def moe_inputs(rank):
    d = Draw(rank)
    return [d(6, 8), d(8, 4), d(4, 8, 12), d(4, 12, 8)]


@program(moe_inputs)
@train
def sorted_experts(x, wg, w1, w2):
    """Routing by topk, one_hot and a stable sort, and back by index_add."""
    share = (x @ wg).softmax(-1)
    weight, expert = share.topk(2, -1)
    order = expert.flatten().argsort(stable=True)
    token, chosen = order // 2, expert.flatten()[order]
    y = torch.einsum("td,edh->eth", x.index_select(0, token), w1).relu()
    y = torch.einsum("eth,ehd->etd", y, w2)[chosen, torch.arange(chosen.numel())]
    out = torch.zeros_like(x).index_add(0, token, y * weight.flatten()[order].unsqueeze(1))
    load = F.one_hot(expert, 4).sum((0, 1)).float() / expert.numel()
    return out.square().mean() + (share.mean(0) * load).sum()


def unet_inputs(rank):
    d = Draw(rank)
    return [d(2, 3, 8, 8), d(4, 3, 3, 3), d(4, 4, 3, 3), d(4, 2, 2, 2), d(4, 1, 3, 3), d(2), d(2, 20, 3, 3)]


@program(unet_inputs)
@train
def unet(x, w1, w2, wt, wg, bias, w3):
    """Transposed convolutions, images made larger in three ways, mirrored and repeated edges."""
    a = F.leaky_relu(F.conv2d(x, w1, padding=1), 0.1)
    d = F.max_pool2d(a, 2)
    m = F.elu(F.conv2d(d, w2, padding=1))
    wide = [F.conv_transpose2d(m, wt, stride=2), F.interpolate(m, scale_factor=2)]
    wide.append(F.interpolate(m, size=(8, 8), mode="bilinear"))
    wide.append(F.interpolate(d, size=(8, 8), mode="bilinear", align_corners=True))
    wide.append(F.conv_transpose2d(m, wg, bias, stride=2, padding=1, output_padding=1, groups=2))
    o = F.conv2d(F.pad(torch.cat([a, *wide], 1), (1, 1, 1, 1), mode="reflect"), w3)
    return F.softplus(F.pad(o, (1, 2, 0, 1), mode="replicate")).mean() + F.log_softmax(o, 1)[:, 0].mean()


def bottleneck_inputs(rank):
    d = Draw(rank)
    return [d(2, 4, 8, 8), d(4, 4, 1, 1), d(4, 2, 3, 3), d(8, 4, 1, 1), d(8, 4, 1, 1), d(4), d(4), d(8), d(8), d(5, 8), d.below(5, 2)]


@program(bottleneck_inputs)
@train
def bottleneck(x, w1, w2, w3, short, g, b, g3, b3, head, labels):
    """Grouped and dilated convolutions, batch norm that trains, instance and group norm."""
    h = F.relu(F.batch_norm(F.conv2d(x, w1), None, None, g, b, True))
    h = F.relu(F.group_norm(F.conv2d(h, w2, stride=2, padding=2, dilation=2, groups=2), 2, g, b))
    h = F.batch_norm(F.conv2d(h, w3), None, None, g3, b3, True)
    h = F.relu(h + F.instance_norm(F.conv2d(x, short, stride=2), weight=g3, bias=b3))
    return F.cross_entropy(F.adaptive_avg_pool2d(h, 1).flatten(1) @ head.t(), labels)


def adam_inputs(rank):
    same, own = Draw(7), Draw(rank)
    return [same(4, 3), same(5), own(4, 3), own(5), same(4, 3), same(5), same(4, 3).abs(), same(5).abs(), torch.tensor(3.0)]


@program(adam_inputs, ("traced",))  # what Inductor makes of the lists in place, torch 2.13 cannot run
def clipped_adam(p1, p2, g1, g2, m1, m2, v1, v2, step):
    """Lists of tensors, gradients clipped by the norm over all, states that are inputs and written."""
    p, m, v = [p1, p2], [m1, m2], [v1, v2]
    g = [reduced(t, "avg") for t in (g1, g2)]
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(g)))
    g = torch._foreach_mul(g, torch.clamp(1.0 / (norm + 1e-6), max=1.0))
    torch._foreach_add_([step], 1)
    torch._foreach_lerp_(m, g, 0.1)
    torch._foreach_mul_(v, 0.999)
    torch._foreach_addcmul_(v, g, g, 0.001)
    first, second = torch._foreach_pow(0.9, [step]), torch._foreach_pow(0.999, [step])
    root = torch._foreach_sqrt(v)
    torch._foreach_div_(root, [(1 - second[0]).sqrt()] * 2)
    torch._foreach_add_(root, 1e-8)
    torch._foreach_div_(root, [(first[0] - 1) / 1e-3] * 2)
    torch._foreach_addcdiv_(p, m, root)
    return norm, root[0]


def order_inputs(rank):
    d = Draw(rank)
    return [d(3, 5), d(3, 5), torch.stack([torch.randperm(3, generator=d.g)[:2] for _ in range(3)])]


@program(order_inputs)
def by_order(x, y, index):
    """What depends on the order of elements, and integers."""
    line = x[0].sort().values
    found = [torch.searchsorted(line, y), torch.bucketize(y, line, right=True), x.median(1).values, x.median(), x.kthvalue(2, 1).values]
    found += [*x.cummax(1), *x.cummin(0), x.gather(1, index), x.scatter_reduce(1, index, y[:, :2], "amax"), x.argmax(1)]
    found += [torch.gcd(index + 4, index * 6), index // 2, -index % 3, (x > y).sum(0), x.flip(0, 1), x.roll((1, 2), (0, 1))]
    found += [F.pad(x[None], (1, 2), mode=how) for how in ("reflect", "replicate", "circular")]
    return (reduced(x), *found)


@program(lambda rank: [Draw(rank)(4, 5), Draw(rank + 9)(4, 5)])
@train
def odd_views(x, y):
    """Gradients of diagonals, windows, halves and strides."""
    a = x.diagonal().square().sum() + x.unfold(1, 3, 2).square().sum() + x.as_strided((2, 3), (1, 2)).square().sum()
    b = F.glu(x[:, :4]).sum() + F.logsigmoid(y).sum() + x.cumprod(1).sum() + x.flip(0).mul(y).sum()
    c = x.clone()
    c[1:, ::2] = y[1:, ::2] * 2
    c[:, -1].mul_(2)
    return a + b + c.t().reshape(-1)[3:9].square().sum() + y.max(1).values.sum() + F.normalize(x).mul(y).sum()


@program(lambda rank: [Draw(rank)(4, 6) * 900, Draw(rank)(5)])
def eight_bits(x, y):
    """Casts to 8-bit floats, small numbers and numbers that are too large among them."""
    small, wide = x.to(torch.float8_e4m3fn), (y / 2**16).to(torch.float8_e5m2)
    return small.float(), wide.float(), reduced(small.to(torch.bfloat16).float()), (x / 2**14).to(torch.float8_e4m3fn).float()


def chosen_inputs(rank):
    d = Draw(rank)
    return [d(9, 6), d(6, 3), d(3, 6, 8), d(3, 8, 6)]


@program(chosen_inputs, ("symbolic",))
def chosen_experts(x, wg, w1, w2):
    """Each expert takes the tokens that a mask selects: as many as there are."""
    expert, out = (x @ wg).argmax(-1), torch.zeros_like(x)
    for e in range(3):
        token = (expert == e).nonzero().flatten()
        out = out.index_put((token,), (x[token] @ w1[e]).relu() @ w2[e])
    return reduced(out), out, x.masked_select(x > 0).sum(), expert.repeat_interleave(expert + 1).sum()


def last_inputs(rank):
    d = Draw(rank)
    x = d(2, 4, 8, 8).to(memory_format=torch.channels_last)
    return [x, d(6, 4, 3, 3).to(memory_format=torch.channels_last), d(6), d(6), d(5, 6), d.below(5, 2), torch.zeros(6), torch.ones(6)]


@program(last_inputs)
def channels_last(x, w, g, b, head, labels, mean, var):
    """Gradients that are not contiguous are reduced; the pool restrides its result in place."""
    w, g, b, head = (t.detach().requires_grad_() for t in (w, g, b, head))
    h = F.batch_norm(F.conv2d(x, w, padding=1), mean, var, g, b, True)
    h = F.adaptive_avg_pool2d(F.channel_shuffle(F.prelu(h, b), 2), 1).flatten(1)
    loss = F.cross_entropy(h @ head.t(), labels)
    return (loss.detach(), *[reduced(t / 2) for t in torch.autograd.grad(loss, (w, g, b, head))])


def optimizer_inputs(rank):
    same, own = Draw(7), Draw(rank)
    return [same(4, 3), same(5), own(4, 3), own(5)]


@program(optimizer_inputs, ("traced",))
def optimizer(p1, p2, g1, g2):
    """torch's own AdamW and SGD: the profiler's marks, lists of tensors."""
    found = []
    for kind, how in ((torch.optim.AdamW, {"amsgrad": True}), (torch.optim.SGD, {"momentum": 0.9, "nesterov": True})):
        p = [t.clone().requires_grad_() for t in (p1, p2)]
        for t, g in zip(p, (g1, g2)):
            t.grad = reduced(g, "avg")
        kind(p, 1e-2, foreach=True, **how).step()
        found += [t.detach() for t in p]
    return tuple(found)


@program(lambda rank: [Draw(rank)(3, 4), Draw(rank)(5, 2), Draw(rank)(18, 16)], ("traced",))
def flat_buffers(a, b, x):
    """What FSDP's buffers are made of, and scaled integers."""
    full = comm.wait_tensor(comm.all_gather_into_tensor(torch.cat([a.flatten(), b.flatten()]), 2, GROUP)).view(2, -1)
    parts = torch.ops.aten.split_with_sizes_copy(full, [12, 10], 1)
    joined = comm.wait_tensor(comm.reduce_scatter_tensor(torch._chunk_cat([b, a], 0, 2).view(-1), "avg", 2, GROUP))
    step = x.abs().amax(1, keepdim=True) / 127
    q = (x / step).round().to(torch.int8)
    return parts[0].reshape(6, 4), parts[1].reshape(10, 2), joined, torch._int_mm(q, q[:16].contiguous()), q
