# SPDX-License-Identifier: Apache-2.0
"""Shared by the end-to-end tests: a `kelp serve` on a free port, HTTP without a client library, and temporary model repositories."""
import argparse
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODELS = os.path.join(ROOT, "tests", "data", "models")
KELP = None
# Generous, since sanitizers and loaded machines are slow.
PATIENCE_S = 120


def read_json(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return json.load(file)


def is_sanitized():
    """Returns true if kelp is built with AddressSanitizer, which uses more memory."""
    with open(KELP, "rb") as file:
        return b"__asan_init" in file.read()


def kelp(*words, **options):
    """Runs a command of kelp and waits for its end."""
    return subprocess.run([KELP, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE_S,
                          stdin=subprocess.DEVNULL, check=False, **options)


class Server:
    """Runs `kelp serve` with the given arguments; `url` is set once it is ready."""

    def __init__(self, *words, ready=True, environment=None):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([KELP, "serve", "--http-address", "127.0.0.1", "--http-port", "0",
                                         *map(str, words)],
                                        stdout=subprocess.PIPE, stderr=self.errors, stdin=subprocess.DEVNULL,
                                        env={**os.environ, **(environment or {})})
        self.output = ""
        self.url = None
        self.port = None
        self.up = threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        if ready:
            self.wait()

    def read(self):
        for line in self.process.stdout:
            self.output += line.decode()
            found = re.match(r"HTTP  https?://127\.0\.0\.1:(\d+)", line.decode())
            if found:
                self.port = int(found.group(1))
                self.url = f"127.0.0.1:{self.port}"
                self.up.set()
        self.up.set()

    def wait(self):
        self.up.wait(PATIENCE_S)
        if not self.url:
            self.process.kill()
            raise AssertionError(f"kelp serve printed no address:\n{self.output}\n{self.log()}")

    def log(self):
        # The process writes at the same file position, which must not be moved.
        descriptor = self.errors.fileno()
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode("utf-8", "replace")

    def call(self, verb, path, body=None, **headers):
        """Returns the status, the headers with names in lower case, and the body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            connection.request(verb, path, body, {name.replace("_", "-"): str(value) for name, value in headers.items()})
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        finally:
            connection.close()

    def infer(self, model, request):
        status, _, body = self.call("POST", f"/v2/models/{model}/infer", request)
        return status, json.loads(body or b"{}")

    def metrics(self):
        return self.call("GET", "/metrics")[2].decode()

    def stop(self, how=signal.SIGTERM):
        """Returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"kelp serve did not stop:\n{self.log()}") from None
        self.reader.join(PATIENCE_S)
        self.process.stdout.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.reader.join(PATIENCE_S)
        self.process.stdout.close()
        self.errors.close()


class Repository:
    """A model repository in a temporary directory."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="kelp-e2e-")

    def add(self, name, model=None, config=None, version="1"):
        directory = os.path.join(self.path, name)
        os.makedirs(os.path.join(directory, version))
        if model:
            shutil.copy(model, os.path.join(directory, version, "model.onnx"))
        if config is not None:
            with open(os.path.join(directory, "config.pbtxt"), "w", encoding="utf-8") as file:
                file.write(config)

    def example(self, name):
        shutil.copytree(os.path.join(ROOT, "examples", "models", name), os.path.join(self.path, name))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def main():
    global KELP
    parser = argparse.ArgumentParser()
    parser.add_argument("--kelp", default=os.environ.get("KELP_BIN"))
    options, rest = parser.parse_known_args()
    if not options.kelp:
        parser.error("--kelp is needed")
    KELP = os.path.abspath(options.kelp)
    began = time.monotonic()
    program = unittest.main(module="__main__", argv=[sys.argv[0]] + rest, exit=False, verbosity=2)
    print(f"took {time.monotonic() - began:.1f} s", file=sys.stderr)
    sys.exit(0 if program.result.wasSuccessful() else 1)
