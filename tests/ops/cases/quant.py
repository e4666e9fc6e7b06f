# SPDX-License-Identifier: Apache-2.0
"""Products and convolutions of 8-bit integers: exact, so against numpy."""
import ml_dtypes
import numpy as np
from common import f32, rng


def ints(kind, *shape):
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max + 1, shape, kind)


def wide(x, zero):
    return x.astype(np.int64) - np.asarray(zero).astype(np.int64)


def saturate(x, zero):
    limits = np.iinfo(zero.dtype)
    return np.clip(np.rint(x) + zero.astype(np.float64), limits.min, limits.max).astype(zero.dtype)


def integer_products(own):
    for m, k, n in [(1, 384, 96), (3, 7, 5), (13, 33, 47), (67, 258, 95), (5, 1, 9), (50, 400, 201)]:
        for a_kind, b_kind in [(np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8), (np.int8, np.uint8)]:
            a, b, za, zb = ints(a_kind, m, k), ints(b_kind, k, n), ints(a_kind), ints(b_kind)
            exact = lambda x, y: [(x @ y).astype(np.int32)]  # noqa: E731
            own.add("MatMulInteger", [a, b], reference=exact(wide(a, 0), wide(b, 0)))
            own.add("MatMulInteger", [a, b, za, zb], constants=(1, 3), reference=exact(wide(a, za), wide(b, zb)))
            rows, columns = ints(a_kind, m), ints(b_kind, n)
            own.add("MatMulInteger", [a, b, rows, columns], reference=exact(wide(a, rows[:, None]), wide(b, columns)))
            own.add("MatMulInteger", [a, b, za, columns], constants=(1, 2, 3), reference=exact(wide(a, za), wide(b, columns)))
    a, b = ints(np.uint8, 2, 3, 4, 5), ints(np.int8, 3, 5, 6)
    za, zb = ints(np.uint8, 2, 3, 4, 1), ints(np.int8, 3, 1, 6)
    own.add("MatMulInteger", [a, b, za, zb], reference=[(wide(a, za) @ wide(b, zb)).astype(np.int32)])
    a, b = ints(np.uint8, 2, 7, 5), ints(np.int8, 5, 6)
    rows = ints(np.uint8, 7)
    own.add("MatMulInteger", [a, b, rows, np.int8(3)], constants=(1,), reference=[(wide(a, rows[:, None]) @ wide(b, 3)).astype(np.int32)])
    own.add("MatMulInteger", [ints(np.int8, 5), ints(np.uint8, 2, 5, 6)], reference="onnx")
    own.add("MatMulInteger", [ints(np.int8, 2, 4, 5), ints(np.int8, 5)], reference="onnx")
    own.refuse("MatMulInteger", [a, b, ints(np.uint8, 3), np.int8(3)], "expected zero points")
    own.refuse("MatMulInteger", [a, ints(np.int8, 4, 6)], "cannot be multiplied")


def linear_product(own, a, b, scales, zeros, constants=(), opset=10):
    sa, sb, sy = scales
    za, zb, zy = zeros
    turn = lambda s, like: s[..., None] if s.ndim == 1 and s.size == like.shape[-2] and s.size > 1 else s  # noqa: E731
    y = wide(a, turn(za, a)) @ wide(b, zb)
    multiple = (turn(sa, a) * sb).astype(np.float32) / turn(sy, y)
    own.add("QLinearMatMul", [a, sa, za, b, sb, zb, sy, zy], opset=opset, constants=constants,
            reference=[saturate(y.astype(np.float32) * multiple, turn(zy, y))])


def linear_products(own):
    one = lambda low, high: np.asarray(f32(low=low, high=high), np.float32)  # noqa: E731
    for m, k, n in [(1, 96, 40), (6, 7, 5), (31, 130, 49)]:
        for a_kind, b_kind, y_kind in [(np.uint8, np.int8, np.uint8), (np.int8, np.int8, np.int8), (np.int8, np.uint8, np.uint8)]:
            a, b = ints(a_kind, m, k), ints(b_kind, k, n)
            step = one(0.5, 1) * k
            for constants in ((), (1, 2, 3, 4, 5, 6, 7)):
                linear_product(own, a, b, (one(0.01, 0.02), one(0.5, 1), step), (ints(a_kind), ints(b_kind), ints(y_kind)), constants)
                linear_product(own, a, b, (one(0.01, 0.02), f32(n, low=0.5, high=1), step),
                               (ints(a_kind), ints(b_kind, n), ints(y_kind)), constants)
            linear_product(own, a, b, (f32(m, low=0.01, high=0.02), f32(n, low=0.5, high=1), f32(m, low=50, high=90)),
                           (ints(a_kind, m), ints(b_kind, n), ints(y_kind, m)))
    a, b = ints(np.uint8, 2, 3, 4, 15), ints(np.int8, 3, 15, 6)
    linear_product(own, a, b, (one(0.01, 0.02), one(0.5, 1), one(5, 6)), (ints(np.uint8), ints(np.int8), ints(np.uint8)))
    linear_product(own, a, b, (f32(2, 3, 4, 1, low=0.01, high=0.02), f32(3, 1, 6, low=0.5, high=1), one(5, 6)),
                   (ints(np.uint8, 2, 3, 4, 1), ints(np.int8, 3, 1, 6), ints(np.uint8)))
    # scales of 16 bits: rounded as such on the way
    half = lambda value: np.float16(value)  # noqa: E731
    a, b = ints(np.uint8, 5, 33), ints(np.int8, 33, 20)
    y = wide(a, 7) @ wide(b, -3) * np.float64(half(0.013) * half(0.71) / half(1.9))
    own.add("QLinearMatMul", [a, half(0.013), np.uint8(7), b, half(0.71), np.int8(-3), half(1.9), np.int8(4)], opset=21,
            reference=[saturate(y, np.int8(4))])
    # nothing at all, not even scales
    none = np.zeros(0, np.float32)
    own.add("QLinearMatMul", [np.zeros((0, 4), np.uint8), none, np.zeros(0, np.uint8), ints(np.int8, 4, 3), np.float32(1), np.int8(0), np.float32(1),
                              np.uint8(0)], opset=10, reference=[np.zeros((0, 3), np.uint8)])
    # 8-bit floats: sums of floats, so that few products are asked for
    for kind in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        a, b = f32(3, 4).astype(kind), f32(4, 5).astype(kind)
        y = (a.astype(np.float32) @ b.astype(np.float32) * np.float32(0.75)).astype(kind)
        zero = np.zeros((), kind)
        own.add("QLinearMatMul", [a, np.float32(0.5), zero, b, np.float32(3), zero, np.float32(2), zero], opset=21, reference=[y])


def plain_conv(x, w, groups, strides, dilations, pads):
    """Sums over one to three axes in 64 bits, of what zero points are taken off already."""
    axes = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(pads[i], pads[i + axes]) for i in range(axes)])
    out = [(x.shape[i + 2] - (w.shape[i + 2] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(axes)]
    y = np.zeros((x.shape[0], w.shape[0], *out), np.int64)
    each = w.shape[0] // groups
    for tap in np.ndindex(*w.shape[2:]):
        part = x[(..., *(slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, o, s in zip(tap, dilations, out, strides)))]
        for g in range(groups):
            inside = part[:, g * w.shape[1]:(g + 1) * w.shape[1]]
            y[:, g * each:(g + 1) * each] += np.einsum("nc...,mc->nm...", inside, w[(slice(g * each, (g + 1) * each), slice(None), *tap)])
    return y


CONVOLUTIONS = [  # x, w, groups, strides, dilations, pads
    ((1, 8, 50), (20, 8, 3), 1, [1], [1], [1, 1]),
    ((2, 5, 131), (33, 5, 5), 1, [2], [1], [0, 3]),
    ((1, 6, 40), (4, 3, 3), 2, [1], [3], [2, 0]),
    ((2, 16, 9, 13), (70, 16, 1, 1), 1, [1, 1], [1, 1], [0, 0, 0, 0]),
    ((1, 3, 17, 14), (20, 3, 3, 3), 1, [2, 1], [1, 1], [1, 0, 2, 1]),
    ((2, 16, 11, 9), (24, 8, 3, 2), 2, [1, 2], [2, 1], [0, 1, 1, 0]),
    ((1, 72, 10, 12), (72, 1, 3, 3), 72, [1, 1], [1, 1], [1, 1, 1, 1]),
    ((1, 5, 20, 7), (5, 1, 5, 3), 5, [2, 1], [1, 2], [2, 2, 2, 2]),
    ((1, 4, 6, 5, 7), (6, 4, 2, 3, 3), 1, [1, 2, 1], [1, 1, 1], [0, 1, 1, 1, 0, 1]),
    ((1, 9, 8, 8), (18, 1, 3, 3), 9, [1, 1], [1, 1], [0, 0, 0, 0]),
]


def convolutions(own):
    for x_shape, w_shape, groups, strides, dilations, pads in CONVOLUTIONS:
        attrs = {"group": groups, "strides": strides, "dilations": dilations, "pads": pads, "kernel_shape": list(w_shape[2:])}
        rest = (1,) * (len(w_shape) - 1)
        for x_kind, w_kind, y_kind in [(np.uint8, np.int8, np.uint8), (np.int8, np.int8, np.int8), (np.uint8, np.uint8, np.int8)]:
            x, w, zx = ints(x_kind, *x_shape), ints(w_kind, *w_shape), ints(x_kind)
            no_zero = w_kind(128 if w_kind == np.uint8 else 0)
            for zw in (no_zero, ints(w_kind), ints(w_kind, w_shape[0])):
                whole = plain_conv(wide(x, zx), wide(w, zw.reshape(-1, *rest) if zw.ndim else zw), groups, strides, dilations, pads)
                own.add("ConvInteger", [x, w, zx, zw], opset=10, constants=(1, 2, 3) if zw.ndim == 0 else (), reference=[whole.astype(np.int32)],
                        **attrs)
                steps = np.float32(0.01) * rng.integers(50, 100, zw.shape).astype(np.float32)
                bias = rng.integers(-3000, 3000, w_shape[0], np.int32)
                zy, sy = ints(y_kind), np.float32(np.abs(whole).max() * 0.01)
                y = (whole + bias.reshape(-1, *rest[1:])).astype(np.float32)
                y = y * (np.float32(1.5) * steps.reshape(-1, *rest[1:]) / sy)
                own.add("QLinearConv", [x, np.float32(1.5), zx, w, steps, zw, sy, zy, bias], opset=10,
                        constants=(1, 2, 3, 4, 5, 6, 7, 8) if zw.ndim else (6, 7), reference=[saturate(y, zy)], **attrs)
    x, w = ints(np.uint8, 1, 3, 9, 10), ints(np.int8, 4, 3, 3, 3)
    own.add("ConvInteger", [x, w], opset=10, reference=[plain_conv(wide(x, 0), wide(w, 0), 1, [1, 1], [1, 1], [0] * 4).astype(np.int32)])
    own.add("ConvInteger", [x, w, np.uint8(9)], opset=10, auto_pad="SAME_UPPER", strides=[2, 2],
            reference=[plain_conv(wide(x, 9), wide(w, 0), 1, [2, 2], [1, 1], [1, 0, 1, 1]).astype(np.int32)])


def between_floats(own):
    """QuantizeLinear and DequantizeLinear: of the whole, along each axis, in blocks; halves and what is out of range among the values."""
    x = f32(3, 20, 35, low=-60, high=60)
    x.flat[:12] = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 300, -300, 1e30, -1e30, np.inf, -np.inf]
    x.flat[20:40] = np.arange(20) * 0.25
    for kind in (np.uint8, np.int8, np.uint16, np.int16):
        opset = 21 if np.dtype(kind).itemsize == 2 else 13
        for axis in (None, 0, 1, 2):
            shape = () if axis is None else (x.shape[axis],)
            scale, zero = np.asarray(f32(*shape, low=0.2, high=0.6), np.float32), ints(kind, *shape)
            if axis is None:
                scale = np.float32(0.5)
            attrs = {} if axis is None else {"axis": axis}
            limits, view = np.iinfo(kind), [1] * 3
            if axis is not None:
                view[axis] = -1
            s, z = scale.reshape(view), zero.astype(np.int64).reshape(view)
            y = np.clip(np.rint((x / s).astype(np.float64)) + z, limits.min, limits.max).astype(kind)
            own.add("QuantizeLinear", [x, scale, zero], opset=opset, reference=[y], constants=(1, 2), **attrs)
            q = ints(kind, *x.shape)
            own.add("DequantizeLinear", [q, scale, zero], opset=opset, rtol=0, atol=0, reference=[(q - z).astype(np.float32) * s], **attrs)
    for axis, block in ((1, 8), (2, 9)):
        shape = list(x.shape)
        shape[axis] = -(-shape[axis] // block)
        scale, zero = f32(*shape, low=0.2, high=0.6), ints(np.int8, *shape)
        spread = lambda v: np.take(np.repeat(v, block, axis), range(x.shape[axis]), axis)  # noqa: E731,B023
        y = np.clip(np.rint((x / spread(scale)).astype(np.float64)) + spread(zero), -128, 127).astype(np.int8)
        own.add("QuantizeLinear", [x, scale, zero], opset=21, axis=axis, block_size=block, reference=[y])
        q = ints(np.int8, *x.shape)
        own.add("DequantizeLinear", [q, scale, zero], opset=21, axis=axis, block_size=block, rtol=0, atol=0,
                reference=[(q - spread(zero).astype(np.int64)).astype(np.float32) * spread(scale)])
    q = rng.integers(-2**30, 2**30, (6, 50), np.int32)
    own.add("DequantizeLinear", [q, f32(6, low=0.1, high=1)], opset=13, axis=0, reference="ort")
    for values in (x[:, :, 12:] * 0.01, np.abs(f32(3, 333)), -np.abs(f32(1, 70001)), np.zeros((2, 5), np.float32)):
        own.add("DynamicQuantizeLinear", [values[np.isfinite(values)]], outputs=3, opset=11)


def microsoft_products(own):
    """What the standard's operators have in common with ONNX Runtime's own; sums above 2^24, which floats would round."""
    a, b = np.full((3, 1200), 255, np.uint8), np.full((1200, 5), 127, np.int8)
    a[1:], b[:, 2:] = ints(np.uint8, 2, 1200), ints(np.int8, 1200, 3)
    scale, one = np.float32(2**-10), np.float32(1)
    exact = wide(a, 0) @ wide(b, 0)
    own.add("MatMulIntegerToFloat", [a, b, scale, one], opset=1, domain="com.microsoft", rtol=0, atol=0,
            reference=[exact.astype(np.float32) * scale])
    for turn in ((0, 0), (1, 1)):
        at, bt = a.T.copy() if turn[0] else a, b.T.copy() if turn[1] else b
        for shape in ((5,), (3, 5), (3, 1), (1, 5)):
            c = rng.integers(-2**20, 2**20, shape, np.int32)
            own.add("QGemm", [at, scale, np.uint8(3), bt, one, np.int8(-2), c], opset=1, domain="com.microsoft", rtol=1e-6,
                    transA=turn[0], transB=turn[1], reference=[(wide(a, 3) @ wide(b, -2) + c).astype(np.float32) * scale])
            y = (wide(a, 3) @ wide(b, -2) + c).astype(np.float32) * scale / np.float32(400)
            own.add("QGemm", [at, scale, np.uint8(3), bt, one, np.int8(-2), c, np.float32(400), np.uint8(120)], opset=1,
                    domain="com.microsoft", constants=(3, 4, 5), transA=turn[0], transB=turn[1], reference=[saturate(y, np.uint8(120))])


def cases(own):
    microsoft_products(own)
    between_floats(own)
    convolutions(own)
    integer_products(own)
    linear_products(own)
