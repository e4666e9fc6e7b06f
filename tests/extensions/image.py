# SPDX-License-Identifier: Apache-2.0
"""Decoding and encoding of images. JPEG is compared with a tolerance: the package contains IJG's libjpeg, which interpolates colors in another
way than libjpeg-turbo. Its decoder returns gray JPEG images with one channel; Kelp returns three."""
import io

import numpy as np
from peer import Pair
from PIL import Image

DOMAIN = "com.microsoft.extensions"


def pictures(count):
    """Returns pictures of several sizes: noise, gradients and flat ones."""
    rng = np.random.default_rng(4)
    for i in range(count):
        height, width = rng.integers(1, 60, 2)
        if i % 3 == 0:
            yield rng.integers(0, 256, (height, width, 3)).astype(np.uint8)
        elif i % 3 == 1:
            y, x = np.mgrid[:height, :width]
            yield np.stack([x * 4 % 256, y * 4 % 256, (x + y) * 2 % 256], 2).astype(np.uint8)
        else:
            yield np.full((height, width, 3), rng.integers(0, 256, 3), np.uint8)


def encoded(picture):
    """Yields the picture as a file in several formats."""
    image = Image.fromarray(picture)
    gray = image.convert("L")
    alpha = image.convert("RGBA")
    alpha.putalpha(gray)
    files = [(image, "PNG", {}), (gray, "PNG", {}), (alpha, "PNG", {}), (image.convert("P"), "PNG", {}), (gray.convert("1"), "PNG", {}),
             (gray.convert("LA"), "PNG", {}), (image, "JPEG", dict(quality=90)), (image, "JPEG", dict(quality=75, subsampling=0)),
             (image, "JPEG", dict(quality=50, progressive=True)), (image, "JPEG", dict(quality=95, subsampling=1))]
    for source, kind, options in files:
        file = io.BytesIO()
        source.save(file, kind, **options)
        yield kind, np.frombuffer(file.getvalue(), np.uint8)


def check(tally, count):
    sample = np.zeros(1, np.uint8)
    for colors in ("bgr", "rgb", None):
        attrs = {"color_space": colors} if colors else {}
        pair = Pair("DecodeImage", [sample], ["uint8"], domain=DOMAIN, **attrs)
        for i, picture in enumerate(pictures(max(count // 40, 12))):
            for kind, file in encoded(picture):
                if kind == "JPEG" and i % 3 == 0:
                    continue  # noise
                tally.subject = f"DecodeImage {kind} {attrs}"
                (tally.near if kind == "JPEG" else tally.check)((i, picture.shape), *pair.run([file]))
        for kind in ("png", "jpg"):
            tally.subject = f"EncodeImage {kind} {attrs}"
            encoder = Pair("EncodeImage", [np.zeros((1, 1, 3), np.uint8)], ["uint8"], domain=DOMAIN, format=kind, **attrs)
            for i, picture in enumerate(pictures(max(count // 40, 12))):
                files = encoder.run([picture])
                # the files differ as the versions of the libraries do
                expected, found = ([np.array(Image.open(io.BytesIO(file[0].tobytes())))] for file in files)
                if kind == "png" or i % 3 > 0:
                    (tally.near if kind == "jpg" else tally.check)((i, picture.shape), expected, found)
