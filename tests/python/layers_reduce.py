# SPDX-License-Identifier: Apache-2.0
"""Compares reductions, sorts, cumulative sums and normalizations with numpy."""
import numpy as np

from layers_support import FLOATS, LayerCase

REDUCE = {"SUM": np.sum, "PROD": np.prod, "MAX": np.max, "MIN": np.min, "AVERAGE": np.mean}


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


class ReduceLayers(LayerCase):
    def test_reduce(self):
        for dtype in (*FLOATS, "int32", "int64"):
            x = (self.integers(-4, 5, 3, 4, 5, dtype=dtype) if dtype[0] == "i" else self.normal(3, 4, 5, dtype=dtype))
            for name, function in REDUCE.items():
                if name == "AVERAGE" and dtype[0] == "i":
                    continue
                for axes in ((0,), (1,), (-1,), (0, 2), (1, 2), (0, 1, 2)):
                    for keep in (False, True):
                        expected = function(x if dtype[0] == "i" else x.astype("float64"), axis=axes, keepdims=keep)
                        self.check(lambda n, t: n.add_reduce(t, name, axes, keep), [x], np.asarray(expected).astype(dtype),
                                   f"{name} {dtype} {axes} {keep}", 2e-2 if dtype == "float16" else None, dynamic_axis=1)
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_reduce(t, "sum", (3,)), self.normal(2, 3))

    def test_softmax(self):
        for dtype in FLOATS:
            x = self.normal(3, 4, 5, dtype=dtype) * np.asarray(4, dtype)
            for axis in (0, 1, 2, -1):
                self.check(lambda n, t: n.add_softmax(t, axis), [x], softmax(x.astype("float64"), axis).astype(dtype), f"{dtype} {axis}")
            self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_softmax(t, (0, 1)), x)
            for shape in ((4, 6), (2, 4, 6)):
                x, bounds = self.normal(*shape, dtype=dtype), self.integers(1, 7, *shape[:-1], 1)
                expected = np.zeros(shape)
                for at in np.ndindex(*shape[:-1]):
                    k = bounds[at][0]
                    expected[at][:k] = softmax(x[at][:k].astype("float64"), 0)
                self.check(lambda n, *t: n.add_ragged_softmax(*t), [x, bounds], expected.astype(dtype), f"ragged {dtype} {shape}")
            x, bounds = self.normal(2, 3, dtype=dtype), np.array([[0], [3]], "int32")
            found, = self.outputs_of(lambda n, *t: n.add_ragged_softmax(*t), [x, bounds])
            self.assertEqual(found[0].tolist(), [0, 0, 0])

    def test_topk(self):
        for dtype in (*FLOATS, "int32", "int64"):
            x = self.rng.permutation(3 * 7 * 4).reshape(3, 7, 4).astype(dtype)
            for axis in (0, 1, 2):
                for largest in (True, False):
                    order = np.argsort(-x.astype("float64") if largest else x.astype("float64"), axis, kind="stable").take(range(2), axis)
                    for index in ("int32", "int64"):
                        expected = [np.take_along_axis(x, order, axis), order.astype(index)]
                        what = f"{dtype} {axis} {largest} {index}"
                        self.check(lambda n, t: n.add_topk(t, 2, axis, largest=largest, indices=index), [x], expected, what)
                        self.check(lambda n, t, k: n.add_topk(t, k, axis, largest=largest, indices=index), [x, np.array(2, "int32")],
                                   expected, what + " computed", dynamic_axis=None)
        ties = np.array([[1, 3, 3, 1, 3]], "float32")
        self.check(lambda n, t: n.add_topk(t, 3), [ties], [np.array([[3, 3, 3]], "float32"), np.array([[1, 2, 4]], "int32")])
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_topk(t, 9), self.normal(2, 3))

    def test_cumulative(self):
        for dtype in (*FLOATS, "int32", "int64"):
            x = (self.integers(-9, 10, 3, 4, 5, dtype=dtype) if dtype[0] == "i" else self.normal(3, 4, 5, dtype=dtype))
            for axis in (0, 1, -1):
                for exclusive in (False, True):
                    for reverse in (False, True):
                        wide = np.flip(x, axis) if reverse else x
                        wide = wide if dtype[0] == "i" else wide.astype("float64")
                        sums = np.cumsum(wide, axis) - (wide if exclusive else 0)
                        self.check(lambda n, t: n.add_cumulative(t, axis, exclusive, reverse), [x],
                                   (np.flip(sums, axis) if reverse else sums).astype(dtype), f"{dtype} {axis} {exclusive} {reverse}")

    def test_normalization(self):
        for dtype in FLOATS:
            x = (self.normal(2, 6, 3, 5) * 2 + 1).astype(dtype)
            wide = x.astype("float64")
            tolerance = 1e-4 if dtype == "float32" else 2e-2
            for axes in ((1,), (2, 3), (1, 2, 3), (3,), (0, 2)):
                for shape in ((1, 6, 1, 1), (1, 1, 1, 5), (1, 6, 3, 5)):
                    scale, bias = self.normal(*shape, dtype=dtype), self.normal(*shape, dtype=dtype)
                    for epsilon in (1e-5, 0.5):
                        mean, variance = wide.mean(axes, keepdims=True), wide.var(axes, keepdims=True)
                        expected = ((wide - mean) / np.sqrt(variance + epsilon) * scale + bias).astype(dtype)
                        self.check(lambda n, t: n.add_normalization(t, scale, bias, axes, epsilon=epsilon), [x], expected,
                                   f"{dtype} {axes} {shape} {epsilon}", tolerance)
            for groups in (2, 3, 6):
                grouped = wide.reshape(2, groups, -1)
                standard = (grouped - grouped.mean(2, keepdims=True)) / np.sqrt(grouped.var(2, keepdims=True) + 1e-5)
                scale, bias = self.normal(1, 6, 1, 1, dtype=dtype), self.normal(1, 6, 1, 1, dtype=dtype)
                self.check(lambda n, t: n.add_normalization(t, scale, bias, (2, 3), groups=groups), [x],
                           (standard.reshape(x.shape) * scale + bias).astype(dtype), f"{dtype} {groups} groups", tolerance)
                scale, bias = self.normal(1, groups, 1, 1, dtype=dtype), self.normal(1, groups, 1, 1, dtype=dtype)
                expected = standard * scale.reshape(1, groups, 1) + bias.reshape(1, groups, 1)
                self.check(lambda n, t: n.add_normalization(t, scale, bias, (2, 3), groups=groups), [x],
                           expected.reshape(x.shape).astype(dtype), f"{dtype} {groups} groups, theirs", tolerance)
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_normalization(t, self.normal(1, 4, 1), self.normal(1, 4, 1), (2,)),
                     self.normal(2, 3, 4))
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_normalization(t, self.normal(1, 6, 1), self.normal(1, 6, 1), (2,), groups=4),
                     self.normal(2, 6, 4), words=("6", "4"))
