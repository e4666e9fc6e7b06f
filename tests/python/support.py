# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share: where things are, and models of one node."""
import os
import sys
import unittest

import onnx
from onnx import helper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DIGITS = os.path.join(ROOT, "examples", "models", "digits", "1", "model.onnx")
MODELS = os.path.join(ROOT, "tests", "data", "models")


def model(op, inputs, outputs, opset=21, domain="", **attributes):
    """Bytes of a model of one node; inputs and outputs are (name, onnx type, shape)."""
    node = helper.make_node(op, [i[0] for i in inputs], [o[0] for o in outputs], domain=domain, **attributes)
    graph = helper.make_graph([node], "one_node", [helper.make_tensor_value_info(*i) for i in inputs],
                              [helper.make_tensor_value_info(*o) for o in outputs])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10, producer_name="kelp's tests")
    return made.SerializeToString()


def identity(dtype, shape=("n",)):
    """x to y, unchanged, of an ONNX element type."""
    return model("Identity", [("x", dtype, shape)], [("y", dtype, shape)])


def main():
    os.chdir(ROOT)
    ended = unittest.main(module="__main__", argv=sys.argv, exit=False, verbosity=2)
    sys.exit(0 if ended.result.wasSuccessful() else 1)


__all__ = ["DIGITS", "MODELS", "ROOT", "identity", "main", "model", "onnx"]
