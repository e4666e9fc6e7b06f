# SPDX-License-Identifier: Apache-2.0
"""Cases of operators that compute element by element, and of casts."""
import math
from fractions import Fraction

import ml_dtypes
import numpy as np

from .common import HALVES, INT64_MIN, T, WHOLE, f32, helper, rng

BROADCASTS = [((3, 4, 5), (3, 4, 5)), ((3, 4, 5), (5,)), ((3, 1, 5), (4, 1)), ((1,), (3, 4)), ((), (2, 3)), ((2, 3, 4), (2, 1, 1))]  # shapes of two inputs


def unary(own):
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
    own.add("Not", [np.array([True, False])])


def activations(own):
    """Activations, of NaN and infinities too, and Shrink of integers."""
    x = f32(3, 4, 33, low=-6, high=6)
    own.add("Gelu", [x], opset=20)
    own.add("Gelu", [x], opset=20, approximate="tanh")
    own.add("Mish", [x], opset=18)
    own.add("Shrink", [x], lambd=1.5, bias=0.5)
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -4, 4, 0.3] * 7, np.float32)
    for op in ("Celu", "HardSigmoid", "Relu", "Elu", "Selu", "Softplus", "HardSwish", "LeakyRelu"):
        own.add(op, [x], opset=16, reference="onnx" if op == "HardSwish" else "ort")
    own.add("Celu", [np.array([-3, -1, 0, 1, 3], np.float32)], opset=12, alpha=-1.5)
    for dtype in WHOLE:
        x = rng.integers(0 if np.dtype(dtype).kind == "u" else -9, 10, (3, 7)).astype(dtype)
        wide = x.astype(np.float64)
        shrunk = np.where(wide < -2.5, wide + 1.5, np.where(wide > 2.5, wide - 1.5, 0)).astype(dtype)
        own.add("Shrink", [x], opset=9, reference=[shrunk], lambd=2.5, bias=1.5)
    own.refuse("Celu", [np.zeros(2)], "version 12 supports float32", opset=13)
    own.refuse("Celu", [np.zeros(2)], "input 'X' (x0) has the unsupported type float64", opset=13)


def microsoft_gelus(own):
    x = f32(3, 5, 70, low=-5, high=5)
    own.microsoft("Gelu", [x])
    own.microsoft("FastGelu", [x])
    own.microsoft("FastGelu", [x, f32(70)])
    own.microsoft("BiasGelu", [x, f32(70)])
    own.microsoft("QuickGelu", [x])
    own.microsoft("QuickGelu", [x], alpha=0.7)


def clip(own):
    x = f32(3, 4, 33, low=-6, high=6)
    own.add("Clip", [x, np.float32(-1).reshape(()), np.float32(2).reshape(())])
    own.add("Clip", [x, None, np.float32(2).reshape(())])
    own.add("Clip", [x], opset=6, min=-1.0, max=0.5)
    own.add("Clip", [np.arange(9, dtype=np.int64), np.int64(2).reshape(())])
    for dtype in HALVES:
        x = f32(3, 5).astype(dtype)
        low, high = np.array(-0.5, dtype), np.array(1.25, dtype)
        own.add("Clip", [x, low, high], opset=13, reference=[np.minimum(np.maximum(x, low), high)])
    x = f32(3, 4, 5)
    own.add("Clip", [x, np.float32(1), np.float32(-1)], opset=13)


def erf(own):
    # found by fuzzing: Erf did not support integers; results are truncated
    for kind in (np.int64, np.int8, np.int32):
        own.add("Erf", [np.arange(-6, 7, dtype=kind)], opset=9, reference="onnx")
    own.add("Erf", [np.arange(0, 9, dtype=np.uint16)], opset=9, reference="onnx")


def is_nan_and_is_inf(own):
    for kind in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16):
        x = np.array([np.nan, -np.nan, np.inf, -np.inf, 0, -0.0, 1.5, 3e38] * 11, np.float32).astype(kind)
        wide = x.astype(np.float64)
        own.add("IsNaN", [x], opset=20, reference=[np.isnan(wide)])
        for negative, positive in ((1, 1), (0, 1), (1, 0), (0, 0)):
            wanted = (np.isposinf(wide) if positive else False) | (np.isneginf(wide) if negative else np.zeros(wide.shape, bool))
            own.add("IsInf", [x], opset=20, detect_negative=negative, detect_positive=positive, reference=[wanted])
    # found by fuzzing: 8-bit floats were not supported; only some of their types have infinities
    for kind in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"):
        x = np.array([np.nan, np.inf, -np.inf, 1.5, -2, 0], np.float32).astype(kind)
        wide = x.astype(np.float32)
        own.add("IsNaN", [x], opset=20, reference=[np.isnan(wide)])
        own.add("IsInf", [x], opset=20, reference=[np.isinf(wide)])
        own.add("IsInf", [x], opset=20, detect_negative=0, reference=[np.isposinf(wide)])


def divisions(own):
    """Div and Mod with limits, zeros, and quotients that a rounded division gets wrong."""
    limits = [-2**31, -2**31 + 1, 2**31 - 1, -1, 0, 1, 7, -7]
    a = np.concatenate([np.repeat(limits, len(limits)), rng.integers(-2**31, 2**31, 200), rng.integers(-99, 99, 200)]).astype(np.int32)
    b = np.concatenate([np.tile(limits, len(limits)), rng.integers(-2**16, 2**16, 200), rng.integers(-9, 9, 200)]).astype(np.int32)
    wide, by = a.astype(np.int64), np.where(b == 0, 1, b).astype(np.int64)
    quotient = np.where(b == 0, 0, np.sign(wide) * np.sign(by) * (np.abs(wide) // np.abs(by)))
    rest = np.where(b == 0, 0, wide - quotient * by)
    own.add("Div", [a, b], opset=13, reference=[quotient.astype(np.int32)])
    own.add("Mod", [a, b], opset=13, reference=[np.where(b == 0, 0, wide % by).astype(np.int32)])
    own.add("Mod", [a, b], opset=13, fmod=1, reference=[rest.astype(np.int32)])
    for column, row in ((a[:70, None], b[None, 64:90]), (a[:37], b[70:71]), (a[9:10], b[:91])):
        by = np.where(row == 0, 1, row).astype(np.int64)
        own.add("Mod", [column, row], opset=13, reference=[np.where(row == 0, 0, column.astype(np.int64) % by).astype(np.int32)])
    special = np.array([0, -0.0, 1, -1, 0.1, -0.3, 3, 1e-45, -1e-39, 1e30, -3e38, np.inf, -np.inf, np.nan, 2**23 + 1, 5.5], np.float32)
    y = (f32(3000, low=-1, high=1) * 10.0 ** rng.integers(-3, 4, 3000)).astype(np.float32)
    whole = (y * rng.integers(1, 2**20, 3000)).astype(np.float32)  # near multiples
    x = np.concatenate([np.repeat(special, len(special)), np.nextafter(whole, np.float32(0)), whole, f32(3000, low=-1e4, high=1e4)])
    y = np.concatenate([np.tile(special, len(special)), y, y, y])
    with np.errstate(all="ignore"):
        rest = np.fmod(x, y)
        floored = np.where(rest == 0, np.copysign(np.float32(0), y), np.where((rest < 0) != (y < 0), rest + y, rest))
        floored = np.where((y == 0) | np.isnan(rest), np.float32(np.nan), floored)
    own.add("Mod", [x, y], opset=13, fmod=1, reference=[rest], rtol=0, atol=0)
    own.add("Mod", [x, y], opset=28, reference=[floored.astype(np.float32)], rtol=0, atol=0)
    own.add("Mod", [x[:70], np.float32(0.7)], opset=13, fmod=1, reference=[np.fmod(x[:70], np.float32(0.7))], rtol=0, atol=0)


def binary_and_variadic(own):
    """Operators of two or more inputs that broadcast."""
    for a, b in BROADCASTS:
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
        own.add("Pow", [np.abs(f32(*a)) + np.float32(0.1), f32(*b)])
        own.add("Max", [f32(*a), f32(*b), f32(1)])
        own.add("Sum", [f32(*a), f32(*b), f32(1)])
        own.add("Mean", [f32(*a), f32(*b)])
    own.add("Pow", [f32(7), np.array(3, np.int64)])
    for exponent in (np.float32(3), np.float32(-1.7), np.int32(5), np.float64(0.3), np.array(2, np.int64)):
        x = f32(3, 700, low=0.1)
        own.add("Pow", [x, exponent], reference=[np.power(x.astype(np.float64), float(exponent)).astype(np.float32)])
    own.add("Pow", [f32(600, 1, low=0.1), f32(1, 3)])
    own.add("Pow", [np.float32(1.5), f32(3000)])
    own.add("Mod", [f32(9), f32(9, low=0.5)], fmod=1)
    own.add("Mod", [np.array([-7, 7, -7, 7], np.int32), np.array([3, -3, -3, 3], np.int32)])
    divisions(own)
    own.add("Mean", [f32(70, 300), f32(70, 1), f32(300), f32(1)])
    wide, row = f32(3, 5).astype(np.float64), f32(5).astype(np.float64)
    own.add("Mean", [wide, row], reference=[(wide + row) / 2])
    own.add("PRelu", [f32(2, 3, 4), f32(3, 1)])
    own.add("BitShift", [np.array([1, 2, 255], np.uint8), np.array([1, 3, 4], np.uint8)], direction="LEFT")
    own.add("Equal", [np.array(["a", "bc"], object), np.array(["a", "cb"], object)], opset=19)
    own.refuse("Add", [np.zeros(2, np.int8), np.zeros(2, np.int8)], "node 'y0' (Add)", opset=13)


def where(own):
    for a, b in BROADCASTS:
        ia = rng.integers(-9, 9, a).astype(np.int64) if a else np.array(3, np.int64)
        own.add("Where", [np.asarray(ia > 0), f32(*b), f32(*a)])
    own.add("Where", [np.array([True, False]), np.array(["yes", "ja"], object), np.array(["no", "nein"], object)])
    for dtype in (np.float32, np.uint8, np.int64, np.float16):
        a, b = (f32(3, 1, 70) * 20).astype(dtype), (f32(4, 70) * 20).astype(dtype)
        c = rng.integers(0, 2, (3, 4, 70)) > 0
        own.add("Where", [c, a, b], reference=[np.where(c, a, b)])
        own.add("Where", [c, a, dtype(7)], reference=[np.where(c, a, dtype(7))])
        own.add("Where", [c, dtype(7), b], reference=[np.where(c, dtype(7), b)])
        own.add("Where", [c[:, :, :1], a, b], reference=[np.where(c[:, :, :1], a, b)])


def cast(own):
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
    x = np.concatenate([f32(700, low=-128, high=128), f32(600, low=0, high=60000), np.array([2.0**31, -2.0**31, 3e9, 2.0**33 + 4096, -1.5, 0.999, 2.0**24], np.float32)])
    for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.float16, ml_dtypes.bfloat16):
        wanted = x.astype(kind) if np.dtype(kind).kind not in "iu" else x.astype(np.int64).astype(kind)
        with np.errstate(over="ignore"):
            own.add("Cast", [x], to=helper.np_dtype_to_tensor_dtype(np.dtype(kind)), opset=19, reference=[wanted], rtol=0, atol=0)
    flags = rng.integers(0, 2, 300) > 0
    for kind in (np.float32, np.float64, np.float16, np.int64, np.uint8):
        own.add("Cast", [flags], to=helper.np_dtype_to_tensor_dtype(np.dtype(kind)), opset=19, reference=[flags.astype(kind)])
    # found by fuzzing: a number of no element type was read outside a table, or truncated to 32 bits and taken for another type
    for number in (-2**31, 2**31, 2**32 + 1, 2**62 + 1, 0, 127):
        own.refuse("Cast", [f32(2, 3)], "to", opset=13, to=number)


def nearest(values, dtype):
    """Returns the nearest positive finite value of the type for each number, computed exactly; ties go to the even code."""
    bits = 8 * np.dtype(dtype).itemsize
    codes = np.arange(2 ** (bits - 1)).astype(f"uint{bits}")
    numbers = codes.view(dtype).astype(np.float64)
    held = [(Fraction(float(n)), int(c)) for n, c in zip(numbers, codes) if np.isfinite(n)]
    picked = [min(held, key=lambda item: (abs(item[0] - Fraction(v)), item[1] & 1))[1] for v in values]
    return np.array(picked, f"uint{bits}").view(dtype)


def cast_rounds_once(own):
    """Cast of doubles and integers next to a tie of the narrow type, closer to it than float32 can represent."""
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


def cast_text(own):
    """Cast between numbers and strings: doubles survive the round trip, and one element that is not a number fails the cast."""
    x = np.array([0.1, 1 / 3, 1e-7, 123456789, 1e22, -2.5, 0, np.inf, np.nan, 5e-324, 1.7976931348623157e308])
    own.add("Cast", [x], opset=13, to=T.STRING,
            reference=[np.array(["0.1", "0.3333333333333333", "1e-07", "123456789", "1e+22", "-2.5", "0", "INF", "NaN", "5e-324",
                                 "1.7976931348623157e+308"], object)])
    text = np.array(["1.5", " -2 ", "1e3", "+4", ".5", "-inf", "+INF", "NaN", "Infinity"], object)
    own.add("Cast", [text], opset=13, to=T.FLOAT, reference=[np.array([1.5, -2, 1000, 4, 0.5, -np.inf, np.inf, np.nan, np.inf], np.float32)])
    own.add("Cast", [np.array(["18446744073709551615", "9007199254740993", "+7"], object)], opset=13, to=T.UINT64,
            reference=[np.array([2**64 - 1, 2**53 + 1, 7], np.uint64)])
    own.add("Cast", [np.array(["-9223372036854775808", "9007199254740993", "1.7"], object)], opset=13, to=T.INT64,
            reference=[np.array([INT64_MIN, 2**53 + 1, 1])])
    for wrong in ("12abc", "", "1,5", "0x"):
        own.refuse("Cast", [np.array(["1", wrong], object)], "element 1 is not a number", opset=13, to=T.FLOAT)


def bit_cast(own):
    # found by fuzzing: a number of no element type was read outside a table
    own.refuse("BitCast", [f32(2, 3)], "BitCast", opset=26, to=-2**31)


def bias_add_and_bias_split_gelu(own):
    """BiasAdd and BiasSplitGelu as ContribOperators.md defines them: ONNX Runtime implements them only on GPUs."""
    x, bias, skip = f32(2, 7, 40), f32(40), f32(2, 7, 40)
    for kind, near in ((np.float32, {}), (np.float16, {"rtol": 4e-3, "atol": 4e-3})):
        xs, biases_, skips = (a.astype(kind) for a in (x, bias, skip))
        own.microsoft("BiasAdd", [xs, biases_, skips], reference=[xs + biases_ + skips], **near)
        first, second = np.split(xs.astype(np.float64) + biases_, 2, -1)
        gelu = second * 0.5 * (1 + np.vectorize(math.erf)(second / np.sqrt(2)))
        own.microsoft("BiasSplitGelu", [xs, biases_], reference=[(first * gelu).astype(kind)], **near)
    own.refuse("BiasAdd", [x, bias, f32(2, 7)], "the residual must have the type and size", opset=1, domain="com.microsoft")
    own.refuse("BiasSplitGelu", [f32(2, 5), f32(5)], "the last dimension must be even", opset=1, domain="com.microsoft")


CASES = [
    unary, activations, microsoft_gelus, clip, erf, is_nan_and_is_inf, binary_and_variadic, where, cast,
    cast_rounds_once, cast_text, bit_cast, bias_add_and_bias_split_gelu]
