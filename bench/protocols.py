#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time, throughput and latency of a request over HTTP and gRPC: Kelp, NVIDIA's server, and echo servers, in turns.

    protocols.py [--build DIR] [--nvidia DIR] [--rounds N] [--seconds S] [--only TEXT] [--quick] [--out PREFIX] [--write FILE]

The model is the backend `identity` of --build, in both servers. The echo servers (bench/echo_http.c, bench/echo_grpc.c) send the body of a request back; they
have as many threads as Kelp has event loops. bench/load.c sends the same bytes to all servers on one thread, and compares every response with the first one,
which this program checks. In each round, each server in turn gets the load of a scenario for --seconds.

With one connection the kernel puts the load generator and the server on the same CPU or on two, and CPU time differs by more than twice: an idle CPU has to
be woken up, with cold caches. Both cases are measured, with pinned threads.

CPU time is the user and system time of the server's processes (/proc/PID/stat), divided by the responses. Scenarios are closed loops of 1, 8 or 64 connections
with one request each, and open loops at half of the rate at which NVIDIA's server is saturated. Prints medians of the rounds (minimum to maximum), the bars
of Kelp, and whether they are met; writes PREFIX.json and PREFIX.csv, and the table into FILE (docs/server-performance.md). --quick checks the results in a round of 0.1 s, without a bar, and needs no NVIDIA server.
"""
import argparse
import csv
import ctypes
import glob
import json
import os
import re
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from multiprocessing import resource_tracker, shared_memory

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
UNARY = "/inference.GRPCInferenceService/ModelInfer"
STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
SMALL, LARGE = 16, 262144  # floats: 64 bytes, 1 MiB
OUTSTANDING = 64  # of the open loops
CPUS = os.sched_getaffinity(0)
BEGIN, END = "<!-- measured protocols: begin -->", "<!-- measured protocols: end -->"


# ---- requests ----

def varint(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    """A field of a protobuf message: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def parameter(name, value):
    """An entry of map<string, InferParameter>."""
    return field(1, name) + field(2, field(2, value) if isinstance(value, int) else field(3, value))


def floats(count):
    """Values with as many digits as a model's outputs have."""
    return [struct.unpack("<f", struct.pack("<f", ((i * 2654435761) % 2**32) / 2**32 * 2 - 1))[0] for i in range(count)]


def binary(count):
    return struct.pack(f"<{count}f", *floats(count))


def http_request(count, kind, region=None):
    """Returns the body of a request, and the length of its JSON part."""
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [count]}
    output = {"name": "OUTPUT0"}
    tail = b""
    if kind == "binary":
        tail = binary(count)
        tensor["parameters"] = {"binary_data_size": len(tail)}
        output["parameters"] = {"binary_data": True}
    elif kind == "json":
        tensor["data"] = [float(f"{value:.9g}") for value in floats(count)]
        output["parameters"] = {"binary_data": False}
    else:
        tensor["parameters"] = {"shared_memory_region": region, "shared_memory_byte_size": 4 * count}
        output["parameters"] = {"shared_memory_region": region + "_out", "shared_memory_byte_size": 4 * count}
    head = json.dumps({"inputs": [tensor], "outputs": [output]}, separators=(",", ":")).encode()
    return head + tail, len(head) if tail else 0


def grpc_request(count, region=None):
    tensor = field(1, "INPUT0") + field(2, "FP32") + field(3, varint(count))
    output = field(1, "OUTPUT0")
    if region:
        tensor += field(4, parameter("shared_memory_region", region)) + field(4, parameter("shared_memory_byte_size", 4 * count))
        output += field(2, parameter("shared_memory_region", region + "_out")) + field(2, parameter("shared_memory_byte_size", 4 * count))
    message = field(1, "identity") + field(5, tensor) + field(6, output)
    return message if region else message + field(7, binary(count))


class Scenario:
    """A request that is sent in the same way to all servers."""

    def __init__(self, name, protocol, connections, count, kind="binary", bar=None, is_open=False, cpus=None):
        """cpus: the CPUs of the load generator and of the server; without it, the kernel decides."""
        self.name, self.protocol, self.connections, self.count, self.kind, self.bar, self.is_open = name, protocol, connections, count, kind, bar, is_open
        self.cpus = cpus
        self.crashes = 0  # of NVIDIA's server
        self.echoed = kind != "shm" and not is_open and (kind == "binary" or count == SMALL)

    def request(self):
        region = f"region{self.count}" if self.kind == "shm" else None
        if self.protocol == "http":
            return http_request(self.count, self.kind, region)
        return grpc_request(self.count, region), 0

    def path(self):
        return {"http": "/v2/models/identity/infer", "grpc": UNARY, "grpc-stream": STREAM}[self.protocol]

    def check(self, server, response, request):
        """Returns true if the response has the values of the request."""
        if server.name.startswith("echo"):
            return response == request
        if self.kind == "shm":
            return b"OUTPUT0" in response and server.read_region(self.count) == binary(self.count)
        if self.kind == "json":
            found = json.loads(response)["outputs"][0]["data"]
            return struct.pack(f"<{len(found)}f", *found) == binary(self.count)
        return response.endswith(binary(self.count))


def scenarios():
    found = []
    for protocol, bars in (("http", (8, 5, 4)), ("grpc", (8, 8, 8)), ("grpc-stream", (8, 8, 8))):
        first, last = min(CPUS), max(CPUS)
        for where, cpus in (("one CPU", (first, first)), ("two CPUs", (first, last))):
            found.append(Scenario(f"{protocol} 64 B, 1, {where}", protocol, 1, SMALL, bar=("echo + µs", bars[0]), cpus=cpus))
        for connections, bar in zip((8, 64), bars[1:]):
            found.append(Scenario(f"{protocol} 64 B, {connections}", protocol, connections, SMALL, bar=("echo + µs", bar)))
    for protocol in ("http", "grpc"):
        found.append(Scenario(f"{protocol} 1 MiB, 8", protocol, 8, LARGE, bar=("× echo", 1.25)))
    found.append(Scenario("json 16, 8", "http", 8, SMALL, "json", ("echo + µs", 5)))
    found.append(Scenario("json 65536, 8", "http", 8, 65536, "json", ("× NVIDIA", 0.12)))
    for protocol in ("http", "grpc"):
        for count, label in ((SMALL, "64 B"), (LARGE, "1 MiB")):
            found.append(Scenario(f"{protocol} shm {label}, 8", protocol, 8, count, "shm", (f"× {protocol} 64 B, 8", 1.1)))
    for protocol in ("http", "grpc"):
        found.append(Scenario(f"{protocol} 64 B, open", protocol, OUTSTANDING, SMALL, bar=("p99 × NVIDIA", 0.6), is_open=True))
    return found


# ---- servers ----

def tree(pid):
    """The process and its descendants."""
    found = [pid]
    for each in found:
        for path in glob.glob(f"/proc/{each}/task/*/children"):
            with open(path, encoding="ascii") as file:
                found += map(int, file.read().split())
    return found


class Server:
    """A server process."""

    def __init__(self, name, command, environment, log):
        self.name, self.log = name, log
        self.regions = {}
        with open(log, "w", encoding="utf-8") as file:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE if name.startswith("echo") else file, stderr=file, text=True,
                                            env={**os.environ, **environment})

    def cpu_s(self):
        total = 0
        for pid in tree(self.process.pid):
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                fields = file.read().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")

    def pin(self, cpus):
        """Lets all threads of the server run on these CPUs."""
        for pid in tree(self.process.pid):
            for task in os.listdir(f"/proc/{pid}/task"):
                try:
                    os.sched_setaffinity(int(task), cpus)
                except ProcessLookupError:  # the thread has ended
                    pass

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.http}{path}", data=data), timeout=30) as response:
            return response.read()

    def fail(self, text):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            raise SystemExit(f"{self.name}: {text}\n{file.read()[-4000:]}")

    def wait(self):
        for _ in range(600):
            try:
                self.call("/v2/health/ready")
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        self.fail("the server is not ready")

    def register_regions(self):
        for count in (SMALL, LARGE):
            for suffix in ("", "_out"):
                memory = shared_memory.SharedMemory(f"kelp-bench-{os.getpid()}-{self.name}-{count}{suffix}", create=True, size=4 * count)
                memory.buf[:4 * count] = binary(count) if not suffix else bytes(4 * count)
                self.regions[f"region{count}{suffix}"] = memory
                self.call(f"/v2/systemsharedmemory/region/region{count}{suffix}/register", {"key": "/" + memory.name, "offset": 0, "byte_size": 4 * count})

    def read_region(self, count):
        return bytes(self.regions[f"region{count}_out"].buf[:4 * count])

    def copy_us(self, count, copies=200):
        """CPU time that the model needs to copy the tensor between the regions."""
        source, target = (ctypes.addressof(ctypes.c_char.from_buffer(self.regions[f"region{count}{suffix}"].buf)) for suffix in ("", "_out"))
        before = time.thread_time_ns()
        for _ in range(copies):
            ctypes.memmove(target, source, 4 * count)
        return (time.thread_time_ns() - before) / copies / 1e3

    def stop(self):
        self.process.send_signal(signal.SIGKILL if self.name.startswith("echo") else signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for memory in self.regions.values():
            memory.unlink()


def set_time_slice(slice_ns):
    """Asks the kernel (Linux 6.12 or newer) for a time slice of this process and its later children, such as a client that should not wait for a CPU; 0: the
    default."""
    attributes = struct.pack("=IIQiIQQQ", 48, os.SCHED_OTHER, 0, os.nice(0), 0, slice_ns, 0, 0)
    ctypes.CDLL(None).syscall({"x86_64": 314}.get(os.uname().machine, 274), 0, attributes, 0)


def free_port():
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        return each.getsockname()[1]


def write_repository(folder):
    os.makedirs(f"{folder}/identity/1")
    with open(f"{folder}/identity/config.pbtxt", "w", encoding="ascii") as file:
        file.write('backend: "identity"\ninput [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]\n'
                   'output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]\ninstance_group [ { kind: KIND_CPU count: 1 } ]\n'
                   'model_transaction_policy { decoupled: false }\n')


def nvidia_command(folder, options):
    """NVIDIA's server as it is by default. Its backends need a libtritonserver.so."""
    libraries = os.path.join(options.nvidia, "nvidia_pytriton.libs")
    if not os.path.exists(f"{folder}/names"):
        os.makedirs(f"{folder}/names")
        os.symlink(glob.glob(f"{libraries}/libtritonserver-*.so")[0], f"{folder}/names/libtritonserver.so")
    return [os.path.join(options.nvidia, "pytriton", "tritonserver", "bin", "tritonserver")], {"LD_LIBRARY_PATH": f"{folder}/names:{libraries}"}


def start(name, folder, options):
    """Starts Kelp or NVIDIA's server, and waits until it is ready."""
    kelp = [os.path.join(options.build, "bin", "kelp"), "serve"], {}
    command, environment = nvidia_command(folder, options) if name == "nvidia" else kelp
    server = Server(name, [*command, "--model-repository", f"{folder}/models", "--backend-directory", os.path.join(options.build, "backends"),
                           "--http-address", "127.0.0.1", "--http-port", str(http := free_port()), "--grpc-address", "127.0.0.1",
                           "--grpc-port", str(grpc := free_port()), "--metrics-address", "127.0.0.1", "--metrics-port", str(free_port())], environment,
                    f"{folder}/{name}.log")
    server.http, server.grpc = http, grpc
    server.wait()
    server.register_regions()
    return server


def start_echo(name, program, folder, options):
    server = Server(name, [os.path.join(options.build, "bench", program), str(min(len(os.sched_getaffinity(0)), 64))], {}, f"{folder}/{name}.log")
    server.http = server.grpc = int(server.process.stdout.readline())
    return server


def start_all(folder, options):
    write_repository(f"{folder}/models")
    servers = {name: start(name, folder, options) for name in (("kelp",) if options.quick else ("kelp", "nvidia"))}
    servers["echo-http"] = start_echo("echo-http", "bench_echo_http", folder, options)
    servers["echo-grpc"] = start_echo("echo-grpc", "bench_echo_grpc", folder, options)
    return servers


def restart(servers, name, folder, options):
    """NVIDIA's server sometimes ends with SIGSEGV when gRPC streams end (TRITONSERVER_InferenceRequestDelete)."""
    servers[name].stop()
    servers[name] = start(name, folder, options)


# ---- measuring ----

class Crashed(Exception):
    """A server ended while it had load."""


def offer_to(name, options, folder, scenario, servers, *arguments):
    """offer() to a server. If NVIDIA's server crashes, starts it again and repeats the measurement, three times at most; then returns None."""
    for _ in range(3):
        try:
            return offer(options, folder, scenario, servers[name], *arguments)
        except Crashed as crash:
            if name != "nvidia":
                servers[name].fail(str(crash))
            print(crash, file=sys.stderr, flush=True)
            scenario.crashes += 1
            restart(servers, name, folder, options)
    return None


def offer(options, folder, scenario, server, seconds, rate=0):
    """Loads a server; returns CPU time, throughput and latencies."""
    body, json_bytes = scenario.request()
    with open(f"{folder}/request", "wb") as file:
        file.write(body)
    port = server.http if scenario.protocol == "http" else server.grpc
    server.pin({scenario.cpus[1]} if scenario.cpus else CPUS)
    before = server.cpu_s()
    run = subprocess.run([os.path.join(options.build, "bench", "bench_load"), "--protocol", scenario.protocol, "--check", f"{folder}/response", str(port),
                          scenario.path(), f"{folder}/request", str(json_bytes), str(rate), str(seconds), str(scenario.connections)], capture_output=True, text=True,
                         check=False, preexec_fn=lambda: os.sched_setaffinity(0, {scenario.cpus[0]} if scenario.cpus else CPUS))
    cpu_s = server.cpu_s() - before
    if run.returncode:
        time.sleep(0.1)
        if server.process.poll() is not None:
            raise Crashed(f"{server.name}: {scenario.name}: the server ended with {server.process.returncode}")
        server.fail(f"{scenario.name}: {run.stderr}")
    with open(f"{folder}/response", "rb") as file:
        if not scenario.check(server, file.read(), body):
            server.fail(f"{scenario.name}: the response has other values than the request")
    _, answered, failed, p50, _, p99, _, responses = map(float, run.stdout.split())
    if failed or not responses:
        server.fail(f"{scenario.name}: {failed:.0f} of {responses:.0f} requests failed")
    row = {"cpu_us": cpu_s / responses * 1e6, "rate": answered, "p50": p50, "p99": p99}
    if scenario.kind == "shm":
        row["copy_us"] = server.copy_us(scenario.count)
    return row


def measure(options, folder, servers, chosen):
    """Returns the rows of all rounds by scenario and server."""
    rows = {scenario.name: {} for scenario in chosen}
    echo = {"http": "echo-http"}
    for index in range(options.rounds):
        for scenario in chosen:
            names = [name for name in ("kelp", "nvidia") if name in servers]
            if scenario.echoed:
                names.append(echo.get(scenario.protocol, "echo-grpc"))
            if scenario.is_open and "nvidia" not in servers:
                continue
            rate = 0
            if scenario.is_open:
                if index == 0:
                    saturated = Scenario("", scenario.protocol, OUTSTANDING, SMALL)
                    scenario.rate = offer_to("nvidia", options, folder, saturated, servers, options.seconds)["rate"] / 2
                rate = scenario.rate
            first = index % len(names)
            for name in names[first:] + names[:first]:
                row = offer_to(name, options, folder, scenario, servers, options.seconds * (2 if scenario.is_open else 1), rate)
                if row is None:
                    continue
                if name == "kelp" and scenario.kind == "shm" and scenario.count == LARGE:
                    # With fewer requests a second, a thread sleeps more often and each wake-up is for fewer requests, whatever their size.
                    small = Scenario("", scenario.protocol, scenario.connections, SMALL)
                    row["small_us"] = offer(options, folder, small, servers[name], options.seconds, row["rate"])["cpu_us"]
                rows[scenario.name].setdefault(name.split("-")[0], []).append(row)
        print(f"round {index + 1} of {options.rounds}", file=sys.stderr, flush=True)
    return rows


def median(rows, scenario, server, key):
    values = [row[key] for row in rows.get(scenario, {}).get(server, [])]
    return statistics.median(values) if values else None


def verdict(scenario, rows):
    """What the bar is for, and the largest value that meets it, and the value; None if it cannot be computed."""
    kind, limit = scenario.bar
    key = "p99" if scenario.is_open else "cpu_us"
    value = median(rows, scenario.name, "kelp", key)
    nvidia, echo = median(rows, scenario.name, "nvidia", key), median(rows, scenario.name, "echo", key)
    if kind == "echo + µs" and echo:
        return f"echo + {limit} µs", echo + limit, value
    if kind == "× echo" and echo:
        return f"{limit} × echo", echo * limit, value
    if kind.endswith("NVIDIA") and nvidia:
        return f"{'p99 ' if scenario.is_open else ''}{limit} × NVIDIA", nvidia * limit, value
    if scenario.count == LARGE and value is not None:  # the model copies the tensor, which 64 bytes do not need
        small, copy = (median(rows, scenario.name, "kelp", key) for key in ("small_us", "copy_us"))
        return f"{limit} {kind}, at this rate and without the copy", small * limit, value - copy
    base = median(rows, kind[2:], "kelp", "cpu_us")
    if base is None or value is None:
        return None
    return f"{limit} {kind}", base * limit, value


def cell(rows, key):
    values = [row[key] for row in rows]
    return f"{statistics.median(values):.1f} ({min(values):.1f}..{max(values):.1f})"


def make_table(rows, chosen):
    """Returns the lines of the table, and the medians as dictionaries."""
    lines = ["| scenario, connections | server | CPU µs | requests/s | p50 µs | p99 µs | bar | limit | Kelp | |", "|---|---|--:|--:|--:|--:|---|--:|--:|---|"]
    results = []
    for scenario in chosen:
        for name, each in rows[scenario.name].items():
            bar = verdict(scenario, rows) if name == "kelp" else None
            columns = ["", "", "", ""]
            if bar:
                met = bar[2] <= bar[1]
                columns = [bar[0], f"{bar[1]:.1f}", f"{bar[2]:.1f}", "met" if met else "**missed**"]
            lines.append(f"| {scenario.name} | {name} | {cell(each, 'cpu_us')} | {statistics.median(row['rate'] for row in each):,.0f} | {cell(each, 'p50')} | {cell(each, 'p99')} | "
                         + " | ".join(columns) + " |")
            results.append({"scenario": scenario.name, "server": name, **{key: statistics.median(row[key] for row in each) for key in ("cpu_us", "rate", "p50", "p99")},
                            "cpu_us_min": min(row["cpu_us"] for row in each), "cpu_us_max": max(row["cpu_us"] for row in each), "bar": columns[0],
                            "limit": columns[1], "value": columns[2], "verdict": columns[3].strip("*")})
    return lines, results


def write_table(path, text):
    with open(path, encoding="utf-8") as file:
        before, rest = file.read().split(BEGIN)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--nvidia", default=os.path.join(ROOT, "build", "nvidia"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--only", default="", help="regular expression of scenario names")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", default="")
    parser.add_argument("--write", default="")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 1, 0.1
    elif not os.path.exists(os.path.join(options.nvidia, "pytriton", "tritonserver", "bin", "tritonserver")):
        raise SystemExit(f"NVIDIA's server is not in {options.nvidia}: run scripts/nvidia.sh")
    chosen = [scenario for scenario in scenarios() if re.search(options.only, scenario.name)]
    began, load_before = time.monotonic(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="kelp-protocols-") as folder:
        servers = {}
        try:
            servers.update(start_all(folder, options))
            if not options.quick:  # caches, clocks, buffers of the servers
                for scenario in chosen:
                    for name in ("kelp", "nvidia"):
                        offer_to(name, options, folder, scenario, servers, 0.2)
            rows = measure(options, folder, servers, chosen)
        finally:
            for server in servers.values():
                server.stop()
    if options.quick:
        print(f"{len(chosen)} scenarios, results checked")
        return 0
    lines, results = make_table(rows, chosen)
    print("\n".join(lines))
    crashes = ", ".join(f"{scenario.name} {scenario.crashes}" for scenario in chosen if scenario.crashes)
    note = f"NVIDIA's server crashed and was started again: {crashes}." if crashes else ""
    print(note)
    missed = sum(result["verdict"] == "missed" for result in results)
    print(f"\n{options.rounds} rounds of {options.seconds} s in {time.monotonic() - began:.0f} s; system load before {load_before:.1f}, after, including the benchmark, "
          f"{os.getloadavg()[0]:.1f}; {missed} bars missed")
    if options.write:
        commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
        head = (f"Measured {time.strftime('%Y-%m-%d')} at commit {commit}, {options.rounds} rounds of {options.seconds} s. System load before and after, including\n"
                f"the benchmark: {load_before:.1f} and {os.getloadavg()[0]:.1f}.\n\n")
        write_table(options.write, head + "\n".join(lines) + (f"\n\n{note}" if note else ""))
    if options.out:
        with open(options.out + ".json", "w", encoding="utf-8") as file:
            json.dump({"rounds": rows, "results": results}, file, indent=1)
        with open(options.out + ".csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, results[0].keys())
            writer.writeheader()
            writer.writerows(results)
    return 0


if __name__ == "__main__":
    resource_tracker.register = lambda *_: None  # this program unlinks its regions itself
    resource_tracker.unregister = lambda *_: None
    sys.exit(main())
