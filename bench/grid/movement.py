# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements without computing: transposes, slices, joins, pads and shapes."""
import numpy as np
from onnx import helper

from .common import CODES, K, X, generator, ints, several, single

TYPES = ("f32", "f16", "i64", "u8")


@generator("transpose")
def transpose():
    cases = [((32, 1024), (1, 0)), ((1024, 1024), (1, 0)), ((1, 64, 56, 56), (0, 2, 3, 1)), ((1, 56, 56, 64), (0, 3, 1, 2)),
             ((1, 128, 12, 64), (0, 2, 1, 3)), ((8, 12, 128, 64), (0, 2, 1, 3)), ((1, 12, 128, 64), (0, 1, 3, 2)), ((32, 3, 224, 224), (0, 2, 3, 1)),
             ((3, 5, 7, 11), (3, 2, 1, 0)), ((2, 3, 4, 5, 6), (0, 2, 4, 1, 3)), ((100003, 3), (1, 0)), ((8, 64, 7, 8, 7, 8), (0, 2, 4, 3, 5, 1))]
    for shape, order in cases:
        for dtype in TYPES:
            yield single("Transpose", dtype, [X(*shape, high=100)], perm=order)
    for op in ("DepthToSpace", "SpaceToDepth"):
        for shape in ((1, 64, 64, 64), (8, 16, 126, 126)):
            for dtype in ("f32", "f16"):
                yield single(op, dtype, [X(*shape)], blocksize=2)
    yield single("DepthToSpace", "f32", [X(1, 48, 180, 320)], blocksize=4, mode="CRD")


@generator("slice")
def slices():
    cases = [((1, 64, 56, 56), (0, 0), (28, 28), (2, 3), (1, 1)), ((32, 1024), (0,), (512,), (1,), (1,)), ((32, 1024), (0,), (1024,), (1,), (2,)),
             ((1, 128, 768), (0,), (1,), (1,), (1,)), ((1, 3, 640, 640), (0, 0), (640, 640), (2, 3), (2, 2)), ((1024, 256), (-1,), (-9999,), (0,), (-1,)),
             ((1024, 255), (-1,), (-9999,), (1,), (-1,)), ((8, 64, 112, 112), (32,), (64,), (1,), (1,)), ((3, 5, 7, 11), (1, 2), (4, 9), (1, 3), (2, 3)),
             ((1000003,), (1,), (1000003,), (0,), (1,))]
    for shape, starts, ends, axes, steps in cases:
        for dtype in TYPES:
            yield single("Slice", dtype, [X(*shape, high=100), *(ints(*v) for v in (starts, ends, axes, steps))], note=f"{starts}:{ends}:{steps} of {axes}")
    for shape, axis, parts in (((1, 128, 2304), 2, 3), ((8, 64, 56, 56), 1, 2), ((3, 6, 7), 1, 3), ((32, 1024), 1, 4), ((1, 84, 8400), 1, 2)):
        for dtype in TYPES:
            size = shape[axis] // parts
            sizes = [size] * (parts - 1) + [shape[axis] - size * (parts - 1)]
            yield single("Split", dtype, [X(*shape, high=100), ints(*sizes)], outputs=parts, note=f"{parts} parts", axis=axis)
    for shape, target in (((1, 64, 56, 56), (28, 64)), ((1, 3, 5, 7), (9, 9))):
        yield single("CenterCropPad", "f32", [X(*shape), ints(*target)], axes=[2, 3], note=f"to {target}")


@generator("concat")
def concat():
    cases = [(((1, 64, 56, 56), (1, 64, 56, 56)), 1), (((8, 64, 56, 56), (8, 32, 56, 56), (8, 32, 56, 56)), 1), (((32, 1024), (32, 1024)), 1),
             (((32, 1), (32, 1), (32, 1)), 1), (((1, 12, 127, 64), (1, 12, 1, 64)), 2), (((3, 5, 7), (3, 2, 7)), 1), (((4096, 3), (4096, 5)), 1),
             (((1, 1, 768), (1, 196, 768)), 1), (((1, 3, 80, 80, 85), (1, 3, 80, 80, 85)), 4)]
    for shapes, axis in cases:
        for dtype in TYPES:
            yield single("Concat", dtype, [X(*shape, high=100) for shape in shapes], axis=axis)
    yield single("Concat", "f32", [X(1, 16, 28, 28) for _ in range(16)], axis=1)


@generator("pad")
def pad():
    cases = [((1, 64, 56, 56), (0, 0, 1, 1, 0, 0, 1, 1)), ((8, 64, 56, 56), (0, 0, 3, 3, 0, 0, 3, 3)), ((32, 1000), (0, 0, 0, 24)),
             ((3, 5, 7, 11), (1, 0, 2, 1, 0, 3, 1, 2)), ((1, 3, 224, 224), (0, 0, 3, 3, 0, 0, 3, 3)), ((1, 1, 16000), (0, 0, 200, 0, 0, 200))]
    for shape, pads in cases:
        for mode in ("constant", "reflect", "edge"):
            if mode == "reflect" and 1 in (s for s, p in zip(shape, pads) if p):
                continue
            for dtype in TYPES if mode == "constant" else ("f32", "f16"):
                yield single("Pad", dtype, [X(*shape, high=100), ints(*pads)], mode=mode, note=f"{pads}")
    for shape, counts in (((1, 64), (32, 1)), ((1, 1, 128, 128), (1, 12, 1, 1)), ((32, 64), (1, 16)), ((3, 5, 7), (2, 3, 4)), ((1, 256, 1, 1), (1, 1, 64, 64))):
        for dtype in TYPES:
            yield single("Tile", dtype, [X(*shape, high=100), ints(*counts)], note=f"{counts}")
            yield single("Expand", dtype, [X(*(s if c == 1 else 1 for s, c in zip(shape, counts)), high=100),
                                           ints(*(s * c if c == 1 else c for s, c in zip(shape, counts)))], note=f"like {shape} {counts}")
    yield single("Pad", "f32", [X(1, 64, 56, 56), ints(0, 0, 1, 1, 0, 0, 1, 1)], domain="com.microsoft", mode="constant")


@generator("shape")
def shapes():
    shape = (8, 64, 28, 28)
    for dtype in ("f32", "u8"):
        yield single("Reshape", dtype, [X(*shape), ints(8, -1)])
        yield single("Flatten", dtype, [X(*shape)], axis=1)
        yield single("Squeeze", dtype, [X(1, *shape), ints(0)])
        yield single("Unsqueeze", dtype, [X(*shape), ints(0)])
        yield single("Shape", dtype, [X(*shape)], out=["i64"])
        yield single("Size", dtype, [X(*shape)], out=["i64"])
    for size in (64, 512):
        for op_domain in ("", "com.microsoft"):
            for dtype in ("f32", "i64", "bool"):
                yield single("Trilu", dtype, [X(1, 1, size, size)], domain=op_domain, upper=0)
        yield single("EyeLike", "f32", [X(size, size)])
    for values in ((32, 1024), (1, 64, 56, 56)):
        for dtype in ("f32", "i64"):
            yield single("ConstantOfShape", dtype, [X(len(values), dtype="i64", low=0, high=1) if False else _dynamic(values)], note=f"{values}",
                         value=helper.make_tensor("v", CODES[dtype], [1], [3]))
    for count in (100, 100000):
        for dtype in ("f32", "i64"):
            yield single("Range", dtype, [_dynamic(v, dtype) for v in (0, count, 1)], note=f"{count}")
    for array in (np.arange(64, dtype=np.float32),):
        def make(rng, array=array):
            node = helper.make_node("Constant", [], ["c"], value=helper.make_tensor("v", CODES["f32"], array.shape, array))
            return [node, helper.make_node("Add", ["x", "c"], ["y"])], [("x", array)], [], ["y"]
        yield several("Constant", "f32", "64 with Add", make)


def _dynamic(values, dtype="i64"):
    value = K(np.array(values), dtype)
    value.constant = False
    return value
