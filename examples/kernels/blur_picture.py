#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Blurs a generated 4K image with a kernel of toolbox.c, and writes the image before and after.

    cc -std=c17 -O3 -fPIC -shared -I include examples/kernels/toolbox.c -lm -o libtoolbox.so
    KELP_BACKEND_PATH=. blur_picture.py [--size 3840x2160] [--filter gauss|box] [--width 8] [--crop 360x200] [--out DIR]

--width is the sigma of gauss or the radius of box. Writes the grayscale images DIR/before.png and DIR/after.png: the whole image, or
its center with the size of --crop.
"""
import argparse
import os
import struct
import time
import zlib

import kelp.runtime as rt
import numpy as np


def write_png(path, gray):
    """Writes an array of bytes, height x width, to a PNG file (Portable Network Graphics, third edition)."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width = gray.shape
    rows = np.zeros((height, width + 1), dtype=np.uint8)  # each row starts with its filter: 2, the difference from the row above
    rows[:, 0] = 2
    rows[0, 1:] = gray[0]
    rows[1:, 1:] = gray[1:] - gray[:-1]
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)) + chunk(b"IEND", b""))


def picture(width, height):
    """Returns an image of rings and squares with sharp edges."""
    y, x = np.mgrid[0:height, 0:width].astype("float32")
    rings = np.sin(np.hypot(x - width / 2, y - height / 2) / 14) > 0
    squares = ((x // 96).astype(int) + (y // 96).astype(int)) % 2 == 0
    return (np.where(squares, 90, 10) + np.where(rings, 140, 0)).astype("float32")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", default="3840x2160")
    parser.add_argument("--filter", choices=("gauss", "box"), default="gauss")
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--crop")
    parser.add_argument("--out", default=".")
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    before = picture(width, height)
    after = np.empty_like(before)
    blur = rt.get_runtime().get_backend("toolbox").get_function_ptr(options.filter + "_blur")
    blur(after, before, options.width)  # the first call allocates memory and threads
    begin = time.perf_counter()
    blur(after, before, options.width)
    print(f"{blur.name}({width} x {height}, {options.width}): {1000 * (time.perf_counter() - begin):.1f} ms")
    shown_width, shown_height = map(int, (options.crop or options.size).split("x"))
    top, left = (height - shown_height) // 2, (width - shown_width) // 2
    for name, values in (("before", before), ("after", after)):
        part = values[top:top + shown_height, left:left + shown_width]
        write_png(os.path.join(options.out, name + ".png"), np.round(part).astype(np.uint8))


if __name__ == "__main__":
    main()
