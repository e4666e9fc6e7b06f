# SPDX-License-Identifier: Apache-2.0
"""Compares layers for windows, padding, resizing and sampling with explicit sums in numpy."""
import itertools
import math

import numpy as np

from layers_support import FLOATS, LayerCase


def padding_of(dims, window, stride, dilation, pre, post, mode):
    """Returns the padding before and after each axis, and the dimensions of the result."""
    before, after, result = [], [], []
    for i, dim in enumerate(dims):
        covered = dilation[i] * (window[i] - 1) + 1
        if mode.startswith("same"):
            count = -(-dim // stride[i])
            total = max((count - 1) * stride[i] + covered - dim, 0)
            small, large = total // 2, total - total // 2
            a, b = (small, large) if mode == "same_upper" else (large, small)
        else:
            a, b = pre[i], post[i]
            room = dim + a + b - covered
            count = (-(-room // stride[i]) if mode == "explicit_round_up" else room // stride[i]) + 1
        before.append(a)
        after.append(b)
        result.append(count)
    return before, after, result


def convolve(x, kernel, bias, stride, dilation, pre, post, groups, mode):
    n, channels, dims, maps, window = x.shape[0], x.shape[1], x.shape[2:], kernel.shape[0], kernel.shape[2:]
    before, _, result = padding_of(dims, window, stride, dilation, pre, post, mode)
    y = np.zeros((n, maps, *result))
    for at in np.ndindex(*result):
        for tap in np.ndindex(*window):
            place = [at[i] * stride[i] + tap[i] * dilation[i] - before[i] for i in range(len(window))]
            if all(0 <= place[i] < dims[i] for i in range(len(window))):
                part = x[(slice(None), slice(None), *place)].reshape(n, groups, channels // groups)
                taps = kernel[(slice(None), slice(None), *tap)].reshape(groups, maps // groups, channels // groups)
                y[(slice(None), slice(None), *at)] += np.einsum("ngc,gmc->ngm", part, taps).reshape(n, maps)
    return y + (0 if bias is None else bias.reshape(1, maps, *[1] * len(window)))


def deconvolve(x, kernel, bias, stride, dilation, pre, post, groups):
    n, channels, dims, each, window = x.shape[0], x.shape[1], x.shape[2:], kernel.shape[1], kernel.shape[2:]
    maps = each * groups
    full = [(dims[i] - 1) * stride[i] + dilation[i] * (window[i] - 1) + 1 for i in range(len(window))]
    y = np.zeros((n, maps, *full))
    for at in np.ndindex(*dims):
        for tap in np.ndindex(*window):
            place = [at[i] * stride[i] + tap[i] * dilation[i] for i in range(len(window))]
            part = x[(slice(None), slice(None), *at)].reshape(n, groups, channels // groups)
            taps = kernel[(slice(None), slice(None), *tap)].reshape(groups, channels // groups, each)
            y[(slice(None), slice(None), *place)] += np.einsum("ngc,gcm->ngm", part, taps).reshape(n, maps)
    y = y[(slice(None), slice(None), *[slice(pre[i], full[i] - post[i]) for i in range(len(window))])]
    return y + (0 if bias is None else bias.reshape(1, maps, *[1] * len(window)))


def pooled(x, kind, window, stride, dilation, pre, post, mode, include, blend):
    dims = x.shape[2:]
    before, after, result = padding_of(dims, window, stride, dilation, pre, post, mode)
    y = np.zeros((*x.shape[:2], *result))
    for at in np.ndindex(*result):
        inside, padded = [], 0
        for tap in np.ndindex(*window):
            place = [at[i] * stride[i] + tap[i] * dilation[i] - before[i] for i in range(len(window))]
            padded += all(place[i] < dims[i] + after[i] for i in range(len(window)))
            if all(0 <= place[i] < dims[i] for i in range(len(window))):
                inside.append(x[(slice(None), slice(None), *place)])
        largest, average = np.max(inside, axis=0), np.sum(inside, axis=0) / (padded if include else len(inside))
        y[(slice(None), slice(None), *at)] = {"max": largest, "average": average, "blend": (1 - blend) * largest + blend * average}[kind]
    return y


def coordinate(i, dim, count, scale, mode):
    if mode == "align_corners":
        return i * (dim - 1) / (count - 1) if count > 1 else 0.0
    return i / scale if mode == "asymmetric" else (i + 0.5) / scale - 0.5


def cubic(t, a=-0.75):
    near = lambda d: ((a + 2) * d - (a + 3)) * d * d + 1
    far = lambda d: ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def matrix_of(dim, count, mode, coordinates, rounding="half_up", scale=None, a=-0.75):
    """Returns the weights [count,dim] of each input element in each element of the result along an axis."""
    matrix = np.zeros((count, dim))
    scale = scale or count / dim
    for i in range(count):
        x = coordinate(i, dim, count, scale, coordinates)
        if mode == "nearest":
            at = {"half_up": math.floor(x + 0.5), "half_down": math.ceil(x - 0.5), "floor": math.floor(x), "ceil": math.ceil(x)}[rounding]
            taps = [(at, 1.0)]
        else:
            low = math.floor(x)
            weights = [1 - (x - low), x - low] if mode == "linear" else cubic(x - low, a)
            taps = [(low + k - (mode == "cubic"), weight) for k, weight in enumerate(weights)]
        for at, weight in taps:
            matrix[i, min(max(at, 0), dim - 1)] += weight
    return matrix


def reflect(x, low, high):
    """Reflects a position at both ends until it is inside."""
    while not low <= x <= high and high > low:
        x = 2 * low - x if x < low else 2 * high - x
    return x if high > low else low


def sampled(x, grid, mode, align, outside):
    n, channels, height, width = x.shape
    y = np.zeros((n, channels, *grid.shape[1:3]))

    def element(b, row, column):
        if outside == "clamp":
            row, column = min(max(row, 0), height - 1), min(max(column, 0), width - 1)
        elif outside == "reflect":
            row, column = (int(reflect(at, *((0, dim - 1) if align else (-0.5, dim - 0.5)))) for at, dim in
                           ((row, height), (column, width)))
            row, column = min(max(row, 0), height - 1), min(max(column, 0), width - 1)
        return x[b, :, row, column] if 0 <= row < height and 0 <= column < width else np.zeros(channels)

    for b, i, j in np.ndindex(n, *grid.shape[1:3]):
        place = []
        for value, dim in zip(grid[b, i, j][::-1], (height, width)):
            at = (value + 1) / 2 * (dim - 1) if align else ((value + 1) * dim - 1) / 2
            if mode != "cubic":
                if outside == "clamp":
                    at = min(max(at, 0), dim - 1)
                elif outside == "reflect":
                    at = min(max(reflect(at, *((0, dim - 1) if align else (-0.5, dim - 0.5))), 0), dim - 1)
            place.append(at)
        row, column = place
        if mode == "nearest":
            y[b, :, i, j] = element(b, round(row), round(column))
            continue
        r, c = math.floor(row), math.floor(column)
        weights = [cubic(row - r), cubic(column - c)] if mode == "cubic" else [[1 - row + r, row - r], [1 - column + c, column - c]]
        first = -1 if mode == "cubic" else 0
        for (k, u), (m, v) in itertools.product(enumerate(weights[0]), enumerate(weights[1])):
            y[b, :, i, j] += u * v * element(b, r + first + k, c + first + m)
    return y


class WindowLayers(LayerCase):
    def test_convolution(self):
        for dtype in FLOATS:
            for dims, window, stride, dilation, pre, post, groups, mode in (
                    ((7, 5), (3, 2), (1, 1), (1, 1), (0, 0), (0, 0), 1, "explicit_round_down"),
                    ((9, 8), (3, 2), (2, 3), (1, 1), (1, 0), (0, 2), 2, "explicit_round_down"),
                    ((10, 8), (3, 3), (2, 2), (1, 1), (1, 0), (0, 1), 1, "explicit_round_up"),
                    ((10, 7), (3, 3), (2, 2), (1, 1), (1, 2), (0, 1), 1, "explicit_round_up"),
                    ((11, 9), (3, 2), (1, 2), (2, 3), (2, 1), (1, 2), 4, "explicit_round_down"),
                    ((7, 6), (3, 4), (2, 2), (1, 1), (0, 0), (0, 0), 2, "same_upper"),
                    ((7, 6), (2, 4), (2, 3), (1, 1), (0, 0), (0, 0), 1, "same_lower"),
                    ((5, 4, 6), (2, 3, 2), (1, 2, 1), (1, 1, 2), (1, 0, 1), (0, 1, 1), 2, "explicit_round_down")):
                x = self.normal(2, 4, *dims, dtype=dtype)
                kernel, bias = self.normal(8, 4 // groups, *window, dtype=dtype), self.normal(8, dtype=dtype)
                for with_bias in (bias, None):
                    expected = convolve(*(None if array is None else array.astype("float64") for array in (x, kernel, with_bias)), stride,
                                        dilation, pre, post, groups, mode).astype(dtype)
                    given = {"stride": stride, "dilation": dilation, "pre_padding": pre, "post_padding": post, "padding_mode": mode,
                             "groups": groups}
                    what = f"{dtype} {window} {stride} {dilation} {pre} {post} {groups} {mode}"
                    tolerance = 1e-4 if dtype == "float32" else 2e-2
                    self.check(lambda n, t: n.add_convolution(t, 8, window, kernel, with_bias, **given), [x], expected, what, tolerance)
                    tensors = [x, kernel] + ([] if with_bias is None else [bias])
                    self.check(lambda n, *t: n.add_convolution(t[0], 8, window, *t[1:], **given), tensors, expected, what, tolerance,
                               dynamic_axis=None)

    def test_convolution_errors(self):
        x = self.normal(1, 4, 5, 5)
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_convolution(t, 6, (3, 3), self.normal(6, 2, 3, 3), groups=4), x, words=("6", "4"))
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_convolution(t, 6, (3, 3), self.normal(6, 4, 3, 2)), x)
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_convolution(t, 6, (3,), self.normal(6, 4, 3)), x)
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_convolution(t, 6, (3, 3), self.normal(6, 4, 3, 3), stride=-1), x)

    def test_deconvolution(self):
        for dtype in FLOATS:
            for dims, window, stride, dilation, pre, post, groups in (
                    ((4, 5), (3, 2), (1, 1), (1, 1), (0, 0), (0, 0), 1), ((4, 3), (3, 4), (2, 3), (1, 1), (1, 0), (0, 2), 2),
                    ((3, 4), (2, 3), (2, 1), (2, 2), (0, 1), (1, 1), 4), ((2, 3, 4), (2, 3, 2), (2, 1, 2), (1, 1, 1), (0, 1, 0), (1, 0, 1), 2)):
                x = self.normal(2, 4, *dims, dtype=dtype)
                kernel, bias = self.normal(4, 8 // groups, *window, dtype=dtype), self.normal(8, dtype=dtype)
                expected = deconvolve(*(array.astype("float64") for array in (x, kernel, bias)), stride, dilation, pre, post,
                                      groups).astype(dtype)
                self.check(lambda n, t: n.add_deconvolution(t, 8, window, kernel, bias, stride=stride, dilation=dilation, pre_padding=pre,
                                                            post_padding=post, groups=groups), [x], expected,
                           f"{dtype} {window} {stride} {groups}", 1e-4 if dtype == "float32" else 2e-2)
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_deconvolution(t, 8, (2, 2), self.normal(4, 8, 2, 2),
                                                                          padding_mode="explicit_round_up"), self.normal(1, 4, 3, 3))

    def test_pooling(self):
        for dtype in FLOATS:
            for kind, include in (("max", False), ("average", False), ("average", True), ("blend", False)):
                for dims, window, stride, dilation, pre, post, mode in (
                        ((8, 7), (2, 3), None, (1, 1), (0, 0), (0, 0), "explicit_round_down"),
                        ((9, 8), (3, 3), (2, 2), (1, 1), (1, 0), (0, 1), "explicit_round_down"),
                        ((8, 10), (3, 3), (2, 3), (1, 1), (1, 1), (0, 1), "explicit_round_up"),
                        ((7, 8), (3, 2), (2, 3), (1, 1), (0, 0), (0, 0), "same_upper"), ((7, 8), (2, 3), (2, 2), (1, 1), (0, 0), (0, 0), "same_lower"),
                        ((9, 9), (2, 3), (1, 2), (2, 1), (0, 1), (1, 1), "explicit_round_down"),
                        ((4, 5, 6), (2, 2, 3), (2, 1, 2), (1, 1, 1), (0, 1, 0), (1, 0, 1), "explicit_round_down")):
                    if include and mode != "explicit_round_down":
                        continue
                    x = self.normal(2, 3, *dims, dtype=dtype)
                    expected = pooled(x.astype("float64"), kind, window, stride or window, dilation, pre, post, mode, include, 0.25)
                    self.check(lambda n, t: n.add_pooling(t, kind, window, stride=stride, dilation=dilation, pre_padding=pre,
                                                          post_padding=post, padding_mode=mode, include_padding=include, blend=0.25),
                               [x], expected.astype(dtype), f"{dtype} {kind} {window} {stride} {dilation} {pre} {post} {mode} {include}")

    def test_lrn(self):
        for dtype in FLOATS:
            x = self.normal(2, 7, 3, 4, dtype=dtype)
            wide = x.astype("float64")
            for window in (1, 3, 5):
                sums = np.stack([(wide[:, max(c - window // 2, 0):c + window // 2 + 1] ** 2).sum(1) for c in range(7)], 1)
                self.check(lambda n, t: n.add_lrn(t, window, 0.5, 0.75, 1.5), [x],
                           (wide / (1.5 + 0.5 / window * sums) ** 0.75).astype(dtype), f"{dtype} {window}")
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_lrn(t, 4, 1, 1, 1), self.normal(1, 3, 4, 4), words=("odd",))

    def test_padding(self):
        for dtype in ("float32", "float16", "int32"):
            x = (self.normal(2, 3, 5, 6) * 10).astype(dtype)
            for pre, post in (((1, 2), (3, 0)), ((-1, 0), (0, -2)), ((-2, 3), (1, -1))):
                padded = np.pad(x, ((0, 0), (0, 0), *[(max(a, 0), max(b, 0)) for a, b in zip(pre, post)]))
                rows, columns = (slice(max(-a, 0), dim + max(a, 0) + b if b < 0 else None) for a, b, dim in zip(pre, post, (5, 6)))
                if post[0] < 0:
                    rows = slice(rows.start, padded.shape[2] + post[0])
                if post[1] < 0:
                    columns = slice(columns.start, padded.shape[3] + post[1])
                self.check(lambda n, t: n.add_padding(t, pre, post), [x], padded[:, :, rows, columns], f"{dtype} {pre} {post}")
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_padding(t, (-9, 0), (0, 0)), self.normal(1, 1, 4, 4))

    def test_resize(self):
        for dtype in FLOATS:
            x = self.normal(2, 3, 5, 6, dtype=dtype)
            for mode, coordinates, rounding in ([("nearest", c, r) for c in ("align_corners", "asymmetric", "half_pixel") for r in (
                    "half_up", "half_down", "floor", "ceil")] + [(m, c, "half_up") for m in ("linear", "cubic") for c in (
                    "align_corners", "asymmetric", "half_pixel")]):
                for rows, columns in ((9, 4), (3, 13), (10, 12)):
                    expected = np.einsum("ih,jw,nchw->ncij", matrix_of(5, rows, mode, coordinates, rounding),
                                         matrix_of(6, columns, mode, coordinates, rounding), x.astype("float64")).astype(dtype)
                    given = {"mode": mode, "coordinates": coordinates, "rounding": rounding}
                    what = f"{dtype} {mode} {coordinates} {rounding} {rows} {columns}"
                    self.check(lambda n, t: n.add_resize(t, dims=(2, 3, rows, columns), **given), [x], expected, what)
                shape = np.array([2, 3, 9, 4], "int64")
                expected = np.einsum("ih,jw,nchw->ncij", matrix_of(5, 9, mode, coordinates, rounding),
                                     matrix_of(6, 4, mode, coordinates, rounding), x.astype("float64")).astype(dtype)
                self.check(lambda n, t, s: n.add_resize(t, shape=s, **given), [x, shape], expected, what + " computed", dynamic_axis=None)
            expected = np.einsum("ih,jw,nchw->ncij", matrix_of(5, 10, "linear", "half_pixel", scale=2.0),
                                 matrix_of(6, 9, "linear", "half_pixel", scale=1.5), x.astype("float64")).astype(dtype)
            self.check(lambda n, t: n.add_resize(t, scales=(1, 1, 2, 1.5), mode="linear", coordinates="half_pixel"), [x], expected, "scales")
            expected = np.einsum("ih,jw,nchw->ncij", matrix_of(5, 9, "cubic", "half_pixel", a=-0.5),
                                 matrix_of(6, 4, "cubic", "half_pixel", a=-0.5), x.astype("float64")).astype(dtype)
            self.check(lambda n, t: n.add_resize(t, dims=(2, 3, 9, 4), mode="cubic", coordinates="half_pixel", cubic_coefficient=-0.5), [x],
                       expected, "coefficient")
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_resize(t, dims=(4, 4)), self.normal(1, 1, 2, 2))
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_resize(t), self.normal(1, 1, 2, 2))

    def test_grid_sample(self):
        for dtype in FLOATS:
            x = self.normal(2, 3, 5, 6, dtype=dtype)
            grid = (self.rng.random((2, 4, 3, 2)) * 3 - 1.5).astype(dtype)
            for mode in ("nearest", "linear", "cubic"):
                for align in (False, True):
                    for outside in ("fill", "clamp", "reflect"):
                        if dtype == "float16" and mode == "nearest":
                            continue  # a 16-bit position may be rounded to the next element
                        expected = sampled(x.astype("float64"), grid.astype("float64"), mode, align, outside).astype(dtype)
                        self.check(lambda n, t, g: n.add_grid_sample(t, g, mode, align, outside), [x, grid], expected,
                                   f"{dtype} {mode} {align} {outside}", 1e-4 if dtype == "float32" else 3e-2)
        self.rejected("INVALID_ARGUMENT", lambda n, t, g: n.add_grid_sample(t, g, "linear", False, "wrap"), self.normal(1, 1, 3, 3),
                     np.zeros((1, 2, 2, 2), "float32"))
