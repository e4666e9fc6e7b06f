#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Extracts the examples of the documentation and runs them.

    shown.py DOCUMENT NAME OUT                    writes the block of C or C++ whose first line has this name
    shown.py DOCUMENT --run --build FOLDER --prefix PREFIX
                                                  saves every named block, runs the sh and python blocks in order, and compares their
                                                  output with the following text block, in which … matches anything

A comment directly above a block may change how it runs:
    <!-- setup: COMMANDS -->                      the commands run first, in the same shell as a sh block
    <!-- not run: REASON -->                      the block does not run

Each sh block is a new shell in a temporary directory with `examples` and `tests` of a clone; the python blocks of a page are one program
there. Both use the program, headers and libraries in PREFIX, where the build in FOLDER is installed, and the Python package of FOLDER; without
such a package, python blocks do not run. `kelp serve` and `tritonserver` at the beginning of a line serve in the background, on free ports,
until the next of them or the end of the page. Ports in `localhost:PORT` are replaced accordingly. In a cross build, FOLDER/emulated contains
the emulated programs and a compiler.
"""
import argparse
import contextlib
import io
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import typing

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BLOCK = re.compile(r"(?:^ *<!-- (?P<kind>setup|not run): (?P<comment>(?:(?!-->).)*?) -->\n)?"
                   r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S)
SERVE = re.compile(r"^(?P<variables>(?:\w+=\S+ +)*)(?P<program>kelp serve|tritonserver)\b", re.M)
# Functions for sh blocks: serve starts a server and waits until it is ready; curl fails if the status is that of an error.
PRELUDE = """
serve() {
    shown_stop
    "$@" >"$SHOWN/server.log" 2>&1 &
    echo $! >"$SHOWN/server.pid"
    until command curl -sf "localhost:$SHOWN_PORT/v2/health/ready" >"$SHOWN/ready"; do
        kill -0 $! 2>"$SHOWN/ready" || { cat "$SHOWN/server.log"; return 1; }
        sleep 0.1
    done
}
shown_stop() {
    [ -e "$SHOWN/server.pid" ] || return 0
    kill "$(cat "$SHOWN/server.pid")"
    while kill -0 "$(cat "$SHOWN/server.pid")" 2>"$SHOWN/ready"; do sleep 0.1; done
    rm "$SHOWN/server.pid"
}
curl() { command curl --fail-with-body "$@"; }
"""


class Block(typing.NamedTuple):
    """A fenced block; line is the number of its first line."""
    language: str
    text: str
    line: int
    setup: str = ""
    not_run: str = ""


def blocks(document):
    """Returns the fenced blocks of a document."""
    with open(document, encoding="utf-8") as file:
        text = file.read()
    found = []
    for match in BLOCK.finditer(text):
        comments = {"setup": "", "not run": ""}
        if match["kind"]:
            comments[match["kind"]] = match["comment"]
        lines = re.sub("^" + match["indent"], "", match["text"], flags=re.M)
        found.append(Block(match["language"], lines, text.count("\n", 0, match.start("text")) + 1, comments["setup"], comments["not run"]))
    return found


def sources(document):
    """Returns a dict from name to text of the C and C++ blocks; a first line such as /* add.c: purpose */ names one."""
    found = {}
    for block in blocks(document):
        named = re.match(r"/\* ([\w.]+)", block.text)
        if block.language in ("c", "cpp") and named:
            if named[1] in found:
                sys.exit(f"{document}:{block.line}: block '{named[1]}' exists twice")
            found[named[1]] = block.text
    return found


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def matches(expected, printed):
    pattern = re.escape(expected.strip()).replace("…", ".*")
    return re.fullmatch(pattern, printed.strip(), re.S) is not None


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Page:
    """Runs the blocks of a document in a directory."""

    def __init__(self, document, build, prefix, directory, kept):
        self.document, self.directory, self.kept, self.ports, self.names = document, directory, kept, {}, {"__name__": "__main__"}
        self.has_package = os.path.isdir(build + "/python")
        self.environment = dict(os.environ, PYTHONPATH=build + "/python", PYTHONDONTWRITEBYTECODE="1", PKG_CONFIG_PATH=prefix + "/lib/pkgconfig",
                                LD_LIBRARY_PATH=prefix + "/lib", KELP_PREFIX=prefix, SHOWN=kept, SHOWN_PORT=str(self.port("8000")),
                                PATH=":".join((build + "/emulated", prefix + "/bin", os.path.dirname(sys.executable), os.environ["PATH"])))
        sys.path.insert(0, build + "/python")

    def port(self, shown):
        """Returns the free port that replaces one that is shown."""
        if shown not in self.ports:
            self.ports[shown] = free_port()
        return self.ports[shown]

    def replace_ports(self, text):
        return re.sub(r"(localhost:|-port[ =])(\d+)", lambda found: found[1] + str(self.port(found[2])), text)

    def commands(self, text):
        """Returns shell commands that serve in the background."""
        def background(found):
            ports = {"kelp serve": {"http": "8000"}, "tritonserver": {"http": "8000", "grpc": "8001", "metrics": "8002"}}[found["program"]]
            line = re.match(r"(?:[^\n]*\\\n)*[^\n]*", text[found.start():])[0]
            options = "".join(f" --{name}-port={self.port(port)}" for name, port in ports.items() if f"--{name}-port" not in line)
            return f"{found['variables']}serve {found['program']}{options}"
        return SERVE.sub(background, text)

    def shell(self, block, text):
        ended = subprocess.run(["bash", "-euo", "pipefail", "-c", PRELUDE + self.commands(self.replace_ports(text))], cwd=self.directory,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False, env=self.environment, timeout=300)
        if ended.returncode != 0:
            sys.exit(f"{self.document}:{block.line}: the commands failed with {ended.returncode}:\n{text}\n{ended.stdout}")
        return ended.stdout

    def python(self, block):
        if block.setup:
            self.shell(block, block.setup)
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * (block.line - 1) + self.replace_ports(block.text), self.document, "exec"), self.names)
        except Exception:
            sys.exit(f"{self.document}:{block.line}: the program failed:\n{block.text}\n{printed.getvalue()}{traceback.format_exc()}")
        return printed.getvalue()

    def run(self):
        """Returns the numbers of blocks that ran, of compared outputs, and of blocks that did not run."""
        ran = compared = left_out = 0
        printed = None
        for block in blocks(self.document):
            if block.language == "text" and printed is not None:
                compared += 1
                if not matches(block.text, printed):
                    sys.exit(f"{self.document}:{block.line}: expected\n{block.text}\nfound\n{printed}")
            printed = None
            if block.language in ("sh", "python"):
                if block.not_run or (block.language == "python" and not self.has_package):
                    left_out += 1
                    continue
                ran += 1
                printed = self.shell(block, block.setup + "\n" + block.text) if block.language == "sh" else self.python(block)
        return ran, compared, left_out

    def stop(self):
        """Stops the server, if one runs."""
        try:
            with open(self.kept + "/server.pid", encoding="utf-8") as file:
                server = int(file.read())
            os.kill(server, signal.SIGTERM)
            for _ in range(300):
                os.kill(server, 0)
                time.sleep(0.1)
        except (FileNotFoundError, ProcessLookupError):
            return
        os.kill(server, signal.SIGKILL)
        sys.exit(f"{self.document}: the server did not stop")


def run(document, build, prefix):
    """Runs a document and returns what Page.run returns."""
    document, build, prefix = (os.path.abspath(path) for path in (document, build, prefix))
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as kept:
        for name in ("examples", "tests"):
            os.symlink(os.path.join(ROOT, name), os.path.join(directory, name))
        for name, text in sources(document).items():
            write(os.path.join(directory, name), text)
        page, before = Page(document, build, prefix, directory, kept), os.getcwd()
        os.chdir(directory)
        try:
            return page.run()
        finally:
            os.chdir(before)
            page.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("document")
    parser.add_argument("name", nargs="?")
    parser.add_argument("out", nargs="?")
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--build")
    parser.add_argument("--prefix")
    options = parser.parse_args()
    if options.run:
        ran, compared, left_out = run(options.document, options.build, options.prefix)
        print(f"{options.document}: {ran} blocks ran, {compared} outputs match, {left_out} blocks do not run")
        return
    found = sources(options.document).get(options.name)
    if found is None:
        sys.exit(f"{options.document}: no C block starts with '/* {options.name}'")
    write(options.out, found)


if __name__ == "__main__":
    main()
