# SPDX-License-Identifier: Apache-2.0
"""Compares layers that change shapes or move elements with numpy."""
import numpy as np

from layers_support import LayerCase

TYPES = ("float32", "float16", "int32", "int64", "bool")


def places(start, size, stride, dim, mode):
    """Returns the indices that a slice reads on an axis; -1 is outside."""
    result = []
    for i in range(size):
        at = start + i * stride
        if mode == "wrap":
            at %= dim
        elif mode == "clamp":
            at = min(max(at, 0), dim - 1)
        elif mode == "reflect":
            period = max(2 * (dim - 1), 1)
            at %= period
            at = period - at if at >= dim else at
        result.append(at if 0 <= at < dim else -1)
    return result


def sliced(x, start, size, stride, mode, fill=0):
    outside = np.zeros(size, bool)
    for axis in range(x.ndim):
        taken = np.array(places(start[axis], size[axis], stride[axis], x.shape[axis], mode), "int64")
        outside |= (taken < 0).reshape([-1 if i == axis else 1 for i in range(len(size))])
    y = x
    for axis in range(x.ndim):
        y = np.take(y, [max(at, 0) for at in places(start[axis], size[axis], stride[axis], x.shape[axis], mode)], axis)
    return np.where(outside, np.asarray(fill, x.dtype), y)


class ShapeLayers(LayerCase):
    def some(self, dtype, *shape):
        return self.integers(0, 2, *shape, dtype="bool") if dtype == "bool" else (self.normal(*shape) * 9).astype(dtype)

    def test_shuffle(self):
        for dtype in TYPES:
            x = self.some(dtype, 2, 3, 4)
            self.check(lambda n, t: n.add_shuffle(t, first_transpose=(2, 0, 1)), [x], x.transpose(2, 0, 1), dtype)
            self.check(lambda n, t: n.add_shuffle(t, reshape=(0, -1)), [x], x.reshape(2, 12), dtype)
            self.check(lambda n, t: n.add_shuffle(t, reshape=(4, 6)), [x], x.reshape(4, 6), dtype)
            self.check(lambda n, t: n.add_shuffle(t, first_transpose=(1, 2, 0), reshape=(3, 2, 4), second_transpose=(2, 0, 1)), [x],
                       x.transpose(1, 2, 0).reshape(3, 2, 4).transpose(2, 0, 1), dtype)
            shape = np.array([6, 4], "int64")
            self.check(lambda n, t, s: n.add_shuffle(t, shape=s, second_transpose=(1, 0)), [x, shape], x.reshape(6, 4).T, dtype, dynamic_axis=None)
        empty = np.zeros((0, 3), "float32")
        self.check(lambda n, t: n.add_shuffle(t, reshape=(3, 0), zero_is_zero=True), [empty], empty.reshape(3, 0))
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_shuffle(t, reshape=(5, 5)), self.normal(2, 3))
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_shuffle(t, first_transpose=(0, 0)), self.normal(2, 3))

    def test_concatenation(self):
        for dtype in TYPES:
            a, b, c = self.some(dtype, 2, 3, 4), self.some(dtype, 2, 1, 4), self.some(dtype, 2, 5, 4)
            self.check(lambda n, *t: n.add_concatenation(t, 1), [a, b, c], np.concatenate([a, b, c], 1), dtype)
            self.check(lambda n, *t: n.add_concatenation(t, -1), [a, a], np.concatenate([a, a], 2), dtype)
        self.check(lambda n, t: n.add_concatenation([t], 0), [a], a)
        self.rejected("INVALID_ARGUMENT", lambda n, *t: n.add_concatenation(t, 0), self.normal(2, 3), self.normal(2, 4))

    def test_slice(self):
        for dtype in ("float32", "float16", "int64"):
            x = self.some(dtype, 4, 5, 7)
            cases = [("strict", (0, 1, 2), (2, 3, 2), (1, 1, 2)), ("strict", (3, 4, 6), (4, 2, 3), (-1, -2, -3)), ("strict", (1, 0, 0), (0, 5, 7), (1, 1, 1))]
            for mode in ("wrap", "clamp", "fill", "reflect"):
                cases += [(mode, (-2, 3, 4), (9, 4, 5), (1, 1, 2)), (mode, (5, -7, 9), (4, 6, 6), (-2, 3, -3)), (mode, (0, 0, 0), (4, 5, 7), (1, 1, 1))]
            for mode, start, size, stride in cases:
                what = f"{dtype} {mode} {start} {size} {stride}"
                expected = sliced(x, start, size, stride, mode)
                self.check(lambda n, t: n.add_slice(t, start, size, stride, mode=mode), [x], expected, what)
                parts = [np.array(part, "int64") for part in (start, size, stride)]
                self.check(lambda n, t, *p: n.add_slice(t, *p, mode=mode), [x, *parts], expected, what + " computed", dynamic_axis=None)
                self.check(lambda n, t, p: n.add_slice(t, p, size, stride, mode=mode), [x, parts[0]], expected, what + " start", dynamic_axis=None)
            fill = np.array(3, dtype)
            self.check(lambda n, t: n.add_slice(t, (-1, 2, 3), (6, 9, 3), (1, 1, 1), mode="fill", fill=fill), [x],
                       sliced(x, (-1, 2, 3), (6, 9, 3), (1, 1, 1), "fill", 3), dtype)
            one = x[:1]
            for mode in ("wrap", "clamp", "reflect"):
                self.check(lambda n, t: n.add_slice(t, (-2, 0, 0), (5, 5, 7), (1, 1, 1), mode=mode), [one],
                           sliced(one, (-2, 0, 0), (5, 5, 7), (1, 1, 1), mode), f"one element {mode}")
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_slice(t, (0, 3), (2, 3), (1, 1)), self.normal(2, 5), words=("axis 1",))
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_slice(t, (0,), (2,), (1,)), self.normal(2, 5))
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_slice(t, (0, 0), (2, 2), (1, 0)), self.normal(2, 5))

    def test_shape_squeeze(self):
        for dtype in TYPES:
            x = self.some(dtype, 2, 1, 5, 1)
            self.check(lambda n, t: n.add_shape(t), [x], np.array(x.shape, "int64"), dtype)
            self.check(lambda n, t: n.add_squeeze(t, (1, 3)), [x], x.reshape(2, 5), dtype)
            self.check(lambda n, t: n.add_squeeze(t, np.array([-1], "int32")), [x], x[..., 0], dtype)
            self.check(lambda n, t: n.add_unsqueeze(t, (0, 3)), [x], x[None, :, :, None], dtype, dynamic_axis=2)
            self.check(lambda n, t: n.add_unsqueeze(t, -1), [x], x[..., None], dtype)
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_squeeze(t, 0), self.normal(2, 3))

    def test_gather(self):
        for dtype in TYPES:
            for index in ("int32", "int64"):
                x = self.some(dtype, 3, 5, 4)
                for axis in (0, 1, 2, -1):
                    places = self.integers(0, x.shape[axis], 2, 6, dtype=index)
                    self.check(lambda n, t, i: n.add_gather(t, i, axis=axis), [x, places], np.take(x, places, axis), f"{dtype} {index} {axis}",
                               dynamic_axis=1)
                    places = self.integers(0, x.shape[axis], *(2 if i == axis % 3 else dim for i, dim in enumerate(x.shape)), dtype=index)
                    self.check(lambda n, t, i: n.add_gather(t, i, "element", axis), [x, places], np.take_along_axis(x, places.astype("int64"), axis),
                               f"element {dtype} {index} {axis}", dynamic_axis=None)
                scalar = np.array(2, index)
                self.check(lambda n, t, i: n.add_gather(t, i, axis=1), [x, scalar], x[:, 2], f"scalar {dtype}", dynamic_axis=None)
                places = self.integers(0, 5, 3, 2, dtype=index)
                self.check(lambda n, t, i: n.add_gather(t, i, axis=1, batch_dims=1), [x, places], np.stack([x[b][places[b]] for b in range(3)]),
                           f"batch 1 {dtype}", dynamic_axis=None)
                self.check(lambda n, t, i: n.add_gather(t, i, axis=2, batch_dims=1), [x, places % 4],
                           np.stack([x[b][:, places[b] % 4] for b in range(3)]), f"batch 1 axis 2 {dtype}", dynamic_axis=None)
                places = self.integers(0, 4, 3, 5, 7, dtype=index)
                self.check(lambda n, t, i: n.add_gather(t, i, axis=2, batch_dims=2), [x, places], np.take_along_axis(x, places.astype("int64"), 2),
                           f"batch 2 {dtype}", dynamic_axis=None)
                places = np.stack([self.integers(0, 3, 6), self.integers(0, 5, 6)], -1).astype(index)
                self.check(lambda n, t, i: n.add_gather(t, i, "nd"), [x, places], x[places[:, 0], places[:, 1]], f"nd {dtype}", dynamic_axis=None)
                places = self.integers(0, 5, 3, 2, 1, dtype=index)
                self.check(lambda n, t, i: n.add_gather(t, i, "nd", batch_dims=1), [x, places], np.stack([x[b][places[b, :, 0]] for b in range(3)]),
                           f"nd batch {dtype}", dynamic_axis=None)
        self.rejected("INVALID_ARGUMENT", lambda n, t, i: n.add_gather(t, i, axis=5), self.normal(2, 3), self.integers(0, 2, 2))
        self.rejected("INVALID_ARGUMENT", lambda n, t, i: n.add_gather(t, i), self.normal(2, 3), self.normal(2), words=("float32",))

    def test_scatter(self):
        for dtype in ("float32", "float16", "int32", "int64"):
            for index in ("int32", "int64"):
                x = self.some(dtype, 3, 5, 4)
                for axis in (0, 1, 2):
                    shape = [2 if i == axis else dim for i, dim in enumerate(x.shape)]
                    places = np.argsort(self.rng.random(x.shape), axis).take(range(2), axis).astype(index)
                    updates, expected = self.some(dtype, *shape), x.copy()
                    np.put_along_axis(expected, places.astype("int64"), updates, axis)
                    self.check(lambda n, *t: n.add_scatter(*t, "element", axis), [x, places, updates], expected, f"{dtype} {index} {axis}",
                               dynamic_axis=None)
                places = np.array([[2, 1], [0, 4]], index)
                updates, expected = self.some(dtype, 2, 4), x.copy()
                expected[places[:, 0], places[:, 1]] = updates
                self.check(lambda n, *t: n.add_scatter(*t, "nd"), [x, places, updates], expected, f"nd {dtype}", dynamic_axis=None)

    def test_one_hot(self):
        for dtype in ("float32", "float16", "int32", "int64"):
            for index in ("int32", "int64"):
                places = self.integers(0, 5, 2, 3, dtype=index)
                values = np.array([2, 7], dtype)
                hot = np.where(np.arange(5) == places[..., None], values[1], values[0]).astype(dtype)
                for axis, expected in ((-1, hot), (2, hot), (0, hot.transpose(2, 0, 1)), (1, hot.transpose(0, 2, 1))):
                    self.check(lambda n, t: n.add_one_hot(t, values, np.array(5, index), axis), [places], expected, f"{dtype} {index} {axis}")
                self.check(lambda n, *t: n.add_one_hot(*t), [places, values, np.array(5, "int32")], hot, f"computed {dtype}", dynamic_axis=None)

    def test_non_zero(self):
        for dtype in TYPES:
            x = self.some(dtype, 4, 5)
            x[1] = 0
            for index in ("int32", "int64"):
                self.check(lambda n, t: n.add_non_zero(t, index), [x], np.array(np.nonzero(x), index), f"{dtype} {index}")
            self.check(lambda n, t: n.add_non_zero(t), [np.zeros((2, 3), dtype)], np.zeros((2, 0), "int64"), f"none {dtype}")

    def test_reverse_sequence(self):
        for dtype in ("float32", "float16", "int32"):
            for lengths_type in ("int32", "int64"):
                x, lengths = self.some(dtype, 3, 5, 2), np.array([5, 1, 3], lengths_type)
                expected = x.copy()
                for b, length in enumerate(lengths):
                    expected[b, :length] = x[b, :length][::-1]
                self.check(lambda n, t, s: n.add_reverse_sequence(t, s), [x, lengths], expected, dtype)
                transposed = np.ascontiguousarray(x.swapaxes(0, 1))
                self.check(lambda n, t, s: n.add_reverse_sequence(t, s, 1, 0), [transposed, lengths], expected.swapaxes(0, 1), dtype, dynamic_axis=None)

    def test_fill(self):
        self.check(lambda n: n.add_fill((5,), "linspace"), [], np.arange(5, dtype="float32"))
        for dtype in ("float32", "float16", "int32", "int64"):
            self.check(lambda n: n.add_fill((7,), "linspace", alpha=2, beta=3, dtype=dtype), [], (2 + 3 * np.arange(7)).astype(dtype), dtype)
            start, delta = np.array(5, dtype), np.array([10, 2], dtype)
            expected = (5 + 10 * np.arange(3)[:, None] + 2 * np.arange(4)).astype(dtype)
            self.check(lambda n, *t: n.add_fill((3, 4), "linspace", start=t[0], delta=t[1], dtype=dtype), [start, delta], expected,
                       f"computed {dtype}", dynamic_axis=None)
            self.check(lambda n, *t: n.add_fill(None, "linspace", shape=t[0], start=t[1], delta=t[2], dtype=dtype),
                       [np.array([3, 4], "int64"), start, delta], expected, f"computed shape {dtype}", dynamic_axis=None)
        for dtype in ("float32", "float16"):
            found, = self.outputs_of(lambda n: n.add_fill((100, 200), "random_uniform", alpha=-2, beta=3, dtype=dtype), [])
            self.assertEqual((found.shape, found.dtype), ((100, 200), np.dtype(dtype)))
            self.assertTrue((found >= -2).all() and (found <= 3).all())
            self.assertLess(abs(found.astype("float64").mean() - 0.5), 0.1)
            found, = self.outputs_of(lambda n: n.add_fill((100, 200), "random_normal", alpha=4, beta=2, dtype=dtype), [])
            self.assertLess(abs(found.astype("float64").mean() - 4), 0.1)
            self.assertLess(abs(found.astype("float64").std() - 2), 0.1)

    def test_assertion(self):
        import kelp

        def make(n, t, c):
            n.add_assertion(c, "it must hold")
            return n.add_identity(t)

        x = self.normal(2, 3)
        self.check(make, [x, np.array(True)], x, dynamic_axis=None)
        with self.assertRaises(kelp.KelpError) as caught:
            self.outputs_of(make, [x, np.array(False)])
        self.assertIn("it must hold", str(caught.exception))
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_assertion(np.array(False), "never"), x, words=("never",))
