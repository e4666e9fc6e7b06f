#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the example model 'digits' and writes it with its images and requests.

A small convolutional network learns the 8x8 handwritten digits that scikit-learn ships (1797
images; nothing is downloaded). Training uses numpy with a fixed seed and takes less than a minute. It
documents the origin of examples/models/digits.
Written under --out (default: the examples folder of this source tree):

  models/digits/1/model.onnx     image FP32 [batch,1,8,8], ink 0..1
                                 -> probabilities FP32 [batch,10], digit INT64 [batch]
  models/digits/labels.txt       the class names, one per line
  pictures/digit_N.png           one held-out image per digit, enlarged to 64x64
  requests/digits.json           a KServe v2 inference request with three held-out images
  requests/digits.npy            the same three images, float32 [3,1,8,8]
  requests/digits.expected.json  the results of ONNX Runtime, and the true labels

Needs: pip install -r tools/requirements-digits.txt
Usage: tools/train_digits.py [--out DIR] [--epochs N] [--seed N]
"""
import argparse
import json
import struct
import sys
import zlib
from pathlib import Path

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
    from sklearn.datasets import load_digits
except ImportError as e:
    sys.exit(f"train_digits: '{e.name}' is missing: pip install -r tools/requirements-digits.txt")

HELD_OUT = 360          # pictures the training never sees
LEAST_ACCURACY = 0.97   # a worse model is not written
ASKED = (3, 7, 4)       # the digits whose pictures make the example request
ENLARGE = 8


# ---------------------------------------------------------------- layers: forward and backward

def patches(x):
    """All 3x3 neighbourhoods of x [n,c,h,w], padded by one: [n,h,w,c*9]."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, h, w, c * 9)


def unpatch(g, shape):
    """The transpose of patches(): adds each neighbourhood's gradient back to its pixels."""
    n, c, h, w = shape
    g = g.reshape(n, h, w, c, 3, 3).transpose(0, 3, 1, 2, 4, 5)
    padded = np.zeros((n, c, h + 2, w + 2), np.float32)
    for i in range(3):
        for j in range(3):
            padded[:, :, i:i + h, j:j + w] += g[..., i, j]
    return padded[:, :, 1:-1, 1:-1]


def convolve(x, weight, bias):
    cols = patches(x)
    y = cols @ weight.reshape(len(weight), -1).T + bias
    return y.transpose(0, 3, 1, 2), cols


def convolve_gradients(g, cols, weight):
    g = g.transpose(0, 2, 3, 1)
    flat = g.reshape(-1, g.shape[-1])
    return (flat.T @ cols.reshape(len(flat), -1)).reshape(weight.shape), flat.sum(0), \
        g @ weight.reshape(len(weight), -1)


def softmax(z):
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def forward(p, x):
    """Scores [n,10], and what the way back needs."""
    c1, cols1 = convolve(x, p["conv1.weight"], p["conv1.bias"])
    r1 = np.maximum(c1, 0)
    n, c, h, w = r1.shape
    blocks = r1.reshape(n, c, h // 2, 2, w // 2, 2)
    pooled = blocks.max((3, 5))
    c2, cols2 = convolve(pooled, p["conv2.weight"], p["conv2.bias"])
    r2 = np.maximum(c2, 0)
    flat = r2.reshape(n, -1)
    return flat @ p["fc.weight"].T + p["fc.bias"], (c1, cols1, blocks, pooled, c2, cols2, flat)


def gradients(p, x, labels):
    scores, (c1, cols1, blocks, pooled, c2, cols2, flat) = forward(p, x)
    g = softmax(scores)
    loss = -np.log(g[np.arange(len(x)), labels] + 1e-12).mean()
    g[np.arange(len(x)), labels] -= 1
    g /= len(x)
    out = {"fc.weight": g.T @ flat, "fc.bias": g.sum(0)}
    g = (g @ p["fc.weight"]).reshape(c2.shape) * (c2 > 0)
    out["conv2.weight"], out["conv2.bias"], g = convolve_gradients(g, cols2, p["conv2.weight"])
    g = unpatch(g, pooled.shape)[:, :, :, None, :, None]
    g = (g * (blocks == pooled[:, :, :, None, :, None])).reshape(c1.shape) * (c1 > 0)
    out["conv1.weight"], out["conv1.bias"], _ = convolve_gradients(g, cols1, p["conv1.weight"])
    return loss, out


# ---------------------------------------------------------------- training

def new_parameters(rng):
    def he(*shape):
        return (rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)
    return {"conv1.weight": he(16, 1, 3, 3), "conv1.bias": np.zeros(16, np.float32),
            "conv2.weight": he(32, 16, 3, 3), "conv2.bias": np.zeros(32, np.float32),
            "fc.weight": he(10, 512), "fc.bias": np.zeros(10, np.float32)}


def shifted(x, rng):
    """Moves each picture by up to one pixel: few samples, and hands do not write in one place."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    at = rng.integers(0, 3, (len(x), 2))
    return np.stack([padded[k, :, i:i + 8, j:j + 8] for k, (i, j) in enumerate(at)])


def train(x, labels, epochs, rng):
    p = new_parameters(rng)
    mean = {k: np.zeros_like(v) for k, v in p.items()}
    power = {k: np.zeros_like(v) for k, v in p.items()}
    step, batch = 0, 64
    for epoch in range(epochs):
        rate = 2e-3 * 0.5 * (1 + np.cos(np.pi * epoch / epochs))
        order, losses = rng.permutation(len(x)), []
        for start in range(0, len(x), batch):
            pick = order[start:start + batch]
            # Every second epoch sees the pictures unmoved: the plain case is to be learnt too.
            seen = shifted(x[pick], rng) if epoch % 2 else x[pick]
            loss, grads = gradients(p, seen, labels[pick])
            losses.append(loss)
            step += 1
            for k, g in grads.items():
                g = g + 1e-4 * p[k]
                mean[k] = 0.9 * mean[k] + 0.1 * g
                power[k] = 0.999 * power[k] + 0.001 * g * g
                p[k] = (p[k] - rate * (mean[k] / (1 - 0.9 ** step)) /
                        (np.sqrt(power[k] / (1 - 0.999 ** step)) + 1e-8)).astype(np.float32)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1:3d}  loss {np.mean(losses):.4f}", flush=True)
    return p


# ---------------------------------------------------------------- what is written

def model_of(p, accuracy):
    nodes = [
        helper.make_node("Conv", ["image", "conv1.weight", "conv1.bias"], ["conv1"], "conv1",
                         kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv1"], ["relu1"], "relu1"),
        helper.make_node("MaxPool", ["relu1"], ["pool1"], "pool1", kernel_shape=[2, 2],
                         strides=[2, 2]),
        helper.make_node("Conv", ["pool1", "conv2.weight", "conv2.bias"], ["conv2"], "conv2",
                         kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv2"], ["relu2"], "relu2"),
        helper.make_node("Flatten", ["relu2"], ["features"], "flatten", axis=1),
        helper.make_node("Gemm", ["features", "fc.weight", "fc.bias"], ["scores"], "fc", transB=1),
        helper.make_node("Softmax", ["scores"], ["probabilities"], "softmax", axis=1),
        helper.make_node("ArgMax", ["probabilities"], ["digit"], "argmax", axis=1, keepdims=0),
    ]
    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10]),
         helper.make_tensor_value_info("digit", TensorProto.INT64, ["batch"])],
        [numpy_helper.from_array(v, k) for k, v in p.items()],
        doc_string="Classifies an 8x8 picture of a handwritten digit.")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                              producer_name="kelp tools/train_digits.py")
    helper.set_model_props(model, {
        "data": "Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak, 1998",
        "data_license": "CC BY 4.0", "license": "Apache-2.0",
        "held_out_accuracy": f"{accuracy:.4f}"})
    onnx.checker.check_model(model, full_check=True)
    return model


def write_png(path, grey):
    """An 8-bit grey PNG of grey [h,w] uint8."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + \
            struct.pack(">I", zlib.crc32(kind + body))
    h, w = grey.shape
    rows = b"".join(b"\0" + row.tobytes() for row in grey)
    head = struct.pack(">IIBBBBB", w, h, 8, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
                     + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def write_requests(folder, images, labels, session):
    def tensor(name, datatype, array):
        return {"name": name, "datatype": datatype, "shape": list(array.shape),
                "data": array.ravel().tolist()}
    np.save(folder / "digits.npy", images)
    request = {"id": "digits", "inputs": [tensor("image", "FP32", images)],
               "outputs": [{"name": "digit"}, {"name": "probabilities"}]}
    (folder / "digits.json").write_text(json.dumps(request) + "\n")
    probabilities, digit = session.run(["probabilities", "digit"], {"image": images})
    answer = {"model_name": "digits", "labels": labels.tolist(),
              "outputs": [tensor("digit", "INT64", digit),
                          tensor("probabilities", "FP32", probabilities)]}
    (folder / "digits.expected.json").write_text(json.dumps(answer) + "\n")
    if digit.tolist() != labels.tolist():
        sys.exit("train_digits: the example pictures are not classified rightly; nothing to show")


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                 epilog="example: tools/train_digits.py --out examples")
    ap.add_argument("--out", type=Path, default=Path(__file__).resolve().parent.parent / "examples",
                    help="where models/, pictures/ and requests/ are written (default: examples)")
    ap.add_argument("--epochs", type=int, default=40)
    ap.add_argument("--seed", type=int, default=20)
    args = ap.parse_args()
    rng = np.random.default_rng(args.seed)

    data = load_digits()
    order = rng.permutation(len(data.target))
    x = (data.images[order, None] / 16).astype(np.float32)
    y = data.target[order]
    test_x, test_y, train_x, train_y = x[:HELD_OUT], y[:HELD_OUT], x[HELD_OUT:], y[HELD_OUT:]
    p = train(train_x, train_y, args.epochs, rng)

    right = forward(p, test_x)[0].argmax(1) == test_y
    print(f"held-out accuracy: {right.mean():.4f} ({right.sum()} of {len(right)})")
    if right.mean() < LEAST_ACCURACY:
        sys.exit(f"train_digits: accuracy {right.mean():.4f} is under {LEAST_ACCURACY}: "
                 "not written")

    for d in ("models/digits/1", "pictures", "requests"):
        (args.out / d).mkdir(parents=True, exist_ok=True)
    path = args.out / "models/digits/1/model.onnx"
    onnx.save(model_of(p, right.mean()), path)
    (args.out / "models/digits/labels.txt").write_text("".join(f"{n}\n" for n in range(10)))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    answer = session.run(["probabilities"], {"image": test_x})[0]
    np.testing.assert_allclose(answer, softmax(forward(p, test_x)[0]), rtol=1e-3, atol=1e-5)

    shown = [int(np.flatnonzero((test_y == n) & right)[0]) for n in range(10)]
    for n, k in enumerate(shown):
        grey = np.rint(test_x[k, 0] * 255).astype(np.uint8)
        write_png(args.out / f"pictures/digit_{n}.png",
                  np.kron(grey, np.ones((ENLARGE, ENLARGE), np.uint8)))
    asked = [shown[n] for n in ASKED]
    write_requests(args.out / "requests", test_x[asked], test_y[asked], session)
    print(f"written: {path} ({path.stat().st_size} bytes), its pictures and its requests")


if __name__ == "__main__":
    main()
