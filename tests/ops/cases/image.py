# SPDX-License-Identifier: Apache-2.0
"""Images: resizing, sampling, cropping, columns."""
import numpy as np
from common import f32, i64, rng

EMPTY = np.zeros(0, np.float32)


def scales(*values):
    return np.array(values, np.float32)


def resize(own):
    x = f32(2, 3, 7, 5)
    places = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
    for mode in ("nearest", "linear", "cubic"):
        for place in places:
            own.add("Resize", [x, None, None, i64(2, 3, 11, 13)], constants=(3,), opset=13, mode=mode, coordinate_transformation_mode=place)
            own.add("Resize", [x, None, None, i64(2, 3, 3, 4)], constants=(3,), opset=13, mode=mode, coordinate_transformation_mode=place)
        own.add("Resize", [x, None, scales(1, 1, 2, 2)], opset=13, mode=mode, constants=(2,))
        own.add("Resize", [x, None, scales(1, 1, 0.6, 2.4)], opset=19, mode=mode, coordinate_transformation_mode="half_pixel_symmetric", reference="onnx")
        roi = np.array([0, 0, 0.2, -0.1, 1, 1, 0.7, 1.2], np.float32)
        own.add("Resize", [x, roi, None, i64(2, 3, 6, 9)], constants=(3,), opset=13, mode=mode, coordinate_transformation_mode="tf_crop_and_resize",
                extrapolation_value=1.5, reference="onnx")
    for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        own.add("Resize", [x, None, None, i64(2, 3, 14, 3)], constants=(3,), opset=13, mode="nearest", nearest_mode=rounding)
    for dtype in (np.uint8, np.int32, np.float64, np.float16):
        y = (rng.uniform(0, 100, (1, 2, 6, 9))).astype(dtype)
        own.add("Resize", [y, None, scales(1, 1, 2, 2)], opset=13, mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric", reference="onnx")
        # weights of quarters, so that halves are exact, and integers are rounded alike
        own.add("Resize", [y, None, None, i64(1, 2, 12, 18)], constants=(3,), opset=19, mode="linear", reference="onnx", rtol=1e-3)
    own.add("Resize", [np.array(["a", "bb", "c"], object), None, scales(2)], opset=13, mode="nearest", reference=[np.array(["a", "a", "bb", "bb", "c", "c"], object)])
    for mode in ("linear", "cubic"):
        own.add("Resize", [f32(1, 2, 17, 23), None, scales(1, 1, 0.3, 0.45)], opset=19, mode=mode, antialias=1, reference="onnx")
        own.add("Resize", [f32(1, 2, 17, 23), None, None, i64(29, 6)], constants=(3,), opset=19, mode=mode, antialias=1, exclude_outside=1, axes=[2, 3], reference="onnx")
        own.add("Resize", [f32(5, 6, 7), None, None, i64(8, 3, 9)], constants=(3,), opset=19, mode=mode, reference="onnx")
        own.add("Resize", [f32(2, 4, 5, 3), None, None, i64(9, 8)], constants=(3,), opset=19, mode=mode, axes=[1, 2], reference="onnx")
        own.add("Resize", [f32(31), None, scales(1.7)], opset=19, mode=mode, reference="onnx")
        own.add("Resize", [f32(2, 3, 4, 5, 6), None, scales(1, 1, 2, 1.5, 0.8)], opset=19, mode=mode, reference="onnx")
    own.add("Resize", [x, None, None, i64(20, 9)], constants=(3,), opset=18, mode="linear", axes=[3, 2], keep_aspect_ratio_policy="not_larger", reference="onnx")
    own.add("Resize", [x, EMPTY, EMPTY, i64(2, 3, 9, 8)], constants=(3,), opset=11, mode="cubic", cubic_coeff_a=-0.5)
    own.add("Resize", [x, scales(1, 1, 2, 3)], opset=10, mode="nearest")
    own.add("Resize", [x, scales(1, 1, 0.6, 0.6)], opset=10, mode="linear")
    own.add("Upsample", [x, scales(1, 1, 2, 3)], opset=9, mode="nearest")
    own.add("Upsample", [x, scales(1, 1, 2, 3)], opset=9, mode="linear")
    own.add("Upsample", [x], opset=7, mode="nearest", scales=[1.0, 1.0, 1.5, 2.0])


def sampling(own):
    x, grid = f32(2, 3, 5, 7), f32(2, 4, 6, 2, low=-1.4, high=1.4)
    for padding in ("zeros", "border", "reflection"):
        for mode, old in (("nearest", "nearest"), ("linear", "bilinear"), ("cubic", "bicubic")):
            for align in (0, 1):
                own.add("GridSample", [x, grid], opset=20, mode=mode, padding_mode=padding, align_corners=align,
                        reference="ort" if mode == "cubic" else "onnx")
        own.add("GridSample", [f32(1, 2, 3, 4, 5), f32(1, 2, 3, 2, 3, low=-1.3, high=1.3)], opset=20, mode="linear", padding_mode=padding)
        own.add("GridSample", [x, grid], opset=16, mode=old, padding_mode=padding)
    own.add("GridSample", [x.astype(np.float64), grid.astype(np.float64)], opset=20, mode="linear", reference="onnx")
    own.add("GridSample", [(x * 50).astype(np.uint8), grid], opset=20, mode="nearest", reference="onnx")
    own.add("AffineGrid", [f32(2, 2, 3), i64(2, 3, 4, 5)], opset=20, reference="onnx")
    own.add("AffineGrid", [f32(2, 3, 4), i64(2, 3, 4, 5, 2)], opset=20, align_corners=1, reference="onnx")


def cropping(own):
    own.add("CenterCropPad", [f32(5, 8, 3), i64(7, 3)], opset=18, axes=[0, -2], reference="onnx")
    own.add("CenterCropPad", [rng.integers(-9, 9, (4, 5)).astype(np.int16), i64(3, 8)], opset=18, reference="onnx")
    own.add("Col2Im", [f32(2, 18, 25), i64(6, 7), i64(2, 3)], opset=18)
    own.add("Col2Im", [f32(1, 12, 9), i64(6, 9), i64(3, 2)], opset=18, strides=[2, 3], pads=[1, 0, 0, 2], dilations=[1, 2], reference="onnx")


def cases(own):
    resize(own)
    sampling(own)
    cropping(own)
