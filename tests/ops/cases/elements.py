# SPDX-License-Identifier: Apache-2.0
"""Element by element, casts."""
from fractions import Fraction

import ml_dtypes
import numpy as np
from common import T, f32, rng


def elements(own):
    x, positive, unit = f32(3, 4, 33, low=-6, high=6), f32(50, low=0.01, high=50), f32(41, low=-0.99, high=0.99)
    for op in ["Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Exp", "Tanh", "Sigmoid", "Relu", "Erf", "Sin", "Cos",
               "Atan", "Sinh", "Cosh", "Asinh", "Softplus", "Softsign", "HardSwish", "LeakyRelu", "Elu", "Selu", "Celu",
               "HardSigmoid", "ThresholdedRelu", "Reciprocal", "IsNaN", "IsInf"]:
        own.add(op, [x])
    for op in ["Sqrt", "Log"]:
        own.add(op, [positive])
        own.add(op, [positive.astype(np.float64)])
    for op in ["Asin", "Acos", "Atanh", "Tan"]:
        own.add(op, [unit])
    own.add("Acosh", [positive + 1])
    own.add("Gelu", [x], opset=20)
    own.add("Gelu", [x], opset=20, approximate="tanh")
    own.add("Mish", [x], opset=18)
    own.add("Shrink", [x], lambd=1.5, bias=0.5)
    own.add("Clip", [x, np.float32(-1).reshape(()), np.float32(2).reshape(())])
    own.add("Clip", [x, None, np.float32(2).reshape(())])
    own.add("Clip", [x], opset=6, min=-1.0, max=0.5)
    own.add("Clip", [np.arange(9, dtype=np.int64), np.int64(2).reshape(())])
    own.add("Not", [np.array([True, False])])
    pairs = [((3, 4, 5), (3, 4, 5)), ((3, 4, 5), (5,)), ((3, 1, 5), (4, 1)), ((1,), (3, 4)), ((), (2, 3)), ((2, 3, 4), (2, 1, 1))]
    for a, b in pairs:
        for op in ["Add", "Sub", "Mul", "Div"]:
            own.add(op, [f32(*a), f32(*b, low=0.5)])
        own.add("Add", [f32(*a).astype(np.float64), f32(*b).astype(np.float64)])
        ia = rng.integers(-9, 9, a).astype(np.int64) if a else np.array(3, np.int64)
        ib = rng.integers(1, 9, b).astype(np.int64) if b else np.array(4, np.int64)
        for op in ["Add", "Sub", "Mul", "Div", "Mod", "Equal", "Greater", "LessOrEqual"]:
            own.add(op, [ia, ib])
        own.add("Less", [f32(*a), f32(*b)])
        own.add("GreaterOrEqual", [f32(*a), f32(*b)])
        own.add("And", [np.asarray(ia > 0), np.asarray(ib > 4)])
        own.add("Xor", [np.asarray(ia > 0), np.asarray(ib > 4)])
        own.add("Where", [np.asarray(ia > 0), f32(*b), f32(*a)])
        own.add("Pow", [np.abs(f32(*a)) + np.float32(0.1), f32(*b)])
        own.add("Max", [f32(*a), f32(*b), f32(1)])
        own.add("Sum", [f32(*a), f32(*b), f32(1)])
        own.add("Mean", [f32(*a), f32(*b)])
    own.add("Pow", [f32(7), np.array(3, np.int64)])
    own.add("Mod", [f32(9), f32(9, low=0.5)], fmod=1)
    own.add("Mod", [np.array([-7, 7, -7, 7], np.int32), np.array([3, -3, -3, 3], np.int32)])
    own.add("PRelu", [f32(2, 3, 4), f32(3, 1)])
    own.add("BitShift", [np.array([1, 2, 255], np.uint8), np.array([1, 3, 4], np.uint8)], direction="LEFT")
    own.add("Equal", [np.array(["a", "bc"], object), np.array(["a", "cb"], object)], opset=19)
    own.add("Where", [np.array([True, False]), np.array(["yes", "ja"], object), np.array(["no", "nein"], object)])
    numbers = np.array([-2.7, -1, 0, 0.4, 1, 100.5], np.float32)
    for to in [T.DOUBLE, T.INT64, T.INT32, T.INT8, T.BOOL, T.FLOAT16]:
        own.add("Cast", [numbers], to=to)
    for array in [np.array([-3, 0, 7], np.int8), np.array([0, 250], np.uint8), np.array([-70000, 5], np.int32),
                  np.array([2 ** 40, -1], np.int64), np.array([True, False]), np.array([0.1, 65504, 1e-7], np.float16)]:
        own.add("Cast", [array], to=T.FLOAT)
        own.add("Cast", [array], to=T.INT64)
    own.add("Cast", [np.array(["1.5", "-2e3", "7"], object)], to=T.FLOAT)
    own.add("Cast", [np.array([1, -20], np.int64)], to=T.STRING)
    own.add("CastLike", [numbers, np.zeros(1, np.int32)], opset=15)


def nearest(values, dtype):
    """Each number, exact, as the nearest of the type's positive finite ones, of two equally near the one of even code."""
    bits = 8 * np.dtype(dtype).itemsize
    codes = np.arange(2 ** (bits - 1)).astype(f"uint{bits}")
    numbers = codes.view(dtype).astype(np.float64)
    held = [(Fraction(float(n)), int(c)) for n, c in zip(numbers, codes) if np.isfinite(n)]
    picked = [min(held, key=lambda item: (abs(item[0] - Fraction(v)), item[1] & 1))[1] for v in values]
    return np.array(picked, f"uint{bits}").view(dtype)


def rounded_once(own):
    """Doubles and integers beside a tie of the narrow type, by less than float32 can tell."""
    for dtype, digits, to in ((np.float16, 10, T.FLOAT16), (ml_dtypes.bfloat16, 7, T.BFLOAT16),
                              (ml_dtypes.float8_e4m3fn, 3, T.FLOAT8E4M3FN), (ml_dtypes.float8_e5m2, 2, T.FLOAT8E5M2)):
        ties = [1 + (2 * k + 1) * 2.0 ** -(digits + 1) for k in range(3)]
        x = [t + side * 2.0 ** -45 for t in ties for side in (-1, 0, 1)] + [3.1, 7.25]
        own.add("Cast", [np.array(x)], opset=19, reference=[nearest(x, dtype)], rtol=0, atol=0, to=to)
    whole = [2 ** 30 + 2 ** 22 + 1, 2 ** 30 + 2 ** 22, 2 ** 30 + 2 ** 22 - 1, 12345]
    for kind in (np.int32, np.uint32, np.int64, np.uint64):
        more = [2 ** 62 + 2 ** 54 + 1, 2 ** 62 + 2 ** 54] if kind in (np.int64, np.uint64) else []
        own.add("Cast", [np.array(whole + more, kind)], opset=19, reference=[nearest(whole + more, ml_dtypes.bfloat16)], rtol=0, atol=0,
                to=T.BFLOAT16)


def cases(own):
    elements(own)
    rounded_once(own)
