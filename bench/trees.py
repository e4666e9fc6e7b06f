#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ensembles of random trees: Kelp and ONNX Runtime interleaved in one process; each run has its own rows.

    trees.py [--rounds N] [--threads 1,2]

PYTHONPATH must contain the package kelp. Results are compared with a tolerance, because ONNX Runtime adds in single precision.
"""
import argparse
import math
import statistics
import sys
import time

import kelp
import numpy as np
import onnxruntime
from onnx import TensorProto, helper

# what, trees, depth, share of branches that end early, columns, targets
SHAPES = [("one tree", 1, 8, 0.1, 20, 1), ("small forest", 100, 6, 0, 30, 1), ("boosted", 500, 8, 0.2, 30, 1), ("classes", 100, 10, 0.2, 60, 5)]
ROWS = [1, 16, 1000]


def forest(rng, trees, depth, early, columns, targets):
    nodes = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")}
    weights = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}

    def grow(tree, left):
        me, at = len(nodes["nodeids"]) - first, len(nodes["nodeids"])
        leaf = left == 0 or (left < depth - 2 and rng.random() < early)
        values = (tree, me, int(rng.integers(columns)), float(rng.normal()), "LEAF" if leaf else "BRANCH_LEQ", 0, 0)
        for name, value in zip(nodes, values):
            nodes[name].append(value)
        if leaf:
            for target in range(targets):
                for name, value in zip(weights, (tree, me, target, float(rng.normal()))):
                    weights[name].append(value)
        else:
            nodes["truenodeids"][at] = grow(tree, left - 1)
            nodes["falsenodeids"][at] = grow(tree, left - 1)
        return me

    for tree in range(trees):
        first = len(nodes["nodeids"])
        grow(tree, depth)
    attrs = {f"nodes_{k}": v for k, v in nodes.items()} | {f"target_{k}": v for k, v in weights.items()}
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=targets, **attrs)
    graph = helper.make_graph([node], "forest", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, columns])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, targets])])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()


def seconds(session, feeds):
    begin = time.perf_counter()
    for feed in feeds:
        session.run(None, feed)
    return (time.perf_counter() - begin) / len(feeds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", default="1,2")
    options = parser.parse_args()
    rng, ratios = np.random.default_rng(1), []
    print("| model | trees, depth | rows | threads | Kelp | ONNX Runtime | Kelp / ONNX Runtime |\n|---|---|--:|--:|--:|--:|--:|")
    for what, trees, depth, early, columns, targets in SHAPES:
        model = forest(rng, trees, depth, early, columns, targets)
        for threads in map(int, options.threads.split(",")):
            ours, theirs = kelp.SessionOptions(), onnxruntime.SessionOptions()
            ours.intra_op_num_threads = theirs.intra_op_num_threads = threads
            sessions = kelp.InferenceSession(model, ours), onnxruntime.InferenceSession(model, theirs, providers=["CPUExecutionProvider"])
            for rows in ROWS:
                # what is met again would be known to the processor, which learns where ways lead
                feeds = [{"x": rng.normal(size=(rows, columns)).astype(np.float32)} for _ in range(max(1, 4000 // rows))]
                results = [session.run(None, feeds[0])[0] for session in sessions]
                if not np.allclose(*results, rtol=1e-4, atol=1e-3):
                    sys.exit(f"{what}: results differ by {np.abs(results[0] - results[1]).max()}")
                times = [statistics.median(t) for t in zip(*[[seconds(s, feeds) for s in sessions] for _ in range(options.rounds)])]
                ratios.append(times[0] / times[1])
                print(f"| {what} | {trees}, {depth} | {rows} | {threads} | {times[0] * 1e6:.1f} µs | {times[1] * 1e6:.1f} µs | {ratios[-1]:.2f} |",
                      flush=True)
    print(f"| geometric mean | | | | | | {math.exp(statistics.mean(map(math.log, ratios))):.2f} |")


if __name__ == "__main__":
    main()
