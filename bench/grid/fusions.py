# SPDX-License-Identifier: Apache-2.0
"""Patterns that passes fuse (src/graph/passes): each order of their operands, and near misses, which must not be fused."""
import numpy as np
from onnx import helper

from .common import OPSET, generator, several


class Graph:
    """Nodes, inputs and constants by the names of their values."""

    def __init__(self, rng):
        self.rng, self.nodes, self.feeds, self.constants = rng, [], [], []

    def input(self, *shape, dtype=np.float32, low=-2.0, high=2.0):
        values = self.rng.random(shape, dtype=np.float32) * (high - low) + low
        self.feeds.append((f"x{len(self.feeds)}", values.astype(dtype)))
        return self.feeds[-1][0]

    def constant(self, values, dtype=np.float32):
        self.constants.append((f"c{len(self.constants)}", np.asarray(values, dtype)))
        return self.constants[-1][0]

    def weights(self, *shape, low=-0.5, high=0.5, dtype=np.float32):
        return self.constant(self.rng.random(shape, dtype=np.float32) * (high - low) + low, dtype)

    def op(self, name, *inputs, outputs=1, domain="", **attributes):
        made = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(name, inputs, made, domain=domain, **attributes))
        return made[0] if outputs == 1 else made

    def __getattr__(self, name):
        return lambda *inputs, **attributes: self.op(name, *inputs, **attributes)


def fusion(name, label, make, opset=OPSET):
    """A case whose graph `make(g)` builds; it returns the output or a list of them."""
    def build(rng):
        g = Graph(rng)
        outputs = make(g)
        return g.nodes, g.feeds, g.constants, outputs if isinstance(outputs, list) else [outputs]
    return several(name, "f32", label, build, domain="fusion", opset=opset)


SHAPES = ((1, 128, 768), (32, 1024))


@generator("fusion")
def gelu():
    for shape in SHAPES:
        text = "x".join(map(str, shape))
        for order in range(4):
            def erf(g, shape=shape, order=order, half=0.5):
                x = g.input(*shape)
                gate = g.Add(*((g.Erf(g.Div(x, g.constant(2 ** 0.5))), g.constant(1)) if order % 2 else
                               (g.constant(1), g.Erf(g.Mul(x, g.constant(0.5 ** 0.5))))))
                return g.Mul(g.Mul(x, gate), g.constant(half)) if order < 2 else g.Mul(g.Mul(x, g.constant(half)), gate)
            yield fusion("Gelu", f"{text} order {order}", erf)
        yield fusion("Gelu", f"{text} near miss", lambda g, erf=erf: erf(g, half=0.6))

        def tanh(g, shape=shape, cubic=0.044715):
            x = g.input(*shape)
            inner = g.Mul(g.Add(x, g.Mul(g.Pow(x, g.constant(3)), g.constant(cubic))), g.constant((2 / np.pi) ** 0.5))
            return g.Mul(g.Mul(x, g.constant(0.5)), g.Add(g.Tanh(inner), g.constant(1)))
        yield fusion("GeluTanh", text, tanh)
        yield fusion("GeluTanh", f"{text} near miss", lambda g, tanh=tanh: tanh(g, cubic=0.05))


@generator("fusion")
def swish():
    for shape in ((1, 64, 56, 56), (32, 1024)):
        text = "x".join(map(str, shape))
        for gate in ("Sigmoid", "HardSigmoid"):
            attributes = {"alpha": 1 / 6, "beta": 0.5} if gate == "HardSigmoid" else {}

            def gated(g, swap=False, other=False, shape=shape, gate=gate, attributes=attributes):
                x = g.input(*shape)
                y = g.op(gate, g.input(*shape) if other else x, **attributes)
                return g.Mul(y, x) if swap else g.Mul(x, y)
            yield fusion(gate + "Gate", text + " xy", gated)
            yield fusion(gate + "Gate", text + " yx", lambda g, gated=gated: gated(g, swap=True))
            yield fusion(gate + "Gate", text + " near miss", lambda g, gated=gated: gated(g, other=True))

        def clipped(g, early=False, top=6.0, shape=shape):
            x = g.input(*shape)
            clip = g.Clip(g.Add(x, g.constant(3)), g.constant(0), g.constant(top))
            return g.Mul(x, g.Div(clip, g.constant(6))) if early else g.Div(g.Mul(x, clip), g.constant(6))
        yield fusion("ClipGate", text + " late", clipped)
        yield fusion("ClipGate", text + " early", lambda g, clipped=clipped: clipped(g, early=True))
        yield fusion("ClipGate", text + " near miss", lambda g, clipped=clipped: clipped(g, top=5.0))


@generator("fusion")
def norms():
    for shape in SHAPES:
        text = "x".join(map(str, shape))

        def layer_norm(g, square="Pow", swap=False, axis=-1, shape=shape):
            x = g.input(*shape)
            d = g.Sub(x, g.ReduceMean(x, g.constant([axis], np.int64)))
            squares = g.Pow(d, g.constant(2)) if square == "Pow" else g.Mul(d, d)
            unit = g.Div(d, g.Sqrt(g.Add(g.ReduceMean(squares, g.constant([axis], np.int64)), g.constant(1e-5))))
            scale, bias = g.weights(shape[-1]), g.weights(shape[-1])
            return g.Add(bias, g.Mul(scale, unit)) if swap else g.Add(g.Mul(unit, scale), bias)
        yield fusion("LayerNorm", text + " Pow", layer_norm)
        yield fusion("LayerNorm", text + " Mul", lambda g, f=layer_norm: f(g, square="Mul"))
        yield fusion("LayerNorm", text + " yx", lambda g, f=layer_norm: f(g, swap=True))
        yield fusion("LayerNorm", text + " near miss", lambda g, f=layer_norm: f(g, axis=-2))
        for word in ("xy", "yx", "sum read"):
            def skip(g, word=word, shape=shape):
                x, y = g.input(*shape), g.input(*shape)
                total = g.Add(*((y, x) if word == "yx" else (x, y)))
                normed = g.LayerNormalization(total, g.weights(shape[-1]), g.weights(shape[-1]))
                return [normed, g.Relu(total)] if word == "sum read" else normed
            yield fusion("SkipNorm", f"{text} {word}", skip)


ACTIVATIONS = {"Relu": {}, "Sigmoid": {}, "LeakyRelu": {"alpha": 0.1}, "Tanh": {}, "HardSwish": {}, "Clip": None}


def activate(g, name, x):
    if name == "Clip":
        return g.Clip(x, g.constant(0), g.constant(6))
    return g.op(name, x, **ACTIVATIONS[name])


@generator("fusion")
def convolutions():
    for channels, size, kernel in ((64, 28, 3), (32, 14, 1)):
        text = f"1x{channels}x{size}x{size} {kernel}x{kernel}"

        def conv(g, x=None, bias=True, channels=channels, size=size, kernel=kernel):
            x = x or g.input(1, channels, size, size)
            weights = [g.weights(channels, channels, kernel, kernel, low=-0.1, high=0.1)] + [g.weights(channels)] * bias
            return g.Conv(x, *weights, pads=[kernel // 2] * 4)
        for name in ACTIVATIONS:
            yield fusion("ConvActivation", f"{text} {name}", lambda g, conv=conv, name=name: activate(g, name, conv(g)))
        yield fusion("ConvActivation", f"{text} near miss, two readers", lambda g, conv=conv: (lambda y: [g.Relu(y), g.Sigmoid(y)])(conv(g)))
        for word in ("xy", "yx", "Relu xy", "Relu yx", "near miss"):
            def residual(g, word=word, conv=conv, channels=channels, size=size):
                y, other = conv(g), g.input(1, channels, *((1, 1) if word == "near miss" else (size, size)))
                total = g.Add(other, y) if word.endswith("yx") else g.Add(y, other)
                return g.Relu(total) if word.startswith("Relu") else total
            yield fusion("ConvResidual", f"{text} {word}", residual)

        def batch_norm(g, conv=conv, channels=channels):
            return g.Relu(g.BatchNormalization(conv(g, bias=False), g.weights(channels), g.weights(channels), g.weights(channels),
                                               g.weights(channels, low=0.5, high=1.5)))
        yield fusion("ConvBatchNorm", text, batch_norm)
        for word in ("Mul", "Add", "Mul Add"):
            for before in (False, True):
                def affine(g, word=word, before=before, conv=conv, channels=channels, size=size):
                    def apply(y):
                        for op in word.split():
                            y = g.op(op, y, g.weights(channels, 1, 1))
                        return y
                    return conv(g, apply(g.input(1, channels, size, size))) if before else apply(conv(g))
                yield fusion("ConvAffine", f"{text} {word} {'before' if before else 'after'}", affine)


@generator("fusion")
def products():
    for m, k, n in ((1, 768, 768), (128, 768, 768), (32, 256, 10)):
        text = f"{m}x{k}x{n}"
        for word in ("xy", "yx", "Relu", "Sigmoid", "Tanh", "near miss"):
            def matmul(g, word=word, m=m, k=k, n=n):
                y = g.MatMul(g.input(m, k), g.weights(k, n))
                bias = g.weights(*((m, 1) if word == "near miss" else (n,)))
                total = g.Add(bias, y) if word == "yx" else g.Add(y, bias)
                return activate(g, word, total) if word in ACTIVATIONS else total
            yield fusion("MatMulBias", f"{text} {word}", matmul)
        for word in ("DequantizeLinear", "Cast Mul"):
            def kept(g, word=word, m=m, k=k, n=n):
                w = g.weights(k, n, low=-100, high=100, dtype=np.int8)
                scale = g.weights(n, low=0.001, high=0.01)
                wide = g.DequantizeLinear(w, scale, axis=1) if word == "DequantizeLinear" else g.Mul(g.Cast(w, to=1), scale)
                return g.Add(g.MatMul(g.input(m, k), wide), g.weights(n))
            yield fusion("WeightMatMul", f"{text} {word}", kept)

        def dynamic(g, swap=False, m=m, k=k, n=n):
            q, s, z = g.op("DynamicQuantizeLinear", g.input(m, k), outputs=3)
            product = g.Cast(g.MatMulInteger(q, g.weights(k, n, low=-100, high=100, dtype=np.int8), z, g.constant(0, np.int8)), to=1)
            scale = g.Mul(s, g.constant(0.01))
            return g.Add(g.Mul(scale, product) if swap else g.Mul(product, scale), g.weights(n))
        yield fusion("DynamicMatMul", text + " xy", dynamic)
        yield fusion("DynamicMatMul", text + " yx", lambda g, f=dynamic: f(g, swap=True))
    for rows, columns, width in ((128, 21, 64), (1024, 100, 32)):
        def lookup(g, rows=rows, columns=columns, width=width):
            g.feeds.append(("i", g.rng.integers(0, columns, (1, rows)).astype(np.int64)))
            hot = g.OneHot("i", g.constant(columns, np.int64), g.constant([0, 1]))
            return g.MatMul(hot, g.weights(columns, width))
        yield fusion("Lookup", f"{rows}x{columns}x{width}", lookup)


def qdq(g, x, scale, kind=np.uint8):
    return g.DequantizeLinear(g.QuantizeLinear(x, g.constant(scale), g.constant(3, kind)), g.constant(scale), g.constant(3, kind))


@generator("fusion")
def quantized():
    for kind in (np.uint8, np.int8):
        word = np.dtype(kind).name
        for m, k, n in ((1, 768, 768), (128, 768, 768), (32, 256, 10)):
            for end in ("", "Relu", "near miss"):
                def matmul(g, m=m, k=k, n=n, end=end, kind=kind):
                    w = g.DequantizeLinear(g.weights(k, n, low=-100, high=100, dtype=np.int8), g.constant(0.01), g.constant(0, np.int8))
                    y = g.MatMul(qdq(g, g.input(m, k), 0.02, kind), w)
                    y = g.Relu(y) if end == "Relu" else y
                    return g.Softmax(y) if end == "near miss" else qdq(g, y, 0.5, kind)
                yield fusion("QdqMatMul", f"{word} {m}x{k}x{n} {end}".strip(), matmul)
        for channels, size, kernel, group in ((64, 28, 3, 1), (128, 14, 1, 1), (96, 28, 3, 96)):
            for end in ("", "Relu", "Add"):
                def conv(g, channels=channels, size=size, kernel=kernel, group=group, end=end, kind=kind):
                    w = g.DequantizeLinear(g.weights(channels, channels // group, kernel, kernel, low=-100, high=100, dtype=np.int8),
                                           g.weights(channels, low=0.001, high=0.01), g.constant(np.zeros(channels), np.int8), axis=0)
                    x = qdq(g, g.input(1, channels, size, size), 0.02, kind)
                    bias = g.DequantizeLinear(g.constant(g.rng.integers(-1000, 1000, channels), np.int32), g.constant(0.0002))
                    y = g.Conv(x, w, bias, pads=[kernel // 2] * 4, group=group)
                    y = g.Relu(y) if end == "Relu" else g.Add(qdq(g, y, 0.2, kind), x) if end == "Add" else y
                    return qdq(g, y, 0.3, kind)
                yield fusion("QdqConv", f"{word} {channels}x{size}x{size} {kernel}x{kernel} group {group} {end}".strip(), conv)


@generator("fusion")
def attention():
    for tokens, heads, size in ((128, 12, 64), (16, 8, 32), (512, 6, 64)):
        for word in ("Div", "Mul", "mask", "near miss"):
            def fused(g, tokens=tokens, heads=heads, size=size, word=word):
                def split(order):
                    return g.Transpose(g.Reshape(g.input(1, tokens, heads * size, low=-1, high=1), g.constant([0, 0, heads, size], np.int64)), perm=order)
                q, k, v = split([0, 2, 1, 3]), split([0, 2, 3, 1]), split([0, 2, 1, 3])
                scores = g.MatMul(q, k)
                scores = g.Mul(scores, g.constant(size ** -0.5)) if word == "Mul" else g.Div(scores, g.constant(size ** 0.5))
                scores = g.Add(scores, g.input(1, 1, 1, tokens, low=-5, high=0)) if word == "mask" else scores
                mixed = g.MatMul(g.Softmax(scores, axis=2 if word == "near miss" else -1), v)
                return g.Reshape(g.Transpose(mixed, perm=[0, 2, 1, 3]), g.constant([0, 0, heads * size], np.int64))
            yield fusion("Attention", f"{tokens} {heads}x{size} {word}", fused)
    for queries, keys, groups, heads, size in ((1, 257, 3, 9, 64), (128, 128, 3, 9, 64), (128, 128, 8, 8, 64)):
        def grouped(g, queries=queries, keys=keys, groups=groups, heads=heads, size=size):
            def spread():
                x, times = g.input(1, groups, keys, size, low=-1, high=1), heads // groups
                if times == 1:
                    return x
                wide = g.Expand(g.Unsqueeze(x, g.constant([2], np.int64)), g.constant([1, groups, times, keys, size], np.int64))
                return g.Reshape(wide, g.constant([1, heads, keys, size], np.int64))
            scores = g.MatMul(g.input(1, heads, queries, size, low=-1, high=1), g.Transpose(spread(), perm=[0, 1, 3, 2]))
            scores = g.Add(g.Mul(scores, g.constant(size ** -0.5)), g.input(1, 1, queries, keys, low=-5, high=0))
            return g.MatMul(g.Softmax(scores, axis=-1), spread())
        yield fusion("AttentionHeads", f"{queries}x{keys} {heads}/{groups}x{size}", grouped)
