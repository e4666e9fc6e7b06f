# SPDX-License-Identifier: Apache-2.0
"""Tables and the plot of the rows that bench/sweep.py measured."""
import json
import math
import os
import shlex

FLOOR_NS = 100
FLOOR_SHARE = 0.1  # of the cost of a call: shorter kernels are not told apart from it
STRATA = {"20us": "below 20 µs", "1ms": "20 µs to 1 ms", "above": "above 1 ms"}
PEERS = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
GOALS = "geometric mean at most 0.8, 95 % of cases at most 1.05, none above 1.3"
BEGIN, END = "<!-- sweep: begin -->", "<!-- sweep: end -->"


def read(path):
    """The last row of each case and number of threads."""
    found = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for text in file:
                if text.endswith("\n"):  # the last line of an interrupted run may be cut off
                    row = json.loads(text)
                    found[row["case"], row["threads"]] = row
    return list(found.values())


def kernel_ns(engine):
    """The time of an inference less that of an empty model."""
    return max(engine["median_ns"] - engine["base_ns"], FLOOR_SHARE * engine["base_ns"], FLOOR_NS)


def peer(row):
    """The name of the faster peer, or None. A peer whose results differ counts only if no other's agree."""
    ran = [name for name in PEERS if "median_ns" in row["engines"][name]]
    ran = [name for name in ran if name not in row["differs"]] or ran
    return min(ran, key=lambda name: kernel_ns(row["engines"][name])) if ran else None


def ratio(row):
    """Kelp's time to the faster peer's, or None where one of them did not run."""
    ours, name = row["engines"]["cpu"], peer(row)
    return kernel_ns(ours) / kernel_ns(row["engines"][name]) if name and "median_ns" in ours else None


def stratum(row):
    ns = kernel_ns(row["engines"][peer(row)])
    return "20us" if ns < 20e3 else "1ms" if ns < 1e6 else "above"


def is_wrong(row):
    """Whether Kelp's results differ from those of every peer that has results."""
    return bool(row["apart"]) and len(row["differs"]) == len(row["apart"])


def time_text(engine):
    if "median_ns" not in engine:
        return "-"
    ns = kernel_ns(engine)
    return f"{ns / 1e3:.1f} µs" if ns < 1e6 else f"{ns / 1e6:.2f} ms"


def line(row):
    value = ratio(row)
    ours = row["engines"]["cpu"]
    note = f"  kelp: {ours['error']}" if "error" in ours else "  DIFFERENT: " + str(row["apart"]) if is_wrong(row) else ""
    return (f"{value if value is not None else math.nan:6.2f}  {row['case']}  t{row['threads']}  "
            + "  ".join(time_text(row["engines"][name]) for name in ("cpu", *PEERS)) + note)


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def figures(rows):
    """Geometric mean, share of rows at most 1.05, worst, rows."""
    values = [ratio(row) for row in rows]
    worst = max(rows, key=ratio)
    return {"mean": round(mean(values), 3), "at_most_1.05": round(sum(v <= 1.05 for v in values) / len(values), 3), "worst": round(ratio(worst), 2),
            "worst_case": worst["case"], "above_1.3": sum(v > 1.3 for v in values), "rows": len(values)}


def grouped(rows, key):
    groups = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return {name: groups[name] for name in sorted(groups)}


def summary(rows):
    """Lines of Markdown: each stratum and number of threads, then each family and type in each stratum."""
    yield "| time of the faster peer | threads | geometric mean | at most 1.05 | above 1.3 | worst | rows |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for (name, threads), group in grouped(rows, lambda row: (list(STRATA).index(stratum(row)), row["threads"])).items():
        got = figures(group)
        yield (f"| {list(STRATA.values())[name]} | {threads} | **{got['mean']:.2f}** | {100 * got['at_most_1.05']:.0f} % | {got['above_1.3']} | "
               f"{got['worst']:.2f} | {got['rows']} |")
    yield ""
    yield "| family | type | " + " | ".join(STRATA.values()) + " |"
    yield "|---|---|" + "--:|" * len(STRATA)
    for (family, dtype), group in grouped(rows, lambda row: (row["family"], row["dtype"])).items():
        cells = []
        for name in STRATA:
            part = [row for row in group if stratum(row) == name]
            got = figures(part) if part else None
            cells.append(f"{got['mean']:.2f}, {100 * got['at_most_1.05']:.0f} %, {got['worst']:.2f} ({got['rows']})" if got else "")
        yield f"| {family} | {dtype} | " + " | ".join(cells) + " |"


def losses(rows, count):
    yield "| ratio | case | threads | Kelp | " + " | ".join(PEERS.values()) + " | spread |"
    yield "|--:|---|--:|--:|" + "--:|" * (len(PEERS) + 1)
    for row in sorted((row for row in rows if ratio(row) > 1.05), key=ratio, reverse=True)[:count]:
        times = [time_text(row["engines"][name]) for name in ("cpu", *PEERS)]
        spread = max(got.get("spread", 0) for got in row["engines"].values())
        yield f"| {ratio(row):.2f} | `{row['case']}` | {row['threads']} | " + " | ".join(times) + f" | {spread:.2f} |"


def plot(rows):
    """An SVG: the distribution of all ratios on a logarithmic axis, one curve for each stratum."""
    left, right, top, bottom, width = 60, 700, 50, 300, 730
    low, high = -5.0, 3.0
    colours = dict(zip(STRATA, ("#1b6e53", "#c0632b", "#30539c")))

    def at(value):
        return left + (right - left) * (min(max(math.log2(value), low), high) - low) / (high - low)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="340" font-family="sans-serif" font-size="12">',
           "<!-- SPDX-License-Identifier: Apache-2.0 -->", f'<rect width="{width}" height="340" fill="#fff"/>',
           f'<text x="{left}" y="18">Share of cases with at most this ratio: kernel time of Kelp / the faster peer</text>']
    for power in range(int(low), int(high) + 1):
        x = at(2.0 ** power)
        out.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="{"#444" if power == 0 else "#ddd"}"/>'
                   f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{2.0 ** power:g}</text>')
    for percent in range(0, 101, 25):
        y = bottom - (bottom - top) * percent / 100
        out.append(f'<line x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#ddd"/>'
                   f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{percent} %</text>')
    for i, (name, label) in enumerate(STRATA.items()):
        values = sorted(ratio(row) for row in rows if stratum(row) == name)
        if not values:
            continue
        points = " ".join(f"{at(value):.1f},{bottom - (bottom - top) * (k + 1) / len(values):.1f}" for k, value in enumerate(values))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colours[name]}" stroke-width="1.8"/>'
                   f'<text x="{left + 210 * i}" y="36" fill="{colours[name]}">{label} ({len(values)} rows)</text>')
    return "\n".join([*out, "</svg>", ""])


def select(options):
    """The rows that the options select."""
    fits = {"op": "op", "dtype": "dtype", "family": "family"}
    return [row for row in read(options.results)
            if all(not getattr(options, word) or row[key] in getattr(options, word) for word, key in fits.items())
            and (not options.half or row["half"] == options.half)]


def others(rows):
    """Lines on rows without a ratio, and on different results."""
    failed = [row for row in rows if "median_ns" not in row["engines"]["cpu"]]
    alone = [row for row in rows if "median_ns" in row["engines"]["cpu"] and peer(row) is None]
    wrong = [row for row in rows if is_wrong(row)]
    yield f"{len(alone)} rows have no peer."
    for title, some in (("Kelp does not run", failed), ("Results differ from every peer that ran", wrong)):
        yield f"{title}: {len(some)} rows."
        for row in some[:100]:
            yield f"- `{row['case']}`, {row['threads']} threads: {row['engines']['cpu'].get('error') or row['apart']}"


def replace(path, body):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if BEGIN not in text or END not in text:
        raise SystemExit(f"'{path}' has no lines '{BEGIN}' and '{END}'")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text[:text.index(BEGIN) + len(BEGIN)] + "\n" + body + text[text.index(END):])


def write(options):
    every = select(options)
    rows = [row for row in every if ratio(row) is not None and (not options.stratum or stratum(row) == options.stratum)]
    if not rows:
        raise SystemExit(f"'{options.results}' has no such row with a peer")
    tables = [*summary(rows), "", *losses(rows, options.worst)]
    body = "\n".join([*tables, "", *others(every), ""])
    print(body)
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as file:
            file.write(f"Repeat a row: `python bench/sweep.py --results {shlex.quote(options.results)} --case CASE`\n\n" + body)
    if options.json:
        strata = {f"{name}, {threads} threads": figures(group) for (name, threads), group in
                  grouped(rows, lambda row: (stratum(row), row["threads"])).items()}
        families = {" ".join(key): figures(group) for key, group in
                    grouped(rows, lambda row: (row["family"], row["dtype"], stratum(row))).items()}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"strata": strata, "families": families,
                       "losses": [{**row, "ratio": ratio(row)} for row in sorted(rows, key=ratio, reverse=True) if ratio(row) > 1.05]}, file, indent=1)
    if options.write:
        image = os.path.join(os.path.dirname(options.write), "pictures", "sweep.svg")
        os.makedirs(os.path.dirname(image), exist_ok=True)
        with open(image, "w", encoding="utf-8") as file:
            file.write(plot(rows))
        replace(options.write, "\n![Distribution of the ratios](pictures/sweep.svg)\n\n" + "\n".join(tables) + "\n\n")
