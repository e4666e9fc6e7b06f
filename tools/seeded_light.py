#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes one of the light models of the `onnx` package with seeded random weights instead of its constant ones.

    seeded_light.py NAME FILE.onnx      NAME as resnet50, squeezenet, densenet121, …

Weights of convolutions and matrix products are drawn so that activations keep their magnitude; scales are drawn around 1, all else around 0.
The models are suitable for measurements of speed; their results have no meaning.
"""
import os
import sys

import numpy as np
import onnx
from onnx import numpy_helper


def roles(graph):
    """What each constant is to the node that reads it."""
    found = {}
    for node in graph.node:
        names = {"Conv": ("", "weights", "bias"), "Gemm": ("", "weights", "bias"), "MatMul": ("", "weights"),
                 "BatchNormalization": ("", "scale", "bias", "mean", "variance")}.get(node.op_type, ())
        found.update(zip(node.input, names))
    return found


def draw(random, role, shape):
    size = int(np.prod(shape[1:])) if len(shape) > 1 else 1
    if role == "weights":
        return random.standard_normal(shape) * np.sqrt(1.5 / size)
    if role in ("scale", "variance"):
        return random.uniform(0.8, 1.2, shape)
    return random.standard_normal(shape) * 0.05


def seeded(name):
    path = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light", f"light_{name}.onnx")
    model = onnx.load(path)
    random, graph = np.random.default_rng(5), model.graph
    shapes = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    what = roles(graph)
    kept = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape" or node.input[0] not in shapes:
            kept.append(node)
            continue
        shape = [int(extent) for extent in shapes[node.input[0]]]
        value = draw(random, what.get(node.output[0], ""), shape).astype(np.float32)
        graph.initializer.append(numpy_helper.from_array(value, node.output[0]))
    del graph.node[:]
    graph.node.extend(kept)
    return model


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    onnx.save(seeded(sys.argv[1]), sys.argv[2])


if __name__ == "__main__":
    main()
