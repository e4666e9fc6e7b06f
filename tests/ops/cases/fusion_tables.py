# SPDX-License-Identifier: Apache-2.0
"""Cases of look-ups written as matrix products of one-hot rows, Gelu by tanh, scale and shift before a convolution, and of layer
normalization as single nodes."""
import numpy as np

from .common import T, f32, helper, numpy_helper
from .fusion import chain


def whole(own, label, feeds, nodes, constants, opset=17, **options):
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape) for name, value in feeds]
    graph = helper.make_graph(nodes, label, inputs, [helper.make_empty_tensor_value_info("y")],
                              [numpy_helper.from_array(value, name) for name, value in constants.items()])
    own.model(label, helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), feeds, **options)


def one_hot_lookups(own):
    """By OneHot and by Cast(Equal(indices, numbers)): indices out of range give zeros, and only OneHot counts negative ones from the end."""
    w, b = f32(7, 5), f32(5)
    w[3] = 0.0
    for dtype in (np.int32, np.int64):
        index = np.array([[0, 6, 3, 7, -1], [-7, -8, 100, 2, 1]], dtype)
        for label, after in {"bare": [], "bias": [("Add", "b")], "scaled": [("Mul", "two"), ("Sub", "b")], "from": [("-Sub", "b")],
                             "relu": [("Add", "b"), ("Relu", None)], "rows": [("Add", "a")], "twice": [("Twice", None)]}.items():
            last, rest = "p", []
            for i, (op, other) in enumerate(after):
                out = f"t{i}"
                if op == "Twice":
                    rest.append(helper.make_node("Mul", [last, last], [out]))
                else:
                    both = [last, other] if other else [last]
                    rest.append(helper.make_node(op.lstrip("-"), both[::-1] if op[0] == "-" else both, [out]))
                last = out
            rest.append(helper.make_node("Identity", [last], ["y"]))
            constants = {"w": w, "b": b, "two": np.array(2, np.float32), "a": f32(2, 5, 1)}
            product = helper.make_node("MatMul", ["h", "w"], ["p"])
            if dtype == np.int64:  # ONNX Runtime's OneHot does not support int32 indices with float32 values
                whole(own, "one_hot_" + label, [("i", index)], [helper.make_node("OneHot", ["i", "depth", "values"], ["h"]), product, *rest],
                      {**constants, "depth": np.array([7], np.int64), "values": np.array([0, 1], np.float32)})
            whole(own, "equal_" + label, [("i", index[:, :, None])],
                  [helper.make_node("Equal", ["i", "n"], ["e"]), helper.make_node("Cast", ["e"], ["h"], to=T.FLOAT), product, *rest],
                  {**constants, "n": np.arange(7, dtype=dtype)[None, None]})
    tail = [helper.make_node("MatMul", ["h", "w"], ["y"])]
    one_hot = [helper.make_node("OneHot", ["i", "depth", "values"], ["h"])]
    index = np.array([1, -3, 6, 9], np.int64)
    hot = {"depth": np.array(7, np.int64), "values": np.array([0, 1], np.float32)}
    # none of these is a look-up
    whole(own, "other_values", [("i", index)], one_hot + tail, {**hot, "values": np.array([0.5, 2], np.float32), "w": w})
    whole(own, "first_axis", [("i", np.arange(7) % 5)], [helper.make_node("OneHot", ["i", "depth", "values"], ["h"], axis=0), *tail],
          {**hot, "depth": np.array(7, np.int64), "w": w})
    whole(own, "infinite", [("i", index)], one_hot + tail, {**hot, "w": np.where(w == 0, np.float32(np.inf), w)})
    compare = [helper.make_node("Equal", ["n", "i"], ["e"]), helper.make_node("Cast", ["e"], ["h"], to=T.FLOAT), *tail]
    whole(own, "other_numbers", [("i", index[:, None])], compare, {"n": np.array([0, 1, 2, 3, 4, 6, 5]), "w": w})
    whole(own, "side_by_side", [("i", np.array([[0, 1, 5, 3, 3, 5, 6]] * 2))], compare, {"n": np.arange(7)[None], "w": w})
    whole(own, "numbers_first", [("i", index[:, None])], compare, {"n": np.arange(7)[None], "w": w})


def gelu_by_tanh(own):
    c = {"c": np.float32(0.7978845608), "k": np.float32(0.044715), "one": np.float32(1), "half": np.float32(0.5), "three": np.float32(3)}
    c = {name: np.array(value) for name, value in c.items()}
    n = helper.make_node
    cubes = {"powers": [n("Pow", ["h", "three"], ["q"]), n("Mul", ["q", "k"], ["m"])],
             "products": [n("Mul", ["k", "h"], ["q"]), n("Mul", ["h", "q"], ["r"]), n("Mul", ["h", "r"], ["m"])],
             "squares": [n("Mul", ["h", "h"], ["q"]), n("Mul", ["k", "h"], ["r"]), n("Mul", ["r", "q"], ["m"])],
             "fourth": [n("Mul", ["h", "h"], ["q"]), n("Mul", ["q", "q"], ["r"]), n("Mul", ["r", "k"], ["m"])]}
    ends = {"x_first": [n("Mul", ["h", "o"], ["u"]), n("Mul", ["u", "half"], ["y"])], "half_first": [n("Mul", ["half", "o"], ["u"]), n("Mul", ["h", "u"], ["y"])],
            "half_x": [n("Mul", ["h", "half"], ["u"]), n("Mul", ["u", "o"], ["y"])]}
    for first, cube in cubes.items():
        for last, end in ends.items():
            middle = [n("Add", ["h", "m"], ["s"]), n("Mul", ["s", "c"], ["a"]), n("Tanh", ["a"], ["t"]), n("Add", ["one", "t"], ["o"])]
            chain(own, f"gelu_{first}_{last}", f32(3, 41, low=-5, high=5), [n("Neg", ["x"], ["h"]), *cube, *middle, *end], c)
    # the input is a product, which must not be matched as part of the cube
    chain(own, "gelu_of_product", f32(3, 41, low=-2, high=2), [n("Mul", ["x", "three"], ["h"]), *cubes["products"], *middle, *ends["x_first"]], c)


def scale_before_convolution(own):
    x, n = f32(2, 6, 9, 7), helper.make_node
    for pads in (0, 1):
        for group, shape in ((1, (4, 6, 3, 3)), (2, (4, 3, 3, 3)), (6, (6, 1, 3, 3))):
            conv = n("Conv", ["b", "w"], ["c"], pads=[pads] * 4, group=group)
            for label, scale, shift in (("one", f32(1), f32(1)), ("scalar", np.array(f32(1)[0]), np.array(f32(1)[0])), ("channels", f32(6, 1, 1), f32(1, 6, 1, 1)),
                                        ("none", np.zeros(1, np.float32), f32(1)), ("last", f32(7), f32(7))):
                both = [n("Mul", ["x", "s"], ["a"]), n("Add", ["t", "a"], ["b"]), conv]
                constants = {"w": f32(*shape), "s": scale, "t": shift, "k": f32(shape[0])}
                chain(own, f"scale_{label}_{pads}_{group}", x, [*both, n("Relu", ["c"], ["y"])], constants, atol=1e-4)
            chain(own, "scaled_again", x, [*both, n("Mul", ["c", "l"], ["m"]), n("HardSwish", ["m"], ["y"])],
                  {**constants, "s": f32(1), "t": f32(1), "l": f32(1)}, atol=1e-4)
    conv = n("Conv", ["b", "w", "k"], ["c"], auto_pad="SAME_UPPER")
    chain(own, "scale_same", x, [*both[:2], conv, n("Relu", ["c"], ["y"])], {**constants, "w": f32(4, 6, 3, 3), "k": f32(4), "s": f32(1), "t": f32(1)}, atol=1e-4)
    shared = [n("Mul", ["x", "s"], ["b"]), n("Conv", ["b", "w"], ["c"]), n("Conv", ["b", "w"], ["d"], pads=[0, 0, 0, 0]), n("Sub", ["c", "d"], ["e"]),
              n("Add", ["e", "c"], ["y"])]
    chain(own, "scale_shared", x, shared, {"w": f32(4, 6, 3, 3), "s": f32(1)}, atol=1e-4)
    weights = [n("Mul", ["x", "s"], ["b"]), n("Conv", ["b", "w"], ["c"]), n("Conv", ["x", "w"], ["d"]), n("Add", ["c", "d"], ["y"])]
    chain(own, "weights_shared", x, weights, {"w": f32(4, 6, 3, 3), "s": f32(1)}, atol=1e-4)


def layer_normalization(own):
    """Layer normalization as single nodes, and chains that only resemble it."""
    n, wide = helper.make_node, f32(2, 7, 40, low=-3, high=3)
    constants = {"two": np.array(2, np.float32), "three": np.array(3, np.float32), "e": np.array(1e-5, np.float32), "g": f32(40), "b": f32(40)}
    plain = {"axes": [-1]}

    def parts(square=("Pow", ["d", "two"]), first=plain, second=plain, ends=("g", "b")):
        return [n("ReduceMean", ["x"], ["m"], **first), n("Sub", ["x", "m"], ["d"]), n(square[0], square[1], ["q"]), n("ReduceMean", ["q"], ["v"], **second),
                n("Add", ["v", "e"], ["w"]), n("Sqrt", ["w"], ["s"]), n("Div", ["d", "s"], ["o"]), n("Mul", [ends[0], "o"], ["p"]), n("Add", ["p", ends[1]], ["y"])]
    chain(own, "norm", wide, parts(), constants, atol=1e-4)
    chain(own, "norm_product", wide, parts(("Mul", ["d", "d"]), {"axes": [2]}), constants, atol=1e-4)
    chain(own, "norm_cube", np.abs(wide) + 3, parts(("Pow", ["x", "three"])), constants, atol=1e-4)
    chain(own, "norm_other_axis", wide, parts(first={"axes": [1]}), constants, atol=1e-4)
    chain(own, "norm_both_axes", wide, parts(first={"axes": [1, 2]}, second={"axes": [1, 2]}), constants, atol=1e-4)
    chain(own, "norm_rows", wide, parts(ends=("r", "b")), {**constants, "r": f32(7, 1)}, atol=1e-4)
    chain(own, "norm_no_shift", wide, parts(ends=("g", "r")), {**constants, "r": f32(2, 7, 1)}, atol=1e-4)
    chain(own, "norm_residual", wide, [n("Identity", ["x"], ["z"]), *parts()[:-1], n("Add", ["p", "b"], ["l"]), n("Add", ["l", "z"], ["y"])], constants, atol=1e-4)


def multiplication_by_one(own):
    n, c = helper.make_node, {"one": np.ones(1, np.float32), "tall": np.ones((1, 1, 1), np.float32)}
    chain(own, "times_one", f32(3, 5), [n("Mul", ["one", "x"], ["a"]), n("Div", ["a", "one"], ["b"]), n("Sigmoid", ["b"], ["s"]), n("Mul", ["b", "s"], ["y"])], c)
    chain(own, "times_one_taller", f32(3, 5), [n("Mul", ["tall", "x"], ["a"]), n("Div", ["one", "a"], ["y"])], c)
    chain(own, "only_times_one", f32(3, 5), [n("Mul", ["one", "x"], ["y"])], c)


CASES = [one_hot_lookups, gelu_by_tanh, scale_before_convolution, layer_normalization, multiplication_by_one]
