#!/usr/bin/env python3
"""Writes gpt_fp8.safetensors and llama_fp8.safetensors beside this script: loss and gradients of the first batch of the
models in gpt.safetensors and llama.safetensors, with the linear layers of the blocks in fp8, in JAX.

Inputs and weights are E4M3, gradients of outputs E5M2, each scaled by the largest power of two that keeps its own largest
number in range; all else is fp32. Needs jax and safetensors; run it once and commit what it writes.
"""
import math
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import load_file, save_file

LAYERS, HEADS, GROUPS, HEAD_DIM, EPSILON = 2, 4, 2, 4, 1e-5
ROPE = dict(base=10000.0, factor=8.0, low=1.0, high=4.0, old_context=64)


def cast(x, dtype, largest):
    amax = jnp.max(jnp.abs(x))
    scale = jnp.where(amax > 0, 2.0 ** jnp.floor(jnp.log2(largest / amax)), 1.0)
    return jnp.clip(x * scale, -largest, largest).astype(dtype).astype(jnp.float32) / scale


def e4m3(x):
    return cast(x, jnp.float8_e4m3fn, 448.0)


@jax.custom_vjp
def linear(x, w):
    return e4m3(x) @ e4m3(w).T


def linear_forward(x, w):
    operands = e4m3(x), e4m3(w)
    return operands[0] @ operands[1].T, operands


def linear_backward(operands, gradient):
    x, w = operands
    gradient = cast(gradient, jnp.float8_e5m2, 57344.0)
    return gradient @ w, jnp.einsum("...o,...i->oi", gradient, x)


linear.defvjp(linear_forward, linear_backward)


def attend(q, k, v):
    length = q.shape[2]
    scores = q @ jnp.swapaxes(k, -1, -2) / math.sqrt(HEAD_DIM)
    return jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf), -1) @ v


def split_heads(x, heads):
    return x.reshape(x.shape[0], x.shape[1], heads, HEAD_DIM).swapaxes(1, 2)


def merge_heads(x):
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def gpt_logits(p, tokens):
    def norm(x, name):
        centered = x - x.mean(-1, keepdims=True)
        variance = (centered**2).mean(-1, keepdims=True)
        return centered / jnp.sqrt(variance + EPSILON) * p[name + ".weight"] + p[name + ".bias"]

    def layer_of(x, name):
        return linear(x, p[name + ".weight"]) + p[name + ".bias"]

    x = p["embedding.tokens.weight"][tokens] + p["embedding.positions.weight"][: tokens.shape[1]]
    for layer in range(LAYERS):
        name = f"layers.{layer}."
        qkv = layer_of(norm(x, name + "attention.norm"), name + "attention.qkv")
        q, k, v = (split_heads(part, HEADS) for part in jnp.split(qkv, 3, -1))
        x = x + layer_of(merge_heads(attend(q, k, v)), name + "attention.out")
        hidden = jax.nn.gelu(layer_of(norm(x, name + "mlp.norm"), name + "mlp.up"), approximate=True)
        x = x + layer_of(hidden, name + "mlp.down")
    return norm(x, "final_norm") @ p["embedding.tokens.weight"].T


def rotate(x):
    frequency = ROPE["base"] ** (-np.arange(0, HEAD_DIM, 2) / HEAD_DIM)
    wavelength = 2 * math.pi / frequency
    blend = np.clip((ROPE["old_context"] / wavelength - ROPE["low"]) / (ROPE["high"] - ROPE["low"]), 0, 1)
    angles = np.arange(x.shape[2])[:, None] * (blend * frequency + (1 - blend) * frequency / ROPE["factor"])
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    first, second = jnp.split(x, 2, -1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], -1)


def llama_logits(p, tokens):
    def norm(x, name):
        return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * p[name + ".weight"]

    queries, kv = HEADS * HEAD_DIM, GROUPS * HEAD_DIM
    x = p["embedding.tokens.weight"][tokens]
    for layer in range(LAYERS):
        name = f"layers.{layer}."
        qkv = linear(norm(x, name + "attention.norm"), p[name + "attention.qkv.weight"])
        q, k, v = jnp.split(qkv, [queries, queries + kv], -1)
        q, k, v = split_heads(q, HEADS), split_heads(k, GROUPS), split_heads(v, GROUPS)
        k, v = (jnp.repeat(part, HEADS // GROUPS, 1) for part in (rotate(k), v))
        x = x + linear(merge_heads(attend(rotate(q), k, v)), p[name + "attention.out.weight"])
        gate, up = jnp.split(linear(norm(x, name + "mlp.norm"), p[name + "mlp.gate_up.weight"]), 2, -1)
        x = x + linear(jax.nn.silu(gate) * up, p[name + "mlp.down.weight"])
    return norm(x, "final_norm") @ p["head.weight"].T


def make(name, logits_of):
    here = pathlib.Path(__file__).parent
    golden = load_file(here / f"{name}.safetensors")
    weights = {key.removeprefix("weights/"): jnp.array(x) for key, x in golden.items() if key.startswith("weights/")}
    tokens = golden["tokens"][0]

    def loss_of(p):
        log_probabilities = jax.nn.log_softmax(logits_of(p, tokens[:, :-1]))
        return -jnp.take_along_axis(log_probabilities, tokens[:, 1:, None], -1).mean()

    loss, gradients = jax.value_and_grad(loss_of)(weights)
    out = {"gradients/" + key: np.asarray(x) for key, x in gradients.items()}
    out["loss"] = np.asarray([loss], np.float32)
    save_file(out, here / f"{name}_fp8.safetensors")
    print(name, "loss", float(loss), "instead of", float(golden["loss"][0]))


if __name__ == "__main__":
    make("gpt", gpt_logits)
    make("llama", llama_logits)
