# SPDX-License-Identifier: Apache-2.0
"""Types that models seldom use, of operators that take many: answers of NumPy or of ONNX's reference."""
import ml_dtypes
import numpy as np

from common import T, f32, helper, i64, rng

HALVES = (np.float16, ml_dtypes.bfloat16)
WHOLE = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)


def halves(own):
    for dtype in HALVES:
        x = f32(3, 5).astype(dtype)
        low, high = np.array(-0.5, dtype), np.array(1.25, dtype)
        own.add("Clip", [x, low, high], opset=13, reference=[np.minimum(np.maximum(x, low), high)])
        own.add("CumSum", [x, np.array(1)], opset=14, reference=[np.cumsum(x.astype(np.float64), 1).astype(dtype)], rtol=1e-2)
        own.add("CumProd", [x, np.array(-1)], opset=26, reference=[np.cumprod(x.astype(np.float64), 1).astype(dtype)], rtol=1e-2)
        top = np.zeros((3, 5), dtype)
        top[np.arange(3), np.argmax(x.astype(np.float32), 1)] = 1
        own.add("Hardmax", [x], opset=13, reference=[top])


def whole(own):
    for dtype in WHOLE:
        x = rng.integers(0 if np.dtype(dtype).kind == "u" else -9, 10, (3, 7)).astype(dtype)
        wide = x.astype(np.float64)
        shrunk = np.where(wide < -2.5, wide + 1.5, np.where(wide > 2.5, wide - 1.5, 0)).astype(dtype)
        own.add("Shrink", [x], opset=9, reference=[shrunk], lambd=2.5, bias=1.5)
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
        a, b, c = (rng.integers(0, 50, shape).astype(dtype) for shape in ((3, 4), (4, 5), (5,)))
        own.add("Gemm", [a, b, c], opset=13, reference=[a @ b + c])


def scattered(own):
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


def chosen(own):
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


def scaled_by_powers(own):
    """Blocks of 4 with scales of F8E8M0, as microscaling formats have them; whole numbers as scales."""
    scale = np.array([[0.5, 4], [1, 0.125], [2, 16]], np.float32)
    x = f32(3, 8, low=-12, high=12)
    spread = scale.repeat(4, axis=1)
    for dtype, largest in ((ml_dtypes.float8_e4m3fn, 448), (ml_dtypes.float4_e2m1fn, 6)):
        wanted = np.clip(x / spread, -largest, largest).astype(dtype)
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        powers = scale.astype(ml_dtypes.float8_e8m0fnu)
        own.add("QuantizeLinear", [x, powers], opset=28, reference=[wanted], axis=1, block_size=4, output_dtype=kind)
        own.add("DequantizeLinear", [wanted, powers], opset=28, reference=[wanted.astype(np.float32) * spread], axis=1, block_size=4,
                output_dtype=T.FLOAT)
        own.add("DequantizeLinear", [wanted, powers], opset=28, axis=1, block_size=4, output_dtype=T.FLOAT16,
                reference=[(wanted.astype(np.float32) * spread).astype(np.float16)])
    whole = rng.integers(-900, 900, (4, 5)).astype(np.int32)
    own.add("QuantizeLinear", [whole, np.array(7, np.int32), np.array(3, np.int8)], opset=28,
            reference=[np.clip(np.rint(whole / 7) + 3, -128, 127).astype(np.int8)])


def cases(own):
    scaled_by_powers(own)
    halves(own)
    whole(own)
    scattered(own)
    chosen(own)
