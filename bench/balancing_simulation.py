#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulates servers behind a load balancer: latency against utilization, and throughput against the number of servers.

    balancing_simulation.py [--service FILE] [--long SHARE,FACTOR] [--workers N] [--servers 1,3,10,100] [--requests N] [--burst N] [--seed N]
                            [--out PREFIX]
    balancing_simulation.py --check

Requests arrive at random times (a Poisson process; with --burst, groups of N requests do), and a policy assigns each to a server when it arrives. A server
executes requests in the order of arrival on --workers threads. Service times have the distribution of FILE, the output of `kelp bench --json`: its quantiles
are interpolated, and the slowest 0.1 % count as the quantile of 99.9 %. Without FILE, the times are those of MiniLM with 32 tokens, measured on the machine of docs/server-performance.md. With --long, a share of the requests takes
longer by a factor, such as 0.05,8 for 5 % of batches of 8.

Policies: random; round-robin; two-choices (the server with fewer requests in flight of two random ones: `random(2)` of HAProxy, LEAST_REQUEST of Envoy);
least (the server with the fewest: `leastconn` of HAProxy), and least-of-4, in which four balancers know only their own requests.

Prints p50 and p99 of the largest number of servers, and for each number the throughput per server at which p99 is at most three times that of the service
times, relative to one server. Writes PREFIX.tsv and PREFIX.svg. --check compares simulations with results of queueing theory, and ends
with 1 if they differ.
"""
import argparse
import bisect
import heapq
import json
import math
import random
import sys

UTILIZATIONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
MAX_SLOWDOWN = 3  # p99 divided by that of the service times
WARM_UP = 0.1  # the part of the requests that is not counted
# Quantiles of `kelp bench minilm.onnx --threads 1` with 32 tokens, in milliseconds.
MINILM_MS = ((0, 6.52), (0.5, 6.89), (0.9, 7.03), (0.95, 7.09), (0.99, 7.68), (0.999, 8.22))


# ---- service times ----

def read_service(path):
    """Returns quantiles in milliseconds from the output of `kelp bench --json`."""
    with open(path, encoding="utf-8") as file:
        result = json.load(file)["results"][0]
    names = ((0, "min_ns"), (0.5, "median_ns"), (0.9, "p90_ns"), (0.95, "p95_ns"), (0.99, "p99_ns"), (0.999, "p99_9_ns"))
    return tuple((share, result[name] / 1e6) for share, name in names)


def quantile_of(points, share):
    """Interpolates between quantiles."""
    shares = [point[0] for point in points]
    index = bisect.bisect_right(shares, share)
    if index == len(points):
        return points[-1][1]
    (left, low), (right, high) = points[index - 1], points[index]
    return low + (share - left) / (right - left) * (high - low)


def mean_of(points):
    inside = sum((right - left) * (low + high) / 2 for (left, low), (right, high) in zip(points, points[1:]))
    return inside + (1 - points[-1][0]) * points[-1][1]


# ---- policies: functions that return the server of the next request; `flights` has the requests in flight of each server ----

def choose_random(servers, generator):
    return lambda flights: int(generator.random() * servers)


def choose_round_robin(servers, generator):
    state = [int(generator.random() * servers)]

    def choose(flights):
        state[0] = (state[0] + 1) % servers
        return state[0]
    return choose


def choose_of_two(servers, generator):
    def choose(flights):
        first, second = int(generator.random() * servers), int(generator.random() * servers)
        return first if flights[first] <= flights[second] else second
    return choose


def choose_least(servers, generator):
    """Begins the search after the last choice, so that equal servers take turns."""
    state = [0]

    def choose(flights):
        least = min(flights)
        try:
            state[0] = flights.index(least, state[0] + 1)
        except ValueError:
            state[0] = flights.index(least)
        return state[0]
    return choose


# name: function, number of balancers
POLICIES = {"random": (choose_random, 1), "round-robin": (choose_round_robin, 1), "two-choices": (choose_of_two, 1), "least": (choose_least, 1),
            "least-of-4": (choose_least, 4)}


# ---- the simulation ----

def simulate(policy, servers, workers, interval, burst, draw, requests, generator):
    """Returns the sorted latencies of requests. `interval` is the mean time between requests, `draw` returns a service time."""
    make, balancers = POLICIES[policy]
    chooses = [make(servers, generator) for _ in range(balancers)]
    flights = [[0] * servers for _ in range(balancers)]
    free = [[0.0] * workers for _ in range(servers)]  # heaps of the times at which the workers of a server are idle
    ends, latencies, now = [], [], 0.0
    for number in range(requests):
        if number % burst == 0:
            now += generator.expovariate(1 / (interval * burst))
        while ends and ends[0][0] <= now:
            _, balancer, server = heapq.heappop(ends)
            flights[balancer][server] -= 1
        balancer = int(generator.random() * balancers)
        server = chooses[balancer](flights[balancer])
        end = max(now, free[server][0]) + draw()
        heapq.heapreplace(free[server], end)
        heapq.heappush(ends, (end, balancer, server))
        flights[balancer][server] += 1
        if number >= requests * WARM_UP:
            latencies.append(end - now)
    return sorted(latencies)


def at(latencies, share):
    return latencies[min(int(share * len(latencies)), len(latencies) - 1)]


def service_of(options, points):
    """Returns a function that draws service times, their mean and p99."""
    share, factor = options.long
    table = [quantile_of(points, (i + 0.5) / 4096) for i in range(4096)]

    def draw(generator):
        time = table[int(generator.random() * 4096)]
        return time * factor if generator.random() < share else time

    generator = random.Random(options.seed)
    return draw, mean_of(points) * (1 + share * (factor - 1)), at(sorted(draw(generator) for _ in range(100000)), 0.99)


def sweep(options, service):
    """Returns {(policy, servers): [(utilization, p50, p99)]}."""
    draw, mean, _ = service
    results = {}
    for servers in options.servers:
        for policy in POLICIES:
            rows = results[policy, servers] = []
            for utilization in UTILIZATIONS:
                generator = random.Random(options.seed)
                latencies = simulate(policy, servers, options.workers, mean / (servers * options.workers * utilization), options.burst,
                                     lambda: draw(generator), options.requests, generator)
                rows.append((utilization, at(latencies, 0.5), at(latencies, 0.99)))
    return results


def utilization_at(rows, limit):
    """Returns the utilization at which p99 reaches the limit, interpolated."""
    best = 0.0
    for index, (utilization, _, p99) in enumerate(rows):
        if p99 <= limit:
            best = utilization
            continue
        if index > 0 and rows[index - 1][2] <= limit:
            before, _, low = rows[index - 1]
            best = before + (limit - low) / (p99 - low) * (utilization - before)
        break
    return best


def show(options, results, service):
    _, mean, slow = service
    largest = options.servers[-1]
    print(f"mean service time {mean:.2f} ms, {options.workers} worker(s) a server, {options.requests} requests a point, bursts of {options.burst}")
    print(f"\n{largest} servers: p50 / p99 in ms by utilization\n{'':12}" + "".join(f"{value:>15.0%}" for value in UTILIZATIONS))
    for policy in POLICIES:
        print(f"{policy:12}" + "".join(f"{p50:8.1f} /{p99:5.0f}" for _, p50, p99 in results[policy, largest]))
    limit = MAX_SLOWDOWN * slow
    print(f"\nutilization at which p99 is {limit:.0f} ms, and throughput per server relative to one server\n{'':12}"
          + "".join(f"{servers:>15}" for servers in options.servers))
    for policy in POLICIES:
        values = [utilization_at(results[policy, servers], limit) for servers in options.servers]
        print(f"{policy:12}" + "".join(f"{value:8.2f} /{value / values[0] if values[0] else 0:5.2f}" for value in values))


def write(options, results):
    with open(options.out + ".tsv", "w", encoding="ascii") as file:
        file.write("policy\tservers\tutilization\tp50_ms\tp99_ms\n")
        for (policy, servers), rows in results.items():
            for utilization, p50, p99 in rows:
                file.write(f"{policy}\t{servers}\t{utilization}\t{p50:.3f}\t{p99:.3f}\n")
    with open(options.out + ".svg", "w", encoding="ascii") as file:
        file.write(plot(results, options.servers[-1]))
    print(f"files: {options.out}.tsv, {options.out}.svg")


def plot(results, servers):
    """An SVG of p99, on a logarithmic axis, against the utilization."""
    width, height, left, top, right, bottom = 730, 400, 60, 30, 600, 350
    values = [row[2] for policy in POLICIES for row in results[policy, servers]]
    low, high = min(values) / 1.2, max(values) * 1.2
    colors = ("#888", "#2a7", "#27c", "#c33", "#b6a")

    def x(utilization):
        return left + (right - left) * utilization

    def y(value):
        return bottom - (bottom - top) * math.log(value / low) / math.log(high / low)

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
             "<!-- SPDX-License-Identifier: Apache-2.0 -->", f'<rect width="{width}" height="{height}" fill="#fff"/>',
             f'<text x="{left}" y="18">p99 of the latency in ms by utilization, {servers} servers</text>']
    for step in range(0, 11, 2):
        lines.append(f'<path d="M{x(step / 10):.0f} {top}V{bottom}" stroke="#ddd"/><text x="{x(step / 10):.0f}" y="{bottom + 18}" text-anchor="middle">{step * 10} %</text>')
    for value in (scale * digit for scale in (1, 10, 100, 1000) for digit in (1, 2, 5)):
        if low <= value <= high:
            lines.append(f'<path d="M{left} {y(value):.0f}H{right}" stroke="#ddd"/><text x="{left - 6}" y="{y(value) + 4:.0f}" text-anchor="end">{value}</text>')
    for index, (policy, color) in enumerate(zip(POLICIES, colors)):
        points = " ".join(f"{x(row[0]):.1f},{y(row[2]):.1f}" for row in results[policy, servers])
        lines.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        lines.append(f'<text x="{right + 12}" y="{top + 20 + 18 * index}" fill="{color}">{policy}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


# ---- comparison with theory ----

def check():
    """Exponential service times with the mean 1: M/M/1 behind a random policy, and the limit of many servers for two choices."""
    failed = False

    def compare(name, found, expected, tolerance):
        nonlocal failed
        good = abs(found / expected - 1) <= tolerance
        failed = failed or not good
        print(f"{name:44} simulated {found:7.3f}, theory {expected:7.3f}   {'agrees' if good else 'DIFFERS'}")

    for load in (0.5, 0.8):
        for policy in ("random", "two-choices"):
            generator = random.Random(1)
            latencies = simulate(policy, 100, 1, 1 / (100 * load), 1, lambda: generator.expovariate(1), 300000, generator)
            mean = sum(latencies) / len(latencies)
            if policy == "random":
                compare(f"random, load {load}: mean", mean, 1 / (1 - load), 0.04)
                compare(f"random, load {load}: p99", at(latencies, 0.99), math.log(100) / (1 - load), 0.08)
            else:
                compare(f"two-choices, load {load}: mean", mean, sum(load ** (2 ** i - 2) for i in range(1, 12)), 0.04)
    generator = random.Random(1)
    latencies = simulate("random", 1, 1, 1 / 0.7, 1, lambda: 1.0, 300000, generator)
    compare("one server, constant times, load 0.7: mean", sum(latencies) / len(latencies), 1 + 0.7 / (2 * 0.3), 0.04)
    generator = random.Random(1)
    latencies = simulate("least", 1, 4, 1 / 2.8, 1, lambda: generator.expovariate(1), 300000, generator)
    compare("one server, 4 workers, load 0.7: mean", sum(latencies) / len(latencies), 1 + erlang_wait(4, 2.8), 0.04)
    return 1 if failed else 0


def erlang_wait(workers, load):
    """The mean wait of M/M/c with the mean service time 1 (Erlang C)."""
    top = load ** workers / math.factorial(workers) * workers / (workers - load)
    waits = top / (sum(load ** k / math.factorial(k) for k in range(workers)) + top)
    return waits / (workers - load)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--service", help="output of `kelp bench --json`")
    parser.add_argument("--long", type=lambda text: tuple(map(float, text.split(","))), default=(0.0, 1.0), metavar="SHARE,FACTOR")
    parser.add_argument("--workers", type=int, default=1, help="threads of a server that execute requests")
    parser.add_argument("--servers", type=lambda text: [int(value) for value in text.split(",")], default=[1, 3, 10, 100])
    parser.add_argument("--requests", type=int, default=200000, help="of each point")
    parser.add_argument("--burst", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", help="prefix of the files")
    parser.add_argument("--check", action="store_true", help="compare with queueing theory")
    options = parser.parse_args()
    if options.check:
        return check()
    points = read_service(options.service) if options.service else MINILM_MS
    service = service_of(options, points)
    results = sweep(options, service)
    show(options, results, service)
    if options.out:
        write(options, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
