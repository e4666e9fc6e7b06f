# SPDX-License-Identifier: Apache-2.0
"""Gathers, scatters, and operators whose result depends on the values."""
import numpy as np

from .common import K, W, X, generator, indices, ints, single

TYPES = ("f32", "f16", "i64")


def permuted(shape, axis, count):
    """Indices along an axis without a repetition, so that a scatter has one result."""
    def make(rng):
        order = rng.permuted(np.broadcast_to(np.arange(shape[axis]), (*[s for i, s in enumerate(shape) if i != axis], shape[axis])), axis=-1)[..., :count]
        return np.moveaxis(order, -1, axis).astype(np.int64)
    sizes = [count if i == axis else s for i, s in enumerate(shape)]
    value = K(make, label="x".join(map(str, sizes)))
    value.constant = False
    return value, sizes


def positions(shape, count, deep):
    """Distinct positions for ScatterND."""
    def make(rng):
        chosen = rng.choice(int(np.prod(shape[:deep])), count, replace=False)
        return np.stack(np.unravel_index(chosen, shape[:deep]), -1).astype(np.int64)
    value = K(make, label=f"{count}x{deep}")
    value.constant = False
    return value


@generator("gather")
def gather():
    cases = [((30522, 384), (1, 16), 0), ((30522, 384), (8, 128), 0), ((1, 128, 768), (1,), 1), ((32, 1024), (64,), 1), ((3, 5, 7, 11), (2, 3), 2),
             ((1, 1000000), (4096,), 1), ((64, 56, 56), (), 0), ((2708, 16), (10556,), 0), ((1, 255, 32, 32), (64,), 3), ((2708, 1), (10556,), 0)]
    for shape, index, axis in cases:
        for dtype in TYPES:
            yield single("Gather", dtype, [W(*shape) if shape[0] == 30522 else X(*shape, high=100), indices(index, shape[axis])], axis=axis)
        yield single("Gather", "u8", [X(*shape, high=100), indices(index, shape[axis], "i32")], axis=axis, note="int32 indices")
    for shape, axis, count in (((32, 1000), 1, 5), ((1, 8400, 4), 1, 300), ((2708, 64), 0, 2000), ((3, 5, 7), 2, 4), ((64, 4096), 1, 4096)):
        sizes = [count if i == axis else s for i, s in enumerate(shape)]
        for dtype in TYPES:
            yield single("GatherElements", dtype, [X(*shape, high=100), indices(sizes, shape[axis])], axis=axis)
    for shape, index in (((64, 56, 56), (1000, 3)), ((1000, 64), (500, 1)), ((8, 128, 64), (8, 16, 2)), ((1000000,), (100000, 1)), ((32, 100, 4), (300, 2))):
        below = min(shape[:index[-1]])
        for dtype in TYPES:
            yield single("GatherND", dtype, [X(*shape, high=100), indices(index, below)])


@generator("scatter")
def scatter():
    for shape, axis, count in (((2708, 64), 0, 2000), ((32, 1000), 1, 50), ((1, 8400, 4), 1, 300), ((64, 4096), 1, 4096), ((3, 5, 7), 2, 4), ((100000,), 0, 50000)):
        index, sizes = permuted(shape, axis, count)
        for dtype in TYPES:
            yield single("ScatterElements", dtype, [X(*shape, high=100), index, X(*sizes, high=100)], axis=axis)
        for reduction in ("add", "max", "mul"):
            repeated = indices(sizes, max(2, shape[axis] // 8))
            yield single("ScatterElements", "f32", [X(*shape), repeated, X(*sizes, low=0.9, high=1.1)], axis=axis, reduction=reduction)
    for edges, width in ((10556, 16), (10556, 1), (100000, 64)):  # graph networks: messages are added to their nodes
        index = K(lambda rng, edges=edges, width=width: np.broadcast_to(rng.integers(0, 2708, (edges, 1)), (edges, width)).astype(np.int64).copy(),
                  label=f"{edges}x{width}")
        index.constant = False
        yield single("ScatterElements", "f32", [X(2708, width), index, X(edges, width)], axis=0, reduction="add", note="rows")
    for shape, count, deep in (((2708, 64), 2000, 1), ((64, 56, 56), 3000, 3), ((8, 128, 64), 500, 2), ((1000000,), 10000, 1), ((3, 5, 7), 6, 2)):
        for dtype in TYPES:
            yield single("ScatterND", dtype, [X(*shape, high=100), positions(shape, count, deep), X(count, *shape[deep:], high=100)])
        for reduction in ("add", "max"):
            yield single("ScatterND", "f32", [X(*shape), indices((count, deep), min(shape[:deep])), X(count, *shape[deep:])], reduction=reduction)
    index, sizes = permuted((32, 1000), 1, 50)
    yield single("Scatter", "f32", [X(32, 1000), index, X(*sizes)], axis=1, opset=10)
    for batch, length in ((1, 128), (8, 1024)):
        yield single("TensorScatter", "f32", [X(batch, 8, length, 64), X(batch, 8, 1, 64), indices((batch,), length - 1)], opset=24, axis=2)


@generator("select")
def select():
    for shape in ((1000,), (32, 1024), (1000000,)):
        for dtype in ("f32", "bool", "i64"):
            yield single("NonZero", dtype, [X(*shape, low=0, high=2)], out=["i64"])
        for dtype in ("f32", "i64"):
            yield single("Compress", dtype, [X(*shape), X(int(np.prod(shape)), dtype="bool")])
    for shape in ((1000,), (100000,)):
        for dtype in ("f32", "i64"):
            yield single("Unique", dtype, [X(*shape, low=0, high=500)], outputs=4, out=[dtype, "i64", "i64", "i64"])
    yield single("Unique", "f32", [X(1000)], domain="com.microsoft", outputs=3, out=["f32", "i64", "i64"])
    for shape, depth in (((1, 128), 1000), ((32,), 10), ((1, 64, 64), 21)):
        for dtype in ("f32", "i64"):
            yield single("OneHot", dtype, [indices(shape, depth), K(np.int64(depth)), K(np.array([0, 1]), dtype)], note=f"depth={depth}")
    for shape in ((128, 8, 64), (16, 3, 7)):
        for dtype in ("f32", "i64"):
            yield single("ReverseSequence", dtype, [X(*shape), indices((shape[1],), shape[0], low=1)], time_axis=0, batch_axis=1)
    for boxes, classes in ((100, 1), (1000, 80), (8400, 1), (8400, 80)):
        def corners(rng, boxes=boxes):
            at, size = rng.random((1, boxes, 2)) * 600, rng.random((1, boxes, 2)) * 80 + 4
            return np.concatenate([at, at + size], -1).astype(np.float32)
        box = K(corners, label=f"1x{boxes}x4")
        box.constant = False
        limits = [ints(100), K(np.array([0.5], np.float32)), K(np.array([0.6], np.float32))]
        yield single("NonMaxSuppression", "f32", [box, X(1, classes, boxes, low=0, high=1), *limits], out=["i64"])
    for rows, depth in ((16, 8), (1, 128)):
        yield single("MaxUnpool", "f32", [X(1, rows, depth, depth), _unpool(rows, depth)], kernel_shape=[2, 2], strides=[2, 2])


def _unpool(rows, depth):
    def make(rng):
        base = np.arange(rows * depth * depth * 4).reshape(1, rows, depth, 2, depth, 2)
        return base[:, :, :, rng.integers(2), :, rng.integers(2)].astype(np.int64)
    value = K(make, label="indices")
    value.constant = False
    return value
