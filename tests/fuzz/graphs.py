#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Kelp with ONNX's reference on random graphs (random_graph.py), with and without fusion, on every instruction set.

    graphs.py --runner PATH [--seed N] [--count N | --seconds N] [--family NAME] [--keep FOLDER]

--runner: tests/fuzz/run_models. Graph number N is always the same. --family: selects one of the families, which alternate otherwise:
any (all operators), fused (chains of operators that passes fuse, random_fused.py), types (strings, small floats and integers, which
random_types.py creates and operators that move elements pass on), lists (sequences and optionals, random_lists.py, also as inputs and
outputs of the graph). One graph in four is the body of an If, Loop or Scan, or of a function. One in eight is damaged afterwards: it must be
refused or run, not end the process. Tolerances: 1e-3 relative plus 2e-5 of the graph's largest magnitude (2e-2 and 4e-3 with float16, 8e-2
and 2e-2 with bfloat16); other types must be equal. If ONNX's reference and Kelp differ but ONNX Runtime agrees with Kelp, the difference is
counted as the reference's. Any other graph is reduced to the fewest nodes that still differ and printed, and the run fails.
"""
import argparse
import collections
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "ops")]
import random_fused  # noqa: E402,F401 (fills OPS, like the next one)
import random_graph  # noqa: E402
import random_layers  # noqa: E402,F401
import random_lists  # noqa: E402,F401
import random_ops  # noqa: E402
import random_types  # noqa: E402,F401
from cases.common import Writer  # noqa: E402
from random_graph import Refused, ask_ort  # noqa: E402

GOOD = ("same", "ran", "late")
BATCH = 50
FAMILIES = ("any", "fused", "types", "lists")


def draw(seed, family=None):
    """Returns the graph of a seed, or None if too few nodes could be drawn."""
    family = family or FAMILIES[seed % len(FAMILIES)]
    graph = random_graph.Graph(seed, family == "types")
    labels = list(random_ops.OPS)
    weights = np.array([random_ops.OPS[label][0] * (12 if random_ops.OPS[label][2] == f"random_{family}" else 1) for label in labels])
    wanted = graph.int(3, 20)
    for _ in range(wanted * 3):
        if len(graph.records) >= wanted:
            break
        kept = len(graph.values), len(graph.inputs), len(graph.initializers), len(graph.records)
        try:
            random_ops.OPS[str(graph.rng.choice(labels, p=weights / weights.sum()))][1](graph)
        except Refused:
            if len(graph.records) == kept[3]:
                for items, count in zip((graph.values, graph.inputs, graph.initializers), kept):
                    del items[count:]
    return graph if graph.records else None


def spoil(graph, model):
    """Damages or changes a model."""
    nodes = [n for n in model.graph.node if n.op_type != "Constant"] or list(model.graph.node)
    node = graph.pick(nodes)
    way = graph.int(0, 9)
    names = [v.name for v in graph.values]
    if way == 0 and node.input:
        node.input[graph.int(0, len(node.input) - 1)] = graph.pick(names)
    elif way == 1 and node.input:
        del node.input[graph.int(0, len(node.input) - 1):]
    elif way == 2:
        node.input.append(graph.pick(names))
    elif way == 3 and node.attribute:
        attribute = graph.pick(list(node.attribute))
        if attribute.ints:
            attribute.ints[graph.int(0, len(attribute.ints) - 1)] = graph.pick([-1, 0, 7, -2**63, 2**63 - 1, 2**31, 1 << 40])
        else:
            attribute.i = graph.pick([-1, 0, 7, -2**63, 2**63 - 1, 2**31, 1 << 40])
    elif way == 4 and node.attribute:
        del node.attribute[graph.int(0, len(node.attribute) - 1)]
    elif way == 5:
        node.op_type = graph.pick(list(random_ops.OPS))
    elif way == 6 and model.graph.initializer:
        tensor = graph.pick(list(model.graph.initializer))
        array = onnx.numpy_helper.to_array(tensor)
        fresh = np.asarray(graph.rng.integers(-2**40, 2**40, array.shape)).astype(array.dtype) \
            if array.dtype != object and graph.chance(.6) else array.reshape(-1)[:-1]
        tensor.CopyFrom(onnx.numpy_helper.from_array(fresh, tensor.name))
    elif way == 7 and model.graph.input:
        kind = graph.pick(list(model.graph.input)).type.tensor_type
        kind.elem_type = graph.int(1, 16) if graph.chance(.5) else kind.elem_type
        del kind.shape.dim[graph.int(0, len(kind.shape.dim)):]
    elif way == 8:
        model.opset_import[0].version = graph.int(1, 26)
    else:
        graph.pick(list(node.output) and [node]).output[0] = graph.pick(names)


class Runner:
    def __init__(self, program, keep=None, isas="013"):
        self.program, self.keep, self.isas = program, keep, isas
        self.said = ""

    def run(self, cases, seconds=10, options=()):
        """Returns {name: (outcome, message)} of cases: name, model, feeds, expected outputs, rtol and atol. options: more of run_models."""
        with tempfile.TemporaryDirectory() as folder:
            folder = self.keep or folder
            writer = Writer(folder)
            for name, model, feeds, expected, rtol, atol in cases:
                writer.case(name, model, feeds, expected, rtol, atol)
            writer.close()
            ended = subprocess.run([self.program, folder, "--isas", self.isas, "--seconds", str(seconds), *options], capture_output=True, check=False,
                                   timeout=seconds * 20 * len(cases) + 60, stdin=subprocess.DEVNULL)
        self.said = ended.stderr.decode(errors="replace")
        found = {}
        for line in ended.stdout.decode(errors="replace").split("\n"):
            if "\t" not in line:
                continue
            outcome, name, words = (line.split("\t") + ["", ""])[:3]
            if outcome == "leaked" and name == "(some case)":
                name, words = "leak", self.said[-3000:]
            if outcome == "crashed":
                words += "\n" + self.said[-3000:]
            found[name] = outcome, words
        for case in cases:
            found.setdefault(case[0], ("crashed", f"no outcome; exit status {ended.returncode}\n{self.said[-3000:]}"))
        return found


def part(graph, records):
    """Returns a model of some of a graph's nodes; the outputs of the others are its inputs."""
    made = {name for record in records for node in record.nodes for name in node.output if name}
    read = {name for record in records for name in record.reads if name} - made - {v.name for v in graph.lists_in}
    known = {v.name: v for v in graph.values}
    constants = [v for v in graph.initializers if v.name in read]
    inputs = [known[name] for name in sorted(read) if not known[name].constant]
    return random_graph.build(graph, records, inputs, constants, [known[name] for name in sorted(made) if name in known])


def failing(runner, graph, choices, outcome):
    """Returns those of the lists of records that still have this outcome."""
    cases, at = [], {}
    for i, records in enumerate(choices):
        try:
            cases.append((f"part{i}", *part(graph, records), *random_graph.tolerance(graph)))
            at[f"part{i}"] = records
        except KeyError:  # a list would have to be an input
            continue
    try:
        found = runner.run(cases) if cases else {}
    except subprocess.TimeoutExpired:
        return []
    return [records for name, records in at.items() if found[name][0] == outcome]


def reduce(runner, graph, outcome):
    """Returns the fewest nodes with the same outcome, by removing one after another."""
    records, wrapped = list(graph.records), graph.wrapped
    graph.wrapped = None
    if not failing(runner, graph, [records], outcome):
        graph.wrapped = wrapped
    alone = failing(runner, graph, [[record] for record in records], outcome)
    if alone:
        return alone[0]
    while len(records) > 1:
        fewer = failing(runner, graph, [[r for r in records if r is not record] for record in records], outcome)
        if not fewer:
            break
        records = fewer[-1]
    return records


def show(graph, records, words):
    model, feeds, _ = part(graph, records)
    lines = [f"    {words}", f"    opset {graph.opset}" + (f" in {graph.wrapped}" if graph.wrapped else "")]
    for node in (node for r in records for node in r.nodes):
        given = ", ".join(f"{a.name}={onnx.helper.get_attribute_value(a)}" for a in node.attribute if a.type not in (4, 5))
        lines.append(f"    {', '.join(node.output)} = {node.op_type}({', '.join(node.input)}) {given}")
    for v in graph.values:
        if any(v.name == name for name, _ in feeds) or (v.constant and any(v.name in r.reads for r in records)):
            text = np.array2string(v.array, threshold=12, separator=",").replace("\n", "")
            lines.append(f"    {'const' if v.constant else 'input'} {v.name} {v.dtype}{list(v.shape)} = {text[:200]}")
    return "\n".join(lines)


class Campaign:
    def __init__(self, runner, family):
        self.runner, self.family, self.counts, self.reference = runner, family, collections.Counter(), collections.Counter()
        self.bad = []

    def batch(self, seeds):
        cases, graphs = [], {}
        for seed in seeds:
            graph = draw(seed, self.family)
            if graph is None:
                continue
            try:
                model, feeds, expected = graph.finish()
            except Refused:
                continue
            name = f"graph{seed}"
            spoilt = graph.chance(1 / 8)
            if spoilt:
                spoil(graph, model)
                expected = []
            try:
                model.SerializeToString()
            except Exception:
                continue
            graphs[name] = graph, model, feeds, spoilt
            self.counts["nodes"] += len(graph.records)
            cases.append((name, model, feeds, expected, *random_graph.tolerance(graph)))
        found = self.runner.run(cases)
        for name, (outcome, words) in found.items():
            if name not in graphs:
                self.report(f"{outcome} {name}\n{words}")
                continue
            graph, model, feeds, spoilt = graphs[name]
            self.counts["spoilt " + outcome if spoilt else outcome] += 1
            if outcome in GOOD or (spoilt and outcome == "refused"):
                continue
            self.judge(name, graph, model, feeds, spoilt, outcome, words)

    def report(self, text):
        self.bad.append(text)
        print(text, flush=True)

    def ort_agrees(self, graph, model, feeds):
        theirs = ask_ort(model, feeds)
        if theirs is None or not all(isinstance(array, (np.ndarray, list)) for array in theirs):
            return False
        expected = [(o.name, array) for o, array in zip(model.graph.output, theirs)]
        return self.runner.run([("ort", model, feeds, expected, *random_graph.tolerance(graph))])["ort"][0] == "same"

    def judge(self, name, graph, model, feeds, spoilt, outcome, words):
        if spoilt:
            self.report(f"{outcome} {name} (spoilt): {words}\n{onnx.printer.to_text(model)[:3000]}")
            return
        records = reduce(self.runner, graph, outcome)
        if outcome == "different" and (self.ort_agrees(graph, *part(graph, records)[:2]) or self.ort_agrees(graph, model, feeds)):
            self.reference[" ".join(r.node.op_type for r in records)] += 1
            return
        self.report(f"{outcome} {name}, {len(records)} of {len(graph.records)} nodes:\n{show(graph, records, words)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runner", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--family", choices=FAMILIES)
    parser.add_argument("--isas", default="013")
    parser.add_argument("--keep")
    options = parser.parse_args()
    campaign = Campaign(Runner(options.runner, options.keep, options.isas), options.family)
    began, seed = time.monotonic(), options.seed
    last = None if options.seconds else options.seed + options.count
    while seed != last and (last or time.monotonic() - began < options.seconds):
        end = min(seed + BATCH, last) if last else seed + BATCH
        campaign.batch(range(seed, end))
        seed = end
    counts = dict(campaign.counts)
    print(f"graphs {options.seed} to {seed - 1}: {counts.pop('nodes', 0)} nodes; " + ", ".join(f"{n} {w}" for w, n in sorted(counts.items())))
    if campaign.reference:
        print("ONNX Runtime agrees with Kelp, ONNX's reference does not: " + ", ".join(f"{n} {w}" for w, n in campaign.reference.most_common()))
    print(f"{len(campaign.bad)} unexplained")
    sys.exit(len(campaign.bad) > 0)


if __name__ == "__main__":
    main()
