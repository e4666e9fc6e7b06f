# SPDX-License-Identifier: Apache-2.0
"""Edges that no official case has: NaN and infinities, extents of 0, the ends of int64, scales that broadcast, older versions."""
import numpy as np
from common import T, f32, helper, i64

LEAST = -2**63


def cases(own):
    values(own)
    norms(own)
    slices(own)
    texts(own)
    empty(own)
    trees(own)
    refused(own)


def values(own):
    """A NaN stays one, and infinities count."""
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -4, 4, 0.3] * 7, np.float32)
    for op in ("Celu", "HardSigmoid", "Relu", "Elu", "Selu", "Softplus", "HardSwish", "LeakyRelu"):
        own.add(op, [x], opset=16, reference="onnx" if op == "HardSwish" else "ort")
    own.add("Celu", [np.array([-3, -1, 0, 1, 3], np.float32)], opset=12, alpha=-1.5)
    rows = np.array([[np.nan, 1, 2], [np.inf, 2, 0], [-np.inf, np.inf, 1], [-np.inf, -np.inf, -np.inf], [-np.inf, np.nan, -np.inf]], np.float32)
    own.add("ReduceLogSumExp", [rows, i64(1)], opset=18,
            reference=[np.array([[np.nan], [np.inf], [np.inf], [-np.inf], [np.nan]], np.float32)])
    # what is scaled by 0 is not looked at
    for kind in (np.float32, np.float64):
        own.add("Gemm", [f32(3, 4).astype(kind), f32(4, 5).astype(kind), np.full((5,), np.nan, kind)], opset=13, beta=0.0)


def norms(own):
    """Scale and bias broadcast to the input."""
    x = f32(2, 3, 4, 5)
    for scale in ((5,), (1,), (), (4, 1), (4, 5), (3, 1, 1), (3, 4, 5), (3, 1, 5), (2, 1, 1, 1), (2, 3, 4, 5), (1, 1, 1, 5)):
        own.add("LayerNormalization", [x, f32(*scale), f32(*scale)], opset=17, outputs=3, reference="onnx")
        own.add("LayerNormalization", [x, f32(*scale), f32(5)], opset=17, axis=2, reference="onnx")
        own.add("RMSNormalization", [x, f32(*scale)], opset=23, axis=-1, reference="onnx")
    own.add("LayerNormalization", [x[0, 0], f32(4, 1), f32(1)], opset=17, axis=0, reference="onnx")
    for kind in (np.float64, np.float16):
        own.add("RMSNormalization", [x.astype(kind), f32(3, 1, 5).astype(kind)], opset=23, axis=2, reference="onnx", rtol=2e-3, atol=2e-3)
    own.refuse("RMSNormalization", [x, f32(3, 2)], "must broadcast", opset=23)


def slices(own):
    x = f32(3, 4, 5)
    most = 2**63 - 1
    for starts, ends, axes, steps in (((-1,), (LEAST,), (2,), (LEAST,)), ((4,), (0,), (2,), (LEAST,)), ((0,), (most,), (0,), (most,)),
                                      ((most,), (LEAST,), (1,), (-1,)), ((LEAST,), (most,), (1,), (2,)), ((100,), (-100,), (-1,), (-3,))):
        own.add("Slice", [x, i64(*starts), i64(*ends), i64(*axes), i64(*steps)], opset=13, reference="onnx")
        own.add("Slice", [x, i64(*starts), i64(*ends), i64(*axes), i64(*steps)], opset=11, constants=[1, 2, 3, 4], reference="onnx")
    own.refuse("Slice", [x, i64(0), i64(1), i64(0), i64(0)], "a step of 0", opset=13)
    own.add("Clip", [x, np.float32(1), np.float32(-1)], opset=13)
    own.add("Split", [x], opset=1, outputs=2, axis=2, split=[2, 3], reference=[x[..., :2], x[..., 2:]])
    own.add("Upsample", [f32(1, 2, 3, 4)], opset=7, scales=[1.0, 1.0, 2.5, 1.7], mode="linear")


def texts(own):
    """Numbers of doubles come back from their text; what is no number is refused as a whole."""
    x = np.array([0.1, 1 / 3, 1e-7, 123456789, 1e22, -2.5, 0, np.inf, np.nan, 5e-324, 1.7976931348623157e308])
    own.add("Cast", [x], opset=13, to=T.STRING,
            reference=[np.array(["0.1", "0.3333333333333333", "1e-07", "123456789", "1e+22", "-2.5", "0", "INF", "NaN", "5e-324",
                                 "1.7976931348623157e+308"], object)])
    text = np.array(["1.5", " -2 ", "1e3", "+4", ".5", "-inf", "+INF", "NaN", "Infinity"], object)
    own.add("Cast", [text], opset=13, to=T.FLOAT, reference=[np.array([1.5, -2, 1000, 4, 0.5, -np.inf, np.inf, np.nan, np.inf], np.float32)])
    own.add("Cast", [np.array(["18446744073709551615", "9007199254740993", "+7"], object)], opset=13, to=T.UINT64,
            reference=[np.array([2**64 - 1, 2**53 + 1, 7], np.uint64)])
    own.add("Cast", [np.array(["-9223372036854775808", "9007199254740993", "1.7"], object)], opset=13, to=T.INT64,
            reference=[np.array([LEAST, 2**53 + 1, 1])])
    for wrong in ("12abc", "", "1,5", "0x"):
        own.refuse("Cast", [np.array(["1", wrong], object)], "element 1 is not a number", opset=13, to=T.FLOAT)


def empty(own):
    own.add("NonMaxSuppression", [np.zeros((1, 0, 4), np.float32), np.zeros((1, 1, 0), np.float32), i64(3)], opset=11)
    own.add("NonMaxSuppression", [np.zeros((1, 0, 4), np.float32), np.zeros((1, 1, 0), np.float32), i64(3)], opset=10, constants=[2])
    for op, version in (("Softmax", 13), ("LogSoftmax", 11), ("Hardmax", 13), ("CumSum", 14), ("ReduceMax", 18), ("Trilu", 14)):
        more = [np.array(0)] if op == "CumSum" else []
        own.add(op, [np.zeros((2, 0), np.float32)] + more, opset=version, reference=[np.zeros((1, 1) if op == "ReduceMax" else (2, 0), np.float32)
                                                                                     + (-np.inf if op == "ReduceMax" else 0)])
    own.add("Einsum", [np.zeros((0, 2, 3), np.float32), np.zeros((0, 3, 4), np.float32)], opset=12, equation="bij,bjk->bik")
    own.add("Conv", [np.zeros((0, 2, 5, 5), np.float32), f32(3, 2, 3, 3)], opset=11, constants=[1])
    own.add("TopK", [np.zeros((0, 4), np.float32), i64(2)], opset=11, outputs=2)


def trees(own):
    """Two classes, both with weights, of which a row may find one: the greater score wins."""
    x = np.array([[0.0], [1.0]], np.float32)
    own.add("TreeEnsembleClassifier", [x], opset=1, domain="ai.onnx.ml", outputs=2, nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2],
            nodes_featureids=[0, 0, 0], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values=[0.5, 0.0, 0.0], nodes_truenodeids=[1, 0, 0],
            nodes_falsenodeids=[2, 0, 0], class_treeids=[0, 0], class_nodeids=[1, 2], class_ids=[0, 1], class_weights=[2.5, 1.5],
            classlabels_int64s=[7, 9], reference=[i64(7, 9), np.array([[2.5, 0], [0, 1.5]], np.float32)])


def refused(own):
    """Messages say the node, the input, what was expected and what was found."""
    own.refuse("Add", [np.zeros(2, np.int8), np.zeros(2, np.int8)], "node 'y0' (Add)", opset=13)
    own.refuse("Celu", [np.zeros(2)], "version 12 supports float32", opset=13)
    own.refuse("Celu", [np.zeros(2)], "input 'X' (x0) has the unsupported type float64", opset=13)
