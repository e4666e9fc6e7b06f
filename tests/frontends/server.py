# SPDX-License-Identifier: Apache-2.0
"""The server under test: `kelp serve` with the models that cases.py needs, or one that is already running."""
import argparse
import os
import sys
import unittest

import cases

sys.path.insert(0, os.path.join(cases.ROOT, "tests", "e2e"))
import support  # noqa: E402: found by the line above

PAIR = [("INPUT0", "FP32"), ("INPUT1", "FP32")]
CONFIGS = {
    "identity": ("identity", [("INPUT0", "INT64")], [("OUTPUT0", "INT64")], "instance_group { kind: KIND_CPU count: 1 }"),
    "addsub": ("addsub", PAIR, [("OUTPUT0", "FP32"), ("OUTPUT1", "FP32")], ""),
    "repeat": ("repeat", [("IN", "INT32")], [("OUT", "INT32"), ("IDX", "UINT32")],
               "model_transaction_policy { decoupled: true }"),
}
# Loaded by the cases, not at the start.
SPARE = "spare"
# Has no tensors; loaded with configurations of the cases.
ANY = "any"


def tensors(kind, items):
    return "".join(f'{kind} {{ name: "{name}" data_type: TYPE_{datatype} dims: [ -1 ] }}\n' for name, datatype in items)


class Server:
    """Serves the models; `host` and `port` once it is ready."""

    def __init__(self, kelp):
        support.KELP = os.path.abspath(kelp)
        self.repository = support.Repository()
        self.repository.example("digits")
        self.repository.add(SPARE, os.path.join(cases.ROOT, "examples", "models", "digits", "1", "model.onnx"))
        self.repository.add(ANY, config='backend: "identity"')
        self.repository.add("strings", os.path.join(support.MODELS, "string_identity.onnx"))
        for name, (backend, inputs, outputs, more) in CONFIGS.items():
            self.repository.add(name, config=f'backend: "{backend}"\n' + tensors("input", inputs) + tensors("output", outputs) + more)
        loaded = [word for name in ("digits", "strings", *CONFIGS) for word in ("--load-model", name)]
        self.server = support.Server("--model-repository", self.repository.path, "--model-control-mode", "explicit",
                                     "--http-max-input-size", cases.MAX_INPUT_SIZE, *loaded)
        self.host, self.port = "127.0.0.1", self.server.port

    def stop(self):
        """Returns the exit code."""
        try:
            return self.server.stop()
        finally:
            self.server.__exit__()
            self.repository.__exit__()


def main(module, use, started="http"):
    """Runs the tests of a module. `use(scheme, host, port)` tells it the server under test. The scheme is
    `started` if this program starts it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kelp", default=os.environ.get("KELP_BIN"), help="starts this program")
    parser.add_argument("--url", help="SCHEME://HOST:PORT of a running server, with the models and options of server.py")
    options, rest = parser.parse_known_args()
    if not options.url and not options.kelp:
        parser.error("--kelp or --url is needed")
    server = None
    if options.url:
        scheme, _, address = options.url.partition("://")
        host, _, port = address.rpartition(":")
        use(scheme, host, int(port))
    else:
        server = Server(options.kelp)
        use(started, server.host, server.port)
    program = unittest.main(module=module, argv=[sys.argv[0]] + rest, exit=False, verbosity=2)
    code = server.stop() if server else 0
    if code:
        print(f"the server stopped with {code}", file=sys.stderr)
    return 0 if program.result.wasSuccessful() and not code else 1
