# SPDX-License-Identifier: Apache-2.0
"""Compares elementwise layers and constants with numpy."""
import math

import numpy as np

import kelp
from layers_support import FLOATS, LayerCase

erf = np.vectorize(math.erf)


def activation(name, x, a, b):
    x = x.astype("float64")
    return {
        "RELU": lambda: np.maximum(x, 0), "SIGMOID": lambda: 1 / (1 + np.exp(-x)), "TANH": lambda: np.tanh(x),
        "LEAKY_RELU": lambda: np.where(x >= 0, x, a * x), "ELU": lambda: np.where(x >= 0, x, a * (np.exp(x) - 1)),
        "SELU": lambda: np.where(x > 0, b * x, b * (a * np.exp(x) - a)), "SOFTSIGN": lambda: x / (1 + abs(x)),
        "SOFTPLUS": lambda: a * np.log(np.exp(b * x) + 1), "CLIP": lambda: np.maximum(a, np.minimum(b, x)),
        "HARD_SIGMOID": lambda: np.clip(a * x + b, 0, 1), "SCALED_TANH": lambda: a * np.tanh(b * x),
        "THRESHOLDED_RELU": lambda: np.where(x > a, x, 0), "GELU_ERF": lambda: x / 2 * (1 + erf(x / math.sqrt(2))),
        "GELU_TANH": lambda: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
    }[name]()


UNARY = {"EXP": np.exp, "LOG": np.log, "SQRT": np.sqrt, "RECIP": np.reciprocal, "ABS": np.abs, "NEG": np.negative, "SIN": np.sin,
         "COS": np.cos, "TAN": np.tan, "SINH": np.sinh, "COSH": np.cosh, "ASIN": np.arcsin, "ACOS": np.arccos, "ATAN": np.arctan,
         "ASINH": np.arcsinh, "ACOSH": np.arccosh, "ATANH": np.arctanh, "CEIL": np.ceil, "FLOOR": np.floor, "ERF": erf, "SIGN": np.sign,
         "ROUND": np.rint}
ELEMENTWISE = {"SUM": np.add, "PROD": np.multiply, "MAX": np.maximum, "MIN": np.minimum, "SUB": np.subtract, "DIV": np.divide,
               "POW": np.power, "FLOOR_DIV": np.floor_divide, "EQUAL": np.equal, "GREATER": np.greater, "LESS": np.less}


class ElementwiseLayers(LayerCase):
    def test_activations(self):
        for dtype in FLOATS:
            x = self.normal(3, 5, 7, dtype=dtype)
            x[0, 0, :2] = 0, 0.25
            for member in kelp.builder.Activation:
                for a, b in ((0.25, 0.75), (1.5, 2.0)):
                    self.check(lambda n, t: n.add_activation(t, member, a, b), [x], activation(member.name, x, a, b).astype(dtype),
                               f"{member.name} {a} {b} {dtype}")

    def test_unary(self):
        for dtype in FLOATS:
            x = self.normal(2, 9, dtype=dtype)
            for name, function in UNARY.items():
                given = x
                if name in ("LOG", "SQRT", "RECIP"):
                    given = (abs(x) + 0.5).astype(dtype)
                elif name in ("ASIN", "ACOS", "ATANH"):
                    given = np.tanh(x) * np.asarray(0.9, dtype)
                elif name == "ACOSH":
                    given = (abs(x) + 1.25).astype(dtype)
                elif name == "ROUND":
                    given = np.array([[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.49, -3.51, 0]], dtype)
                self.check(lambda n, t: n.add_unary(t, name), [given], function(given.astype("float64")).astype(dtype), f"{name} {dtype}")
            odd = np.array([[1, np.inf, -np.inf, np.nan]], dtype)
            self.check(lambda n, t: n.add_unary(t, "isinf"), [odd], np.isinf(odd))
            self.check(lambda n, t: n.add_unary(t, "isnan"), [odd], np.isnan(odd))
        self.check(lambda n, t: n.add_unary(t, "not"), [np.array([True, False])], np.array([False, True]))
        for name in ("ABS", "NEG", "SIGN"):
            x = self.integers(-5, 6, 4, 3)
            self.check(lambda n, t: n.add_unary(t, name), [x], UNARY[name](x), name)

    def test_elementwise(self):
        for dtype in ("float32", "float16", "int32", "int64"):
            for shapes in (((2, 3, 5), (2, 3, 5)), ((2, 3, 5), (1, 3, 1)), ((2, 1, 5), (2, 3, 1))):
                a, b = ((self.integers(-9, 10, *shape) if dtype[0] == "i" else self.normal(*shape)).astype(dtype) for shape in shapes)
                for name, function in ELEMENTWISE.items():
                    x, y = a, b
                    if name in ("DIV", "FLOOR_DIV"):
                        y = np.where(abs(b) < 0.25, 2, b).astype(dtype)
                    if name == "POW":
                        x, y = (abs(a) + 1).astype(dtype), (abs(b) % 3).astype(dtype)
                    wide = (x, y) if dtype[0] == "i" else (x.astype("float64"), y.astype("float64"))
                    expected = function(*wide)
                    if name == "DIV" and dtype[0] == "i":
                        expected = np.trunc(expected)
                    expected = expected.astype(bool if name in ("EQUAL", "GREATER", "LESS") else dtype)
                    self.check(lambda n, p, q: n.add_elementwise(p, q, name), [x, y], expected, f"{name} {dtype} {shapes}", dynamic_axis=None)
        a, b = self.integers(0, 2, 3, 4).astype(bool), self.integers(0, 2, 1, 4).astype(bool)
        for name, function in (("AND", np.logical_and), ("OR", np.logical_or), ("XOR", np.logical_xor), ("EQUAL", np.equal)):
            self.check(lambda n, p, q: n.add_elementwise(p, q, name), [a, b], function(a, b), name, dynamic_axis=1)

    def test_elementwise_errors(self):
        self.rejected("INVALID_ARGUMENT", lambda n, p, q: n.add_elementwise(p, q, "sum"), self.normal(2, 3), self.normal(2, 4),
                     words=("[2,3]", "[2,4]"))
        self.rejected("INVALID_ARGUMENT", lambda n, p, q: n.add_elementwise(p, q, "sum"), self.normal(2, 3), self.normal(3))
        self.rejected("INVALID_ARGUMENT", lambda n, p, q: n.add_elementwise(p, q, "sum"), self.normal(2, 3), self.integers(0, 5, 2, 3),
                     words=("float32", "int32"))
        self.rejected("INVALID_ARGUMENT", lambda n, p, q: n.add_elementwise(p, q, "plus"), self.normal(2), self.normal(2), words=("sum",))

    def test_scale(self):
        for dtype in FLOATS:
            x = (abs(self.normal(2, 3, 4, 5)) + 0.5).astype(dtype)
            for mode, shape in (("uniform", ()), ("channel", (3, 1, 1)), ("elementwise", (3, 4, 5))):
                shift, scale, power = ((abs(self.normal(*shape)) + 0.5).astype(dtype) for _ in range(3))
                wide = [array.astype("float64") for array in (x, scale, shift, power)]
                self.check(lambda n, t: n.add_scale(t, mode, shift, scale, power), [x],
                           ((wide[0] * wide[1] + wide[2]) ** wide[3]).astype(dtype), f"{mode} {dtype}", tolerance=2e-2 if dtype == "float16" else 1e-4)
                self.check(lambda n, t: n.add_scale(t, mode, scale=scale), [x], (wide[0] * wide[1]).astype(dtype), f"{mode} {dtype}")
                self.check(lambda n, t: n.add_scale(t, mode, shift=shift), [x], (wide[0] + wide[2]).astype(dtype), f"{mode} {dtype}")
            other = np.array([2, 3, 4, 5], dtype)
            self.check(lambda n, t: n.add_scale(t, "channel", scale=other, axis=2), [x],
                       (x.astype("float64") * other[:, None]).astype(dtype))
        self.rejected("INVALID_ARGUMENT", lambda n, t: n.add_scale(t, "channel", scale=self.normal(7)), self.normal(2, 3, 4, 5))

    def test_select_prelu_identity(self):
        for dtype in FLOATS:
            x, slope = self.normal(2, 3, 5, dtype=dtype), self.normal(1, 3, 1, dtype=dtype)
            self.check(lambda n, t, s: n.add_parametric_relu(t, s), [x, slope], np.where(x >= 0, x, x * slope), dynamic_axis=None)
            self.check(lambda n, t: n.add_parametric_relu(t, slope), [x], np.where(x >= 0, x, x * slope))
        for dtype in ("float32", "float16", "int32", "int64", "bool"):
            a, b = (self.integers(0, 2, *shape, dtype=dtype) for shape in ((2, 3, 1), (1, 3, 5)))
            c = self.integers(0, 2, 2, 1, 5).astype(bool)
            self.check(lambda n, *t: n.add_select(*t), [c, a, b], np.where(c, a, b), dtype, dynamic_axis=2)
            self.check(lambda n, t: n.add_identity(t), [a], a, dtype)

    def test_cast(self):
        import ml_dtypes
        x = (self.normal(3, 7) * 3).astype("float32")
        for dtype in ("float16", "float64", "int8", "int32", "int64", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
            self.check(lambda n, t: n.add_cast(t, dtype), [x], x.astype(dtype), str(dtype))
            back = x.astype(dtype)
            self.check(lambda n, t: n.add_cast(t, "float32"), [back], back.astype("float32"), f"from {dtype}")
        self.check(lambda n, t: n.add_cast(t, "uint8"), [abs(x)], abs(x).astype("uint8"))
        flags = x > 0
        self.check(lambda n, t: n.add_cast(t, "bool"), [np.maximum(x, 0)], flags)
        self.check(lambda n, t: n.add_cast(t, "float16"), [flags], flags.astype("float16"))

    def test_constant(self):
        import ml_dtypes
        for dtype in ("float32", "float16", "float64", "int8", "uint8", "int32", "int64", "bool", ml_dtypes.bfloat16, ml_dtypes.int4,
                      ml_dtypes.uint4):
            for shape in ((), (1,), (3, 5)):
                array = self.integers(0, 2 if dtype == "bool" else 7, *shape).astype(dtype)
                self.check(lambda n: n.add_constant(array), [], array, f"{dtype} {shape}")
        self.check(lambda n: n.add_constant(np.zeros((0, 4), "float32")), [], np.zeros((0, 4), "float32"))
        transposed = self.normal(4, 3).T
        self.check(lambda n, t: n.add_elementwise(t, transposed, "sum"), [np.zeros((3, 4), "float32")], transposed, dynamic_axis=None)
