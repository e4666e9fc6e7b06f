# SPDX-License-Identifier: Apache-2.0
"""Cases of Gradient, of each operator and of small networks, against central differences that ONNX's reference computes in float64."""
import numpy as np

from .common import T, helper, i64, numpy_helper, rng, run_onnx

TRAINING = "ai.onnx.preview.training"
VERSIONS = [helper.make_opsetid("", 18), helper.make_opsetid(TRAINING, 1)]


def model_of(nodes, feeds, constants, outputs, opset=18):
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()],
        [helper.make_tensor_value_info(n, T.DOUBLE, None) for n in outputs],
        [numpy_helper.from_array(a, n) for n, a in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), VERSIONS[1]], ir_version=8)


def differences(nodes, feeds, constants, xs, y, opset, step=1e-5):
    """Returns d(sum of y)/dx for each of xs."""
    forward = model_of(nodes, feeds, constants, [y], opset)
    grads = []
    for name in xs:
        g = np.zeros(feeds[name].shape)
        for place in np.ndindex(g.shape):
            sides = []
            for sign in (1, -1):
                moved = feeds[name].copy()
                moved[place] += sign * step
                sides.append(run_onnx(forward, {**feeds, name: moved})[0].sum())
            g[place] = (sides[0] - sides[1]) / (2 * step)
        grads.append(g)
    return grads


def case(own, label, nodes, feeds, xs, y="y", constants=None, opset=18, slope=None):
    """Adds a case in which each element of `y` has another weight. `slope` gives the derivative where the reference is too inaccurate."""
    constants = dict(constants or {})
    feeds = {n: np.asarray(a) for n, a in feeds.items()}
    shape = run_onnx(model_of(nodes, feeds, constants, [y], opset), feeds)[0].shape
    constants["weights"] = rng.uniform(0.5, 2, shape)
    nodes = [*nodes, helper.make_node("Mul", [y, "weights"], ["weighted"])]
    wanted = [slope(feeds["x"]) * constants["weights"]] if slope else differences(nodes, feeds, constants, xs, "weighted", opset)
    outs = [f"d_{x}" for x in xs]
    nodes.append(helper.make_node("Gradient", xs, outs, domain=TRAINING, xs=xs, y="weighted"))
    own.model(label, model_of(nodes, feeds, constants, outs, opset), list(feeds.items()), wanted, rtol=1e-5, atol=1e-6)


def one(own, op, feeds, xs=None, opset=18, constants=None, names=None, **attrs):
    names = names or [*feeds, *(constants or {})]
    case(own, op, [helper.make_node(op, names, ["y"], **attrs)], feeds, xs or list(feeds), constants=constants, opset=opset)


def real(*shape, low=-2.0, high=2.0):
    return rng.uniform(low, high, shape)


def unary(own):
    for op in ("Abs", "Cos", "Exp", "Identity", "LeakyRelu", "Neg", "Relu", "Sigmoid", "Sin", "Softplus", "Tanh"):
        one(own, op, {"x": real(2, 5)})
    for op in ("Log", "Reciprocal", "Sqrt"):
        one(own, op, {"x": real(2, 5, low=0.5)})
    for op in ("Ceil", "Floor", "Round", "Sign"):
        one(own, op, {"x": real(4)})
    for axis in (-1, 0):
        one(own, "Softmax", {"x": real(3, 4)}, axis=axis)
        one(own, "LogSoftmax", {"x": real(3, 4)}, axis=axis)
    case(own, "erf", [helper.make_node("Erf", ["x"], ["y"])], {"x": real(2, 5)}, ["x"], slope=lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x))
    case(own, "cast", [helper.make_node("Cast", ["x"], ["y"], to=T.DOUBLE)], {"x": real(3)}, ["x"])


def several(own):
    for op in ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum"):
        one(own, op, {"a": real(3, 1, 4, low=0.5), "b": real(5, 1, low=0.5)})
    one(own, "Mul", {"a": real(3, 4), "b": real()})
    one(own, "Mean", {"a": real(3, 4), "b": real(4), "c": real(1, 4)})
    one(own, "Max", {"a": real(3, 4), "b": real(4), "c": real(1, 4)})
    one(own, "Pow", {"a": real(6, low=0.5)}, constants={"p": np.array(3, np.int64)})
    one(own, "Where", {"a": real(3, 4), "b": real(4)}, names=["c", "a", "b"], constants={"c": rng.integers(0, 2, (3, 4)).astype(bool)})
    case(own, "square", [helper.make_node("Mul", ["x", "x"], ["y"])], {"x": real(3)}, ["x"])


def products(own):
    for left, right in (((3, 4), (4, 2)), ((2, 3, 4), (4, 5)), ((4,), (4, 3)), ((2, 3, 4), (4,)), ((4,), (4,)), ((4,), (2, 4, 3)),
                        ((2, 1, 3, 4), (5, 4, 2))):
        one(own, "MatMul", {"a": real(*left), "b": real(*right)})
    for transposed in range(4):
        a, b = (real(4, 3) if transposed & 1 else real(3, 4)), (real(5, 4) if transposed & 2 else real(4, 5))
        one(own, "Gemm", {"a": a, "b": b, "c": real(5)}, transA=transposed & 1, transB=transposed >> 1, alpha=0.5, beta=1.5)


def movement(own):
    one(own, "Reshape", {"x": real(2, 6)}, constants={"s": i64(3, 4)})
    one(own, "Flatten", {"x": real(2, 3, 2)}, axis=2)
    one(own, "Squeeze", {"x": real(2, 1, 3)}, constants={"s": i64(1)})
    one(own, "Unsqueeze", {"x": real(2, 3)}, constants={"s": i64(0, 3)})
    one(own, "Expand", {"x": real(3, 1)}, constants={"s": i64(2, 3, 4)})
    one(own, "Transpose", {"x": real(2, 3, 4)}, perm=[1, 2, 0])
    one(own, "Transpose", {"x": real(2, 3)})
    one(own, "Concat", {"a": real(2, 3), "b": real(2, 1), "c": real(2, 4)}, axis=-1)
    one(own, "Concat", {"a": real(2, 3), "b": real(1, 3)}, axis=0)


def reductions(own):
    for op in ("ReduceSum", "ReduceMean", "ReduceSumSquare"):
        one(own, op, {"x": real(2, 3, 4)}, keepdims=0, constants={"s": i64(0, -1)})
        one(own, op, {"x": real(2, 3)})
    one(own, "ReduceMean", {"x": real(2, 3, 4)}, opset=13, axes=[1], keepdims=0)


NETWORK = [helper.make_node("Gemm", ["x", "w", "b"], ["h"]), helper.make_node("Tanh", ["h"], ["t"]),
           helper.make_node("MatMul", ["t", "v"], ["o"]), helper.make_node("LogSoftmax", ["o"], ["p"], axis=-1),
           helper.make_node("Mul", ["p", "target"], ["l"]), helper.make_node("ReduceSum", ["l"], ["s"], keepdims=0),
           helper.make_node("Neg", ["s"], ["y"])]


def networks(own):
    feeds = {"x": real(3, 4), "w": real(4, 5), "b": real(5), "v": real(5, 2), "target": np.eye(2)[[0, 1, 1]]}
    case(own, "network", NETWORK, feeds, ["w", "b", "v"])
    wanted = differences(NETWORK, feeds, {}, ["w", "x"], "y", 18)
    single = {n: a.astype(np.float32) for n, a in feeds.items()}
    nodes = [*NETWORK, helper.make_node("Gradient", ["w", "x"], ["d_w", "d_x"], domain=TRAINING, xs=["w", "x"], y="y")]
    model = model_of(nodes, single, {}, ["d_w", "d_x"])
    for out in model.graph.output:
        out.type.tensor_type.elem_type = T.FLOAT
    own.model("network_f32", model, list(single.items()), [g.astype(np.float32) for g in wanted], rtol=1e-3, atol=1e-4)


def forms(own):
    x, z, other, more = real(3), real(3), real(3), real(3)
    nodes = [helper.make_node("Mul", ["x", "z"], ["m"]), helper.make_node("Mul", ["m", "x"], ["y"])]  # x² z
    whole = {"x": x, "z": z, "other": other, "more": more}
    at_others = [*nodes, helper.make_node("Gradient", ["other", "more"], ["d"], domain=TRAINING, xs=["x"], zs=["z"], y="y")]
    own.model("elsewhere", model_of(at_others, whole, {}, ["y", "d"]), list(whole.items()), [x * x * z, 2 * other * more])
    second = [*nodes, helper.make_node("Gradient", ["x", "z"], ["d"], domain=TRAINING, xs=["x"], zs=["z"], y="y"),
              helper.make_node("Gradient", ["x", "z"], ["dd", "dz"], domain=TRAINING, xs=["x", "z"], y="d")]
    both = {"x": x, "z": z}
    own.model("of_gradient", model_of(second, both, {}, ["d", "dd", "dz"]), list(both.items()), [2 * x * z, 2 * z, 2 * x])
    apart = [*nodes, helper.make_node("Gradient", ["other", "m"], ["d", "dm"], domain=TRAINING, xs=["other", "m"], y="y")]
    own.model("of_nothing", model_of(apart, {n: whole[n] for n in ("x", "z", "other")}, {}, ["d", "dm"]),
              [(n, whole[n]) for n in ("x", "z", "other")], [np.zeros(3), x])
    for y, op, why in (("nowhere", "Mul", "y 'nowhere' is not a value of the graph"), ("y", "Mod", "no derivative is known for output 0 of operator 'Mod'")):
        wrong = [helper.make_node(op, ["x", "z"], ["y"], **({"fmod": 1} if op == "Mod" else {})),
                 helper.make_node("Gradient", ["x"], ["d"], domain=TRAINING, xs=["x"], y=y)]
        own.model("message", model_of(wrong, both, {}, ["d"]), list(both.items()), [("!refused", why)])


CASES = [unary, several, products, movement, reductions, networks, forms]
