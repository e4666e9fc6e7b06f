#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Latency of GET /v2/health/live on new connections to a busy `kelp serve`, and the throughput of the models meanwhile.

    health.py [--kelp PATH] [--clients N] [--seconds S] [--layers N] [--large-json MIB] [--parameter KEY=VALUE]…

N clients each run an ONNX model in a loop (a chain of matrix products; --layers sets its length). --large-json adds a client that posts numbers as
JSON in a loop, which are expensive to decode. Prints quantiles in milliseconds, without and with load. Goal: 1 ms (p50) and 5 ms (p99).
The probes run in a separate process that asks the kernel (Linux 6.12 or later) for a short scheduling latency, as the server does for its event
loops. The times are therefore those of the server, and do not include the wait of the client for a CPU.
"""
import argparse
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from protocols import set_time_slice

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROWS, WIDTH = 256, 1024


def write_model(folder, name, model, parameters):
    os.makedirs(f"{folder}/{name}/1")
    onnx.save(model, f"{folder}/{name}/1/model.onnx")
    with open(f"{folder}/{name}/config.pbtxt", "w", encoding="ascii") as file:
        for key, value in parameters:
            file.write(f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n')


def make_products(layers):
    """A scalar is expanded to a matrix, so that requests are small."""
    weights = numpy.random.default_rng(1).standard_normal((WIDTH, WIDTH), dtype=numpy.float32) / WIDTH
    nodes = [helper.make_node("Expand", ["x", "shape"], ["h0"])]
    nodes += [helper.make_node("MatMul", [f"h{i}", "w"], [f"h{i + 1}"]) for i in range(layers)]
    nodes.append(helper.make_node("ReduceMean", [f"h{layers}"], ["y"], keepdims=0))
    graph = helper.make_graph(nodes, "products", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
                              [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(numpy.array([ROWS, WIDTH]), "shape")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def make_mean():
    graph = helper.make_graph([helper.make_node("ReduceMean", ["x"], ["y"], keepdims=0)], "mean",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def start(kelp, folder):
    process = subprocess.Popen([kelp, "serve", "--model-repository", folder, "--http-address", "127.0.0.1", "--http-port", "0"],
                               stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        found = re.match(r"HTTP  http://127\.0\.0\.1:(\d+)", line)
        if found:
            return process, int(found.group(1))
    raise SystemExit("kelp serve printed no address")


class Client(threading.Thread):
    """Posts one body to one model in a loop."""

    def __init__(self, port, model, body):
        super().__init__(daemon=True)
        self.port, self.model, self.body = port, model, body
        self.stopping, self.count = False, 0

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        while not self.stopping:
            connection.request("POST", f"/v2/models/{self.model}/infer", self.body)
            response = connection.getresponse()
            text = response.read()
            if response.status != 200:
                raise SystemExit(f"{self.model}: {response.status} {text[:200]}")
            self.count += 1


def send_probes(port, seconds):
    """Prints the durations of probes, each on a connection of its own, 100 times a second at most."""
    set_time_slice(100_000)
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
            if not connection.recv(4096).startswith(b"HTTP/1.1 200"):
                raise SystemExit("the server is not live")
            times.append(time.perf_counter() - began)
        time.sleep(0.01)
    print(json.dumps(times))


def probe(port, seconds):
    text = subprocess.run([sys.executable, os.path.abspath(__file__), "--probe", str(port), "--seconds", str(seconds)], stdout=subprocess.PIPE, check=True).stdout
    return sorted(json.loads(text))


def show(what, times):
    at = [times[min(len(times) - 1, int(q * len(times)))] * 1e3 for q in (0.5, 0.99, 1)]
    print(f"{what:12} {len(times):5} probes   p50 {at[0]:8.2f}   p99 {at[1]:8.2f}   max {at[2]:8.2f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kelp", default=os.path.join(ROOT, "build/release/bin/kelp"))
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--large-json", type=float, default=0, metavar="MIB")
    parser.add_argument("--parameter", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--probe", type=int, metavar="PORT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.probe:
        send_probes(options.probe, options.seconds)
        return 0
    with tempfile.TemporaryDirectory(prefix="kelp-health-") as folder:
        write_model(folder, "products", make_products(options.layers), [text.split("=", 1) for text in options.parameter])
        write_model(folder, "mean", make_mean(), [])
        process, port = start(options.kelp, folder)
        try:
            show("idle", probe(port, min(options.seconds, 2)))
            body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [0.5]}]}).encode()
            clients = [Client(port, "products", body) for _ in range(options.clients)]
            if options.large_json:
                count = int(options.large_json * 2**20 / 9)
                data = ",".join(["0.123456"] * count)
                clients.append(Client(port, "mean", f'{{"inputs":[{{"name":"x","datatype":"FP32","shape":[{count}],"data":[{data}]}}]}}'.encode()))
            for client in clients:
                client.start()
            time.sleep(1)
            began, before = time.perf_counter(), [client.count for client in clients]
            times = probe(port, options.seconds)
            took = time.perf_counter() - began
            show("busy", times)
            rates = [(client.count - count) / took for client, count in zip(clients, before)]
            print(f"inferences a second: {sum(rates[:options.clients]):.1f} in all" + (f", large JSON {rates[-1]:.1f}" if options.large_json else ""))
            for client in clients:
                client.stopping = True
            for client in clients:
                client.join()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
