# SPDX-License-Identifier: Apache-2.0
"""Cases of Loop, If and Scan."""
import numpy as np
import onnx

from .common import T, f32, helper, i64, numpy_helper, rng


def value(name, *shape):
    return helper.make_tensor_value_info(name, T.FLOAT, shape)


def scan_model(opset, **attrs):
    """Returns a Scan of two states, two scanned inputs and two stacked outputs, one of which has one axis less."""
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "a"], ["s1"]),
         helper.make_node("Mul", ["a", "b"], ["ab"]),
         helper.make_node("Add", ["ab", "s1"], ["o"]),
         helper.make_node("ReduceSum", ["o"], ["r"], keepdims=0, axes=[0]),
         helper.make_node("Sub", ["n", "outer"], ["n1"])],
        "body", [value("s", 3, 2), value("n"), value("a", 3, 2), value("b", 3, 2)],
        [value("s1", 3, 2), value("n1"), value("o", 3, 2), value("r", 2)])
    node = helper.make_node("Scan", ["x0", "x1", "x2", "x3"], ["y0", "y1", "y2", "y3"], body=body, num_scan_inputs=2, **attrs)
    return node


def scan(own):
    for attrs, a, b in [
            ({}, (4, 3, 2), (4, 3, 2)),
            ({"scan_input_axes": [1, -1], "scan_input_directions": [1, 0]}, (3, 4, 2), (3, 2, 4)),
            ({"scan_input_axes": [2, 0], "scan_output_axes": [1, -1], "scan_output_directions": [0, 1]}, (3, 2, 4), (4, 3, 2)),
            ({"scan_output_axes": [-1, 1], "scan_output_directions": [1, 1], "scan_input_directions": [1, 1]}, (5, 3, 2), (5, 3, 2))]:
        feeds = [("x0", f32(3, 2)), ("x1", f32()), ("x2", f32(*a)), ("x3", f32(*b)), ("outer", f32())]
        graph = helper.make_graph(
            [scan_model(11, **attrs)], "scan",
            [helper.make_tensor_value_info(n, T.FLOAT, v.shape) for n, v in feeds],
            [helper.make_empty_tensor_value_info(f"y{i}") for i in range(4)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
        own.model("", onnx.shape_inference.infer_shapes(model), feeds, op="Scan")


def scan_8(own):
    """Scan of opset 8: each batch has its length; the outputs are zero beyond it."""
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "a"], ["s1"]), helper.make_node("Identity", ["s1"], ["o"])],
        "body", [value("s", 2), value("a", 2)], [value("s1", 2), value("o", 2)])
    for directions in ([0], [1]):
        node = helper.make_node("Scan", ["lengths", "x0", "x1"], ["y0", "y1"], body=body, num_scan_inputs=1, directions=directions)
        feeds = [("lengths", i64(3, 1)), ("x0", f32(2, 2)), ("x1", f32(2, 3, 2))]
        graph = helper.make_graph(
            [node], "scan", [helper.make_tensor_value_info("lengths", T.INT64, (2,)), value("x0", 2, 2), value("x1", 2, 3, 2)],
            [value("y0", 2, 2), value("y1", 2, 3, 2)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=4)
        own.model("version_8", model, feeds, op="Scan")


BODY_INPUTS = [helper.make_tensor_value_info("i", T.INT64, ()), helper.make_tensor_value_info("go", T.BOOL, ())]


def tensor(name, kind=T.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def graph_model(own, label, nodes, inputs, outputs, feeds, constants=(), reference="ort", opset=17, op="Loop"):
    graph = helper.make_graph(nodes, label, inputs, outputs, [numpy_helper.from_array(np.asarray(v), n) for n, v in constants])
    own.model(label, helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), feeds, reference, op=op)


def loop(inputs, outputs, nodes, carried, results, go=None):
    """Returns a Loop of these nodes. carried: pairs of the names of a carried input and its output, results: names of the stacked outputs."""
    body = helper.make_graph(
        nodes + ([] if go else [helper.make_node("Identity", ["go"], ["go1"])]), "body", BODY_INPUTS + [tensor(a) for a, _ in carried],
        [tensor(go or "go1", T.BOOL)] + [tensor(b) for _, b in carried] + [tensor(r) for r in results])
    return helper.make_node("Loop", inputs, outputs, name="loop", body=body)


def branches(condition, output, then, other, name=""):
    """Returns an If; the last node of each branch computes the result."""
    made = [helper.make_graph(nodes, name, [], [tensor(nodes[-1].output[0])]) for name, nodes in (("yes", then), ("no", other))]
    return helper.make_node("If", [condition], [output], name=name, then_branch=made[0], else_branch=made[1])


def nested_if_and_loop(own):
    """An If in a Loop in an If, which read weights and values of all outer graphs; carried values that trade places."""
    choose = [helper.make_node("Mod", ["i", "two"], ["odd"]), helper.make_node("Equal", ["odd", "zero"], ["even"]),
              branches("even", "next",
                       [helper.make_node("MatMul", ["a", "w"], ["m"]), helper.make_node("Relu", ["m"], ["t"])],
                       [helper.make_node("Sub", ["a", "outer"], ["d"]), helper.make_node("Mul", ["d", "scale"], ["e"])])]
    inner = loop(["count", "", "x", "y"], ["p", "q", "all"], choose + [helper.make_node("Identity", ["b"], ["b1"])],
                 [("a", "b1"), ("b", "next")], ["odd_f"])
    inner.attribute[0].g.node.append(helper.make_node("Cast", ["odd"], ["odd_f"], to=T.FLOAT))
    then = helper.make_graph([inner, helper.make_node("Add", ["p", "q"], ["s"])], "then", [], [tensor("s"), tensor("all")])
    other = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Identity", ["none"], ["none1"])], "else", [], [tensor("n"), tensor("none1")])
    nodes = [helper.make_node("Mul", ["x", "y"], ["outer"]),
             helper.make_node("If", ["which"], ["z", "odds"], then_branch=then, else_branch=other)]
    constants = [("w", f32(3, 3)), ("scale", f32(3)), ("two", np.int64(2)), ("zero", np.int64(0)), ("none", f32(0))]
    for which in (True, False):
        for count in (0, 1, 2, 5):
            graph_model(own, "nested", nodes,
                        [tensor("x", shape=(4, 3)), tensor("y", shape=(4, 3)), tensor("which", T.BOOL, ()), tensor("count", T.INT64, ())],
                        [tensor("z"), tensor("odds")],
                        [("x", f32(4, 3)), ("y", f32(4, 3)), ("which", np.array(which)), ("count", np.array(count, np.int64))], constants)


def loop_shapes(own):
    x, more = f32(2, 3), f32(1, 3)
    sizes = [tensor("x", shape=("n", 3)), tensor("count", T.INT64, ())]
    for count in (0, 1, 3, 20):
        feeds = [("x", x), ("count", np.array(count, np.int64))]
        # the carried value grows: another shape in each iteration
        graph_model(own, "grows", [loop(["count", "", "x"], ["y"], [helper.make_node("Concat", ["a", "more"], ["a1"], axis=0)], [("a", "a1")], [])],
                    sizes, [tensor("y")], feeds, [("more", more)])
        # the shapes stay the same; stacked results, a value that is passed through, a constant
        nodes = [helper.make_node("Sin", ["a"], ["s"]), helper.make_node("Add", ["s", "keep"], ["a1"]),
                 helper.make_node("ReduceSum", ["a1"], ["r"], keepdims=0), helper.make_node("Shape", ["a"], ["n"]),
                 helper.make_node("Identity", ["keep"], ["keep1"])]
        stacked = loop(["count", "", "x", "x"], ["y", "k", "rows", "sums", "shapes"], nodes, [("a", "a1"), ("keep", "keep1")], ["s", "r", "n"])
        body = stacked.attribute[0].g
        for output, kind, shape in zip(body.output[3:], (T.FLOAT, T.FLOAT, T.INT64), ((2, 3), (), (2,))):
            output.CopyFrom(tensor(output.name, kind, shape))
        outputs = [tensor("y"), tensor("k"), tensor("rows"), tensor("sums"), tensor("shapes", T.INT64)]
        graph_model(own, "stacked", [stacked], sizes, outputs, feeds)
        constant = [("count", np.array(count, np.int64))]
        graph_model(own, "planned", [stacked], sizes[:1], outputs, feeds[:1], constant)
        # the result outlives the memory of the value it comes from: the loop must not alias it
        lent = [helper.make_node("Abs", ["x"], ["h"]), stacked, helper.make_node("Exp", ["h"], ["e"]), helper.make_node("Neg", ["e"], ["f"]),
                helper.make_node("Add", ["y", "f"], ["out"])]
        stacked.input[2] = "h"
        graph_model(own, "lent", lent, sizes, [tensor("out"), tensor("k")], feeds)
        graph_model(own, "lent_planned", lent, sizes[:1], [tensor("out"), tensor("k")], feeds[:1], constant)
        stacked.input[2] = "x"


NARROW = {"int4": T.INT4, "uint4": T.UINT4, "int2": T.INT2, "uint2": T.UINT2, "float4_e2m1fn": T.FLOAT4E2M1}


def narrow(name, *shape):
    """Returns values of a type narrower than a byte."""
    whole = rng.integers(0, 4, shape) - (0 if name[0] == "u" else 2)
    return whole.astype(np.float32).astype(np.dtype(name))


def narrow_model(own, label, node, feeds, outputs, results):
    """Adds a model whose inputs and outputs are those of the node."""
    graph = helper.make_graph(
        [node], label, [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feeds],
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in zip(outputs, results)])
    own.model(label, helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13), feeds, results, op="Scan")


def scan_packed(own):
    """Slices that begin and end within a byte: along every axis, in both directions, of one element, and of whole bytes."""
    for name, kind in NARROW.items():
        for shape in ((3, 5, 3), (4, 2, 4), (5, 1, 1)):
            for axis, out_axis, back, out_back in ((0, 0, 0, 0), (1, -1, 1, 0), (2, 1, 0, 1), (-1, 0, 1, 1)):
                x, state = narrow(name, *shape), narrow(name, 3)
                steps, rest = x.shape[axis], tuple(np.delete(shape, axis).tolist())
                body = helper.make_graph(
                    [helper.make_node("Identity", ["s"], ["s1"]), helper.make_node("Identity", ["a"], ["last"]),
                     helper.make_node("Transpose", ["a"], ["o"], perm=[1, 0]), helper.make_node("Identity", ["s"], ["p"])],
                    "body", [tensor("s", kind, (3,)), tensor("before", kind, rest), tensor("a", kind, rest)],
                    [tensor("s1", kind, (3,)), tensor("last", kind, rest), tensor("o", kind, rest[::-1]), tensor("p", kind, (3,))])
                node = helper.make_node("Scan", ["s0", "b0", "x"], ["s1", "last", "o", "p"], body=body, num_scan_inputs=1, scan_input_axes=[axis],
                                        scan_input_directions=[back], scan_output_axes=[out_axis, 0], scan_output_directions=[out_back, 0])
                slices = [np.take(x, t, axis) for t in range(steps)][::-1 if back else 1]
                stacked = [s.T for s in slices][::-1 if out_back else 1]
                narrow_model(own, name, node, [("s0", state), ("b0", narrow(name, *rest)), ("x", x)], ["s1", "last", "o", "p"],
                             [state, np.ascontiguousarray(slices[-1]), np.ascontiguousarray(np.stack(stacked, out_axis)), np.stack([state] * steps)])


def loop_packed(own):
    """Stacked results that begin within a byte: of a loop with a known trip count, and of one that stops on a condition."""
    for name, kind in NARROW.items():
        for shape in ((3,), (), (2, 4), (5, 3)):
            for count in (0, 5):
                x = narrow(name, *shape)
                for planned in (True, False):
                    nodes = [helper.make_node("Identity", ["a"], ["a1"]), helper.make_node("Transpose", ["a"], ["o"]),
                             helper.make_node("Add", ["i", "one"], ["j"]), helper.make_node("Less", ["j", "stop"], ["less"]),
                             helper.make_node("Identity", ["go"], ["go1"])]
                    nodes[2:] = nodes[4:] if planned else nodes[2:4]
                    body = helper.make_graph(nodes, "body", BODY_INPUTS + [tensor("a", kind, shape)],
                                             [tensor("go1" if planned else "less", T.BOOL, ()), tensor("a1", kind, shape),
                                              tensor("o", kind, shape[::-1])], [] if planned else [numpy_helper.from_array(np.array(1), "one")])
                    feeds = [("x", x)] + [("go", np.array(count > 0)), ("stop", np.array(count))] * (not planned)
                    node = helper.make_node("Loop", ["trips", "", "x"] if planned else ["", "go", "x"], ["y", "all"], body=body)
                    nodes = [helper.make_node("Constant", [], ["trips"], value_int=count)] * planned + [node]
                    results = [x, np.stack([x.T] * count) if count else np.zeros((0,) + shape[::-1], x.dtype)]
                    graph = helper.make_graph(
                        nodes, "narrow_loop", [tensor(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feeds],
                        [tensor("y", kind, shape), tensor("all", kind, results[1].shape)])
                    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
                    own.model(name, model, feeds, results, op="Loop")


def loop_ends_early(own):
    """A Loop that ends when the sum passes a limit, and one that never begins."""
    nodes = [helper.make_node("Add", ["a", "x"], ["a1"]), helper.make_node("ReduceSum", ["a1"], ["r"], keepdims=0),
             helper.make_node("Less", ["r", "limit"], ["less"])]
    model = [helper.make_node("Less", ["start", "limit"], ["go0"]), loop(["", "go0", "x"], ["y", "sums"], nodes, [("a", "a1")], ["r"], go="less")]
    model[1].attribute[0].g.output[2].CopyFrom(tensor("r", shape=()))
    x = np.abs(f32(2, 2))
    for start, limit in ((0, 40), (0, 1), (5, 1)):
        graph_model(own, "early", model, [tensor("x", shape=(2, 2)), tensor("start", shape=()), tensor("limit", shape=())],
                    [tensor("y"), tensor("sums")], [("x", x), ("start", np.array(start, np.float32)), ("limit", np.array(limit, np.float32))])


def if_(own):
    """Conditions that depend on constants, shapes or small integers, and branches of different shapes."""
    for x in (f32(2, 3), f32(4, 3)):
        for rate in (8, 16):
            nodes = [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Gather", ["shape", "zero"], ["n"]),
                     helper.make_node("Equal", ["n", "two"], ["small"]), helper.make_node("Equal", ["rate", "sixteen"], ["fast"]),
                     branches("small", "a", [helper.make_node("Concat", ["x", "x"], ["t"], axis=0)],
                              [branches("fast", "e", [helper.make_node("Slice", ["x", "one", "many"], ["tt"])],
                                        [helper.make_node("Neg", ["x"], ["ee"])])]),
                     branches("fast", "b", [helper.make_node("MatMul", ["a", "w"], ["t2"])], [helper.make_node("ReduceSum", ["a"], ["e2"])]),
                     branches("yes", "c", [helper.make_node("Identity", ["b"], ["t3"])], [helper.make_node("Neg", ["b"], ["e3"])]),
                     branches("fast", "d", [helper.make_node("Add", ["a", "a"], ["t4"])], [helper.make_node("Mul", ["a", "a"], ["e4"])])]
            constants = [("zero", np.int64(0)), ("two", np.int64(2)), ("sixteen", np.int64(16)), ("one", i64(1)), ("many", i64(100)),
                         ("w", f32(3, 2)), ("yes", np.array(True))]
            graph_model(own, "", nodes, [tensor("x", shape=("n", 3)), tensor("rate", T.INT64, ())],
                        [tensor("a"), tensor("b"), tensor("c"), tensor("d")], [("x", x), ("rate", np.array(rate, np.int64))], constants,
                        op="If")


def loop_and_sequences(own):
    """A sequence to which a branch in a Loop appends, in more iterations than schedules are cached."""
    sequence = helper.make_tensor_sequence_value_info
    grow = helper.make_graph([helper.make_node("SequenceInsert", ["s", "m"], ["t"])], "yes", [], [sequence("t", T.FLOAT, None)])
    keep = helper.make_graph([helper.make_node("Identity", ["s"], ["e"])], "no", [], [sequence("e", T.FLOAT, None)])
    body = helper.make_graph(
        [helper.make_node("Cast", ["i"], ["f"], to=T.FLOAT), helper.make_node("Mul", ["x", "f"], ["m"]),
         helper.make_node("Mod", ["i", "three"], ["r"]), helper.make_node("Cast", ["r"], ["b"], to=T.BOOL),
         helper.make_node("If", ["b"], ["s1"], then_branch=grow, else_branch=keep), helper.make_node("Identity", ["go"], ["go1"])],
        "body", BODY_INPUTS + [sequence("s", T.FLOAT, None)], [tensor("go1", T.BOOL), sequence("s1", T.FLOAT, None)])
    nodes = [helper.make_node("SequenceEmpty", [], ["none"]), helper.make_node("Loop", ["count", "", "none"], ["all"], body=body),
             helper.make_node("ConcatFromSequence", ["all"], ["y"], axis=0)]
    x, count = f32(2, 3), 70
    expected = np.concatenate([x * np.float32(i) for i in range(count) if i % 3])
    graph_model(own, "list_branch", nodes, [tensor("x", shape=(2, 3)), tensor("count", T.INT64, ())], [tensor("y")],
                [("x", x), ("count", np.array(count, np.int64))], [("three", np.int64(3))], reference=[expected])


def loop_error_location(own):
    """A message names the node and the graphs around it."""
    bad = loop(["count", "", "x"], ["y"], [branches("go", "a1", [helper.make_node("Concat", ["a", "other"], ["t"], name="joined", axis=1)],
                                                     [helper.make_node("Neg", ["a"], ["e"])], "choice")], [("a", "a1")], [])
    for why in ("node 'joined' (Concat)", "node 'choice' (If) of graph 'body'", "node 'loop' (Loop) of model"):
        graph_model(own, "message", [bad], [tensor("x", shape=(2, 3)), tensor("other", shape=("m", "k")), tensor("count", T.INT64, ())],
                    [tensor("y")], [("x", f32(2, 3)), ("other", f32(3, 3)), ("count", np.array(2, np.int64))], reference=[("!refused", why)])


def scan_types(own):
    """Scan has the types of its body."""
    for number, kind in ((T.DOUBLE, np.float64), (T.INT64, np.int64)):
        def tensor(name, shape, number=number):
            return helper.make_tensor_value_info(name, number, shape)

        x = f32(5, 3, low=-9, high=9).astype(kind)
        body = helper.make_graph([helper.make_node("Add", ["sum", "row"], ["next"]), helper.make_node("Neg", ["next"], ["shown"])], "body",
                                 [tensor("sum", (3,)), tensor("row", (3,))], [tensor("next", (3,)), tensor("shown", (3,))])
        graph = helper.make_graph([helper.make_node("Scan", ["start", "x"], ["last", "rows"], body=body, num_scan_inputs=1)], "scan",
                                  [tensor("start", (3,)), tensor("x", (5, 3))], [tensor("last", (3,)), tensor("rows", (5, 3))])
        sums = x[0] + np.cumsum(x, 0)
        own.model(np.dtype(kind).name, helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
                  [("start", x[0]), ("x", x)], [sums[-1], -sums], 1e-12, 1e-12, op="Scan")


def counting_loop(own):
    """Found by fuzzing: a Loop that only counts, without carried values."""
    body = helper.make_graph([helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Neg", ["x"], ["n"])], "body",
                             [tensor("i", T.INT64, []), tensor("c", T.BOOL, [])], [tensor("d", T.BOOL, []), tensor("n", T.FLOAT, [2])])
    x = f32(2)
    graph_model(own, "counts", [helper.make_node("Loop", ["three", ""], ["y"], body=body)], [tensor("x", shape=[None])], [tensor("y")],
                [("x", x)], [("three", np.array(3))], reference=[np.stack([-x] * 3)])



CASES = [
    scan, scan_8, nested_if_and_loop, loop_shapes, scan_packed, loop_packed, loop_ends_early, if_, loop_and_sequences,
    loop_error_location, scan_types, counting_loop]
