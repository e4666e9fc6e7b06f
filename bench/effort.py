#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Work of a model: the multiplications and additions of its matrix products and convolutions, computed from the shapes in ONNX Runtime's
profile of the unmodified graph, and the bytes of its weights.
"""
import glob
import json
import math
import os
import tempfile

import onnx
import onnxruntime

PRODUCTS = ("MatMul", "FusedMatMul", "MatMulInteger", "QLinearMatMul", "MatMulNBits", "Gemm", "FusedGemm", "DynamicQuantizeMatMul")
# where the operator's weights are among its inputs
CONVOLUTIONS = {"Conv": 1, "FusedConv": 1, "ConvInteger": 1, "QLinearConv": 3, "ConvTranspose": 1}
RECURRENT = ("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM")


def shapes(kinds):
    """[{"float": [1, 3]}, …] of the profile, in the order of what is there."""
    return [next(iter(kind.values())) for kind in kinds]


def of_node(op, inputs, outputs):
    if op in PRODUCTS:
        inner = math.prod(inputs[0]) / max(1, outputs[0][0]) if op in ("Gemm", "FusedGemm") else inputs[0][-1]
        return 2 * math.prod(outputs[0]) * inner
    if op in CONVOLUTIONS:
        over = inputs[0] if op == "ConvTranspose" else outputs[0]
        return 2 * math.prod(over) * math.prod(inputs[CONVOLUTIONS[op]][1:])
    if op in RECURRENT:
        return 2 * inputs[0][0] * inputs[0][1] * (math.prod(inputs[1]) + math.prod(inputs[2]))
    if op == "Attention" and len(inputs[0]) == 4:
        keys = outputs[1][2] if len(outputs) > 1 else inputs[1][2]
        return 4 * math.prod(inputs[0]) * keys
    if op == "GroupQueryAttention":
        return 4 * math.prod(outputs[0]) * outputs[1][2]
    return 0


def flops(path, feed):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.enable_profiling = True
    options.add_session_config_entry("session.disable_prepacking", "1")  # or the shapes of weights are left out
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = os.path.join(folder, "profile")
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        session.run(None, feed)
        session.end_profiling()
        with open(glob.glob(os.path.join(folder, "*.json"))[0], encoding="utf-8") as file:
            events = json.load(file)
    total = 0
    for event in events:
        about = event.get("args", {})
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time") and "output_type_shape" in about:
            total += of_node(about["op_name"], shapes(about["input_type_shape"]), shapes(about["output_type_shape"]))
    return total


def weights(path):
    """Bytes of all constants of a file, in its subgraphs too."""
    def size(tensor):
        bits = {onnx.TensorProto.INT4: 4, onnx.TensorProto.UINT4: 4}.get(tensor.data_type)
        if bits is None:
            bits = 8 * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize if tensor.data_type != onnx.TensorProto.STRING else 0
        return math.prod(tensor.dims) * bits // 8

    def graph(g):
        held = sum(size(tensor) for tensor in g.initializer)
        for node in g.node:
            for attribute in node.attribute:
                held += size(attribute.t) if attribute.HasField("t") else graph(attribute.g) if attribute.HasField("g") else 0
        return held
    return graph(onnx.load(path, load_external_data=False).graph)
