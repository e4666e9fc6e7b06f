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
    for opset in (1, 11, 17):  # an odd number of rows and columns to leave out
        for shape in ([10, 12], [9, 11]):
            own.add("ConvTranspose", [f32(1, 2, 5, 6), f32(2, 3, 3, 3), f32(3)], opset=opset, strides=[2, 2], output_shape=shape)
    # outputs of one input each, cut at both ends, and along one axis alone
    for kernel in ((2, 2), (3, 2), (1, 4)):
        own.add("ConvTranspose", [f32(2, 5, 7, 9), f32(5, 4, *kernel), f32(4)], strides=list(kernel), pads=[0, 1, 0, 0])
        own.add("ConvTranspose", [f32(2, 5, 7, 9), f32(5, 4, *kernel)], strides=list(kernel))
    own.add("ConvTranspose", [f32(1, 6, 3, 4, 5), f32(6, 2, 2, 2, 2), f32(4)], group=2, strides=[2, 2, 2])
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


def fast_paths(own):
    """Shapes for every way that convolutions and windows run."""
    def conv(x, w, bias=True, **attrs):
        own.add("Conv", [f32(*x), f32(*w)] + [f32(w[0])] * bias, constants=(1, 2)[:1 + bias], atol=5e-6 * np.prod(w[1:]) ** 0.5 * 8, **attrs)
    # minimal filtering: tiles in part, pads of their own on each side, several blocks
    for x, m, pads in (((1, 16, 8, 8), 24, [1, 1, 1, 1]), ((3, 20, 13, 11), 33, [0, 2, 1, 0]), ((2, 48, 11, 11), 40, [0, 0, 0, 0]),
                       ((1, 96, 40, 61), 24, [1, 1, 1, 1]), ((1, 32, 5, 190), 64, [2, 1, 0, 2]), ((4, 64, 7, 7), 64, [1, 1, 1, 1]),
                       ((1, 128, 13, 13), 136, [1, 1, 1, 1]), ((2, 130, 9, 30), 129, [0, 1, 2, 1])):
        conv(x, (m, x[1], 3, 3), bias=x[0] != 2, pads=pads)
    # tiles of 2 x 2: small images, weights far beyond the cache, several blocks, the last of them smaller, slices of channels
    for x, m, pads in (((1, 320, 10, 10), 176, [1, 1, 1, 1]), ((2, 161, 7, 8), 200, [0, 1, 2, 0]), ((3, 128, 7, 7), 144, [1, 1, 1, 1]),
                       ((1, 256, 13, 14), 264, [1, 1, 1, 1]), ((1, 512, 5, 5), 260, [1, 1, 1, 1])):
        conv(x, (m, x[1], 3, 3), bias=x[0] != 2, pads=pads)
    # the same along one axis: images of one column and of several rows, both lengths, several blocks
    for x, m, k, pads in (((1, 64, 100), 96, [3], [1, 1]), ((2, 33, 57), 47, [5], [2, 2]), ((1, 80, 301), 130, [3], [1, 0]), ((1, 96, 190, 1), 70, [5, 1], [0, 0, 0, 0]),
                          ((1, 40, 19, 23), 56, [1, 3], [0, 1, 0, 1]), ((1, 64, 20, 23), 96, [5, 1], [2, 0, 2, 0]), ((2, 40, 19, 23), 56, [3, 1], [1, 0, 0, 0]),
                          ((1, 64, 18, 24), 96, [1, 5], [0, 2, 0, 3]), ((3, 64, 1, 77), 64, [1, 3], [0, 0, 0, 2])):
        conv(x, (m, x[1], *k), bias=x[0] != 2, pads=pads)
    # few positions: pieces of the image as it lies, rows that reach over its ends
    for x, w, attrs in (((1, 1, 400), (58, 1, 256), dict(strides=[128])), ((1, 40, 4), (48, 40, 3), dict(strides=[2], pads=[1, 1])), ((2, 64, 1), (80, 64, 1), {}),
                        ((1, 40, 9, 1), (56, 40, 4, 1), dict(strides=[2, 1])), ((2, 40, 6, 5), (56, 40, 3, 5), dict(strides=[3, 1], pads=[0, 1, 0, 2])),
                        ((1, 40, 3), (56, 40, 3), dict(strides=[3], pads=[5, 5], dilations=[3])), ((1, 8, 3, 3, 3), (32, 8, 2, 2, 2), dict(strides=[1, 2, 2], pads=[0, 1, 1, 1, 0, 1]))):
        conv(x, w, **attrs)
    # windows that are not unrolled: strides, phases, strips
    for x, w, attrs in (((1, 3, 60, 81), (10, 3, 3, 3), {}), ((2, 3, 48, 97), (8, 3, 3, 3), dict(strides=[2, 2], pads=[1, 1, 1, 1])),
                        ((1, 3, 65, 70), (16, 3, 7, 7), dict(strides=[2, 2], pads=[3, 3, 3, 3])), ((1, 4, 33, 40), (5, 4, 5, 4), dict(strides=[3, 1], pads=[1, 0, 2, 3])),
                        ((1, 12, 40, 44), (18, 4, 3, 3), dict(group=3, strides=[1, 2], pads=[0, 1, 1, 0])), ((1, 24, 30, 50), (7, 24, 1, 1), dict(strides=[2, 2])),
                        ((1, 6, 30, 50), (7, 6, 3, 3), dict(strides=[2, 2], dilations=[2, 2])), ((1, 6, 30, 51), (13, 6, 2, 3), dict(strides=[4, 2], dilations=[3, 1], pads=[4, 2, 1, 1])),
                        ((1, 90, 20, 100), (14, 90, 3, 2), dict(pads=[1, 0, 1, 1])), ((1, 3, 200), (6, 3, 9), dict(strides=[2], pads=[4, 4])),
                        ((1, 2, 40, 3), (3, 2, 3, 3), dict(strides=[2, 2], pads=[1, 1, 1, 1])), ((1, 2, 9, 40), (3, 2, 3, 3), dict(strides=[2, 2], pads=[9, 5, 9, 7]))):
        conv(x, w, **attrs)
    # output channels shared among threads
    for x, w, attrs in (((1, 24, 27, 27), (200, 24, 3, 3), dict(strides=[2, 2], pads=[1, 1, 1, 1])), ((1, 48, 25, 25), (150, 24, 3, 3), dict(group=2, strides=[2, 2])),
                        ((1, 40, 24, 26), (200, 40, 1, 1), dict(strides=[2, 2]))):
        conv(x, w, **attrs)
    # images that fill no vectors
    for x, w, attrs in (((1, 64, 14, 14), (72, 64, 3, 3), dict(strides=[2, 2], pads=[1, 1, 1, 1])), ((1, 130, 7, 7), (97, 130, 1, 1), {}),
                        ((2, 40, 9, 9), (64, 40, 3, 3), dict(strides=[2, 2], pads=[1, 0, 1, 2])), ((1, 70, 14, 13), (66, 70, 1, 1), dict(strides=[2, 2])),
                        ((1, 33, 49), (64, 33, 5), dict(pads=[4, 4], dilations=[2]))):
        conv(x, w, **attrs)
    # a channel at a time, few rows and many
    for rows in (1, 2, 3, 5, 7, 14):
        for side, strides in ((5, [1, 1]), (5, [2, 1]), (3, [1, 1]), (3, [2, 2]), (3, [2, 1]), (5, [2, 2])):
            conv((1, 6, rows, 37), (6, 1, side, side), group=6, strides=strides, pads=[side // 2] * 4)
    conv((2, 4, 9, 100), (8, 1, 5, 5), group=4, pads=[4, 0, 1, 3], dilations=[2, 1])
    conv((1, 4, 3, 21), (4, 1, 3, 3), group=4, pads=[5, 5, 5, 5])
    conv((1, 4, 12, 21), (4, 1, 4, 3), group=4, strides=[2, 3], pads=[3, 2, 2, 1])
    for op in ("MaxPool", "AveragePool"):
        for side, stride in ((3, 1), (3, 2), (5, 1), (2, 1), (3, 3)):
            own.add(op, [f32(1, 3, 11, 43)], kernel_shape=[side, side], strides=[stride, stride], pads=[side // 2] * 4)
        own.add(op, [f32(1, 3, 46, 46)], kernel_shape=[3, 3], strides=[2, 2])
        own.add(op, [f32(1, 3, 21, 21)], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")


def cases(own):
    convolutions(own)
    fast_paths(own)
