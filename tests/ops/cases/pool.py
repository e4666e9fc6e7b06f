# SPDX-License-Identifier: Apache-2.0
"""Cases of pools."""
import numpy as np

from .common import f32, i64, rng


def max_pool_and_average_pool(own):
    x = f32(2, 6, 11, 9)
    for op in ("MaxPool", "AveragePool"):
        own.add(op, [x], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1])
        own.add(op, [x], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
        own.add(op, [x], kernel_shape=[2, 3], auto_pad="SAME_UPPER")
        own.add(op, [f32(2, 3, 20)], kernel_shape=[4], strides=[3])
        own.add(op, [f32(1, 2, 6, 7, 8)], kernel_shape=[2, 3, 2])
    own.add("AveragePool", [x], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    own.add("MaxPool", [x], kernel_shape=[3, 3], dilations=[2, 2], outputs=2)
    x = f32(2, 3, 13, 37)
    for dtype, near in ((np.float32, 1e-4), (np.float64, 1e-6), (np.float16, 2e-3)):
        y = x.astype(dtype)
        reference = "ort" if dtype == np.float32 else "onnx"
        for attrs in ({"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]},
                      {"kernel_shape": [3, 3], "strides": [1, 3], "dilations": [2, 3]},
                      {"kernel_shape": [5, 4], "strides": [2, 1], "ceil_mode": 1}):
            own.add("MaxPool", [y], opset=12, rtol=near, reference=reference, **attrs)
            own.add("AveragePool", [y], opset=19, rtol=near, atol=1e-3 if dtype == np.float16 else 1e-6, reference=reference, **attrs)
    own.add("AveragePool", [f32(1, 2, 9, 40)], opset=19, kernel_shape=[3, 5], strides=[2, 2], pads=[1, 2, 1, 2], count_include_pad=1, ceil_mode=1)
    for dtype in (np.int8, np.uint8):
        own.add("MaxPool", [rng.integers(-90 if dtype == np.int8 else 0, 90, (1, 2, 9, 21)).astype(dtype)], opset=12, kernel_shape=[3, 3], strides=[2, 1], pads=[1, 1, 0, 1])
    own.add("MaxPool", [f32(1, 2, 5, 6)], outputs=2, kernel_shape=[2, 3], strides=[2, 1], storage_order=1)
    for size in ((8, 8), (10, 4), (6, 8), (12, 40), (2, 2)):
        own.add("MaxPool", [f32(3, 5, *size)], kernel_shape=[2, 2], strides=[2, 2])
    own.add("MaxPool", [f32(1, 3, 31)], kernel_shape=[4], strides=[2])


def pool_windows(own):
    """Windows of each size and stride."""
    for op in ("MaxPool", "AveragePool"):
        for side, stride in ((3, 1), (3, 2), (5, 1), (2, 1), (3, 3)):
            own.add(op, [f32(1, 3, 11, 43)], kernel_shape=[side, side], strides=[stride, stride], pads=[side // 2] * 4)
        own.add(op, [f32(1, 3, 46, 46)], kernel_shape=[3, 3], strides=[2, 2])
        own.add(op, [f32(1, 3, 21, 21)], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")


def pool_edges(own):
    """Windows that reach beyond the input."""
    # found by fuzzing: a pool with one output took its window for the whole input, although it was dilated or outside of it
    x = f32(3, 3, 2)
    own.add("AveragePool", [x], opset=19, kernel_shape=[2], dilations=[2], pads=[0, 1], reference=[x[:, :, :1]])
    x = f32(2, 3, 2, 2)
    own.add("AveragePool", [x], opset=19, kernel_shape=[1, 4], strides=[2, 1], pads=[0, 0, 0, 2], reference=[x[:, :, :1].mean(3, keepdims=True)])
    own.add("MaxPool", [x], opset=12, kernel_shape=[1, 4], strides=[2, 1], pads=[0, 0, 0, 2], reference=[x[:, :, :1].max(3, keepdims=True)])
    # found by fuzzing: rows without input were miscounted for a stride that equals the dilation, or twice the dilation
    for size, down, apart, pads in ((3, 2, 2, [2, 2, 0, 1]), (3, 2, 2, [3, 1, 0, 1]), (5, 2, 2, [1, 3, 2, 3]), (3, 4, 2, [3, 1, 2, 1]), (3, 3, 3, [2, 1, 2, 1])):
        for height, width in ((9, 5), (8, 22), (13, 70)):
            around = {"strides": [down, 1], "dilations": [apart, 1], "pads": [min(p, 2) for p in pads]}
            own.add("MaxPool", [f32(2, 3, height, width)], kernel_shape=[size, size], **around)
            own.add("AveragePool", [f32(2, 3, height, width)], opset=19, kernel_shape=[size, size], **around)
    # found by fuzzing: the average of a window that contains only padding is 0
    own.add("AveragePool", [f32(2, 7, 1)], opset=19, dilations=[2], kernel_shape=[2], pads=[1, 1], reference=[np.zeros((2, 7, 1), np.float32)])


def lp_pool_and_global_lp_pool(own):
    x = f32(2, 3, 13, 37)
    for p in (1, 2, 3):
        own.add("LpPool", [x], opset=18, p=p, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1])
        own.add("GlobalLpPool", [x], opset=2, p=p)


def global_average_pool_and_global_max_pool(own):
    x = f32(2, 6, 11, 9)
    own.add("GlobalAveragePool", [x])
    own.add("GlobalMaxPool", [x])
    x = f32(2, 3, 13, 37)
    for dtype, near in ((np.float32, 1e-4), (np.float64, 1e-6), (np.float16, 2e-3)):
        y = x.astype(dtype)
        reference = "ort" if dtype == np.float32 else "onnx"
        own.add("GlobalAveragePool", [y], rtol=near, atol=1e-3 if dtype == np.float16 else 1e-6, reference=reference)
        own.add("GlobalMaxPool", [y], reference=reference)


def max_unpool(own):
    own.add("MaxUnpool", [f32(1, 1, 2, 3), i64(0, 3, 5, 12, 15, 17).reshape(1, 1, 2, 3)], opset=11, kernel_shape=[2, 2], strides=[2, 2])


def quantized_pools(own):
    """QLinearAveragePool, QLinearGlobalAveragePool, NhwcMaxPool."""
    for dtype, zeros in ((np.uint8, (120, 131, 117)), (np.int8, (3, -7, 11))):
        byte = lambda *shape: rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)  # noqa: B023,E731
        s, z = [np.float32(v) for v in (0.0213457, 0.0131173, 0.0302711)], [dtype(v) for v in zeros]
        x = byte(2, 3, 7, 9)
        own.microsoft("QLinearGlobalAveragePool", [x, s[0], z[0], s[1], z[1]])
        own.microsoft("QLinearGlobalAveragePool", [x, s[0], z[0], s[1], z[1]], channels_last=1)
        own.microsoft("QLinearAveragePool", [x, s[0], z[0], s[1], z[1]], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
        own.microsoft("QLinearAveragePool", [x, s[0], z[0], s[1], z[1]], kernel_shape=[3, 2], pads=[1, 0, 1, 1], count_include_pad=1)
        own.microsoft("QLinearAveragePool", [x, s[0], z[0], s[1], z[1]], kernel_shape=[3, 2], channels_last=1)
        own.microsoft("NhwcMaxPool", [x], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1])
        for channels in (1, 64, 200, 300):
            x = byte(1, 9, 11, channels)
            own.microsoft("NhwcMaxPool", [x], kernel_shape=[9, 8], pads=[1, 1, 1, 1], atol=0)
            own.microsoft("NhwcMaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], dilations=[2, 1], pads=[1, 1, 1, 1], atol=0)
            own.microsoft("QLinearAveragePool", [x, s[0], z[0], s[1], z[1]], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], channels_last=1, atol=1)
        x = byte(2, 5, 70, 75)
        own.microsoft("QLinearGlobalAveragePool", [x, s[0], z[0], s[1] / 20, z[1]], atol=1)
        own.microsoft("QLinearGlobalAveragePool", [x, s[0], z[0], s[1] / 20, z[1]], channels_last=1, atol=1)
        own.microsoft("QLinearAveragePool", [x, s[0], z[0], s[1], z[1]], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], atol=1)
        own.microsoft("QLinearAveragePool", [byte(1, 3, 50), s[0], z[0], s[1], z[1]], kernel_shape=[4], strides=[3], atol=1)


CASES = [
    max_pool_and_average_pool, pool_windows, pool_edges, lp_pool_and_global_lp_pool,
    global_average_pool_and_global_max_pool, max_unpool, quantized_pools]
