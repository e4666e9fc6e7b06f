# SPDX-License-Identifier: Apache-2.0
"""MatMul, Gemm."""
import numpy as np
from common import f32


def products(own):
    for m, k, n in [(1, 384, 384), (3, 7, 5), (13, 33, 47), (2, 100, 130), (67, 129, 95), (128, 384, 200), (5, 1, 9)]:
        a, b = f32(m, k), f32(k, n)
        atol = 2e-7 * k + 1e-6  # sums of k products cancel
        own.add("MatMul", [a, b], atol=atol)
        own.add("MatMul", [a, b], constants=(1,), atol=atol)
        own.add("Gemm", [a, b, f32(n)], constants=(1, 2), atol=atol)
        own.add("Gemm", [a, f32(n, k), f32(n)], constants=(1,), transB=1, atol=atol)
        own.add("Gemm", [f32(k, m), f32(n, k), f32(m, 1)], transA=1, transB=1, alpha=0.5, beta=2.0, opset=11, atol=atol)
    own.add("MatMul", [f32(2, 3, 4, 5), f32(3, 5, 6)])
    own.add("MatMul", [f32(4, 5), f32(2, 3, 5, 6)])
    own.add("MatMul", [f32(2, 1, 4, 5), f32(1, 3, 5, 6)])
    own.add("MatMul", [f32(5), f32(5, 6)])
    own.add("MatMul", [f32(2, 4, 5), f32(5)])
    own.add("MatMul", [f32(5), f32(5)])
    own.add("MatMul", [f32(4, 5).astype(np.float64), f32(5, 3).astype(np.float64)])
    own.add("MatMul", [np.arange(12, dtype=np.int64).reshape(3, 4), np.arange(20, dtype=np.int64).reshape(4, 5)])
    own.add("Gemm", [f32(4, 5).astype(np.float64), f32(5, 3).astype(np.float64)], alpha=0.25)


def cases(own):
    products(own)
