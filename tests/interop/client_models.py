# SPDX-License-Identifier: Apache-2.0
"""The models that the examples of NVIDIA's client libraries expect, made with the package onnx.

    client_models.py DIRECTORY"""
import os
import shutil
import sys

import onnx
from onnx import TensorProto as T
from onnx import helper

NAMES = {T.INT32: "INT32", T.INT8: "INT8", T.STRING: "STRING", T.UINT64: "UINT64"}


def value(name, kind, *shape):
    return helper.make_tensor_value_info(name, kind, ["batch", *shape])


def write(directory, name, config, nodes=(), inputs=(), outputs=()):
    """Writes a model: its configuration and, with nodes, a graph."""
    os.makedirs(os.path.join(directory, name, "1"))
    with open(os.path.join(directory, name, "config.pbtxt"), "w", encoding="utf-8") as file:
        file.write(config)
    if nodes:
        graph = helper.make_graph(list(nodes), name, list(inputs), list(outputs))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, os.path.join(directory, name, "1", "model.onnx"))


def tensors(field, kind, dims, *names):
    return "".join(f'{field} [ {{ name: "{name}" data_type: TYPE_{NAMES[kind]} dims: [ {dims} ] }} ]\n' for name in names)


def sum_and_difference(directory, name, kind):
    """OUTPUT0 is INPUT0 + INPUT1, OUTPUT1 is INPUT0 - INPUT1. Strings are decimal numbers."""
    nodes, arguments, results = [], ["INPUT0", "INPUT1"], ["OUTPUT0", "OUTPUT1"]
    if kind == T.STRING:
        nodes += [helper.make_node("Cast", [each], [each + "_number"], to=T.INT32) for each in arguments]
        arguments = [each + "_number" for each in arguments]
        nodes += [helper.make_node("Cast", [each + "_number"], [each], to=T.STRING) for each in results]
        results = [each + "_number" for each in results]
    nodes[len(nodes) // 2:len(nodes) // 2] = [helper.make_node(kind_of, arguments, [result]) for kind_of, result in zip(("Add", "Sub"), results)]
    config = ("platform: \"onnxruntime_onnx\" max_batch_size: 8\n" + tensors("input", kind, 16, "INPUT0", "INPUT1") +
              tensors("output", kind, 16, "OUTPUT0", "OUTPUT1"))
    write(directory, name, config, nodes, [value(each, kind, 16) for each in ("INPUT0", "INPUT1")],
          [value(each, kind, 16) for each in ("OUTPUT0", "OUTPUT1")])


def control(name, kind, data_type=None):
    what = f"data_type: {data_type}" if data_type else "int32_false_true: [ 0, 1 ]"
    return f'control_input [ {{ name: "{name}" control [ {{ kind: CONTROL_SEQUENCE_{kind} {what} }} ] }} ]\n'


SEQUENCE = "instance_group [ { kind: KIND_CPU } ]\n" + tensors("input", T.INT32, 1, "INPUT") + tensors("output", T.INT32, 1, "OUTPUT")


def sequence(directory):
    """OUTPUT is INPUT, and 1 more at the start of a sequence."""
    config = ("platform: \"onnxruntime_onnx\" max_batch_size: 8\nsequence_batching {\n" + control("START", "START") + control("READY", "READY") +
              "}\n" + SEQUENCE)
    write(directory, "simple_sequence", config,
          [helper.make_node("Mul", ["START", "READY"], ["one"]), helper.make_node("Add", ["INPUT", "one"], ["OUTPUT"])],
          [value(each, T.INT32, 1) for each in ("INPUT", "START", "READY")], [value("OUTPUT", T.INT32, 1)])


OLDEST = ("platform: \"onnxruntime_onnx\" max_batch_size: 8\nsequence_batching {\nmax_sequence_idle_microseconds: 10000000\n"
          "oldest { max_candidate_sequences: 1024 max_queue_delay_microseconds: 10000 }\n" + control("START", "START") + control("END", "END"))


def dynamic_sequence(directory):
    """OUTPUT is INPUT, 1 more at the start of a sequence, and its id more at the end."""
    write(directory, "simple_dyna_sequence", OLDEST + control("CORRID", "CORRID", "TYPE_UINT64") + "}\n" + SEQUENCE,
          [helper.make_node("Cast", ["CORRID"], ["id"], to=T.INT32), helper.make_node("Mul", ["END", "id"], ["last"]),
           helper.make_node("Add", ["INPUT", "START"], ["first"]), helper.make_node("Add", ["first", "last"], ["OUTPUT"])],
          [value("INPUT", T.INT32, 1), value("START", T.INT32, 1), value("END", T.INT32, 1), value("CORRID", T.UINT64, 1)],
          [value("OUTPUT", T.INT32, 1)])


def string_sequence(directory):
    """OUTPUT is the sum of the sequence, and at its end its id, a string of digits, more. The server keeps the sum."""
    state = ('state [ { input_name: "SUM" output_name: "NEXT_SUM" data_type: TYPE_INT32 dims: [ 1 ]\n'
             'initial_state: { name: "zero" data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } } ]\n')
    write(directory, "simple_string_dyna_sequence", OLDEST + control("CORRID", "CORRID", "TYPE_STRING") + state + "}\n" + SEQUENCE,
          [helper.make_node("Cast", ["CORRID"], ["id"], to=T.INT32), helper.make_node("Mul", ["END", "id"], ["last"]),
           helper.make_node("Mul", ["SUM", "START"], ["forgotten"]), helper.make_node("Sub", ["SUM", "forgotten"], ["before"]),
           helper.make_node("Add", ["INPUT", "before"], ["NEXT_SUM"]), helper.make_node("Add", ["NEXT_SUM", "last"], ["OUTPUT"])],
          [*(value(each, T.INT32, 1) for each in ("INPUT", "SUM", "START", "END")), value("CORRID", T.STRING, 1)],
          [value("OUTPUT", T.INT32, 1), value("NEXT_SUM", T.INT32, 1)])


def identities(directory):
    for name, kind in (("simple_identity", T.STRING), ("custom_identity_int32", T.INT32)):
        write(directory, name, "platform: \"onnxruntime_onnx\" max_batch_size: 8\n" + tensors("input", kind, -1, "INPUT0") +
              tensors("output", kind, -1, "OUTPUT0"), [helper.make_node("Identity", ["INPUT0"], ["OUTPUT0"])],
              [value("INPUT0", kind, "n")], [value("OUTPUT0", kind, "n")])


def repeat(directory):
    write(directory, "repeat_int32", """backend: "repeat" model_transaction_policy { decoupled: true }
input [ { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] }, { name: "DELAY" data_type: TYPE_UINT32 dims: [ -1 ] },
        { name: "WAIT" data_type: TYPE_UINT32 dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] }, { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] } ]
""")


def densenet(directory):
    """The network DenseNet-121 with the small weights of the package onnx: its classes mean nothing."""
    write(directory, "densenet_onnx", """platform: "onnxruntime_onnx" max_batch_size: 0
input [ { name: "data_0" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 224, 224 ] reshape { shape: [ 1, 3, 224, 224 ] } } ]
output [ { name: "fc6_1" data_type: TYPE_FP32 dims: [ 1000 ] reshape { shape: [ 1, 1000, 1, 1 ] } label_filename: "labels.txt" } ]
""")
    with open(os.path.join(directory, "densenet_onnx", "labels.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"CLASS {number}\n" for number in range(1000))
    shutil.copy(os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light", "light_densenet121.onnx"),
                os.path.join(directory, "densenet_onnx", "1", "model.onnx"))


def make(directory):
    """Writes all models, 10."""
    sum_and_difference(directory, "simple", T.INT32)
    sum_and_difference(directory, "simple_int8", T.INT8)
    sum_and_difference(directory, "simple_string", T.STRING)
    sequence(directory)
    dynamic_sequence(directory)
    string_sequence(directory)
    identities(directory)
    repeat(directory)
    densenet(directory)


if __name__ == "__main__":
    make(sys.argv[1])
