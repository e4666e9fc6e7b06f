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
    # 8-bit floats: sums of floats, so that few products are asked for
    for kind in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        a, b = f32(3, 4).astype(kind), f32(4, 5).astype(kind)
        y = (a.astype(np.float32) @ b.astype(np.float32) * np.float32(0.75)).astype(kind)
        zero = np.zeros((), kind)
        own.add("QLinearMatMul", [a, np.float32(0.5), zero, b, np.float32(3), zero, np.float32(2), zero], opset=21, reference=[y])


def cases(own):
    integer_products(own)
    linear_products(own)
