#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Median latency of published models (tools/zoo.py) on Kelp and ONNX Runtime, in one process through the same C interface, in eight alternating blocks
each. CPU time is that of the whole process per inference, including threads that spin. Results are compared.

    zoo.py --bench PATH/bench_providers --models FOLDER [--seconds S] [--threads 1,2] [--json FILE] [NAME …]
"""
import argparse
import glob
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile

import onnx

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tools"), os.path.join(ROOT, "tests", "ops")]
import zoo  # noqa: E402
from cases.common import Writer  # noqa: E402


def peer_library():
    folder = os.path.dirname(importlib.util.find_spec("onnxruntime").origin)
    return sorted(glob.glob(os.path.join(folder, "capi", "libonnxruntime.so*")))[0]


def measure(bench, path, feed, threads, seconds):
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(folder)
        writer.case("case", onnx.ModelProto(), list(feed.items()), [], 0, 0)
        words = [bench, path, os.path.join(folder, "case.bin"), str(threads), str(seconds), "cpu", "onnxruntime"]
        ended = subprocess.run(words, capture_output=True, text=True, check=False,
                               env={**os.environ, "KELP_ONNXRUNTIME_LIBRARY": peer_library()})
    if ended.returncode:
        return None, (ended.stderr.strip() or f"ended with {ended.returncode}").splitlines()[0][:120]
    return [json.loads(line) for line in ended.stdout.splitlines()], None


def time_text(ns):
    return f"{ns / 1e3:.1f} us" if ns < 1e6 else f"{ns / 1e6:.2f} ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=os.path.join(ROOT, "build/release/bench/bench_providers"))
    parser.add_argument("--models", default=os.path.join(ROOT, "build/zoo"))
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--json")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    paths = zoo.fetch(options.models, options.names or zoo.MEASURED)
    report, ratios = [], {"above 2 ms": [], "below 2 ms": []}
    print("| model | threads | Kelp | ONNX Runtime | ratio | p99 ratio | CPU ratio | load ratio | apart |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, path in paths.items():
        for threads in map(int, options.threads.split(",")):
            rows, why = measure(options.bench, path, zoo.feeds(name, options.models)[0], threads, options.seconds)
            if why:
                print(f"| {name} | {threads} | {why} | | | | | | |", flush=True)
                continue
            ours, theirs = rows
            report.append({"model": name, "threads": threads, "kelp": ours, "onnxruntime": theirs})
            ratio = {key: ours[key] / theirs[key] for key in ("median_ns", "p99_ns", "cpu_ns", "load_ns")}
            ratios["above 2 ms" if theirs["median_ns"] > 2e6 else "below 2 ms"].append(ratio["median_ns"])
            print(f"| {name} | {threads} | {time_text(ours['median_ns'])} | {time_text(theirs['median_ns'])} | {ratio['median_ns']:.2f} |"
                  f" {ratio['p99_ns']:.2f} | {ratio['cpu_ns']:.2f} | {ratio['load_ns']:.2f} | {theirs['apart']:.0e} |", flush=True)
    for kind, values in ratios.items():
        if values:
            mean = math.exp(sum(map(math.log, values)) / len(values))
            print(f"\n{kind}: geometric mean {mean:.2f} over {len(values)}, worst {max(values):.2f}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)


if __name__ == "__main__":
    main()
