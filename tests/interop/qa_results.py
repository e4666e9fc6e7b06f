# SPDX-License-Identifier: Apache-2.0
"""Results of a run of NVIDIA's QA scripts: the cases of one directory, and the comparison of two libraries.

A case is a Python test (recorded by record/sitecustomize.py) or a check of the script itself. A check is an `if` of test.sh that contains `RET=1` or
`exit 1`: the trace of bash (TRACE below) shows each time that the condition was evaluated and whether the failure followed. A case has a name that
is the same for both libraries: the test or line, and how many times it ran before."""
import collections
import json
import os
import re

# Read by each bash that test.sh starts (BASH_ENV); bash does not take PS4 from the environment of root. A server that crashed does not end a script
# with `set -e` when it stops the server: the following tests start another one.
TRACE = r"""kill() { builtin kill "$@" || [[ $- == *e* && $1 != -0 ]]; }
wait() { builtin wait "$@" || { local status=$?; [[ $- == *e* ]] || return $status; }; }
exec 9>>"$KELP_QA_TRACE"
BASH_XTRACEFD=9
PS4='+${BASH_SOURCE}:${LINENO}: '
set -x
"""
# Undoes each `set -e` before the next command.
KEEP_GOING = """set -T
trap 'set +e' DEBUG
"""
FAILURE = re.compile(r"^\s*(RET=1|exit 1)\b")
PASSED, SKIPPED = "passed", "skipped"


def checks_of(script):
    """Returns {line of a failure: line of the condition that leads to it} of a script."""
    found, open_lines = {}, []
    with open(script, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            text = line.strip()
            if re.match(r"if\b", text):
                open_lines.append(number)
            elif re.match(r"elif\b", text) and open_lines:
                open_lines[-1] = number
            elif re.match(r"fi\b", text) and open_lines:
                open_lines.pop()
            elif FAILURE.match(line) and open_lines:
                found[number] = open_lines[-1]
    return found


def script_cases(trace, directory):
    """Reads the checks of the scripts (test.sh) from the trace of bash."""
    scripts, cases, ran, last = {}, {}, collections.Counter(), {}
    if not os.path.exists(trace):
        return cases
    with open(trace, encoding="utf-8", errors="replace") as file:
        for line in file:
            match = re.match(r"^\++(\S*test\.sh):(\d+): (.*)", line)
            if not match:
                continue
            path, number, command = match[1], int(match[2]), match[3]
            if path not in scripts:
                # A nested script is traced with the name that it was called by.
                real = os.path.join(directory, path)
                scripts[path] = checks_of(real) if os.path.exists(real) else {}
            if number in scripts[path].values() and not FAILURE.match(command):
                previous = last.get((path, number))
                # A condition of several commands (`[ A ] || [ B ]`) is one check.
                if previous is None or previous != "condition":
                    ran[path, number] += 1
                    cases[f"{path}:{number} #{ran[path, number]}"] = PASSED
                last = {(path, number): "condition"}
            else:
                last = {}
                condition = scripts[path].get(number)
                if condition and FAILURE.match(command):
                    cases[f"{path}:{condition} #{ran[path, condition]}"] = "failed"
    return cases


def python_cases(path):
    cases, ran = {}, collections.Counter()
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                outcome, script, test = line.rstrip("\n").split("\t")
                ran[script, test] += 1
                cases[f"{script} {test} #{ran[script, test]}"] = outcome
    return cases


def counts(cases):
    counted = [outcome for outcome in cases.values() if outcome != SKIPPED]
    return len(counted), counted.count(PASSED)


def worse(kelp, nvidia):
    """Returns the cases that NVIDIA's library passes and ours does not."""
    return [f"{case}: {kelp[kind].get(case, 'did not run')}" for kind in ("tests", "checks") for case, outcome in nvidia[kind].items()
            if outcome == PASSED and kelp[kind].get(case) != PASSED]


def read(work, name, library):
    path = os.path.join(work, f"{name}.{library}.json")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write(work, name, library, result):
    with open(os.path.join(work, f"{name}.{library}.json"), "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)


def table(work, names, ours):
    """Returns the lines of the table of all stored results of NVIDIA's server and ours ("kelp": our library, "server": our program), and the number of
    cases that only NVIDIA's passes."""
    lines = ["| directory | tests | NVIDIA | Kelp | checks | NVIDIA | Kelp | only NVIDIA |", "|---|---|---|---|---|---|---|---|"]
    total = 0
    for name in names:
        kelp, nvidia = read(work, name, ours), read(work, name, "nvidia")
        if not kelp and not nvidia:
            continue
        empty = {"tests": {}, "checks": {}}
        row = []
        for kind in ("tests", "checks"):
            first, second = counts((nvidia or empty)[kind]), counts((kelp or empty)[kind])
            row += [max(first[0], second[0]), first[1] if nvidia else "", second[1] if kelp else ""]
        only = len(worse(kelp, nvidia)) if kelp and nvidia else ""
        total += only or 0
        lines.append(f"| {name} | " + " | ".join(map(str, row)) + f" | {only} |")
    return lines, total
