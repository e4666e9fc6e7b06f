#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time of a call of a session from Python: models of one node, Kelp and ONNX Runtime interleaved in one process with one thread. Prints medians and
compares the results.

    python_overhead.py [--rounds N] [--calls N] [--check]

PYTHONPATH must contain the package kelp. --check: exits with 1 if a ratio of medians is above 0.3.
"""
import argparse
import statistics
import sys
import time

import kelp
import numpy as np
import onnxruntime
from onnx import TensorProto, helper

BAR = 0.3


def one_node(op, inputs, outputs):
    graph = helper.make_graph([helper.make_node(op, inputs, outputs)], "one_node",
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in inputs],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()


def sessions(model):
    ours, theirs = kelp.SessionOptions(), onnxruntime.SessionOptions()
    for options in (ours, theirs):
        options.intra_op_num_threads = 1
    theirs.inter_op_num_threads = 1
    return (kelp.InferenceSession(model, ours),
            onnxruntime.InferenceSession(model, theirs, providers=["CPUExecutionProvider"]))


def measure(run, feed, calls):
    begin = time.perf_counter_ns()
    for _ in range(calls):
        run(None, feed)
    return (time.perf_counter_ns() - begin) / calls


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    print(f"kelp {kelp.__version__}, onnxruntime {onnxruntime.__version__}, numpy {np.__version__}, Python {sys.version.split()[0]}; "
          f"4 elements, median of {options.rounds} rounds of {options.calls} calls")
    print(f"{'model':<10}{'kelp, ns':>10}{'ORT, ns':>10}{'ratio':>8}")
    worst = 0
    for op, names in (("Identity", ["a"]), ("Relu", ["a"]), ("Add", ["a", "b"])):
        ours, theirs = sessions(one_node(op, names, ["y"]))
        feed = {name: np.arange(4, dtype="f4") - i for i, name in enumerate(names)}
        assert np.array_equal(ours.run(None, feed)[0], theirs.run(None, feed)[0])
        times = ([], [])
        for _ in range(options.rounds):
            for session, kept in zip((ours, theirs), times):
                kept.append(measure(session.run, feed, options.calls))
        mine, other = map(statistics.median, times)
        worst = max(worst, mine / other)
        print(f"{op:<10}{mine:>10.0f}{other:>10.0f}{mine / other:>8.2f}")
    return 1 if options.check and worst > BAR else 0


if __name__ == "__main__":
    sys.exit(main())
