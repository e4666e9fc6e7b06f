# SPDX-License-Identifier: Apache-2.0
"""Matrix products, Einsum and recurrent networks."""
import numpy as np

from .common import K, W, X, generator, indices, single

# rows, depth, columns
MATRICES = [(1, 64, 64), (1, 768, 768), (1, 768, 3072), (1, 4096, 4096), (8, 768, 768), (32, 256, 10), (32, 1024, 1000), (128, 768, 768), (128, 768, 3072),
            (128, 3072, 768), (1024, 512, 512), (3, 5, 7), (17, 129, 65), (1000, 3, 64), (7, 4096, 3), (512, 512, 512), (2, 2048, 1001), (4096, 64, 64)]
FEW = [MATRICES[i] for i in (0, 2, 6, 7, 12, 13, 15)]


@generator("matmul")
def matmul():
    for dtype in ("f32", "f16", "f64", "i32"):
        for m, k, n in MATRICES if dtype == "f32" else FEW[:4] if dtype == "i32" else FEW:
            yield single("MatMul", dtype, [X(m, k), W(k, n)])
    for dtype in ("f32", "f16"):
        for m, k, n in FEW:
            yield single("MatMul", dtype, [X(m, k), X(k, n)])
        for a, b in (((1, 12, 128, 64), (1, 12, 64, 128)), ((1, 12, 128, 128), (1, 12, 128, 64)), ((8, 12, 128, 64), (8, 12, 64, 128)),
                     ((1, 12, 1, 64), (1, 12, 64, 512)), ((32, 100, 7), (32, 7, 100)), ((64, 1, 49), (64, 49, 32)), ((1, 8, 4096, 40), (1, 8, 40, 77)),
                     ((256, 4, 4), (256, 4, 4)), ((8, 128, 384), (384, 384))):
            yield single("MatMul", dtype, [X(*a), X(*b)])
    for m, k in ((1, 768), (768, 1000), (4096, 4096)):
        yield single("MatMul", "f32", [W(m, k), X(k)])
        yield single("MatMul", "f32", [X(k), W(k, m)])


@generator("matmul")
def gemm():
    for dtype in ("f32", "f16"):
        for m, k, n in MATRICES if dtype == "f32" else FEW:
            yield single("Gemm", dtype, [X(m, k), W(n, k), W(n)], transB=1)
        for m, k, n in FEW:
            yield single("Gemm", dtype, [X(m, k), W(k, n), W(n)], alpha=0.5, beta=2.0)
    for m, k, n in FEW:
        yield single("Gemm", "f32", [X(k, m), W(k, n)], transA=1)
        yield single("FusedGemm", "f32", [X(m, k), W(k, n), W(n)], domain="com.microsoft", activation="Relu")
        yield single("FusedMatMul", "f32", [X(m, k), X(n, k)], domain="com.microsoft", transB=1, alpha=0.125)
    yield single("FusedMatMul", "f32", [X(1, 12, 128, 64), X(1, 12, 128, 64)], domain="com.microsoft", transB=1, alpha=0.125)
    for batch, size in ((1, 3), (100, 4), (1, 64), (4, 128)):
        yield single("Det", "f32", [X(batch, size, size)])
        yield single("Inverse", "f32", [X(batch, size, size)], domain="com.microsoft")
        yield single("Inverse", "f32", [X(batch, size, size)], domain="ai.onnx.contrib")
    for rows, others, size in ((100, 10, 32), (1000, 256, 16)):
        yield single("CDist", "f32", [X(rows, size), X(others, size)], domain="com.microsoft", metric="euclidean")


@generator("einsum")
def einsum():
    equations = [("ij,jk->ik", (128, 256), (256, 64)), ("bij,bjk->bik", (8, 128, 64), (8, 64, 128)), ("bhid,bhjd->bhij", (1, 12, 128, 64), (1, 12, 128, 64)),
                 ("bhij,bhjd->bhid", (1, 12, 128, 128), (1, 12, 128, 64)), ("bqhd,bkhd->bhqk", (1, 128, 12, 64), (1, 128, 12, 64)),
                 ("bhqk,bkhd->bqhd", (1, 12, 128, 128), (1, 128, 12, 64)), ("bld,dhk->blhk", (1, 128, 768), (768, 12, 64)),
                 ("blhk,hkd->bld", (1, 128, 12, 64), (12, 64, 768)), ("nchw,cd->ndhw", (1, 64, 28, 28), (64, 32)), ("nctv,vw->nctw", (4, 64, 50, 25), (25, 25)),
                 ("nkctv,kvw->nctw", (2, 3, 32, 50, 25), (3, 25, 25)), ("i,j->ij", (512,), (512,)), ("bi,bi->b", (32, 1024), (32, 1024)),
                 ("ij,ij->ij", (32, 1024), (32, 1024)), ("bhwc,hkc->bhwk", (8, 14, 14, 64), (14, 14, 64)), ("bhwc,wkc->bhwk", (8, 14, 14, 64), (14, 14, 64)),
                 ("...ij,...jk->...ik", (3, 5, 7, 11), (3, 5, 11, 13)), ("bcij,bcjk->bcik", (32, 4, 16, 16), (32, 4, 16, 16)),
                 ("abc,cd->abd", (32, 17, 33), (33, 65)), ("ab,cb->ac", (1, 4096), (1000, 4096)), ("bn,bnd->bd", (8, 196), (8, 196, 384))]
    for equation, a, b in equations:
        for dtype in ("f32", "f16"):
            yield single("Einsum", dtype, [X(*a), X(*b)], equation=equation)
    for equation, a in (("ij->ji", (512, 512)), ("bij->b", (8, 128, 128)), ("bijc->bcij", (1, 56, 56, 64)), ("ii->i", (512, 512)), ("ii->", (512, 512)),
                        ("abcd->ac", (4, 16, 16, 64)), ("bij->bi", (32, 100, 77))):
        yield single("Einsum", "f32", [X(*a)], equation=equation)
    yield single("Einsum", "f32", [X(8, 32, 16), X(8, 16, 64), X(8, 64, 24)], equation="bij,bjk,bkl->bil")
    yield single("Einsum", "i64", [X(64, 64, high=10), X(64, 64, high=10)], equation="ij,jk->ik")


def recurrent(op, gates, dtype, steps, batch, size, hidden, directions=1, **attributes):
    kind = {"direction": "bidirectional"} if directions == 2 else {}
    reach = hidden ** -0.5  # larger weights make the states chaotic, and results are not comparable
    inputs = [X(steps, batch, size, low=-1, high=1), W(directions, gates * hidden, size, low=-reach, high=reach),
              W(directions, gates * hidden, hidden, low=-reach, high=reach),
              W(directions, 2 * gates * hidden)]
    return single(op, dtype, inputs, outputs=2, hidden_size=hidden, **kind, **attributes)


@generator("recurrent")
def recurrences():
    sizes = [(1, 1, 64, 64), (16, 1, 64, 128), (100, 1, 128, 256), (32, 32, 64, 128), (50, 8, 512, 512), (7, 3, 5, 11), (200, 1, 80, 64)]
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for dtype in ("f32", "f16"):
            for number, (steps, batch, size, hidden) in enumerate(sizes):
                yield recurrent(op, gates, dtype, steps, batch, size, hidden)
                if number in (1, 2, 3):
                    yield recurrent(op, gates, dtype, steps, batch, size, hidden, 2)
    for number, (steps, batch, size, hidden) in enumerate(sizes):
        yield recurrent("GRU", 3, "f32", steps, batch, size, hidden, linear_before_reset=1)
        if number < 5:
            lengths = [X(steps, batch, size, low=-1, high=1), W(1, 4 * hidden, size, low=-0.05, high=0.05),
                       W(1, 4 * hidden, hidden, low=-0.05, high=0.05), W(1, 8 * hidden),
                       indices((batch,), steps + 1, "i32", low=1)]
            yield single("LSTM", "f32", lengths, outputs=2, hidden_size=hidden, note="lengths")
        for kind in ("i8", "u8"):
            def scales(count):
                return [K(np.full(count, 0.004, np.float32)), K(np.zeros(count), kind)]
            weights = [W(1, size, 4 * hidden, dtype=kind, low=-100, high=100), W(1, hidden, 4 * hidden, dtype=kind, low=-100, high=100)]
            yield single("DynamicQuantizeLSTM", kind, [X(steps, batch, size, dtype="f32", low=-1, high=1), *weights, W(1, 8 * hidden, dtype="f32"),
                                                      None, None, None, None, *scales(1), *scales(1)],
                         domain="com.microsoft", outputs=2, out=["f32", "f32"], hidden_size=hidden)
