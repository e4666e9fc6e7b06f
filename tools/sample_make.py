#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Creates models of tools/sample.py: with scikit-learn, LightGBM and XGBoost, as graphs with random weights, and in other element types.

    sample_make.py FOLDER NAME …      needs the packages of tools/requirements-sample.txt
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sample  # noqa: E402

ROWS, COLUMNS, CLASSES = 600, 30, 3
OPSETS = {"": 21, "ai.onnx.ml": 3}
TESTED_ROWS = 64  # of the input


def data():
    random = np.random.default_rng(3)
    x = random.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    target = x[:, 0] * 2 + np.sin(x[:, 1]) + 0.1 * random.normal(size=ROWS)
    return x, target.astype(np.float32), np.digitize(target, [-1, 1])


def estimator(name):
    """An estimator of scikit-learn and whether it predicts classes."""
    from sklearn import cluster, compose, ensemble, gaussian_process, linear_model, neighbors, neural_network, pipeline, preprocessing, svm
    scaled = preprocessing.StandardScaler()
    return {
        "forest_classes": lambda: ensemble.RandomForestClassifier(100, max_depth=8, random_state=0),
        "boosted_targets": lambda: ensemble.GradientBoostingRegressor(n_estimators=200, max_depth=4, random_state=0),
        "extra_classes": lambda: ensemble.ExtraTreesClassifier(80, max_depth=10, random_state=0),
        "isolation": lambda: ensemble.IsolationForest(n_estimators=100, random_state=0),
        "support_classes": lambda: svm.SVC(probability=True, random_state=0),
        "support_targets": lambda: svm.SVR(),
        "neighbours": lambda: neighbors.KNeighborsClassifier(5),
        "neighbours_targets": lambda: neighbors.KNeighborsRegressor(7),
        "perceptron": lambda: neural_network.MLPClassifier((128, 64), max_iter=30, random_state=0),
        "logistic_zipmap": lambda: pipeline.make_pipeline(scaled, linear_model.LogisticRegression(max_iter=500)),
        "process": lambda: gaussian_process.GaussianProcessRegressor(),
        "clusters": lambda: cluster.KMeans(16, n_init=2, random_state=0),
        "columns": lambda: pipeline.make_pipeline(compose.ColumnTransformer([("a", preprocessing.StandardScaler(), list(range(15))),
                                                                             ("b", preprocessing.MinMaxScaler(), list(range(15, COLUMNS)))]),
                                                  preprocessing.PolynomialFeatures(2), linear_model.Ridge()),
    }[name]()


def table(name):
    from onnxmltools.convert.common.data_types import FloatTensorType as Floats
    x, target, classes = data()
    labels = classes if name.endswith("classes") or name in ("neighbours", "perceptron", "logistic_zipmap") else target
    kind = "Classifier" if name.endswith("classes") else "Regressor"
    if name.startswith("lightgbm"):
        import lightgbm
        import onnxmltools
        fitted = getattr(lightgbm, "LGBM" + kind)(n_estimators=120, verbose=-1).fit(x, labels)
        return onnxmltools.convert_lightgbm(fitted, initial_types=[("x", Floats([None, COLUMNS]))], target_opset=15, zipmap=False)
    if name.startswith("xgboost"):
        import onnxmltools
        import xgboost
        fitted = getattr(xgboost, "XGB" + kind)(n_estimators=120, max_depth=5).fit(x, labels)
        return onnxmltools.convert_xgboost(fitted, initial_types=[("x", Floats([None, COLUMNS]))], target_opset=15)
    import skl2onnx
    from skl2onnx.common.data_types import FloatTensorType
    fitted = estimator(name).fit(x, labels)
    zipmap = {"zipmap": name == "logistic_zipmap"} if hasattr(fitted, "predict_proba") else {}
    return skl2onnx.convert_sklearn(fitted, initial_types=[("x", FloatTensorType([None, COLUMNS]))], target_opset=OPSETS, options={id(fitted): zipmap})


class Net:
    """A graph with random weights."""

    def __init__(self):
        self.random, self.nodes, self.weights, self.count = np.random.default_rng(5), [], [], 0

    def constant(self, array):
        self.weights.append(numpy_helper.from_array(np.asarray(array), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def op(self, name, *inputs, **attributes):
        self.count += 1
        self.nodes.append(helper.make_node(name, inputs, [f"v{self.count}"], **attributes))
        return f"v{self.count}"

    def normal(self, *shape):
        fan = int(np.prod(shape[1:])) or 1
        return self.constant((self.random.normal(size=shape) * fan ** -0.5).astype(np.float32))

    def conv(self, x, inputs, outputs, kernel=3, stride=1):
        return self.op("Conv", x, self.normal(outputs, inputs, kernel, kernel), self.normal(outputs), pads=[kernel // 2] * 4, strides=[stride] * 2)

    def dense(self, x, inputs, outputs):
        return self.op("Gemm", x, self.normal(outputs, inputs), self.normal(outputs), transB=1)

    def model(self, inputs, output, rank):
        graph = helper.make_graph(self.nodes, "net", [helper.make_tensor_value_info(name, T.FLOAT, shape) for name, shape in inputs],
                                  [helper.make_tensor_value_info(output, T.FLOAT, [f"y{i}" for i in range(rank)])], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def superresolution():
    """ESPCN: Shi et al., "Real-Time Single Image and Video Super-Resolution", 2016."""
    g = Net()
    y = g.op("Tanh", g.conv("image", 1, 64, 5))
    y = g.op("Tanh", g.conv(y, 64, 32))
    return g.model([("image", [1, 1, 180, 240])], g.op("DepthToSpace", g.conv(y, 32, 9), blocksize=3), 4)


def unet():
    """Segmentation: Ronneberger et al., "U-Net", 2015, with 16 to 128 channels."""
    g, skips, y, channels = Net(), [], "image", 3
    for width in (16, 32, 64):
        for _ in range(2):
            y, channels = g.op("Relu", g.conv(y, channels, width)), width
        skips.append((y, width))
        y = g.op("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
    y, channels = g.op("Relu", g.conv(y, 64, 128)), 128
    for skip, width in reversed(skips):
        y = g.op("ConvTranspose", y, g.normal(channels, width, 2, 2), strides=[2, 2])
        y = g.op("Concat", skip, y, axis=1)
        y, channels = g.op("Relu", g.conv(y, 2 * width, width)), width
    return g.model([("image", [1, 3, 192, 192])], g.op("Softmax", g.conv(y, 16, 5, 1), axis=1), 4)


def diffusion():
    """A step of denoising: blocks with group normalization, SiLU and the time, and attention in the middle. Ho et al., "Denoising Diffusion
    Probabilistic Models", 2020."""
    g, width, size = Net(), 64, 32
    time = g.dense(g.op("Sin", "time"), 64, width)
    time = g.op("Unsqueeze", time, g.constant(np.array([2, 3])))
    y = g.conv("noise", 4, width)
    for block in range(4):
        x = y
        for half in range(2):
            y = g.op("GroupNormalization", y, g.normal(width), g.normal(width), num_groups=8)
            y = g.conv(g.op("Mul", y, g.op("Sigmoid", y)), width, width)
            y = g.op("Add", y, time) if half == 0 else y
        y = g.op("Add", x, y)
        if block == 1:
            flat = g.op("Transpose", g.op("Reshape", y, g.constant(np.array([1, width, size * size]))), perm=[0, 2, 1])
            q, k, v = (g.op("MatMul", flat, g.normal(width, width)) for _ in range(3))
            scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 2, 1])), g.constant(np.float32(width ** -0.5)))
            mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
            y = g.op("Add", y, g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1]), g.constant(np.array([1, width, size, size]))))
    return g.model([("noise", [1, 4, size, size]), ("time", [1, 64])], g.conv(y, width, 4), 4)


def policy():
    """A policy of reinforcement learning for a robot: observations to the mean and the scale of actions."""
    g, y = Net(), "observations"
    y = g.op("Clip", g.op("Mul", g.op("Sub", y, g.normal(48)), g.normal(48)), g.constant(np.float32(-5)), g.constant(np.float32(5)))
    for inputs, outputs in ((48, 512), (512, 256), (256, 128)):
        y = g.op("Elu", g.dense(y, inputs, outputs))
    return g.model([("observations", [1, 48])], g.op("Tanh", g.dense(y, 128, 12)), 2)


def calibrated(path, out, name):
    """8-bit weights and activations with QuantizeLinear and DequantizeLinear; ranges from one input."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.rest = [sample.feeds(name, path)]

        def get_next(self):
            return self.rest.pop() if self.rest else None
    quantize_static(path, out, Reader(), quant_format=QuantFormat.QDQ, per_channel=True)


def derived(name, folder):
    base, kind = name.split(".")
    path, out = os.path.join(folder, base + ".onnx"), os.path.join(folder, name + ".onnx")
    if kind == "f16":
        from onnxruntime.transformers.float16 import convert_float_to_float16
        onnx.save(convert_float_to_float16(onnx.load(path), disable_shape_infer=True), out)
    elif kind == "dynamic":
        from onnxruntime.quantization import quantize_dynamic
        quantize_dynamic(path, out)
    else:
        newer = os.path.join(folder, base + ".newer")
        model = onnx.load(path)
        onnx.save(onnx.version_converter.convert_version(model, 13) if model.opset_import[0].version < 13 else model, newer)
        calibrated(newer, out, name)
        os.remove(newer)


def main():
    folder = sys.argv[1]
    for name in sys.argv[2:]:
        path = os.path.join(folder, name + ".onnx")
        if "." in name:
            derived(name, folder)
        elif name in ("superresolution", "unet", "diffusion", "policy"):
            onnx.save(globals()[name](), path)
        else:
            model = table(name)
            model.graph.input[0].type.tensor_type.shape.dim[0].Clear()
            model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "rows"
            onnx.save(model, path)


if __name__ == "__main__":
    main()
