# SPDX-License-Identifier: Apache-2.0
"""Cases of convolutions."""
import numpy as np

from .common import f32, ints, rng, saturate, wide


def conv(own):
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
    half = lambda *shape: f32(*shape).astype(np.float16)  # noqa: E731
    own.add("Conv", [half(2, 4, 9, 8), half(6, 2, 3, 3), half(6)], group=2, pads=[1, 1, 0, 1], constants=(1, 2), rtol=2e-3, atol=1e-2)
    for batch in (32, 37, 61):
        own.add("Conv", [f32(batch, 9, 4, 5), f32(13, 9, 3, 3), f32(13)], pads=[1, 1, 1, 1], rtol=1e-3, atol=1e-4)
        own.add("Conv", [f32(batch, 8, 5, 3), f32(11, 8, 3, 3)], pads=[2, 1, 1, 2], strides=[2, 1], rtol=1e-3, atol=1e-4)
        own.add("Conv", [f32(batch, 6, 7, 7), f32(8, 3, 3, 3)], pads=[0, 1, 1, 0], group=2, rtol=1e-3, atol=1e-4)
    own.add("Conv", [f32(3, 5, 40), f32(7, 5, 5)], pads=[2, 1], strides=[3], rtol=1e-3, atol=1e-4)
    for k, stride in ((3, 1), (3, 2), (5, 1), (5, 3), (2, 2)):
        own.add("Conv", [f32(2, 5, 23, 37), f32(5, 1, k, k), f32(5)], group=5, pads=[1, 2, 0, 1], strides=[stride, stride])
        own.add("Conv", [f32(1, 4, 12, 50), f32(8, 1, k, k)], group=4, dilations=[2, 2], strides=[1, stride])
    for dtype in (np.float64, np.float16):
        near = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 5e-3, "atol": 5e-3}
        image, kernel = f32(2, 4, 7, 5).astype(dtype), f32(6, 2, 3, 2).astype(dtype)
        own.add("Conv", [image, kernel, f32(6).astype(dtype)], group=2, pads=[1, 0, 2, 1], strides=[2, 1], dilations=[1, 2], reference="onnx", **near)
    own.add("Conv", [np.zeros((0, 2, 5, 5), np.float32), f32(3, 2, 3, 3)], opset=11, constants=[1])


def conv_and_conv_transpose(own):
    # found by fuzzing: float64 weights may be at any address of the file, also an unaligned one
    for count in (1, 2, 3):
        for op, kernel in (("Conv", (count, 2, 1, 3)), ("ConvTranspose", (2, count, 1, 3))):
            own.add(op, [f32(1, 2, 2, 5).astype("f8"), f32(*kernel).astype("f8"), f32(count).astype("f8")], opset=11, constants=[1, 2], reference="onnx")
    # found by fuzzing: rows without input were miscounted for a stride that equals the dilation, or twice the dilation
    for size, down, apart, pads in ((3, 2, 2, [2, 2, 0, 1]), (3, 2, 2, [3, 1, 0, 1]), (5, 2, 2, [1, 3, 2, 3]), (3, 4, 2, [3, 1, 2, 1]), (3, 3, 3, [2, 1, 2, 1])):
        for height, width in ((9, 5), (8, 22), (13, 70)):
            around = {"strides": [down, 1], "dilations": [apart, 1], "pads": pads}
            own.add("Conv", [f32(2, 3, height, width), f32(3, 1, size, size), f32(3)], group=3, **around)


def conv_algorithms(own):
    """Shapes for each algorithm of Conv."""
    def conv(x, w, bias=True, **attrs):
        own.add("Conv", [f32(*x), f32(*w)] + [f32(w[0])] * bias, constants=(1, 2)[:1 + bias], atol=5e-6 * np.prod(w[1:]) ** 0.5 * 8, **attrs)
    # Winograd: partial tiles, different pads on each side, several blocks
    for x, m, pads in (((1, 16, 8, 8), 24, [1, 1, 1, 1]), ((3, 20, 13, 11), 33, [0, 2, 1, 0]), ((2, 48, 11, 11), 40, [0, 0, 0, 0]),
                       ((1, 96, 40, 61), 24, [1, 1, 1, 1]), ((1, 32, 5, 190), 64, [2, 1, 0, 2]), ((4, 64, 7, 7), 64, [1, 1, 1, 1]),
                       ((1, 128, 13, 13), 136, [1, 1, 1, 1]), ((2, 130, 9, 30), 129, [0, 1, 2, 1])):
        conv(x, (m, x[1], 3, 3), bias=x[0] != 2, pads=pads)
    # Winograd with tiles of 2 x 2: small images, weights larger than the cache, several blocks with a smaller last one, slices of channels
    for x, m, pads in (((1, 320, 10, 10), 176, [1, 1, 1, 1]), ((2, 161, 7, 8), 200, [0, 1, 2, 0]), ((3, 128, 7, 7), 144, [1, 1, 1, 1]),
                       ((1, 256, 13, 14), 264, [1, 1, 1, 1]), ((1, 512, 5, 5), 260, [1, 1, 1, 1])):
        conv(x, (m, x[1], 3, 3), bias=x[0] != 2, pads=pads)
    # Winograd along one axis: images of one column and of several rows, both kernel lengths, several blocks
    for x, m, k, pads in (((1, 64, 100), 96, [3], [1, 1]), ((2, 33, 57), 47, [5], [2, 2]), ((1, 80, 301), 130, [3], [1, 0]), ((1, 96, 190, 1), 70, [5, 1], [0, 0, 0, 0]),
                          ((1, 40, 19, 23), 56, [1, 3], [0, 1, 0, 1]), ((1, 64, 20, 23), 96, [5, 1], [2, 0, 2, 0]), ((2, 40, 19, 23), 56, [3, 1], [1, 0, 0, 0]),
                          ((1, 64, 18, 24), 96, [1, 5], [0, 2, 0, 3]), ((3, 64, 1, 77), 64, [1, 3], [0, 0, 0, 2])):
        conv(x, (m, x[1], *k), bias=x[0] != 2, pads=pads)
    # few output positions: windows read from the image in place, rows that reach beyond its ends
    for x, w, attrs in (((1, 1, 400), (58, 1, 256), dict(strides=[128])), ((1, 40, 4), (48, 40, 3), dict(strides=[2], pads=[1, 1])), ((2, 64, 1), (80, 64, 1), {}),
                        ((1, 40, 9, 1), (56, 40, 4, 1), dict(strides=[2, 1])), ((2, 40, 6, 5), (56, 40, 3, 5), dict(strides=[3, 1], pads=[0, 1, 0, 2])),
                        ((1, 40, 3), (56, 40, 3), dict(strides=[3], pads=[5, 5], dilations=[3])), ((1, 8, 3, 3, 3), (32, 8, 2, 2, 2), dict(strides=[1, 2, 2], pads=[0, 1, 1, 1, 0, 1]))):
        conv(x, w, **attrs)
    # convolution without im2col: strides, phases, strips
    for x, w, attrs in (((1, 3, 60, 81), (10, 3, 3, 3), {}), ((2, 3, 48, 97), (8, 3, 3, 3), dict(strides=[2, 2], pads=[1, 1, 1, 1])),
                        ((1, 3, 65, 70), (16, 3, 7, 7), dict(strides=[2, 2], pads=[3, 3, 3, 3])), ((1, 4, 33, 40), (5, 4, 5, 4), dict(strides=[3, 1], pads=[1, 0, 2, 3])),
                        ((1, 12, 40, 44), (18, 4, 3, 3), dict(group=3, strides=[1, 2], pads=[0, 1, 1, 0])), ((1, 24, 30, 50), (7, 24, 1, 1), dict(strides=[2, 2])),
                        ((1, 6, 30, 50), (7, 6, 3, 3), dict(strides=[2, 2], dilations=[2, 2])), ((1, 6, 30, 51), (13, 6, 2, 3), dict(strides=[4, 2], dilations=[3, 1], pads=[4, 2, 1, 1])),
                        ((1, 90, 20, 100), (14, 90, 3, 2), dict(pads=[1, 0, 1, 1])), ((1, 3, 200), (6, 3, 9), dict(strides=[2], pads=[4, 4])),
                        ((1, 2, 40, 3), (3, 2, 3, 3), dict(strides=[2, 2], pads=[1, 1, 1, 1])), ((1, 2, 9, 40), (3, 2, 3, 3), dict(strides=[2, 2], pads=[9, 5, 9, 7]))):
        conv(x, w, **attrs)
    # output channels split among threads
    for x, w, attrs in (((1, 24, 27, 27), (200, 24, 3, 3), dict(strides=[2, 2], pads=[1, 1, 1, 1])), ((1, 48, 25, 25), (150, 24, 3, 3), dict(group=2, strides=[2, 2])),
                        ((1, 40, 24, 26), (200, 40, 1, 1), dict(strides=[2, 2]))):
        conv(x, w, **attrs)
    # images narrower than a vector
    for x, w, attrs in (((1, 64, 14, 14), (72, 64, 3, 3), dict(strides=[2, 2], pads=[1, 1, 1, 1])), ((1, 130, 7, 7), (97, 130, 1, 1), {}),
                        ((2, 40, 9, 9), (64, 40, 3, 3), dict(strides=[2, 2], pads=[1, 0, 1, 2])), ((1, 70, 14, 13), (66, 70, 1, 1), dict(strides=[2, 2])),
                        ((1, 33, 49), (64, 33, 5), dict(pads=[4, 4], dilations=[2]))):
        conv(x, w, **attrs)
    # depthwise, of few rows and of many
    for rows in (1, 2, 3, 5, 7, 14):
        for side, strides in ((5, [1, 1]), (5, [2, 1]), (3, [1, 1]), (3, [2, 2]), (3, [2, 1]), (5, [2, 2])):
            conv((1, 6, rows, 37), (6, 1, side, side), group=6, strides=strides, pads=[side // 2] * 4)
    conv((2, 4, 9, 100), (8, 1, 5, 5), group=4, pads=[4, 0, 1, 3], dilations=[2, 1])
    conv((1, 4, 3, 21), (4, 1, 3, 3), group=4, pads=[5, 5, 5, 5])
    conv((1, 4, 12, 21), (4, 1, 4, 3), group=4, strides=[2, 3], pads=[3, 2, 2, 1])


def conv_transpose(own):
    own.add("ConvTranspose", [f32(2, 4, 5, 6), f32(4, 3, 3, 3), f32(3)])
    own.add("ConvTranspose", [f32(1, 4, 5, 6), f32(4, 3, 3, 2)], group=2, strides=[2, 3], pads=[1, 0, 1, 1])
    own.add("ConvTranspose", [f32(1, 4, 5, 6), f32(4, 3, 3, 3)], strides=[2, 2], output_padding=[1, 1], dilations=[1, 2])
    own.add("ConvTranspose", [f32(1, 2, 9), f32(2, 3, 4)], strides=[3], auto_pad="SAME_UPPER")
    for opset in (1, 11, 17):  # an odd number of rows and columns to crop
        for shape in ([10, 12], [9, 11]):
            own.add("ConvTranspose", [f32(1, 2, 5, 6), f32(2, 3, 3, 3), f32(3)], opset=opset, strides=[2, 2], output_shape=shape)
    # each output depends on one input: cropped at both ends, and along one axis only
    for kernel in ((2, 2), (3, 2), (1, 4)):
        own.add("ConvTranspose", [f32(2, 5, 7, 9), f32(5, 4, *kernel), f32(4)], strides=list(kernel), pads=[0, 1, 0, 0])
        own.add("ConvTranspose", [f32(2, 5, 7, 9), f32(5, 4, *kernel)], strides=list(kernel))
    own.add("ConvTranspose", [f32(1, 6, 3, 4, 5), f32(6, 2, 2, 2, 2), f32(4)], group=2, strides=[2, 2, 2])
    own.add("ConvTranspose", [f32(2, 6, 9, 21), f32(6, 5, 4, 3), f32(10)], group=2, strides=[3, 2], pads=[1, 0, 2, 1], dilations=[1, 2], rtol=1e-3, atol=1e-4)
    own.add("ConvTranspose", [f32(1, 8, 60, 70), f32(8, 60, 2, 2), f32(60)], strides=[2, 2], constants=(1, 2), rtol=1e-3, atol=1e-4)
    for dtype in (np.float64, np.float16):
        near = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 5e-3, "atol": 5e-3}
        image, kernel = f32(2, 4, 7, 5).astype(dtype), f32(6, 2, 3, 2).astype(dtype)
        own.add("ConvTranspose", [image, f32(4, 3, 3, 2).astype(dtype), f32(3).astype(dtype)], pads=[1, 0, 0, 1], strides=[2, 3], reference="onnx", **near)
    own.add("ConvTranspose", [f32(1, 3, 3, 4, 5), f32(3, 2, 3, 2, 3)], strides=[2, 1, 2], pads=[1, 0, 1, 0, 1, 0])


def deform_conv(own):
    x, w = f32(2, 4, 7, 9), f32(6, 2, 3, 2)
    offset, mask = f32(2, 2 * 2 * 6, 4, 10), f32(2, 2 * 6, 4, 10, low=0, high=1)
    for dtype in (np.float32, np.float64):
        own.add("DeformConv", [v.astype(dtype) for v in (x, w, offset, f32(6), mask)], opset=19, group=2, offset_group=2,
                strides=[2, 1], pads=[1, 1, 1, 1])
    own.add("DeformConv", [x, f32(5, 4, 3, 3), f32(2, 18, 3, 7, low=-1)], opset=19, dilations=[2, 1])


CONVOLUTIONS = [  # x, w, groups, strides, dilations, pads
    ((1, 8, 50), (20, 8, 3), 1, [1], [1], [1, 1]),
    ((2, 5, 131), (33, 5, 5), 1, [2], [1], [0, 3]),
    ((1, 6, 40), (4, 3, 3), 2, [1], [3], [2, 0]),
    ((2, 16, 9, 13), (70, 16, 1, 1), 1, [1, 1], [1, 1], [0, 0, 0, 0]),
    ((1, 3, 17, 14), (20, 3, 3, 3), 1, [2, 1], [1, 1], [1, 0, 2, 1]),
    ((2, 16, 11, 9), (24, 8, 3, 2), 2, [1, 2], [2, 1], [0, 1, 1, 0]),
    ((1, 72, 10, 12), (72, 1, 3, 3), 72, [1, 1], [1, 1], [1, 1, 1, 1]),
    ((1, 5, 20, 7), (5, 1, 5, 3), 5, [2, 1], [1, 2], [2, 2, 2, 2]),
    ((1, 4, 6, 5, 7), (6, 4, 2, 3, 3), 1, [1, 2, 1], [1, 1, 1], [0, 1, 1, 1, 0, 1]),
    ((1, 9, 8, 8), (18, 1, 3, 3), 9, [1, 1], [1, 1], [0, 0, 0, 0]),
]


def plain_conv(x, w, groups, strides, dilations, pads):
    """Returns the convolution over one to three axes, in 64-bit integers; zero points are already subtracted."""
    axes = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(pads[i], pads[i + axes]) for i in range(axes)])
    out = [(x.shape[i + 2] - (w.shape[i + 2] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(axes)]
    y = np.zeros((x.shape[0], w.shape[0], *out), np.int64)
    each = w.shape[0] // groups
    for tap in np.ndindex(*w.shape[2:]):
        part = x[(..., *(slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, o, s in zip(tap, dilations, out, strides)))]
        for g in range(groups):
            inside = part[:, g * w.shape[1]:(g + 1) * w.shape[1]]
            y[:, g * each:(g + 1) * each] += np.einsum("nc...,mc->nm...", inside, w[(slice(g * each, (g + 1) * each), slice(None), *tap)])
    return y


def conv_integer_and_qlinear_conv(own):
    for x_shape, w_shape, groups, strides, dilations, pads in CONVOLUTIONS:
        attrs = {"group": groups, "strides": strides, "dilations": dilations, "pads": pads, "kernel_shape": list(w_shape[2:])}
        rest = (1,) * (len(w_shape) - 1)
        for x_kind, w_kind, y_kind in [(np.uint8, np.int8, np.uint8), (np.int8, np.int8, np.int8), (np.uint8, np.uint8, np.int8)]:
            x, w, zx = ints(x_kind, *x_shape), ints(w_kind, *w_shape), ints(x_kind)
            no_zero = w_kind(128 if w_kind == np.uint8 else 0)
            for zw in (no_zero, ints(w_kind), ints(w_kind, w_shape[0])):
                whole = plain_conv(wide(x, zx), wide(w, zw.reshape(-1, *rest) if zw.ndim else zw), groups, strides, dilations, pads)
                own.add("ConvInteger", [x, w, zx, zw], opset=10, constants=(1, 2, 3) if zw.ndim == 0 else (), reference=[whole.astype(np.int32)],
                        **attrs)
                steps = np.float32(0.01) * rng.integers(50, 100, zw.shape).astype(np.float32)
                bias = rng.integers(-3000, 3000, w_shape[0], np.int32)
                zy, sy = ints(y_kind), np.float32(np.abs(whole).max() * 0.01)
                y = (whole + bias.reshape(-1, *rest[1:])).astype(np.float32)
                y = y * (np.float32(1.5) * steps.reshape(-1, *rest[1:]) / sy)
                own.add("QLinearConv", [x, np.float32(1.5), zx, w, steps, zw, sy, zy, bias], opset=10,
                        constants=(1, 2, 3, 4, 5, 6, 7, 8) if zw.ndim else (6, 7), reference=[saturate(y, zy)], **attrs)
    x, w = ints(np.uint8, 1, 3, 9, 10), ints(np.int8, 4, 3, 3, 3)
    own.add("ConvInteger", [x, w], opset=10, reference=[plain_conv(wide(x, 0), wide(w, 0), 1, [1, 1], [1, 1], [0] * 4).astype(np.int32)])
    own.add("ConvInteger", [x, w, np.uint8(9)], opset=10, auto_pad="SAME_UPPER", strides=[2, 2],
            reference=[plain_conv(wide(x, 9), wide(w, 0), 1, [2, 2], [1, 1], [1, 0, 1, 1]).astype(np.int32)])


def fused_conv(own):
    x, w = f32(2, 4, 9, 8), f32(6, 4, 3, 3)
    for act, params in (("Relu", []), ("Sigmoid", []), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 1.5]), ("HardSigmoid", [0.3, 0.4])):
        more = {"activation_params": params} if params else {}
        own.microsoft("FusedConv", [x, w, f32(6)], pads=[1, 1, 1, 1], activation=act, constants=(1, 2), **more)
    own.microsoft("FusedConv", [x, w, f32(6), f32(2, 6, 7, 6)], activation="Relu", constants=(1, 2))


CASES = [
    conv, conv_and_conv_transpose, conv_algorithms, conv_transpose, deform_conv, conv_integer_and_qlinear_conv,
    fused_conv]
