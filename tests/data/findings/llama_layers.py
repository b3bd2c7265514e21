# generation with a language model whose six layers are written out, each with its part of a cache
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

LAYERS, DIM, HEADS, KV_HEADS, HIDDEN, VOCAB, LENGTH = 6, 64, 4, 2, 128, 256, 32
HEAD_DIM = DIM // HEADS


class Cache(NamedTuple):
    k: list
    v: list


def init_layer(key):
    shapes = {
        "wq": (DIM, DIM),
        "wk": (DIM, KV_HEADS * HEAD_DIM),
        "wv": (DIM, KV_HEADS * HEAD_DIM),
        "wo": (DIM, DIM),
        "gate": (DIM, HIDDEN),
        "up": (DIM, HIDDEN),
        "down": (HIDDEN, DIM),
    }
    keys = dict(zip(shapes, jax.random.split(key, len(shapes))))
    weights = {n: jax.random.normal(keys[n], s, jnp.bfloat16) / math.sqrt(s[0]) for n, s in shapes.items()}
    return weights | {"norm1": jnp.ones(DIM, jnp.bfloat16), "norm2": jnp.ones(DIM, jnp.bfloat16)}


@jax.jit
def init(key):
    table, out, *keys = jax.random.split(key, LAYERS + 2)
    return {
        "table": jax.random.normal(table, (VOCAB, DIM), jnp.bfloat16),
        "layers": [init_layer(k) for k in keys],
        "norm": jnp.ones(DIM, jnp.bfloat16),
        "out": jax.random.normal(out, (DIM, VOCAB), jnp.bfloat16),
    }


def rms_norm(x, weight):
    y = x.astype(jnp.float32)
    return (y * jax.lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-5)).astype(x.dtype) * weight


def rope(x, cos, sin):
    a, b = jnp.split(x.astype(jnp.float32), 2, -1)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1).astype(x.dtype)


def attention(x, p, cos, sin, mask, keys, values, position):
    batch, length, _ = x.shape
    q = rope((x @ p["wq"]).reshape(batch, length, HEADS, HEAD_DIM), cos, sin)
    k = rope((x @ p["wk"]).reshape(batch, length, KV_HEADS, HEAD_DIM), cos, sin)
    v = (x @ p["wv"]).reshape(batch, length, KV_HEADS, HEAD_DIM)
    keys = jax.lax.dynamic_update_slice(keys, k, (0, position, 0, 0))
    values = jax.lax.dynamic_update_slice(values, v, (0, position, 0, 0))
    k, v = (jnp.repeat(a, HEADS // KV_HEADS, 2) for a in (keys, values))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) / math.sqrt(HEAD_DIM)
    weights = jax.nn.softmax(scores + mask, -1).astype(x.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ p["wo"], keys, values


def block(x, p, cos, sin, mask, keys, values, position):
    h, keys, values = attention(rms_norm(x, p["norm1"]), p, cos, sin, mask, keys, values, position)
    x = x + h
    h = rms_norm(x, p["norm2"])
    return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"], keys, values


@jax.jit
def forward(params, token, cache, position):
    x = params["table"][token][:, None]
    angles = position / 500000.0 ** (jnp.arange(0, HEAD_DIM, 2) / HEAD_DIM)
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    mask = jnp.where(jnp.arange(LENGTH) <= position, 0.0, -jnp.inf)
    keys, values = [], []
    for layer, k, v in zip(params["layers"], cache.k, cache.v):
        x, k, v = block(x, layer, cos, sin, mask, k, v, position)  # must: JX202 first note ~ jnp\.stack
        keys.append(k)
        values.append(v)
    cache = Cache(keys, values)
    logits = rms_norm(x, params["norm"]) @ params["out"]
    return jnp.argmax(logits[:, -1], -1), cache


params = init(jax.random.key(0))
shape = (1, LENGTH, KV_HEADS, HEAD_DIM)
cache = Cache(*([jnp.zeros(shape, jnp.bfloat16) for _ in range(LAYERS)] for _ in range(2)))
token = jnp.zeros(1, jnp.int32)
text = []
for position in range(16):
    token, cache = forward(params, token, cache, jax.device_put(position))
    text.append(token)
print(jnp.stack(text).ravel())
