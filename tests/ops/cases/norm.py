# SPDX-License-Identifier: Apache-2.0
"""Cases of normalizations and Softmax."""
import numpy as np

from .common import T, f32, helper, i32


def softmax(own):
    for shape in [(3, 5), (2, 4, 129), (1, 1, 384), (7, 16), (4, 17)]:
        x = f32(*shape, low=-8, high=8)
        own.add("Softmax", [x])
        own.add("LogSoftmax", [x])
        own.add("Softmax", [x], axis=0)
        own.add("Softmax", [x], opset=11, axis=1)
    for dtype, rtol in ((np.float64, 1e-9), (np.float16, 2e-3)):
        x = f32(3, 4, 37).astype(dtype)
        own.add("Softmax", [x], rtol=rtol, reference="onnx")
        own.add("LogSoftmax", [x], axis=1, rtol=max(rtol, 1e-6) * 5, reference="onnx")
    for shape, axis in (((2, 21, 33, 5), 1), ((3, 7, 600), 1), ((5, 4, 3), 0), ((70, 7), 1), ((130, 24), 1), ((3, 9, 1030), -2)):
        x = f32(*shape, low=-20, high=20)
        x.flat[:3] = [80, -90, 80]
        own.add("Softmax", [x], axis=axis)
        own.add("LogSoftmax", [x], axis=axis)
    for op, version in (("Softmax", 13), ("LogSoftmax", 11)):
        own.add(op, [np.zeros((2, 0), np.float32)], opset=version, reference=[np.zeros((2, 0), np.float32)])


def layer_normalization(own):
    for shape in [(3, 5), (2, 4, 129), (1, 1, 384), (7, 16), (4, 17)]:
        x, n = f32(*shape, low=-8, high=8), shape[-1]
        own.add("LayerNormalization", [x, f32(n), f32(n)], axis=-1, epsilon=1e-12)
    own.add("LayerNormalization", [f32(3, 4, 5), f32(4, 5)], axis=1, outputs=1)


def layer_and_rms_normalization(own):
    """Other types; scale and bias that broadcast to the input."""
    for dtype, rtol in ((np.float64, 1e-9), (np.float16, 2e-3)):
        x, n = f32(3, 4, 37).astype(dtype), 37
        own.add("LayerNormalization", [x, f32(n).astype(dtype), f32(n).astype(dtype)], rtol=rtol, atol=1e-3 if rtol > 1e-6 else 1e-9)
        own.add("RMSNormalization", [x, f32(n).astype(dtype)], opset=23, rtol=rtol, reference="onnx", atol=1e-3 if rtol > 1e-6 else 1e-6)
    x = f32(2, 3, 4, 5)
    for scale in ((5,), (1,), (), (4, 1), (4, 5), (3, 1, 1), (3, 4, 5), (3, 1, 5), (2, 1, 1, 1), (2, 3, 4, 5), (1, 1, 1, 5)):
        own.add("LayerNormalization", [x, f32(*scale), f32(*scale)], opset=17, outputs=3, reference="onnx")
        own.add("LayerNormalization", [x, f32(*scale), f32(5)], opset=17, axis=2, reference="onnx")
        own.add("RMSNormalization", [x, f32(*scale)], opset=23, axis=-1, reference="onnx")
    own.add("LayerNormalization", [x[0, 0], f32(4, 1), f32(1)], opset=17, axis=0, reference="onnx")
    for kind in (np.float64, np.float16):
        own.add("RMSNormalization", [x.astype(kind), f32(3, 1, 5).astype(kind)], opset=23, axis=2, reference="onnx", rtol=2e-3, atol=2e-3)
    own.refuse("RMSNormalization", [x, f32(3, 2)], "must broadcast", opset=23)


def batch_normalization(own):
    own.add("BatchNormalization", [f32(2, 5, 4, 3), f32(5), f32(5), f32(5), f32(5, low=0.1)], epsilon=1e-3)
    own.add("BatchNormalization", [f32(7, 5), f32(5), f32(5), f32(5), f32(5, low=0.1)], opset=9)
    own.add("BatchNormalization", [f32(9, 37, 1, 1), f32(37), f32(37), f32(37), f32(37, low=0.1)])
    half = lambda *shape: f32(*shape).astype(np.float16)  # noqa: E731
    own.add("BatchNormalization", [half(2, 5, 4, 3), half(5), half(5), half(5), np.abs(half(5))], opset=15, rtol=4e-3, atol=1e-2)


def batch_normalization_training(own):
    """BatchNormalization in training, of older versions, and with parameters of another type."""
    for dtype, shape in ((np.float32, (4, 3, 5, 2)), (np.float64, (7, 3)), (np.float16, (2, 3, 9))):
        x, s, b, mean = (f32(*size).astype(dtype) for size in (shape, (3,), (3,), (3,)))
        var = f32(3, low=0.5, high=2).astype(dtype)
        loose = 4e-3 if dtype == np.float16 else 1e-5
        own.add("BatchNormalization", [x, s, b, mean, var], opset=15, outputs=3, reference="onnx", rtol=loose, atol=loose,
                training_mode=1, momentum=0.75, epsilon=0.01)
        own.add("BatchNormalization", [x, s, b, mean, var], opset=15, reference="onnx", rtol=loose, atol=loose, epsilon=0.01)
    x, s, b, mean = f32(4, 3, 5), f32(3), f32(3), f32(3)
    var = f32(3, low=0.5, high=2)
    m, v = x.mean((0, 2)), x.var((0, 2))
    y = (x - m[:, None]) / np.sqrt(v + 1e-5)[:, None] * s[:, None] + b[:, None]
    trained = [y, mean * 0.9 + m * 0.1, var * 0.9 + v * 0.1, m, v]
    own.add("BatchNormalization", [x, s, b, mean, var], opset=6, outputs=5, reference=[a.astype(np.float32) for a in trained])
    own.add("BatchNormalization", [x, s, b, mean, var], opset=9, outputs=5, reference=[a.astype(np.float32) for a in trained])
    places = [f32(3, 5) for _ in range(3)] + [f32(3, 5, low=0.5, high=2)]
    y = (x - places[2]) / np.sqrt(places[3] + 1e-5) * places[0] + places[1]
    own.add("BatchNormalization", [x, *places], opset=7, reference=[y.astype(np.float32)], spatial=0)
    half = [a.astype(np.float16) for a in (f32(2, 3, 4),)] + [s, b, mean, var]  # the types may differ since version 15
    own.add("BatchNormalization", half, opset=15, reference="onnx", rtol=2e-3, atol=2e-3)


def instance_normalization(own):
    own.add("InstanceNormalization", [f32(2, 3, 7, 5), f32(3), f32(3)], epsilon=1e-3)


def group_normalization(own):
    x = f32(3, 6, 7, 5)
    own.add("GroupNormalization", [x, f32(3), f32(3)], opset=18, num_groups=3, epsilon=1e-2)
    own.add("GroupNormalization", [x, f32(6), f32(6)], opset=21, num_groups=2)
    own.add("GroupNormalization", [f32(2, 6), f32(6), f32(6)], opset=21, num_groups=2, reference="onnx")


def group_norm(x, gamma, beta, groups, silu, last):
    x = x.astype(np.float64)
    x = np.moveaxis(x, -1, 1) if last else x
    grouped = x.reshape(x.shape[0], groups, -1)
    y = (grouped - grouped.mean(2, keepdims=True)) / np.sqrt(grouped.var(2, keepdims=True) + 1e-5)
    view = (1, -1) + (1,) * (x.ndim - 2)
    y = y.reshape(x.shape) * gamma.reshape(view) + beta.reshape(view)
    y = y / (1 + np.exp(-y)) if silu else y
    return np.moveaxis(y, 1, -1) if last else y


def contrib_group_normalization(own):
    """GroupNorm and SkipGroupNorm, which ONNX Runtime has only for GPUs."""
    add = lambda op, inputs, wanted, **more: own.microsoft(op, inputs, reference=wanted, rtol=2e-3 if inputs[0].itemsize == 2 else 1e-4,  # noqa: E731
                                                           atol=4e-3 if inputs[0].itemsize == 2 else 1e-5, **more)
    for kind in (np.float32, np.float16):
        for shape, groups, last in (((2, 5, 7, 24), 4, 1), ((1, 40, 40, 32), 32, 1), ((2, 6, 5, 3), 3, 0), ((1, 16, 45, 40), 1, 0), ((3, 9, 8), 2, 1)):
            channels = shape[-1] if last else shape[1]
            x, gamma, beta = f32(*shape).astype(kind) + kind(1), f32(channels), f32(channels)
            for silu in (0, 1):
                more = {"groups": groups, "activation": silu, "channels_last": last}
                add("GroupNorm", [x, gamma, beta], [group_norm(x, gamma, beta, groups, silu, last).astype(kind)], **more)
            for skip_shape in (shape, (shape[0], channels), (shape[0], 1, 1, channels) if last else (shape[0], channels, 1, 1)):
                skip, bias = f32(*skip_shape).astype(kind), f32(channels).astype(kind)
                wide = lambda v: v.astype(np.float32)  # noqa: E731
                view = wide(skip)
                if skip_shape != shape:
                    view = view.reshape((shape[0],) + (1,) * (len(shape) - 2) + (channels,) if last else (shape[0], channels) + (1,) * (len(shape) - 2))
                total = wide(x) + view
                add("SkipGroupNorm", [x, gamma, beta, skip],
                    [group_norm(total, gamma, beta, groups, 1, last).astype(kind), total.astype(kind)], outputs=2, activation=1, groups=groups,
                    channels_last=last)
                total = total + wide(bias).reshape((-1,) if last else (-1,) + (1,) * (len(shape) - 2))
                add("SkipGroupNorm", [x, gamma, beta, skip, bias], [group_norm(total, gamma, beta, groups, 0, last).astype(kind)], activation=0,
                    groups=groups, channels_last=last)
    refuse = lambda inputs, why, op="GroupNorm", **more: own.refuse(op, inputs, why, domain="com.microsoft", opset=1, activation=0, **more)  # noqa: E731
    refuse([f32(1, 3, 4, 6), f32(6), f32(6)], "multiple of 'groups'", groups=4)
    refuse([f32(1, 3, 4, 6), f32(5), f32(6)], "one gamma and one beta", groups=2)
    refuse([f32(1, 3, 4, 6), f32(6), f32(6), f32(1, 3)], "shape of X or one value for each channel", "SkipGroupNorm", groups=2)


def lrn(x, size, alpha, beta, bias):  # ONNX Runtime supports only odd sizes; the reference of ONNX omits channels
    squares = np.stack([(x[:, max(0, c - (size - 1) // 2):c + size // 2 + 1] ** 2).sum(1) for c in range(x.shape[1])], 1)
    return (x / (bias + alpha / size * squares) ** beta).astype(np.float32)


def local_response_normalization(own):
    x = f32(3, 6, 7, 5)
    for size in (1, 3):
        own.add("LRN", [x], size=size, alpha=0.2, beta=0.75, bias=1.5)
    own.add("LRN", [x], size=5, alpha=0.2, beta=0.6)
    own.add("LRN", [x], size=4, alpha=0.2, beta=0.6, bias=2.0, reference=[lrn(x, 4, 0.2, 0.6, 2.0)])


def mean_variance_and_lp_normalization(own):
    x = f32(3, 6, 7, 5)
    own.add("MeanVarianceNormalization", [x])
    own.add("MeanVarianceNormalization", [x], axes=[1, 3], reference="onnx")
    for axis in (0, 1, -1):
        own.add("LpNormalization", [x], axis=axis, p=2)
        own.add("LpNormalization", [x], axis=axis, p=1)


def skip_and_embed_layer_normalization(own):
    x, s, g = f32(2, 5, 37), f32(2, 5, 37), [f32(37) for _ in range(3)]
    own.microsoft("SkipLayerNormalization", [x, s, *g[:2]], epsilon=1e-5)
    own.microsoft("SkipLayerNormalization", [x, f32(5, 37), g[0], None, g[2]], outputs=1)
    own.microsoft("SkipLayerNormalization", [x, f32(1, 5, 37), g[0], g[1], g[2]])
    own.microsoft("SkipSimplifiedLayerNormalization", [x, s, g[0]], epsilon=1e-6)
    own.microsoft("SkipSimplifiedLayerNormalization", [x, s, g[0], g[1]])
    own.add("SimplifiedLayerNormalization", [x, g[0]], epsilon=1e-6)
    words, at, segments = f32(30, 24), f32(12, 24), f32(2, 24)
    ids = i32(3, 7, high=30)
    own.microsoft("EmbedLayerNormalization", [ids, i32(3, 7), words, at, segments, f32(24), f32(24), i32(3, 7)], outputs=2, epsilon=1e-6, constants=(2, 3, 4, 5, 6))
    own.microsoft("EmbedLayerNormalization", [ids, None, words, at, None, f32(24), f32(24), None, i32(3, 7, high=12)], outputs=2, constants=(2, 3, 5, 6))


def skip_of_other_rows(own):
    """A skip whose rows are a divisor of the input's, but which does not broadcast from the left."""
    own.microsoft("SkipLayerNormalization", [f32(2, 3, 8), f32(1, 3, 8), f32(8)])
    own.microsoft("SkipLayerNormalization", [f32(2, 3, 8), f32(3, 8), f32(8)])
    own.refuse("SkipLayerNormalization", [f32(2, 3, 8), f32(2, 1, 8), f32(8)], "skip does not broadcast", opset=1, domain="com.microsoft")


def omitted_result(own):
    """Only the statistics are outputs: the kernel used to write the omitted result."""
    for dtype, kind in [(np.float32, T.FLOAT), (np.float16, T.FLOAT16)]:
        x, scale = f32(3, 5).astype(dtype), f32(5).astype(dtype)
        node = helper.make_node("LayerNormalization", ["x", "scale"], ["", "mean"])
        graph = helper.make_graph([node], "omitted", [helper.make_tensor_value_info(n, kind, a.shape) for n, a in [("x", x), ("scale", scale)]],
                                  [helper.make_empty_tensor_value_info("mean")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        mean = x.astype(np.float32).mean(1, keepdims=True)
        own.model("omitted", model, [("x", x), ("scale", scale)], [mean], rtol=1e-3, op="LayerNormalization")


CASES = [
    softmax, layer_normalization, layer_and_rms_normalization, batch_normalization, batch_normalization_training,
    instance_normalization, group_normalization, contrib_group_normalization, local_response_normalization, mean_variance_and_lp_normalization,
    skip_and_embed_layer_normalization, skip_of_other_rows, omitted_result]
