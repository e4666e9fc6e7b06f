#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Start of `kelp serve` with the example models: time until ready, memory, and time to stop. Prints the best and the median of several starts.

    serve.py --kelp PATH [--starts N] [--models DIR]
"""
import argparse
import http.client
import os
import re
import signal
import statistics
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def memory_kib(pid, key):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return int(re.search(rf"^{key}: +(\d+) kB", file.read(), re.M).group(1))


def start(kelp, models):
    began = time.perf_counter()
    with subprocess.Popen([kelp, "serve", "--model-repository", models, "--http-address", "127.0.0.1", "--http-port", "0"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        port = None
        for line in process.stdout:
            found = re.match(r"HTTP  http://127\.0\.0\.1:(\d+)", line)
            if found:
                port = int(found.group(1))
                break
        if not port:
            raise SystemExit("kelp serve printed no address")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/v2/health/ready")
        if connection.getresponse().status != 200:
            raise SystemExit("kelp serve is not ready")
        ready = time.perf_counter() - began
        rss, pss = memory_kib(process.pid, "Rss"), memory_kib(process.pid, "Pss")
        connection.close()
        began = time.perf_counter()
        process.send_signal(signal.SIGTERM)
        process.wait()
        return {"ready ms": ready * 1e3, "RSS MiB": rss / 1024, "PSS MiB": pss / 1024, "stop ms": (time.perf_counter() - began) * 1e3}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kelp", default=os.path.join(ROOT, "build/release/bin/kelp"))
    parser.add_argument("--models", default=os.path.join(ROOT, "examples/models"))
    parser.add_argument("--starts", type=int, default=9)
    options = parser.parse_args()
    rows = [start(options.kelp, options.models) for _ in range(options.starts)]
    print(f"{'':10} {'best':>8} {'median':>8}")
    for key in rows[0]:
        values = [row[key] for row in rows]
        print(f"{key:10} {min(values):8.1f} {statistics.median(values):8.1f}")


if __name__ == "__main__":
    main()
