#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs mutated models in Kelp: each must be run or refused.

    mutants.py --runner PATH [--models FOLDER] [--seed N] [--count N | --seconds N] [--isas 3] [--compare | --plans N]

--runner: tests/fuzz/run_models, preferably of the asan build. A seed selects a model (those of FOLDER, see tools/zoo.py, and ONNX's node
tests) and its changes: one to four to nodes, edges, attributes, types, shapes, weights and sizes, or to its bytes. Each mutant has a budget
of time and memory. --plans: the models are not changed; each is built into plans, of which N copies are modified (mutate_plan.c).
--compare: if ONNX Runtime still runs the mutant, its outputs must agree, within five times the model's tolerance, absolutely at least 5e-5
of the largest value.
"""
import argparse
import collections
import os
import pickle
import re
import signal
import sys
import time

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper
from onnx.backend.test import loader

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "tools")]
import zoo  # noqa: E402
from graphs import GOOD, Runner  # noqa: E402
from random_graph import ask_ort  # noqa: E402

BATCH = 50
STRANGE = (-1, 0, 1, 2, 3, 7, 255, 65536, 2**31 - 1, -2**31, 2**32, 2**62, 2**63 - 1, -2**63)


# ---- the original models ----
def node_tests():
    for test in loader.load_model_tests(kind="node"):
        if test.model is None or not test.data_sets:
            continue
        inputs, _ = test.data_sets[0]
        names = [value.name for value in test.model.graph.input]
        if all(isinstance(value, np.ndarray) for value in inputs) and sum(value.size for value in inputs) < 100000:
            yield test.name, test.model, list(zip(names, inputs)), (1e-3, 1e-5)


def real_models(folder):
    for name in sorted(zoo.PACKAGES):
        path = os.path.join(folder, name + ".onnx")
        if os.path.exists(path) and os.path.getsize(path) < 6_000_000:
            model = onnx.load(path)
            given = {value.name for value in model.graph.input}
            feed = {k: v for k, v in zoo.feeds(name)[0].items() if k in given}
            yield name, model, list(feed.items()), zoo.TOLERANCES.get(name, zoo.TOLERANCE)


# ---- the changes ----
class Mutator:
    def __init__(self, rng, model):
        self.rng, self.model = rng, model

    def pick(self, items):
        items = list(items)
        return items[int(self.rng.integers(len(items)))] if items else None

    def block(self):
        """Returns usually the main graph, otherwise a subgraph or a function."""
        blocks = [self.model.graph, *self.model.functions]
        for block in blocks:
            for node in block.node:
                blocks.extend(a.g for a in node.attribute if a.type == AttributeProto.GRAPH)
        return self.model.graph if self.rng.random() < .7 else self.pick(blocks)

    def edge(self, block):
        return self.pick(name for node in block.node for name in [*node.input, *node.output])

    def strange(self):
        return STRANGE[int(self.rng.integers(len(STRANGE)))]

    def drop_node(self, block):
        del block.node[int(self.rng.integers(len(block.node)))]

    def duplicate_node(self, block):
        copy = self.pick(block.node)
        if self.rng.random() < .5:
            fresh = onnx.NodeProto()
            fresh.CopyFrom(copy)
            for i in range(len(fresh.output)):
                fresh.output[i] += "_again"
            copy = fresh
        block.node.append(copy)

    def swap_nodes(self, block):
        i, j = (int(self.rng.integers(len(block.node))) for _ in range(2))
        kept = onnx.NodeProto()
        kept.CopyFrom(block.node[i])
        block.node[i].CopyFrom(block.node[j])
        block.node[j].CopyFrom(kept)

    def rewire(self, block):
        node = self.pick(block.node)
        if node.input:
            node.input[int(self.rng.integers(len(node.input)))] = self.edge(block)

    def cut_inputs(self, block):
        node = self.pick(block.node)
        if node.input:
            at = int(self.rng.integers(len(node.input)))
            if self.rng.random() < .5:
                node.input[at] = ""
            else:
                del node.input[at:]

    def more_inputs(self, block):
        node = self.pick(block.node)
        for _ in range(int(self.rng.integers(1, 4))):
            node.input.append(self.edge(block))

    def outputs(self, block):
        node = self.pick(block.node)
        way = self.rng.random()
        if way < .4 and node.output:
            node.output[int(self.rng.integers(len(node.output)))] = "" if way < .2 else self.edge(block)
        else:
            node.output.append("one_more")

    def operator(self, block):
        node = self.pick(block.node)
        node.op_type = self.pick(block.node).op_type if self.rng.random() < .6 else self.pick(OPERATORS)

    def attribute(self, block):
        node = self.pick([n for n in block.node if n.attribute])
        if node is None:
            return
        at = self.pick(node.attribute)
        way = self.rng.random()
        if way < .2:
            node.attribute.remove(at)
        elif way < .3:
            at.name += "x"
        elif at.type == AttributeProto.INT:
            # flags other than 0 and 1 are not specified
            at.i = int(self.rng.integers(2)) if at.i in (0, 1) and at.name in FLAGS else self.strange()
        elif at.type == AttributeProto.INTS:
            if at.ints and way < .8:
                at.ints[int(self.rng.integers(len(at.ints)))] = self.strange()
            elif way < .9:
                at.ints.append(self.strange())
            else:
                del at.ints[len(at.ints) // 2:]
        elif at.type == AttributeProto.FLOAT:
            at.f = float(self.pick([0.0, -1.0, 1e30, float("nan"), float("inf"), 1e-30]))
        elif at.type == AttributeProto.STRING:
            at.s = self.pick([b"", b"nearest", b"SAME_UPPER", b"\xff\xfe", b"x" * 3000])
        elif at.type == AttributeProto.TENSOR:
            self.tensor(at.t)
        if way > .97:
            at.type = int(self.rng.integers(0, 16))

    def tensor(self, tensor):
        way = self.rng.random()
        if way < .25:
            tensor.dims[:] = [self.strange() for _ in tensor.dims]
        elif way < .4:
            tensor.data_type = int(self.rng.integers(0, 27))
        elif way < .5:
            tensor.raw_data = tensor.raw_data[:len(tensor.raw_data) // 2]
        elif way < .6:
            tensor.dims.append(self.pick([0, 1, 2]))
        elif way < .7 and len(tensor.dims) > 1:
            tensor.dims[:] = list(tensor.dims)[::-1]
        else:
            array = numpy_helper.to_array(tensor)
            if array.dtype.kind in "iu":
                array = array.copy().reshape(-1)
                if array.size:
                    array[int(self.rng.integers(array.size))] = np.array(self.strange() % 2**63).astype(array.dtype)
                array = array.reshape(tuple(tensor.dims))
            elif array.dtype.kind == "f":
                array = array * self.pick([0, -1, 1e10, np.nan, np.inf, .5])
                array = array.astype(numpy_helper.to_array(tensor).dtype)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))

    def weight(self, block):
        if len(getattr(block, "initializer", ())):
            small = [t for t in block.initializer if np.prod(t.dims, dtype=np.float64) < 100]
            self.tensor(self.pick(small if small and self.rng.random() < .6 else block.initializer))

    def drop_weight(self, block):
        if len(getattr(block, "initializer", ())):
            del block.initializer[int(self.rng.integers(len(block.initializer)))]

    def declaration(self, block):
        values = [*getattr(block, "input", ()), *getattr(block, "output", ()), *block.value_info]
        value = self.pick(v for v in values if isinstance(v, onnx.ValueInfoProto))
        if value is None:
            return
        kind = value.type.tensor_type
        way = self.rng.random()
        if way < .3:
            kind.elem_type = int(self.rng.integers(0, 27))
        elif way < .7 and kind.shape.dim:
            dim = self.pick(kind.shape.dim)
            if way < .5:
                dim.dim_value = self.strange()
            else:
                dim.dim_param = "n"
        elif way < .85:
            kind.shape.dim.add().dim_value = 1
        elif way < .95:
            kind.shape.dim.pop() if kind.shape.dim else None
        else:
            value.name += "x"

    def version(self, _):
        self.pick(self.model.opset_import).version = int(self.rng.integers(-1, 30))

    def output_list(self, block):
        if block is self.model.graph:
            block.output.add().name = self.edge(block)

    def run(self):
        ways = [self.drop_node, self.duplicate_node, self.swap_nodes, *[self.rewire] * 3, self.cut_inputs, self.more_inputs, self.outputs,
                *[self.operator] * 2, *[self.attribute] * 5, *[self.weight] * 4, self.drop_weight, *[self.declaration] * 3, self.version,
                *[self.output_list] * 2]
        for _ in range(self.pick([1, 1, 1, 2, 2, 3])):
            block = self.block()
            if len(block.node):
                try:
                    self.pick(ways)(block)
                except (ValueError, TypeError, OverflowError):  # protobuf cannot represent the change
                    pass


FLAGS = ("keepdims", "exclusive", "reverse", "ceil_mode", "count_include_pad", "transA", "transB", "select_last_index", "largest", "upper",
         "noop_with_empty_axes", "allowzero", "linear_before_reset", "align_corners", "antialias", "fmod", "is_causal", "saturate", "onesided")
OPERATORS = sorted({schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""})


def spoil_bytes(rng, data):
    """Flips, removes or duplicates bytes of a file, in its description as often as in its weights."""
    data = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        if len(data) < 4:
            break
        at = int(rng.integers(len(data))) if rng.random() < .5 else int(rng.integers(min(len(data), 4000)))
        length = int(rng.integers(1, 9))
        way = rng.random()
        if way < .5:
            data[at] ^= 1 << int(rng.integers(8))
        elif way < .65:
            data[at] = int(rng.integers(256))
        elif way < .8:
            del data[at:at + length]
        elif way < .95:
            data[at:at] = data[at:at + length]
        else:
            del data[at:]
    return bytes(data)


class Bytes:
    """Replaces the model of a case; its inputs and outputs are those of the original model."""

    def __init__(self, model, data):
        self.graph, self.data = model.graph, data

    def SerializeToString(self):
        return self.data


def feeds_of(rng, model, feeds):
    """Returns the original inputs, some with another shape or type, or without some of them."""
    kept = []
    for name, array in feeds:
        if rng.random() < 1 / 40:
            continue
        if rng.random() < 1 / 40 and array.ndim:
            array = np.repeat(array, 2, axis=int(rng.integers(array.ndim))) if rng.random() < .5 and array.size < 1e5 else array[:0]
        if rng.random() < 1 / 40:
            array = array.astype(np.float64 if rng.random() < .5 else np.int64) if array.dtype.kind in "fiub" else array
        kept.append((name, array))
    return kept


def mutant(seed, models):
    rng = np.random.default_rng(seed)
    real = [row for row in models if row[0] in zoo.PACKAGES]
    chosen = real if real and rng.random() < .4 else models
    name, model, feeds, tolerance = chosen[int(rng.integers(len(chosen)))]
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    if rng.random() < .25:
        return name, Bytes(model, spoil_bytes(rng, copy.SerializeToString())), feeds, tolerance
    Mutator(rng, copy).run()
    return name, copy, feeds_of(rng, copy, feeds), tolerance


def ask_apart(model, feeds):
    """Returns ONNX Runtime's outputs, computed in another process, since some mutants crash it."""
    there, here = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        with os.fdopen(here, "wb") as file:
            pickle.dump(ask_ort(model, feeds), file)
        os._exit(0)
    os.close(here)
    with os.fdopen(there, "rb") as file:
        said = file.read()
    ended = os.waitpid(child, 0)[1]
    return pickle.loads(said) if ended == 0 and said else None


def finite(model):
    """Returns True if no weight is NaN or infinite; which operators propagate NaN is not specified."""
    graph = model.graph if not isinstance(model, Bytes) else onnx.load_from_string(model.data).graph
    tensors = [*graph.initializer, *(a.t for node in graph.node for a in node.attribute if a.type == AttributeProto.TENSOR)]
    try:
        arrays = [numpy_helper.to_array(tensor) for tensor in tensors]
    except Exception:  # no longer a tensor
        return False
    return all(np.isfinite(array).all() for array in arrays if array.dtype.kind == "f")


def spoilt_inside(model, feeds):
    """Returns True if an intermediate value of ONNX Runtime is NaN or infinite; for example, its Relu replaces NaN with 0."""
    try:
        told = onnx.load_from_string(model.SerializeToString())
    except Exception:  # not even protobuf any more
        return False
    named = {o.name for o in told.graph.output}
    told.graph.output.extend(onnx.ValueInfoProto(name=name) for node in told.graph.node for name in node.output if name and name not in named)
    values = ask_apart(told, feeds)
    return values is not None and any(isinstance(v, np.ndarray) and v.dtype.kind == "f" and not np.isfinite(v).all() for v in values)


class Campaign:
    def __init__(self, runner, models, compare, plans=0):
        self.runner, self.models, self.compare, self.plans = runner, models, compare, plans
        self.counts, self.bad = collections.Counter(), []

    def batch(self, seeds):
        cases, kept = [], {}
        for seed in seeds:
            origin, model, feeds, tolerance = self.models[seed % len(self.models)] if self.plans else mutant(seed, self.models)
            name = f"mutant{seed}"
            kept[name] = origin, model, feeds, tolerance
            cases.append((name, model, feeds, [], *tolerance))
        found = self.runner.run(cases, options=["--plans", str(self.plans), "--seed", str(seeds[0])] if self.plans else [])
        changed = re.search(r"(\d+) changed plans: (\d+) loaded, (\d+) ran", self.runner.said)
        for name, count in zip(("plans changed", "plans loaded", "plans ran"), changed.groups() if changed else ()):
            self.counts[name] += int(count)
        self.counts["real"] += sum(origin in zoo.PACKAGES for origin, *_ in kept.values())
        ran = []
        for name, (outcome, words) in found.items():
            self.counts[outcome] += 1
            if outcome not in (*GOOD, "refused"):
                self.bad.append(f"{outcome} {name} of {kept[name][0] if name in kept else '?'}: {words}")
            elif outcome == "ran":
                ran.append(name)
        if self.compare:
            self.against_ort([(name, *kept[name]) for name in ran])

    def against_ort(self, mutants):
        cases = []
        for name, _, model, feeds, tolerance in mutants:
            theirs = ask_apart(model, feeds)
            if theirs is None or not all(isinstance(array, np.ndarray) for array in theirs):
                continue
            if any(array.dtype.kind == "f" and not (np.isfinite(array).all() and np.abs(array).max(initial=0) < 1e6) for array in theirs):
                continue
            if isinstance(model, Bytes):
                try:
                    outputs = onnx.load_from_string(model.data).graph.output
                except Exception:  # not even protobuf any more
                    continue
            else:
                outputs = model.graph.output
            if not finite(model):
                continue
            expected = [(o.name, array) for o, array in zip(outputs, theirs)]
            largest = max([1.0] + [float(np.abs(array).max(initial=0)) for array in theirs if array.dtype.kind == "f"])
            cases.append((name, model, feeds, expected, tolerance[0] * 5, max(tolerance[1] * 5, 5e-5 * largest)))
        if not cases:
            return
        mutated = {name: (origin, model, feeds) for name, origin, model, feeds, _ in mutants}
        for name, (outcome, words) in self.runner.run(cases).items():
            origin, model, feeds = mutated.get(name, (None, None, None))
            if outcome == "different" and model is not None and spoilt_inside(model, feeds):
                self.counts["with a NaN inside"] += 1
                continue
            self.counts["as ONNX Runtime" if outcome == "same" else outcome + " from ONNX Runtime"] += 1
            if outcome != "same":
                self.bad.append(f"{outcome} {name} of {origin}: {words}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runner", required=True)
    parser.add_argument("--models")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--isas", default="3")
    parser.add_argument("--keep")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--plans", type=int, default=0)
    options = parser.parse_args()
    models = [*(real_models(options.models) if options.models else ()), *node_tests()]
    campaign = Campaign(Runner(options.runner, options.keep, options.isas), models, options.compare, options.plans)
    began, seed, shown = time.monotonic(), options.seed, 0
    last = None if options.seconds else options.seed + options.count
    while seed != last and (last or time.monotonic() - began < options.seconds):
        end = min(seed + BATCH, last) if last else seed + BATCH
        campaign.batch(range(seed, end))
        seed = end
        for text in campaign.bad[shown:]:
            print(text, flush=True)
        shown = len(campaign.bad)
    counts = dict(campaign.counts)
    print(f"mutants {options.seed} to {seed - 1} of {len(models)} models, {counts.pop('real', 0)} of real ones: " +
          ", ".join(f"{n} {w}" for w, n in sorted(counts.items())))
    print(f"{len(campaign.bad)} wrong")
    sys.exit(len(campaign.bad) > 0)


if __name__ == "__main__":
    main()
