# SPDX-License-Identifier: Apache-2.0
"""Cases of graphs in float16 and bfloat16, which are computed in float32, and of weights that stay in 16 bits."""
import ml_dtypes
import numpy as np

from .common import T, f32, helper, numpy_helper

KINDS = {np.float32: T.FLOAT, np.float16: T.FLOAT16}


def half(*shape, **limits):
    return f32(*shape, **limits).astype(np.float16)


def graph(own, label, x, nodes, constants=None, out=np.float16, **options):
    tensors = [numpy_helper.from_array(value, name) if value.dtype != ml_dtypes.bfloat16 else
               helper.make_tensor(name, T.BFLOAT16, value.shape, value.view(np.uint16).tobytes(), raw=True) for name, value in (constants or {}).items()]
    made = helper.make_graph(nodes, label, [helper.make_tensor_value_info("x", KINDS[x.dtype.type], [None] * x.ndim)],
                             [helper.make_tensor_value_info("y", KINDS[out], None)], tensors)
    own.model(label, helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), [("x", x)],
              **{"rtol": 2e-3, "atol": 2e-3, **options})


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), output.split(), **attributes)


def networks(own):
    norm = {"scale": half(6), "shift": half(6), "mean": half(6), "var": half(6, low=0.1)}
    graph(own, "half_conv_norm_pool", half(2, 5, 9, 7),
          [node("Conv", "x w b", "c", pads=[1, 1, 1, 1]), node("BatchNormalization", "c scale shift mean var", "n"), node("Relu", "n", "r"),
           node("Add", "r c", "s"), node("Transpose", "s", "t", perm=[0, 2, 3, 1]), node("Concat", "t t", "d", axis=3), node("ReduceMean", "d", "y", axes=[1, 2])],
          {"w": half(6, 5, 3, 3), "b": half(6), **norm})
    graph(own, "half_norm_softmax", half(3, 5, 32),
          [node("LayerNormalization", "x g b", "n"), node("MatMul", "n w", "m"), node("Mul", "m half", "h"), node("Softmax", "h", "s"), node("Sub", "s x", "y")],
          {"g": half(32), "b": half(32), "w": half(32, 32), "half": np.array(0.5, np.float16)})
    graph(own, "half_rows_of_table", half(3, 8),
          [node("Cast", "x", "i", to=T.INT64), node("Gather", "table i", "g"), node("Softmax", "g", "y")], {"table": half(4, 16)})
    graph(own, "half_cast_inside", f32(4, 16),
          [node("Cast", "x", "a", to=T.FLOAT16), node("MatMul", "a w", "m"), node("Cast", "m", "f", to=T.FLOAT), node("Exp", "f", "y")],
          {"w": half(16, 16)}, out=np.float32)
    graph(own, "half_two_outputs_of_split", half(4, 16),
          [node("Softmax", "x", "s"), node("Split", "s", "a b", axis=1), node("Max", "a b x1", "m"), node("Mean", "m a b", "y")], {"x1": half(4, 1)})


def elementwise(own):
    """Several operands are rounded once; rows are broadcast, and longer than a block of converted elements."""
    for op in ("Sum", "Mean", "Max", "Min"):
        graph(own, f"half_{op.lower()}_of_three", half(3, 700), [node(op, "x a b", "y")], {"a": half(1, 700), "b": half(3, 1)})
    for op in ("Add", "Sub", "Mul", "Div"):
        graph(own, f"half_{op.lower()}_rows", half(3, 700), [node(op, "a x", "y")], {"a": half(3, 1, low=0.5)})
    graph(own, "half_pow", half(3, 700, low=0.1), [node("Pow", "x a", "p"), node("Pow", "b p", "y")], {"a": np.array(3, np.float16), "b": half(3, 1, low=0.1)})
    graph(own, "half_clip", half(3, 700), [node("Clip", "x a b", "y")], {"a": np.array(-0.25, np.float16), "b": np.array(0.5, np.float16)})


def weights(own):
    """Matrices of a million elements stay in 16 bits."""
    w = half(1030, 1025, low=-0.1, high=0.1)
    for rows in (1, 5, 200):
        graph(own, f"half_weights_{rows}", half(rows, 1030, low=-0.1, high=0.1),
              [node("MatMul", "x w", "m"), node("Add", "m b", "a"), node("Relu", "a", "y")], {"w": w, "b": half(1025)})
    graph(own, "half_weights_cast", f32(3, 1030, low=-0.1, high=0.1), [node("Cast", "w", "f", to=T.FLOAT), node("MatMul", "x f", "y")], {"w": w},
          out=np.float32, rtol=1e-3)
    graph(own, "half_weights_cast_bf16", f32(3, 1030, low=-0.1, high=0.1), [node("Cast", "w", "f", to=T.FLOAT), node("MatMul", "x f", "y")],
          {"w": w.astype(ml_dtypes.bfloat16)}, out=np.float32, rtol=1e-3)


CASES = [networks, elementwise, weights]
