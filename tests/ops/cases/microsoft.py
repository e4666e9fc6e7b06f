# SPDX-License-Identifier: Apache-2.0
"""Operators of com.microsoft that exported and optimized transformers carry, against ONNX Runtime."""
import numpy as np
from common import f32, i64, rng  # noqa: F401


def ms(own, op, inputs, **attrs):
    own.add(op, inputs, opset=1, domain="com.microsoft", **attrs)


def i32(*shape, low=0, high=2):
    return rng.integers(low, high, shape).astype(np.int32)


def norms(own):
    x, s, g = f32(2, 5, 37), f32(2, 5, 37), [f32(37) for _ in range(3)]
    ms(own, "SkipLayerNormalization", [x, s, *g[:2]], epsilon=1e-5)
    ms(own, "SkipLayerNormalization", [x, f32(5, 37), g[0], None, g[2]], outputs=1)
    ms(own, "SkipLayerNormalization", [x, f32(1, 5, 37), g[0], g[1], g[2]])
    ms(own, "SkipSimplifiedLayerNormalization", [x, s, g[0]], epsilon=1e-6)
    ms(own, "SkipSimplifiedLayerNormalization", [x, s, g[0], g[1]])
    own.add("SimplifiedLayerNormalization", [x, g[0]], epsilon=1e-6)
    words, at, segments = f32(30, 24), f32(12, 24), f32(2, 24)
    ids = i32(3, 7, high=30)
    ms(own, "EmbedLayerNormalization", [ids, i32(3, 7), words, at, segments, f32(24), f32(24), i32(3, 7)], outputs=2, epsilon=1e-6, constants=(2, 3, 4, 5, 6))
    ms(own, "EmbedLayerNormalization", [ids, None, words, at, None, f32(24), f32(24), None, i32(3, 7, high=12)], outputs=2, constants=(2, 3, 5, 6))


def activations(own):
    x = f32(3, 5, 70, low=-5, high=5)
    ms(own, "Gelu", [x])
    ms(own, "FastGelu", [x])
    ms(own, "FastGelu", [x, f32(70)])
    ms(own, "BiasGelu", [x, f32(70)])
    ms(own, "QuickGelu", [x])
    ms(own, "QuickGelu", [x], alpha=0.7)


def cases(own):
    norms(own)
    activations(own)
