"""The Transformer of Vaswani et al. (2017) in the size and the initialisation of fairseq's transformer_iwslt_de_en.

    x + Dropout(Attention(x)), LayerNorm, x + Dropout(FFN(x)), LayerNorm     (normalised after each sum)

Embeddings are scaled by sqrt(width) and get sinusoids; the decoder's embedding is also its output matrix. With
dictionaries of 8848 and 6632 symbols it has 39,469,056 parameters. Sentences end in padding, so a causal mask keeps it
from the decoder's tokens, and the output is computed for tokens alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sam_repro.tasks.translation.bpe import PAD


@dataclass
class TransformerConfig:
    width: int = 512
    inner: int = 1024
    heads: int = 4
    layers: int = 6  # of the encoder, and as many of the decoder
    dropout: float = 0.3


class Attention(nn.Module):
    """Softmax(q k^T / sqrt(d)) v over some heads; queries from `x`, keys and values from `memory` (`x` itself)."""

    def __init__(self, c: TransformerConfig) -> None:
        super().__init__()
        self.heads = c.heads
        self.q = nn.Linear(c.width, c.width)
        self.kv = nn.Linear(c.width, 2 * c.width)
        self.out = nn.Linear(c.width, c.width)
        # fairseq's bound, Xavier's over sqrt(2), for each of the three.
        bound = math.sqrt(6 / (4 * c.width))
        nn.init.uniform_(self.q.weight, -bound, bound)
        nn.init.uniform_(self.kv.weight, -bound, bound)
        nn.init.xavier_uniform_(self.out.weight)
        for linear in (self.q, self.kv, self.out):
            nn.init.zeros_(linear.bias)

    def split(self, x: Tensor) -> Tensor:
        """[n, t, width] -> [n, heads, t, width / heads]"""
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def keys(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        key, value = self.kv(memory).chunk(2, dim=-1)
        return self.split(key), self.split(value)

    def attend(self, x: Tensor, keys: tuple[Tensor, Tensor], seen: Tensor | None, causal: bool = False) -> Tensor:
        """seen: bool, broadcast over [n, heads, queries, keys]; None where a query sees all keys."""
        query = self.split(self.q(x))
        found = F.scaled_dot_product_attention(query, *keys, attn_mask=seen, is_causal=causal)
        return self.out(found.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]

    def forward(self, x: Tensor, seen: Tensor | None = None, causal: bool = False) -> Tensor:
        return self.attend(x, self.keys(x), seen, causal)


class Feedforward(nn.Module):
    def __init__(self, c: TransformerConfig) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(c.width, c.inner), nn.Linear(c.inner, c.width)
        for linear in (self.first, self.second):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(F.relu(self.first(x)))  # type: ignore[no-any-return]


class Layer(nn.Module):
    """Of the encoder; of the decoder, with attention to the source."""

    def __init__(self, c: TransformerConfig, decodes: bool) -> None:
        super().__init__()
        self.dropout = c.dropout
        self.own, self.own_norm = Attention(c), nn.LayerNorm(c.width)
        self.cross = Attention(c) if decodes else None
        self.cross_norm = nn.LayerNorm(c.width) if decodes else None
        self.ffn, self.ffn_norm = Feedforward(c), nn.LayerNorm(c.width)

    def add(self, x: Tensor, change: Tensor, norm: nn.Module) -> Tensor:
        return norm(x + F.dropout(change, self.dropout, self.training))  # type: ignore[no-any-return]

    def forward(
        self, x: Tensor, seen: Tensor | None, memory: Tensor | None = None, memory_seen: Tensor | None = None
    ) -> Tensor:
        x = self.add(x, self.own(x, seen, causal=memory is not None), self.own_norm)
        if memory is not None:
            assert self.cross is not None
            assert self.cross_norm is not None
            x = self.add(x, self.cross.attend(x, self.cross.keys(memory), memory_seen), self.cross_norm)
        return self.add(x, self.ffn(x), self.ffn_norm)


class Embedding(nn.Module):
    """sqrt(width) E[id] + sinusoid[position]"""

    sinusoids: Tensor

    def __init__(self, c: TransformerConfig, symbols: int) -> None:
        super().__init__()
        self.width, self.dropout = c.width, c.dropout
        self.weight = nn.Parameter(torch.randn(symbols, c.width) / math.sqrt(c.width))
        with torch.no_grad():
            self.weight[PAD] = 0
        self.register_buffer("sinusoids", sinusoids(256, c.width), persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self._scaled(ids) + self.positions(ids.shape[1]).to(self.weight.dtype)
        return F.dropout(x, self.dropout, self.training)

    def at(self, ids: Tensor, position: int) -> Tensor:
        """Of tokens that all have this position; without dropout."""
        return self._scaled(ids) + self.positions(position + 1)[position].to(self.weight.dtype)

    def _scaled(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.weight) * math.sqrt(self.width)

    def positions(self, length: int) -> Tensor:
        known = self.sinusoids
        if length > len(known):
            known = self.sinusoids = sinusoids(2 * length, self.width).to(known)
        return known[:length]


def sinusoids(length: int, width: int) -> Tensor:
    """[length, width]: sin(p w_i) in the first half of the columns, cos(p w_i) in the second.

    w_i = 10000^(-i / (h - 1)), h being half the width. As fairseq and tensor2tensor lay them out.
    """
    half = width // 2
    rates = torch.exp(torch.arange(half, dtype=torch.float64) * -(math.log(10000) / max(1, half - 1)))
    angles = torch.arange(length, dtype=torch.float64)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class Transformer(nn.Module):
    def __init__(self, c: TransformerConfig, source_symbols: int, target_symbols: int) -> None:
        super().__init__()
        self.source, self.target = Embedding(c, source_symbols), Embedding(c, target_symbols)
        self.encoder = nn.ModuleList(Layer(c, decodes=False) for _ in range(c.layers))
        self.decoder = nn.ModuleList(Layer(c, decodes=True) for _ in range(c.layers))

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor | None]:
        """(states [n, s, width], which of them are tokens; None if all are), of int64 [n, s]."""
        seen = visible(source)
        x = self.source(source)
        for layer in self.encoder:
            x = layer(x, seen)
        return x, seen

    def decode(self, target_in: Tensor, memory: Tensor, memory_seen: Tensor | None) -> Tensor:
        """[n, t, width]: what the decoder makes of each token."""
        x: Tensor = self.target(target_in)
        for layer in self.decoder:
            x = layer(x, None, memory, memory_seen)
        return x

    def logits(self, states: Tensor) -> Tensor:
        return F.linear(states, self.target.weight)

    def forward(self, source: Tensor, target_in: Tensor) -> Tensor:
        """[tokens, symbols]: logits of what follows each token of `target_in` that is no padding, row by row."""
        return self.logits(self.decode(target_in, *self.encode(source))[target_in != PAD])


def visible(ids: Tensor) -> Tensor | None:
    """bool [n, 1, 1, s], true for tokens; None if there is no padding, which spares the mask."""
    tokens = ids != PAD
    return None if bool(tokens.all()) else tokens[:, None, None]
