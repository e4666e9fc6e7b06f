# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the Python package: paths, and models of one node."""
import os
import signal
import sys
import threading
import time
import unittest

import onnx
from onnx import helper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DIGITS = os.path.join(ROOT, "examples", "models", "digits", "1", "model.onnx")
MODELS = os.path.join(ROOT, "tests", "data", "models")


def model(op, inputs, outputs, opset=21, domain="", **attributes):
    """Returns the bytes of a model of one node; inputs and outputs are (name, ONNX type, shape)."""
    node = helper.make_node(op, [i[0] for i in inputs], [o[0] for o in outputs], domain=domain, **attributes)
    graph = helper.make_graph([node], "one_node", [helper.make_tensor_value_info(*i) for i in inputs],
                              [helper.make_tensor_value_info(*o) for o in outputs])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10, producer_name="kelp's tests")
    return made.SerializeToString()


def endless():
    """Returns the bytes of a model that adds 1 to 0 `rounds` times; with many rounds it runs until it is stopped.

    Each round has an inner loop: otherwise a fast machine reaches the maximum number of rounds within seconds."""
    inner = helper.make_graph([helper.make_node("Add", ["u", "zero"], ["t"]), helper.make_node("Identity", ["go_on"], ["goes_on"])], "inner",
                              [helper.make_tensor_value_info(*i) for i in (("j", 7, ()), ("go_on", 9, ()), ("u", 7, ()))],
                              [helper.make_tensor_value_info(*o) for o in (("goes_on", 9, ()), ("t", 7, ()))])
    nodes = [helper.make_node("Loop", ["hundred", "", "v"], ["same"], body=inner), helper.make_node("Add", ["same", "one"], ["w"]),
             helper.make_node("Identity", ["go"], ["on"])]
    body = helper.make_graph(nodes, "body", [helper.make_tensor_value_info(*i) for i in (("i", 7, ()), ("go", 9, ()), ("v", 7, ()))],
                             [helper.make_tensor_value_info(*o) for o in (("on", 9, ()), ("w", 7, ()))],
                             initializer=[helper.make_tensor("one", 7, (), [1]), helper.make_tensor("hundred", 7, (), [100])])
    graph = helper.make_graph([helper.make_node("Loop", ["rounds", "", "zero"], ["count"], body=body)], "endless",
                              [helper.make_tensor_value_info("rounds", 7, ())], [helper.make_tensor_value_info("count", 7, ())],
                              initializer=[helper.make_tensor("zero", 7, (), [0])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()


class Interrupt:
    """A context that sends Ctrl-C shortly after it is entered, and expects a KeyboardInterrupt within a short time."""

    def __init__(self, test):
        self.test = test

    def __enter__(self):
        self.timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        self.timer.start()
        self.begin = time.monotonic()

    def __exit__(self, kind, *_):
        self.timer.join()
        self.test.assertIs(kind, KeyboardInterrupt)
        self.test.assertLess(time.monotonic() - self.begin, 30)  # otherwise it would run for hours
        return True


def identity(dtype, shape=("n",)):
    """Returns a model that copies x to y, for an ONNX element type."""
    return model("Identity", [("x", dtype, shape)], [("y", dtype, shape)])


def main():
    os.chdir(ROOT)
    # A shell ignores SIGINT in what it runs in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ended = unittest.main(module="__main__", argv=sys.argv, exit=False, verbosity=2)
    sys.exit(0 if ended.result.wasSuccessful() else 1)


__all__ = ["DIGITS", "Interrupt", "MODELS", "ROOT", "endless", "identity", "main", "model", "onnx"]
