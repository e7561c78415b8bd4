"""The training steps of tests/published, each traced by torch as one graph: forward, backward, recompute.

    build/torch-venv/bin/python tests/torch/record_published.py [NAME...]

A Llama with FSDP and tensor and sequence parallelism, as torchtitan runs it: shards of parameters in f32,
gathered in bf16 for forward and again for backward, gradients averaged in f32; activations recomputed as
its policies say. Only two and three layers are traced; a step of n layers takes
t(2) + (n - 2) (t(3) - t(2)). Tensors are fake and nothing runs. They are traced on the CPU, because torch
without CUDA has no backward for fake CUDA tensors, and the text gets `cuda:0` instead.
"""

import dataclasses
import json
import pathlib
import re
import sys

import torch
import torch.distributed  # registers the collectives
import torch.distributed._functional_collectives  # noqa: F401
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

OUT = pathlib.Path(__file__).resolve().parent.parent / "published"
aten, c10d = torch.ops.aten, torch.ops._c10d_functional
DP, TP = "0", "1"


@dataclasses.dataclass
class Job:
    dim: int = 4096
    heads: int = 32
    kv_heads: int = 8
    hidden: int = 14336
    vocab: int = 128256
    batch: int = 1
    length: int = 8192
    dp: int = 8
    tp: int = 1
    recompute: str = "op"  # torchtitan's selective policy by op, or "full", or "none": then parameters stay gathered
    bucket: str = "module"  # gather a block at once, or each parameter
    norm: str = "ops"  # RMSNorm as its ops one by one; or "fused": one kernel, as torch has it since 2.9
    layers: int = 2


B70 = {"dim": 8192, "heads": 64, "hidden": 28672}
B405 = {"dim": 16384, "heads": 128, "hidden": 53248}
JOBS = {
    "llama8_fsdp8_b2": Job(batch=2),
    "llama8_fsdp8_b1": Job(norm="fused"),
    "llama8_fsdp128_b2": Job(batch=2, dp=128),
    "llama8_fsdp4_tp2": Job(dp=4, tp=2, bucket="parameter", recompute="none", norm="fused"),
    "llama8_fsdp8_tp8": Job(dp=8, tp=8, batch=12),
    "llama70_fsdp32_tp8": Job(**B70, dp=32, tp=8, batch=16, recompute="full"),
    "llama8_fsdp64": Job(dp=64),
    "llama70_fsdp64": Job(**B70, dp=64, recompute="full"),
    "llama405_fsdp16_tp8": Job(**B405, dp=16, tp=8, batch=2, recompute="full"),
}


def gather(x, size, group):
    return c10d.wait_tensor(c10d.all_gather_into_tensor(x, size, group))


def scatter(x, how, size, group):
    return c10d.wait_tensor(c10d.reduce_scatter_tensor(x, how, size, group))


def reduce(x, how, group):
    return c10d.wait_tensor(c10d.all_reduce(x, how, group))


class Unshard(torch.autograd.Function):
    """Parameters of a block from this rank's shard of them."""

    @staticmethod
    def forward(ctx, shard, shapes, ranks):
        ctx.ranks = ranks
        whole = gather(shard.to(torch.bfloat16), ranks, DP)
        if len(shapes) == 1:
            return (whole.view(shapes[0]),)
        parts = whole.view(ranks, -1).split([s.numel() // ranks for s in shapes], 1)
        return tuple(p.reshape(s) for p, s in zip(parts, shapes))

    @staticmethod
    def backward(ctx, *grads):
        if len(grads) == 1:
            return scatter(grads[0].reshape(-1).float(), "avg", ctx.ranks, DP), None, None
        whole = torch.cat([g.reshape(ctx.ranks, -1) for g in grads], 1)
        return scatter(whole.view(-1).float(), "avg", ctx.ranks, DP), None, None


def gather_length(x, ranks):
    return torch.cat(gather(x, ranks, TP).chunk(ranks), 1)


def scatter_length(x, ranks):
    return scatter(torch.cat(x.chunk(ranks, 1)), "sum", ranks, TP)


class GatherLength(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, ranks):
        ctx.ranks = ranks
        return gather_length(x, ranks)

    @staticmethod
    def backward(ctx, grad):
        return scatter_length(grad, ctx.ranks), None


class ScatterLength(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, ranks):
        ctx.ranks = ranks
        return scatter_length(x, ranks)

    @staticmethod
    def backward(ctx, grad):
        return gather_length(grad, ctx.ranks), None


class SplitLoss(torch.autograd.Function):
    """Cross entropy of logits of which each rank has a part of the vocabulary."""

    @staticmethod
    def forward(ctx, logits, labels):
        top = reduce(logits.amax(-1, keepdim=True), "max", TP)
        shifted = logits - top
        total = reduce(shifted.exp().sum(-1, keepdim=True), "sum", TP)
        here = labels.clamp(0, logits.shape[-1] - 1).unsqueeze(-1)
        picked = reduce(shifted.gather(-1, here), "sum", TP)
        log_prob = shifted - total.log()
        ctx.save_for_backward(log_prob, here)
        return (total.log() - picked).mean()

    @staticmethod
    def backward(ctx, grad):
        log_prob, here = ctx.saved_tensors
        part = log_prob.exp()
        part = part.scatter_add(-1, here, -torch.ones_like(part[:, :1]))
        return part * (grad / part.shape[0]), None


class SumGrad(torch.autograd.Function):
    """The weight of a norm, of whose gradient each rank has what its part of the sequence adds."""

    @staticmethod
    def forward(ctx, weight):
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx, grad):
        return reduce(grad, "sum", TP)


# Torch takes its kernel for RMSNorm apart on the CPU, so it is traced under another name.
LIBRARY = torch.library.Library("published", "DEF")
LIBRARY.define("_fused_rms_norm(Tensor x, int[] s, Tensor? w, float? eps) -> (Tensor, Tensor)")
LIBRARY.define(
    "_fused_rms_norm_backward(Tensor g, Tensor x, int[] s, Tensor r, Tensor? w, bool[2] m) -> (Tensor, Tensor)"
)


@torch.library.impl(LIBRARY, "_fused_rms_norm", "Meta")
def _(x, shape, weight, eps):
    return torch.empty_like(x), x.new_empty(*x.shape[:-1], 1, dtype=torch.float32)


@torch.library.impl(LIBRARY, "_fused_rms_norm_backward", "Meta")
def _(grad, x, shape, scale, weight, mask):
    return torch.empty_like(x), torch.empty_like(weight)


class FusedNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        out, scale = torch.ops.published._fused_rms_norm(x, weight.shape, weight, 1e-5)
        ctx.save_for_backward(x, weight, scale)
        return out

    @staticmethod
    def backward(ctx, grad):
        x, weight, scale = ctx.saved_tensors
        return torch.ops.published._fused_rms_norm_backward(grad, x, weight.shape, scale, weight, [True, True])


def rms_norm(x, weight):
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * weight


def rotate(x, table):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * table).flatten(3).type_as(x)


# What torchtitan's policy by op keeps: attention, scattered activations, and every second product.
KEPT = (aten._scaled_dot_product_flash_attention.default, c10d.reduce_scatter_tensor.default, aten.mm.default)


class Kept(TorchDispatchMode):
    """Keeps results of some ops in the first run, and returns them in the second one."""

    def __init__(self, ops, results, second):
        self.ops, self.results, self.second, self.products = ops, results, second, 0

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        keep = op in self.ops
        if op is aten.mm.default:
            self.products += 1
            keep = keep and self.products % 2 == 1
        if keep and self.second:
            return tree_map(lambda t: t.detach() if isinstance(t, torch.Tensor) else t, self.results.pop(0))
        out = op(*args, **(kwargs or {}))
        if keep:
            self.results.append(out)
        return out


class Again(torch.autograd.Function):
    """Runs a block, and once more in backward, but for what is kept: also its parameters are gathered again."""

    @staticmethod
    def forward(ctx, block, kept, *args):
        ctx.block, ctx.kept, ctx.args, ctx.results = block, kept, args, []
        with Kept(kept, ctx.results, False):
            return block(*args)

    @staticmethod
    def backward(ctx, grad):
        args = [a.detach().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a for a in ctx.args]
        with torch.enable_grad(), Kept(ctx.kept, ctx.results, True):
            out = ctx.block(*args)
        wanted = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
        grads = iter(torch.autograd.grad(out, wanted, grad))
        return None, None, *(next(grads) if isinstance(a, torch.Tensor) and a.requires_grad else None for a in args)


class Step:
    def __init__(self, job):
        self.job, self.head = job, job.dim // job.heads
        d, tp, kv = job.dim, job.tp, job.kv_heads * self.head
        q, hidden, vocab = d // tp, job.hidden // tp, job.vocab // tp
        block = [(q, d), (kv // tp, d), (kv // tp, d), (d, q), (hidden, d), (d, hidden), (hidden, d), (d,), (d,)]
        self.modules = [[(vocab, d)], *[block] * job.layers, [(d,), (vocab, d)]]
        self.modules = [[torch.Size(s) for s in m] for m in self.modules]
        self.sizes = [
            size // job.dp
            for m in self.modules
            for size in ([s.numel() for s in m] if job.bucket == "parameter" else [sum(s.numel() for s in m)])
        ]

    def take(self, shards, module):
        if self.job.bucket == "module":
            return Unshard.apply(next(shards), self.modules[module], self.job.dp)
        return tuple(Unshard.apply(next(shards), [s], self.job.dp)[0] for s in self.modules[module])

    def enter(self, x):
        return GatherLength.apply(x, self.job.tp) if self.job.tp > 1 else x

    def leave(self, x):
        return ScatterLength.apply(x, self.job.tp) if self.job.tp > 1 else x

    def norm(self, x, weight):
        weight = SumGrad.apply(weight) if self.job.tp > 1 else weight
        return FusedNorm.apply(x, weight) if self.job.norm == "fused" else rms_norm(x, weight)

    def block(self, x, table, number, *shards):
        wq, wk, wv, wo, w1, w2, w3, n1, n2 = self.take(iter(shards), number)
        job = self.job
        h = self.enter(self.norm(x, n1))
        b, length, _ = h.shape
        q, k, v = ((h @ w.t()).view(b, length, -1, self.head) for w in (wq, wk, wv))
        q, k = rotate(q, table), rotate(k, table)
        k, v = (
            t[:, :, :, None, :].expand(-1, -1, -1, job.heads // job.kv_heads, -1).reshape(q.shape) for t in (k, v)
        )
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        out = aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)[0]
        x = x + self.leave(out.transpose(1, 2).reshape(b, length, -1) @ wo.t())
        h = self.enter(self.norm(x, n2))
        return x + self.leave((torch.nn.functional.silu(h @ w1.t()) * (h @ w3.t())) @ w2.t())

    def first(self, tokens, *shards):
        (table,) = self.take(iter(shards), 0)
        if self.job.tp == 1:
            return torch.nn.functional.embedding(tokens, table)
        mine = tokens < table.shape[0]
        rows = torch.nn.functional.embedding(tokens * mine, table)
        return self.leave(rows * mine.unsqueeze(-1))

    def last(self, x, labels, *shards):
        norm, out = self.take(iter(shards), len(self.modules) - 1)
        logits = (self.enter(self.norm(x, norm)) @ out.t()).flatten(0, 1).float()
        if self.job.tp > 1:
            return SplitLoss.apply(logits, labels.flatten())
        return torch.nn.functional.cross_entropy(logits, labels.flatten())

    def run(self, tokens, labels, table, *shards):
        count = [1 if self.job.bucket == "module" else len(m) for m in self.modules]
        shards, left = list(shards), iter(shards)
        of = [[next(left) for _ in range(n)] for n in count]
        x = self.first(tokens, *of[0])
        kept = KEPT if self.job.recompute == "op" else ()
        for i in range(1, 1 + self.job.layers):
            again = self.job.recompute != "none"
            x = Again.apply(self.block, kept, x, table, i, *of[i]) if again else self.block(x, table, i, *of[i])
        # The last module is used at once in backward: it stays gathered.
        loss = self.last(x, labels, *of[-1])
        return loss, *torch.autograd.grad(loss, shards)

    def inputs(self):
        job = self.job
        tokens = torch.empty(job.batch, job.length, dtype=torch.int64)
        table = torch.empty(1, job.length, 1, self.head // 2, dtype=torch.complex64)
        return tokens, tokens.clone(), table, *(torch.empty(n, requires_grad=True) for n in self.sizes)


def text_of(step):
    with FakeTensorMode():
        gm = make_fx(step.run)(*step.inputs())
    gm.graph.eliminate_dead_code()
    gm.recompile()
    text = gm.print_readable(print_output=False, include_stride=True, include_device=True)
    text = re.sub(r"\n\s*#[^\n]*", "", text)
    text = re.sub(r"\]cpu\b", "]cuda:0", text).replace("torch.ops.published.", "torch.ops.aten.")
    return re.sub(r"device\(type='cpu'\)", "device(type='cuda', index=0)", text), gm


def write(name, job):
    for layers in (2, 3):
        step = Step(dataclasses.replace(job, layers=layers))
        text, gm = text_of(step)
        groups = {DP: {"size": job.dp, "ranks": list(range(0, job.dp * job.tp, job.tp))}}
        if job.tp > 1:
            groups[TP] = {"size": job.tp, "ranks": list(range(job.tp))}
        side = {
            "description": "a step of a Llama by tests/torch/record_published.py",
            "model_dims": dataclasses.asdict(step.job),
            "world_size": job.dp * job.tp,
            "printed_on_rank": 0,
            "groups": groups,
            "nodes": len(gm.graph.nodes),
            "torch": torch.__version__,
        }
        path = OUT / f"{name}_{layers}.txt"
        path.write_text(text.rstrip() + "\n")
        path.with_suffix(".json").write_text(json.dumps(side) + "\n")
        print(path.name, len(text), len(gm.graph.nodes))


for wanted in sys.argv[1:] or JOBS:
    write(wanted, JOBS[wanted])
