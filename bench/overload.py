#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Overload: requests arrive at a multiple of the capacity of a model that has a queue limit (open loop).

    overload.py [--build DIR] [--capacity N] [--factor X] [--seconds S] [--queue N] [--bytes N] [--nvidia DIR]

The model copies 64 bytes or --bytes, and sleeps so that it serves --capacity requests per second. Measures kelp, and NVIDIA's server if its wheel is
unpacked in --nvidia (scripts/nvidia.sh). Prints the goodput in requests per second and relative to the rate that a client which waits for each response
reaches; quantiles of the time to a rejection and to a response; the largest RSS; and the time to the last response after the end of the load, and of a
request after that. Goals: goodput within 5 % of the capacity, rejections in less than 5 ms (p99).
"""
import argparse
import asyncio
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def config(options):
    return f"""
backend: "identity"
max_batch_size: 1
input [ {{ name: "INPUT0" data_type: TYPE_UINT8 dims: [ -1 ] }} ]
output [ {{ name: "OUTPUT0" data_type: TYPE_UINT8 dims: [ -1 ] }} ]
instance_group [ {{ kind: KIND_CPU count: 1 }} ]
dynamic_batching {{ default_queue_policy {{ max_queue_size: {options.queue} }} }}
parameters {{ key: "execute_delay_ms" value {{ string_value: "{1000 // options.capacity}" }} }}
"""


def make_request(size):
    header = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "UINT8", "shape": [1, size], "parameters": {"binary_data_size": size}}],
                         "parameters": {"binary_data_output": True}}).encode()
    return (f"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\nInference-Header-Content-Length: {len(header)}\r\n"
            f"Content-Length: {len(header) + size}\r\n\r\n").encode() + header + bytes(size)


class Load:
    """Sends requests on connections that are kept, one at a time on each."""

    def __init__(self, port, body):
        self.port, self.body = port, body
        self.free, self.served, self.rejected, self.failed = [], [], [], 0

    async def send(self):
        began = time.perf_counter()
        reader, writer = self.free.pop() if self.free else await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(self.body)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(re.search(rb"\r\ncontent-length: *(\d+)", head, re.I).group(1))
            await reader.readexactly(length)
            status = int(head.split(b" ", 2)[1])
            (self.served if status == 200 else self.rejected).append(time.perf_counter() - began)
            self.free.append((reader, writer))
        except (OSError, asyncio.IncompleteReadError):
            self.failed += 1

    async def run(self, rate, seconds):
        began, sent, tasks = time.perf_counter(), 0, set()
        while (now := time.perf_counter()) < began + seconds:
            while sent < (now - began) * rate:
                task = asyncio.create_task(self.send())
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                sent += 1
            await asyncio.sleep(0.001)
        served, began = len(self.served), time.perf_counter()
        while tasks:
            await asyncio.sleep(0.001)
        drained = time.perf_counter() - began
        began = time.perf_counter()
        await self.send()
        return sent, served, drained, time.perf_counter() - began

    async def closed_loop(self, seconds):
        """One client that waits for each response."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            await self.send()
        return len(self.served) / seconds


def at(values, quantile):
    values = sorted(values)
    return values[min(len(values) - 1, int(quantile * len(values)))] * 1e3 if values else float("nan")


def rss_mib(pid, key="VmHWM"):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(rf"^{key}:\s+(\d+)", file.read(), re.M).group(1)) / 1024


async def measure(name, port, pid, options):
    body = make_request(options.bytes)
    capacity = await Load(port, body).closed_loop(3)
    before = rss_mib(pid)
    load = Load(port, body)
    sent, served, drained_s, after_s = await load.run(options.capacity * options.factor, options.seconds)
    goodput = served / options.seconds
    print(f"{name:8} capacity {capacity:6.1f}/s   sent {sent / options.seconds:7.1f}/s   goodput {goodput:6.1f}/s ({goodput / capacity:4.0%})   "
          f"rejected p50 {at(load.rejected, 0.5):6.2f} p99 {at(load.rejected, 0.99):7.2f} ms   served p50 {at(load.served, 0.5):7.1f} ms   "
          f"RSS {before:5.1f} -> {rss_mib(pid):5.1f} MiB   last response after {drained_s * 1e3:6.1f} ms   next request {after_s * 1e3:6.1f} ms   failed {load.failed}")


def wait_until_ready(port):
    async def ready():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        return b" 200 " in head
    for _ in range(600):
        try:
            if asyncio.run(ready()):
                return
        except (OSError, asyncio.IncompleteReadError):
            pass
        time.sleep(0.1)
    raise SystemExit("the server is not ready")


def commands(options, folder):
    backends = os.path.join(options.build, "backends")
    yield "kelp", 18101, [os.path.join(options.build, "bin", "kelp"), "serve", "--model-repository", f"{folder}/models", "--backend-directory", backends,
                          "--http-address", "127.0.0.1", "--http-port", "18101", "--log-info=false"], {}
    program = os.path.join(options.nvidia, "pytriton", "tritonserver", "bin", "tritonserver")
    libraries = os.path.join(options.nvidia, "nvidia_pytriton.libs")
    if not os.path.exists(program):
        print("NVIDIA's server is not there (scripts/nvidia.sh)")
        return
    os.makedirs(f"{folder}/names")
    os.symlink(glob.glob(f"{libraries}/libtritonserver-*.so")[0], f"{folder}/names/libtritonserver.so")
    yield "NVIDIA", 18102, [program, "--model-repository", f"{folder}/models", "--backend-directory", backends, "--http-address", "127.0.0.1",
                            "--http-port", "18102", "--allow-grpc", "false", "--allow-metrics", "false", "--log-info", "false"], \
        {"LD_LIBRARY_PATH": f"{folder}/names:{libraries}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--nvidia", default=os.path.join(ROOT, "build", "nvidia"))
    parser.add_argument("--capacity", type=int, default=100)
    parser.add_argument("--factor", type=float, default=10)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--queue", type=int, default=20)
    parser.add_argument("--bytes", type=int, default=64)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="kelp-overload-")
    try:
        os.makedirs(f"{folder}/models/slow/1")
        with open(f"{folder}/models/slow/config.pbtxt", "w", encoding="ascii") as file:
            file.write(config(options))
        for name, port, command, environment in commands(options, folder):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **environment})
            try:
                wait_until_ready(port)
                asyncio.run(measure(name, port, process.pid, options))
            finally:
                process.send_signal(signal.SIGKILL)
                process.wait()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
