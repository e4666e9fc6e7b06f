#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Median latency, CPU time and memory of published models (tools/zoo.py) on Kelp, ONNX Runtime and OpenVINO. Each engine runs in a separate process
through its C interface. Blocks of the engines alternate (bench_turns); while one runs, the others sleep. Results are compared with ONNX Runtime's.

    peers.py --sample first|second [--json FILE] [NAME …]
    peers.py --bench PATH/bench_turns --models FOLDER [--seconds S] [--threads 1,2] [--precision f32|bf16] [--json FILE] [--write FILE.md] [NAME …]

With bf16, Kelp and OpenVINO multiply in bfloat16. ONNX Runtime cannot on a CPU and computes the reference results in f32, as does a second process of
Kelp. Besides the models of the zoo there is `resnet50` (tools/seeded_light.py). --sample measures a half of tools/sample.py, which needs the packages of
tools/requirements-sample.txt.

The script installs OpenVINO into --venv if it is missing. --write puts the tables between the marks of docs/performance.md, and the plot beside it;
--from FILE reads the output of --json instead of measuring. bench_peak (in the directory of bench_turns) measures the peak rates of the machine in the
same run; bench/effort.py computes the work of a model.
"""
import argparse
import datetime
import glob
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap

import numpy as np
import onnx

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, folder) for folder in ("tools", "bench", os.path.join("tests", "ops"))]
import effort  # noqa: E402
import sample  # noqa: E402
import zoo  # noqa: E402
from cases.common import Writer  # noqa: E402

OPENVINO = "openvino==2026.4.1"
BLOCKS = 8
STARTS = 3
ENGINES = {"cpu": "Kelp", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
PEERS = ("onnxruntime", "openvino")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
BEGIN_SAMPLE, END_SAMPLE = "<!-- measured sample: begin -->", "<!-- measured sample: end -->"
BEGIN_BF16, END_BF16 = "<!-- measured bf16: begin -->", "<!-- measured bf16: end -->"
# Models that round to 8 bits differ more. Tolerance: largest difference divided by the largest result.
APART_BF16 = 0.2
EXTRA = {"resnet50": ("seeded_light.py", "resnet50")}


def libraries(venv):
    """The environment that names both peers' libraries."""
    if not os.path.exists(os.path.join(venv, "bin", "python")):
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([os.path.join(venv, "bin", "pip"), "install", "-q", "--disable-pip-version-check", OPENVINO], check=True)
    folder = glob.glob(os.path.join(venv, "lib", "python3*", "site-packages", "openvino", "libs"))[0]
    runtime = os.path.dirname(importlib.util.find_spec("onnxruntime").origin)
    return {**os.environ, "KELP_OPENVINO_LIBRARY": sorted(glob.glob(os.path.join(folder, "libopenvino_c.so*")))[0],
            "LD_LIBRARY_PATH": folder, "KELP_ONNXRUNTIME_LIBRARY": sorted(glob.glob(os.path.join(runtime, "capi", "libonnxruntime.so*")))[0]}


def ended(process, error):
    process.stdin.close()
    process.wait()
    error.seek(0)
    return {"error": (error.read().strip() or f"ended with {process.returncode}").splitlines()[0]}


def measure(bench, environment, path, feed, threads, seconds, precision="f32"):
    """A row for each engine, or {"error": …}; "apart" of a row is the difference from ONNX Runtime's results."""
    rows, results = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        Writer(folder).case("case", onnx.ModelProto(), list(feed.items()), [], 0, 0)
        running = {}

        def begin(engine):
            error = open(os.path.join(folder, engine + ".err"), "w+", encoding="utf-8")
            process = subprocess.Popen([bench, path, os.path.join(folder, "case.bin"), str(threads), os.path.join(folder, engine), engine.removesuffix("_f32")]
                                       + [precision] * (precision != "f32" and engine in ("cpu", "openvino")),
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=error, text=True, env=environment)
            if process.stdout.readline() == "done\n":
                running[engine] = (process, error)
            else:
                rows[engine] = ended(process, error)

        def run_block(engine, length):
            process, error = running[engine]
            process.stdin.write(f"{length}\n")
            process.stdin.flush()
            if process.stdout.readline() != "done\n":
                rows[engine] = ended(*running.pop(engine))

        def end(engine):
            process, error = running.pop(engine)
            process.stdin.close()
            said = json.loads(process.stdout.readline())
            process.wait()
            error.close()
            return said

        for engine in [*ENGINES] + ["cpu_f32"] * (precision != "f32"):
            begin(engine)
        for _ in range(BLOCKS):
            for engine in list(running):
                run_block(engine, seconds / BLOCKS)
        for engine in list(running):
            rows[engine] = end(engine)
            results[engine] = np.fromfile(os.path.join(folder, engine), np.float32)
        # a process loads once: others, one after the other in another order each time, tell chance from habit
        loads = {engine: [rows[engine]] for engine in results}
        for start in range(STARTS - 1):
            for engine in sorted(loads, reverse=start % 2 == 0):
                begin(engine)
                if engine in running:
                    run_block(engine, 0.001)
                if engine in running:
                    loads[engine].append(end(engine))
        for engine, said in loads.items():
            rows[engine].update({key: statistics.median(one[key] for one in said) for key in ("load_ns", "first_ns")})
    truth = results.get("onnxruntime")
    for engine, result in results.items():
        if truth is not None and len(truth) and len(truth) == len(result):
            largest = float(np.abs(truth).max())
            rows[engine].update(largest=largest, apart=float(np.abs(result - truth).max()) / max(largest, 1e-30))
    return rows


def fetch(folder, names):
    """Paths by name: of the zoo, and of those that are made for this."""
    made = {name: os.path.join(folder, name + ".onnx") for name in names if name in EXTRA}
    for name, path in made.items():
        if not os.path.exists(path):
            tool, word = EXTRA[name]
            subprocess.run([sys.executable, os.path.join(ROOT, "tools", tool), word, path], check=True)
    others = [name for name in names if name not in EXTRA]
    return {**(zoo.fetch(folder, others) if others else {}), **made}


def feed_of(name, folder):
    if name == "resnet50":
        return {"gpu_0/data_0": zoo.picture(np.random.default_rng(17), (1, 3, 224, 224))}
    return zoo.feeds(name, folder)[0]


def is_wrong(name, got, precision="f32"):
    if precision == "bf16":
        return got.get("apart", 0) > APART_BF16
    rtol, atol = sample.tolerance(name) if name in sample.NAMES else zoo.TOLERANCES.get(name.split(":")[0], zoo.TOLERANCE)
    return name not in zoo.BY_SPECTRUM and got.get("apart", 0) * got.get("largest", 1) > atol + rtol * got.get("largest", 1)


def time_text(ns):
    return f"{ns / 1e3:.1f} µs" if ns < 1e6 else f"{ns / 1e6:.2f} ms"


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def better(row, key):
    """The smaller of the peers' numbers, of those that run the model."""
    return min(row[peer][key] for peer in PEERS if key in row[peer])


def beyond(row, engine):
    """Peak memory less the weights; weights that were never touched can make that less than nothing: a MiB is the least."""
    return max(row[engine]["peak_bytes"] - row["weights"], 2**20)


def share(row, engine, peaks):
    """Of the machine's peak, in percent: multiplying, or reading all weights once, whichever it comes closer to."""
    got, peak = row[engine], peaks[str(row["threads"])]
    seconds = (min(got["median_ns"], got["cpu_ns"]) if row["threads"] == 1 else got["median_ns"]) / 1e9  # time given to others does not count
    return max((100 * row["flops"] / seconds / peak["flops"], ""), (100 * row["weights"] / seconds / peak["bytes"], " of bandwidth"))


def share_text(row, peaks):
    if not peaks or "flops" not in row or better(row, "median_ns") <= 2e6:
        return ""
    fastest = min((peer for peer in PEERS if "median_ns" in row[peer]), key=lambda peer: row[peer]["median_ns"])
    ours, theirs = share(row, "cpu", peaks), share(row, fastest, peaks)
    return f"{ours[0]:.0f} % ({theirs[0]:.0f} %){ours[1]}"


def ratio(row, key="median_ns"):
    if key == "beyond":
        return beyond(row, "cpu") / min(beyond(row, peer) for peer in PEERS if "peak_bytes" in row[peer])
    if key == "start_ns":
        return start(row["cpu"]) / min(start(row[peer]) for peer in PEERS if "load_ns" in row[peer])
    return row["cpu"][key] / better(row, key)


def start(got):
    return got["load_ns"] + got["first_ns"]


def complete(row):
    return "median_ns" in row["cpu"] and any("median_ns" in row[peer] for peer in PEERS)


def apart_text(row, engine):
    return f"{row[engine]['apart']:.0e}" if "apart" in row[engine] else ""


def summary(rows, peaks):
    yield ("| model | threads | Kelp | ONNX Runtime | OpenVINO | Kelp / faster peer | CPU time | load + first | peak memory | beyond weights |"
           " % of machine peak (faster peer) |")
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for row in rows:
        medians = [time_text(row[engine]["median_ns"]) if "median_ns" in row[engine] else "not supported" for engine in ENGINES]
        ratios = [f"{ratio(row, key):.2f}" if complete(row) else "" for key in ("median_ns", "cpu_ns", "start_ns", "peak_bytes")]
        ratios.append(f"{ratio(row, 'beyond'):.2f}" if complete(row) and "weights" in row else "")
        ratios.append(share_text(row, peaks) if complete(row) else "")
        yield f"| {row['model']} | {row['threads']} | " + " | ".join(medians) + f" | **{ratios[0]}** | " + " | ".join(ratios[1:]) + " |"


def means(rows):
    yield "| Kelp / faster peer | threads | geometric mean | worst | rows |"
    yield "|---|--:|--:|--:|--:|"
    rows = [row for row in rows if complete(row)]
    heavy = ("cpu_ns", "CPU time, models above 2 ms", lambda row: better(row, "median_ns") > 2e6)
    slow = ("median_ns", "median, models above 2 ms", lambda row: better(row, "median_ns") > 2e6)
    fast = ("median_ns", "median, models below 2 ms", lambda row: better(row, "median_ns") <= 2e6)
    others = (("load_ns", "load"), ("first_ns", "first inference"), ("start_ns", "load + first inference"), ("p99_ns", "p99"),
              ("cpu_ns", "CPU time, all"), ("peak_bytes", "peak memory of the process"))
    held = ("beyond", "memory beyond weights", lambda row: "weights" in row)
    for key, label, fits in (slow, fast, heavy, *((*other, lambda row: True) for other in others), held):
        for threads in sorted({row["threads"] for row in rows}):
            chosen = {row["model"]: ratio(row, key) for row in rows if row["threads"] == threads and fits(row)}
            if chosen:
                worst = max(chosen, key=chosen.get)
                yield f"| {label} | {threads} | **{mean(list(chosen.values())):.2f}** | {chosen[worst]:.2f} ({worst}) | {len(chosen)} |"


def bf16_ratio(row, key="median_ns", to="openvino"):
    return row["cpu"][key] / row[to][key] if key in row["cpu"] and key in row.get(to, {}) else math.nan


def bf16_summary(rows):
    yield ("| model | threads | Kelp bf16 | OpenVINO bf16 | Kelp / OpenVINO | CPU time | Kelp f32 | bf16 / f32 | ONNX Runtime f32 | difference |"
           " difference of OpenVINO |")
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for row in rows:
        times = {engine: time_text(row[engine]["median_ns"]) if "median_ns" in row.get(engine, {}) else "not supported"
                 for engine in (*ENGINES, "cpu_f32")}
        ratios = [f"{value:.2f}" if value == value else "" for value in
                  (bf16_ratio(row), bf16_ratio(row, "cpu_ns"), bf16_ratio(row, to="cpu_f32"))]
        yield (f"| {row['model']} | {row['threads']} | {times['cpu']} | {times['openvino']} | **{ratios[0]}** | {ratios[1]} | {times['cpu_f32']} | "
               f"{ratios[2]} | {times['onnxruntime']} | {apart_text(row, 'cpu')} | {apart_text(row, 'openvino')} |")


def details(rows):
    yield "| model | threads | engine | load | first | median | p99 | peak memory | CPU s per 1,000 | difference |"
    yield "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|"
    for row in rows:
        for engine, label in ENGINES.items():
            got = row[engine]
            if "error" in got:
                yield f"| {row['model']} | {row['threads']} | {label} | not supported | | | | | | |"
                continue
            yield (f"| {row['model']} | {row['threads']} | {label} | " + " | ".join(time_text(got[key]) for key in
                   ("load_ns", "first_ns", "median_ns", "p99_ns")) + f" | {got['peak_bytes'] / 2**20:.1f} MiB |"
                   f" {got['cpu_ns'] / 1e6:.3g} | {apart_text(row, engine)} |")


def plot(rows):
    """An SVG: a line for each model, a mark for each number of threads, on a logarithmic axis of Kelp's median to the better peer's."""
    by_model = {}
    for row in filter(complete, rows):
        by_model.setdefault(row["model"], {})[row["threads"]] = ratio(row)
    order = sorted(by_model, key=lambda name: mean(list(by_model[name].values())))
    values = [value for marks in by_model.values() for value in marks.values()]
    low, high = math.log2(min(0.125, *values)), math.log2(max(2, *values))
    left, right, top, step = 130, 700, 60, 22
    height = top + step * len(order) + 20

    def at(value):
        return left + (right - left) * (math.log2(value) - low) / (high - low)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="730" height="{height}" font-family="sans-serif" font-size="12">',
           "<!-- SPDX-License-Identifier: Apache-2.0 -->", f'<rect width="730" height="{height}" fill="#fff"/>',
           f'<text x="{left}" y="18">Median latency of Kelp / the faster of ONNX Runtime and OpenVINO (below 1: Kelp is faster)</text>',
           f'<circle cx="{left + 5}" cy="32" r="4" fill="#1b6e53"/><text x="{left + 14}" y="36">1 thread</text>'
           f'<circle cx="{left + 85}" cy="32" r="4" fill="#fff" stroke="#1b6e53" stroke-width="1.6"/><text x="{left + 94}" y="36">2 threads</text>']
    for power in range(math.ceil(low), math.floor(high) + 1):
        x, label = at(2.0 ** power), f"{2.0 ** power:g}"
        out.append(f'<line x1="{x:.1f}" y1="{top - 8}" x2="{x:.1f}" y2="{height - 16}" stroke="{"#444" if power == 0 else "#ddd"}"/>'
                   f'<text x="{x:.1f}" y="{height - 3}" text-anchor="middle">{label}</text>')
    for i, name in enumerate(order):
        y = top + step * i + 6
        out.append(f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{name}</text>')
        for threads, value in by_model[name].items():
            fill = "#1b6e53" if threads == 1 else "#fff"
            out.append(f'<circle cx="{at(value):.1f}" cy="{y}" r="4.5" fill="{fill}" stroke="#1b6e53" stroke-width="1.6"/>')
    return "\n".join(out) + "\n</svg>\n"


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return f"{len(names)} × {names[0]}" if names else os.uname().machine


def commit():
    return subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()


def write(path, report):
    rows = report["rows"]
    begin, end = (BEGIN_SAMPLE, END_SAMPLE) if report.get("sample") else (BEGIN_BF16, END_BF16) if report.get("precision") == "bf16" else (BEGIN, END)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    loads = " and ".join(f"{load:.1f}" for load in report["load"])
    peaks = report.get("peak", {})
    most = "; ".join(f"{peak['flops'] / 1e9:.0f} GFLOP/s and {peak['bytes'] / 1e9:.0f} GB/s with {threads} thread{'s' * (str(threads) != '1')}"
                     for threads, peak in peaks.items())
    head = (f"Measured {report['date']} at commit {report['commit']} on {report['machine']}, {report['seconds']:g} s per engine, model and thread "
            f"count. System load before and after, including the benchmark: {loads}."
            + (f" Peak of the machine: {most}." if most else ""))
    head = textwrap.fill(head, 100) + "\n\n"
    if begin != BEGIN:
        body = "\n".join(bf16_summary(rows)) if begin == BEGIN_BF16 else "\n".join(means(rows)) + "\n\n" + "\n".join(summary(rows, {}))
        with open(path, "w", encoding="utf-8") as file:
            file.write(before + begin + "\n" + head + body + "\n" + end + after)
        return
    parts = ["\n".join(means(rows)), "\n".join(summary(rows, peaks)), "### All results\n\n" + "\n".join(details(rows))]
    with open(path, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + "\n" + head + "\n\n".join(parts) + "\n" + END + after)
    with open(os.path.join(os.path.dirname(path), "pictures", "performance.svg"), "w", encoding="utf-8") as file:
        file.write(plot(rows))


def measure_peaks(options, peaks):
    """Multiplications with additions, and bytes read, a second by number of threads: the best seen."""
    program = os.path.join(os.path.dirname(options.bench), "bench_peak")
    for threads in options.threads.split(","):
        got = json.loads(subprocess.run([program, threads], check=True, capture_output=True, text=True).stdout)
        peaks[threads] = {key: max(got[key], peaks.get(threads, got)[key]) for key in ("flops", "bytes")}


def run(options):
    environment = libraries(options.venv)
    report = {"date": datetime.date.today().isoformat(), "machine": machine(), "seconds": options.seconds, "load": [os.getloadavg()[0]], "rows": [],
              "commit": commit(), "precision": options.precision, "sample": options.sample, "peak": {}}
    measure_peaks(options, report["peak"])
    if options.sample:
        paths = sample.fetch(options.sample_models, options.names or sample.names(options.sample), options.sample_python)
    else:
        paths = fetch(options.models, options.names or zoo.MEASURED)
    for name, path in paths.items():
        feed = sample.feeds(name, path) if options.sample else feed_of(name, options.models)
        work = {"weights": effort.weights(path)} if options.sample else {"flops": effort.flops(path, feed), "weights": effort.weights(path)}
        # the accuracy level of such a model permits 8-bit activations in blocks of this size
        extra = {"KELP_OPENVINO_GROUP_SIZE": "32"} if name.split(":")[0] in zoo.BY_DISTRIBUTION else {}
        for threads in map(int, options.threads.split(",")):
            row = {"model": name, "threads": threads, **work,
                   **measure(options.bench, {**environment, **extra}, path, feed, threads, options.seconds, options.precision)}
            report["rows"].append(row)
            words = [time_text(row[engine]["median_ns"]) if "median_ns" in row[engine] else row[engine]["error"][:100]
                     for engine in (*ENGINES, "cpu_f32") if engine in row]
            shown = bf16_ratio(row) if options.precision == "bf16" else ratio(row) if complete(row) else math.nan
            print(f"{name:19} {threads} " + "  ".join(f"{word:>10}" for word in words) + f"  {shown:5.2f}"
                  + (f"  beyond {ratio(row, 'beyond'):.2f}  {share_text(row, report['peak'])}" if complete(row) and options.precision == "f32" else "")
                  + f"  apart {apart_text(row, 'cpu')} {apart_text(row, 'openvino')}", flush=True)
    measure_peaks(options, report["peak"])
    report["load"].append(os.getloadavg()[0])
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=os.path.join(ROOT, "build/release/bench/bench_turns"))
    parser.add_argument("--models", default=os.path.join(ROOT, "build/zoo"))
    parser.add_argument("--venv", default=os.path.join(ROOT, "build/venv-openvino"))
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--sample", choices=("first", "second"), help="measures a half of tools/sample.py instead of the zoo")
    parser.add_argument("--sample-models", default=os.path.join(ROOT, "build/sample"))
    parser.add_argument("--sample-python", default=os.path.join(ROOT, "build/venv-sample/bin/python"), help="with tools/requirements-sample.txt")
    parser.add_argument("--json")
    parser.add_argument("--from", dest="source")
    parser.add_argument("--write")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.source:
        with open(options.source, encoding="utf-8") as file:
            report = json.load(file)
    else:
        report = run(options)
    precision = report.get("precision", "f32")
    print("\n" + "\n".join(means(report["rows"]) if precision == "f32" else bf16_summary(report["rows"])))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
    if options.write:
        write(options.write, report)
    wrong = [row["model"] for row in report["rows"] if is_wrong(row["model"], row["cpu"], precision)]
    if wrong:
        raise SystemExit(f"results differ from ONNX Runtime's: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
