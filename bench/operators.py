#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures every operator of `kelp ops` on its largest test case, and ONNX Runtime in the same process and rounds.

    operators.py --cases DIRECTORY [--package DIRECTORY] [--seconds S] [--threads N] [--each N] [OPERATOR …]

--cases: the output of tests/ops/gen_cases.py (build/release/tests/ops/cases). --package: the directory of the Python package `kelp`
(build/release/python). Prints a line per operator and case: the median time of a call in Kelp and in ONNX Runtime, in microseconds, and their
ratio. Cases are small, so this measures the cost of a call; bench/peers.py measures models. Lists the operators without a measurable case last.
"""
import argparse
import json
import os
import struct
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def inputs_of(path):
    """Returns name -> array of the inputs of a case; None if one of them is not a tensor."""
    with open(path, "rb") as file:
        data = file.read()
    at, found = 16, {}

    def u32():
        nonlocal at
        at += 4
        return struct.unpack_from("<I", data, at - 4)[0]

    def text():
        nonlocal at
        length = u32()
        at += length
        return data[at - length:at]

    for _ in range(u32()):
        name = text().decode()
        if u32() != 0:
            return None
        found[name] = numpy_helper.to_array(onnx.TensorProto.FromString(text()))
    return found


def cases_by_operator(folder):
    """Returns (domain, operator) -> (size of the inputs in bytes, name) of the cases of one node."""
    found = {}
    with open(os.path.join(folder, "cases.txt"), encoding="utf-8") as file:
        names = file.read().split()
    for name in names:
        graph = onnx.load(os.path.join(folder, name + ".onnx")).graph
        if len(graph.node) == 1 and not name.endswith("_refused"):
            node = graph.node[0]
            found.setdefault((node.domain or "ai.onnx", node.op_type), []).append((os.path.getsize(os.path.join(folder, name + ".bin")), name))
    return found


def median_us(calls, seconds):
    """Medians of calls that take turns; None for those that are None."""
    times = [[] for _ in calls]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for call, spent in zip(calls, times):
            if call is not None:
                began = time.perf_counter_ns()
                call()
                spent.append(time.perf_counter_ns() - began)
    return [float(np.median(spent)) / 1000 if spent else None for spent in times]


def caller(make, feeds):
    """A function that runs a session once, or None when it cannot."""
    try:
        session = make()
        session.run(None, feeds)
        return lambda: session.run(None, feeds)
    except Exception:  # what a peer has not is told by its absence
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default=os.path.join(ROOT, "build", "release", "tests", "ops", "cases"))
    parser.add_argument("--package", default=os.path.join(ROOT, "build", "release", "python"))
    parser.add_argument("--seconds", type=float, default=0.01, help="a case")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--each", type=int, default=1, help="cases an operator, the largest first")
    parser.add_argument("operators", nargs="*")
    options = parser.parse_args()
    sys.path.insert(0, options.package)
    import kelp
    ours, theirs = kelp.SessionOptions(), onnxruntime.SessionOptions()
    ours.intra_op_num_threads = theirs.intra_op_num_threads = options.threads
    theirs.log_severity_level = 4
    program = os.path.join(options.package, "..", "bin", "kelp")
    listed = json.loads(subprocess.run([program, "ops", "--json"], check=True, capture_output=True, text=True).stdout)
    cases, unmeasured, ratios = cases_by_operator(options.cases), [], []
    for entry in listed:
        key = entry["domain"], entry["name"]
        if entry["domain"] == "kelp" or (options.operators and entry["name"] not in options.operators):
            continue
        measured = 0
        for _, name in sorted(cases.get(key, []), reverse=True):
            feeds = inputs_of(os.path.join(options.cases, name + ".bin"))
            path = os.path.join(options.cases, name + ".onnx")
            call = caller(lambda: kelp.InferenceSession(path, ours), feeds) if feeds is not None else None
            if call is None:
                continue
            peer = caller(lambda: onnxruntime.InferenceSession(path, theirs, providers=["CPUExecutionProvider"]), feeds)
            mine, other = median_us([call, peer], options.seconds)
            if other is not None:
                ratios.append(mine / other)
            beside = f"{other:9.2f} {mine / other:6.2f}" if other is not None else "        -      -"
            print(f"{entry['domain']:14} {entry['name']:26} {mine:9.2f} {beside}  {name}", flush=True)
            measured += 1
            if measured == options.each:
                break
        if not measured:
            unmeasured.append(".".join(key))
    if ratios:
        print(f"{len(ratios)} beside ONNX Runtime, geometric mean {np.exp(np.mean(np.log(ratios))):.2f}")
    print("not measured, because no case has one node and only tensors:", ", ".join(unmeasured) or "none")


if __name__ == "__main__":
    main()
