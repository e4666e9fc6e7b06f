# SPDX-License-Identifier: Apache-2.0
"""Cases of sequences, optionals and maps: expected values are those of ONNX Runtime, or as the specification defines them."""
import numpy as np

from .common import T, f32, helper, i64, numpy_helper


def tensor(name, kind=T.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def sequence(name, kind=T.FLOAT):
    return helper.make_tensor_sequence_value_info(name, kind, None)


def optional(name):
    return helper.make_value_info(name, helper.make_optional_type_proto(helper.make_tensor_type_proto(T.FLOAT, None)))


def model(own, label, nodes, inputs, outputs, feeds, reference="ort", opset=17, constants=(), domains=(), op=None):
    graph = helper.make_graph(nodes, label, inputs, outputs, [numpy_helper.from_array(v, n) for n, v in constants])
    imports = [helper.make_opsetid("", opset), *[helper.make_opsetid(d, 1) for d in domains]]
    own.model(label, helper.make_model(graph, opset_imports=imports, ir_version=8), feeds, reference, op=op)


def sequence_insert_erase_and_at(own):
    """SequenceInsert, SequenceErase, SequenceAt and SequenceLength, with negative positions too."""
    a, b, c = f32(2, 3), f32(4), f32(1, 2)
    nodes = [helper.make_node("SequenceConstruct", ["a", "b"], ["s0"]),
             helper.make_node("SequenceInsert", ["s0", "c", "p"], ["s1"]),
             helper.make_node("SequenceInsert", ["s1", "c"], ["s2"]),
             helper.make_node("SequenceErase", ["s2", "q"], ["s3"]),
             helper.make_node("SequenceErase", ["s3"], ["s4"]),
             helper.make_node("SequenceAt", ["s3", "p"], ["y"]),
             helper.make_node("SequenceLength", ["s3"], ["n"])]
    for p, q in ((-1, 0), (1, -2), (-2, 2)):
        model(own, "positions", nodes, [tensor(n) for n in "abc"], [sequence("s2"), sequence("s4"), tensor("y"), tensor("n", T.INT64)],
              [("a", a), ("b", b), ("c", c)], constants=[("p", np.array(p, np.int64)), ("q", np.array(q, np.int32))])


def reused_memory(own):
    """The elements of a sequence keep their values when the memory in which they were computed is reused."""
    nodes = [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("SequenceConstruct", ["a", "x"], ["s0"]),
             helper.make_node("Neg", ["a"], ["b"]), helper.make_node("SequenceInsert", ["s0", "b"], ["s1"]),
             helper.make_node("Exp", ["b"], ["c"]), helper.make_node("Sin", ["c"], ["d"]),
             helper.make_node("Optional", ["d"], ["o"]), helper.make_node("Cos", ["d"], ["e"]),
             helper.make_node("OptionalGetElement", ["o"], ["got"]), helper.make_node("SequenceInsert", ["s1", "e"], ["s2"]),
             helper.make_node("ConcatFromSequence", ["s2"], ["y"], axis=-1, new_axis=1)]
    x = f32(300, 7)
    a = np.abs(x)
    d = np.sin(np.exp(-a))
    model(own, "reused", nodes, [tensor("x", shape=(300, 7))], [sequence("s2"), tensor("y"), tensor("got")], [("x", x)],
          [[a, x, -a, np.cos(d)], np.stack([a, x, -a, np.cos(d)], -1), d], opset=18)


def split_to_sequence_and_concat_from_sequence(own):
    x = f32(3, 7, 2)
    for axis, split, attrs in [(1, i64(2, 0, 5), {}), (-2, np.array(3, np.int32), {}), (0, None, {}), (2, None, {"keepdims": 0}),
                               (1, np.array(7, np.int64), {"keepdims": 0})]:
        inputs = ["x"] + (["split"] if split is not None else [])
        nodes = [helper.make_node("SplitToSequence", inputs, ["s"], axis=axis, **attrs),
                 helper.make_node("SequenceLength", ["s"], ["n"])]
        model(own, "", nodes, [tensor("x", shape=x.shape)], [sequence("s"), tensor("n", T.INT64)], [("x", x)],
              constants=[("split", split)] if split is not None else [],
              reference=[[x], np.array(1)] if split is not None and attrs else "ort", op="SplitToSequence")  # keepdims has no effect with a split
    for axis in (0, 1, -1):
        nodes = [helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
                 helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=axis),
                 helper.make_node("ConcatFromSequence", ["s"], ["z"], axis=axis, new_axis=1)]
        model(own, "", nodes, [tensor("x", shape=x.shape)], [tensor("y"), tensor("z")], [("x", x)], op="ConcatFromSequence")


def sequences_in_loop_and_if(own):
    """A sequence that grows in a Loop and is the result of a branch of If."""
    body = helper.make_graph(
        [helper.make_node("Cast", ["i"], ["factor"], to=T.FLOAT), helper.make_node("Mul", ["x", "factor"], ["m"]),
         helper.make_node("SequenceInsert", ["s", "m"], ["s1"]), helper.make_node("Identity", ["go"], ["go1"])],
        "body", [tensor("i", T.INT64, ()), tensor("go", T.BOOL, ()), sequence("s")], [tensor("go1", T.BOOL, ()), sequence("s1")])
    then = helper.make_graph([helper.make_node("Identity", ["all"], ["t"])], "then", [], [sequence("t")])
    other = helper.make_graph([helper.make_node("SequenceConstruct", ["x"], ["e"])], "else", [], [sequence("e")])
    nodes = [helper.make_node("SequenceEmpty", [], ["none"]),
             helper.make_node("Loop", ["count", "", "none"], ["all"], body=body),
             helper.make_node("If", ["which"], ["y"], then_branch=then, else_branch=other)]
    for which in (True, False):
        model(own, "loop", nodes, [tensor("x", shape=(2, 3)), tensor("which", T.BOOL, ())], [sequence("y"), sequence("all")],
              [("x", f32(2, 3)), ("which", np.array(which))], constants=[("count", np.array(5, np.int64))])


def optional_has_element(own):
    nodes = [helper.make_node("OptionalHasElement", ["o"], ["has"]), helper.make_node("Identity", ["o"], ["same"])]
    for value in (f32(2, 3), None):
        model(own, "", nodes, [optional("o")], [tensor("has", T.BOOL), optional("same")], [("o", value)],
              [np.array(value is not None), value], opset=18, op="OptionalHasElement")


def zip_map_dict_vectorizer_and_cast_map(own):
    def map_type(key, kind):
        return helper.make_map_type_proto(key, helper.make_tensor_type_proto(kind, []))

    for attrs, key in [({"classlabels_strings": ["a", "b", "c"]}, T.STRING), ({"classlabels_int64s": [3, 4, 9]}, T.INT64)]:
        out = helper.make_value_info("z", helper.make_sequence_type_proto(map_type(key, T.FLOAT)))
        model(own, "", [helper.make_node("ZipMap", ["x"], ["z"], domain="ai.onnx.ml", **attrs)],
              [tensor("x", shape=(4, 3))], [out], [("x", f32(4, 3))], domains=["ai.onnx.ml"], op="ZipMap")
    for value, key, kind, attrs in [
            ({"b": 1.5, "z": 2.5, "a": 3.5}, T.STRING, T.FLOAT, {"string_vocabulary": ["a", "b", "c"]}),
            ({4: 1.5, 2: 2.5}, T.INT64, T.FLOAT, {"int64_vocabulary": [2, 3, 4]})]:
        node = helper.make_node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml", **attrs)
        model(own, "", [node], [helper.make_value_info("x", map_type(key, kind))], [tensor("y")], [("x", value)],
              domains=["ai.onnx.ml"], op="DictVectorizer")
    for value, kind, to, attrs, answer in [
            ({1: 0.5, 3: 2.5, 0: 7.5}, T.FLOAT, T.FLOAT, {}, "ort"),
            ({1: 0.5, 3: 2.5, 0: 7.5}, T.FLOAT, T.INT64, {"cast_to": "TO_INT64"}, "ort"),
            ({1: "2.5", 3: "7"}, T.STRING, T.FLOAT, {"map_form": "SPARSE", "max_map": 5}, [np.array([[0, 2.5, 0, 7, 0]], np.float32)]),
            ({1: "x", 3: "y"}, T.STRING, T.STRING, {"cast_to": "TO_STRING", "map_form": "SPARSE", "max_map": 3},
             [np.array([["", "x", ""]], object)])]:
        node = helper.make_node("CastMap", ["x"], ["y"], domain="ai.onnx.ml", **attrs)
        model(own, "", [node], [helper.make_value_info("x", map_type(T.INT64, kind))], [tensor("y", to)], [("x", value)],
              domains=["ai.onnx.ml"], reference=answer, op="CastMap")


def rejected(own):
    x = f32(4, 3)
    own.refuse("SplitToSequence", [x, i64(1, 2)], "wrong sum: expected 4, found 3")
    own.refuse("SplitToSequence", [x, i64(5, -1)], "split[0] is out of range: expected 0 to 4, found 5")
    own.refuse("SplitToSequence", [x], "axis 2 is outside", axis=2)
    for position in (2, -3):
        graph = [helper.make_node("SequenceConstruct", ["x", "x"], ["s"]), helper.make_node("SequenceAt", ["s", "p"], ["y"])]
        model(own, "", graph, [tensor("x", shape=(4, 3))], [tensor("y")], [("x", x)],
              [("!refused", f"position {position} is outside the sequence of length 2")], constants=[("p", np.array(position))], op="SequenceAt")


def other_types(own):
    """Sequences of float64, int64 and strings."""
    words = np.array([["one", "two", "three"], ["four", "", "six"]], object)
    for kind, number in ((np.float64, T.DOUBLE), (np.int64, T.INT64), (object, T.STRING)):
        a, b = (words, words[:, ::-1].copy()) if kind is object else ((f32(2, 3) * 9).astype(kind), (f32(2, 3) * 9).astype(kind))
        nodes = [helper.make_node("SequenceConstruct", ["a", "b"], ["s0"]), helper.make_node("SequenceInsert", ["s0", "a"], ["s1"]),
                 helper.make_node("SequenceErase", ["s1", "p"], ["s2"]), helper.make_node("SequenceAt", ["s2", "p"], ["y"]),
                 helper.make_node("SequenceLength", ["s2"], ["n"]), helper.make_node("ConcatFromSequence", ["s2"], ["z"], axis=0),
                 helper.make_node("Optional", ["a"], ["o"]), helper.make_node("OptionalGetElement", ["o"], ["got"])]
        answers = [[b, a], b, np.array(2), np.concatenate([b, a]), a]
        model(own, f"types_{np.dtype(kind).name}", nodes, [tensor("a", number, (2, 3)), tensor("b", number, (2, 3))],
              [sequence("s2", number), tensor("y", number), tensor("n", T.INT64), tensor("z", number), tensor("got", number)],
              [("a", a), ("b", b)], answers, opset=18, constants=[("p", np.array(0, np.int64))])


def sequence_map(own):
    """SequenceMap has the types of its body."""
    for number, kind in ((T.DOUBLE, np.float64), (T.INT64, np.int64)):
        x = f32(5, 3, low=-9, high=9).astype(kind)
        body = helper.make_graph([helper.make_node("Mul", ["item", "item"], ["square"])], "each", [tensor("item", number)], [tensor("square", number)])
        nodes = [helper.make_node("SplitToSequence", ["x"], ["list"], axis=0), helper.make_node("SequenceMap", ["list"], ["squares"], body=body)]
        graph = helper.make_graph(nodes, "map", [tensor("x", number, (5, 3))], [helper.make_tensor_sequence_value_info("squares", number, None)])
        own.model(np.dtype(kind).name, helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
                  [("x", x)], [[row * row for row in np.split(x, 5)]], 1e-12, 1e-12, op="SequenceMap")


CASES = [
    sequence_insert_erase_and_at, reused_memory, split_to_sequence_and_concat_from_sequence, sequences_in_loop_and_if,
    optional_has_element, zip_map_dict_vectorizer_and_cast_map, rejected, other_types, sequence_map]
