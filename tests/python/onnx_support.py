# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of layers: writes a network as an ONNX model, and compares Kelp's and ONNX Runtime's results of the model."""
import numpy as np
import onnx
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as states

import kelp

onnxruntime.set_default_logger_severity(4)

COMPARED = set()  # types of the layers in networks that ONNX Runtime ran
RANDOM = {"RandomNormalLike", "RandomUniformLike"}


def nodes_of(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from nodes_of(attribute.g)


def same(found, expected, what, limit=None):
    assert found.shape == expected.shape and found.dtype == expected.dtype, \
        f"{what}: {found.dtype} {found.shape}, expected {expected.dtype} {expected.shape}"
    if limit is None or found.dtype.kind in "iub":
        np.testing.assert_array_equal(found.astype("float64"), expected.astype("float64"), err_msg=what)
    else:
        np.testing.assert_allclose(found.astype("float64"), expected.astype("float64"), rtol=limit, atol=limit, err_msg=what)


def check_onnx(network, inputs, outputs):
    """Checks that the ONNX model of a network is valid and computes the outputs."""
    data = network.to_onnx()
    assert data == network.to_onnx()
    model = onnx.load_from_string(data)
    nodes = list(nodes_of(model.graph))
    assert not [node.domain for node in nodes if node.domain and not (node.domain, node.op_type) == ("kelp", "Assert")]
    versions = {entry.domain: entry.version for entry in model.opset_import}
    assert versions.keys() == {"", "kelp"} and 17 <= versions[""] <= 24, versions
    assert [value.name for value in model.graph.output] == [tensor.name for tensor in network.outputs]
    if any(node.op_type in RANDOM for node in nodes):
        kelp.InferenceSession(data).run(None, inputs)
        return
    for found, expected in zip(kelp.InferenceSession(data).run(None, inputs), outputs):
        same(found, expected, "Kelp")
    # ONNX Runtime does not take arrays of ml_dtypes
    if any(node.domain for node in nodes) or any(array.dtype.isbuiltin != 1 for array in inputs.values()):
        return
    onnx.checker.check_model(model)
    try:
        found = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, inputs)
    except states.NotImplemented:
        return  # no kernel for this operator or type
    except RuntimeError as error:
        if "No corresponding Numpy type" not in str(error):
            raise
        return
    for array, expected in zip(found, outputs):
        if array.dtype == expected.dtype:
            same(array, expected, "ONNX Runtime", {"float16": 1e-2, "float32": 1e-3}.get(array.dtype.name, 1e-7))
    COMPARED.update(layer.type.name for layer in network.layers)
