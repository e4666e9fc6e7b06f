# SPDX-License-Identifier: Apache-2.0
"""Cases of quantized chains that passes transposed into integer products, against ONNX Runtime."""
import numpy as np

from .common import T, f32, helper, numpy_helper, rng

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"


class Chain:
    """A graph whose scales and weights are constants; `x` is its float input."""

    def __init__(self, own, x, kind=np.uint8):
        self.own, self.x, self.kind, self.nodes, self.constants, self.count = own, x, kind, [], {}, 0

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def node(self, op, *inputs, **attrs):
        self.count += 1
        self.nodes.append(helper.make_node(op, inputs, [f"v{self.count}"], **attrs))
        return f"v{self.count}"

    def parameters(self, scale, zero, kind=None):
        return self.constant(np.float32(scale)), self.constant((kind or self.kind)(zero))

    def quantized(self, value, scale, zero, kind=None):
        given = self.parameters(scale, zero, kind)
        return self.node(QUANTIZE, value, *given), given

    def rounded(self, value, scale, zero, kind=None):
        q, given = self.quantized(value, scale, zero, kind)
        return self.node(DEQUANTIZE, q, *given)

    def weights(self, shape, axis=None, kind=np.int8):
        limits = np.iinfo(kind)
        w = rng.integers(limits.min, limits.max + 1, shape, kind)
        count = () if axis is None else (shape[axis],)
        scale = np.asarray(f32(*count, low=0.004, high=0.01), np.float32)
        zero = np.full(count, 128 if kind == np.uint8 else 0, kind)
        self.scale = scale
        attrs = {} if axis is None else {"axis": axis}
        return self.node(DEQUANTIZE, self.constant(w), self.constant(scale), self.constant(zero), **attrs)

    def bias(self, x_scale, count):
        value = rng.integers(-3000, 3000, count, np.int32)
        scale = np.broadcast_to(np.float32(x_scale) * self.scale, (count,)).copy()
        return self.node(DEQUANTIZE, self.constant(value), self.constant(scale), self.constant(np.zeros(count, np.int32)), axis=0)

    def done(self, label, last, atol, opset=17, reference="ort"):
        self.nodes.append(helper.make_node("Identity", [last], ["y"]))
        graph = helper.make_graph(
            self.nodes, label, [helper.make_tensor_value_info("x", T.FLOAT, [None] * self.x.ndim)],
            [helper.make_empty_tensor_value_info("y")], [numpy_helper.from_array(v, n) for n, v in self.constants.items()])
        self.own.model(label, helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), [("x", self.x)],
                       reference, rtol=1e-5, atol=atol)


def products(own):
    for m, k, n in [(5, 37, 21), (70, 128, 200)]:
        for kind, zero in ((np.uint8, 117), (np.int8, -9)):
            for axis in (None, 1):
                # a tie may round either way: one step of the last quantization
                step = 0.02 * np.sqrt(k)
                c = Chain(own, f32(2, m, k), kind)
                y = c.node("MatMul", c.rounded("x", 0.017, zero), c.weights((k, n), axis))
                c.done("qdq_matmul", c.rounded(y, step, zero), step)
                c = Chain(own, f32(2, m, k), kind)
                c.done("qdq_matmul_float", c.node("MatMul", c.rounded("x", 0.017, zero), c.weights((k, n), axis)), 1e-4)
                c = Chain(own, f32(m, k), kind)
                y = c.rounded(c.node("MatMul", c.rounded("x", 0.017, zero), c.weights((k, n), axis)), step, zero)
                y = c.node("Add", y, c.constant(f32(n)))
                y = c.node("Tanh", y) if axis is None else c.node("Relu", y)
                c.done("qdq_matmul_add_act", c.rounded(y, 0.02, zero), 0.021)
                # the quantized result is the input of a second product
                c = Chain(own, f32(m, k), kind)
                y = c.rounded(c.node("MatMul", c.rounded("x", 0.017, zero), c.weights((k, n), axis)), step, zero)
                y = c.rounded(c.node("MatMul", y, c.weights((n, 19), axis)), 4 * step, zero)
                c.done("qdq_two_matmuls", c.node("Mul", y, c.constant(np.float32(2))), 8.1 * step)
                # the result has two consumers
                c = Chain(own, f32(m, k), kind)
                y = c.rounded(c.node("MatMul", c.rounded("x", 0.017, zero), c.weights((k, n), axis)), step, zero)
                c.done("qdq_read_twice", c.node("Add", y, c.node("Sigmoid", y)), 1.3 * step)
        for transposed in (0, 1):
            c = Chain(own, f32(m, k))
            a, w = c.rounded("x", 0.017, 101), c.weights((n, k) if transposed else (k, n), 0 if transposed else 1)
            y = c.node("Gemm", a, w, c.bias(0.017, n), transB=transposed)
            c.done("qdq_gemm", c.rounded(y, 0.02 * np.sqrt(k), 101), 0.021 * np.sqrt(k))
            c = Chain(own, f32(m, k))
            a, w = c.rounded("x", 0.017, 101), c.weights((n, k) if transposed else (k, n), kind=np.uint8)
            c.done("qdq_gemm_plain", c.node("Relu", c.node("Gemm", a, w, c.constant(f32(n)), transB=transposed)), 1e-4)
    # without zero points
    c = Chain(own, f32(6, 40, low=0))
    one = lambda value, step: c.node(DEQUANTIZE, c.node(QUANTIZE, value, c.constant(np.float32(step))), c.constant(np.float32(step)))  # noqa: E731
    w = c.node(DEQUANTIZE, c.constant(rng.integers(-128, 128, (40, 24), np.int8)), c.constant(np.float32(0.01)))
    c.done("qdq_no_zeros", one(c.node("Relu", one(c.node("MatMul", one("x", 0.01), w), 0.3)), 0.25), 0.56)
    c = Chain(own, f32(1, 3, 8, 9, low=0))
    w = c.node(DEQUANTIZE, c.constant(rng.integers(-128, 128, (7, 3, 3, 3), np.int8)), c.constant(np.float32(0.01)))
    c.done("qdq_conv_no_zeros", one(c.node("Conv", one("x", 0.01), w, pads=[1, 1, 1, 1]), 0.3), 0.31)
    # both operands are computed at run time
    c = Chain(own, f32(2, 3, 18, 40))
    a, b = c.rounded("x", 0.017, 101), c.rounded(c.node("Transpose", "x", perm=[0, 1, 3, 2]), 0.016, 130)
    c.done("qdq_both", c.rounded(c.node("Softmax", c.rounded(c.node("MatMul", a, b), 0.2, 120)), 1 / 255, 0), 1.1 / 255)


def convolutions(own):
    for x_shape, w_shape, attrs in [((2, 6, 40), (20, 6, 3), {"pads": [1, 1]}), ((1, 5, 13, 12), (33, 5, 3, 3), {"strides": [2, 1]}),
                                    ((1, 24, 9, 10), (24, 1, 3, 3), {"group": 24, "pads": [1, 1, 1, 1]}),
                                    ((2, 12, 8, 9), (16, 6, 1, 1), {"group": 2})]:
        for kind, zero in ((np.uint8, 117), (np.int8, -9)):
            for axis in (None, 0):
                step = 0.02 * np.sqrt(np.prod(w_shape[1:]))
                c = Chain(own, f32(*x_shape), kind)
                x, w = c.rounded("x", 0.017, zero), c.weights(w_shape, axis)
                y = c.node("Conv", x, w, c.bias(0.017, w_shape[0]), **attrs)
                c.done("qdq_conv", c.rounded(c.node("Relu", y), step, zero), step)
                c = Chain(own, f32(*x_shape), kind)
                x, w = c.rounded("x", 0.017, zero), c.weights(w_shape, axis)
                y = c.rounded(c.node("Conv", x, w, c.bias(0.017, w_shape[0]), **attrs), step, zero)
                c.done("qdq_conv_step_act", c.rounded(c.node("Tanh", y), 0.01, zero), 0.011)
                c = Chain(own, f32(*x_shape), kind)
                c.done("qdq_conv_float", c.node("Conv", c.rounded("x", 0.017, zero), c.weights(w_shape, axis), **attrs), 1e-4)


def dynamic(own):
    for columns in (False, True):
        for zero in (None, np.int8(3)):
            c = Chain(own, f32(2, 31, 48))
            c.nodes.append(helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]))
            w = c.constant(rng.integers(-128, 128, (48, 70), np.int8))
            scale = f32(70, low=0.004, high=0.01) if columns else np.float32(0.006)
            given = [] if zero is None else [c.constant(np.full(70, zero) if columns else zero)]
            y = c.node("Cast", c.node("MatMulInteger", "q", w, "z", *given), to=T.FLOAT)
            y = c.node("Mul", y, c.node("Mul", "s", c.constant(scale)))
            c.done("dynamic_matmul", c.node("Relu", c.node("Add", y, c.constant(f32(70)))), 1e-4)
            c = Chain(own, f32(1, 5, 14, 15))
            c.nodes.append(helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]))
            w = c.constant(rng.integers(0, 256, (9, 5, 3, 3), np.uint8))
            y = c.node("ConvInteger", "q", w, "z", c.constant(np.uint8(121)), pads=[1, 1, 1, 1])
            y = c.node("Mul", c.node("Mul", "s", c.constant(np.float32(0.006))), c.node("Cast", y, to=T.FLOAT))
            c.done("dynamic_conv", c.node("Add", y, c.constant(f32(1, 9, 1, 1))), 1e-4)


def weights(own):
    """Only the weights are integers. For some of these ONNX Runtime quantizes the other operand too, although the model does not."""
    for m, k, n in [(1, 300, 260), (17, 256, 259), (203, 401, 170)]:
        for kind, zero in ((np.int8, 0), (np.int8, 5), (np.uint8, 131)):
            for axis in (None, 1):
                c = Chain(own, f32(2, m, k))
                limits = np.iinfo(kind)
                w = c.constant(rng.integers(limits.min, limits.max + 1, (k, n), kind))
                count = () if axis is None else (n,)
                scale = c.constant(np.asarray(f32(*count, low=0.001, high=0.002), np.float32))
                w = c.node(DEQUANTIZE, w, scale, c.constant(np.full(count, zero, kind)), **({} if axis is None else {"axis": axis}))
                y = c.node("MatMul", "x", w)
                if axis is not None:
                    y = c.node("Add", c.constant(f32(n)), y)
                c.done("weight_matmul", c.node("Relu", y) if zero else y, 2e-4, opset=21, reference="onnx")
        c = Chain(own, f32(m, k))
        w = c.node("Cast", c.constant(rng.integers(-128, 128, (k, n), np.int8)), to=T.FLOAT)
        w = c.node("Mul", w, c.constant(f32(1, n, low=0.001, high=0.002)))
        y = c.node("Add", c.node("MatMul", "x", w), c.constant(f32(n)))
        c.done("cast_matmul", c.node("Tanh", y), 2e-4)
        # scales per row: the weights are dequantized
        c = Chain(own, f32(m, k))
        w = c.node("Mul", c.node("Cast", c.constant(rng.integers(-128, 128, (k, n), np.int8)), to=T.FLOAT), c.constant(f32(k, 1) * 0.001))
        c.done("cast_matmul_rows", c.node("MatMul", "x", w), 2e-4)
    for rank in (1, 2):
        c = Chain(own, np.abs(f32(*([7, 3][:rank]), low=0, high=1099)))
        table = c.node("Cast", c.constant(rng.integers(-128, 128, (1100, 1000), np.int8)), to=T.FLOAT)
        table = c.node("Mul", table, c.constant(f32(1100, 1)))
        c.done("cast_gather", c.node("Gather", table, c.node("Cast", "x", to=T.INT64)), 0)


CASES = [weights, products, convolutions, dynamic]
