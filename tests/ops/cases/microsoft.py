# SPDX-License-Identifier: Apache-2.0
"""Operators of com.microsoft that exported and optimized transformers carry, against ONNX Runtime."""
import math

import numpy as np
from common import f32, i64, rng  # noqa: F401


def ms(own, op, inputs, **attrs):
    version = attrs.pop("opset", None)  # QLinearSoftmax has an attribute of that name
    more = {} if version is None else {"attributes": {"opset": version}}
    own.add(op, inputs, opset=1, domain="com.microsoft", **attrs, **more)


def i32(*shape, low=0, high=2):
    return rng.integers(low, high, shape).astype(np.int32)


def norms(own):
    x, s, g = f32(2, 5, 37), f32(2, 5, 37), [f32(37) for _ in range(3)]
    ms(own, "SkipLayerNormalization", [x, s, *g[:2]], epsilon=1e-5)
    ms(own, "SkipLayerNormalization", [x, f32(5, 37), g[0], None, g[2]], outputs=1)
    ms(own, "SkipLayerNormalization", [x, f32(1, 5, 37), g[0], g[1], g[2]])
    ms(own, "SkipSimplifiedLayerNormalization", [x, s, g[0]], epsilon=1e-6)
    ms(own, "SkipSimplifiedLayerNormalization", [x, s, g[0], g[1]])
    own.add("SimplifiedLayerNormalization", [x, g[0]], epsilon=1e-6)
    words, at, segments = f32(30, 24), f32(12, 24), f32(2, 24)
    ids = i32(3, 7, high=30)
    ms(own, "EmbedLayerNormalization", [ids, i32(3, 7), words, at, segments, f32(24), f32(24), i32(3, 7)], outputs=2, epsilon=1e-6, constants=(2, 3, 4, 5, 6))
    ms(own, "EmbedLayerNormalization", [ids, None, words, at, None, f32(24), f32(24), None, i32(3, 7, high=12)], outputs=2, constants=(2, 3, 5, 6))


def activations(own):
    x = f32(3, 5, 70, low=-5, high=5)
    ms(own, "Gelu", [x])
    ms(own, "FastGelu", [x])
    ms(own, "FastGelu", [x, f32(70)])
    ms(own, "BiasGelu", [x, f32(70)])
    ms(own, "QuickGelu", [x])
    ms(own, "QuickGelu", [x], alpha=0.7)


def biases(own):
    """Those of image generators, which ONNX Runtime has on a GPU alone: as ContribOperators.md writes them."""
    x, bias, skip = f32(2, 7, 40), f32(40), f32(2, 7, 40)
    for kind, near in ((np.float32, {}), (np.float16, {"rtol": 4e-3, "atol": 4e-3})):
        xs, biases_, skips = (a.astype(kind) for a in (x, bias, skip))
        ms(own, "BiasAdd", [xs, biases_, skips], reference=[xs + biases_ + skips], **near)
        first, second = np.split(xs.astype(np.float64) + biases_, 2, -1)
        gelu = second * 0.5 * (1 + np.vectorize(math.erf)(second / np.sqrt(2)))
        ms(own, "BiasSplitGelu", [xs, biases_], reference=[(first * gelu).astype(kind)], **near)
    own.refuse("BiasAdd", [x, bias, f32(2, 7)], "the residual must be like the input", opset=1, domain="com.microsoft")
    own.refuse("BiasSplitGelu", [f32(2, 5), f32(5)], "the last extent must be even", opset=1, domain="com.microsoft")


def plain(q, k, v):
    """softmax(q k' / sqrt(size)) v of [batch, length, heads, size]."""
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    y = np.einsum("bhqk,bkhd->bqhd", weights / weights.sum(-1, keepdims=True), v)
    return y.reshape(y.shape[0], y.shape[1], -1).astype(np.float32)


def attention(own):
    b, s, n, d = 2, 5, 3, 6
    h = n * d
    mha = lambda inputs, **attrs: ms(own, "MultiHeadAttention", inputs, num_heads=n, **attrs)  # noqa: E731
    q, k, v = f32(b, s, h), f32(b, 8, h), f32(b, 8, n * 4)
    mha([q, k, v])
    mha([q, k, v, f32(2 * h + n * 4)], scale=0.3)
    mha([q, k, v, None, np.array([3, 8], np.int32)])
    mha([q, k, v, None, i32(b, 8)], mask_filter_value=-500.0)
    mha([q, k, v, None, i32(b, s, 8), f32(1, n, s, 8)])
    mha([q, k, v, None, None, f32(b, 1, s, 8)])
    packed, pair = f32(b, s, n, 3, d), f32(b, 8, n, 2, d)  # ONNX Runtime has these on GPUs alone
    mha([packed], reference=[plain(*(packed[:, :, :, i] for i in range(3)))])
    mha([q, pair], reference=[plain(q.reshape(b, s, n, d), pair[:, :, :, 0], pair[:, :, :, 1])])
    mha([q, f32(b, n, 8, d), f32(b, n, 8, d)])
    mha([q, f32(b, s, h), f32(b, s, h), None, None, None, f32(b, n, 4, d), f32(b, n, 4, d)], outputs=3, unidirectional=1)
    mha([q, f32(b, s, h), f32(b, s, h), f32(3 * h), None, f32(1, 1, s, 9), f32(b, n, 4, d), f32(b, n, 4, d)], outputs=3)
    merged = lambda inputs, **attrs: ms(own, "Attention", inputs, num_heads=n, **attrs)  # noqa: E731
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
    ms(own, "QAttention", [*quantized, None, *zeros], num_heads=n)
    ms(own, "QAttention", [*quantized, None, *zeros], num_heads=n, constants=(1, 2, 3, 4, 6, 7))
    ms(own, "QAttention", [*quantized, np.array([2, 5], np.int32), *zeros, f32(2, b, n, 4, d)], num_heads=n, outputs=2, unidirectional=1)


def group_query(own):
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
        ms(own, "GroupQueryAttention", inputs + tail, outputs=outputs, num_heads=n, kv_num_heads=kv, do_rotary=rotary,
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


def products(own):
    ms(own, "FusedMatMul", [f32(2, 3, 4, 5), f32(2, 3, 6, 5)], transB=1, alpha=0.125)
    ms(own, "FusedMatMul", [f32(3, 5, 4), f32(5, 6)], transA=1)
    ms(own, "FusedMatMul", [f32(7, 2, 3, 4), f32(2, 3, 4, 6)], transBatchA=1)
    ms(own, "FusedMatMul", [f32(4, 2, 3, 7), f32(4, 2, 3, 6)], transBatchA=1, transA=1, transBatchB=1, alpha=2.0)
    ms(own, "FusedMatMul", [f32(4, 5), f32(6, 5)], transB=1, constants=(1,))
    for act, more in (("Relu", {}), ("Tanh", {}), ("LeakyRelu", {"activation_alpha": 0.2})):
        ms(own, "FusedGemm", [f32(4, 5), f32(6, 5), f32(6)], transB=1, alpha=0.5, activation=act, constants=(1, 2), **more)
    x, w = f32(2, 4, 9, 8), f32(6, 4, 3, 3)
    for act, params in (("Relu", []), ("Sigmoid", []), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 1.5]), ("HardSigmoid", [0.3, 0.4])):
        more = {"activation_params": params} if params else {}
        ms(own, "FusedConv", [x, w, f32(6)], pads=[1, 1, 1, 1], activation=act, constants=(1, 2), **more)
    ms(own, "FusedConv", [x, w, f32(6), f32(2, 6, 7, 6)], activation="Relu", constants=(1, 2))


def quantized_lstm(own):
    for direction, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        for columns in (1, 4 * 9):
            scales = [f32(count, columns, low=0.002, high=0.01) if columns > 1 else f32(count, low=0.002, high=0.01) for _ in range(2)]
            w, r = (rng.integers(0, 256, (count, n, 36)).astype(np.uint8) for n in (5, 9))
            zero = np.full(scales[0].shape, 128, np.uint8)
            ms(own, "DynamicQuantizeLSTM", [f32(6, 2, 5), w, r, f32(count, 72), None, f32(count, 2, 9), f32(count, 2, 9), None,
                                            scales[0], zero, scales[1], zero],
               outputs=3, hidden_size=9, direction=direction, constants=(1, 2, 8, 9, 10, 11), rtol=1e-3, atol=1e-3)


def packed_products(own):
    for bits, k, n, block in ((4, 64, 7, 32), (4, 100, 9, 16), (8, 96, 5, 32), (4, 256, 33, 128)):
        blocks = -(-k // block)
        b = rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8)
        scales = f32(n, blocks, low=0.01, high=0.1)
        zeros = rng.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8)
        for m in (1, 5):
            a, more = f32(2, m, k), {"N": n, "K": k, "bits": bits, "block_size": block, "atol": 1e-4, "accuracy_level": 1}
            ms(own, "MatMulNBits", [a, b, scales], constants=(1, 2), **more)
            ms(own, "MatMulNBits", [a, b, scales, zeros], constants=(1, 2, 3), **more)
    ms(own, "MatMulNBits", [a, b, scales, None, None, f32(n)], constants=(1, 2, 5), **more)


def quantized(own):
    for dtype, zeros in ((np.uint8, (120, 131, 117)), (np.int8, (3, -7, 11))):
        byte = lambda *shape: rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)  # noqa: B023,E731
        s, z = [np.float32(v) for v in (0.0213457, 0.0131173, 0.0302711)], [dtype(v) for v in zeros]
        a, b = byte(2, 3, 5), byte(3, 1)
        ms(own, "QLinearAdd", [a, s[0], z[0], byte(2, 3, 5), s[1], z[1], s[2], z[2]])
        ms(own, "QLinearAdd", [a, s[0], z[0], b, s[1], z[1], s[2], z[2]], constants=(1, 2, 4, 5, 6, 7))
        ms(own, "QLinearMul", [a, s[0], z[0], b, s[1], z[1], s[2], z[2]])
        ms(own, "QLinearSigmoid", [byte(300), s[0], z[0], np.float32(1 / 256), dtype(np.iinfo(dtype).min)])
        ms(own, "QLinearLeakyRelu", [byte(300), s[0], z[0], s[1], z[1]], alpha=0.2)
        ms(own, "QLinearConcat", [s[2], z[2], byte(2, 3, 4), s[0], z[0], byte(2, 5, 4), s[1], z[1], byte(2, 1, 4), s[2], z[2]], axis=1)
        ms(own, "QLinearSoftmax", [byte(3, 4, 17), s[0], z[0], np.float32(1 / 256), dtype(np.iinfo(dtype).min)], axis=-1, opset=13,
           constants=(1, 2, 3, 4))
        x = byte(2, 3, 7, 9)
        ms(own, "QLinearGlobalAveragePool", [x, s[0], z[0], s[1], z[1]])
        ms(own, "QLinearGlobalAveragePool", [x, s[0], z[0], s[1], z[1]], channels_last=1)
        ms(own, "QLinearAveragePool", [x, s[0], z[0], s[1], z[1]], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
        ms(own, "QLinearAveragePool", [x, s[0], z[0], s[1], z[1]], kernel_shape=[3, 2], pads=[1, 0, 1, 1], count_include_pad=1)
        ms(own, "QLinearAveragePool", [x, s[0], z[0], s[1], z[1]], kernel_shape=[3, 2], channels_last=1)
        ms(own, "NhwcMaxPool", [x], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1])


def quantized_products(own):
    u8 = lambda *shape: rng.integers(0, 256, shape).astype(np.uint8)  # noqa: E731
    i8 = lambda *shape: rng.integers(-128, 128, shape).astype(np.int8)  # noqa: E731
    s, t = np.float32(0.0213457), np.float32(0.0131173)
    za, zb = np.uint8(117), np.uint8(130)
    ms(own, "MatMulIntegerToFloat", [u8(2, 4, 300), u8(300, 7), s, t, za, zb], constants=(1, 3, 5), atol=1e-3)
    ms(own, "MatMulIntegerToFloat", [u8(2, 4, 30), i8(30, 7), s, f32(7, low=0.01, high=0.1), za, i8(7), f32(7)], atol=1e-3)
    ms(own, "MatMulIntegerToFloat", [u8(2, 4, 5), u8(2, 5, 6), s, t], atol=1e-3)
    ms(own, "DynamicQuantizeMatMul", [f32(2, 4, 30), u8(30, 7), t, zb, f32(7)], constants=(1, 2, 3), atol=1e-3)
    ms(own, "DynamicQuantizeMatMul", [f32(5, 30), i8(30, 7), f32(7, low=0.01, high=0.1)], atol=1e-3)
    c = rng.integers(-500, 500, 6).astype(np.int32)
    ms(own, "QGemm", [u8(4, 9), s, za, u8(9, 6), t, zb, c, np.float32(0.1), np.uint8(99)], constants=(3, 4, 5, 6))
    ms(own, "QGemm", [u8(4, 9), s, za, i8(6, 9), f32(6, low=0.01, high=0.1), i8(6), c], transB=1, atol=1e-3, constants=(3, 4, 5))
    ms(own, "QGemm", [u8(9, 4), s, za, u8(9, 6), t, zb], transA=1, atol=1e-3)


def matrices(own):
    ms(own, "Inverse", [f32(2, 3, 6, 6) + 4 * np.eye(6, dtype=np.float32)], rtol=1e-3)
    ms(own, "CDist", [f32(7, 5), f32(4, 5)])
    ms(own, "CDist", [f32(7, 5), f32(4, 5)], metric="euclidean")
    ms(own, "Trilu", [f32(2, 5, 6), np.array(1, np.int64)], upper=0)
    ms(own, "Unique", [rng.integers(-4, 5, 40).astype(np.float32)], outputs=3)
    ms(own, "Unique", [np.float32([3])], outputs=3)
    ms(own, "Pad", [f32(3, 4), i64(1, 0, 2, 1), np.float32([1.5])], mode="constant")
    ms(own, "Pad", [f32(3, 4), i64(1, 0, 2, 1)], mode="edge", constants=(1,))


def cases(own):
    matrices(own)
    quantized_products(own)
    quantized(own)
    packed_products(own)
    quantized_lstm(own)
    products(own)
    group_query(own)
    attention(own)
    norms(own)
    activations(own)
    biases(own)
