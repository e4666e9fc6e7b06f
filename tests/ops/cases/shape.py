# SPDX-License-Identifier: Apache-2.0
"""Cases of operators that move, select or create elements."""
import ml_dtypes
import numpy as np

from .common import HALVES, INT64_MIN, T, WHOLE, f32, helper, i64, numpy_helper, rng


def reshape_flatten_squeeze_and_unsqueeze(own):
    x = f32(2, 3, 4, 5)
    own.add("Reshape", [x, i64(0, -1, 5)])
    own.add("Reshape", [x, i64(4, 30)], constants=(1,))
    own.add("Squeeze", [f32(1, 3, 1, 2), i64(0, -2)])
    own.add("Squeeze", [f32(1, 3, 1, 2)], axes=[2], opset=11)
    own.add("Squeeze", [f32(1, 3, 1, 2)])
    own.add("Unsqueeze", [x, i64(0, -1)])
    own.add("Unsqueeze", [x], axes=[1, 3], opset=11)
    own.add("Flatten", [x], axis=2)
    own.add("Flatten", [x], axis=-1)


def transpose(own):
    x = f32(2, 3, 4, 5)
    own.add("Transpose", [x])
    for perm in ([0, 2, 1, 3], [3, 1, 0, 2], [0, 2, 3, 1], [0, 3, 1, 2]):
        own.add("Transpose", [x], perm=perm)
    own.add("Transpose", [f32(70, 130)])
    for few in (1, 2, 3, 4, 5, 6, 8, 17):  # NHWC to NCHW and back
        own.add("Transpose", [f32(2, 37, few)], perm=[0, 2, 1])
        own.add("Transpose", [f32(2, few, 53)], perm=[0, 2, 1])
    # found by fuzzing: types narrower than a byte were not supported
    for name in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn"):
        x = np.arange(-15, 15).reshape(2, 3, 5) % 4 if name[0] == "u" else np.arange(-15, 15).reshape(2, 3, 5) % 4 - 2
        x = x.astype(np.float32).astype(np.dtype(name))
        own.add("Transpose", [x], opset=25, perm=[2, 0, 1], reference=[np.ascontiguousarray(x.transpose(2, 0, 1))])
    for shape, perm in (((70, 53), (1, 0)), ((2, 33, 3, 45), (0, 3, 1, 2)), ((400, 300), (1, 0)), ((3, 19, 21), (0, 2, 1)), ((5, 260, 9, 40), (2, 3, 1, 0))):
        own.add("Transpose", [f32(*shape)], perm=perm)


def transpose_of_types(own):
    """Transpose of elements of 1, 2, 4 and 8 bytes: whole tiles, their edges, few rows or columns."""
    shapes = (((70, 53), (1, 0)), ((2, 33, 3), (0, 2, 1)), ((2, 3, 41), (0, 2, 1)), ((64, 96), (1, 0)), ((5, 260), (1, 0)), ((7, 9), (1, 0)),
              ((3, 8, 17), (0, 2, 1)), ((2, 130, 2), (0, 2, 1)), ((3, 2, 19, 4), (0, 2, 3, 1)), ((1, 4, 5), (0, 2, 1)), ((300, 17), (1, 0)))
    for shape, perm in shapes:
        for kind in (np.uint8, np.float16, np.float32, np.int64):
            x = rng.integers(0, 256, shape).astype(kind)
            own.add("Transpose", [x], perm=perm, reference=[np.ascontiguousarray(x.transpose(perm))], rtol=0, atol=0)


def concat_and_split(own):
    x = f32(2, 3, 4, 5)
    own.add("Concat", [x, f32(2, 1, 4, 5), f32(2, 2, 4, 5)], axis=1)
    own.add("Concat", [x, f32(2, 3, 4, 2)], axis=-1)
    own.add("Concat", [np.array(["a"], object), np.array(["b", "cd"], object)], axis=0)
    own.add("Split", [x], outputs=2, axis=2)
    own.add("Split", [x, i64(1, 4)], outputs=2, axis=3)
    own.add("Split", [x], outputs=2, axis=3, split=[2, 3], opset=11)
    own.add("Split", [f32(7, 3)], outputs=3, axis=0, num_outputs=3, opset=18)
    x = f32(3, 4, 5)
    own.add("Split", [x], opset=1, outputs=2, axis=2, split=[2, 3], reference=[x[..., :2], x[..., 2:]])


def slice_(own):
    x = f32(2, 3, 4, 5)
    own.add("Slice", [x, i64(0, 1), i64(2, 3), i64(2, 3), i64(1, 1)])
    own.add("Slice", [x, i64(-1, 4), i64(-100, 0), i64(1, 3), i64(-1, -2)])
    own.add("Slice", [x, i64(1), i64(2 ** 62), i64(-1), i64(3)], constants=(1, 2, 3, 4))
    own.add("Slice", [x], starts=[1, 0], ends=[3, -1], axes=[2, 3], opset=9)
    x = f32(3, 4, 5)
    largest = 2**63 - 1
    for starts, ends, axes, steps in (((-1,), (INT64_MIN,), (2,), (INT64_MIN,)), ((4,), (0,), (2,), (INT64_MIN,)), ((0,), (largest,), (0,), (largest,)),
                                      ((largest,), (INT64_MIN,), (1,), (-1,)), ((INT64_MIN,), (largest,), (1,), (2,)), ((100,), (-100,), (-1,), (-3,))):
        own.add("Slice", [x, i64(*starts), i64(*ends), i64(*axes), i64(*steps)], opset=13, reference="onnx")
        own.add("Slice", [x, i64(*starts), i64(*ends), i64(*axes), i64(*steps)], opset=11, constants=[1, 2, 3, 4], reference="onnx")
    own.refuse("Slice", [x, i64(0), i64(1), i64(0), i64(0)], "a step is 0", opset=13)


def expand_and_tile(own):
    x = f32(2, 3, 4, 5)
    own.add("Expand", [f32(3, 1), i64(2, 1, 6)])
    own.add("Tile", [x, i64(1, 2, 1, 3)])


def gather(own):
    x = f32(2, 3, 4, 5)
    own.add("Gather", [x, np.array([[0, -1], [2, 1]], np.int64)], axis=1)
    own.add("Gather", [x, np.array(1, np.int32)], axis=3)
    own.add("Gather", [np.array(["p", "q", "r"], object), i64(2, 0)])
    own.add("GatherElements", [x, rng.integers(-3, 3, (2, 2, 4, 5))], axis=1)
    own.add("GatherND", [x, rng.integers(0, 2, (4, 2))])
    own.microsoft("GatherND", [x, rng.integers(0, 2, (4, 2))])
    own.add("GatherND", [x, rng.integers(0, 3, (2, 6, 1))], batch_dims=1)


def scatter(own):
    x = f32(2, 3, 4, 5)
    own.add("ScatterElements", [x, rng.integers(-3, 3, (2, 1, 4, 5)), f32(2, 1, 4, 5)], axis=1)
    own.add("ScatterElements", [f32(6), i64(1, 1, 3), f32(3)], reduction="add", opset=16)
    own.add("ScatterND", [x, np.array([[0, 1], [1, 2]], np.int64), f32(2, 4, 5)])
    own.add("ScatterND", [f32(6), np.array([[1], [1]], np.int64), f32(2)], reduction="mul", opset=16)
    for dtype in (*WHOLE, *HALVES, np.float32, np.float64):
        x = rng.integers(1, 5, (4, 3)).astype(dtype)
        updates, where = rng.integers(1, 5, (2, 3)).astype(dtype), np.array([[0, 1, 3], [0, -1, 3]])
        for reduction, join in (("add", np.add), ("mul", np.multiply), ("min", np.minimum), ("max", np.maximum)):
            wanted = x.copy()
            for i, k in np.ndindex(2, 3):
                wanted[where[i, k], k] = join(wanted[where[i, k], k], updates[i, k])
            own.add("ScatterElements", [x, where, updates], opset=18, reference=[wanted], axis=0, reduction=reduction)
            rows = x.copy()
            for i, row in enumerate((2, 2)):
                rows[row] = join(rows[row], updates[i])
            own.add("ScatterND", [x, np.array([[2], [2]]), updates], opset=18, reference=[rows], reduction=reduction)


JOINS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def scattered(x, where, updates, axis, reduction):
    """Returns ScatterElements of NumPy arrays, one index after the other."""
    wanted = x.copy()
    for at in np.ndindex(where.shape):
        place = (*at[:axis], where[at], *at[axis + 1:])
        wanted[place] = updates[at] if reduction == "none" else JOINS[reduction](wanted[place], updates[at])
    return wanted


def scatter_and_gather_of_many_indices(own):
    """Several blocks of indices, rows of equal indices, repeated targets, and sizes that threads divide in each of the possible ways."""
    cases = [((50, 40), (700, 40), 0),  # equal indices in a row, below
             ((9, 130), (300, 130), 0),  # columns
             ((3000,), (20000,), 0), ((40, 3), (9000, 3), 0),  # targets
             ((700, 6), (700, 40), 1), ((600, 4, 3), (600, 9, 3), 1), ((20, 30, 40), (20, 50, 37), 1),  # independent parts
             ((5, 7, 1, 6), (5, 1, 1, 6), 1), ((6, 5, 4), (3, 900, 2), 1), ((1, 9000), (1, 30000), 1)]
    for number, (shape, index_shape, axis) in enumerate(cases):
        for kind in (np.int64, np.int32):
            where = rng.integers(-shape[axis], shape[axis], index_shape).astype(kind)
            if number < 2:
                where[:] = where[:, :1]
            x, updates = f32(*shape), f32(*index_shape, low=0.5, high=1.5)
            inside = x[tuple(slice(None) if i == axis else slice(size) for i, size in enumerate(index_shape))]
            own.add("GatherElements", [x, where], axis=axis, reference=[np.take_along_axis(inside, where.astype(np.int64), axis)])
            for reduction in ("none", "add") if number else ("none", *JOINS):
                own.add("ScatterElements", [x, where, updates], opset=18, axis=axis, reduction=reduction, rtol=1e-4, atol=1e-3,
                        reference=[scattered(x, where, updates, axis, reduction)])
    for depth, slice_shape, tuples in ((1, (), 30000), (2, (), 9000), (1, (5,), 5000), (2, (3, 70), 200), (1, (1,), 20000)):
        dims = (30, 40)[:depth]
        x, where = f32(*dims, *slice_shape), np.stack([rng.integers(-dim, dim, tuples) for dim in dims], -1)
        updates = f32(tuples, *slice_shape, low=0.5, high=1.5)
        own.add("GatherND", [x, where], reference=[x[tuple(where.T)]])
        for reduction in ("none", "add", "max"):
            wanted = x.copy()
            for place, update in zip(where, updates):
                wanted[tuple(place)] = update if reduction == "none" else JOINS[reduction](wanted[tuple(place)], update)
            own.add("ScatterND", [x, where, updates], opset=18, reduction=reduction, reference=[wanted], rtol=1e-4, atol=1e-3)
    for shape, axis, size in (((1000, 3), 0, 5000), ((70, 300), 1, 600), ((30000,), 0, 40000), ((20, 30, 40), 1, 90), ((5, 0, 3), 0, 7)):
        x, where = f32(*shape), rng.integers(-shape[axis], shape[axis], size)
        for kind in (np.float32, np.float64, np.int8, np.float16):
            own.add("Gather", [x.astype(kind), where], axis=axis, reference=[np.take(x.astype(kind), where, axis)])


def indices_out_of_range(own):
    x = f32(40, 30)
    for bad in (40, -41, 2**40, -2**63):
        where = np.zeros((900, 30), np.int64)
        where[777, 7] = bad
        own.refuse("GatherElements", [x, where], f"index {bad} is out of range: the dimension is 40", axis=0)
        own.refuse("ScatterElements", [x, where, f32(900, 30)], f"index {bad} is out of range: the dimension is 40", axis=0)
        own.refuse("GatherND", [x, where[:, 7:8]], f"index {bad} is out of range: the dimension is 40")
        own.refuse("ScatterND", [x, where[:, 7:8], f32(900, 30)], f"index {bad} is out of range: the dimension is 40")
        own.refuse("Gather", [x, where[:, 7]], f"index {bad} at position 777 is out of range: the dimension is 40", axis=0)


def pad(own):
    x = f32(2, 3, 4, 5)
    for mode in ("constant", "edge", "reflect"):
        own.add("Pad", [x, i64(0, 1, 2, 1, 0, 0, 1, 3)] + ([np.array(2.5, np.float32)] if mode == "constant" else []), mode=mode)
    own.add("Pad", [x, i64(0, 0, -1, 1, 0, 0, 0, -2)])
    own.add("Pad", [x], pads=[0, 1, 0, 0, 0, 0, 1, 0], value=1.5, opset=10)
    x = f32(2, 3, 4, 5)
    pads = i64(0, 1, 2, 3, 0, 0, 1, 2)
    for dtype in (np.float32, np.uint8, np.float64, np.float16):
        y = (x * 20).astype(np.int32).astype(dtype)
        for mode in ("constant", "edge", "reflect", "wrap"):
            own.add("Pad", [y, pads], opset=19, mode=mode, reference="onnx")
        own.add("Pad", [y, pads, np.array(3, dtype)], opset=13)
    own.add("Pad", [x, i64(-1, 2, 1, -2), None, i64(1, 3)], opset=18)
    own.add("Pad", [x, i64(3, 1, 0, 0), np.float32(2.5), i64(0, 2)], opset=18)
    own.add("Pad", [x], opset=1, paddings=[0, 0, 1, 2, 0, 0, 2, 0], value=1.5,
            reference=[np.pad(x, [(0, 0), (0, 0), (1, 2), (2, 0)], constant_values=1.5)])
    own.add("Pad", [x], opset=2, pads=[0, 0, 1, 2, 0, 0, 2, 0], value=1.5)
    # found by fuzzing: types narrower than a byte were not supported
    for name in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn"):
        x = np.arange(-15, 15).reshape(2, 3, 5) % 4 if name[0] == "u" else np.arange(-15, 15).reshape(2, 3, 5) % 4 - 2
        x = x.astype(np.float32).astype(np.dtype(name))
        pads = i64(0, 1, 0, 0, 0, 2)
        own.add("Pad", [x, pads, np.ones((), x.dtype)], opset=25, constants=[1],
                reference=[np.pad(x.astype(np.float32), ((0, 0), (1, 0), (0, 2)), constant_values=1).astype(x.dtype)])
        own.add("Pad", [x, i64(1, 0, 2, 0, 0, 0)], opset=25, mode="reflect",
                reference=[np.pad(x.astype(np.float32), ((1, 0), (0, 0), (2, 0)), mode="reflect").astype(x.dtype)])
    own.microsoft("Pad", [f32(3, 4), i64(1, 0, 2, 1), np.float32([1.5])], mode="constant")
    own.microsoft("Pad", [f32(3, 4), i64(1, 0, 2, 1)], mode="edge", constants=(1,))


def trilu(own):
    own.add("Trilu", [f32(2, 4, 5)], upper=0)
    own.add("Trilu", [f32(4, 6), np.array(2, np.int64)])
    own.add("Trilu", [f32(4, 6), np.array(-1, np.int64)], upper=0)
    own.microsoft("Trilu", [f32(2, 5, 6), np.array(1, np.int64)], upper=0)
    own.add("Trilu", [np.zeros((2, 0), np.float32)], opset=14, reference=[np.zeros((2, 0), np.float32)])


def depth_to_space_and_space_to_depth(own):
    own.add("DepthToSpace", [f32(2, 12, 3, 4)], blocksize=2)
    own.add("DepthToSpace", [f32(2, 12, 3, 4)], blocksize=2, mode="CRD")
    own.add("SpaceToDepth", [f32(2, 3, 6, 4)], blocksize=2)


def shape_and_size(own):
    x = f32(2, 3, 4, 5)
    own.add("Shape", [x], opset=15, start=1, end=-1)
    own.add("Size", [x])


def constant_of_shape_and_eye_like(own):
    for value in (np.array([2.5], np.float32), np.array([-3], np.int64), np.array([7], np.uint8), np.array([1.5], np.float16)):
        own.add("ConstantOfShape", [i64(3, 1111)], value=numpy_helper.from_array(value), reference=[np.full((3, 1111), value[0])])
    own.add("ConstantOfShape", [i64(2, 3)], value=numpy_helper.from_array(np.array([7], np.int32)))
    own.add("EyeLike", [f32(3, 4)], k=1)
    # found by fuzzing: a number of no element type was truncated to 32 bits and taken for another type
    own.refuse("EyeLike", [f32(2, 3)], "EyeLike", opset=9, dtype=2**32 + 1)


def range_(own):
    for kind in (np.int16, np.int32, np.int64, np.float32, np.float64):
        own.add("Range", [kind(900), kind(-700), kind(-3)], reference=[np.arange(900, -700, -3).astype(kind)])
    own.add("Range", [np.array(1, np.int64), np.array(12, np.int64), np.array(3, np.int64)])
    own.add("Range", [np.array(2, np.float32), np.array(-1, np.float32), np.array(-0.5, np.float32)])
    for dtype in (np.float16, ml_dtypes.bfloat16):
        start, limit, delta = (np.array(v, dtype) for v in (-3.5, 2.1, 0.7))
        for stash in (T.FLOAT, T.DOUBLE):
            own.add("Range", [start, limit, delta], opset=27, reference="onnx", rtol=1e-3, stash_type=stash)


def non_zero_compress_and_one_hot(own):
    own.add("NonZero", [np.array([[1, 0, 2], [0, 0, 3]], np.float32)])
    for kind in (np.float32, np.float64, np.float16, np.int8, np.uint8, np.int32, np.int64, np.bool_):
        x = (rng.integers(0, 3, (2, 3, 700)) - 1).astype(kind)
        own.add("NonZero", [x], opset=13, reference=[np.array(np.nonzero(x))])
    own.add("NonZero", [np.zeros((2, 0, 3), np.float32)], opset=13, reference=[np.zeros((3, 0), np.int64)])
    # found by fuzzing: NonZero did not support complex numbers
    for kind in (np.complex64, np.complex128):
        own.add("NonZero", [np.array([[0, 1j, 2], [-3 + 1j, 0, 0]], kind)], opset=13, reference=[np.array([[0, 0, 1], [1, 2, 0]])])
    own.add("OneHot", [np.array([[1, -1], [9, 0]], np.int64), np.array(4, np.int64), np.array([2, 7], np.float32)], axis=1, opset=11)
    own.add("Compress", [f32(3, 4), np.array([True, False, True])], axis=-1, opset=11)
    own.add("Compress", [f32(3, 4), np.array([False, True, True, False, True])], opset=11)


def reverse_sequence(own):
    own.add("ReverseSequence", [f32(3, 4, 2), i64(3, 0, 2, 1)], batch_axis=1, time_axis=0, opset=10)


def identity(own):
    own.add("Identity", [np.array(["x", ""], object)])


def center_crop_pad_and_col2im(own):
    own.add("CenterCropPad", [f32(5, 8, 3), i64(7, 3)], opset=18, axes=[0, -2], reference="onnx")
    own.add("CenterCropPad", [rng.integers(-9, 9, (4, 5)).astype(np.int16), i64(3, 8)], opset=18, reference="onnx")
    own.add("Col2Im", [f32(2, 18, 25), i64(6, 7), i64(2, 3)], opset=18)
    own.add("Col2Im", [f32(1, 12, 9), i64(6, 9), i64(3, 2)], opset=18, strides=[2, 3], pads=[1, 0, 0, 2], dilations=[1, 2], reference="onnx")


def sparse(dims, linear):
    values = numpy_helper.from_array(f32(3), "w")
    indices = i64(1, 5, 11) if linear else np.array([[0, 1], [1, 1], [2, 3]], np.int64)
    return helper.make_sparse_tensor(values, numpy_helper.from_array(indices), dims)


def constant(own):
    """Sparse tensors, as a constant and as an initializer."""
    for linear in (True, False):
        tensor = sparse([3, 4], linear)
        dense = np.zeros(12, np.float32)
        dense[[1, 5, 11]] = numpy_helper.to_array(tensor.values)
        dense, x = dense.reshape(3, 4), f32(2, 3)
        for kind in ("constant", "initializer"):
            nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
            if kind == "constant":
                nodes.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=tensor))
            graph = helper.make_graph(nodes, "sparse", [helper.make_tensor_value_info("x", T.FLOAT, (2, 3))],
                                      [helper.make_tensor_value_info("y", T.FLOAT, (2, 4))])
            if kind == "initializer":
                graph.sparse_initializer.append(tensor)
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
            own.model("sparse_" + kind, model, [("x", x)], [x @ dense], op="Constant")


def wrong_attributes(own):
    blocks = [f32(1, 4, 9), i64(4, 4), i64(2, 2)]
    own.refuse("Col2Im", blocks, "attribute 'strides' has 3 values: expected 2", opset=18, strides=[1, 1, 1])
    own.refuse("Col2Im", blocks, "attribute 'dilations' is out of range", opset=18, dilations=[1, 0])
    own.refuse("ReverseSequence", [f32(2, 3), i64(1, 2)], "batch_axis and time_axis must be 0 and 1", batch_axis=2, time_axis=-1)


CASES = [
    reshape_flatten_squeeze_and_unsqueeze, transpose, transpose_of_types, concat_and_split, slice_, expand_and_tile, gather, scatter,
    scatter_and_gather_of_many_indices, indices_out_of_range, pad, trilu, depth_to_space_and_space_to_depth, shape_and_size, constant_of_shape_and_eye_like, range_,
    non_zero_compress_and_one_hot, reverse_sequence, identity, center_crop_pad_and_col2im, wrong_attributes, constant]
