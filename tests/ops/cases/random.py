# SPDX-License-Identifier: Apache-2.0
"""Cases of random operators and Dropout: the reference implementation of ONNX draws from NumPy's RandomState. Where it lacks
the operator, NumPy computes the expected values."""
import ml_dtypes
import numpy as np

from .common import T, f32, rng


def random_uniform_random_normal_and_bernoulli(own):
    like = f32(3, 5)
    for dtype in (T.FLOAT, T.DOUBLE, T.FLOAT16):
        own.add("RandomUniform", [], opset=22, reference="onnx", rtol=0, atol=0, shape=[7, 3], dtype=dtype, seed=11.0, low=-2.5, high=4.0)
        own.add("RandomNormal", [], opset=22, reference="onnx", rtol=1e-6, shape=[3, 5], dtype=dtype, seed=3.0, mean=1.5, scale=0.5)
        own.add("RandomUniformLike", [like], opset=22, reference="onnx", rtol=0, atol=0, dtype=dtype, seed=70000.0)
        own.add("RandomNormalLike", [like.astype(np.float64)], opset=22, reference="onnx", rtol=1e-6, dtype=dtype, seed=5.0, mean=-1.0)
    state = np.random.RandomState(9)
    own.add("RandomUniform", [], opset=1, reference=[state.rand(700).astype(np.float32)], rtol=0, atol=0, shape=[700], seed=9.0)
    own.add("RandomUniformLike", [like.astype(np.int8)], opset=22, reference="onnx", rtol=0, atol=0, dtype=T.FLOAT, seed=2.0)
    p = rng.uniform(0, 1, (6, 40))
    p[0, :4] = [0, 1, 0.5, 1e-9]
    for dtype in (T.BOOL, T.INT32, T.FLOAT, T.DOUBLE, T.UINT8):
        own.add("Bernoulli", [p.astype(np.float32)], opset=22, reference="onnx", dtype=dtype, seed=4.0)
    own.add("Bernoulli", [p], opset=15, reference="onnx", seed=8.0)
    own.refuse("RandomUniform", [], "does not take int32", opset=22, shape=[2], dtype=T.INT32)


def random_normal_like(own):
    # found by fuzzing: a number of no element type was read outside a table
    own.refuse("RandomNormalLike", [f32(2, 3)], "RandomNormalLike", dtype=-2**31)


def multinomial(own):
    for dtype, to in ((np.float32, T.INT32), (np.float64, T.INT64), (np.float16, T.INT32)):
        logits = rng.uniform(-3, 3, (3, 7)).astype(dtype)
        logits[1, 2] = -np.inf
        wide = logits.astype(np.float64)
        sums = np.cumsum(np.exp(wide - wide.max(1, keepdims=True)), axis=1)
        drawn = np.random.RandomState(21).rand(3, 50) * sums[:, -1:]
        wanted = np.stack([np.searchsorted(s, d, side="right") for s, d in zip(sums, drawn)])
        own.add("Multinomial", [logits], opset=22, reference=[wanted.astype(np.int32 if to == T.INT32 else np.int64)],
                dtype=to, sample_size=50, seed=21.0)
    own.refuse("Multinomial", [np.full((2, 3), -np.inf, np.float32)], "all classes of row 0 are")
    own.refuse("Multinomial", [np.zeros(3, np.float32)], "expected [batch, classes]")


def dropped(x, ratio):  # as the reference computes it for float32; for other types it returns float32 too
    kept = np.random.RandomState(17).uniform(0, 1, x.shape) >= ratio
    return [(kept * x.astype(np.float64) / (1 - ratio)).astype(x.dtype), kept]


def dropout(own):
    for dtype in (np.float32, np.float64, np.float16):
        x = f32(5, 3, 4).astype(dtype)
        for ratio in (0.25, 0.75):
            r = np.array(ratio, np.float32)
            own.add("Dropout", [x, r, np.array(True)], opset=13, outputs=2, reference=dropped(x, ratio), rtol=2e-3, seed=17)
        own.add("Dropout", [x, r, np.array(True)], opset=13, constants=(1, 2), reference=dropped(x, ratio)[:1], rtol=2e-3, seed=17)
        own.add("Dropout", [x, r, np.array(False)], opset=13, outputs=2, reference=[x, np.ones(x.shape, bool)], seed=17)
        own.add("Dropout", [x], opset=7, outputs=2, reference=[x, np.ones_like(x)])
        own.add("Dropout", [x, r, np.array(False)], opset=13, constants=(1, 2), reference=[x])
        own.add("Dropout", [x], opset=6, is_test=1, reference=[x])
    narrow = rng.uniform(-2, 2, (4, 6)).astype(ml_dtypes.float8_e4m3fn)
    kept = np.random.RandomState(6).uniform(0, 1, narrow.shape) >= 0.5
    wanted = np.where(kept, narrow.astype(np.float32) * 2, 0).astype(narrow.dtype)
    own.add("Dropout", [narrow, np.array(0.5, np.float32), np.array(True)], opset=22, outputs=2, reference=[wanted, kept], seed=6)
    own.refuse("Dropout", [x, np.array(1, np.float32), np.array(True)], "ratio is out of range", opset=13)


def dropout_inference(own):
    x = f32(2, 3, 4, 5)
    own.add("Dropout", [x], opset=13)


CASES = [
    random_uniform_random_normal_and_bernoulli, random_normal_like, multinomial, dropout, dropout_inference]
