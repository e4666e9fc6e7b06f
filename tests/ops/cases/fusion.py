# SPDX-License-Identifier: Apache-2.0
"""Cases of chains of nodes that passes fuse into one node."""
import numpy as np

from .common import T, f32, helper, numpy_helper


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
    # not one constant per channel: must not be fused
    chain(own, "conv_add_rows", x, [bare, helper.make_node("Add", ["c", "a"], ["y"])], {"w": w, "a": f32(1, 1, 7, 1)}, atol=1e-4)
    chain(own, "conv_add_last", x, [bare, helper.make_node("Mul", ["c", "a"], ["y"])], {"w": w, "a": f32(5)}, atol=1e-4)
    # grouped
    chain(own, "grouped_norm", f32(1, 6, 5, 5), [helper.make_node("Conv", ["x", "w"], ["c"], group=3), batch_norm, relu],
          {"w": f32(6, 2, 2, 2), **norm}, atol=1e-4)
    # the result has two consumers
    chain(own, "conv_used_twice", x, [bare, helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"]),
                                      helper.make_node("Add", ["n", "c"], ["y"])], {"w": w, **norm}, atol=1e-4)


def activations(own):
    """x times a gate of x, in the orders in which exporters write it: alone, after a convolution and after a matrix multiplication."""
    three, six, zero, sixth = (np.float32(v) for v in (3, 6, 0, 1 / 6))
    constants = {"three": np.array(three), "six": np.array([six]), "zero": np.array(zero), "top": np.array(six), "sixth": np.array(sixth)}
    clip = [helper.make_node("Add", ["h", "three"], ["a"]), helper.make_node("Clip", ["a", "zero", "top"], ["g"])]
    gates = {
        "swish_div_last": [*clip, helper.make_node("Mul", ["h", "g"], ["m"]), helper.make_node("Div", ["m", "six"], ["y"])],
        "swish_mul_last": [*clip, helper.make_node("Mul", ["g", "h"], ["m"]), helper.make_node("Mul", ["m", "sixth"], ["y"])],
        "swish_div_first": [*clip, helper.make_node("Div", ["g", "six"], ["s"]), helper.make_node("Mul", ["h", "s"], ["y"])],
        "swish_hard": [helper.make_node("HardSigmoid", ["h"], ["s"], alpha=1 / 6), helper.make_node("Mul", ["s", "h"], ["y"])],
        "swish_other_slope": [helper.make_node("HardSigmoid", ["h"], ["s"], alpha=0.2), helper.make_node("Mul", ["s", "h"], ["y"])],
        "swish_op": [helper.make_node("HardSwish", ["h"], ["y"])],
        "silu": [helper.make_node("Sigmoid", ["h"], ["s"]), helper.make_node("Mul", ["h", "s"], ["y"])],
        "relu6": [helper.make_node("Clip", ["h", "zero", "top"], ["y"])],
        "clip_5": [helper.make_node("Clip", ["h", "zero", "three"], ["y"])],
        "swish_of_other": [*clip, helper.make_node("Mul", ["x", "g"], ["m"]), helper.make_node("Div", ["m", "six"], ["y"])],
        "gate_used_twice": [*clip, helper.make_node("Mul", ["h", "g"], ["m"]), helper.make_node("Div", ["m", "six"], ["d"]),
                            helper.make_node("Add", ["d", "g"], ["y"])]}
    for label, nodes in gates.items():
        chain(own, label, f32(3, 37, low=-5, high=8), [helper.make_node("Neg", ["x"], ["h"]), *nodes], constants)
        if label == "swish_of_other":
            continue
        chain(own, "conv_" + label, f32(2, 5, 9, 7, low=-3, high=3), [helper.make_node("Conv", ["x", "w", "b"], ["h"]), *nodes],
              {**constants, "w": f32(6, 5, 3, 3), "b": f32(6)}, atol=1e-4)
        chain(own, "product_" + label, f32(5, 40), [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["h"]), *nodes],
              {**constants, "w": f32(40, 33), "b": f32(33)}, atol=1e-4)


def few_positions(own):
    """Few output positions: the GEMM computes the transposed result."""
    for x, w, attrs in [((1, 1, 576), (70, 1, 256), {"strides": [128]}), ((1, 33, 4), (40, 33, 3), {"pads": [1, 1], "strides": [2]}),
                        ((2, 33, 4), (17, 33, 3), {"pads": [2, 0], "dilations": [2]}), ((1, 12, 4, 4), (20, 12, 2, 2), {}),
                        ((3, 12, 3, 5), (20, 12, 3, 3), {"pads": [1, 0, 0, 0]}), ((1, 4, 3, 3, 3), (16, 4, 2, 3, 3), {"pads": [0, 0, 1, 0, 0, 0]}),
                        ((1, 70, 1, 1), (16, 70, 1, 1), {"strides": [2, 2]}), ((1, 64, 2, 2), (16, 32, 2, 2), {"group": 2})]:
        for bias in (False, True):
            conv = helper.make_node("Conv", ["x", "w"] + ["b"] * bias, ["c"], **attrs)
            constants = {"w": f32(*w), **({"b": f32(w[0])} if bias else {})}
            chain(own, "narrow", f32(*x), [conv, helper.make_node("Tanh", ["c"], ["y"])], constants, atol=1e-4)


def residuals(own):
    """A residual added to a convolution of static shape, for every algorithm of the convolution."""
    for k, (x, w, attrs) in enumerate((((1, 16, 9, 9), (16, 16, 3, 3), {"pads": [1] * 4}), ((2, 128, 13, 13), (128, 128, 3, 3), {"pads": [1] * 4}),
                                       ((1, 64, 7, 7), (64, 64, 1, 1), {}), ((1, 16, 3, 3), (16, 16, 3, 3), {"pads": [1] * 4}),
                                       ((1, 5, 40, 30), (5, 5, 3, 3), {"pads": [2] * 4, "dilations": [2, 2]}), ((1, 12, 20, 20), (12, 12, 1, 1), {}),
                                       ((1, 6, 20, 37), (6, 1, 3, 3), {"pads": [1] * 4, "group": 6}), ((1, 12, 20, 20), (12, 4, 3, 3), {"pads": [1] * 4, "group": 3}),
                                       ((40, 8, 4, 4), (8, 8, 3, 3), {"pads": [1] * 4}), ((1, 20, 50), (20, 20, 3), {"pads": [1, 1]}))):
        for act in ([], [helper.make_node("Relu", ["s"], ["y"])], [helper.make_node("Sigmoid", ["s"], ["y"])]):
            sums = [["c", "x"], ["x", "c"]][k % 2]
            nodes = [helper.make_node("Conv", ["x", "w"] + ["b"] * (k % 3 > 0), ["c"], **attrs), helper.make_node(["Add", "Sum"][len(act)], sums, ["s" if act else "y"]), *act]
            constants = {"w": f32(*w), **({"b": f32(w[0])} if k % 3 else {})}
            graph = helper.make_graph(nodes, "residual", [helper.make_tensor_value_info("x", T.FLOAT, x)], [helper.make_empty_tensor_value_info("y")],
                                      [numpy_helper.from_array(value, name) for name, value in constants.items()])
            own.model("residual", helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), [("x", f32(*x))],
                      atol=4e-5 * np.prod(w[1:]) ** 0.5)


def fused_activations(own):
    """Activations fused into depthwise and pointwise convolutions and matrix multiplications, of many sizes."""
    n = helper.make_node
    acts = [[n("Relu", ["c"], ["y"])], [n("HardSwish", ["c"], ["y"])], [n("Clip", ["c", "low", "high"], ["y"])], [n("Sigmoid", ["c"], ["y"])], [n("Identity", ["c"], ["y"])]]
    bounds = {"low": np.float32(0), "high": np.float32(6)}
    for k, (width, rows, side, down) in enumerate((width, rows, *window) for width in (1, 2, 7, 15, 16, 17, 33, 48, 80, 96, 112, 131)
                                                  for rows in ((1, 3, 8) if width % 2 else (2, 7, 14)) for window in ((3, 1), (3, 2), (5, 1), (5, 2))):
        conv = n("Conv", ["x", "w"] + ["b"] * (k % 4 > 0), ["c"], group=3, pads=[side // 2 - (k % 2 if rows > 3 else 0), side // 2, side // 2, side // 2], strides=[down, 1])
        chain(own, "window", f32(1, 3, rows, width, low=-2, high=3), [conv, *acts[k % 5]], {"w": f32(3, 1, side, side), **({"b": f32(3)} if k % 4 else {}), **bounds}, atol=1e-4)
    for k, (inputs, outputs, side) in enumerate(((16, 88, (3, 32)), (8, 5, (4, 49)), (390, 13, (2, 17)), (800, 26, (3, 35)), (3, 3, (1, 100)))):
        for act in acts:
            chain(own, "pointwise", f32(1, inputs, *side), [n("Conv", ["x", "w", "b"], ["c"]), *act], {"w": f32(outputs, inputs, 1, 1), "b": f32(outputs), **bounds}, atol=4e-4)
            chain(own, "rows", f32(7 + 10 * k, inputs), [n("MatMul", ["x", "w"], ["p"]), n("Add", ["p", "b"], ["c"]), *act],
                  {"w": f32(inputs, outputs), "b": f32(outputs), **bounds}, atol=4e-4)


def wrong_matches(own):
    """Chains that passes took for a pattern that they are not, found by fuzzing."""
    node, six = helper.make_node, np.full((1,), 6, np.float32)
    # the constant has more axes than the value it is combined with
    chain(own, "swish_of_a_scalar", np.array(1.25, np.float32), [node("Add", ["x", "three"], ["a"]), node("Clip", ["a", "zero", "top"], ["g"]),
                                                                 node("Mul", ["x", "g"], ["m"]), node("Div", ["m", "six"], ["y"])],
          {"three": np.array(3, np.float32), "zero": np.array(0, np.float32), "top": np.array(6, np.float32), "six": six})
    # one channel that Mul broadcasts to three was scaled as one
    chain(own, "one_channel_scaled", f32(2, 1, 5, 4), [node("Mul", ["x", "k"], ["m"]), node("Add", ["m", "k"], ["a"]), node("Conv", ["a", "w"], ["y"])],
          {"k": f32(3, 1, 1), "w": f32(2, 3, 2, 2)})
    # Add of opset 6 names its axis: here it is not the last axis of a square matrix
    x, w, b = f32(3, 4), f32(4, 3), f32(3)
    chain(own, "rows_added", x, [node("MatMul", ["x", "w"], ["p"]), node("Add", ["p", "b"], ["y"], broadcast=1, axis=0)], {"w": w, "b": b}, opset=6,
          reference=[x @ w + b[:, None]])


CASES = [residuals, convolutions, activations, few_positions, fused_activations, wrong_matches]
