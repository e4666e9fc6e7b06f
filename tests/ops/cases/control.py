# SPDX-License-Identifier: Apache-2.0
"""Scan in all directions and along all axes; sparse constants and initializers."""
import numpy as np
import onnx
from common import T, helper, i64, numpy_helper

rng = np.random.default_rng(21)


def f32(*shape):
    return rng.uniform(-2, 2, shape).astype(np.float32)


def value(name, *shape):
    return helper.make_tensor_value_info(name, T.FLOAT, shape)


def scan_model(opset, **attrs):
    """Two states and two scanned inputs; two stacked outputs, one of them of one axis less."""
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "a"], ["s1"]),
         helper.make_node("Mul", ["a", "b"], ["ab"]),
         helper.make_node("Add", ["ab", "s1"], ["o"]),
         helper.make_node("ReduceSum", ["o"], ["r"], keepdims=0, axes=[0]),
         helper.make_node("Sub", ["n", "outer"], ["n1"])],
        "body", [value("s", 3, 2), value("n"), value("a", 3, 2), value("b", 3, 2)],
        [value("s1", 3, 2), value("n1"), value("o", 3, 2), value("r", 2)])
    node = helper.make_node("Scan", ["x0", "x1", "x2", "x3"], ["y0", "y1", "y2", "y3"], body=body, num_scan_inputs=2, **attrs)
    return node


def scans(own):
    for attrs, a, b in [
            ({}, (4, 3, 2), (4, 3, 2)),
            ({"scan_input_axes": [1, -1], "scan_input_directions": [1, 0]}, (3, 4, 2), (3, 2, 4)),
            ({"scan_input_axes": [2, 0], "scan_output_axes": [1, -1], "scan_output_directions": [0, 1]}, (3, 2, 4), (4, 3, 2)),
            ({"scan_output_axes": [-1, 1], "scan_output_directions": [1, 1], "scan_input_directions": [1, 1]}, (5, 3, 2), (5, 3, 2))]:
        feeds = [("x0", f32(3, 2)), ("x1", f32()), ("x2", f32(*a)), ("x3", f32(*b)), ("outer", f32())]
        graph = helper.make_graph(
            [scan_model(11, **attrs)], "scan",
            [helper.make_tensor_value_info(n, T.FLOAT, v.shape) for n, v in feeds],
            [helper.make_empty_tensor_value_info(f"y{i}") for i in range(4)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
        own.model("scan", onnx.shape_inference.infer_shapes(model), feeds)


def scan_8(own):
    """Batches of their own lengths; what is beyond is zero."""
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "a"], ["s1"]), helper.make_node("Identity", ["s1"], ["o"])],
        "body", [value("s", 2), value("a", 2)], [value("s1", 2), value("o", 2)])
    for directions in ([0], [1]):
        node = helper.make_node("Scan", ["lengths", "x0", "x1"], ["y0", "y1"], body=body, num_scan_inputs=1, directions=directions)
        feeds = [("lengths", i64(3, 1)), ("x0", f32(2, 2)), ("x1", f32(2, 3, 2))]
        graph = helper.make_graph(
            [node], "scan", [helper.make_tensor_value_info("lengths", T.INT64, (2,)), value("x0", 2, 2), value("x1", 2, 3, 2)],
            [value("y0", 2, 2), value("y1", 2, 3, 2)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=4)
        own.model("scan8", model, feeds)


def sparse(dims, linear):
    values = numpy_helper.from_array(f32(3), "w")
    indices = i64(1, 5, 11) if linear else np.array([[0, 1], [1, 1], [2, 3]], np.int64)
    return helper.make_sparse_tensor(values, numpy_helper.from_array(indices), dims)


def sparse_constants(own):
    for linear in (True, False):
        tensor = sparse([3, 4], linear)
        dense = np.zeros(12, np.float32)
        dense[[1, 5, 11]] = numpy_helper.to_array(tensor.values)
        dense, x = dense.reshape(3, 4), f32(2, 3)
        for kind in ("constant", "initializer"):
            nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
            if kind == "constant":
                nodes.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=tensor))
            graph = helper.make_graph(nodes, "sparse", [value("x", 2, 3)], [value("y", 2, 4)])
            if kind == "initializer":
                graph.sparse_initializer.append(tensor)
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
            own.model("sparse_" + kind, model, [("x", x)], [x @ dense])


def cases(own):
    scans(own)
    scan_8(own)
    sparse_constants(own)
