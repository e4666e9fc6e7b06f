#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Throughput and latency of servers under open-loop load over HTTP, with at most 64 requests outstanding.

    latency.py [--build DIR] [--nvidia DIR] [--onnxruntime DIR] [--minilm FILE] [--models digits,minilm] [--servers NAMES]
               [--seconds S] [--rounds N] [--target-ms MS] [--first R] [--step X] [--rates R,R,…] [--out PREFIX]

Servers: kelp (one request per execution), kelp-batch (dynamic_batching with a queue delay), kelp-target (kelp_latency_target_us), nvidia-python
(NVIDIA's server, a Python model that calls ONNX Runtime with the batch), nvidia-ort and nvidia-ort-batch (NVIDIA's onnxruntime backend, from the directory of
--onnxruntime). All have one instance and the same number of threads for operators. For rates that grow from --first by the factor --step, each
server in turn receives requests for --seconds or more (bench/load.c), until it is saturated: at two rates in a row, it completes less than 97 % of the arrivals,
or p99 exceeds the largest limit. A p99 is the median of the rounds.

With --rates, the servers receive exactly these rates (0: a new request follows each response), and only the rows of these rates are printed and written.

Prints the throughput at equal p99, the p99 at low load, and for kelp-target the p99 relative to the target. Writes PREFIX.tsv, and PREFIX.svg and
PREFIX.png if matplotlib is there. Before that, prints the ratio of the two engines in process.

Needs numpy 1.26 and onnxruntime, and matplotlib for the plot: the Python model runs in NVIDIA's own Python, which imports the packages of this one.
"""
import argparse
import glob
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.request

import models as in_process
import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUTSTANDING = 64
MINILM_TOKENS = 32
# name: ONNX inputs without the batch dimension; ONNX outputs; batch size, queue delay, first rate, limits of p99 in ms, threads for operators.
MODELS = {
    "digits": {"inputs": {"image": ("FP32", [1, 8, 8])}, "outputs": {"probabilities": ("FP32", [10]), "digit": ("INT64", [])}, "request": "probabilities",
               "batch": 32, "delay_us": 200, "rate": 500, "limits": (1, 2, 5, 10, 20), "threads": 1},
    "minilm": {"inputs": {name: ("INT64", [MINILM_TOKENS]) for name in ("input_ids", "attention_mask", "token_type_ids")},
               "outputs": {"sentence_embedding": ("FP32", [384])}, "request": "sentence_embedding",
               "batch": 8, "delay_us": 2000, "rate": 8, "limits": (20, 50, 100, 200, 400), "threads": 2},
}
SERVERS = ("kelp", "kelp-batch", "kelp-target", "nvidia-python", "nvidia-ort", "nvidia-ort-batch")
PYTHON_MODEL = '''
import os
import numpy
import onnxruntime
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = @THREADS@
        options.inter_op_num_threads = 1
        folder = os.path.join(args["model_repository"], args["model_version"])
        self.session = onnxruntime.InferenceSession(os.path.join(folder, "weights.onnx"), options, providers=["CPUExecutionProvider"])

    def execute(self, requests):
        names = @INPUTS@
        given = [[pb_utils.get_input_tensor_by_name(request, name).as_numpy() for request in requests] for name in names]
        sizes = [len(array) for array in given[0]]
        joined = {name: arrays[0] if len(arrays) == 1 else numpy.concatenate(arrays) for name, arrays in zip(names, given)}
        output, = self.session.run(["@OUTPUT@"], joined)
        responses, at = [], 0
        for size in sizes:
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("@OUTPUT@", output[at:at + size])]))
            at += size
        return responses
'''


def write_config(server, name, options):
    model = MODELS[name]
    lines = [f"max_batch_size: {model['batch']}"]
    for kind in ("inputs", "outputs"):
        for tensor, (dtype, dims) in model[kind].items():
            if server == "nvidia-python" and kind == "outputs" and tensor != model["request"]:
                continue
            reshape = "" if dims else " reshape { shape: [ ] }"
            lines.append(f'{kind[:-1]} [ {{ name: "{tensor}" data_type: TYPE_{dtype} dims: {dims or [1]}{reshape} }} ]')
    lines.append("instance_group [ { kind: KIND_CPU count: 1 } ]")
    if server == "nvidia-python":
        lines.append('backend: "python"')
    elif server.startswith("nvidia"):
        lines.append('backend: "onnxruntime"')
        lines.append('parameters { key: "inter_op_thread_count" value { string_value: "1" } }')
    if server != "nvidia-python":
        lines.append(f'parameters {{ key: "intra_op_thread_count" value {{ string_value: "{model["threads"]}" }} }}')
    if server == "kelp-target":
        target_us = int(options.target_ms.get(name) * 1000)
        lines.append(f'dynamic_batching {{ }}\nparameters {{ key: "kelp_latency_target_us" value {{ string_value: "{target_us}" }} }}')
    elif server.endswith("-batch"):
        lines.append(f"dynamic_batching {{ max_queue_delay_microseconds: {model['delay_us']} }}")
    elif server == "nvidia-python":
        lines.append("dynamic_batching { }")
    return "\n".join(lines) + "\n"


def write_repository(folder, server, name, path, options):
    os.makedirs(f"{folder}/{name}/1")
    if server == "nvidia-python":
        os.symlink(path, f"{folder}/{name}/1/weights.onnx")
        text = PYTHON_MODEL
        for key, value in (("THREADS", MODELS[name]["threads"]), ("INPUTS", list(MODELS[name]["inputs"])), ("OUTPUT", MODELS[name]["request"])):
            text = text.replace(f"@{key}@", str(value))
        with open(f"{folder}/{name}/1/model.py", "w", encoding="ascii") as file:
            file.write(text)
    else:
        os.symlink(path, f"{folder}/{name}/1/model.onnx")
    with open(f"{folder}/{name}/config.pbtxt", "w", encoding="ascii") as file:
        file.write(write_config(server, name, options))


def stage_nvidia(folder, options):
    """NVIDIA's backends: python with the packages of this Python next to its stub, and onnxruntime."""
    home = os.path.join(options.nvidia, "pytriton", "tritonserver")
    if not os.path.exists(os.path.join(home, "bin", "tritonserver")):
        return None
    shutil.copytree(os.path.join(home, "backends"), f"{folder}/backends")
    stub = os.path.join(home, "python_backend_stubs", f"{sys.version_info.major}.{sys.version_info.minor}", "triton_python_backend_stub")
    shutil.copy(stub, f"{folder}/backends/python")
    os.chmod(f"{folder}/backends/python/triton_python_backend_stub", 0o755)
    for package in ("numpy*", "onnxruntime*", "flatbuffers*", "packaging*", "google*", "protobuf*"):
        for path in glob.glob(os.path.join(sysconfig.get_paths()["platlib"], package)):
            os.symlink(path, os.path.join(folder, "backends", "python", os.path.basename(path)))
    if os.path.exists(os.path.join(options.onnxruntime, "libtriton_onnxruntime.so")):
        os.symlink(os.path.abspath(options.onnxruntime), f"{folder}/backends/onnxruntime")
    else:
        print(f"NVIDIA's onnxruntime backend is not in {options.onnxruntime}")
    os.makedirs(f"{folder}/names")
    libraries = os.path.join(options.nvidia, "nvidia_pytriton.libs")
    os.symlink(glob.glob(f"{libraries}/libtritonserver-*.so")[0], f"{folder}/names/libtritonserver.so")
    return [os.path.join(home, "bin", "tritonserver"), "--backend-directory", f"{folder}/backends", "--allow-grpc", "false", "--allow-metrics", "false",
            "--log-info", "false"], {"LD_LIBRARY_PATH": f"{folder}/names:{libraries}"}


class Server:
    """A server process with one model."""

    def __init__(self, command, environment, port, log):
        self.port, self.log = port, log
        with open(log, "w", encoding="utf-8") as file:
            self.process = subprocess.Popen([*command, "--http-address", "127.0.0.1", "--http-port", str(port)], stdout=file, stderr=file,
                                            env={**os.environ, **environment})

    def wait(self):
        for _ in range(1200):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v2/health/ready", timeout=10):
                    return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        with open(self.log, encoding="utf-8", errors="replace") as file:
            raise SystemExit(f"the server is not ready:\n{file.read()[-4000:]}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def cpu_s(self):
        """CPU time of the server and its children."""
        total = 0
        for pid in [str(self.process.pid), *subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=False).stdout.split()]:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                fields = file.read().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")


def free_port():
    import socket
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        return each.getsockname()[1]


def write_body(path, name):
    """A request with batch size 1 and binary tensors; returns the length of its JSON part."""
    data, inputs = b"", []
    for tensor, (dtype, dims) in MODELS[name]["inputs"].items():
        array = numpy.ones([1, *dims], dtype={"FP32": numpy.float32, "INT64": numpy.int64}[dtype])
        inputs.append({"name": tensor, "datatype": dtype, "shape": list(array.shape), "parameters": {"binary_data_size": array.nbytes}})
        data += array.tobytes()
    header = json.dumps({"inputs": inputs, "outputs": [{"name": MODELS[name]["request"], "parameters": {"binary_data": True}}]}).encode()
    with open(path, "wb") as file:
        file.write(header + data)
    return len(header)


def offer(options, server, name, body, header_bytes, rate):
    """Returns what arrived and was answered per second, and quantiles of the latency in ms; CPU of the server in us per response."""
    before = server.cpu_s()
    seconds = max(options.seconds, min(12, 150 / rate)) if rate else options.seconds  # enough requests for a p99
    text = subprocess.run([os.path.join(options.build, "bench", "bench_load"), str(server.port), f"/v2/models/{name}/infer", body, str(header_bytes),
                           str(rate), str(seconds), str(OUTSTANDING)], capture_output=True, text=True, check=False)
    if text.returncode:
        raise SystemExit(f"bench_load: {text.stderr}")
    arrived, answered, failed, *quantiles = map(float, text.stdout.split())
    if failed:
        raise SystemExit(f"{failed:.0f} requests failed")
    cpu_us = (server.cpu_s() - before) / max(answered * seconds, 1) * 1e6
    return {"offered": arrived, "answered": answered, "p50": quantiles[0] / 1e3, "p90": quantiles[1] / 1e3, "p99": quantiles[2] / 1e3,
            "max": quantiles[3] / 1e3, "cpu_us": cpu_us}


def median_row(rows):
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


def measure(options, servers, name, body, header_bytes, rate, rows):
    """Offers a rate to the servers in turns; appends the medians to their rows, and prints them with the range of p99."""
    measured = {server: [] for server in servers}
    for number in range(options.rounds):
        for server in list(servers)[::-1 if number % 2 else 1]:
            measured[server].append(offer(options, servers[server], name, body, header_bytes, rate))
    for server, found in measured.items():
        row = median_row(found)
        rows[server].append(row)
        p99 = [each["p99"] for each in found]
        print(f"{name:7} {server:17} {row['offered']:8.0f}/s arrive {row['answered']:8.0f}/s answered   p50 {row['p50']:8.2f}   p90 {row['p90']:8.2f}   "
              f"p99 {row['p99']:8.2f} ({min(p99):.2f}..{max(p99):.2f}) ms   {row['cpu_us']:8.1f} us CPU", flush=True)


def sweep(options, name, path, folder, chosen, nvidia):
    rows, servers = {}, {}
    body = f"{folder}/{name}.body"
    header_bytes = write_body(body, name)
    try:
        for server in chosen:
            if server.startswith("nvidia") and nvidia is None:
                continue
            if server.startswith("nvidia-ort") and not os.path.exists(f"{folder}/backends/onnxruntime"):
                continue
            repository = f"{folder}/{server}-{name}"
            write_repository(repository, server, name, path, options)
            command, environment = nvidia if server.startswith("nvidia") else ([os.path.join(options.build, "bin", "kelp"), "serve", "--log-info=false"], {})
            servers[server] = Server([*command, "--model-repository", repository], environment, free_port(), f"{folder}/{server}-{name}.log")
            servers[server].wait()
            rows[server] = []
        for server in servers.values():
            offer(options, server, name, body, header_bytes, 0)
        for rate in options.rates:
            measure(options, servers, name, body, header_bytes, rate, rows)
        if options.rates:
            return rows
        open_ones, rate, saturated = set(servers), options.first or MODELS[name]["rate"], dict.fromkeys(servers, 0)
        while open_ones:
            measured = {server: servers[server] for server in servers if server in open_ones}
            measure(options, measured, name, body, header_bytes, rate, rows)
            for server in measured:
                row = rows[server][-1]
                is_saturated = row["answered"] < 0.97 * row["offered"] or row["p99"] > MODELS[name]["limits"][-1]
                saturated[server] = saturated[server] + 1 if is_saturated else 0
                if saturated[server] == 2:
                    open_ones.discard(server)
            rate = rate * options.step
    finally:
        for server in servers.values():
            server.stop()
    return rows


def throughput_at(rows, limit_ms):
    """The largest rate of responses with a p99 of at most the limit, interpolated to the next measured rate."""
    best = 0.0
    for index, row in enumerate(rows):
        if row["p99"] <= limit_ms:
            best = max(best, row["answered"])
        elif index > 0 and rows[index - 1]["p99"] <= limit_ms:
            before = rows[index - 1]
            part = (limit_ms - before["p99"]) / (row["p99"] - before["p99"])
            best = max(best, before["answered"] + part * max(row["answered"] - before["answered"], 0))
    return best


def show(name, rows, options):
    limits = MODELS[name]["limits"]
    print(f"\n{name}: responses per second with a p99 of at most … ms\n" + f"{'':18}" + "".join(f"{limit:>9}" for limit in limits) + "   p99 at low load, ms")
    table = {server: [throughput_at(points, limit) for limit in limits] for server, points in rows.items()}
    for server, values in table.items():
        print(f"{server:18}" + "".join(f"{value:9.0f}" for value in values) + f"   {rows[server][0]['p99']:8.2f}")
    others = [values for server, values in table.items() if server.startswith("nvidia")]
    ours = [values for server, values in table.items() if server.startswith("kelp")]
    if others and ours:
        best = [max(column) for column in zip(*ours)]
        alternative = [max(column) for column in zip(*others)]
        print(f"{'kelp / best other':18}" + "".join(f"{a / b:9.2f}" if b else f"{'-':>9}" for a, b in zip(best, alternative)))
    if "kelp" in table and "kelp-batch" in table:
        print(f"{'batch / single':18}" + "".join(f"{a / b:9.2f}" if b else f"{'-':>9}" for a, b in zip(table["kelp-batch"], table["kelp"])))
    if "kelp-target" in rows:
        target = options.target_ms[name]
        peak = throughput_at(rows["kelp-target"], float("inf"))
        within = [row["offered"] for row in rows["kelp-target"] if row["p99"] <= target]
        missed = [row["offered"] for row in rows["kelp-target"] if row["p99"] > target and row["answered"] >= 0.97 * row["offered"]]
        print(f"latency target {target} ms: met up to {max(within, default=0):.0f}/s of at most {peak:.0f}/s; missed below saturation at "
              + (", ".join(f"{rate:.0f}/s" for rate in missed) or "no rate"))


def engines(options, name, path):
    """The ratio of the throughputs in process, one request at a time."""
    shapes = {tensor: (1, *dims) for tensor, (_, dims) in MODELS[name]["inputs"].items()}
    kelp = os.path.join(options.build, "bin", "kelp")
    for threads in (1, 2):
        ours, theirs = [], []
        for _ in range(3):
            ours.append(in_process.measure_kelp(kelp, path, shapes, threads, 1)["median_ns"])
            theirs.append(in_process.measure_onnxruntime(path, shapes, threads, 1)["median_ns"])
        print(f"{name}, in process, {threads} thread(s): Kelp {min(ours) / 1e3:.1f} us, ONNX Runtime {min(theirs) / 1e3:.1f} us, ratio {min(theirs) / min(ours):.2f}",
              flush=True)


def plot(results, prefix):
    try:
        import matplotlib
    except ImportError:
        print("no plot: there is no matplotlib")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot
    figure, axes = pyplot.subplots(1, len(results), figsize=(7 * len(results), 5), squeeze=False)
    for axis, (name, rows) in zip(axes[0], results.items()):
        for server, points in rows.items():
            axis.plot([row["answered"] for row in points], [row["p99"] for row in points], marker="o", markersize=3,
                      linestyle="-" if server.startswith("kelp") else "--", label=server)
        axis.set(title=name, xlabel="responses per second", ylabel="p99, ms", yscale="log", xscale="log")
        axis.grid(True, which="both", alpha=0.3)
        axis.legend()
    figure.tight_layout()
    for ending in (".svg", ".png"):
        figure.savefig(prefix + ending)
        print(f"plot: {prefix}{ending}")


def write_table(results, path):
    with open(path, "w", encoding="ascii") as file:
        keys = ("offered", "answered", "p50", "p90", "p99", "max", "cpu_us")
        file.write("\t".join(("model", "server", *keys)) + "\n")
        for name, rows in results.items():
            for server, points in rows.items():
                for row in points:
                    file.write("\t".join((name, server, *(f"{row[key]:.3f}" for key in keys))) + "\n")
    print(f"table: {path}")


def parse_targets(text):
    values = [float(value) for value in text.split(",")]
    return dict(zip(MODELS, values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--nvidia", default=os.path.join(ROOT, "build", "nvidia"))
    parser.add_argument("--onnxruntime", default=os.path.join(ROOT, "build", "nvidia-onnxruntime", "onnxruntime"))
    parser.add_argument("--minilm", default=os.path.join(ROOT, "build", "zoo", "minilm.onnx"))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--servers", default=",".join(SERVERS))
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--first", type=float, default=0, help="requests per second; the default depends on the model")
    parser.add_argument("--step", type=float, default=1.4)
    parser.add_argument("--rates", type=lambda text: [float(rate) for rate in text.split(",")], default=[])
    parser.add_argument("--target-ms", type=parse_targets, default=parse_targets("5,100"), help="of digits and minilm")
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "latency"))
    options = parser.parse_args()
    paths = {"digits": os.path.join(ROOT, "examples", "models", "digits", "1", "model.onnx"), "minilm": os.path.realpath(options.minilm)}
    results = {}
    with tempfile.TemporaryDirectory(prefix="kelp-latency-") as folder:
        nvidia = stage_nvidia(folder, options)
        for name in options.models.split(","):
            if not os.path.exists(paths[name]):
                print(f"{name}: '{paths[name]}' does not exist")
                continue
            if not options.rates:
                engines(options, name, paths[name])
            results[name] = sweep(options, name, paths[name], folder, options.servers.split(","), nvidia)
    write_table(results, options.out + ".tsv")
    if options.rates:
        return
    for name, rows in results.items():
        show(name, rows, options)
    plot(results, options.out)


if __name__ == "__main__":
    main()
