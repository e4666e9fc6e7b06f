# SPDX-License-Identifier: Apache-2.0
"""Compares layers for products, attention, experts, quantization and detection with numpy."""
import itertools

import ml_dtypes
import numpy as np

from layers_reduce import softmax
from layers_support import FLOATS, LayerCase


def attend(q, k, v, mask=None, causal=False):
    share = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, share, 1), np.repeat(v, share, 1)
    scores = q @ k.swapaxes(2, 3)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[2:], bool)), scores, -np.inf)
    return softmax(scores, 3) @ v


def rotate(x, cos, sin, interleaved, dims):
    """x [b,h,s,d]; cos and sin [b,s,dims/2]."""
    y, c, s = x.copy(), cos[:, None], sin[:, None]
    even, odd = (slice(0, dims, 2), slice(1, dims, 2)) if interleaved else (slice(0, dims // 2), slice(dims // 2, dims))
    y[..., even] = x[..., even] * c - x[..., odd] * s
    y[..., odd] = x[..., even] * s + x[..., odd] * c
    return y


class ProductLayers(LayerCase):
    def wide(self, *arrays):
        return [array.astype("float64") for array in arrays]

    def tolerance(self, dtype):
        return 1e-4 if dtype == "float32" else 3e-2

    def test_matrix_multiply(self):
        for dtype in FLOATS:
            for batch_a, batch_b in (((), ()), ((3,), (3,)), ((2, 1), (2, 3))):
                a, b = self.normal(*batch_a, 4, 5, dtype=dtype), self.normal(*batch_b, 5, 7, dtype=dtype)
                expected = np.matmul(*self.wide(a, b)).astype(dtype)
                for op_a in ("none", "transpose"):
                    for op_b in ("none", "transpose"):
                        given = [np.ascontiguousarray(x.swapaxes(-1, -2)) if op == "transpose" else x for x, op in ((a, op_a), (b, op_b))]
                        self.check(lambda n, s, t: n.add_matrix_multiply(s, t, op_a, op_b), given, expected,
                                   f"{dtype} {batch_a} {op_a} {op_b}", self.tolerance(dtype), dynamic_axis=None)
                        self.check(lambda n, s: n.add_matrix_multiply(s, given[1], op_a, op_b), given[:1], expected,
                                   f"constant {dtype} {batch_a} {op_a} {op_b}", self.tolerance(dtype))
            a, b, u, v = (self.normal(*shape, dtype=dtype) for shape in ((3, 4, 5), (3, 5, 6), (3, 4), (3, 5)))
            wide = dict(zip("abuv", self.wide(a, b, u, v)))
            self.check(lambda n, s, t: n.add_matrix_multiply(s, t, "none", "vector"), [a, v],
                       np.einsum("nij,nj->ni", wide["a"], wide["v"]).astype(dtype), dtype, self.tolerance(dtype), dynamic_axis=None)
            self.check(lambda n, s, t: n.add_matrix_multiply(s, t, "vector", "none"), [v, b],
                       np.einsum("nj,njk->nk", wide["v"], wide["b"]).astype(dtype), dtype, self.tolerance(dtype), dynamic_axis=None)
            self.check(lambda n, s, t: n.add_matrix_multiply(s, t, "vector", "vector"), [v, v],
                       np.einsum("nj,nj->n", wide["v"], wide["v"]).astype(dtype), dtype, self.tolerance(dtype), dynamic_axis=None)
        self.rejected("INVALID_ARGUMENT", lambda n, s, t: n.add_matrix_multiply(s, t), self.normal(2, 3), self.normal(4, 5), words=("[2,3]", "[4,5]"))
        self.rejected("INVALID_ARGUMENT", lambda n, s, t: n.add_matrix_multiply(s, t), self.normal(1, 2, 3), self.normal(3, 5))

    def test_einsum(self):
        for dtype in FLOATS:
            for equation, shapes in (("ij,jk->ik", ((3, 4), (4, 5))), ("bij,bkj->bik", ((2, 3, 4), (2, 5, 4))), ("ij->ji", ((3, 4),)),
                                     ("bhqd,bhkd->bhqk", ((2, 3, 4, 5), (2, 3, 6, 5))), ("i,j->ij", ((3,), (4,))), ("ijk->ik", ((2, 3, 4),)),
                                     ("ii->i", ((4, 4),)), ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 5))), ("ij,ij->", ((3, 4), (3, 4)))):
                arrays = [self.normal(*shape, dtype=dtype) for shape in shapes]
                self.check(lambda n, *t: n.add_einsum(t, equation), arrays, np.einsum(equation, *self.wide(*arrays)).astype(dtype),
                           f"{dtype} {equation}", self.tolerance(dtype), dynamic_axis=None)

    def test_attention(self):
        for dtype in FLOATS:
            for heads, kv_heads in ((4, 4), (4, 2), (6, 1)):
                for q_len, kv_len in ((5, 5), (3, 7)):
                    q, k, v = (self.normal(2, h, s, d, dtype=dtype) for h, s, d in ((heads, q_len, 8), (kv_heads, kv_len, 8), (kv_heads, kv_len, 6)))
                    q = (q / 3).astype(dtype)
                    seen = self.rng.random((2, 1, q_len, kv_len)) < 0.6
                    seen[..., 0] = True
                    added = self.normal(1, heads, q_len, kv_len, dtype=dtype)
                    for mask in (None, seen, added):
                        for causal in (False, True) if q_len == kv_len else (False,):
                            wide = self.wide(q, k, v)
                            expected = attend(*wide, mask if mask is None or mask.dtype == bool else mask.astype("float64"), causal)
                            what = f"{dtype} {heads} {kv_heads} {q_len} {kv_len} {None if mask is None else mask.dtype} {causal}"
                            tensors = [q, k, v] + ([] if mask is None else [mask])
                            self.check(lambda n, *t: n.add_attention(*t[:3], causal=causal, mask=t[3] if len(t) > 3 else None), tensors,
                                       expected.astype(dtype), what, self.tolerance(dtype), dynamic_axis=None)
                            self.check(lambda n, *t: n.add_attention(*t, causal=causal, mask=mask), [q, k, v], expected.astype(dtype),
                                       what + " open", self.tolerance(dtype), dynamic_axis=None if mask is seen else 0)
            q, k, v = (self.normal(2, 3, s, 4, dtype=dtype) for s in (5, 6, 6))
            wide = self.wide(q, k, v)
            self.check(lambda n, *t: n.add_attention(*t, no_softmax=True), [q, k, v], (wide[0] @ wide[1].swapaxes(2, 3) @ wide[2]).astype(dtype),
                       f"products {dtype}", 1e-3 if dtype == "float32" else 0.1)
        self.rejected("INVALID_ARGUMENT", lambda n, *t: n.add_attention(*t), *(self.normal(2, 5, 8) for _ in range(3)))

    def test_rotary_embedding(self):
        for dtype in FLOATS:
            x = self.normal(2, 3, 5, 8, dtype=dtype)
            for dims in (8, 4):
                angles = self.rng.random((10, dims // 2)) * 6
                cos, sin = np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)
                positions = self.integers(0, 10, 2, 5, dtype="int64")
                for interleaved in (False, True):
                    given = {"interleaved": interleaved, "rotary_dims": 0 if dims == 8 else dims}
                    expected = rotate(*self.wide(x, cos[positions], sin[positions]), interleaved, dims).astype(dtype)
                    self.check(lambda n, *t: n.add_rotary_embedding(t[0], cos, sin, t[1], **given), [x, positions], expected,
                               f"{dtype} {dims} {interleaved}")
                    self.check(lambda n, *t: n.add_rotary_embedding(*t, **given), [x, cos[positions], sin[positions]], expected,
                               f"no positions {dtype} {dims} {interleaved}")

    def test_kv_cache_update(self):
        for dtype in FLOATS:
            for index in ("int32", "int64"):
                cache, update, places = self.normal(2, 3, 8, 4, dtype=dtype), self.normal(2, 3, 2, 4, dtype=dtype), np.array([1, 6], index)
                expected = cache.copy()
                for b, at in enumerate(places):
                    expected[b, :, at:at + 2] = update[b]
                self.check(lambda n, *t: n.add_kv_cache_update(*t), [cache, update, places], expected, f"{dtype} {index}")

    def test_moe(self):
        for dtype in FLOATS:
            hidden, scores = self.normal(2, 3, 4, dtype=dtype), self.rng.random((2, 3, 2)).astype(dtype)
            experts = np.stack([self.rng.permutation(5)[:2] for _ in range(6)]).reshape(2, 3, 2).astype("int32")
            gate, up, down = (self.normal(*shape, dtype=dtype) for shape in ((5, 4, 6), (5, 4, 6), (5, 6, 4)))
            biases = {"gate_bias": self.normal(5, 6, dtype=dtype), "up_bias": self.normal(5, 6, dtype=dtype), "down_bias": self.normal(5, 4, dtype=dtype)}
            h, s, g, u, d = self.wide(hidden, scores, gate, up, down)
            for with_gate in (True, False):
                for swish in (True, False):
                    for with_bias in (True, False):
                        given = {name: value for name, value in biases.items() if with_bias and (with_gate or name != "gate_bias")}
                        wide = {name: value.astype("float64") for name, value in given.items()}
                        active = (lambda x: x / (1 + np.exp(-x))) if swish else (lambda x: np.maximum(x, 0))
                        expected = np.zeros(hidden.shape)
                        for b, t, k in np.ndindex(2, 3, 2):
                            e = experts[b, t, k]
                            inner = h[b, t] @ u[e] + (wide["up_bias"][e] if with_bias else 0)
                            if with_gate:
                                inner = active(h[b, t] @ g[e] + (wide["gate_bias"][e] if with_bias else 0)) * inner
                            else:
                                inner = active(inner)
                            expected[b, t] += s[b, t, k] * (inner @ d[e] + (wide["down_bias"][e] if with_bias else 0))
                        kind = {"activation": "sigmoid", "swish": True} if swish else {"activation": "relu"}
                        self.check(lambda n, *t: n.add_moe(*t, gate if with_gate else None, up, down, **kind, **given),
                                   [hidden, experts, scores], expected.astype(dtype), f"{dtype} gate {with_gate} swish {swish} bias {with_bias}",
                                   2e-4 if dtype == "float32" else 6e-2)

    def test_collective(self):
        for op, dtype in itertools.product(("all_reduce", "all_gather", "broadcast", "reduce", "reduce_scatter"), FLOATS):
            x = self.normal(2, 3, dtype=dtype)
            self.check(lambda n, t: n.add_collective(t, op), [x], x, f"{op} {dtype}")
        self.rejected("UNIMPLEMENTED", lambda n, t: n.add_collective(t, "all_reduce", ranks=2), x)


class QuantizeLayers(LayerCase):
    def test_quantize(self):
        for dtype in FLOATS:
            x = (self.normal(3, 5, 4) * 4).astype(dtype)
            for to in ("int8", "uint8", ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
                to = np.dtype(to)
                integer = "int" in to.name
                info = ml_dtypes.iinfo(to) if integer else ml_dtypes.finfo(to)
                for shape in ((), (5,)):
                    scale = np.exp2(self.integers(-2, 1, *shape)).astype(dtype)  # powers of two, for exact quotients
                    zero = self.integers(0, 4, *shape).astype(to)
                    for with_zero in (True, False) if integer else (False,):
                        spread = lambda value: np.asarray(value, "float64").reshape(-1, 1) if shape else np.asarray(value, "float64")
                        quotient = x.astype("float64") / spread(scale)
                        if integer:
                            quotient = np.rint(quotient) + (spread(zero.astype("float64")) if with_zero else 0)
                        expected = np.clip(quotient, float(info.min), float(info.max)).astype("float32").astype(to)
                        given = (scale, zero) if with_zero else (scale,)
                        self.check(lambda n, t: n.add_quantize(t, *given, axis=1, to=to), [x], expected, f"{dtype} {to} {shape} {with_zero}")
                        back = ((expected.astype("float64") - (spread(zero.astype("float64")) if with_zero else 0)) * spread(scale)).astype(dtype)
                        self.check(lambda n, t: n.add_dequantize(t, *given, axis=1, to=dtype), [expected], back,
                                   f"back {dtype} {to} {shape} {with_zero}")
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_quantize(t, np.array(1, "float32"), to="float32"), self.normal(2, 3))

    def test_dynamic_quantize(self):
        for dtype in FLOATS:
            x = (self.normal(3, 32) * 4).astype(dtype)
            x[1, 16:] = 0
            for axis, given in ((1, x), (-1, x), (0, np.ascontiguousarray(x.T))):
                for to, largest in ((ml_dtypes.float8_e4m3fn, 448), (ml_dtypes.float4_e2m1fn, 6)):
                    for scale_dtype in ("float32", ml_dtypes.float8_e4m3fn):
                        rows = x.astype("float32").reshape(3, 2, 16)
                        scale = (abs(rows).max(2) / np.float32(largest)).astype(scale_dtype)
                        data = np.clip(rows / np.maximum(scale.astype("float32"), np.float32(1e-30))[..., None], -largest, largest).astype(to)
                        data = data.reshape(3, 32)
                        if axis == 0:
                            data, scale = data.T, scale.T
                        self.check(lambda n, t: n.add_dynamic_quantize(t, axis, 16, to, scale_dtype), [given], [data, scale],
                                   f"{dtype} {axis} {to} {scale_dtype}", dynamic_axis=None)
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_dynamic_quantize(t, 1, 16), self.normal(2, 20), words=("20", "16"))

    def test_nms(self):
        for centers, dtype in itertools.product((False, True), FLOATS):
            boxes, scores = self.rng.random((2, 12, 4)).astype(dtype).astype("float32"), self.rng.random((2, 3, 12)).astype(dtype).astype("float32")
            corners = boxes.copy()
            if centers:
                corners = np.concatenate([boxes[..., :2] - boxes[..., 2:] / 2, boxes[..., :2] + boxes[..., 2:] / 2], -1)
            low, high = np.minimum(corners[..., :2], corners[..., 2:]), np.maximum(corners[..., :2], corners[..., 2:])
            for most, limit, least, topk in ((3, 0.3, 0.0, 0), (12, 0.1, 0.4, 0), (12, 0.3, 0.0, 5), (12, 0.9, None, 3), (3, 0.3, None, 20)):
                chosen = []
                for b, c in np.ndindex(2, 3):
                    kept = []
                    for i in np.argsort(-scores[b, c])[:topk or None]:
                        def overlap(j, b=b, i=i):
                            inner = np.prod(np.maximum(np.minimum(high[b, i], high[b, j]) - np.maximum(low[b, i], low[b, j]), 0))
                            return inner / (np.prod(high[b, i] - low[b, i]) + np.prod(high[b, j] - low[b, j]) - inner)
                        if (least is None or scores[b, c, i] > least) and len(kept) < most and all(overlap(j) <= limit for j in kept):
                            kept.append(i)
                    chosen += [[b, c, i] for i in kept]
                self.check(lambda n, *t: n.add_nms(*t, np.array(most, "int32"), iou_threshold=np.array(limit, "float32"),
                                                   score_threshold=None if least is None else np.array(least, "float32"),
                                                   centers=centers, topk=topk), [boxes.astype(dtype), scores.astype(dtype)],
                           [np.array(chosen, "int32"), np.array(len(chosen), "int32")], f"{centers} {most} {limit} {least} {topk}", dynamic_axis=None)
