#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of NVIDIA's client libraries, unmodified, against Kelp's `tritonserver`, and prints a table.

    client_examples.py SOURCES [--build BUILD] [--languages go,javascript] [--only TEXT]

SOURCES is a copy of NVIDIA's repository "client", which is not part of Kelp. The examples in Python use the tritonclient of the Python
that runs this script, which also needs onnx, Pillow, attrdict and setuptools; those in Go and JavaScript are built in copies of their
directories, with packages that go and npm download. The servers listen on Triton's ports in a private network namespace, which needs root."""
import argparse
import ctypes
import glob
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

import client_models

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = "src/python/examples"
PROTOCOL = "src/rust/triton-client/proto"  # the definitions of the protocol, for protoc
# Arguments of the examples: one run for each tuple. Those without an entry run once, without arguments.
RUNS = {
    "image_client.py": [("-m", "densenet_onnx", "-s", "INCEPTION", "-c", "3", *more, "IMAGE") for more in
                        ((), ("-a",), ("-i", "grpc", "-u", "localhost:8001"), ("-i", "grpc", "-u", "localhost:8001", "-a"),
                         ("-i", "grpc", "-u", "localhost:8001", "-a", "--streaming"))],
    "grpc_image_client.py": [("-m", "densenet_onnx", "-s", "INCEPTION", "-c", "3", *more, "IMAGE") for more in
                             ((), ("-a",), ("-a", "--streaming"))],
    "memory_growth_test.py": [(), ("-i", "grpc")],
    "reuse_infer_objects_client.py": [(), ("-i", "grpc", "-u", "localhost:8001")],
    "simple_grpc_infer_client.py": [(), ("-C", "gzip"), ("-C", "deflate"), ("-t", "5")],
    "simple_grpc_aio_infer_client.py": [(), ("-C", "gzip")],
    "simple_http_infer_client.py": [(), ("--request-compression-algorithm", "gzip", "--response-compression-algorithm", "deflate")],
    "simple_http_aio_infer_client.py": [(), ("--request-compression-algorithm", "deflate", "--response-compression-algorithm", "gzip")],
    "simple_grpc_keepalive_client.py": [(), ("--grpc-keepalive-time", "1000", "--grpc-keepalive-permit-without-calls")],
    **{f"simple_{name}.py": [(), ("-d",), ("-o", "5")] for name in
       ("grpc_sequence_stream_infer_client", "grpc_sequence_sync_infer_client", "http_sequence_sync_infer_client",
        "grpc_aio_sequence_stream_infer_client")},
}
# Over TLS, with certificates of clients over gRPC.
TLS_RUNS = {
    "simple_http_infer_client.py": ("-s", "--ca-certs", "CERTS/ca.pem"),
    "simple_http_aio_infer_client.py": ("-s", "--ca-certs", "CERTS/ca.pem", "--insecure"),
    "simple_grpc_infer_client.py": ("-s", "-r", "CERTS/ca.pem", "-p", "CERTS/client.key", "-x", "CERTS/client.pem"),
    "simple_grpc_aio_infer_client.py": ("-s", "-r", "CERTS/ca.pem", "-p", "CERTS/client.key", "-x", "CERTS/client.pem"),
}
# They count the models of the repository.
CONTROL = {"simple_http_model_control.py": 7, "simple_grpc_model_control.py": 8}
LEFT_OUT = {
    "simple_http_cudashm_client.py": "needs a GPU",
    "simple_grpc_cudashm_client.py": "needs a GPU",
    "ensemble_image_client.py": "its model preprocess_inception_ensemble is not published; NVIDIA's QA leaves it out too",
}
IMAGES = ("image_client.py", "grpc_image_client.py")  # print classes


def openssl(directory, *arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=directory)


def make_certificates(directory):
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl(directory, "req", "-x509", *key, "-days", "2", "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.pem")
    with open(os.path.join(directory, "names"), "w", encoding="utf-8") as file:
        file.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in ("server", "client"):
        openssl(directory, "req", *key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl(directory, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-extfile", "names", "-out", f"{name}.pem")


def make_image(path):
    from PIL import Image
    Image.radial_gradient("L").convert("RGB").resize((320, 240)).save(path)


class Server:
    """A `tritonserver` on Triton's ports."""

    def __init__(self, build, repository, *arguments, certificates=None):
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log")
        self.process = subprocess.Popen([os.path.join(build, "bin", "tritonserver"), "--model-repository", repository, "--backend-directory",
                                         os.path.join(build, "backends"), "--allow-client-shm=true", *arguments], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=subprocess.STDOUT)
        context = ssl.create_default_context(cafile=os.path.join(certificates, "ca.pem")) if certificates else None
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http{'s' if certificates else ''}://localhost:8000/v2", timeout=1, context=context):
                    return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        self.stop()
        raise SystemExit(f"the server did not start:\n{self.text()}")

    def text(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Ends the server. An exit code other than 0 is a failure."""
        self.process.terminate()
        code = self.process.wait(60)
        if code:
            raise SystemExit(f"the server ended with {code}:\n{self.text()}")


class Table:
    def __init__(self, only):
        self.only = only
        self.rows = []

    def wants(self, name):
        return self.only is None or self.only in name

    def run(self, name, arguments, directory, expected="PASS"):
        """Runs an example. It passes if it exits with 0 and prints what is expected."""
        if not self.wants(name):
            return
        try:
            done = subprocess.run(arguments, cwd=directory, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL)
            code, output = done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired as error:
            code, output = "no end after 300 s", str(error.stdout)
        passed = code == 0 and expected in output
        self.add(name, "passes" if passed else f"FAILS ({code})")
        if not passed:
            print(output[-4000:])

    def add(self, name, result):
        if self.wants(name):
            self.rows.append((name, result))
            print(f"{name:110} {result}", flush=True)


def python_examples(options, table, scratch):
    directory = os.path.join(options.sources, PYTHON)
    places = {"IMAGE": os.path.join(scratch, "image.jpg"), "CERTS": scratch}

    def run(name, arguments):
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            expected = "CLASS " if name in IMAGES else "PASS" if 'print("PASS' in file.read() else ""
        filled = [each.replace("IMAGE", places["IMAGE"]).replace("CERTS", places["CERTS"]) for each in arguments]
        table.run(" ".join((name, *arguments)), [sys.executable, name, *filled], directory, expected)

    names = sorted(os.path.basename(path) for path in glob.glob(os.path.join(directory, "*.py")))
    models = os.path.join(scratch, "models")
    with Server(options.build, models):
        for name in names:
            if name in LEFT_OUT:
                table.add(name, "left out: " + LEFT_OUT[name])
            elif name not in CONTROL:
                for arguments in RUNS.get(name, [()]):
                    run(name, arguments)
        for name, arguments, place, expected in options.built:
            table.run(name, arguments, place, expected)
    with Server(options.build, models, "--tls-cert", f"{scratch}/server.pem", "--tls-key", f"{scratch}/server.key", "--tls-ca",
                f"{scratch}/ca.pem", "--tls-client-auth", "optional", certificates=scratch):
        for name, arguments in TLS_RUNS.items():
            run(name, arguments)
    for name, count in CONTROL.items():
        fewer = os.path.join(scratch, f"models-{count}")
        os.makedirs(fewer)
        for model in sorted(os.listdir(models), reverse=True)[:count]:
            shutil.copytree(os.path.join(models, model), os.path.join(fewer, model))
        with Server(options.build, fewer, "--model-control-mode=explicit"):
            run(name, ())


def go_example(options, table, scratch):
    """The gRPC client in Go, with code that protoc makes from the definitions in the sources."""
    name, directory = "grpc_simple_client.go", os.path.join(scratch, "go")
    if not all(map(shutil.which, ("go", "protoc"))):
        table.add(name, "left out: go or protoc is missing")
        return
    shutil.copytree(os.path.join(options.sources, "src/grpc_generated/go"), directory)
    environment = {**os.environ, "GOBIN": os.path.join(scratch, "bin"), "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    environment["PATH"] += ":" + environment["GOBIN"]
    shutil.copytree(os.path.join(options.sources, PROTOCOL), os.path.join(directory, "common", "protobuf"))
    for arguments in (["go", "install", "google.golang.org/protobuf/cmd/protoc-gen-go@latest"],
                      ["go", "install", "google.golang.org/grpc/cmd/protoc-gen-go-grpc@latest"],
                      ["sh", "gen_go_stubs.sh"], ["go", "build", "-o", "client", "grpc_simple_client.go"]):
        done = subprocess.run(arguments, cwd=directory, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            table.add(name, f"left out: {' '.join(arguments[:2])} failed: {done.stderr.strip()[-200:]}")
            return
    options.built.append((name, ["./client"], directory, "15 - 1 = 14"))


def node_example(options, table, scratch):
    name, directory = "javascript/client.js", os.path.join(scratch, "javascript")
    if not shutil.which("npm"):
        table.add(name, "left out: npm is missing")
        return
    shutil.copytree(os.path.join(options.sources, "src/grpc_generated/javascript"), directory)
    shutil.copytree(os.path.join(options.sources, PROTOCOL), os.path.join(directory, "proto"))
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund"], cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        table.add(name, f"left out: npm failed: {done.stderr.strip()[-200:]}")
        return
    options.built.append((name, ["node", "client.js"], directory, "15 - 15 = 0"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--languages", help="also build and run the examples in go,javascript")
    parser.add_argument("--only", help="run only the examples whose name contains this")
    options = parser.parse_args()
    options.sources, options.build = os.path.abspath(options.sources), os.path.abspath(options.build)
    options.built = []  # (name, command, directory, expected output) of examples in other languages
    table = Table(options.only)
    with tempfile.TemporaryDirectory() as scratch:
        for language in options.languages.split(",") if options.languages else ():
            {"go": go_example, "javascript": node_example}[language](options, table, scratch)
        if ctypes.CDLL(None, use_errno=True).unshare(0x40000000):  # CLONE_NEWNET
            raise SystemExit(f"cannot create a network namespace: {os.strerror(ctypes.get_errno())}")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        client_models.make(os.path.join(scratch, "models"))
        make_certificates(scratch)
        make_image(os.path.join(scratch, "image.jpg"))
        python_examples(options, table, scratch)
    failed = sum("FAILS" in result for _, result in table.rows)
    left = sum("left out" in result for _, result in table.rows)
    print(f"{len(table.rows) - failed - left} passed, {failed} failed, {left} left out")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
