# SPDX-License-Identifier: Apache-2.0
"""Operators on quantized tensors, and products with integers of 4 and 8 bits."""
import numpy as np

from .common import K, W, X, generator, single
from .products import FEW, MATRICES
from .windows import CONVOLUTIONS


def scale(value=0.02):
    return K(np.float32(value))


def zero(kind, value=0):
    return K(np.array(value), kind)


def q(*shape, kind="u8"):
    return X(*shape, dtype=kind, low=-100 if kind == "i8" else 0, high=100 if kind == "i8" else 255)


@generator("quantize")
def quantize():
    for shape in ((1, 64), (32, 1024), (1, 64, 56, 56), (8, 64, 112, 112), (3, 5, 7, 11)):
        for kind in ("u8", "i8", "i16", "u16"):
            yield single("QuantizeLinear", "f32", [X(*shape), scale(), zero(kind)], out=[kind], note=kind)
            yield single("DequantizeLinear", kind, [q(*shape, kind=kind), scale(), zero(kind)], out=["f32"])
        yield single("DynamicQuantizeLinear", "f32", [X(*shape)], outputs=3, out=["u8", "f32", "u8"])
    for shape, axis in (((1, 64, 56, 56), 1), ((768, 768), 0), ((768, 3072), 1)):
        count = shape[axis]
        scales = K(np.linspace(0.01, 0.03, count, dtype=np.float32))
        yield single("QuantizeLinear", "f32", [X(*shape), scales, K(np.zeros(count), "i8")], out=["i8"], axis=axis, note="channels")
        yield single("DequantizeLinear", "i8", [q(*shape, kind="i8"), scales, K(np.zeros(count), "i8")], out=["f32"], axis=axis, note="channels")
    yield single("QuantizeLinear", "f16", [X(32, 1024), K(np.float16(0.02)), zero("i8")], out=["i8"])
    yield single("DequantizeLinear", "i8", [q(32, 1024, kind="i8"), K(np.float16(0.02)), zero("i8")], out=["f16"], note="f16")


@generator("quantized")
def matrices():
    for m, k, n in MATRICES:
        for a, b in (("u8", "i8"), ("i8", "i8"), ("u8", "u8")) if (m, k, n) in FEW else (("u8", "i8"),):
            left, right = q(m, k, kind=a), W(k, n, dtype=b, low=-100 if b == "i8" else 0, high=100)
            yield single("MatMulInteger", a + b, [left, right, zero(a, 7), zero(b)], out=["i32"])
            yield single("QLinearMatMul", a + b, [left, scale(), zero(a, 7), right, scale(), zero(b), scale(2.0), zero(a, 10)], out=[a])
        weights = W(k, n, dtype="i8", low=-100, high=100)
        yield single("DynamicQuantizeMatMul", "i8", [X(m, k, dtype="f32"), weights, scale(), zero("i8")], domain="com.microsoft", out=["f32"])
        if (m, k, n) in FEW:
            yield single("MatMulIntegerToFloat", "u8i8", [q(m, k), weights, scale(), scale(), zero("u8", 7), zero("i8")], domain="com.microsoft", out=["f32"])
            yield single("QGemm", "u8i8", [q(m, k), scale(), zero("u8", 7), W(n, k, dtype="i8", low=-100, high=100), scale(), zero("i8"),
                                           W(n, dtype="i32", low=-1000, high=1000), scale(2.0), zero("u8", 10)], domain="com.microsoft", out=["u8"], transB=1)


@generator("4-bit")
def nibbles():
    for bits in (4, 8):
        for m, k, n in ((1, 576, 1536), (1, 4096, 4096), (1, 2048, 11008), (4, 2048, 2048), (128, 576, 576), (128, 2048, 2048), (512, 1024, 4096), (3, 192, 65)):
            for block in (32, 128) if bits == 4 else (32,):
                groups = -(-k // block)
                for level in (0, 4):
                    for symmetric in (True, False):
                        zeros = [] if symmetric else [W(n * (-(-groups * bits // 8)), dtype="u8", low=0, high=255)]
                        weights = W(n, groups, block * bits // 8, dtype="u8", low=0, high=255)
                        yield single("MatMulNBits", "f32", [X(m, k), weights, W(n * groups, low=0.001, high=0.01), *zeros], domain="com.microsoft",
                                     K=k, N=n, bits=bits, block_size=block, accuracy_level=level)
    for bits, block in ((4, 32), (8, 32)):
        for tokens in ((1, 1), (1, 128)):
            rows, size = 32000, 576
            yield single("GatherBlockQuantized", "f32", [W(rows, size * bits // 8, dtype="u8", low=0, high=255), X(*tokens, dtype="i64", low=0, high=rows),
                                                        W(rows, size // block, low=0.001, high=0.01)],
                         domain="com.microsoft", bits=bits, block_size=block, gather_axis=0, quantize_axis=1)


@generator("quantized")
def convolutions():
    for image, channels, kernel, attributes in CONVOLUTIONS:
        if len(kernel) > 2:
            continue
        weights = channels, image[1] // attributes.get("group", 1), *kernel
        for a in ("u8", "i8"):
            w = W(*weights, dtype="i8", low=-100, high=100)
            yield single("QLinearConv", a + "i8", [q(*image, kind=a), scale(), zero(a, 7), w, K(np.full(channels, 0.01, np.float32)),
                                                  K(np.zeros(channels), "i8"), scale(1.0), zero(a, 10), W(channels, dtype="i32", low=-1000, high=1000)],
                         out=[a], **attributes)
        if attributes.get("group", 1) == 1:
            yield single("ConvInteger", "u8", [q(*image), W(*weights, dtype="u8", low=0, high=200), zero("u8", 7), zero("u8", 100)], out=["i32"], **attributes)


@generator("quantized")
def elements():
    for kind in ("u8", "i8"):
        for shape in ((1, 64), (32, 1024), (1, 64, 56, 56), (8, 64, 56, 56)):
            first = [q(*shape, kind=kind), scale(), zero(kind, 3)]
            end = [scale(0.04), zero(kind, 5)]
            for op in ("QLinearAdd", "QLinearMul"):
                yield single(op, kind, [*first, q(*shape, kind=kind), scale(0.03), zero(kind, 4), *end], domain="com.microsoft")
                yield single(op, kind, [*first, q(1, kind=kind), scale(0.03), zero(kind, 4), *end], domain="com.microsoft")
            yield single("QLinearSigmoid", kind, [*first, scale(1 / 256), zero(kind)], domain="com.microsoft")
            yield single("QLinearLeakyRelu", kind, [*first, *end], domain="com.microsoft", alpha=0.1)
            yield single("QLinearSoftmax", kind, [*first, scale(1 / 256), zero(kind)], domain="com.microsoft", opset=13, axis=-1)
            yield single("QLinearConcat", kind, [*end, *first, *first], domain="com.microsoft", axis=1)
            if len(shape) == 4:
                yield single("QLinearGlobalAveragePool", kind, [*first, *end], domain="com.microsoft", channels_last=0)
                yield single("QLinearAveragePool", kind, [*first, *end], domain="com.microsoft", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
                yield single("NhwcMaxPool", kind, [q(shape[0], 56, 56, 64, kind=kind)], domain="com.microsoft", kernel_shape=[3, 3], strides=[2, 2],
                             note=str(shape[0]))
