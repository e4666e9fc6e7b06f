# SPDX-License-Identifier: Apache-2.0
"""Random operators, Dropout and BatchNormalization in training, Unique, optimizers: answers of ONNX's reference, whose random
operators draw from NumPy's RandomState, or of NumPy where the reference lacks the operator or has it wrong."""
import ml_dtypes
import numpy as np

from common import T, f32, helper, i64, rng, run_onnx

TRAINING = "ai.onnx.preview.training"


def randoms(own):
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
    own.refuse("Multinomial", [np.full((2, 3), -np.inf, np.float32)], "no class of row 0 has a chance")
    own.refuse("Multinomial", [np.zeros(3, np.float32)], "expected [batch, classes]")


def dropped(x, ratio):  # the reference's own answer for float32; for other types it gives float32 as well
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
    own.refuse("Dropout", [x, np.array(1, np.float32), np.array(True)], "ratio is 1", opset=13)


def batch_norm(own):
    for dtype, shape in ((np.float32, (4, 3, 5, 2)), (np.float64, (7, 3)), (np.float16, (2, 3, 9))):
        x, s, b, mean = (f32(*size).astype(dtype) for size in (shape, (3,), (3,), (3,)))
        var = f32(3, low=0.5, high=2).astype(dtype)
        loose = 4e-3 if dtype == np.float16 else 1e-5
        own.add("BatchNormalization", [x, s, b, mean, var], opset=15, outputs=3, reference="onnx", rtol=loose, atol=loose,
                training_mode=1, momentum=0.75, epsilon=0.01)
        own.add("BatchNormalization", [x, s, b, mean, var], opset=15, reference="onnx", rtol=loose, atol=loose, epsilon=0.01)
    x, s, b, mean = f32(4, 3, 5), f32(3), f32(3), f32(3)
    var = f32(3, low=0.5, high=2)
    m, v = x.mean((0, 2)), x.var((0, 2))
    y = (x - m[:, None]) / np.sqrt(v + 1e-5)[:, None] * s[:, None] + b[:, None]
    trained = [y, mean * 0.9 + m * 0.1, var * 0.9 + v * 0.1, m, v]
    own.add("BatchNormalization", [x, s, b, mean, var], opset=6, outputs=5, reference=[a.astype(np.float32) for a in trained])
    own.add("BatchNormalization", [x, s, b, mean, var], opset=9, outputs=5, reference=[a.astype(np.float32) for a in trained])
    places = [f32(3, 5) for _ in range(3)] + [f32(3, 5, low=0.5, high=2)]
    y = (x - places[2]) / np.sqrt(places[3] + 1e-5) * places[0] + places[1]
    own.add("BatchNormalization", [x, *places], opset=7, reference=[y.astype(np.float32)], spatial=0)
    half = [a.astype(np.float16) for a in (f32(2, 3, 4),)] + [s, b, mean, var]  # types may differ from version 15 on
    own.add("BatchNormalization", half, opset=15, reference="onnx", rtol=2e-3, atol=2e-3)


def first_seen(x, axis=None):
    """Unique in the order of coming, from NumPy's in rising order."""
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


def ranges(own):
    for dtype in (np.float16, ml_dtypes.bfloat16):
        start, limit, delta = (np.array(v, dtype) for v in (-3.5, 2.1, 0.7))
        for stash in (T.FLOAT, T.DOUBLE):
            own.add("Range", [start, limit, delta], opset=27, reference="onnx", rtol=1e-3, stash_type=stash)


def optimizers(own):
    for dtype in (np.float32, np.float64):
        sizes = [(3, 5), (7,)]
        x, g = [f32(*s).astype(dtype) for s in sizes], [f32(*s).astype(dtype) for s in sizes]
        v, h = [f32(*s, low=0.1).astype(dtype) for s in sizes], [f32(*s, low=0.1).astype(dtype) for s in sizes]
        rate = np.array(0.1, dtype)
        for count in (0, 3):
            lead = [rate, np.array(count, np.int64)]
            own.add("Adagrad", [*lead, *x, *g, *v], opset=1, outputs=4, domain=TRAINING, reference="onnx",
                    epsilon=1e-5, decay_factor=0.1, norm_coefficient=0.01)
            if dtype == np.float32:  # the reference gives float32 whatever it is given
                own.add("Adam", [*lead, *x, *g, *v, *h], opset=1, outputs=6, domain=TRAINING, reference="onnx",
                        epsilon=1e-5, alpha=0.8, beta=0.9, norm_coefficient=0.01, norm_coefficient_post=0.02)
                if count == 0:  # with bias correction it gives float64
                    own.add("Adam", [*lead, x[0], g[0], v[0], h[0]], opset=1, outputs=3, domain=TRAINING, reference="onnx")
            else:
                lead32, all32 = [rate.astype(np.float32), lead[1]], [a.astype(np.float32) for a in (*x, *g, *v, *h)]
                model = helper.make_model(helper.make_graph(
                    [helper.make_node("Adam", [f"x{i}" for i in range(10)], [f"y{i}" for i in range(6)], domain=TRAINING)], "g",
                    [helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                     for i, a in enumerate([*lead32, *all32])],
                    [helper.make_empty_tensor_value_info(f"y{i}") for i in range(6)]),
                    opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(TRAINING, 1)])
                single = run_onnx(model, {f"x{i}": a for i, a in enumerate([*lead32, *all32])})
                own.add("Adam", [*lead, *x, *g, *v, *h], opset=1, outputs=6, domain=TRAINING, reference=[a.astype(np.float64) for a in single])
            for mode in ("standard", "nesterov"):
                own.add("Momentum", [*lead, *x, *g, *v], opset=1, outputs=4, domain=TRAINING, reference="onnx",
                        alpha=0.9, beta=0.5, mode=mode, norm_coefficient=0.01)
    own.refuse("Momentum", [*lead, x[0], g[0]], "needs 5 inputs", opset=1, domain=TRAINING, alpha=0.9, beta=0.5, mode="standard", norm_coefficient=0.0)
    own.refuse("Momentum", [*lead, x[0], g[0], v[0]], "mode is 'fast'", domain=TRAINING, outputs=2, opset=1, alpha=0.9, beta=0.5, mode="fast",
               norm_coefficient=0.0)


def cases(own):
    randoms(own)
    multinomial(own)
    dropout(own)
    batch_norm(own)
    unique(own)
    ranges(own)
    optimizers(own)
