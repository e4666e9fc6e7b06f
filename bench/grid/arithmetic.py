# SPDX-License-Identifier: Apache-2.0
"""Element-wise operators: functions of one element, of several with broadcast, comparisons, logic and casts."""
import numpy as np

from .common import CODES, K, W, X, generator, single

SHAPES = [(7,), (1, 64), (3, 5, 7, 11), (32, 1024), (1, 64, 56, 56), (1, 1000003), (32, 64, 56, 56)]
FEW = [(3, 5, 7, 11), (32, 1024), (1, 64, 56, 56), (32, 64, 56, 56)]
PAIRS = [((7,), (7,)), ((1, 64), (1, 64)), ((3, 5, 7, 11), (3, 5, 7, 11)), ((32, 1024), (32, 1024)), ((1, 64, 56, 56), (1, 64, 56, 56)),
         ((8, 64, 112, 112), (8, 64, 112, 112)), ((1, 64, 56, 56), ()), ((32, 1024), (1024,)), ((1, 64, 56, 56), (64, 1, 1)),
         ((8, 64, 112, 112), (64, 1, 1)), ((32, 1024), (32, 1)), ((1024, 1), (1, 1024)), ((32, 1, 128, 64), (1, 12, 1, 64)),
         ((1,), (32, 1024)), ((100003, 3), (3,)), ((1000003,), (1,))]
FEW_PAIRS = [PAIRS[i] for i in (1, 2, 4, 6, 8, 10, 11)]

COMMON = ["Abs", "Ceil", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Log", "Neg", "Reciprocal",
          "Relu", "Round", "Sigmoid", "Softplus", "Sqrt", "Tanh", "Sin", "Cos"]
RARE = ["Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Celu", "Cosh", "Mish", "Selu", "Shrink", "Sign", "Sinh", "Softsign", "Tan",
        "ThresholdedRelu"]
RANGE = {"Acos": (-0.9, 0.9), "Asin": (-0.9, 0.9), "Atanh": (-0.9, 0.9), "Acosh": (1.1, 4), "Log": (0.1, 4), "Sqrt": (0.1, 4),
         "Reciprocal": (0.5, 4), "Tan": (-1.2, 1.2)}


def one(op, dtype, shape, **options):
    low, high = RANGE.get(op, (-4, 4))
    return single(op, dtype, [X(*shape, low=low, high=high)], **options)


@generator("unary")
def unary():
    for op in COMMON + RARE:
        for dtype in ("f32", "f16"):
            for shape in SHAPES if op in COMMON and dtype == "f32" else FEW:
                yield one(op, dtype, shape)
    for op in ("Exp", "Sigmoid", "Tanh", "Relu", "Sqrt", "Neg", "Sin", "Erf"):
        for shape in FEW[:3]:
            yield one(op, "f64", shape)
    for op in ("Abs", "Neg", "Sign", "Relu"):
        for dtype in ("i8", "i32", "i64") if op != "Relu" else ("i8", "i32"):
            for shape in FEW[:3]:
                yield one(op, dtype, shape)
    for shape in FEW:
        for dtype in ("f32", "f16"):
            yield one("Gelu", dtype, shape, approximate="tanh")
            yield single("Swish", dtype, [X(*shape)], opset=24)
            for op in ("Gelu", "QuickGelu", "FastGelu"):
                yield single(op, dtype, [X(*shape)], domain="com.microsoft")
        for op in ("IsInf", "IsNaN"):
            yield single(op, "f32", [X(*shape)], out=["bool"])
        yield single("Not", "bool", [X(*shape)])
        for dtype in ("u8", "i32"):
            yield single("BitwiseNot", dtype, [X(*shape, high=100)])
        yield single("Dropout", "f32", [X(*shape)])


@generator("unary")
def with_parameters():
    for shape in SHAPES:
        for dtype in ("f32", "f16", "i32", "i8"):
            if dtype == "f32" or shape in FEW:
                bounds = [K(np.array(v), dtype) for v in (-1, 1)]
                yield single("Clip", dtype, [X(*shape, low=-4, high=4), *bounds])
    for shape in FEW:
        channels = (shape[1],) + (1,) * (len(shape) - 2)
        for dtype in ("f32", "f16"):
            yield single("PRelu", dtype, [X(*shape), W(*channels)])
    for shape in ((32, 1024), (128, 3072), (1, 3072)):
        for dtype in ("f32", "f16"):
            yield single("BiasGelu", dtype, [X(*shape), W(shape[-1])], domain="com.microsoft")
            yield single("FastGelu", dtype, [X(*shape), W(shape[-1])], domain="com.microsoft", note="bias")
    for shape in ((1, 64, 320), (2, 4096, 320)):
        yield single("BiasAdd", "f32", [X(*shape), W(shape[-1]), X(*shape)], domain="com.microsoft")
        yield single("BiasSplitGelu", "f32", [X(*shape[:2], 2560), W(2560)], domain="com.microsoft")
    for shape in FEW[1:3]:
        yield single("SwiGLU", "f32", [X(*shape), X(*shape)], opset=28)


@generator("binary")
def binary():
    for op in ("Add", "Sub", "Mul", "Div"):
        for dtype in ("f32", "f16", "i32", "i64", "f64"):
            for a, b in PAIRS if dtype == "f32" else FEW_PAIRS:
                yield single(op, dtype, [X(*a, low=1, high=100), X(*b, low=1, high=100)])
    for op in ("Max", "Min", "Pow", "Mod", "Mean", "Sum", "PRelu"):
        kinds = {"Mean": ("f32", "f16"), "Sum": ("f32", "f16"), "Mod": ("i32", "i64"), "PRelu": ("f32",), "Pow": ("f32", "f16")}
        for dtype in kinds.get(op, ("f32", "f16", "i32", "i64")):
            for a, b in FEW_PAIRS:
                if op != "PRelu" or len(b) <= len(a) and (not b or b[0] == 1 or len(b) < len(a)):
                    yield single(op, dtype, [X(*a, low=1, high=8), X(*b, low=1, high=4)])
    for exponent in (2.0, 0.5, 3.0, -1.0, 1.7):
        for shape in ((32, 1024), (1, 64, 56, 56)):
            for dtype in ("f32", "f16"):
                yield single("Pow", dtype, [X(*shape, low=0.5, high=2), K(np.array(exponent), dtype, label=f"{exponent}")])
    for shape in ((32, 1024), (1, 64, 56, 56)):
        for count in (3, 5):
            for op in ("Sum", "Max", "Mean"):
                yield single(op, "f32", [X(*shape) for _ in range(count)])
    for shape in ((32, 1024), (1, 64, 56, 56)):
        yield single("Mod", "f32", [X(*shape), X(*shape, low=0.5, high=1.5)], fmod=1)


@generator("compare")
def compare():
    for op in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"):
        for dtype in ("f32", "f16", "i32", "i64") if op in ("Equal", "Greater", "Less") else ("f32", "i64"):
            for a, b in FEW_PAIRS:
                yield single(op, dtype, [X(*a, high=5), X(*b, high=5)], out=["bool"])
    for op in ("And", "Or", "Xor"):
        for a, b in FEW_PAIRS:
            yield single(op, "bool", [X(*a), X(*b)])
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        for dtype in ("u8", "i32"):
            for a, b in FEW_PAIRS[:5]:
                yield single(op, dtype, [X(*a, high=100), X(*b, high=100)])
    for direction in ("LEFT", "RIGHT"):
        for dtype in ("u8", "u32"):
            for a, b in FEW_PAIRS[:4]:
                yield single("BitShift", dtype, [X(*a, high=100), X(*b, high=5)], direction=direction)
    for dtype in ("f32", "f16", "i64", "i32", "u8", "bool"):
        for c, a, b in (((1, 64),) * 3, ((32, 1024),) * 3, ((1, 64, 56, 56),) * 3, ((1, 1, 128, 128), (1, 12, 128, 128), ()),
                        ((32, 1), (32, 1024), (32, 1024)), ((8, 64, 112, 112), (8, 64, 112, 112), (1,)), ((3, 5, 7, 11), (1, 5, 1, 11), (3, 1, 7, 1))):
            yield single("Where", dtype, [X(*c, dtype="bool"), X(*a, high=100), X(*b, high=100)])


@generator("cast")
def cast():
    pairs = ["f32 f16", "f16 f32", "f32 i32", "i32 f32", "f32 i64", "i64 f32", "i64 i32", "i32 i64", "f32 u8", "u8 f32", "bool f32", "f32 bool",
             "f32 bf16", "bf16 f32", "f32 f64", "f64 f32", "i8 f32", "bool i64", "i64 bool", "f32 i8", "u8 i32", "f16 i64"]
    for pair in pairs:
        start, end = pair.split()
        for shape in ((1, 64), (32, 1024), (1, 64, 56, 56), (8, 64, 112, 112)):
            yield single("Cast", start, [X(*shape, low=0, high=100)], out=[end], note="to " + end, to=CODES[end])
    for shape in ((32, 1024), (1, 64, 56, 56)):
        yield single("CastLike", "i64", [X(*shape), X(1, dtype="f32")], out=["f32"])
        yield single("BitCast", "f32", [X(*shape)], opset=26, out=["i32"], to=CODES["i32"])
