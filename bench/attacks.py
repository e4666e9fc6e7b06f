#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Latency of well-behaved clients of `kelp serve` while others misbehave.

    attacks.py [--build DIR] [--rounds N] [--seconds S] [--rate R] [--only TEXT] [--clients N]

In each round, bench/load.c sends requests of 64 bytes at a fixed rate over HTTP and then over gRPC: first alone, then during each attack. The clients of the
attacks run at the lowest priority, because on another machine they would not take the CPUs of the server; for the same reason, bench/load.c has a short time
slice (Linux 6.12 or newer), so that it does not wait for a CPU. Attacks:

  idle       10,000 connections that have sent one request, over HTTP/1.1 and HTTP/2
  slow       --clients connections that send a byte a second: of a head, of a body, of HTTP/2 frames
  reset      streams of HTTP/2 that are reset as soon as they begin (CVE-2023-44487)
  provoke    streams that the server must reset because of an invalid frame (CVE-2025-8671)
  kill       256 gRPC requests in flight to a model that needs 20 ms for each, and then a reset of the connection
  malformed  random bytes, and requests of which some bytes are changed

Prints medians of the rounds, and the memory and descriptors of the server before the attack and 8 s after it. Goals: a p99 of at most twice that without an
attack, and below 10 ms; the descriptors and the memory return. Ends with 1 if a goal is missed, or if a request of the well-behaved clients fails.
"""
import argparse
import multiprocessing
import os
import random
import re
import resource
import socket
import statistics
import struct
import sys
import tempfile
import time

import protocols
from protocols import ROOT, UNARY, Scenario, field, varint

IDLE_CONNECTIONS = 10000
IN_FLIGHT = 256
SETTLE_S = 8
MAX_P99_US = 10000
MAX_GROWTH_BYTES = 4 << 20
OUTSTANDING = 16
CONFIG = """backend: "identity"
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
"""
DELAY = 'parameters { key: "execute_delay_ms" value { string_value: "20" } }\n'
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
GET = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
DATA, HEADERS, RST_STREAM, WINDOW_UPDATE = 0, 1, 3, 8
END_STREAM, END_HEADERS = 1, 4


# ---- frames of HTTP/2 ----

def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def literal(prefix, text):
    return prefix + varint(len(text)) + text


def head(method, path, is_grpc=False):
    """A header block without references to the dynamic table; names are indexes of the static table."""
    block = bytes((0x83 if method == "POST" else 0x82, 0x86)) + literal(b"\x04", path.encode()) + literal(b"\x01", b"localhost")
    if is_grpc:
        block += literal(b"\x0f\x10", b"application/grpc") + literal(literal(b"\0", b"te"), b"trailers")
    return block


def grpc_calls(model, count):
    """`count` calls of ModelInfer, as a client sends them on a new connection."""
    tensor = field(1, "INPUT0") + field(2, "FP32") + field(3, varint(16))
    message = field(1, model) + field(5, tensor) + field(7, bytes(64))
    body = struct.pack(">BI", 0, len(message)) + message
    return PREFACE + b"".join(frame(HEADERS, END_HEADERS, 2 * i + 1, head("POST", UNARY, True)) + frame(DATA, END_STREAM, 2 * i + 1, body)
                              for i in range(count))


# ---- attacks: each runs in a process until it is ended ----

def dial(port, blocking=True):
    client = socket.socket()
    client.setblocking(blocking)
    client.connect_ex(("127.0.0.1", port))
    return client


def idle(port, options):
    kept = []
    for i in range(IDLE_CONNECTIONS):
        client = dial(port)
        client.sendall(GET if i % 2 else PREFACE + frame(HEADERS, END_HEADERS | END_STREAM, 1, head("GET", "/v2/health/live")))
        client.recv(4096)
        kept.append(client)
    options.ready.set()
    time.sleep(3600)


def slow(port, options):
    request = b"POST /v2/models/identity/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n"
    texts = (request + b"X: " + b"x" * 1000, request + b"\r\n" + b" " * 1000, grpc_calls("identity", 8))
    begun = (0, len(request) + 2, 0)  # bytes that are sent at once
    clients = []
    options.ready.set()
    while True:
        began = time.monotonic()
        while len(clients) < options.clients:
            kind = len(clients) % len(texts)
            clients.append([dial(port), texts[kind], begun[kind]])
            clients[-1][0].sendall(texts[kind][:begun[kind]])
        for each in clients[:]:
            try:
                each[0].send(each[1][each[2]:each[2] + 1])
                each[2] += 1
            except OSError:  # the server has ended the connection
                each[0].close()
                clients.remove(each)
        time.sleep(max(0, began + 1 - time.monotonic()))


def send_until_closed(client, texts):
    """Sends texts until the server closes the connection, and discards what it sends."""
    try:
        for text in texts:
            client.sendall(text)
            client.recv(1 << 16, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return True


def flood(port, frames_of, options):
    """New connections with streams in bursts of 100, until the server closes them."""
    bursts = [b"".join(frames_of(2 * i + 1) for i in range(k * 100, k * 100 + 100)) for k in range(50)]
    options.ready.set()
    while True:
        with dial(port) as client:
            client.settimeout(5)
            for text in [PREFACE, *bursts]:
                if not send_until_closed(client, [text]):
                    break


def reset(port, options):
    begin, end = head("GET", "/v2/health/live"), struct.pack(">I", 8)
    flood(port, lambda stream: frame(HEADERS, END_HEADERS | END_STREAM, stream, begin) + frame(RST_STREAM, 0, stream, end), options)


def provoke(port, options):
    begin, nothing = head("POST", "/v2/models/slow/infer"), bytes(4)
    flood(port, lambda stream: frame(HEADERS, END_HEADERS, stream, begin) + frame(WINDOW_UPDATE, 0, stream, nothing), options)


def kill(port, options):
    text = grpc_calls("slow", IN_FLIGHT)
    options.ready.set()
    while True:
        client = dial(port)
        try:
            client.sendall(text)
        except OSError:
            pass
        time.sleep(0.03)  # one or two of the requests are executed
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()


def malformed(port, options):
    generator = random.Random(1)
    texts = [GET, b"POST /v2/models/identity/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n" + b'{"inputs":[{"name":1', grpc_calls("identity", 4)]
    options.ready.set()
    while True:
        text = bytearray(generator.choice([*texts, generator.randbytes(200)]))
        for _ in range(generator.randrange(8)):
            text[generator.randrange(len(text))] = generator.randrange(256)
        with dial(port) as client:
            client.settimeout(0.05)
            try:
                client.sendall(text)
                client.recv(4096)
            except OSError:
                pass


ATTACKS = (idle, slow, reset, provoke, kill, malformed)


def run_attack(attack, port, options):
    protocols.set_time_slice(0)
    os.nice(19)
    attack(port, options)


# ---- measuring ----

def p99_us(options, folder, server, protocol):
    scenario = Scenario(protocol, protocol, OUTSTANDING, protocols.SMALL)
    return protocols.offer(options, folder, scenario, server, options.seconds, options.rate)["p99"]


def usage(server):
    """Memory of the server without pages of files, and its descriptors."""
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        return int(re.search(r"RssAnon:\s+(\d+) kB", file.read()).group(1)) * 1024, len(os.listdir(f"/proc/{server.process.pid}/fd"))


def measure(attack, options, folder, server):
    """Returns the p99 over HTTP and gRPC during an attack, and the usage before and after it."""
    before = usage(server)
    options.ready.clear()
    process = multiprocessing.Process(target=run_attack, args=(attack, server.grpc if attack is kill else server.http, options), daemon=True)
    process.start()
    options.ready.wait(120)
    found = [p99_us(options, folder, server, protocol) for protocol in ("http", "grpc")]
    if process.exitcode is not None:
        raise SystemExit(f"the attack '{attack.__name__}' ended")
    process.kill()
    process.join()
    return found, before


def write_models(folder):
    for name, extra in (("identity", ""), ("slow", DELAY)):
        os.makedirs(f"{folder}/models/{name}/1")
        with open(f"{folder}/models/{name}/config.pbtxt", "w", encoding="ascii") as file:
            file.write(CONFIG + extra)


def show(name, found, quiet, memory):
    """Prints a row; returns true if the goals are met."""
    medians = [statistics.median(each[i] for each in found) for i in range(2)]
    limits = [min(2 * value, MAX_P99_US) for value in quiet]
    met = all(value <= limit for value, limit in zip(medians, limits))
    text = "   ".join(f"{value:8.0f} ({min(each[i] for each in found):.0f}..{max(each[i] for each in found):.0f})" for i, value in enumerate(medians))
    (rss, files), (rss_after, files_after) = memory
    returned = rss_after - rss < MAX_GROWTH_BYTES and files_after <= files
    print(f"{name:10} {text}   {rss / 1e6:6.1f} -> {rss_after / 1e6:6.1f} MB   {files:4} -> {files_after:4} descriptors   "
          f"{'met' if met and returned else 'MISSED'}", flush=True)
    return met and returned


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rate", type=float, default=1000, help="requests a second of the well-behaved client")
    parser.add_argument("--clients", type=int, default=1000, help="of the attack 'slow'")
    parser.add_argument("--only", default="", help="regular expression of attacks")
    options = parser.parse_args()
    options.ready = multiprocessing.Event()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    chosen = [attack for attack in ATTACKS if re.search(options.only, attack.__name__)]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="kelp-attacks-") as folder:
        write_models(folder)
        server = protocols.start_server("kelp", [os.path.join(options.build, "bin", "kelp"), "serve"], {}, folder, options)
        try:
            server.wait()
            protocols.set_time_slice(100_000)
            for protocol in ("http", "grpc"):
                p99_us(options, folder, server, protocol)  # caches and pools
            quiet, found, memory = [], {attack: [] for attack in chosen}, {}
            for _ in range(options.rounds):
                quiet.append([p99_us(options, folder, server, protocol) for protocol in ("http", "grpc")])
                for attack in chosen:
                    row, before = measure(attack, options, folder, server)
                    found[attack].append(row)
                    memory.setdefault(attack, [before, None])
                    if memory[attack][1] is None:
                        time.sleep(SETTLE_S)
                        memory[attack][1] = usage(server)
            medians = [statistics.median(each[i] for each in quiet) for i in range(2)]
            print(f"p99 in us at {options.rate:.0f} requests/s over HTTP and gRPC; alone {medians[0]:.0f} and {medians[1]:.0f}")
            for attack in chosen:
                failed += not show(attack.__name__, found[attack], medians, memory[attack])
        finally:
            server.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
