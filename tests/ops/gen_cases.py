#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes operator cases for run_cases: models of one node (or few) with inputs and expected outputs.

usage: gen_cases.py OUT own|node|all

own:  ours, of every family in cases/, with seeded values; answers of ONNX Runtime or of ONNX's reference.
node: the node tests of the onnx package.
OUT/cases.txt lists the cases, OUT/NAME.onnx is the model, OUT/NAME.bin holds, little-endian: rtol, atol (float64); the number of
inputs, then for each the name and a TensorProto, both after their length (u32); the same for outputs.
"""
import importlib
import os
import sys

import numpy as np
import onnx

FAMILIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")
sys.path.insert(0, FAMILIES)
from common import Own, Writer  # noqa: E402


def write_own(writer):
    for name in sorted(os.listdir(FAMILIES)):
        if name.endswith(".py") and name != "common.py":
            importlib.import_module(name[:-3]).cases(Own(writer, name[:-3]))


def is_tensor(value):
    return isinstance(value, (onnx.TensorProto, np.ndarray, np.generic, int, float, str))


def write_node_tests(writer):
    from onnx.backend.test import loader
    for test in loader.load_model_tests(kind="node"):
        if test.model is None or not test.data_sets:
            raise SystemExit(f"{test.name} has no data")
        inputs, outputs = test.data_sets[0]
        if not all(map(is_tensor, inputs)) or not all(map(is_tensor, outputs)):
            continue
        graph = test.model.graph
        writer.case(test.name, test.model, [(i.name, v) for i, v in zip(graph.input, inputs)],
                    [(o.name, v) for o, v in zip(graph.output, outputs)], test.rtol, test.atol)


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in ("own", "node", "all"):
        raise SystemExit(__doc__)
    writer = Writer(sys.argv[1])
    if sys.argv[2] != "node":
        write_own(writer)
    if sys.argv[2] != "own":
        write_node_tests(writer)
    writer.close()
    print(f"{len(writer.names)} cases")


if __name__ == "__main__":
    main()
