# SPDX-License-Identifier: Apache-2.0
"""Reductions, softmax, scans, and normalizations."""
import numpy as np

from .common import K, W, X, generator, indices, ints, single

REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
              "ReduceSumSquare"]
# shape, axes
REDUCED = [((1, 64), (1,)), ((32, 1024), (1,)), ((32, 1024), (0,)), ((1, 64, 56, 56), (2, 3)), ((1, 64, 56, 56), (1,)), ((8, 128, 768), (2,)),
           ((3, 5, 7, 11), (1, 3)), ((1000003,), (0,)), ((32, 64, 56, 56), (2, 3)), ((32, 64, 56, 56), (0, 2, 3)), ((8, 4096, 3), (2,)),
           ((4096, 3, 8), (1,)), ((64, 100, 64), (0,))]


@generator("reduce")
def reductions():
    for op in REDUCTIONS:
        common = op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2")
        for shape, axes in REDUCED if common else REDUCED[1:9:2] + REDUCED[8:9]:
            yield single(op, "f32", [X(*shape, low=0.5, high=1.2), ints(*axes)], note=f"axes={axes}", keepdims=1)
        for shape, axes in (REDUCED[1], REDUCED[3], REDUCED[6], REDUCED[8]):
            for dtype in ("f16", "i32", "i64") if op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin") else ("f16",):
                yield single(op, dtype, [X(*shape, low=0, high=3), ints(*axes)], note=f"axes={axes}", keepdims=0)
    for op in ("ReduceMax", "ReduceMin"):
        for dtype in ("i8", "u8"):
            for shape, axes in (REDUCED[1], REDUCED[3], REDUCED[4]):
                yield single(op, dtype, [X(*shape, high=100), ints(*axes)], note=f"axes={axes}", keepdims=1)


@generator("reduce")
def positions():
    for op in ("ArgMax", "ArgMin"):
        for dtype in ("f32", "f16", "i32") if op == "ArgMax" else ("f32",):
            for shape, axis in (((1, 1000), 1), ((32, 1000), 1), ((1, 21, 128, 128), 1), ((32, 32000), 1), ((64, 100, 64), 0), ((3, 5, 7, 11), 2)):
                yield single(op, dtype, [X(*shape, high=1000)], out=["i64"], axis=axis, keepdims=0)
    for k in (1, 5, 100):
        for shape, axis in (((1, 1000), 1), ((32, 1000), 1), ((1, 100000), 1), ((1, 8400, 4), 1), ((8, 32000), 1)):
            for dtype in ("f32", "f16", "i64") if k == 5 else ("f32",):
                yield single("TopK", dtype, [X(*shape, high=100000), ints(k)], outputs=2, out=[dtype, "i64"], note=f"k={k}", axis=axis)
    for shape, axis in (((1, 1000), 1), ((32, 1024), 1), ((32, 1024), 0), ((1, 64, 56, 56), 2)):
        for dtype in ("f32", "i64", "i32", "f16"):
            yield single("CumSum", dtype, [X(*shape), ints(axis)], note=f"axis={axis}")
        yield single("CumProd", "f32", [X(*shape, low=0.9, high=1.1), ints(axis)], opset=26, note=f"axis={axis}")
    for shape in ((32, 1024), (1, 64, 56, 56)):
        yield single("Hardmax", "f32", [X(*shape)], axis=1)


@generator("softmax")
def softmax():
    for op in ("Softmax", "LogSoftmax"):
        for dtype in ("f32", "f16"):
            for shape, axis in (((1, 10), 1), ((1, 1000), 1), ((32, 1000), 1), ((1, 12, 128, 128), 3), ((8, 12, 128, 128), 3), ((1, 21, 128, 128), 1),
                                ((1, 32000), 1), ((4096, 7), 1), ((3, 5, 7, 11), 2), ((32, 65536), 1)):
                yield single(op, dtype, [X(*shape, low=-5, high=5)], axis=axis)
    for p in (1, 2):
        for shape, axis in (((32, 512), 1), ((1, 128, 28, 28), 1), ((1024, 128), 1)):
            yield single("LpNormalization", "f32", [X(*shape)], axis=axis, p=p)


@generator("normalization")
def images():
    for shape in ((1, 64, 56, 56), (32, 64, 56, 56), (1, 512, 7, 7), (1, 3, 5, 7), (32, 256), (1, 64, 1000)):
        channels = shape[1]
        parameters = [W(channels, low=0.5, high=1.5), W(channels), W(channels), W(channels, low=0.5, high=1.5)]
        for dtype in ("f32", "f16"):
            yield single("BatchNormalization", dtype, [X(*shape), *parameters])
            if len(shape) > 2:
                yield single("InstanceNormalization", dtype, [X(*shape), *parameters[:2]])
            if channels % 8 == 0 and len(shape) > 2:
                yield single("GroupNormalization", dtype, [X(*shape), *parameters[:2]], num_groups=8)
        if len(shape) == 4:
            yield single("LRN", "f32", [X(*shape)], size=5)
            yield single("MeanVarianceNormalization", "f32", [X(*shape)], axes=[0, 2, 3])


@generator("normalization")
def sequences():
    for shape in ((1, 1, 768), (1, 128, 768), (8, 128, 384), (32, 64), (1, 1, 4096), (3, 7, 33), (8, 512, 768), (4096, 16)):
        size = shape[-1]
        for dtype in ("f32", "f16"):
            yield single("LayerNormalization", dtype, [X(*shape), W(size, low=0.5, high=1.5), W(size)], axis=-1)
            yield single("RMSNormalization", dtype, [X(*shape), W(size, low=0.5, high=1.5)], opset=23, axis=-1)
            yield single("SimplifiedLayerNormalization", dtype, [X(*shape), W(size, low=0.5, high=1.5)], axis=-1, epsilon=1e-5)
            if len(shape) == 3:
                yield single("SkipLayerNormalization", dtype, [X(*shape), X(*shape), W(size), W(size), W(size)], domain="com.microsoft")
                yield single("SkipSimplifiedLayerNormalization", dtype, [X(*shape), X(*shape), W(size)], domain="com.microsoft")
    for batch, words in ((1, 16), (8, 128)):
        tokens = [indices((batch, words), 1000, "i32"), indices((batch, words), 2, "i32")]
        tables = [W(1000, 384), W(512, 384), W(2, 384), W(384), W(384)]
        yield single("EmbedLayerNormalization", "f32", [*tokens, *tables], domain="com.microsoft", outputs=2, out=["f32", "i32"])


@generator("loss")
def losses():
    for shape, target in (((32, 1000), (32,)), ((2, 21, 64, 64), (2, 64, 64))):
        for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
            yield single(op, "f32", [X(*shape), indices(target, shape[1])], reduction="mean")
    for size in (1000, 1000000):
        for op, states, extra in (("Adagrad", 1, {}), ("Adam", 2, {}), ("Momentum", 1, {"alpha": 0.9, "beta": 1.0, "mode": "standard", "norm_coefficient": 0.001})):
            tensors = [X(size, low=0.1, high=1) for _ in range(2 + states)]
            yield single(op, "f32", [K(np.float32(0.01)), K(np.int64(1)), *tensors], domain="ai.onnx.preview.training", outputs=1 + states, **extra)
