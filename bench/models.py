#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Load time, first and median latency with 1 and 2 threads, and peak memory of the example models: Kelp and ONNX Runtime in turn in the same
run, each measurement in a separate process.

    models.py --kelp PATH [--seconds S] [--rounds N] [--json FILE]

Measures examples/models/digits, and examples-extra/models/minilm if `make example-minilm` has created it. Each number is the best of the rounds,
because other work on the machine can only increase it. The peak memory of ONNX Runtime includes Python and numpy, which the row "python" shows.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = (
    ("digits", "examples/models/digits/1/model.onnx", {"image": (1, 1, 8, 8)}),
    ("digits, batch 32", "examples/models/digits/1/model.onnx", {"image": (32, 1, 8, 8)}),
    ("minilm, 1x16", "examples-extra/models/minilm/1/model.onnx",
     {name: (1, 16) for name in ("input_ids", "attention_mask", "token_type_ids")}),
    ("minilm, 8x128", "examples-extra/models/minilm/1/model.onnx",
     {name: (8, 128) for name in ("input_ids", "attention_mask", "token_type_ids")}),
)
COLUMNS = ("load_ns", "first_ns", "median_ns", "p99_ns", "peak_rss_bytes")


def shape_text(shape):
    return "x".join(map(str, shape))


def measure_kelp(kelp, path, shapes, threads, seconds):
    words = [kelp, "bench", path, "--json", "--threads", str(threads), "--seconds", str(seconds)]
    for name, shape in shapes.items():
        words += ["--shape", f"{name}={shape_text(shape)}"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{' '.join(words)}\n{ended.stderr}")
    return json.loads(ended.stdout)["results"][0]


def measure_onnxruntime(path, shapes, threads, seconds):
    words = [sys.executable, os.path.abspath(__file__), "--child", path, "--child-threads", str(threads), "--seconds", str(seconds)]
    for name, shape in shapes.items():
        words += ["--child-shape", f"{name}={shape_text(shape)}"]
    return json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def child(options):
    """ONNX Runtime in this process; the same inputs as `kelp bench` makes up: floats in [0, 1), integers 0 or 1."""
    import numpy as np
    result = {}
    if options.child != "-":
        import onnxruntime
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = options.child_threads
        settings.inter_op_num_threads = 1
        settings.log_severity_level = 3
        began = time.perf_counter_ns()
        session = onnxruntime.InferenceSession(options.child, settings, providers=["CPUExecutionProvider"])
        result["load_ns"] = time.perf_counter_ns() - began
        random = np.random.default_rng(1)
        shapes = dict(word.split("=") for word in options.child_shape)
        inputs = {}
        for given in session.get_inputs():
            shape = [int(extent) for extent in shapes[given.name].split("x")]
            inputs[given.name] = (random.random(shape, dtype=np.float32) if given.type == "tensor(float)"
                                  else random.integers(0, 2, shape, dtype=np.int64))
        began = time.perf_counter_ns()
        session.run(None, inputs)
        result["first_ns"] = time.perf_counter_ns() - began
        samples, start = [], time.perf_counter()
        while len(samples) < 10 or time.perf_counter() - start < options.seconds:
            began = time.perf_counter_ns()
            session.run(None, inputs)
            samples.append(time.perf_counter_ns() - began)
        samples.sort()
        result["median_ns"] = samples[len(samples) // 2]
        result["p99_ns"] = samples[len(samples) * 99 // 100]
        result["runs"] = len(samples)
    result["peak_rss_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(result))


def best(rows):
    return {key: min(row[key] for row in rows) for key in rows[0]}


def shown(key, value):
    if key == "peak_rss_bytes":
        return f"{value / 2**20:.1f} MiB"
    return f"{value / 1e3:.1f} us" if value < 1e6 else f"{value / 1e6:.2f} ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kelp", default=os.path.join(ROOT, "build/release/bin/kelp"))
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--child-threads", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--child-shape", action="append", default=[], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options)
        return
    report = []
    print(f"{'model':18} {'threads':>7} {'':12} {'load':>12} {'first':>12} {'median':>12} {'p99':>12} {'peak memory':>12}")
    for label, path, shapes in MODELS:
        whole = os.path.join(ROOT, path)
        if not os.path.exists(whole):
            print(f"{label:18} (not there; make example-minilm makes it)")
            continue
        for threads in (1, 2):
            rows = {"kelp": [], "onnxruntime": []}
            for _ in range(options.rounds):
                rows["kelp"].append(measure_kelp(options.kelp, whole, shapes, threads, options.seconds))
                rows["onnxruntime"].append(measure_onnxruntime(whole, shapes, threads, options.seconds))
            for name, measured in rows.items():
                row = best(measured)
                report.append({"model": label, "threads": threads, "engine": name, **row})
                print(f"{label:18} {threads:7} {name:12} " + " ".join(f"{shown(key, row[key]):>12}" for key in COLUMNS), flush=True)
    base = measure_onnxruntime("-", {}, 1, 0)
    print(f"{'(python, numpy)':18} {'':7} {'':12} {'':>12} {'':>12} {'':>12} {'':>12} {shown('peak_rss_bytes', base['peak_rss_bytes']):>12}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)


if __name__ == "__main__":
    main()
