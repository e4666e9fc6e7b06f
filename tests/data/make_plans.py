#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes plan files of the current format version, which tests load with every later version.

    make_plans.py KELP      KELP: path of the program

Under plans/ beside this script, whose contents are committed:

  NAME.vN.plan            a plan file of format version N
  NAME.x.npy              an input
  NAME.FORM.y.npy         ONNX Runtime's answer: FORM is 'built', or 'refitted' with zeros as weights 'b1'

Run it only after the format version has changed, and delete the files of versions that are no longer supported. The files record
what `kelp build` wrote at that time.

Needs: pip install -r tools/requirements-models.txt
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper, parser

PLANS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plans")
GRAPH = """<ir_version: 8, opset_import: ["" : 17]>
small (float[n, 4, 6, 6] x) => (float[n, 10] y, int64[n, 2] shape) {
    c = Conv<pads = [1, 1, 1, 1]>(x, k, kb)
    r = Relu(c)
    p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r)
    f = Flatten(p)
    m1 = MatMul(f, w1)
    h = Add(m1, b1)
    s = Sigmoid(h)
    m2 = MatMul(s, w2)
    y = Softmax<axis = 1>(m2)
    shape0 = Shape(y)
    shape = Expand(shape0, nx2)
    nx = Shape<start = 0, end = 1>(x)
    nx2 = Concat<axis = 0>(nx, two)
}"""


def model():
    rng = np.random.default_rng(7)
    made = parser.parse_model(GRAPH)
    for name, shape in (("k", (4, 4, 3, 3)), ("kb", (4,)), ("w1", (36, 33)), ("b1", (33,)), ("w2", (33, 10))):
        made.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(shape).astype("float32"), name))
    made.graph.initializer.append(numpy_helper.from_array(np.array([2], "int64"), "two"))
    return made


def main():
    made, kelp = model(), sys.argv[1]
    x = np.random.default_rng(8).standard_normal((3, 4, 6, 6)).astype("float32")
    os.makedirs(PLANS, exist_ok=True)
    np.save(os.path.join(PLANS, "small.x.npy"), x)
    with tempfile.TemporaryDirectory() as folder:
        path, plan = os.path.join(folder, "small.onnx"), os.path.join(folder, "small.plan")
        onnx.save(made, path)
        subprocess.run([kelp, "build", path, "-o", plan, "--refit", "--min", "x:1x4x6x6", "--opt", "x:3x4x6x6", "--max", "x:64x4x6x6"],
                       check=True)
        with open(plan, "rb") as file:
            data = file.read()
    version = int.from_bytes(data[8:12], "little")
    with open(os.path.join(PLANS, f"small.v{version}.plan"), "wb") as file:
        file.write(data)
    for form in ("built", "refitted"):
        if form == "refitted":
            made.graph.initializer[3].CopyFrom(numpy_helper.from_array(np.zeros(33, "float32"), "b1"))
        y = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"]).run(["y"], {"x": x})[0]
        np.save(os.path.join(PLANS, f"small.{form}.y.npy"), y)


if __name__ == "__main__":
    main()
