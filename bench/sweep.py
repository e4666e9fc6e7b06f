#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures every operator of `kelp ops` on a grid of types and shapes (bench/grid), next to ONNX Runtime and OpenVINO. Each engine is a process
that loads one case after the other (bench_sweep); they take turns by blocks in the same run, and their results are compared.

    sweep.py --results FILE [--share 3/20] [--half tune|held-out] [--op NAME …] [--dtype f32] [--family conv] [--threads 1,2] [--minutes M]
    sweep.py --results FILE --case 'ai.onnx.Softmax/f32/1x1000 axis=1'      one row, measured again
    sweep.py --results FILE --report [--stratum 20us|1ms|above] [--json FILE] [--markdown FILE] [--write docs/performance.md]
    sweep.py --list | --coverage

Rows are appended to FILE; cases that it holds are not measured again, so a run can be interrupted and continued. The time of a row is the time
of the kernel: the median of an inference less the median of an empty model with as many inputs and outputs. The ratio is that of Kelp to the
faster peer. --coverage lists the operators that the grid lacks.
"""
import argparse
import json
import os
import re
import select
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "tools"), os.path.join(ROOT, "tests", "ops")]
import grid  # noqa: E402
import peers  # noqa: E402
from cases.common import Writer  # noqa: E402
from grid import report  # noqa: E402
from grid.common import model_of  # noqa: E402

ENGINES = ("cpu", "onnxruntime", "openvino")
ROUNDS = 5
BASE_ROUNDS = 9
BASE_TRIES = 3
BLOCK_SECONDS = 0.004
MOST_RUNS = 2000
ANSWER_SECONDS = 30
# Largest difference to the largest value of ONNX Runtime, by element type of the output.
TOLERANCE = {"f": 2e-3, "h": 2e-2, "i": 0}
RANDOM = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"}


class Failed(Exception):
    """What an engine said about a case that it did not run."""


class Engine:
    def __init__(self, bench, name, threads, environment):
        self.words, self.environment, self.process = [bench, name, str(threads)], environment, None

    def start(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.environment)
        self.rest = b""

    def line(self):
        until = time.monotonic() + ANSWER_SECONDS
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))
            piece = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not piece:
                if not ready:
                    self.process.kill()
                code = self.process.wait()
                self.process = None
                raise Failed(f"ended with {code}" if ready else f"took more than {ANSWER_SECONDS} s")
            self.rest += piece
        found, self.rest = self.rest.split(b"\n", 1)
        return found.decode(errors="replace")

    def ask(self, *words):
        """Sends a command; returns the words of the answer."""
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write((" ".join(words) + "\n").encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        while True:
            answer = self.line()  # libraries also print lines of their own
            if answer.startswith("error "):
                raise Failed(answer[6:])
            if answer == "ok" or answer.startswith("ok "):
                return answer.split()[1:]

    def end(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


def read_outputs(path, count):
    """Returns the outputs that bench_sweep wrote."""
    with open(path, "rb") as file:
        data = file.read()
    at, found = 0, []
    for _ in range(count):
        code, rank = struct.unpack_from("<qq", data, at)
        shape = struct.unpack_from(f"<{rank}q", data, at + 16)
        at += 16 + 8 * rank
        kind = onnx.helper.tensor_dtype_to_np_dtype(code)
        elements = int(np.prod(shape))
        found.append(np.frombuffer(data, kind, elements, at).reshape(shape))
        at += elements * kind.itemsize
    return found


def apart(ours, theirs):
    """Returns the largest difference to the largest value and whether it is too large; text if the outputs do not match."""
    worst, wrong = 0.0, False
    for a, b in zip(ours, theirs):
        if a.shape != b.shape:
            return f"shape {a.shape} against {b.shape}", True
        if not a.size:
            continue
        kind = "i" if a.dtype.kind in "iub" else "f" if a.dtype in (np.float32, np.float64) else "h"
        if kind == "i":
            difference = np.abs(a.astype(np.float64) - b.astype(np.float64))
            worst = max(worst, float(difference.max()) / max(float(np.abs(b.astype(np.float64)).max()), 1.0))
            # rounding decides a few quantized values, and equal scores the order of positions
            wrong |= bool(difference.max() > 1) if a.dtype.itemsize == 1 else float((difference > 0).mean()) > 0.001
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        same = np.isfinite(x) & np.isfinite(y)
        if (np.isnan(x) != np.isnan(y)).any() or (x[~same & ~np.isnan(x)] != y[~same & ~np.isnan(y)]).any():
            return "other values are not finite", True
        if same.any():
            gap = float(np.abs(x[same] - y[same]).max()) / max(float(np.abs(y[same]).max()), 1e-30)
            worst, wrong = max(worst, gap), wrong or gap > TOLERANCE[kind]
    return float(f"{worst:.1e}"), wrong


class Sweep:
    def __init__(self, bench, environment, threads, folder):
        self.folder, self.bases = folder, {}
        self.engines = {(name, count): Engine(bench, name, count, environment) for count in threads for name in ENGINES}

    def turns(self, names, threads, rounds):
        """Medians of blocks that take turns; returns engine -> block medians, engine -> error."""
        times, errors = {name: [] for name in names}, {}
        for turn in range(rounds):
            for name in list(times):
                try:
                    took, _ = self.engines[name, threads].ask("run", str(BLOCK_SECONDS), str(MOST_RUNS))
                    times[name].append(int(took))
                except Failed as failure:
                    errors[name] = str(failure)
                    del times[name]
        return times, errors

    def load(self, path, threads, names=ENGINES):
        """Returns the engines that loaded the case -> time, and the errors of the others."""
        loaded, errors = {}, {}
        for name in names:
            try:
                took, first = self.engines[name, threads].ask("load", path + ".onnx", path + ".bin")
                loaded[name] = {"load_ns": int(took), "first_ns": int(first)}
            except Failed as failure:
                errors[name] = str(failure)
        return loaded, errors

    def write(self, label, model, feeds):
        Writer(self.folder).case(label, model, feeds, [], 0, 0)
        return os.path.join(self.folder, label)

    def base(self, inputs, outputs, threads):
        """Medians of a model without work: an Identity of one element for each output. The smallest of those measured before the first cases
        with as many inputs and outputs, because other work on the machine only adds to it."""
        tries = self.bases.setdefault((inputs, outputs, threads), [])
        if len(tries) < BASE_TRIES:
            feeds = [(f"x{i}", np.ones(1, np.float32)) for i in range(max(inputs, 1))]
            nodes = [onnx.helper.make_node("Identity", [f"x{i % max(inputs, 1)}"], [f"y{i}"]) for i in range(outputs)]
            path = self.write("base", model_of(nodes, feeds, [], [f"y{i}" for i in range(outputs)], 21), feeds)
            loaded, errors = self.load(path, threads)
            if errors:
                raise SystemExit(f"an empty model does not run: {errors}")
            tries.append({name: float(min(found)) for name, found in self.turns(loaded, threads, BASE_ROUNDS)[0].items()})
        return {name: min(found[name] for found in tries) for name in ENGINES}

    def compare(self, loaded, threads):
        """Kelp's results against the peers'."""
        outputs = {}
        for name in loaded:
            path = os.path.join(self.folder, name)
            try:
                outputs[name] = read_outputs(path, int(self.engines[name, threads].ask("outputs", path)[0]))
            except Failed:
                pass
        found = {}
        for name in ENGINES[1:]:
            if "cpu" in outputs and name in outputs:
                found[name] = apart(outputs["cpu"], outputs[name])
        return found

    def measure(self, case, threads):
        """The rows of a case, one for each number of threads."""
        model, feeds = case.make()
        counts = len(feeds), len(model.graph.output)
        for count in threads:
            base = self.base(*counts, count)
            path = self.write("case", model, feeds)
            loaded, errors = self.load(path, count)
            compared = self.compare(loaded, count) if "cpu" in loaded and case.op not in RANDOM else {}
            slow = any(got["first_ns"] > 0.1e9 for got in loaded.values())
            times, failed = self.turns(loaded, count, 3 if slow else ROUNDS)
            for name in loaded:
                try:
                    self.engines[name, count].ask("drop")
                except Failed:
                    pass
            row = {"case": case.name, "family": case.family, "op": case.op, "dtype": case.dtype, "label": case.label, "threads": count, "half": case.half,
                   "apart": {name: value for name, (value, _) in compared.items()}, "differs": [name for name, (_, bad) in compared.items() if bad],
                   "engines": {}}
            for name in ENGINES:
                if name in times:
                    median = float(np.median(times[name]))
                    row["engines"][name] = {**loaded[name], "median_ns": median, "base_ns": base[name],
                                            "spread": round((max(times[name]) - min(times[name])) / median, 3)}
                else:
                    row["engines"][name] = {"error": errors.get(name) or failed.get(name)}
            yield row

    def end(self):
        for engine in self.engines.values():
            engine.end()


def chosen(options):
    """The cases that the options select, in the order of a hash, so that a part of them is a sample of all."""
    cases = grid.all_cases()
    if options.case:
        found = [case for case in cases if case.name in options.case]
        if len(found) != len(options.case):
            raise SystemExit(f"no such case: {', '.join(sorted(set(options.case) - {case.name for case in found}))}; --list lists all")
        return found
    share, shares = map(int, options.share.split("/"))
    return sorted((case for case in cases
                   if (not options.half or case.half == options.half) and (not options.op or case.op in options.op)
                   and (not options.dtype or case.dtype in options.dtype) and (not options.family or case.family in options.family)
                   and (case.digest >> 1) % shares == share - 1), key=lambda case: case.digest)


def coverage(program, cases):
    """Prints the operators of `kelp ops` that no case contains. Kelp's own operators have no peer; fusions make them."""
    listed = json.loads(subprocess.run([program, "ops", "--json"], check=True, capture_output=True, text=True).stdout)
    covered = {name for case in cases for name in case.operators if not name.startswith("fusion.")}
    wanted = [f"{entry['domain']}.{entry['name']}" for entry in listed if entry["domain"] != "kelp"]
    missing = [name for name in wanted if name not in covered]
    print(f"{len(wanted) - len(missing)} of {len(wanted)} operators have cases ({len(cases)} cases); missing:")
    for name in missing:
        print(f"  {name}")
    for name in sorted(covered - set(wanted)):
        print(f"  {name}: in the grid, but not an operator of Kelp")


def run(options):
    rows = report.read(options.results)
    measured = {(row["case"], row["threads"]) for row in rows} if not options.case else set()
    threads, until = list(map(int, options.threads.split(","))), time.monotonic() + options.minutes * 60
    cases = chosen(options)
    environment = peers.libraries(options.venv)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    done = 0
    with tempfile.TemporaryDirectory(dir=memory) as folder, open(options.results, "a", encoding="utf-8") as file:
        sweep = Sweep(options.bench, environment, threads, folder)
        for case in cases:
            wanted = [count for count in threads if (case.name, count) not in measured]
            if time.monotonic() > until:
                break
            for row in sweep.measure(case, wanted) if wanted else ():
                file.write(json.dumps(row) + "\n")
                file.flush()
                print(report.line(row), flush=True)
            done += 1
        sweep.end()
    print(f"{done} of {len(cases)} cases are measured", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=os.path.join(ROOT, "build/release/bench/bench_sweep"))
    parser.add_argument("--kelp", default=os.path.join(ROOT, "build/release/bin/kelp"))
    parser.add_argument("--venv", default=os.path.join(ROOT, "build/venv-openvino"), help="the environment with OpenVINO")
    parser.add_argument("--results", default=os.path.join(ROOT, "build/sweep.jsonl"), help="rows are appended; measured cases are skipped")
    parser.add_argument("--share", default="1/1", help="K/N: the K-th of N parts of the grid")
    parser.add_argument("--half", choices=("tune", "held-out"))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--minutes", type=float, default=1e9, help="stops after this time")
    parser.add_argument("--stratum", choices=tuple(report.STRATA), help="rows of the report, by the time of the faster peer")
    for word in ("op", "dtype", "family", "case"):
        parser.add_argument("--" + word, nargs="+")
    for word in ("list", "coverage", "report"):
        parser.add_argument("--" + word, action="store_true")
    parser.add_argument("--worst", type=int, default=50, help="rows of the list of losses")
    parser.add_argument("--json", help="writes the summary and the losses")
    parser.add_argument("--markdown", help="writes the tables of the report")
    parser.add_argument("--write", help="puts the tables between the marks of this file, and the plot beside it")
    options = parser.parse_args()
    if not re.fullmatch(r"\d+/\d+", options.share):
        parser.error("--share takes K/N")
    if options.coverage:
        coverage(options.kelp, grid.all_cases())
    elif options.list:
        for case in chosen(options):
            print(f"{case.half:9} {case.family:14} {case.name}")
    elif options.report:
        report.write(options)
    else:
        run(options)


if __name__ == "__main__":
    main()
