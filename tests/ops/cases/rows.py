# SPDX-License-Identifier: Apache-2.0
"""Reductions, normalizations, order along an axis."""
import numpy as np
from common import f32, i64


def rows(own):
    for shape in [(3, 5), (2, 4, 129), (1, 1, 384), (7, 16), (4, 17)]:
        x, n = f32(*shape, low=-8, high=8), shape[-1]
        own.add("Softmax", [x])
        own.add("LogSoftmax", [x])
        own.add("Softmax", [x], axis=0)
        own.add("Softmax", [x], opset=11, axis=1)
        own.add("LayerNormalization", [x, f32(n), f32(n)], axis=-1, epsilon=1e-12)
    own.add("LayerNormalization", [f32(3, 4, 5), f32(4, 5)], axis=1, outputs=1)
    own.add("BatchNormalization", [f32(2, 5, 4, 3), f32(5), f32(5), f32(5), f32(5, low=0.1)], epsilon=1e-3)
    own.add("BatchNormalization", [f32(7, 5), f32(5), f32(5), f32(5), f32(5, low=0.1)], opset=9)
    own.add("InstanceNormalization", [f32(2, 3, 7, 5), f32(3), f32(3)], epsilon=1e-3)
    own.add("Hardmax", [f32(3, 4, 5)], axis=1)
    x = f32(3, 4, 5, 6)
    for op in ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
               "ReduceSumSquare", "ReduceLogSumExp"]:
        if op != "ReduceSum":
            own.add(op, [x], axes=[1, -1], keepdims=0)
            own.add(op, [x], axes=[0, 2])
        own.add(op, [x])
        own.add(op, [x, i64(-2, 0)], opset=18, keepdims=0, constants=(1,))
        own.add(op, [x, i64(3)], opset=18, keepdims=1)
    own.add("ReduceSum", [x], opset=11, axes=[1, 2])
    own.add("ReduceSum", [x, i64(1, 2)], noop_with_empty_axes=1)
    own.add("ReduceMean", [np.arange(24, dtype=np.int32).reshape(2, 3, 4)], axes=[1])
    own.add("ReduceLogSum", [f32(3, 4, low=0.5)], axes=[1])
    for op in ("ArgMax", "ArgMin"):
        own.add(op, [x], axis=2, keepdims=0)
        own.add(op, [np.array([[3, 1, 3], [2, 2, 0]], np.int32)], axis=1, select_last_index=1, opset=13)
    own.add("CumSum", [x, i64(1)[0:1].reshape(())], exclusive=1)
    own.add("CumSum", [x, i64(-1)[0:1].reshape(())], reverse=1)
    for largest in (0, 1):
        own.add("TopK", [x, i64(3)], outputs=2, axis=1, largest=largest)
        own.add("TopK", [np.array([5, 1, 5, 2, 5, 1], np.int64), i64(4)], outputs=2, largest=largest)


def cases(own):
    rows(own)
