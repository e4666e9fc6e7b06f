# SPDX-License-Identifier: Apache-2.0
"""Draws sequences and optionals: short programs with one list, like those of graphs with bodies."""
import numpy as np
from onnx import TensorProto as T, helper
from random_graph import Refused, empty, info, proto_type
from random_ops import axis_of, op


class Program:
    """Nodes that use one sequence, whose tensors are known."""

    def __init__(self, g):
        self.g, self.nodes, self.reads = g, [], []
        self.dtype = g.pick(["float32", "int64", "bool", *[t for t in g.extras if t == "object"] * 3])
        self.shape = g.shape(g.int(0, 3), 60)  # of most tensors
        self.items, self.name = [], None

    def tensor(self, shape=None):
        value = self.g.source(self.g.array(self.dtype, self.shape if shape is None else shape))
        self.reads.append(value)
        return value

    def number(self, number, dtype="int64"):
        value = self.g.scalar(number, dtype)
        self.reads.append(value)
        return value.name

    def emit(self, op_type, inputs, **attributes):
        self.nodes.append(helper.make_node(op_type, inputs, [self.g.name("q")], **attributes))
        return self.nodes[-1].output[0]

    def kind(self):
        return helper.make_sequence_type_proto(helper.make_tensor_type_proto(proto_type(np.zeros(0, self.dtype)), None))

    # ---- the first list ----
    def begin(self):
        g = self.g
        way = g.int(0, 2)
        if not g.wrapped and g.chance(.45):
            return self.come()
        if way == 0:
            items = [self.tensor(g.shape(len(self.shape), 60) if g.chance(.2) else None) for _ in range(g.int(1, 4))]
            self.name, self.items = self.emit("SequenceConstruct", [v.name for v in items]), [v.array for v in items]
        elif way == 1:
            self.name = self.emit("SequenceEmpty", [], **({} if self.dtype == "float32" else {"dtype": proto_type(np.zeros(0, self.dtype))}))
        else:
            self.split()
        return None

    def come(self):
        """The list is an input, sometimes as an optional."""
        g = self.g
        self.items = [g.array(self.dtype, g.shape(len(self.shape), 60) if g.chance(.2) else self.shape) for _ in range(g.int(0, 4))]
        held = g.opset >= 18 and g.chance(.3)
        self.name = g.list_in(list(self.items), helper.make_optional_type_proto(self.kind()) if held else self.kind())
        self.reads.append(g.lists_in[-1])
        if held:
            self.name = self.emit("OptionalGetElement", [self.name])

    def leave(self):
        """The list is also an output, sometimes as an optional, unless it is an unchanged input or missing."""
        g = self.g
        if g.wrapped or not g.chance(.6) or not any(self.name in node.output for node in self.nodes):
            return
        if g.opset >= 18 and g.chance(.3):
            g.list_out(self.emit("Optional", [self.name]), list(self.items), helper.make_optional_type_proto(self.kind()))
        else:
            g.list_out(self.name, list(self.items), self.kind())

    def split(self):
        g = self.g
        x = g.source(g.array(self.dtype, tuple(g.int(1, 5) for _ in range(g.int(1, 3)))))
        self.reads.append(x)
        axis = axis_of(g, x)
        length, given, inputs = x.shape[axis], {"axis": axis}, [x.name]
        if g.chance(.4):
            cuts = sorted(g.int(0, length) for _ in range(g.int(0, 2)))
            sizes = [b - a for a, b in zip([0, *cuts], [*cuts, length])]
            value = g.source(np.array(sizes, np.int64))
            self.reads.append(value)
            inputs.append(value.name)
            at = np.cumsum(sizes)[:-1]
        elif g.chance(.5):
            size = g.int(1, length)
            inputs.append(self.number(size))
            at = list(range(size, length, size))
        else:
            at = list(range(1, length))
            given["keepdims"] = g.int(0, 1)
        self.items = np.split(x.array, at, axis)
        if given.get("keepdims", 1) == 0:
            self.items = [item.squeeze(axis) for item in self.items]
        self.name, self.shape = self.emit("SplitToSequence", inputs, **given), self.items[0].shape

    # ---- changes of the list ----
    def insert(self):
        g, item, count = self.g, self.tensor(), len(self.items)
        if g.chance(.5):
            at = g.int(-count, count)
            self.name = self.emit("SequenceInsert", [self.name, item.name, self.number(at, g.pick(["int32", "int64"]))])
        else:
            at = count
            self.name = self.emit("SequenceInsert", [self.name, item.name])
        self.items.insert(at if at >= 0 else at + count, item.array)

    def erase(self):
        count = len(self.items)
        if not count:
            return self.insert()
        inputs, at = [self.name], count - 1
        if self.g.chance(.6):
            at = self.g.int(-count, count - 1)
            inputs.append(self.number(at, self.g.pick(["int32", "int64"])))
        self.name = self.emit("SequenceErase", inputs)
        self.items.pop(at)
        return None

    def pass_on(self):
        """Passes it through Identity (for sequences since version 14), an optional, or both branches of an If."""
        g = self.g
        way = g.int(0, 2)
        if way == 0 and g.opset >= 14:
            self.name = self.emit("Identity", [self.name])
        elif way == 1 and g.opset >= 18:
            self.name = self.emit("OptionalGetElement", [self.emit("Optional", [self.name])])
        elif way == 2 and g.opset >= 13:
            item, taken, made = self.tensor(), g.chance(.5), [g.name("b") for _ in range(2)]
            branches = [helper.make_graph([helper.make_node("SequenceInsert", [self.name, item.name], [made[0]])], g.name("more"), [], [empty(made[0])]),
                        helper.make_graph([helper.make_node("SequenceConstruct", [item.name], [made[1]])], g.name("one"), [], [empty(made[1])])]
            self.items = [*self.items, item.array] if taken else [item.array]
            cond = g.source(np.array(taken))
            self.reads.append(cond)
            self.name = self.emit("If", [cond.name], then_branch=branches[0], else_branch=branches[1])

    def grow(self):
        """A Loop that inserts an element in each iteration."""
        g = self.g
        if g.opset < 13:
            return
        item, trips = self.tensor(), g.int(0, 3)
        i, c, s, d, t = (g.name("l") for _ in range(5))
        kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(proto_type(item.array), None))
        body = helper.make_graph([helper.make_node("Identity", [c], [d]), helper.make_node("SequenceInsert", [s, item.name], [t])], g.name("grow"),
                                 [info(i, np.array(0, np.int64)), info(c, np.array(True)), helper.make_value_info(s, kind)],
                                 [info(d, np.array(True)), helper.make_value_info(t, kind)])
        self.name = self.emit("Loop", [self.number(trips), "", self.name], body=body)
        self.items = [*self.items, *[item.array] * trips]

    def map(self):
        """Applies an operator that keeps the type to each element."""
        g = self.g
        if g.opset < 17 or self.dtype == "object":
            return
        e, made = g.name("m"), g.name("m")
        double = self.dtype != "bool" and g.chance(.5)
        node = helper.make_node("Add", [e, e], [made]) if double else helper.make_node("Identity", [e], [made])
        value = helper.make_tensor_value_info(e, proto_type(np.zeros(0, self.dtype)), None)
        body = helper.make_graph([node], g.name("each"), [value], [helper.make_tensor_value_info(made, proto_type(np.zeros(0, self.dtype)), None)])
        self.name = self.emit("SequenceMap", [self.name], body=body)
        self.items = [item + item if double else item for item in self.items]

    # ---- tensors made of the list ----
    def end(self):
        g, count = self.g, len(self.items)
        way = g.int(0, 3)
        if way == 0 or not count:
            return self.emit("SequenceLength", [self.name]), np.array(count, np.int64)
        if way == 1:
            at = g.int(-count, count - 1)
            return self.emit("SequenceAt", [self.name, self.number(at, g.pick(["int32", "int64"]))]), self.items[at]
        rank = self.items[0].ndim
        if len({item.ndim for item in self.items}) > 1:
            raise Refused("of several ranks")
        try:
            if way == 2 and rank:
                axis = g.int(-rank, rank - 1)
                return self.emit("ConcatFromSequence", [self.name], axis=axis), np.concatenate(self.items, axis)
            axis = g.int(-rank - 1, rank)
            return self.emit("ConcatFromSequence", [self.name], axis=axis, new_axis=1), np.stack(self.items, axis)
        except ValueError as error:
            raise Refused("shapes") from error


@op(weight=.8)
def SequenceProgram(g, _):
    """The outputs are computed here: the reference concatenates wrongly (see Loop), and does not support an optional of a sequence."""
    if g.opset < 11:
        raise Refused("no sequences yet")
    p = Program(g)
    p.begin()
    for _ in range(g.int(0, 4)):
        g.pick([p.insert, p.insert, p.erase, p.pass_on, p.grow, p.map])()
    p.leave()
    name, array = p.end()
    g.several(p.nodes, p.reads, name, np.asarray(array))


@op(weight=.4)
def OptionalProgram(g, _):
    if g.opset < 18:
        raise Refused("its tests took nothing else yet")
    x = g.any(["float32", "int64", *[t for t in g.extras if t == "object"]])
    kind = helper.make_tensor_type_proto(T.FLOAT if x.dtype == "float32" else T.INT64 if x.dtype == "int64" else T.STRING, None)
    filled, come = g.chance(.6), not g.wrapped and g.chance(.5)
    held, there, made = g.name("o"), g.name("o"), g.name()
    brought = []
    if come:
        held = g.list_in(x.array if filled else None, helper.make_optional_type_proto(kind))
        nodes, brought = [], g.lists_in[-1:]
    else:
        nodes = [helper.make_node("Optional", [x.name], [held]) if filled else helper.make_node("Optional", [], [held], type=kind)]
        if not g.wrapped and g.chance(.3):
            g.list_out(held, x.array if filled else None, helper.make_optional_type_proto(kind))
    nodes.append(helper.make_node("OptionalHasElement", [held], [there]))
    if g.chance(.4):
        nodes[-1].output[0] = made
        return g.several(nodes, brought if come else [x] if filled else [], made, np.array(filled))
    names = [g.name("b") for _ in range(2)]
    branches = [helper.make_graph([helper.make_node("OptionalGetElement", [held], [names[0]])], g.name("got"), [], [empty(names[0])]),
                helper.make_graph([helper.make_node("Identity", [x.name], [names[1]])], g.name("else"), [], [empty(names[1])])]
    nodes.append(helper.make_node("If", [there], [made], then_branch=branches[0], else_branch=branches[1]))
    return g.several(nodes, [x, *brought], made, x.array)
