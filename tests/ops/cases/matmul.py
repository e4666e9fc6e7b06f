# SPDX-License-Identifier: Apache-2.0
"""Cases of matrix multiplications and of other operators on matrices."""
import ml_dtypes
import numpy as np

from .common import f32, ints, rng, saturate, wide


def matmul(own):
    half = lambda *shape: f32(*shape).astype(np.float16)  # noqa: E731
    own.add("MatMul", [half(3, 7, 20), half(20, 5)], rtol=2e-3, atol=1e-2)
    own.add("MatMul", [half(3, 7, 20), half(20, 50)], constants=(1,), rtol=2e-3, atol=1e-2)
    for m, k, n in [(1, 384, 384), (3, 7, 5), (13, 33, 47), (2, 100, 130), (67, 129, 95), (128, 384, 200), (5, 1, 9)]:
        a, b = f32(m, k), f32(k, n)
        atol = 2e-7 * k + 1e-6  # the error grows with k
        own.add("MatMul", [a, b], atol=atol)
        own.add("MatMul", [a, b], constants=(1,), atol=atol)
    own.add("MatMul", [f32(2, 3, 4, 5), f32(3, 5, 6)])
    own.add("MatMul", [f32(4, 5), f32(2, 3, 5, 6)])
    own.add("MatMul", [f32(2, 1, 4, 5), f32(1, 3, 5, 6)])
    own.add("MatMul", [f32(5), f32(5, 6)])
    own.add("MatMul", [f32(2, 4, 5), f32(5)])
    own.add("MatMul", [f32(5), f32(5)])
    own.add("MatMul", [f32(4, 5).astype(np.float64), f32(5, 3).astype(np.float64)])
    for kind in (np.float64, np.int32, np.int64, np.uint32):  # several slices and blocks, and edges of a tile
        for a, b in (((3, 61, 300), (300, 47)), ((2, 50, 130), (2, 130, 300)), ((1, 9), (9, 5))):
            a, b = (rng.integers(0, 100, shape).astype(kind) for shape in (a, b))
            own.add("MatMul", [a, b], reference=[a @ b], rtol=1e-12)
    own.add("MatMul", [np.arange(12, dtype=np.int64).reshape(3, 4), np.arange(20, dtype=np.int64).reshape(4, 5)])


def gemm(own):
    half = lambda *shape: f32(*shape).astype(np.float16)  # noqa: E731
    own.add("Gemm", [half(7, 20), half(5, 20), half(5)], transB=1, alpha=0.5, constants=(1, 2), rtol=2e-3, atol=1e-2)
    for m, k, n in [(1, 384, 384), (3, 7, 5), (13, 33, 47), (2, 100, 130), (67, 129, 95), (128, 384, 200), (5, 1, 9)]:
        a, b = f32(m, k), f32(k, n)
        atol = 2e-7 * k + 1e-6  # the error grows with k
        own.add("Gemm", [a, b, f32(n)], constants=(1, 2), atol=atol)
        own.add("Gemm", [a, f32(n, k), f32(n)], constants=(1,), transB=1, atol=atol)
        own.add("Gemm", [f32(k, m), f32(n, k), f32(m, 1)], transA=1, transB=1, alpha=0.5, beta=2.0, opset=11, atol=atol)
    own.add("Gemm", [f32(4, 5).astype(np.float64), f32(5, 3).astype(np.float64)], alpha=0.25)
    # beta = 0: NaN in C has no effect
    for kind in (np.float32, np.float64):
        own.add("Gemm", [f32(3, 4).astype(kind), f32(4, 5).astype(kind), np.full((5,), np.nan, kind)], opset=13, beta=0.0)
    for dtype in (np.int32, np.int64, np.uint32, np.uint64):
        a, b, c = (rng.integers(0, 50, shape).astype(dtype) for shape in ((3, 4), (4, 5), (5,)))
        own.add("Gemm", [a, b, c], opset=13, reference=[a @ b + c])
    for dtype in (np.int32, np.uint64, np.float64):
        for m, k, n in ((1, 70, 1100), (2, 33, 5), (50, 130, 67), (3, 0, 4)):
            a, b, c = (rng.integers(0, 50, shape).astype(dtype) for shape in ((m, k), (k, n), (m, 1)))
            own.add("MatMul", [a, b], opset=13, reference=[a @ b])
            own.add("Gemm", [np.ascontiguousarray(a.T), np.ascontiguousarray(b.T), c], opset=13, transA=1, transB=1, alpha=2.0, beta=0.5, reference=[
                (2.0 * (a @ b) + 0.5 * c).astype(dtype)])
            own.add("Gemm", [a, np.ascontiguousarray(b.T), c], opset=13, transB=1, reference=[a @ b + c])
            own.add("Gemm", [a, np.ascontiguousarray(b.T)], opset=13, transB=1, reference=[a @ b])


def matmul_integer(own):
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
    own.refuse("MatMulInteger", [a, b, ints(np.uint8, 3), np.int8(3)], "expected one zero point")
    own.refuse("MatMulInteger", [a, ints(np.int8, 4, 6)], "cannot be multiplied")


def qlinear_matmul_case(own, a, b, scales, zeros, constants=(), opset=10):
    sa, sb, sy = scales
    za, zb, zy = zeros
    columns = lambda s, like: s[..., None] if s.ndim == 1 and s.size == like.shape[-2] and s.size > 1 else s  # noqa: E731
    y = wide(a, columns(za, a)) @ wide(b, zb)
    multiple = (columns(sa, a) * sb).astype(np.float32) / columns(sy, y)
    own.add("QLinearMatMul", [a, sa, za, b, sb, zb, sy, zy], opset=opset, constants=constants,
            reference=[saturate(y.astype(np.float32) * multiple, columns(zy, y))])


def qlinear_matmul(own):
    one = lambda low, high: np.asarray(f32(low=low, high=high), np.float32)  # noqa: E731
    for m, k, n in [(1, 96, 40), (6, 7, 5), (31, 130, 49)]:
        for a_kind, b_kind, y_kind in [(np.uint8, np.int8, np.uint8), (np.int8, np.int8, np.int8), (np.int8, np.uint8, np.uint8)]:
            a, b = ints(a_kind, m, k), ints(b_kind, k, n)
            step = one(0.5, 1) * k
            for constants in ((), (1, 2, 3, 4, 5, 6, 7)):
                qlinear_matmul_case(own, a, b, (one(0.01, 0.02), one(0.5, 1), step), (ints(a_kind), ints(b_kind), ints(y_kind)), constants)
                qlinear_matmul_case(own, a, b, (one(0.01, 0.02), f32(n, low=0.5, high=1), step),
                               (ints(a_kind), ints(b_kind, n), ints(y_kind)), constants)
            qlinear_matmul_case(own, a, b, (f32(m, low=0.01, high=0.02), f32(n, low=0.5, high=1), f32(m, low=50, high=90)),
                           (ints(a_kind, m), ints(b_kind, n), ints(y_kind, m)))
    a, b = ints(np.uint8, 2, 3, 4, 15), ints(np.int8, 3, 15, 6)
    qlinear_matmul_case(own, a, b, (one(0.01, 0.02), one(0.5, 1), one(5, 6)), (ints(np.uint8), ints(np.int8), ints(np.uint8)))
    qlinear_matmul_case(own, a, b, (f32(2, 3, 4, 1, low=0.01, high=0.02), f32(3, 1, 6, low=0.5, high=1), one(5, 6)),
                   (ints(np.uint8, 2, 3, 4, 1), ints(np.int8, 3, 1, 6), ints(np.uint8)))
    # float16 scales: their products are rounded to float16
    half = lambda value: np.float16(value)  # noqa: E731
    a, b = ints(np.uint8, 5, 33), ints(np.int8, 33, 20)
    y = wide(a, 7) @ wide(b, -3) * np.float64(half(0.013) * half(0.71) / half(1.9))
    own.add("QLinearMatMul", [a, half(0.013), np.uint8(7), b, half(0.71), np.int8(-3), half(1.9), np.int8(4)], opset=21,
            reference=[saturate(y, np.int8(4))])
    # no rows, and no scales
    none = np.zeros(0, np.float32)
    own.add("QLinearMatMul", [np.zeros((0, 4), np.uint8), none, np.zeros(0, np.uint8), ints(np.int8, 4, 3), np.float32(1), np.int8(0), np.float32(1),
                              np.uint8(0)], opset=10, reference=[np.zeros((0, 3), np.uint8)])
    # 8-bit floats: few products, because float32 sums depend on the order
    for kind in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        a, b = f32(3, 4).astype(kind), f32(4, 5).astype(kind)
        y = (a.astype(np.float32) @ b.astype(np.float32) * np.float32(0.75)).astype(kind)
        zero = np.zeros((), kind)
        own.add("QLinearMatMul", [a, np.float32(0.5), zero, b, np.float32(3), zero, np.float32(2), zero], opset=21, reference=[y])


def quantized_products(own):
    """MatMulIntegerToFloat, DynamicQuantizeMatMul and QGemm against ONNX Runtime."""
    u8 = lambda *shape: rng.integers(0, 256, shape).astype(np.uint8)  # noqa: E731
    i8 = lambda *shape: rng.integers(-128, 128, shape).astype(np.int8)  # noqa: E731
    s, t = np.float32(0.0213457), np.float32(0.0131173)
    za, zb = np.uint8(117), np.uint8(130)
    own.microsoft("MatMulIntegerToFloat", [u8(2, 4, 300), u8(300, 7), s, t, za, zb], constants=(1, 3, 5), atol=1e-3)
    own.microsoft("MatMulIntegerToFloat", [u8(2, 4, 30), i8(30, 7), s, f32(7, low=0.01, high=0.1), za, i8(7), f32(7)], atol=1e-3)
    own.microsoft("MatMulIntegerToFloat", [u8(2, 4, 5), u8(2, 5, 6), s, t], atol=1e-3)
    own.microsoft("DynamicQuantizeMatMul", [f32(2, 4, 30), u8(30, 7), t, zb, f32(7)], constants=(1, 2, 3), atol=1e-3)
    own.microsoft("DynamicQuantizeMatMul", [f32(5, 30), i8(30, 7), f32(7, low=0.01, high=0.1)], atol=1e-3)
    c = rng.integers(-500, 500, 6).astype(np.int32)
    own.microsoft("QGemm", [u8(4, 9), s, za, u8(9, 6), t, zb, c, np.float32(0.1), np.uint8(99)], constants=(3, 4, 5, 6))
    own.microsoft("QGemm", [u8(4, 9), s, za, i8(6, 9), f32(6, low=0.01, high=0.1), i8(6), c], transB=1, atol=1e-3, constants=(3, 4, 5))
    own.microsoft("QGemm", [u8(9, 4), s, za, u8(9, 6), t, zb], transA=1, atol=1e-3)


def matmul_integer_to_float_and_qgemm(own):
    """MatMulIntegerToFloat and QGemm with sums above 2^24, which float32 would round."""
    a, b = np.full((3, 1200), 255, np.uint8), np.full((1200, 5), 127, np.int8)
    a[1:], b[:, 2:] = ints(np.uint8, 2, 1200), ints(np.int8, 1200, 3)
    scale, one = np.float32(2**-10), np.float32(1)
    exact = wide(a, 0) @ wide(b, 0)
    own.add("MatMulIntegerToFloat", [a, b, scale, one], opset=1, domain="com.microsoft", rtol=0, atol=0,
            reference=[exact.astype(np.float32) * scale])
    for transposed in ((0, 0), (1, 1)):
        at, bt = a.T.copy() if transposed[0] else a, b.T.copy() if transposed[1] else b
        for shape in ((5,), (3, 5), (3, 1), (1, 5)):
            c = rng.integers(-2**20, 2**20, shape, np.int32)
            own.add("QGemm", [at, scale, np.uint8(3), bt, one, np.int8(-2), c], opset=1, domain="com.microsoft", rtol=1e-6,
                    transA=transposed[0], transB=transposed[1], reference=[(wide(a, 3) @ wide(b, -2) + c).astype(np.float32) * scale])
            y = (wide(a, 3) @ wide(b, -2) + c).astype(np.float32) * scale / np.float32(400)
            own.add("QGemm", [at, scale, np.uint8(3), bt, one, np.int8(-2), c, np.float32(400), np.uint8(120)], opset=1,
                    domain="com.microsoft", constants=(3, 4, 5), transA=transposed[0], transB=transposed[1], reference=[saturate(y, np.uint8(120))])


def fused_matmul_and_fused_gemm(own):
    own.microsoft("FusedMatMul", [f32(2, 3, 4, 5), f32(2, 3, 6, 5)], transB=1, alpha=0.125)
    own.microsoft("FusedMatMul", [f32(3, 5, 4), f32(5, 6)], transA=1)
    own.microsoft("FusedMatMul", [f32(7, 2, 3, 4), f32(2, 3, 4, 6)], transBatchA=1)
    own.microsoft("FusedMatMul", [f32(4, 2, 3, 7), f32(4, 2, 3, 6)], transBatchA=1, transA=1, transBatchB=1, alpha=2.0)
    own.microsoft("FusedMatMul", [f32(4, 5), f32(6, 5)], transB=1, constants=(1,))
    own.microsoft("TransposeMatMul", [f32(3, 5, 4), f32(5, 6)], transA=1, alpha=0.5)
    for act, more in (("Relu", {}), ("Tanh", {}), ("LeakyRelu", {"activation_alpha": 0.2})):
        own.microsoft("FusedGemm", [f32(4, 5), f32(6, 5), f32(6)], transB=1, alpha=0.5, activation=act, constants=(1, 2), **more)


def nbits_elements(packed, bits):
    """Unpacks the last dimension; the first element of a byte is in its low bits."""
    each = 8 // bits
    return np.stack([packed >> bits * i & (1 << bits) - 1 for i in range(each)], -1).reshape(*packed.shape[:-1], -1).astype(np.float64)


def nbits_product(a, b, scales, zeros, bits, block, quantized=True):
    """A times the transposed weights; `quantized`: with blocks of A in 8 bits."""
    n, blocks = scales.shape
    zero = 1 << bits - 1 if zeros is None else nbits_elements(zeros, bits)[:, :blocks, None]
    weights = (nbits_elements(b, bits) - zero) * scales[..., None]
    rows = np.zeros((len(a), blocks * block), np.float32)
    rows[:, :a.shape[1]] = a
    rows = rows.reshape(len(a), blocks, block)
    if quantized:
        with np.errstate(divide="ignore", invalid="ignore"):
            largest = np.abs(rows).max(-1, keepdims=True)
            whole = np.rint(rows * np.where(largest > 0, np.float32(127) / largest, np.float32(0)))
            rows = np.where(np.isfinite(largest), whole * (largest / np.float32(127)), np.nan)
    return np.einsum("mbk,nbk->mn", rows.astype(np.float64), weights).astype(np.float32)


def matmul_nbits(own):
    for bits, k, n, block in ((4, 64, 7, 32), (4, 100, 9, 16), (8, 96, 5, 32), (4, 256, 33, 128)):
        blocks = -(-k // block)
        b = rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8)
        scales = f32(n, blocks, low=0.01, high=0.1)
        zeros = rng.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8)
        for m in (1, 5):
            a, more = f32(2, m, k), {"N": n, "K": k, "bits": bits, "block_size": block, "atol": 1e-4, "accuracy_level": 1}
            own.microsoft("MatMulNBits", [a, b, scales], constants=(1, 2), **more)
            own.microsoft("MatMulNBits", [a, b, scales, zeros], constants=(1, 2, 3), **more)
    own.microsoft("MatMulNBits", [a, b, scales, None, None, f32(n)], constants=(1, 2, 5), **more)
    # the block of each element's scale
    for bits in (2, 4, 8):
        b, scales, zeros = (rng.integers(0, 256, shape).astype(np.uint8) for shape in ((9, 3, 4 * bits), (9, 3), (9, -(-3 * bits // 8))))
        scales, a, groups = (scales / 2560).astype(np.float32), f32(2, 90), rng.integers(0, 3, 90).astype(np.int32)
        zero = nbits_elements(zeros, bits)[:, :3][:, groups]
        weights = (nbits_elements(b, bits).reshape(9, -1)[:, :90] - zero) * scales[:, groups]
        own.add("MatMulNBits", [a, b, scales, zeros, groups], constants=(1, 2, 3, 4), opset=1, domain="com.microsoft", N=9, K=90, bits=bits,
                block_size=32, atol=1e-4, reference=[(a @ weights.T).astype(np.float32)])
    own.refuse("MatMulNBits", [a, b, scales, zeros, groups + 1], "element", opset=1, domain="com.microsoft", N=9, K=90, bits=8, block_size=32)


def matmul_nbits_int8(own):
    """Activations of 8 bits. The last rows of B, blocks that K does not fill, and rows of A beyond the largest tile."""
    for bits, k, n, block in ((4, 64, 7, 32), (4, 100, 37, 16), (8, 96, 16, 32), (4, 300, 33, 128), (8, 520, 18, 256), (4, 256, 50, 64), (8, 48, 5, 16)):
        blocks = -(-k // block)
        b = rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8)
        scales = f32(n, blocks, low=0.01, high=0.1)
        zeros = rng.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8)
        for m in (1, 2, 13, 70) if block == 32 else (1, 7):
            a, more = f32(m, k), {"N": n, "K": k, "bits": bits, "block_size": block, "accuracy_level": 4}
            more["reference"] = [nbits_product(a, b, scales, zeros, bits, block)]
            own.add("MatMulNBits", [a, b, scales, zeros], constants=(1, 2, 3), opset=1, domain="com.microsoft", atol=1e-4, **more)
            half = [a.astype(np.float16), b, scales.astype(np.float16), zeros]
            more["reference"] = [nbits_product(half[0], b, half[2], zeros, bits, block).astype(np.float16)]
            own.add("MatMulNBits", half, constants=(1, 2, 3), opset=1, domain="com.microsoft", rtol=2e-3, atol=1e-2, **more)
    more = {"N": n, "K": k, "bits": bits, "block_size": block, "accuracy_level": 4, "atol": 1e-4}
    own.microsoft("MatMulNBits", [a, b, scales], constants=(1, 2), **more)
    own.microsoft("MatMulNBits", [a, b, scales, None, None, f32(n)], constants=(1, 2, 5), **more)
    # weights that are not constant: activations stay float
    own.add("MatMulNBits", [a, b, scales, zeros], opset=1, domain="com.microsoft", **more,
            reference=[nbits_product(a, b, scales, zeros, bits, block, quantized=False)])
    # rows of zeros and of infinite elements
    a[0], a[1, 3] = 0, np.inf
    own.add("MatMulNBits", [a, b, scales], constants=(1, 2), opset=1, domain="com.microsoft", **more,
            reference=[nbits_product(a, b, scales, None, bits, block)])
    two = rng.integers(0, 256, (9, 3, 8)).astype(np.uint8)
    a, scales = f32(3, 90), f32(9, 3, low=0.01, high=0.1)
    own.add("MatMulNBits", [a, two, scales], constants=(1, 2), opset=1, domain="com.microsoft", N=9, K=90, bits=2, block_size=32, accuracy_level=4,
            atol=1e-4, reference=[nbits_product(a, two, scales, None, 2, 32)])


def einsum(own):
    a, b, c = f32(3, 4, 5), f32(3, 5, 2), f32(2, 6)
    for equation, inputs in (("bij,bjk->bik", [a, b]), ("bij,bjk,kl->bil", [a, b, c]), ("...ij->...ji", [a]), ("ij->", [c]),
                             ("bij->b", [a]), ("i,j->ij", [f32(3), f32(4)]), ("bij,bjk", [a, b]), ("ii->i", [f32(4, 4)])):
        own.add("Einsum", inputs, equation=equation, opset=12)
    own.add("Einsum", [a.astype(np.float64), b.astype(np.float64)], equation="bij, bjk -> bik", opset=12)
    own.add("Einsum", [np.zeros((0, 2, 3), np.float32), np.zeros((0, 3, 4), np.float32)], opset=12, equation="bij,bjk->bik")


def einsum_against_numpy(own):
    """Equations of every kind of step: copies, sums, matrices with each operand transposed, loops; of several types."""
    def add(equation, kind, **dims):
        terms = equation.replace(" ", "").split("->")[0].split(",")
        shapes = [[dims[label] for label in term] for term in terms]
        values = [f32(*shape, low=-1) if kind.kind == "f" else rng.integers(0, 9, shape) for shape in shapes]
        values = [np.asarray(value).astype(kind) for value in values]
        exact = np.float64 if kind.kind == "f" else np.int64
        want = np.asarray(np.einsum(equation, *[value.astype(exact) for value in values], optimize=True))
        loose = {"rtol": 2e-3, "atol": 2e-2} if kind == np.float16 else {"rtol": 1e-4, "atol": 1e-4}
        own.add("Einsum", values, equation=equation, opset=12, reference=[want.astype(kind)], **loose)

    sizes = dict(a=3, b=2, c=5, d=37, e=4, f=40, g=6, h=3, i=17, j=33, k=21, l=19)
    single = np.dtype(np.float32)
    for equation in ("bqd,bkd->bqk", "bhqk,bkhd->bqhd", "ij,kj->ik", "ij,jk->ki", "ji,jk->ik", "ji,kj->ki", "ij,j->i", "j,ij->i", "i,i->",
                     "ij,ij->", "ij,ij->i", "ij,ij->j", "ij,ji->", "bij,bjk->kbi", "bij,bjk->ikb", "ijk,jk->ik", "ijk,ik->ij", "ijk,kjl->il",
                     "aijk,bk->abij", "abcd,ce->abed", "bcd,fd->fbc", "cbd,dab->acd", "ijk,i->kj", "iij->j", "iji->ij", "iii->i", "iij->ij",
                     "ii->", "ijk->kji", "ijk->ki", "ijkl->jl", "ij,jk,kl->il", "ij,jk,kl->li", "abi,bcj,acg->ijg", "i,j,k->kij", "ij,i,j->",
                     "bi,bj,bk->bijk", "ab,bc,cd,de,ef,fg,gh,hi->ai", "aij,bij->abij", "ij,k->ijk", "ij,kl->ijkl", "cabj,cj->cabj", "iik,kj->ij"):
        sides = {label: sizes[label] for label in equation if label in sizes}
        if equation in ("iii->i", "ii->"):
            sides = {"i": 23}
        if equation in ("iij->j", "iij->ij", "iji->ij", "iik,kj->ij"):
            sides["j"] = 9
        sides = {label: sides.get(label, 2) for label in equation if label.isalpha()}
        add(equation, single, **sides)
    for kind in (np.float64, np.float16, np.int32, np.int64, np.uint8):
        for equation in ("bij,bkj->bik", "ij,kj->ki", "ijk,jk->ik", "ij,ij->i", "ij->ji", "ijk->j", "ij,jk,kl->il"):
            add(equation, np.dtype(kind), **{label: sizes[label] for label in equation if label.isalpha()})
    add("ij,jk->ik", np.dtype(np.float64), i=61, j=300, k=47)  # several slices and an edge
    add("ij,ij->", single, i=50, j=4001)  # a sum that is divided for the threads
    add("ij->", single, i=4001, j=50)
    add("hij,hjk->hik", single, h=1100, i=2, j=3, k=2)  # more matrices than one call multiplies
    add("bij,bjk->bik", single, b=1, i=1, j=300, k=500)  # a skinny matrix


def einsum_of_random_equations(own):
    """Random labels, repeated, summed and broadcast; operands without some of them; random orders of the output."""
    for _ in range(60):
        dims = {label: int(rng.integers(1, 7)) for label in "abcdef"}
        count = int(rng.integers(1, 5))
        terms = ["".join(rng.choice(list("abcdef"), int(rng.integers(0, 5)))) for _ in range(count)]
        labels = sorted(set("".join(terms)))
        rng.shuffle(labels)
        out = "".join(labels[:int(rng.integers(0, len(labels) + 1))])
        dots = bool(rng.integers(0, 2))
        extra = [int(rng.integers(1, 4)) for _ in range(int(rng.integers(0, 3)))] if dots else []
        shapes = [[dims[label] for label in term] for term in terms]
        if dots:
            shapes = [[side if rng.integers(0, 3) else 1 for side in extra] + shape for shape in shapes]
            terms = ["..." + term for term in terms]
            out = "..." + out
        equation = ",".join(terms) + "->" + out
        values = [f32(*shape) for shape in shapes]
        want = np.asarray(np.einsum(equation, *[value.astype(np.float64) for value in values]))
        own.add("Einsum", values, equation=equation, opset=12, reference=[want.astype(np.float32)], rtol=1e-3, atol=1e-4)


def det_inverse_and_cdist(own):
    own.add("Det", [f32(2, 4, 4)], opset=11)
    own.microsoft("Inverse", [f32(2, 3, 6, 6) + 4 * np.eye(6, dtype=np.float32)], rtol=1e-3)
    own.microsoft("CDist", [f32(7, 5), f32(4, 5)])
    own.microsoft("CDist", [f32(7, 5), f32(4, 5)], metric="euclidean")


def einsum_with_wrong_equation(own):
    x = np.zeros((1,) * 9, np.float32)
    own.refuse("Einsum", [x, x], "has more than 16 dimensions", opset=12, equation="abcdefghi,jklmnopqr")
    own.refuse("Einsum", [x], "expected a letter", opset=12, equation="abcdefgh\u00e9")


CASES = [
    matmul, gemm, matmul_integer, qlinear_matmul, quantized_products, matmul_integer_to_float_and_qgemm,
    fused_matmul_and_fused_gemm, matmul_nbits, matmul_nbits_int8, einsum, einsum_against_numpy, einsum_of_random_equations,
    einsum_with_wrong_equation, det_inverse_and_cdist]
