#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes operator cases for run_cases: small models, most of one node, with inputs and expected outputs.

usage: gen_cases.py OUT own|node|data|light|all

own:  ours, of every file in cases/, with seeded values; expected values are those of ONNX Runtime or of ONNX's reference
      implementation. A case is named after its operator, such as own_pad_001 (see common.Own).
node: the node tests of the onnx package.
data: its other small tests: simple ones, those that PyTorch exported, and those that the package builds in memory.
light: its complete vision models, which take seconds; not part of `all`.
OUT/cases.txt lists the cases, OUT/NAME.onnx is the model. OUT/NAME.bin holds, little-endian: rtol, atol (float64); the number of
inputs; for each input the length of its name (u32), the name and the value (see common.as_value); the same for outputs.
"""
import importlib
import os
import sys

import numpy as np
import onnx
from cases import common
from cases.common import Own, Writer
from onnx.backend.test.case.model import collect_testcases

FAMILIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")


def write_own(writer):
    own = Own(writer)
    families = sorted(name[:-3] for name in os.listdir(FAMILIES) if name.endswith(".py") and name not in ("__init__.py", "common.py", "retyped.py"))
    for name in [*families, "retyped"]:  # retyped repeats cases of the other files
        own.run(name, importlib.import_module(f"cases.{name}"))


def write_test(writer, test):
    if test.model is None or not test.data_sets:
        raise SystemExit(f"{test.name} has no data")
    inputs, outputs = test.data_sets[0]
    graph = test.model.graph
    writer.case(test.name, test.model, [(i.name, v) for i, v in zip(graph.input, inputs)],
                [(o.name, v) for o, v in zip(graph.output, outputs)], test.rtol, test.atol)


def write_node_tests(writer):
    for test in common.node_tests():
        write_test(writer, test)


def read_proto(path, kind=None):
    with open(path, "rb") as file:
        data = file.read()
    if kind is not None and kind.WhichOneof("value") == "sequence_type":
        return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    return onnx.TensorProto.FromString(data)


DATA = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")


def write_light_tests(writer):
    """Writes vision models whose weights come from ConstantOfShape, with the input that ONNX's test runner generates."""
    root = os.path.join(DATA, "light")
    for name in sorted(os.listdir(root)):
        if not name.endswith(".onnx"):
            continue
        model = onnx.load(os.path.join(root, name))
        filled = {value.name for value in model.graph.initializer}
        given = [value for value in model.graph.input if value.name not in filled]
        shape = [dim.dim_value for dim in given[0].type.tensor_type.shape.dim]
        count = np.prod(shape)
        data = (np.arange(count).reshape(shape) / count).astype(np.float32)
        wanted = read_proto(os.path.join(root, name[:-5] + "_output_0.pb"))
        rtol = 2e-3 if "densenet" in name else 1e-3
        writer.case(name[:-5], model, [(given[0].name, data)], [(model.graph.output[0].name, wanted)], rtol, 1e-7)


def write_data_tests(writer):
    for kind in ("simple", "pytorch-operator", "pytorch-converted"):
        for name in sorted(os.listdir(os.path.join(DATA, kind))):
            folder = os.path.join(DATA, kind, name)
            data = os.path.join(folder, "test_data_set_0")
            model = onnx.load(os.path.join(folder, "model.onnx"))
            filled = {value.name for value in model.graph.initializer}
            inputs = [value for value in model.graph.input if value.name not in filled]
            given = [(value.name, read_proto(os.path.join(data, f"input_{i}.pb"), value.type)) for i, value in enumerate(inputs)]
            wanted = [(value.name, read_proto(os.path.join(data, f"output_{i}.pb"), value.type))
                      for i, value in enumerate(model.graph.output)]
            writer.case(f"{kind}_{name}", model, given, wanted, 1e-3, 1e-7)
    for test in collect_testcases():  # the package also has files of most of these
        if not os.path.isdir(os.path.join(DATA, test.kind, test.name)):
            write_test(writer, test)


def main():
    kinds = {"own": write_own, "node": write_node_tests, "data": write_data_tests, "light": write_light_tests}
    if len(sys.argv) != 3 or sys.argv[2] not in (*kinds, "all"):
        raise SystemExit(__doc__)
    writer = Writer(sys.argv[1])
    for kind, write in kinds.items():
        if sys.argv[2] == kind or (sys.argv[2] == "all" and kind != "light"):
            write(writer)
    writer.close()
    print(f"{len(writer.names)} cases")


if __name__ == "__main__":
    main()
