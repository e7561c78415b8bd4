"""The models of the benchmarks of whole steps."""

import torch
from torch import nn

RATE = 0.01


class Mlp(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x, target):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return nn.functional.mse_loss(self.layers[-1](x), target)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.first(x)).split(w, dim=2)
        q, k, v = (y.view(b, t, self.heads, w // self.heads).transpose(1, 2) for y in (q, k, v))
        weight = torch.softmax(q @ k.transpose(-1, -2) * (w // self.heads) ** -0.5, -1)
        x = x + self.out((weight @ v).transpose(1, 2).reshape(b, t, w))
        return x + self.down(torch.relu(self.up(self.second(x))))


class Transformer(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(layers))

    def forward(self, x, target):
        for block in self.blocks:
            x = block(x)
        return nn.functional.mse_loss(x, target)


class GptBlock(Block):
    """A block of GPT-2: causal attention, gelu."""

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.first(x)).split(w, dim=2)
        q, k, v = (y.view(b, t, self.heads, w // self.heads).transpose(1, 2) for y in (q, k, v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, w))
        return x + self.down(nn.functional.gelu(self.up(self.second(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.token, self.place = nn.Embedding(WORDS, width), nn.Embedding(GPT_TOKENS, width)
        self.blocks = nn.ModuleList(GptBlock(width, 4) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, WORDS, bias=False)

    def forward(self, words, target):
        x = self.token(words) + self.place(torch.arange(words.shape[1]))
        for block in self.blocks:
            x = block(x)
        x = self.head(self.norm(x))
        return nn.functional.cross_entropy(x.view(-1, WORDS), target.view(-1))


MODELS = {
    "mlp": (Mlp, 1024, 8, 64),
    "transformer": (Transformer, 256, 4, 1),
    "transformer256": (Transformer, 256, 4, 2),  # tokens of a rank
    "gpt": (Gpt, 256, 4, 1),
}
TOKENS = 128
WORDS, GPT_TOKENS = 2048, 512


def make(name, width=None, layers=None, batch=None):
    """A model and its inputs."""
    kind, w, n, b = MODELS[name]
    w, n, b = width or w, layers or n, batch or b
    if name == "gpt":
        return kind(w, n), tuple(torch.randint(0, WORDS, (b, GPT_TOKENS)) for _ in range(2))
    sizes = (b, w) if name == "mlp" else (b, TOKENS, w)
    return kind(w, n), (torch.randn(sizes), torch.randn(sizes))
