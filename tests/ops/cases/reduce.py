# SPDX-License-Identifier: Apache-2.0
"""Cases of reductions, ArgMax and ArgMin, TopK, Hardmax, cumulative sums and Unique."""
import numpy as np

from .common import HALVES, f32, i64, rng


def reductions(own):
    x = f32(3, 4, 5, 6)
    for op in ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
               "ReduceSumSquare", "ReduceLogSumExp"]:
        if op != "ReduceSum":
            own.add(op, [x], axes=[1, -1], keepdims=0)
            own.add(op, [x], axes=[0, 2])
        own.add(op, [x])
        own.add(op, [x, i64(-2, 0)], opset=18, keepdims=0, constants=(1,))
        own.add(op, [x, i64(3)], opset=18, keepdims=1)
    own.add("ReduceSum", [x], opset=11, axes=[1, 2])
    own.add("ReduceSum", [x, i64(1, 2)], noop_with_empty_axes=1)
    own.add("ReduceMean", [np.arange(24, dtype=np.int32).reshape(2, 3, 4)], axes=[1])
    own.add("ReduceLogSum", [f32(3, 4, low=0.5)], axes=[1])
    rows = np.array([[np.nan, 1, 2], [np.inf, 2, 0], [-np.inf, np.inf, 1], [-np.inf, -np.inf, -np.inf], [-np.inf, np.nan, -np.inf]], np.float32)
    own.add("ReduceLogSumExp", [rows, i64(1)], opset=18,
            reference=[np.array([[np.nan], [np.inf], [np.inf], [-np.inf], [np.nan]], np.float32)])
    # found by fuzzing: reductions over no axes omitted squares, absolute values and logarithms
    for op in ("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceMean"):
        own.add(op, [f32(3, 1, 4)], opset=18, noop_with_empty_axes=1, reference="onnx")
        own.add(op, [f32(2, 5), i64()], opset=18, noop_with_empty_axes=1, keepdims=0, constants=[1], reference="onnx")
    own.add("ReduceLogSum", [f32(2, 3, low=0.5)], opset=18, noop_with_empty_axes=1, reference="onnx")
    own.add("ReduceSumSquare", [np.arange(-3, 3, dtype=np.int32)], opset=18, noop_with_empty_axes=1, reference=[np.array([9, 4, 1, 0, 1, 4], np.int32)])
    own.add("ReduceMax", [np.zeros((2, 0), np.float32)], opset=18, reference=[np.full((1, 1), -np.inf, np.float32)])


def integer_reductions(own):
    """Reductions of the integer types that models rarely use."""
    for dtype in (np.int32, np.int64, np.uint32, np.uint64):
        x = rng.integers(1, 9, (2, 3, 4)).astype(dtype)
        far = x + np.array(2 ** 31 - 20 if dtype == np.int32 else 2 ** 31 + 7, dtype)
        for name, fold in (("Sum", np.sum), ("Prod", np.prod), ("Max", np.max), ("Min", np.min),
                           ("SumSquare", lambda a, axis: np.sum(a * a, axis=axis)), ("L1", np.sum)):
            own.add("Reduce" + name, [x, i64(0, 2)], opset=18, keepdims=0, reference=[fold(x, axis=(0, 2)).astype(dtype)])
        own.add("ReduceMax", [far, i64(1)], opset=18, keepdims=0, reference=[far.max(1)])
        own.add("ReduceMean", [x, i64(1)], opset=18, keepdims=0, reference=[(x.sum(1) // 3).astype(dtype)])
        exact = np.log(np.exp(x.astype(np.float64)).sum(1)).astype(dtype)
        own.add("ReduceLogSumExp", [x, i64(1)], opset=18, keepdims=0, reference=[exact])


def long_reductions(own):
    """Reductions over each axis of inputs whose lengths are no multiples of a vector."""
    for op in ("ReduceSum", "ReduceMean", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceL1", "ReduceMax", "ReduceMin", "ReduceLogSumExp"):
        for shape, axes in (((3, 37, 70), (1,)), ((3, 37, 70), (2,)), ((5, 3, 4, 33), (1, 3)), ((5, 3, 4, 33), (0, 2)), ((2, 9, 1), (1,)), ((40, 3), (0,)), ((4, 5, 6), (0, 1, 2))):
            own.add(op, [f32(*shape, low=0.5 if op == "ReduceLogSum" else -2), i64(*axes)], opset=18, constants=(1,), atol=1e-4)


def layouts(own):
    """Every reduction and type in each layout: rows and columns, with lengths around the widths of vectors, and parts."""
    shapes = (((2, 150), (1,)), ((70, 3), (0,)), ((5, 3, 41), (1,)), ((3, 2, 600), (1,)), ((4, 6, 3), (2,)), ((2, 3, 4, 70), (0, 2)), ((3, 5, 2, 9), (0, 2, 3)))
    folds = {"Sum": np.sum, "Prod": np.prod, "Max": np.max, "Min": np.min, "SumSquare": lambda a, axis: np.sum(a * a, axis=axis),
             "L1": lambda a, axis: np.sum(np.abs(a), axis=axis), "LogSumExp": lambda a, axis: np.log(np.exp(a).sum(axis=axis))}
    for dtype in (np.float32, np.float64, np.float16, np.int32, np.int64, np.uint32, np.uint64, np.int8, np.uint8):
        for shape, axes in shapes:
            real = np.issubdtype(dtype, np.floating)
            x = rng.uniform(0.8, 1.2, shape) * rng.choice([-1, 1], shape) if real else rng.integers(0 if dtype in (np.uint32, np.uint64, np.uint8) else -3, 4, shape)
            x = x.astype(dtype)
            wide = x.astype(np.float64 if real else np.uint64 if np.issubdtype(dtype, np.unsignedinteger) else np.int64)
            for name, fold in folds.items():
                if (name == "LogSumExp" and not real) or (dtype in (np.int8, np.uint8) and name not in ("Max", "Min")):
                    continue
                own.add("Reduce" + name, [x, i64(*axes)], opset=20, keepdims=0, constants=(1,), reference=[fold(wide, axis=axes).astype(dtype)],
                        **({"rtol": 1e-2, "atol": 1e-2} if dtype == np.float16 else {}))
    for dtype in (np.float32, np.int32, np.uint8):
        x = rng.integers(0, 100, (2, 300, 331)).astype(dtype)
        for axes in ((0, 1, 2), (1, 2), (0, 1)):
            for name, fold in (("Sum", np.sum), ("Max", np.max), ("Min", np.min), ("Mean", np.mean)):
                if dtype != np.uint8 or name in ("Max", "Min"):
                    wide = fold(x.astype(np.int64), axis=axes)
                    own.add("Reduce" + name, [x, i64(*axes)], opset=20, keepdims=0, constants=(1,), reference=[wide.astype(dtype)], rtol=1e-5)
    hole = np.ones((3, 700), np.float32)
    hole[1, 650] = np.nan
    for op in ("ReduceMax", "ReduceMin", "ReduceSum", "ReduceLogSumExp"):
        base = 1 if op in ("ReduceMax", "ReduceMin") else 700 if op == "ReduceSum" else 1 + np.log(700)
        own.add(op, [hole, i64(1)], opset=18, keepdims=0, constants=(1,), reference=[np.array([base, np.nan, base], np.float32)])
        own.add(op, [hole.T.copy(), i64(0)], opset=18, keepdims=0, constants=(1,), reference=[np.array([base, np.nan, base], np.float32)])


def best(x, axis, least, last):
    """Returns the positions of the maxima or minima as ArgMax and ArgMin do."""
    if last:
        return x.shape[axis] - 1 - best(np.flip(x, axis), axis, least, False)
    return (np.argmin if least else np.argmax)(x, axis)


def arg_layouts(own):
    """ArgMax and ArgMin of all types with ties in and across blocks, along the last and other axes."""
    for dtype in (np.float32, np.float64, np.float16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        for shape, axis in (((3, 1300), 1), ((1300, 3), 0), ((2, 5, 70), 1), ((2, 70, 1), 1), ((600, 530), 0)):
            x = rng.integers(0, 40, shape).astype(dtype)
            for least in (0, 1):
                for last in (0, 1):
                    own.add("ArgMin" if least else "ArgMax", [x], opset=13, axis=axis, keepdims=0, select_last_index=last,
                            reference=[best(x, axis, least, last)])
    x = rng.uniform(-1, 1, (3, 1300)).astype(np.float32)
    x[1, [700, 1200]] = np.nan
    for op in ("ArgMax", "ArgMin"):
        for last, position in ((0, 700), (1, 1200)):
            for rows in (x, x[:, ::-1].copy()):
                found = best(np.where(np.isnan(rows), 0, rows), 1, op == "ArgMin", last)
                found[1] = position if rows is x else 1299 - (1900 - position)
                own.add(op, [rows], opset=13, axis=1, keepdims=0, select_last_index=last, reference=[found])
                own.add(op, [rows.T.copy()], opset=13, axis=0, keepdims=0, select_last_index=last, reference=[found])


def large_reductions(own):
    """Several blocks of a row, of columns, and of one result that the threads divide; NaN and infinities in each place."""
    folds = {"ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min, "ReduceL1": lambda x, axis: np.abs(x).sum(axis),
             "ReduceSumSquare": lambda x, axis: np.square(x).sum(axis)}
    for op, fold in folds.items():
        for shape, axis in (((3, 21001), 1), ((7000, 300), 0), ((70, 2003), 1), ((300, 7, 5), 1), ((90001,), 0), ((1000, 3), 1)):
            x = f32(*shape, low=0.5)
            want = np.asarray(fold(x.astype(np.float64), axis=axis))
            own.add(op, [x, i64(axis)], opset=18, keepdims=0, constants=(1,), reference=[want.astype(np.float32)], rtol=1e-5)
    for op in ("ReduceMax", "ReduceMin"):
        for at in (0, 40, 66, 69):
            for value in (np.nan, np.inf, -np.inf):
                x = f32(70, 69)
                x[:, at % 69] = value
                x[5, 3] = np.nan
                for axis in (0, 1):
                    own.add(op, [x, i64(axis)], opset=18, keepdims=0, constants=(1,), reference=[folds[op](x, axis=axis)])


def arg_max_and_arg_min_of_many(own):
    """Ties, NaN and select_last_index for each type, along the last axis and along others."""
    for kind in (np.float32, np.float64, np.float16, np.int32, np.int64, np.uint64, np.int8, np.uint8, np.uint16):
        for shape, axis in (((9, 300), 1), ((40, 150), 0), ((3, 50, 70), 1)):
            x = rng.integers(0, 60, shape).astype(kind)
            for nan in (False, True) if np.dtype(kind).kind == "f" else (False,):
                if nan:
                    x[tuple(rng.integers(0, side, 2 * x.size // 100) for side in shape)] = np.nan
                for op, fold in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
                    last = x.shape[axis] - 1 - fold(np.flip(x, axis), axis=axis)
                    own.add(op, [x], opset=13, axis=axis, keepdims=0, reference=[fold(x, axis=axis)])
                    own.add(op, [x], opset=13, axis=axis, keepdims=0, select_last_index=1, reference=[last])


def arg_max_and_arg_min(own):
    x = f32(3, 4, 5, 6)
    for op in ("ArgMax", "ArgMin"):
        own.add(op, [x], axis=2, keepdims=0)
        own.add(op, [np.array([[3, 1, 3], [2, 2, 0]], np.int32)], axis=1, select_last_index=1, opset=13)
    big = np.array([[2 ** 62, 2 ** 62 + 1, 2 ** 62], [-5, -7, -6]])
    for op, pick in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
        own.add(op, [big], opset=13, axis=1, keepdims=0, reference=[pick(big, 1)])
        far = big[:1].astype(np.uint64) * 3
        own.add(op, [far], opset=13, axis=1, keepdims=0, reference=[pick(far, 1)])
        holes = np.array([[1, np.nan, 3, np.nan], [4, 2, 9, 1]], np.float32)
        own.add(op, [holes], opset=13, axis=1, keepdims=0, reference=[pick(holes, 1)])
    ties = np.array([[3, 1, 3, 1]], np.int16)
    own.add("ArgMax", [ties], opset=13, axis=1, keepdims=0, select_last_index=1, reference=[i64(2)])
    own.add("ArgMin", [ties], opset=13, axis=1, keepdims=0, select_last_index=1, reference=[i64(3)])


def hardmax(own):
    own.add("Hardmax", [f32(3, 4, 5)], axis=1)
    for dtype in HALVES:
        x = f32(3, 5).astype(dtype)
        top = np.zeros((3, 5), dtype)
        top[np.arange(3), np.argmax(x.astype(np.float32), 1)] = 1
        own.add("Hardmax", [x], opset=13, reference=[top])
    own.add("Hardmax", [np.zeros((2, 0), np.float32)], opset=13, reference=[np.zeros((2, 0), np.float32)])


def cum_sum_and_cum_prod(own):
    x = f32(3, 4, 5, 6)
    own.add("CumSum", [x, i64(1)[0:1].reshape(())], exclusive=1)
    own.add("CumSum", [x, i64(-1)[0:1].reshape(())], reverse=1)
    own.add("CumSum", [np.arange(12, dtype=np.int64).reshape(3, 4), np.array(0, np.int64)], exclusive=1, reverse=1)
    for dtype in HALVES:
        x = f32(3, 5).astype(dtype)
        own.add("CumSum", [x, np.array(1)], opset=14, reference=[np.cumsum(x.astype(np.float64), 1).astype(dtype)], rtol=1e-2)
        own.add("CumProd", [x, np.array(-1)], opset=26, reference=[np.cumprod(x.astype(np.float64), 1).astype(dtype)], rtol=1e-2)
    own.add("CumSum", [np.zeros((2, 0), np.float32), np.array(0)], opset=14, reference=[np.zeros((2, 0), np.float32)])


def top_k(own):
    x = f32(3, 4, 5, 6)
    for largest in (0, 1):
        own.add("TopK", [x, i64(3)], outputs=2, axis=1, largest=largest)
        own.add("TopK", [np.array([5, 1, 5, 2, 5, 1], np.int64), i64(4)], outputs=2, largest=largest)
    own.add("TopK", [np.zeros((0, 4), np.float32), i64(2)], opset=11, outputs=2)
    for dtype in (np.float32, np.float64, np.float16, np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64):
        for shape, axis in (((3, 1500), 1), ((1500, 3), 0), ((2, 40, 5), 1)):
            x = rng.integers(0, 200 if dtype != np.int8 else 100, shape).astype(dtype)
            if dtype == np.uint64:
                x[0, 0] = 2 ** 63 + 5
            for k in (1, 7, 40):
                for largest in (0, 1):
                    first = np.argsort((~x if largest else x) if x.dtype.kind in "iu" else -x if largest else x, axis=axis, kind="stable")
                    first = np.take(first, np.arange(k), axis=axis)
                    own.add("TopK", [x, i64(k)], opset=11, outputs=2, axis=axis, largest=largest, constants=(1,),
                            reference=[np.take_along_axis(x, first, axis=axis), first])
    x = np.float32([[-0.0, 0.0, np.nan, -1, np.nan, np.inf, -np.inf] + [2.5] * 600 + [np.nan, 3]])
    own.add("TopK", [x, i64(5)], opset=11, outputs=2, reference=[np.float32([[np.nan, np.nan, np.nan, np.inf, 3]]), i64(2, 4, 607, 5, 608).reshape(1, 5)])
    own.add("TopK", [x, i64(5)], opset=11, outputs=2, largest=0, reference=[np.float32([[-np.inf, -1, -0.0, 0, 2.5]]), i64(6, 3, 0, 1, 7).reshape(1, 5)])


def first_seen(x, axis=None):
    """Returns Unique's outputs in the order of first occurrence, from those of NumPy in ascending order."""
    y, first, where, count = np.unique(x, True, True, True, axis=axis)
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return [np.take(y, order, axis=axis or 0), first[order], number[where.reshape(-1)], count[order]]


def unique(own):
    numbers = rng.integers(0, 6, (4, 3, 5))
    words = np.array(["kelp", "", "ünï", "a", "kelp", "Ω", "a", "zz", "kelp"], object)
    for dtype in (np.float32, np.float64, np.float16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        x = (numbers - (3 if np.dtype(dtype).kind in "if" else 0)).astype(dtype)
        flat = [a for a in np.unique(x, True, True, True)]
        flat[2] = flat[2].reshape(-1)
        own.add("Unique", [x], opset=11, outputs=4, reference=flat)
        own.add("Unique", [x], opset=11, outputs=4, reference=first_seen(x.reshape(-1)), sorted=0)
    for axis in (0, 1, 2, -1):
        x = rng.integers(0, 2, (4, 2, 3)).astype(np.float32).repeat(2, axis=axis)
        rising = [a for a in np.unique(x, True, True, True, axis=axis)]
        rising[2] = rising[2].reshape(-1)
        own.add("Unique", [x], opset=11, outputs=4, reference=rising, axis=axis)
        own.add("Unique", [x.astype(np.int64)], opset=11, outputs=4, reference=first_seen(x.astype(np.int64), axis), axis=axis, sorted=0)
    rising = [words[[1, 3, 0, 7, 2, 5]], i64(1, 3, 0, 7, 2, 5), i64(2, 0, 4, 1, 2, 5, 1, 3, 2), i64(1, 2, 3, 1, 1, 1)]
    own.add("Unique", [words], opset=11, outputs=4, reference=rising)
    own.add("Unique", [words], opset=11, outputs=4, sorted=0,
            reference=[words[[0, 1, 2, 3, 5, 7]], i64(0, 1, 2, 3, 5, 7), i64(0, 1, 2, 3, 0, 4, 3, 5, 0), i64(3, 1, 1, 2, 1, 1)])
    own.add("Unique", [np.array([True, False, True])], opset=11, reference=[np.array([False, True])])
    special = np.array([np.nan, 1, -np.inf, np.nan, 0.0, -0.0, np.inf], np.float32)
    own.add("Unique", [special], opset=11, outputs=4, reference=list(np.unique(special, True, True, True)))
    own.add("Unique", [np.zeros(0, np.int32)], opset=11, outputs=4, reference=[np.zeros(0, np.int32), i64(), i64(), i64()])
    own.add("Unique", [np.array(7, np.int64)], opset=11, outputs=4, reference=[i64(7), i64(0), i64(0), i64(1)])
    z = np.array([1 + 2j, 1 - 1j, 0, 1 + 2j], np.complex64)
    own.add("Unique", [z], opset=11, outputs=4, reference=list(np.unique(z, True, True, True)))


def microsoft_unique(own):
    own.microsoft("Unique", [rng.integers(-4, 5, 40).astype(np.float32)], outputs=3)
    own.microsoft("Unique", [np.float32([3])], outputs=3)


def integers_that_overflow(own):
    x = np.array([[2**62, 2**62, 2**61], [-2**63, -2**63, 5], [3, 2**40, 2**40]])
    wrapped = lambda values: np.array([(v + 2**63) % 2**64 - 2**63 for v in values])  # noqa: E731
    rows = [[int(v) for v in row] for row in x]
    for op, reduced in [("ReduceSum", [sum(r) for r in rows]), ("ReduceProd", [r[0] * r[1] * r[2] for r in rows]),
                        ("ReduceL1", [sum(map(abs, r)) for r in rows]), ("ReduceSumSquare", [sum(v * v for v in r) for r in rows])]:
        own.add(op, [x, i64(1)], opset=18, keepdims=0, reference=[wrapped(reduced)])


CASES = [
    reductions, integer_reductions, long_reductions, layouts, large_reductions, arg_layouts, arg_max_and_arg_min, arg_max_and_arg_min_of_many,
    hardmax, cum_sum_and_cum_prod, top_k, unique,
    microsoft_unique, integers_that_overflow]
