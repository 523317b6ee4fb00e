#!/usr/bin/env python3
"""Writes gpt.safetensors and llama.safetensors beside this script: a small GPT and a small Llama in PyTorch, fp64.

Each file holds, under Megalith's logical parameter names: weights/*, gradients/* (of the first batch), updated/* (weights
after ten AdamW steps with clipping), the token ids, and the logits and loss of the first batch. Needs PyTorch; run it once
and commit what it writes:  python3 tests/golden/make_golden.py
"""
import json
import math
import pathlib
import struct

import torch
import torch.nn.functional as F

STEPS, BATCH, LENGTH, VOCABULARY = 10, 3, 16, 61
LAYERS, HIDDEN, HEAD_DIM = 2, 16, 4
LR, BETAS, EPSILON, WEIGHT_DECAY, CLIP = 1e-3, (0.9, 0.95), 1e-8, 0.1, 1.0


def gpt_parameters(draw):
    table = {"embedding.tokens.weight": draw(VOCABULARY, HIDDEN), "embedding.positions.weight": draw(LENGTH, HIDDEN)}
    for layer in range(LAYERS):
        name = f"layers.{layer}."
        table[name + "attention.norm.weight"] = 1 + draw(HIDDEN)
        table[name + "attention.norm.bias"] = draw(HIDDEN)
        table[name + "attention.qkv.weight"] = draw(3 * HIDDEN, HIDDEN)
        table[name + "attention.qkv.bias"] = draw(3 * HIDDEN)
        table[name + "attention.out.weight"] = draw(HIDDEN, HIDDEN)
        table[name + "attention.out.bias"] = draw(HIDDEN)
        table[name + "mlp.norm.weight"] = 1 + draw(HIDDEN)
        table[name + "mlp.norm.bias"] = draw(HIDDEN)
        table[name + "mlp.up.weight"] = draw(4 * HIDDEN, HIDDEN)
        table[name + "mlp.up.bias"] = draw(4 * HIDDEN)
        table[name + "mlp.down.weight"] = draw(HIDDEN, 4 * HIDDEN)
        table[name + "mlp.down.bias"] = draw(HIDDEN)
    table["final_norm.weight"] = 1 + draw(HIDDEN)
    table["final_norm.bias"] = draw(HIDDEN)
    return table


LLAMA_HEADS, LLAMA_GROUPS, LLAMA_FFN = 4, 2, 48
ROPE = dict(base=10000.0, factor=8.0, low=1.0, high=4.0, old_context=64)


def llama_parameters(draw):
    kv = LLAMA_GROUPS * HEAD_DIM
    table = {"embedding.tokens.weight": draw(VOCABULARY, HIDDEN)}
    for layer in range(LAYERS):
        name = f"layers.{layer}."
        table[name + "attention.norm.weight"] = 1 + draw(HIDDEN)
        table[name + "attention.qkv.weight"] = draw(HIDDEN + 2 * kv, HIDDEN)
        table[name + "attention.out.weight"] = draw(HIDDEN, HIDDEN)
        table[name + "mlp.norm.weight"] = 1 + draw(HIDDEN)
        table[name + "mlp.gate_up.weight"] = draw(2 * LLAMA_FFN, HIDDEN)
        table[name + "mlp.down.weight"] = draw(HIDDEN, LLAMA_FFN)
    table["final_norm.weight"] = 1 + draw(HIDDEN)
    table["head.weight"] = draw(VOCABULARY, HIDDEN)
    return table


def attend(q, k, v):
    """(batch, heads, length, head_dim), causal, written out."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
    return scores.masked_fill(~mask, -math.inf).softmax(-1) @ v


def split_heads(x, heads):
    return x.view(x.shape[0], x.shape[1], heads, HEAD_DIM).transpose(1, 2)


def merge_heads(x):
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


def gpt_logits(p, tokens):
    x = p["embedding.tokens.weight"][tokens] + p["embedding.positions.weight"][:LENGTH]
    norm = lambda x, name: F.layer_norm(x, (HIDDEN,), p[name + ".weight"], p[name + ".bias"], 1e-5)
    linear = lambda x, name: F.linear(x, p[name + ".weight"], p[name + ".bias"])
    for layer in range(LAYERS):
        name = f"layers.{layer}."
        q, k, v = (split_heads(t, HIDDEN // HEAD_DIM)
                   for t in linear(norm(x, name + "attention.norm"), name + "attention.qkv").chunk(3, -1))
        x = x + linear(merge_heads(attend(q, k, v)), name + "attention.out")
        hidden = F.gelu(linear(norm(x, name + "mlp.norm"), name + "mlp.up"), approximate="tanh")
        x = x + linear(hidden, name + "mlp.down")
    return norm(x, "final_norm") @ p["embedding.tokens.weight"].T


def rope_angles():
    frequency = ROPE["base"] ** (-torch.arange(0, HEAD_DIM, 2, dtype=torch.float64) / HEAD_DIM)
    wavelength = 2 * math.pi / frequency
    blend = (ROPE["old_context"] / wavelength - ROPE["low"]) / (ROPE["high"] - ROPE["low"])
    blend = blend.clamp(0, 1)  # 1: short wavelength, kept; 0: long, divided
    frequency = blend * frequency + (1 - blend) * frequency / ROPE["factor"]
    return torch.arange(LENGTH, dtype=torch.float64)[:, None] * frequency


def rotate(x):
    angles = rope_angles()
    first, second = x.chunk(2, -1)
    return torch.cat([first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()], -1)


def llama_logits(p, tokens):
    x = p["embedding.tokens.weight"][tokens]
    norm = lambda x, name: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * p[name + ".weight"]
    kv = LLAMA_GROUPS * HEAD_DIM
    for layer in range(LAYERS):
        name = f"layers.{layer}."
        q, k, v = F.linear(norm(x, name + "attention.norm"), p[name + "attention.qkv.weight"]).split([HIDDEN, kv, kv], -1)
        q, k, v = split_heads(q, LLAMA_HEADS), split_heads(k, LLAMA_GROUPS), split_heads(v, LLAMA_GROUPS)
        repeat = LLAMA_HEADS // LLAMA_GROUPS
        k, v = rotate(k).repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
        x = x + F.linear(merge_heads(attend(rotate(q), k, v)), p[name + "attention.out.weight"])
        gate, up = F.linear(norm(x, name + "mlp.norm"), p[name + "mlp.gate_up.weight"]).chunk(2, -1)
        x = x + F.linear(F.silu(gate) * up, p[name + "mlp.down.weight"])
    return F.linear(norm(x, "final_norm"), p["head.weight"])


def loss_of(logits, tokens):
    return F.cross_entropy(logits.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))


def write_safetensors(path, tensors):
    header, blobs, offset = {}, [], 0
    for name, tensor in tensors.items():
        kind, dtype = ("I32", torch.int32) if not tensor.is_floating_point() else ("F32", torch.float32)
        blob = tensor.detach().to(dtype).contiguous().numpy().tobytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def make(path, parameters, logits_of, seed):
    generator = torch.Generator().manual_seed(seed)
    # Drawn in fp32, so that the file holds the very weights that PyTorch starts from.
    draw = lambda *shape: 0.2 * torch.randn(*shape, generator=generator, dtype=torch.float32)
    p = {name: value.double().requires_grad_() for name, value in parameters(draw).items()}
    tokens = torch.randint(0, VOCABULARY, (STEPS, BATCH, LENGTH + 1), generator=generator)
    out = {"tokens": tokens}
    out.update({"weights/" + name: value.detach().clone() for name, value in p.items()})

    decayed = [v for v in p.values() if v.ndim > 1]
    others = [v for v in p.values() if v.ndim == 1]
    groups = [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=EPSILON)
    for step in range(STEPS):
        logits = logits_of(p, tokens[step][:, :-1])
        loss = loss_of(logits, tokens[step])
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            out["logits"] = logits.reshape(-1, VOCABULARY)
            out["loss"] = loss.reshape(1)
            out.update({"gradients/" + name: value.grad.clone() for name, value in p.items()})
        torch.nn.utils.clip_grad_norm_(p.values(), CLIP)
        optimizer.step()
    out.update({"updated/" + name: value for name, value in p.items()})
    write_safetensors(path, out)
    print(path.name, sum(v.numel() for v in p.values()), "parameters, first loss", out["loss"].item())


if __name__ == "__main__":
    here = pathlib.Path(__file__).parent
    make(here / "gpt.safetensors", gpt_parameters, gpt_logits, seed=1)
    make(here / "llama.safetensors", llama_parameters, llama_logits, seed=2)
