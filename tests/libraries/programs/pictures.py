# SPDX-License-Identifier: Apache-2.0
"""Pictures with text, drawn in Pillow's own font."""
import io

import numpy as np
from PIL import Image, ImageDraw, ImageFont


def page(lines, size, width):
    """Returns a white page with black lines of text."""
    height = int(size * 1.8)
    picture = Image.new("RGB", (width, height * len(lines) + size), "white")
    draw = ImageDraw.Draw(picture)
    for row, line in enumerate(lines):
        draw.text((size, size // 2 + row * height), line, fill="black", font=ImageFont.load_default(size))
    return picture


def array(picture):
    """Returns the pixels, blue first, as OpenCV has them."""
    return np.ascontiguousarray(np.asarray(picture)[:, :, ::-1])


def png(picture):
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()
