# SPDX-License-Identifier: Apache-2.0
"""Pools of every type, regions, boxes, deformable convolutions, padding."""
import numpy as np
from common import f32, i64, rng


def pools(own):
    x = f32(2, 3, 13, 37)
    for dtype, near in ((np.float32, 1e-4), (np.float64, 1e-6), (np.float16, 2e-3)):
        y = x.astype(dtype)
        reference = "ort" if dtype == np.float32 else "onnx"
        for attrs in ({"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]},
                      {"kernel_shape": [3, 3], "strides": [1, 3], "dilations": [2, 3]},
                      {"kernel_shape": [5, 4], "strides": [2, 1], "ceil_mode": 1}):
            own.add("MaxPool", [y], opset=12, rtol=near, reference=reference, **attrs)
            own.add("AveragePool", [y], opset=19, rtol=near, atol=1e-3 if dtype == np.float16 else 1e-6, reference=reference, **attrs)
        if dtype == np.float32:
            for p in (1, 2, 3):
                own.add("LpPool", [y], opset=18, p=p, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1])
                own.add("GlobalLpPool", [y], opset=2, p=p)
        own.add("GlobalAveragePool", [y], rtol=near, atol=1e-3 if dtype == np.float16 else 1e-6, reference=reference)
        own.add("GlobalMaxPool", [y], reference=reference)
    own.add("AveragePool", [f32(1, 2, 9, 40)], opset=19, kernel_shape=[3, 5], strides=[2, 2], pads=[1, 2, 1, 2], count_include_pad=1, ceil_mode=1)
    for dtype in (np.int8, np.uint8):
        own.add("MaxPool", [rng.integers(-90 if dtype == np.int8 else 0, 90, (1, 2, 9, 21)).astype(dtype)], opset=12, kernel_shape=[3, 3], strides=[2, 1], pads=[1, 1, 0, 1])
    own.add("MaxPool", [f32(1, 2, 5, 6)], outputs=2, kernel_shape=[2, 3], strides=[2, 1], storage_order=1)
    for extents in ((8, 8), (10, 4), (6, 8), (12, 40), (2, 2)):
        own.add("MaxPool", [f32(3, 5, *extents)], kernel_shape=[2, 2], strides=[2, 2])
    own.add("MaxPool", [f32(1, 3, 31)], kernel_shape=[4], strides=[2])
    own.add("MaxUnpool", [f32(1, 1, 2, 3), i64(0, 3, 5, 12, 15, 17).reshape(1, 1, 2, 3)], opset=11, kernel_shape=[2, 2], strides=[2, 2])


def regions(own):
    x = f32(2, 3, 9, 12)
    rois = np.array([[0, 0, 7, 5], [2.5, 1.2, 11, 8.3], [-3, 2, 4, 30], [5, 5, 5, 5]], np.float32)
    for mode in ("avg", "max"):
        for place in ("half_pixel", "output_half_pixel"):
            own.add("RoiAlign", [x, rois, i64(0, 1, 1, 0)], opset=16, mode=mode, coordinate_transformation_mode=place,
                    output_height=3, output_width=2, sampling_ratio=2, spatial_scale=0.8)
    own.add("RoiAlign", [x, rois, i64(1, 0, 1, 0)], opset=10, output_height=2, output_width=4)
    own.add("RoiAlign", [x.astype(np.float64), rois.astype(np.float64), i64(1, 0, 1, 0)], opset=16, output_height=2, output_width=4, reference="onnx")
    boxes = np.array([[0, 0, 0, 7, 5], [1, 2, 1, 11, 8], [1, 3, 2, 4, 30], [0, 20, 20, 22, 21]], np.float32)
    own.add("MaxRoiPool", [x, boxes], pooled_shape=[2, 3], spatial_scale=0.5)
    own.add("MaxRoiPool", [x, boxes], pooled_shape=[4, 2])


def suppression(own):
    boxes = np.sort(rng.uniform(0, 10, (2, 40, 2, 2)), axis=2).astype(np.float32).reshape(2, 40, 4)
    scores = rng.uniform(0, 1, (2, 3, 40)).astype(np.float32)
    for center in (0, 1):
        for limit in (5, 100):
            own.add("NonMaxSuppression", [boxes, scores, i64(limit), np.array([0.3], np.float32), np.array([0.2], np.float32)],
                    opset=11, center_point_box=center)
    own.add("NonMaxSuppression", [boxes, scores, i64(3)], opset=11)
    own.add("NonMaxSuppression", [boxes, scores], opset=11)


def deformed(own):
    x, w = f32(2, 4, 7, 9), f32(6, 2, 3, 2)
    offset, mask = f32(2, 2 * 2 * 6, 4, 10), f32(2, 2 * 6, 4, 10, low=0, high=1)
    for dtype in (np.float32, np.float64):
        own.add("DeformConv", [v.astype(dtype) for v in (x, w, offset, f32(6), mask)], opset=19, group=2, offset_group=2,
                strides=[2, 1], pads=[1, 1, 1, 1])
    own.add("DeformConv", [x, f32(5, 4, 3, 3), f32(2, 18, 3, 7, low=-1)], opset=19, dilations=[2, 1])


def padding(own):
    x = f32(2, 3, 4, 5)
    pads = i64(0, 1, 2, 3, 0, 0, 1, 2)
    for dtype in (np.float32, np.uint8, np.float64, np.float16):
        y = (x * 20).astype(np.int32).astype(dtype)
        for mode in ("constant", "edge", "reflect", "wrap"):
            own.add("Pad", [y, pads], opset=19, mode=mode, reference="onnx")
        own.add("Pad", [y, pads, np.array(3, dtype)], opset=13)
    own.add("Pad", [x, i64(-1, 2, 1, -2), None, i64(1, 3)], opset=18)
    own.add("Pad", [x, i64(3, 1, 0, 0), np.float32(2.5), i64(0, 2)], opset=18)
    own.add("Pad", [x], opset=1, paddings=[0, 0, 1, 2, 0, 0, 2, 0], value=1.5,
            reference=[np.pad(x, [(0, 0), (0, 0), (1, 2), (2, 0)], constant_values=1.5)])
    own.add("Upsample", [x], opset=1, height_scale=2.0, width_scale=3.0, mode="nearest", reference=[x.repeat(2, 2).repeat(3, 3)])
    own.add("Pad", [x], opset=2, pads=[0, 0, 1, 2, 0, 0, 2, 0], value=1.5)
    for dtype in (np.float32, np.uint8, np.int64, np.float16):
        a, b = (f32(3, 1, 70) * 20).astype(dtype), (f32(4, 70) * 20).astype(dtype)
        c = rng.integers(0, 2, (3, 4, 70)) > 0
        own.add("Where", [c, a, b], reference=[np.where(c, a, b)])
        own.add("Where", [c, a, dtype(7)], reference=[np.where(c, a, dtype(7))])
        own.add("Where", [c, dtype(7), b], reference=[np.where(c, dtype(7), b)])
        own.add("Where", [c[:, :, :1], a, b], reference=[np.where(c[:, :, :1], a, b)])


def small_images(own):
    """Many at once, so that they share vectors; the last vector is filled in part."""
    for batch in (32, 37, 61):
        own.add("Conv", [f32(batch, 9, 4, 5), f32(13, 9, 3, 3), f32(13)], pads=[1, 1, 1, 1], rtol=1e-3, atol=1e-4)
        own.add("Conv", [f32(batch, 8, 5, 3), f32(11, 8, 3, 3)], pads=[2, 1, 1, 2], strides=[2, 1], rtol=1e-3, atol=1e-4)
        own.add("Conv", [f32(batch, 6, 7, 7), f32(8, 3, 3, 3)], pads=[0, 1, 1, 0], group=2, rtol=1e-3, atol=1e-4)
    own.add("Conv", [f32(3, 5, 40), f32(7, 5, 5)], pads=[2, 1], strides=[3], rtol=1e-3, atol=1e-4)
    for k, stride in ((3, 1), (3, 2), (5, 1), (5, 3), (2, 2)):
        own.add("Conv", [f32(2, 5, 23, 37), f32(5, 1, k, k), f32(5)], group=5, pads=[1, 2, 0, 1], strides=[stride, stride])
        own.add("Conv", [f32(1, 4, 12, 50), f32(8, 1, k, k)], group=4, dilations=[2, 2], strides=[1, stride])
    own.add("ConvTranspose", [f32(2, 6, 9, 21), f32(6, 5, 4, 3), f32(10)], group=2, strides=[3, 2], pads=[1, 0, 2, 1], dilations=[1, 2], rtol=1e-3, atol=1e-4)
    own.add("ConvTranspose", [f32(1, 8, 60, 70), f32(8, 60, 2, 2), f32(60)], strides=[2, 2], constants=(1, 2), rtol=1e-3, atol=1e-4)
    for dtype in (np.float64, np.float16):
        near = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 5e-3, "atol": 5e-3}
        image, kernel = f32(2, 4, 7, 5).astype(dtype), f32(6, 2, 3, 2).astype(dtype)
        own.add("Conv", [image, kernel, f32(6).astype(dtype)], group=2, pads=[1, 0, 2, 1], strides=[2, 1], dilations=[1, 2], reference="onnx", **near)
        own.add("ConvTranspose", [image, f32(4, 3, 3, 2).astype(dtype), f32(3).astype(dtype)], pads=[1, 0, 0, 1], strides=[2, 3], reference="onnx", **near)
    own.add("ConvTranspose", [f32(1, 3, 3, 4, 5), f32(3, 2, 3, 2, 3)], strides=[2, 1, 2], pads=[1, 0, 1, 0, 1, 0])


def cases(own):
    small_images(own)
    pools(own)
    regions(own)
    suppression(own)
    deformed(own)
    padding(own)
