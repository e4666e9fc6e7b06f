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


def halves(own):
    """float16: computed as floats, rounded once, as ONNX Runtime does on a CPU."""
    half = lambda *shape: f32(*shape).astype(np.float16)  # noqa: E731
    own.add("MatMul", [half(3, 7, 20), half(20, 5)], rtol=2e-3, atol=1e-2)
    own.add("MatMul", [half(3, 7, 20), half(20, 50)], constants=(1,), rtol=2e-3, atol=1e-2)
    own.add("Gemm", [half(7, 20), half(5, 20), half(5)], transB=1, alpha=0.5, constants=(1, 2), rtol=2e-3, atol=1e-2)
    own.add("Conv", [half(2, 4, 9, 8), half(6, 2, 3, 3), half(6)], group=2, pads=[1, 1, 0, 1], constants=(1, 2), rtol=2e-3, atol=1e-2)
    own.add("BatchNormalization", [half(2, 5, 4, 3), half(5), half(5), half(5), np.abs(half(5))], opset=15, rtol=4e-3, atol=1e-2)


def cases(own):
    halves(own)
    products(own)
