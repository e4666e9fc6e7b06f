# SPDX-License-Identifier: Apache-2.0
"""Convolutions, pools, and resampling of images."""
import numpy as np

from .common import K, W, X, generator, indices, ints, single

# image, output channels, kernel, attributes
CONVOLUTIONS = [
    ((1, 3, 224, 224), 64, (7, 7), {"strides": [2, 2], "pads": [3] * 4}), ((1, 64, 56, 56), 64, (1, 1), {}),
    ((1, 64, 56, 56), 64, (3, 3), {"pads": [1] * 4}), ((1, 128, 28, 28), 128, (3, 3), {"pads": [1] * 4}), ((1, 256, 14, 14), 256, (3, 3), {"pads": [1] * 4}),
    ((1, 512, 7, 7), 512, (3, 3), {"pads": [1] * 4}), ((1, 256, 14, 14), 1024, (1, 1), {}), ((1, 96, 56, 56), 96, (3, 3), {"pads": [1] * 4, "group": 96}),
    ((1, 96, 56, 56), 96, (5, 5), {"pads": [2] * 4, "strides": [2, 2], "group": 96}), ((1, 3, 32, 32), 16, (3, 3), {"pads": [1] * 4}),
    ((1, 16, 7, 7), 16, (3, 3), {"pads": [1] * 4}), ((32, 3, 32, 32), 32, (3, 3), {"pads": [1] * 4}), ((8, 64, 28, 28), 64, (3, 3), {"pads": [1] * 4}),
    ((1, 5, 13, 17), 7, (3, 5), {"pads": [1, 2, 1, 2]}), ((1, 128, 28, 28), 128, (3, 3), {"pads": [1] * 4, "group": 32}),
    ((1, 256, 32, 32), 256, (3, 3), {"pads": [4] * 4, "dilations": [4, 4]}), ((1, 64, 56, 56), 128, (3, 3), {"pads": [1] * 4, "strides": [2, 2]}),
    ((1, 64, 12, 160), 128, (3, 3), {"pads": [1] * 4}), ((1, 1, 28, 28), 8, (5, 5), {}), ((1, 64, 1, 200), 64, (1, 3), {"pads": [0, 1, 0, 1]}),
    ((1, 80, 100), 512, (3,), {"pads": [1, 1]}), ((1, 384, 750), 384, (3,), {"pads": [1, 1]}), ((1, 64, 4000), 64, (3,), {"pads": [16, 16], "dilations": [16]}),
    ((1, 1, 16000), 256, (400,), {"strides": [160]}), ((1, 256, 500), 256, (31,), {"pads": [15, 15], "group": 256}), ((8, 32, 128), 32, (9,), {"pads": [4, 4]}),
    ((1, 3, 16, 56, 56), 32, (3, 3, 3), {"pads": [1] * 6}), ((1, 2048, 1, 1), 512, (1, 1), {}), ((1, 32, 180, 320), 32, (3, 3), {"pads": [1] * 4}),
    ((1, 768, 14, 14), 21, (1, 1), {}), ((1, 3, 224, 224), 768, (16, 16), {"strides": [16, 16]})]


@generator("conv")
def convolutions():
    for image, channels, kernel, attributes in CONVOLUTIONS:
        weights = channels, image[1] // attributes.get("group", 1), *kernel
        for dtype in ("f32", "f16"):
            yield single("Conv", dtype, [X(*image), W(*weights), W(channels)], **attributes)
        if len(kernel) == 2 and attributes.get("group", 1) == 1 and "dilations" not in attributes:
            yield single("FusedConv", "f32", [X(*image), W(*weights), W(channels)], domain="com.microsoft", activation="Relu", **attributes)
    for image, channels, kernel, attributes in CONVOLUTIONS[2:20:4]:
        weights = channels, image[1] // attributes.get("group", 1), *kernel
        yield single("Conv", "f32", [X(*image), X(*weights, low=-0.5, high=0.5)], **attributes)
    for batch, channels, length, width in ((1, 1024, 1, 4), (1, 1024, 128, 4), (4, 256, 64, 3)):
        yield single("CausalConvWithState", "f32", [X(batch, channels, length), W(channels, 1, width), W(channels), X(batch, channels, width - 1)],
                     opset=27, outputs=2)


@generator("conv")
def transposed():
    cases = [((1, 64, 28, 28), 32, (2, 2), {"strides": [2, 2]}), ((1, 256, 14, 14), 128, (4, 4), {"strides": [2, 2], "pads": [1] * 4}),
             ((1, 16, 64, 64), 1, (2, 2), {"strides": [2, 2]}), ((1, 512, 100), 256, (16,), {"strides": [8], "pads": [4, 4]}),
             ((1, 5, 7, 9), 3, (3, 3), {"strides": [2, 1], "pads": [1, 1, 1, 1]}), ((4, 32, 16, 16), 32, (3, 3), {"pads": [1] * 4})]
    for image, channels, kernel, attributes in cases:
        for dtype in ("f32", "f16"):
            yield single("ConvTranspose", dtype, [X(*image), W(image[1], channels, *kernel), W(channels)], **attributes)
    for size in (14, 56):
        yield single("DeformConv", "f32", [X(1, 32, size, size), W(32, 32, 3, 3), X(1, 18, size, size, low=-1, high=1)], opset=22, pads=[1] * 4)
    for size in (28, 64):
        yield single("Col2Im", "f32", [X(1, 64 * 9, (size - 2) ** 2), ints(size, size), ints(3, 3)], note=f"{size}")


POOLS = [((1, 64, 112, 112), (3, 3), {"strides": [2, 2], "pads": [1] * 4}), ((1, 64, 56, 56), (2, 2), {"strides": [2, 2]}),
         ((8, 64, 56, 56), (2, 2), {"strides": [2, 2]}), ((1, 192, 28, 28), (3, 3), {"pads": [1] * 4}), ((1, 256, 20, 20), (5, 5), {"pads": [2] * 4}),
         ((1, 3, 17, 19), (3, 2), {"strides": [2, 3]}), ((1, 64, 1000), (2,), {"strides": [2]}), ((1, 16, 8, 28, 28), (2, 2, 2), {"strides": [2, 2, 2]}),
         ((32, 16, 14, 14), (2, 2), {"strides": [2, 2]})]


@generator("pool")
def pools():
    for shape, kernel, attributes in POOLS:
        for dtype in ("f32", "f16"):
            for op in ("MaxPool", "AveragePool"):
                yield single(op, dtype, [X(*shape)], kernel_shape=kernel, **attributes)
        for dtype in ("i8", "u8"):
            yield single("MaxPool", dtype, [X(*shape, high=100)], kernel_shape=kernel, **attributes)
        yield single("LpPool", "f32", [X(*shape)], kernel_shape=kernel, **attributes)
    for shape in ((1, 512, 7, 7), (1, 64, 112, 112), (32, 256, 14, 14), (1, 2048, 7, 7), (1, 64, 1000)):
        for dtype in ("f32", "f16"):
            for op in ("GlobalAveragePool", "GlobalMaxPool"):
                yield single(op, dtype, [X(*shape)])
        yield single("GlobalLpPool", "f32", [X(*shape)])
    for rows, channels, size in ((16, 64, 50), (300, 256, 50)):
        def boxes(rng, rows=rows, size=size, batch=False):
            at = rng.random((rows, 2)) * size * 8
            found = np.concatenate([at, at + 16 + rng.random((rows, 2)) * size * 8], -1).astype(np.float32)
            return np.concatenate([np.zeros((rows, 1), np.float32), found], -1) if batch else found
        regions = K(boxes, label=f"{rows}x4")
        regions.constant = False
        for mode in ("avg", "max"):
            yield single("RoiAlign", "f32", [X(1, channels, size, size), regions, indices((rows,), 1)], output_height=7, output_width=7, sampling_ratio=2,
                         spatial_scale=0.0625, mode=mode)
        regions = K(lambda rng, boxes=boxes: boxes(rng, batch=True), label=f"{rows}x5")
        regions.constant = False
        yield single("MaxRoiPool", "f32", [X(1, channels, size, size), regions], pooled_shape=[7, 7], spatial_scale=0.0625)


@generator("resize")
def resizes():
    cases = [((1, 64, 28, 28), (2, 2)), ((1, 3, 224, 224), (0.5, 0.5)), ((1, 256, 13, 13), (2, 2)), ((1, 21, 65, 65), (8, 8)), ((1, 3, 37, 53), (1.7, 2.3)),
             ((8, 32, 28, 28), (2, 2))]
    for shape, scales in cases:
        for mode, place in (("nearest", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners"), ("cubic", "half_pixel")):
            nearest = {"nearest_mode": "floor"} if mode == "nearest" else {}
            for dtype in ("f32", "f16", "u8") if mode != "cubic" else ("f32",):
                yield single("Resize", dtype, [X(*shape, high=100), None, K(np.array((1, 1, *scales), np.float32))], note=f"{scales}", mode=mode,
                             coordinate_transformation_mode=place, **nearest)
        yield single("Upsample", "f32", [X(*shape), K(np.array((1, 1, 2, 2), np.float32))], opset=9, mode="nearest")
    yield single("Resize", "f32", [X(1, 3, 512, 512), None, K(np.array((1, 1, 0.4375, 0.4375), np.float32))], mode="linear", antialias=1, note="224")
    for mode in ("linear", "nearest", "cubic"):
        for shape, size in (((1, 64, 28, 28), 28), ((1, 3, 128, 128), 128), ((4, 16, 17, 19), 23)):
            yield single("GridSample", "f32", [X(*shape), X(shape[0], size, size, 2, low=-1.1, high=1.1)], opset=20, mode=mode)
    for size in (28, 224):
        yield single("AffineGrid", "f32", [X(1, 2, 3), ints(1, 3, size, size)], opset=20, note=f"{size}")
