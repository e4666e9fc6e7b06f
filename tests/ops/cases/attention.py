# SPDX-License-Identifier: Apache-2.0
"""Cases of attention operators and RotaryEmbedding."""
import numpy as np

from .common import f32, i32, i64, rng


def attention(own):
    q, k, v = f32(2, 6, 70, 20), f32(2, 3, 150, 20), f32(2, 3, 150, 12)
    add = lambda inputs, **attrs: own.add("Attention", inputs, opset=attrs.pop("opset", 24), **attrs)  # noqa: E731
    add([q, k, v])
    add([q, k, v], is_causal=1, scale=0.3)
    add([q, k, v, f32(70, 150)], softcap=2.0)
    add([q, k, v, rng.random((2, 1, 70, 150)) < 0.7], is_causal=1)
    add([q, k, v, rng.random((6, 1, 150)) < 0.7], reference="onnx")
    add([q, k, v, f32(2, 6, 70, 170), f32(2, 3, 20, 20), f32(2, 3, 20, 12)], outputs=3, is_causal=1)
    add([f32(2, 5, 24), f32(2, 9, 12), f32(2, 9, 10)], q_num_heads=4, kv_num_heads=2)
    add([f32(2, 1, 24), f32(2, 1, 12), f32(2, 1, 10), None, f32(2, 2, 33, 6), f32(2, 2, 33, 5)], q_num_heads=4, kv_num_heads=2,
        outputs=3, is_causal=1)
    add([f32(1, 2, 3, 131), f32(1, 2, 9, 131), f32(1, 2, 9, 3)])
    for mode in range(4):
        add([f32(2, 2, 7, 5), f32(2, 2, 9, 5), f32(2, 2, 9, 6), f32(7, 9)], outputs=4, qk_matmul_output_mode=mode, softcap=1.5 * (mode > 0),
            reference="onnx")
    lengths = i64(90, 150)
    add([q, k, v, None, None, None, lengths], is_causal=1, reference="onnx")
    add([q, k, v], opset=25, left_window_size=20, right_window_size=3, reference="onnx")
    add([q, k, v, f32(70, 140), None, None, i64(140, 77)], opset=25, left_window_size=9, is_causal=1, reference="onnx")
    for dtype in (np.float64, np.float16):
        # the reference rounds intermediate results to float16
        rtol, atol = (1e-3, 1e-3) if dtype == np.float64 else (2e-2, 3e-3)
        add([x.astype(dtype) for x in (q, k, v)], is_causal=1, reference="onnx", rtol=rtol, atol=atol)


def rotary_embedding(own):
    cos, sin = f32(50, 8, low=-1, high=1), f32(50, 8, low=-1, high=1)
    at = rng.integers(0, 50, (2, 7))
    for interleaved in (0, 1):
        own.add("RotaryEmbedding", [f32(2, 3, 7, 16), cos, sin, at], opset=23, interleaved=interleaved)
        own.add("RotaryEmbedding", [f32(2, 7, 60), cos, sin, at], opset=23, interleaved=interleaved, num_heads=3, rotary_embedding_dim=16)
        own.add("RotaryEmbedding", [f32(2, 7, 48), at, cos, sin], opset=1, domain="com.microsoft", interleaved=interleaved)
        own.add("RotaryEmbedding", [f32(2, 3, 7, 16), i64(11), cos, sin], opset=1, domain="com.microsoft", interleaved=interleaved)
    own.add("RotaryEmbedding", [f32(2, 7, 60), at, cos, sin], opset=1, domain="com.microsoft", num_heads=3, rotary_embedding_dim=16)


def plain(q, k, v):
    """Returns softmax(q k' / sqrt(size)) v of operands [batch, length, heads, size]."""
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    y = np.einsum("bhqk,bkhd->bqhd", weights / weights.sum(-1, keepdims=True), v)
    return y.reshape(y.shape[0], y.shape[1], -1).astype(np.float32)


def multi_head_attention(own):
    """MultiHeadAttention, Attention and QAttention of com.microsoft."""
    b, s, n, d = 2, 5, 3, 6
    h = n * d
    mha = lambda inputs, **attrs: own.microsoft("MultiHeadAttention", inputs, num_heads=n, **attrs)  # noqa: E731
    q, k, v = f32(b, s, h), f32(b, 8, h), f32(b, 8, n * 4)
    mha([q, k, v])
    mha([q, k, v, f32(2 * h + n * 4)], scale=0.3)
    mha([q, k, v, None, np.array([3, 8], np.int32)])
    mha([q, k, v, None, i32(b, 8)], mask_filter_value=-500.0)
    mha([q, k, v, None, i32(b, s, 8), f32(1, n, s, 8)])
    mha([q, k, v, None, None, f32(b, 1, s, 8)])
    packed, pair = f32(b, s, n, 3, d), f32(b, 8, n, 2, d)  # ONNX Runtime implements these only on GPUs
    mha([packed], reference=[plain(*(packed[:, :, :, i] for i in range(3)))])
    mha([q, pair], reference=[plain(q.reshape(b, s, n, d), pair[:, :, :, 0], pair[:, :, :, 1])])
    mha([q, f32(b, n, 8, d), f32(b, n, 8, d)])
    mha([q, f32(b, s, h), f32(b, s, h), None, None, None, f32(b, n, 4, d), f32(b, n, 4, d)], outputs=3, unidirectional=1)
    mha([q, f32(b, s, h), f32(b, s, h), f32(3 * h), None, f32(1, 1, s, 9), f32(b, n, 4, d), f32(b, n, 4, d)], outputs=3)
    merged = lambda inputs, **attrs: own.microsoft("Attention", inputs, num_heads=n, **attrs)  # noqa: E731
    x, w, bias = f32(b, s, 7), f32(7, 3 * h), f32(3 * h)
    merged([x, w, bias])
    merged([x, w, bias], constants=(1, 2))
    merged([x, w, bias, np.array([2, 5], np.int32)])
    merged([x, w, bias, np.array([4, 5, 1, 0], np.int32)])
    merged([x, w, bias, i32(b, s)], unidirectional=1)
    merged([x, w, bias, i32(b, s, s)], scale=0.2)
    merged([x, w, bias, i32(b, s + 4), f32(2, b, n, 4, d)], outputs=2, unidirectional=1)
    merged([x, f32(7, 2 * h + 12), f32(2 * h + 12)], qkv_hidden_sizes=[h, h, 12])
    merged([x, w, bias, None, None, f32(b, n, s, s)])
    quantized = [rng.integers(0, 256, (b, s, 7)).astype(np.uint8), rng.integers(0, 256, (7, 3 * h)).astype(np.uint8), bias,
                 np.float32(0.02), np.float32(0.01)]
    zeros = [np.uint8(120), np.uint8(131)]
    own.microsoft("QAttention", [*quantized, None, *zeros], num_heads=n)
    own.microsoft("QAttention", [*quantized, None, *zeros], num_heads=n, constants=(1, 2, 3, 4, 6, 7))
    own.microsoft("QAttention", [*quantized, np.array([2, 5], np.int32), *zeros, f32(2, b, n, 4, d)], num_heads=n, outputs=2, unidirectional=1)


def group_query_attention(own):
    n, kv, d = 4, 2, 16
    angles = rng.uniform(0, 6, (40, d // 2))
    tables = [np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)]

    def gqa(batch, fresh, past, lengths, rotary=0, outputs=3, extra=(), packed=False, room=None, constant=True, **attrs):
        total = max(lengths) + 1
        width = n * d + (2 * kv * d if packed else 0)
        cache = [None, None] if past is None else [f32(batch, kv, room or past, d) for _ in range(2)]
        inputs = [f32(batch, fresh, width), *([None, None] if packed else [f32(batch, fresh, kv * d) for _ in range(2)]), *cache,
                  np.array(lengths, np.int32), np.array(total, np.int32)]
        tail = (tables if rotary else [None, None]) + list(extra)
        while tail and tail[-1] is None:
            tail.pop()
        own.microsoft("GroupQueryAttention", inputs + tail, outputs=outputs, num_heads=n, kv_num_heads=kv, do_rotary=rotary,
           constants=(6,) if constant else (), **attrs)

    gqa(2, 6, None, [5, 5])
    gqa(2, 6, None, [5, 5], rotary=1, packed=True)
    gqa(2, 1, 9, [9, 9], rotary=1, scale=0.4)
    gqa(2, 1, 9, [9, 9], rotary=1, rotary_interleaved=1, softcap=1.5)
    gqa(1, 3, 7, [9], rotary=1)
    gqa(1, 3, 7, [9], rotary=1, extra=[i64(4, 9, 30).reshape(1, 3)])
    gqa(2, 1, 12, [12, 12], extra=[None, f32(1, n, 1, 13)])
    gqa(2, 6, None, [5, 5], extra=[None, f32(2, 1, 6, 6)])
    for window in (1, 3, 20):
        gqa(2, 8, None, [7, 7], local_window_size=window)
        gqa(2, 1, 12, [12, 12], local_window_size=window, rotary=1)
    gqa(2, 6, None, [5, 5], smooth_softmax=1)
    gqa(2, 1, 9, [9, 9], rotary=1, constant=False)
    gqa(2, 1, 12, [12, 12], extra=[None, None, f32(n)])


def attention_with_wrong_operands(own):
    q, qkv, kv = f32(2, 3, 8), f32(2, 3, 2, 3, 4), f32(2, 5, 2, 2, 4)
    ms = {"opset": 1, "domain": "com.microsoft"}
    # these used to read outside of the keys or values
    own.refuse("MultiHeadAttention", [q, kv[:1]], "keys and values do not match", num_heads=2, **ms)
    own.refuse("MultiHeadAttention", [q, kv, f32(2, 5, 8)], "keys and values do not match", num_heads=2, **ms)
    own.refuse("MultiHeadAttention", [qkv, f32(2, 3, 8)], "keys and values do not match", num_heads=2, **ms)
    own.refuse("Attention", [q, f32(8, 24), f32(24)], "the hidden sizes do not match", num_heads=2, qkv_hidden_sizes=[-8, -8, 40], **ms)
    bytes_ = lambda *shape: np.zeros(shape, np.uint8)  # noqa: E731
    for x_scales, w_scales in [(2, 1), (1, 5)]:
        own.refuse("QAttention", [bytes_(2, 3, 8), bytes_(8, 24), f32(24), f32(x_scales), f32(w_scales)], "expected one scale", num_heads=2, **ms)


CASES = [attention, rotary_embedding, multi_head_attention, group_query_attention, attention_with_wrong_operands]
