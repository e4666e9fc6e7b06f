# SPDX-License-Identifier: Apache-2.0
"""`kelp pull` and `kelp serve` of addresses with real stores: S3 by versitygw, which checks signatures, and a registry of the CNCF's distribution with basic authentication.

    tests/packaging/test_stores.py --kelp build/release/bin/kelp --tools DIRECTORY     with the programs versitygw and registry
"""
import argparse
import base64
import hashlib
import http.client
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KELP = TOOLS = None
PATIENCE_S = 60
DIGITS = os.path.join(ROOT, "examples", "models", "digits")
KEY, SECRET = "kelptest", "kelpsecret/with+signs"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def wait_for(port, process):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the store did not start")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def files_below(directory):
    return {os.path.relpath(os.path.join(base, name), directory): read(os.path.join(base, name)) for base, _, names in os.walk(directory) for name in names}


class Store(unittest.TestCase):
    @classmethod
    def begin(cls, command, port, **options):
        cls.log = tempfile.TemporaryFile()
        cls.process = subprocess.Popen(command, stdout=cls.log, stderr=cls.log, stdin=subprocess.DEVNULL, **options)
        wait_for(port, cls.process)

    @classmethod
    def tearDownClass(cls):
        cls.process.kill()
        cls.process.wait()
        cls.log.close()
        shutil.rmtree(cls.directory)

    def setUp(self):
        self.out = tempfile.mkdtemp(prefix="kelp-stores-")
        self.addCleanup(shutil.rmtree, self.out)

    def pull(self, *words, code=0, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "KELP_REGISTRY"))}
        done = subprocess.run([KELP, "pull", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S,
                              env={**environment, "no_proxy": "*", **self.variables, **variables}, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done


class Serving:
    """`kelp serve` of an address in poll mode; `put(config)` changes config.pbtxt of the model digits in the store."""

    CONFIG = 'backend: "onnxruntime"\nparameters {{ key: "tag" value {{ string_value: "{}" }} }}\n'

    def tag(self, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        connection.request("GET", "/v2/models/digits/config")
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return json.loads(text)["parameters"]["tag"]["string_value"] if response.status == 200 else None

    def test_serve(self):
        self.put(self.CONFIG.format("one"))
        port = free_port()
        with open(os.path.join(self.out, "log"), "wb") as log:
            server = subprocess.Popen([KELP, "serve", *self.address_words(), "--model-cache", os.path.join(self.out, "cache"), "--http-port", str(port),
                                       "--model-control-mode", "poll", "--repository-poll-secs", "1"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                      env={**os.environ, "no_proxy": "*", **self.variables})
        try:
            wait_for(port, server)
            self.assertEqual(self.tag(port), "one")
            self.put(self.CONFIG.format("two"))
            deadline = time.monotonic() + PATIENCE_S
            while self.tag(port) != "two":
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.1)
            server.send_signal(signal.SIGTERM)
            self.assertEqual(server.wait(PATIENCE_S), 0)
        finally:
            server.kill()
            server.wait()
        with open(os.path.join(self.out, "log"), encoding="utf-8") as log:
            self.assertNotIn("still served", log.read())


class S3(Serving, Store):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="kelp-s3-")
        os.makedirs(os.path.join(cls.directory, "data", "models"))
        shutil.copytree(DIGITS, os.path.join(cls.directory, "data", "models", "repository", "digits"))
        many = os.path.join(cls.directory, "data", "models", "many")
        os.makedirs(many)
        for i in range(1100):  # more than a page of the list
            with open(os.path.join(many, f"file {i}+%.txt"), "w", encoding="utf-8") as file:
                file.write(str(i))
        port = free_port()
        cls.variables = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}
        cls.begin([os.path.join(TOOLS, "versitygw"), "--access", KEY, "--secret", SECRET, "--port", f"127.0.0.1:{port}", "posix",
                   os.path.join(cls.directory, "data")], port)

    def address_words(self):
        return ["s3://models/serve"]

    def put(self, config):
        for name, path in (("1/model.onnx", os.path.join(DIGITS, "1", "model.onnx")), ("config.pbtxt", os.path.join(self.out, "config.pbtxt"))):
            with open(os.path.join(self.out, "config.pbtxt"), "w", encoding="utf-8") as file:
                file.write(config)
            self.upload(path, f"serve/digits/{name}")

    def upload(self, path, key):
        """Uploads a file with the interface of the store, which gives it an ETag."""
        subprocess.run(["curl", "--silent", "--show-error", "--fail", "--noproxy", "*", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", f"{KEY}:{SECRET}",
                        "--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD", "--upload-file", path,
                        f"{self.variables['AWS_ENDPOINT_URL']}/models/{key}"], check=True)

    def test_object(self):
        path = os.path.join(self.out, "model.onnx")
        with open(os.path.join(DIGITS, "1", "model.onnx"), "rb") as file:
            content = file.read()
        digest = "sha256:" + hashlib.sha256(content).hexdigest()
        done = self.pull("s3://models/repository/digits/1/model.onnx", "--output", path, "--digest", digest)
        self.assertEqual(done.stdout, f"{digest}  {path}\n")

    def test_resumed_object(self):
        with open(os.path.join(DIGITS, "1", "model.onnx"), "rb") as file:
            content = file.read()
        self.upload(os.path.join(DIGITS, "1", "model.onnx"), "uploaded/model.onnx")
        path = os.path.join(self.out, "model.onnx")
        self.pull("s3://models/uploaded/model.onnx", "--output", path)
        os.unlink(path)
        # A process that is killed while it writes.
        done = subprocess.run([KELP, "pull", "s3://models/uploaded/model.onnx", "--output", path], env={**os.environ, **self.variables},
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)), capture_output=True, check=False)
        self.assertEqual(done.returncode, -signal.SIGXFSZ)
        self.assertEqual(os.path.getsize(path + ".part"), 4096)
        self.assertTrue(os.path.exists(path + ".part.etag"))
        self.pull("s3://models/uploaded/model.onnx", "--output", path, "--digest", "sha256:" + hashlib.sha256(content).hexdigest())

    def test_prefix(self):
        self.pull("s3://models/repository/", "--output", self.out)
        self.assertEqual(files_below(os.path.join(self.out, "digits")), files_below(DIGITS))

    def test_many_objects_with_special_names(self):
        done = self.pull("s3://models/many/", "--output", self.out)
        self.assertEqual(len(done.stdout.splitlines()), 1100)
        self.assertEqual(files_below(self.out), {f"file {i}+%.txt": str(i).encode() for i in range(1100)})

    def test_wrong_secret(self):
        done = self.pull("s3://models/repository/digits/1/model.onnx", "--output", self.out, code=1, AWS_SECRET_ACCESS_KEY="wrong")
        self.assertIn("HTTP status 403", done.stderr)

    def test_absent(self):
        self.assertIn("HTTP status 404", self.pull("s3://models/absent.onnx", "--output", self.out, code=1).stderr)
        self.assertIn("has no objects", self.pull("s3://models/absent/", "--output", self.out, code=1).stderr)


class Registry(Serving, Store):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="kelp-registry-")
        cls.port = free_port()
        # bcrypt of the password, as htpasswd -B writes it.
        password = subprocess.run(["htpasswd", "-nbB", KEY, SECRET], capture_output=True, text=True, check=True).stdout.strip()
        with open(os.path.join(cls.directory, "htpasswd"), "w", encoding="utf-8") as file:
            file.write(password + "\n")
        config = {"version": "0.1", "log": {"level": "warn"}, "http": {"addr": f"127.0.0.1:{cls.port}", "secret": "x"},
                  "storage": {"filesystem": {"rootdirectory": os.path.join(cls.directory, "data")}},
                  "auth": {"htpasswd": {"realm": "kelp", "path": os.path.join(cls.directory, "htpasswd")}}}
        path = os.path.join(cls.directory, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        cls.begin([os.path.join(TOOLS, "registry"), "serve", path], cls.port)
        cls.variables = {"KELP_REGISTRY_USERNAME": KEY, "KELP_REGISTRY_PASSWORD": SECRET}
        cls.manifest = cls.push("models/digits", "1", {"config.pbtxt": "config.pbtxt", "1/model.onnx": "1/model.onnx"})

    @classmethod
    def request(cls, verb, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", cls.port, timeout=PATIENCE_S)
        authorization = "Basic " + base64.b64encode(f"{KEY}:{SECRET}".encode()).decode()
        connection.request(verb, path, body, {"Authorization": authorization, **{name.replace("_", "-"): value for name, value in headers.items()}})
        response = connection.getresponse()
        response.read()
        assert response.status < 300, (verb, path, response.status)
        location = response.getheader("Location")
        connection.close()
        return location

    @classmethod
    def push_blob(cls, name, content):
        digest = "sha256:" + hashlib.sha256(content).hexdigest()
        location = cls.request("POST", f"/v2/{name}/blobs/uploads/")
        path = location[location.index("/v2/"):]
        cls.request("PUT", f"{path}{'&' if '?' in path else '?'}digest={digest}", content, Content_Type="application/octet-stream")
        return {"digest": digest, "size": len(content)}

    @classmethod
    def push(cls, name, tag, files):
        """Pushes an artifact as ORAS does, and returns the digest of its manifest."""
        layers = []
        for title, path in files.items():
            full = os.path.join(DIGITS, path)
            content = read(full) if os.path.exists(full) else b"backend: \"onnxruntime\"\n"
            layers.append({"mediaType": "application/octet-stream", **cls.push_blob(name, content), "annotations": {"org.opencontainers.image.title": title}})
        config = {"mediaType": "application/vnd.oci.empty.v1+json", **cls.push_blob(name, b"{}")}
        manifest = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": layers}).encode()
        cls.request("PUT", f"/v2/{name}/manifests/{tag}", manifest, Content_Type="application/vnd.oci.image.manifest.v1+json")
        return hashlib.sha256(manifest).hexdigest()

    def address_words(self):
        return [f"oci://127.0.0.1:{self.port}/serve/digits:latest", "--registry-plain-http"]

    def put(self, config):
        path = os.path.join(self.out, "config.pbtxt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(config)
        self.push("serve/digits", "latest", {"config.pbtxt": path, "1/model.onnx": "1/model.onnx"})

    def address(self, reference):
        return f"oci://127.0.0.1:{self.port}/models/digits{reference}"

    def test_artifact(self):
        for reference in (":1", "@sha256:" + self.manifest):
            self.pull(self.address(reference), "--plain-http", "--output", self.out, "--digest", "sha256:" + self.manifest)
            with open(os.path.join(DIGITS, "1", "model.onnx"), "rb") as file:
                self.assertEqual(files_below(self.out)["1/model.onnx"], file.read())

    def test_wrong_digest(self):
        done = self.pull(self.address(":1"), "--plain-http", "--output", self.out, "--digest", "sha256:" + "0" * 64, code=1)
        self.assertIn(f"the manifest has the wrong digest: expected sha256:{'0' * 64}, found sha256:{self.manifest}", done.stderr)
        self.assertEqual(os.listdir(self.out), [])

    def test_authentication(self):
        done = self.pull(self.address(":1"), "--plain-http", "--output", self.out, code=1, KELP_REGISTRY_PASSWORD="wrong")
        self.assertIn("HTTP status 401", done.stderr)
        self.variables = {}
        done = self.pull(self.address(":1"), "--plain-http", "--output", self.out, code=1)
        self.assertIn("expected KELP_REGISTRY_USERNAME and KELP_REGISTRY_PASSWORD", done.stderr)

    def test_absent(self):
        self.assertIn("HTTP status 404", self.pull(self.address(":2"), "--plain-http", "--output", self.out, code=1).stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kelp", required=True)
    parser.add_argument("--tools", required=True)
    options, rest = parser.parse_known_args()
    KELP, TOOLS = os.path.abspath(options.kelp), os.path.abspath(options.tools)
    unittest.main(argv=sys.argv[:1] + rest, verbosity=2)
