# SPDX-License-Identifier: Apache-2.0
"""Einsum, OneHot, Compress and their like, against ONNX Runtime."""
import numpy as np
from common import f32, i64


def cases(own):
    a, b, c = f32(3, 4, 5), f32(3, 5, 2), f32(2, 6)
    for equation, inputs in (("bij,bjk->bik", [a, b]), ("bij,bjk,kl->bil", [a, b, c]), ("...ij->...ji", [a]), ("ij->", [c]),
                             ("bij->b", [a]), ("i,j->ij", [f32(3), f32(4)]), ("bij,bjk", [a, b]), ("ii->i", [f32(4, 4)])):
        own.add("Einsum", inputs, equation=equation, opset=12)
    own.add("Einsum", [a.astype(np.float64), b.astype(np.float64)], equation="bij, bjk -> bik", opset=12)
    own.add("Det", [f32(2, 4, 4)], opset=11)
    own.add("OneHot", [np.array([[1, -1], [9, 0]], np.int64), np.array(4, np.int64), np.array([2, 7], np.float32)], axis=1, opset=11)
    own.add("Compress", [f32(3, 4), np.array([True, False, True])], axis=-1, opset=11)
    own.add("Compress", [f32(3, 4), np.array([False, True, True, False, True])], opset=11)
    own.add("ReverseSequence", [f32(3, 4, 2), i64(3, 0, 2, 1)], batch_axis=1, time_axis=0, opset=10)
    own.add("CumSum", [np.arange(12, dtype=np.int64).reshape(3, 4), np.array(0, np.int64)], exclusive=1, reverse=1)
