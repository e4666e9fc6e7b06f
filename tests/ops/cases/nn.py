# SPDX-License-Identifier: Apache-2.0
"""Convolutions, pools."""
import numpy as np
from common import f32


def convolutions(own):
    x = f32(2, 6, 11, 9)
    own.add("Conv", [x, f32(8, 6, 3, 3), f32(8)], pads=[1, 1, 1, 1])
    own.add("Conv", [x, f32(8, 6, 3, 3), f32(8)], strides=[2, 1], pads=[0, 1, 2, 1], constants=(1, 2))
    own.add("Conv", [x, f32(8, 3, 3, 2)], group=2, dilations=[2, 3])
    own.add("Conv", [x, f32(6, 1, 3, 3), f32(6)], group=6, strides=[2, 2], pads=[1, 1, 1, 1])
    own.add("Conv", [x, f32(12, 1, 5, 3)], group=6, pads=[2, 0, 2, 3])
    own.add("Conv", [x, f32(10, 6, 1, 1), f32(10)])
    own.add("Conv", [x, f32(10, 6, 1, 1)], strides=[2, 3])
    own.add("Conv", [x, f32(4, 6, 4, 3)], auto_pad="SAME_UPPER", strides=[2, 2])
    own.add("Conv", [x, f32(4, 6, 4, 3)], auto_pad="SAME_LOWER", strides=[3, 2])
    own.add("Conv", [x, f32(4, 6, 4, 3)], auto_pad="VALID")
    own.add("Conv", [f32(2, 4, 30), f32(5, 4, 7), f32(5)], strides=[2], pads=[3, 3], dilations=[2])
    own.add("Conv", [f32(1, 3, 5, 6, 7), f32(4, 3, 2, 3, 3), f32(4)], pads=[1, 0, 1, 0, 1, 1])
    own.add("Conv", [f32(1, 64, 14, 14), f32(70, 64, 3, 3), f32(70)], pads=[1, 1, 1, 1], atol=1e-4)
    own.add("ConvTranspose", [f32(2, 4, 5, 6), f32(4, 3, 3, 3), f32(3)])
    own.add("ConvTranspose", [f32(1, 4, 5, 6), f32(4, 3, 3, 2)], group=2, strides=[2, 3], pads=[1, 0, 1, 1])
    own.add("ConvTranspose", [f32(1, 4, 5, 6), f32(4, 3, 3, 3)], strides=[2, 2], output_padding=[1, 1], dilations=[1, 2])
    own.add("ConvTranspose", [f32(1, 2, 9), f32(2, 3, 4)], strides=[3], auto_pad="SAME_UPPER")
    for op in ("MaxPool", "AveragePool"):
        own.add(op, [x], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1])
        own.add(op, [x], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
        own.add(op, [x], kernel_shape=[2, 3], auto_pad="SAME_UPPER")
        own.add(op, [f32(2, 3, 20)], kernel_shape=[4], strides=[3])
        own.add(op, [f32(1, 2, 6, 7, 8)], kernel_shape=[2, 3, 2])
    own.add("AveragePool", [x], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    own.add("MaxPool", [x], kernel_shape=[3, 3], dilations=[2, 2], outputs=2)
    own.add("GlobalAveragePool", [x])
    own.add("GlobalMaxPool", [x])


def cases(own):
    convolutions(own)
