# SPDX-License-Identifier: Apache-2.0
"""Chains of nodes that the engine's passes turn into one."""
import numpy as np
from common import T, f32, helper, numpy_helper


def chain(own, label, x, nodes, constants, opset=17, **options):
    graph = helper.make_graph(
        nodes, label, [helper.make_tensor_value_info("x", T.FLOAT, [None] * x.ndim)], [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(value, name) for name, value in constants.items()])
    own.model(label, helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), [("x", x)], **options)


def convolutions(own):
    x, w, b = f32(2, 5, 9, 7), f32(6, 5, 3, 3), f32(6)
    norm = {"scale": f32(6), "shift": f32(6), "mean": f32(6), "var": f32(6, low=0.1)}
    conv = helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 0, 1, 2], strides=[1, 2])
    bare = helper.make_node("Conv", ["x", "w"], ["c"])
    batch_norm = helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"], epsilon=0.01)
    relu = helper.make_node("Relu", ["n"], ["y"])
    chain(own, "conv_norm_relu", x, [conv, batch_norm, relu], {"w": w, "b": b, **norm}, atol=1e-4)
    chain(own, "conv_norm", x, [bare, helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["y"])],
          {"w": w, **norm}, atol=1e-4)
    for shape in ((6, 1, 1), (1, 6, 1, 1), (1,), ()):
        chain(own, "conv_mul_add", x, [bare, helper.make_node("Mul", ["k", "c"], ["m"]), helper.make_node("Add", ["m", "a"], ["y"])],
              {"w": w, "k": np.asarray(f32(*shape), np.float32), "a": np.asarray(f32(*shape), np.float32)}, atol=1e-4)
    # not one constant a channel: stays as it is
    chain(own, "conv_add_rows", x, [bare, helper.make_node("Add", ["c", "a"], ["y"])], {"w": w, "a": f32(1, 1, 7, 1)}, atol=1e-4)
    chain(own, "conv_add_last", x, [bare, helper.make_node("Mul", ["c", "a"], ["y"])], {"w": w, "a": f32(5)}, atol=1e-4)
    # in groups
    chain(own, "grouped_norm", f32(1, 6, 5, 5), [helper.make_node("Conv", ["x", "w"], ["c"], group=3), batch_norm, relu],
          {"w": f32(6, 2, 2, 2), **norm}, atol=1e-4)
    # read twice
    chain(own, "conv_used_twice", x, [bare, helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"]),
                                      helper.make_node("Add", ["n", "c"], ["y"])], {"w": w, **norm}, atol=1e-4)


def cases(own):
    convolutions(own)
