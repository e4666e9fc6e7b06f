# SPDX-License-Identifier: Apache-2.0
"""Encoded images of every kind, against Pillow."""
import io

import numpy as np
from common import rng

from PIL import Image


def encoded(image, kind, **options):
    out = io.BytesIO()
    image.save(out, format=kind, **options)
    return np.frombuffer(out.getvalue(), np.uint8)


def cases(own):
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
