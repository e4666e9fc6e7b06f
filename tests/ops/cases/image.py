# SPDX-License-Identifier: Apache-2.0
"""Cases of resizing, sampling, regions and boxes, and of decoding and encoding of images."""
import functools
import io

import numpy as np
import onnx
from PIL import Image

from .common import T, f32, helper, i64, rng, run_ort

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
        # the weights are multiples of 1/4, so that float16 is exact and integers round the same way
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


def upsample(own):
    x = f32(2, 3, 7, 5)
    own.add("Upsample", [x, scales(1, 1, 2, 3)], opset=9, mode="nearest")
    own.add("Upsample", [x, scales(1, 1, 2, 3)], opset=9, mode="linear")
    own.add("Upsample", [x], opset=7, mode="nearest", scales=[1.0, 1.0, 1.5, 2.0])
    x = f32(2, 3, 4, 5)
    own.add("Upsample", [x], opset=1, height_scale=2.0, width_scale=3.0, mode="nearest", reference=[x.repeat(2, 2).repeat(3, 3)])
    own.add("Upsample", [f32(1, 2, 3, 4)], opset=7, scales=[1.0, 1.0, 2.5, 1.7], mode="linear")


def grid_sample_and_affine_grid(own):
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


def roi_align_and_max_roi_pool(own):
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


def roi_of_types(own):
    """Many channels and samples; 16-bit floats, doubles."""
    x = f32(2, 70, 14, 13)
    rois = np.array([[0, 0, 12, 11], [2.5, 1.2, 11, 8.3], [-3, 2, 40, 30], [13, 14, 20, 20]], np.float32)
    for mode in ("avg", "max"):
        own.add("RoiAlign", [x, rois, i64(0, 1, 1, 0)], opset=16, mode=mode, output_height=7, output_width=7, spatial_scale=0.9)
        own.add("RoiAlign", [x, rois, i64(0, 1, 1, 0)], opset=16, mode=mode, output_height=1, output_width=1, sampling_ratio=11)
    boxes = np.concatenate([np.array([[0], [1], [1], [0]], np.float32), np.round(np.abs(rois))], axis=1)
    own.add("MaxRoiPool", [x, boxes], pooled_shape=[7, 7], spatial_scale=0.9)
    own.add("MaxRoiPool", [x[:, :3], boxes], pooled_shape=[17, 1])
    for kind in (np.float16, np.float64):
        own.add("MaxRoiPool", [x[:, :2].astype(kind), boxes.astype(kind)], pooled_shape=[3, 4], reference=[
            run_ort_pool(x[:, :2].astype(kind).astype(np.float32), boxes).astype(kind)])


def run_ort_pool(x, boxes):
    node = helper.make_node("MaxRoiPool", ["x", "r"], ["y"], pooled_shape=[3, 4])
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(n, T.FLOAT, v.shape) for n, v in (("x", x), ("r", boxes))],
                              [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return run_ort(onnx.shape_inference.infer_shapes(model), {"x": x, "r": boxes})[0]


def crop_and_resize(own):
    x = f32(2, 3, 9, 12)
    rois = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [0.8, 0.9, 0.1, 0.2], [-0.3, 0.4, 1.2, 0.6], [0.5, 0.5, 0.5, 0.5]], np.float32)
    images = np.array([0, 1, 1, 0, 1], np.int32)
    for mode in ("bilinear", "nearest"):
        for size in ([4, 5], [1, 3], [6, 1], [20, 30]):
            own.microsoft("CropAndResize", [x, rois, images, np.array(size, np.int32)], mode=mode, extrapolation_value=2.5)
    own.microsoft("CropAndResize", [x, rois, images, np.array([3, 3], np.int32)], constants=(3,))
    refuse = lambda inputs, why, **more: own.refuse("CropAndResize", inputs, why, domain="com.microsoft", opset=1, **more)  # noqa: E731
    refuse([x, rois, images + 1, np.array([3, 3], np.int32)], "the image of region 1 is out of range: expected less than 2, found 2")
    refuse([x, rois, images[:2], np.array([3, 3], np.int32)], "one int32 per region")
    refuse([x, rois, images, np.array([3, 0], np.int32)], "crop_size of two positive integers")
    refuse([x, rois, images, np.array([3, 3], np.int32)], "found 'cubic'", mode="cubic")


def non_max_suppression(own):
    boxes = np.sort(rng.uniform(0, 10, (2, 40, 2, 2)), axis=2).astype(np.float32).reshape(2, 40, 4)
    scores = rng.uniform(0, 1, (2, 3, 40)).astype(np.float32)
    for center in (0, 1):
        for limit in (5, 100):
            own.add("NonMaxSuppression", [boxes, scores, i64(limit), np.array([0.3], np.float32), np.array([0.2], np.float32)],
                    opset=11, center_point_box=center)
    own.add("NonMaxSuppression", [boxes, scores, i64(3)], opset=11)
    own.add("NonMaxSuppression", [boxes, scores], opset=11)


def non_max_suppression_without_boxes(own):
    own.add("NonMaxSuppression", [np.zeros((1, 0, 4), np.float32), np.zeros((1, 1, 0), np.float32), i64(3)], opset=11)
    own.add("NonMaxSuppression", [np.zeros((1, 0, 4), np.float32), np.zeros((1, 1, 0), np.float32), i64(3)], opset=10, constants=[2])


def encoded(image, kind, **options):
    out = io.BytesIO()
    image.save(out, format=kind, **options)
    return np.frombuffer(out.getvalue(), np.uint8)


def image_decoder(own):
    """Encoded images of every format, against Pillow."""
    ramp = np.add.outer(np.arange(19) * 5, np.arange(23) * 3)
    color = np.stack([ramp, 255 - ramp, ramp // 2 + rng.integers(0, 9, ramp.shape)], -1).astype(np.uint8)
    full = Image.fromarray(color)
    kinds = [("BMP", full, {}), ("BMP", full.convert("L"), {}), ("BMP", full.convert("1"), {}), ("BMP", full.quantize(13), {}),
             ("PPM", full, {}), ("PPM", full.convert("L"), {}), ("PPM", full.convert("1"), {}),
             ("PNG", full, {}), ("PNG", full.convert("L"), {}), ("PNG", full.convert("RGBA"), {}), ("PNG", full.quantize(9), {}),
             ("JPEG", full, {"quality": 90}), ("JPEG", full.convert("L"), {}), ("JPEG", full, {"progressive": True, "subsampling": 0}),
             ("WEBP", full, {"lossless": True}), ("TIFF", full, {}), ("TIFF", full.convert("L"), {}),
             ("TIFF", full, {"compression": "tiff_lzw"}), ("JPEG2000", full, {})]
    for kind, image, options in kinds:
        data = encoded(image, kind, **options)
        rgb = np.array(Image.open(io.BytesIO(data.tobytes())).convert("RGB"))
        own.add("ImageDecoder", [data], opset=20, reference=[rgb])
    data = encoded(full, "PNG")
    own.add("ImageDecoder", [data], opset=20, pixel_format="BGR", reference=[color[:, :, ::-1]])
    own.add("ImageDecoder", [data], opset=20, pixel_format="Grayscale", reference=[np.array(full.convert("L"))[:, :, None]])


EXTENSIONS = "com.microsoft.extensions"


def extensions(own):
    """DecodeImage and EncodeImage of onnxruntime-extensions."""
    color = rng.integers(0, 256, (5, 7, 3)).astype(np.uint8)
    flat = np.full((16, 16, 3), 128, np.uint8)
    gray = color[:, :, 0]
    own.add("DecodeImage", [encoded(Image.fromarray(color), "PNG")], opset=1, domain=EXTENSIONS, reference=[color[:, :, ::-1]])
    own.add("DecodeImage", [encoded(Image.fromarray(color), "PNG")], opset=1, domain=EXTENSIONS, color_space="rgb", reference=[color])
    own.add("DecodeImage", [encoded(Image.fromarray(gray), "PNG")], opset=1, domain=EXTENSIONS, reference=[np.repeat(gray[:, :, None], 3, 2)])
    jpeg = encoded(Image.fromarray(color), "JPEG")
    own.add("DecodeImage", [jpeg], opset=1, domain=EXTENSIONS, color_space="rgb", reference=[np.array(Image.open(io.BytesIO(jpeg.tobytes())))])
    for kind, picture in (("png", color), ("jpg", flat)):
        for colors in ("bgr", "rgb"):
            nodes = [helper.make_node("EncodeImage", ["x"], ["file"], domain=EXTENSIONS, format=kind, color_space=colors),
                     helper.make_node("DecodeImage", ["file"], ["y"], domain=EXTENSIONS, color_space="rgb")]
            graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", T.UINT8, ["h", "w", 3])], [helper.make_empty_tensor_value_info("y")])
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(EXTENSIONS, 1)], ir_version=8)
            own.model("", model, [("x", picture)], [picture if colors == "rgb" else picture[:, :, ::-1]], op="EncodeImage")
    refuse = functools.partial(own.refuse, opset=1, domain=EXTENSIONS)
    refuse("DecodeImage", [color[0, 0]], "unknown image format")
    refuse("DecodeImage", [jpeg], "attribute 'color_space': expected bgr or rgb, found 'gray'", color_space="gray")
    refuse("DecodeImage", [jpeg[:200]], "cannot decode a JPEG image")
    refuse("DecodeImage", [color.astype(np.float32)], "does not support")
    refuse("EncodeImage", [color], "attribute 'format': expected jpg or png, found 'gif'", format="gif")
    refuse("EncodeImage", [color], "attribute 'color_space'", format="png", color_space="")
    refuse("EncodeImage", [gray], "expected an image [H,W,3]", format="png")
    refuse("EncodeImage", [color[:0]], "expected an image [H,W,3]", format="png")
    refuse("EncodeImage", [color.astype(np.int8)], "does not support", format="png")


CASES = [
    resize, upsample, grid_sample_and_affine_grid, roi_align_and_max_roi_pool, roi_of_types, crop_and_resize, non_max_suppression,
    non_max_suppression_without_boxes, image_decoder, extensions]
