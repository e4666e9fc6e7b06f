# SPDX-License-Identifier: Apache-2.0
"""`kelp serve` of addresses: models from HTTP, S3 and OCI stores, their cache, and changes. tests/packaging/test_stores.py has real stores."""
import hashlib
import json
import os
import shutil
import signal
import tempfile
import threading
import time
import unittest

import support
from test_pull import Store

DIGITS = os.path.join(support.ROOT, "examples", "models", "digits", "1", "model.onnx")
CONFIG = b'backend: "onnxruntime"\nparameters { key: "tag" value { string_value: "%s" } }\n'


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Remote(unittest.TestCase):
    def setUp(self):
        self.store = Store()
        self.addCleanup(self.store.close)
        self.url, self.files = self.store.url, self.store.files
        self.model = read(DIGITS)
        self.directory = tempfile.mkdtemp(prefix="kelp-remote-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.cache = os.path.join(self.directory, "cache")

    def serve(self, *words, **options):
        environment = {"no_proxy": "*", "AWS_ENDPOINT_URL": self.url, "AWS_ACCESS_KEY_ID": "", "TMPDIR": self.directory, **options.pop("environment", {})}
        server = support.Server(*words, environment=environment, **options)
        self.addCleanup(server.__exit__)
        return server

    def fails(self, *words, **environment):
        """Returns the errors of a server that must not start."""
        done = support.kelp("serve", "--http-port", "0", *words, env={**os.environ, "no_proxy": "*", "AWS_ENDPOINT_URL": self.url, "AWS_ACCESS_KEY_ID": "",
                                                                      "TMPDIR": self.directory, **environment})
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def put_bucket(self, objects):
        """Sets the objects of the bucket 'bucket', and its list."""
        for path in [path for path in self.files if path.startswith("/bucket/")]:
            del self.files[path]
        page = "".join(f"<Contents><Key>{key}</Key><ETag>&quot;{hashlib.sha1(body).hexdigest()}&quot;</ETag></Contents>" for key, body in objects.items())
        self.files["/bucket/"] = (f"<ListBucketResult>{page}</ListBucketResult>".encode(), None)
        for key, body in objects.items():
            self.files["/bucket/" + key] = (body, f'"{hashlib.sha1(body).hexdigest()}"')

    def put_artifact(self, tag, files):
        """Sets an artifact of the repository 'models/digits', and returns the digest of its manifest."""
        layers = []
        for title, body in files.items():
            digest = "sha256:" + hashlib.sha256(body).hexdigest()
            self.files[f"/v2/models/digits/blobs/{digest}"] = (body, None)
            layers.append({"digest": digest, "size": len(body), "annotations": {"org.opencontainers.image.title": title}})
        manifest = json.dumps({"schemaVersion": 2, "layers": layers}).encode()
        digest = hashlib.sha256(manifest).hexdigest()
        for reference in (tag, "sha256:" + digest):
            self.files[f"/v2/models/digits/manifests/{reference}"] = (manifest, None)
        return digest

    def artifact(self, reference):
        return f"oci://127.0.0.1:{self.store.server_port}/models/digits{reference}"

    def models(self, server):
        _, _, body = server.call("POST", "/v2/repository/index", {})
        return {item["name"]: item.get("state") for item in json.loads(body)}

    def tag_of(self, server, model="digits"):
        _, _, body = server.call("GET", f"/v2/models/{model}/config")
        return json.loads(body)["parameters"]["tag"]["string_value"]

    def wait_until(self, condition):
        deadline = time.monotonic() + support.PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def infers(self, server, model="digits"):
        status, body = server.infer(model, support.read_json("examples", "requests", "digits.json"))
        self.assertEqual(status, 200, body)

    def test_file(self):
        self.files["/models/digits.onnx"] = (self.model, '"one"')
        server = self.serve(self.url + "/models/digits.onnx?version=3")
        self.assertEqual(self.models(server), {"digits": "READY"})
        self.infers(server)
        self.assertEqual(server.stop(), 0)
        self.assertEqual(os.listdir(self.directory), [], "the temporary cache ends with the process")

    def test_name_of_a_file_in_a_repository(self):
        self.files["/models/seven/1/model.onnx"] = (self.model, '"one"')
        self.assertEqual(self.models(self.serve(self.url + "/models/seven/1/model.onnx")), {"seven": "READY"})

    def test_digest(self):
        self.files["/digits.onnx"] = (self.model, None)
        digest = hashlib.sha256(self.model).hexdigest()
        server = self.serve(f"{self.url}/digits.onnx#sha256={digest}", "--model-cache", self.cache)
        self.infers(server)
        server.stop()
        self.store.seen.clear()
        self.infers(self.serve(f"{self.url}/digits.onnx#sha256={digest}", "--model-cache", self.cache))
        self.assertEqual(self.store.seen, [], "a file of the cache that has the digest is not downloaded")
        wrong = "0" * 64
        self.assertIn(f"'digits.onnx' has the wrong digest: expected sha256:{wrong}, found sha256:{digest}", self.fails(f"{self.url}/digits.onnx#sha256={wrong}"))

    def test_repository_of_s3(self):
        config = CONFIG % b"one"
        self.put_bucket({"production/digits/1/model.onnx": self.model, "production/digits/config.pbtxt": config, "production/other/1/model.onnx": self.model})
        server = self.serve("--model-repository", "s3://bucket/production")
        self.assertEqual(self.models(server), {"digits": "READY", "other": "READY"})
        self.assertEqual(self.tag_of(server), "one")
        self.infers(server)

    def test_model_of_s3(self):
        self.put_bucket({"production/digits/1/model.onnx": self.model, "production/digits/config.pbtxt": CONFIG % b"one"})
        self.assertEqual(self.models(self.serve("s3://bucket/production/digits/")), {"digits": "READY"})
        self.assertEqual(self.models(self.serve("s3://bucket/production/digits/1/model.onnx")), {"digits": "READY"})

    def test_artifacts(self):
        self.put_artifact("1", {"config.pbtxt": CONFIG % b"one", "1/model.onnx": self.model})
        digest = self.put_artifact("2", {"network.onnx": self.model})
        self.put_artifact("3", {"a/1/model.onnx": self.model, "b/1/model.onnx": self.model})
        for reference, names in ((":1", ["digits"]), ("@sha256:" + digest, ["digits"]), (":3", ["a", "b"])):
            server = self.serve(self.artifact(reference), "--registry-plain-http")
            self.assertEqual(self.models(server), {name: "READY" for name in names}, reference)
            self.infers(server, names[0])
        self.put_artifact("4", {"a.onnx": self.model, "b.onnx": self.model})
        self.assertIn("2 model files have no directory, such as 'b.onnx'", self.fails(self.artifact(":4"), "--registry-plain-http"))

    def test_local_and_remote_repositories(self):
        with support.Repository() as repository:
            repository.add("local", DIGITS)
            self.files["/digits.onnx"] = (self.model, None)
            self.assertEqual(self.models(self.serve(repository.path, self.url + "/digits.onnx")), {"digits": "READY", "local": "READY"})

    def test_changed_models_are_loaded_again(self):
        def repository(tag):
            return {"m/digits/1/model.onnx": self.model, "m/digits/config.pbtxt": CONFIG % tag, "m/same/1/model.onnx": self.model, "m/same/config.pbtxt": CONFIG % b"s"}

        self.put_bucket(repository(b"one"))
        server = self.serve("s3://bucket/m", "--model-control-mode", "poll", "--repository-poll-secs", "1", "--log-info=true")
        self.assertEqual(self.tag_of(server), "one")
        self.put_bucket(repository(b"two"))
        self.wait_until(lambda: self.tag_of(server) == "two")
        downloads = [path for path, _ in self.store.seen if path.endswith(".onnx")]
        self.assertEqual(len(downloads), 2, "files that have not changed are not downloaded again")
        self.put_bucket({**repository(b"two"), "m/new/1/model.onnx": self.model})
        self.wait_until(lambda: self.models(server).get("new") == "READY")
        self.put_bucket({"m/digits/1/model.onnx": self.model, "m/digits/config.pbtxt": CONFIG % b"two"})
        self.wait_until(lambda: self.models(server).get("same") != "READY")
        self.infers(server)
        loads = {name: server.output.count(f"successfully loaded '{name}'") for name in ("digits", "same", "new")}
        self.assertEqual(loads, {"digits": 2, "same": 1, "new": 1}, "a model that has not changed is loaded once")

    def test_changed_file(self):
        self.files["/digits.onnx"] = (self.model, '"one"')
        server = self.serve(self.url + "/digits.onnx", "--model-control-mode", "poll", "--repository-poll-secs", "1")
        self.store.seen.clear()
        self.wait_until(lambda: len(self.store.seen) >= 2)
        self.assertEqual({headers.get("If-None-Match") for _, headers in self.store.seen}, {'"one"'})
        self.files["/digits.onnx"] = (b"no model", '"two"')
        self.wait_until(lambda: "failed to load" in server.log())
        self.infers(server)  # the earlier model
        self.store.seen.clear()
        self.files["/digits.onnx"] = (self.model, '"three"')
        self.wait_until(lambda: '"three"' in [headers.get("If-None-Match") for _, headers in self.store.seen])
        self.infers(server)

    def test_failures_of_the_store_keep_the_models(self):
        self.put_bucket({"m/digits/1/model.onnx": self.model})
        server = self.serve("s3://bucket/m", "--model-control-mode", "poll", "--repository-poll-secs", "1")
        listing = self.files.pop("/bucket/")
        self.wait_until(lambda: "the models of the latest download are still served: cannot pull 's3://bucket/m/'" in server.log())
        self.infers(server)
        self.files["/bucket/"] = listing
        self.assertEqual(server.stop(), 0)

    def test_incomplete_change_is_not_seen(self):
        """A change whose second file cannot be downloaded changes nothing."""
        self.put_bucket({"m/digits/1/model.onnx": self.model, "m/digits/config.pbtxt": CONFIG % b"one"})
        server = self.serve("s3://bucket/m", "--model-control-mode", "poll", "--repository-poll-secs", "1")
        self.put_bucket({"m/digits/config.pbtxt": CONFIG % b"two", "m/digits/2/model.onnx": self.model})
        del self.files["/bucket/m/digits/2/model.onnx"]
        self.wait_until(lambda: "still served" in server.log())
        time.sleep(1.5)
        self.assertEqual(self.tag_of(server), "one")
        self.files["/bucket/m/digits/2/model.onnx"] = (self.model, None)
        self.wait_until(lambda: self.tag_of(server) == "two")

    def test_cache(self):
        self.put_bucket({"m/digits/1/model.onnx": self.model, "m/digits/config.pbtxt": CONFIG % b"one"})
        words = ("s3://bucket/m", "--model-cache", self.cache)
        server = self.serve(*words)
        self.assertIn("another process uses", self.fails(*words))
        server.stop()
        self.store.seen.clear()
        server = self.serve(*words)
        self.infers(server)
        self.assertEqual([path.split("?")[0] for path, _ in self.store.seen], ["/bucket/"], "only the list is downloaded")
        server.stop()
        self.store.close()
        server = self.serve(*words)
        self.assertIn("serving the models that the cache has of 's3://bucket/m/'", server.log())
        self.infers(server)
        self.assertIn("cannot reach", self.fails("s3://bucket/m"), "without a cache, there are no models")

    def test_interrupted_download_continues(self):
        big = self.model + bytes(1 << 20)
        self.put_bucket({"m/digits/1/model.onnx": self.model, "m/digits/1/weights.bin": big})
        self.store.actions = [None, None, "break", 404]
        self.fails("s3://bucket/m", "--model-cache", self.cache)
        self.store.seen.clear()
        self.infers(self.serve("s3://bucket/m", "--model-cache", self.cache))
        ranges = [headers.get("Range") for _, headers in self.store.seen]
        self.assertEqual(ranges, [None, "bytes=400000-"])

    def test_signal_during_the_download(self):
        self.files["/digits.onnx"] = (self.model, None)
        self.store.actions = ["hang"]
        server = self.serve(self.url + "/digits.onnx", ready=False)
        self.wait_until(lambda: self.store.seen)
        began = time.monotonic()
        self.assertEqual(server.stop(signal.SIGTERM), 0)
        self.assertLess(time.monotonic() - began, 20)
        self.assertEqual(os.listdir(self.directory), [])

    def test_wrong_addresses(self):
        for address, message in (("https://host/models/", "expected a file NAME.onnx or NAME.plan"), ("https://host/model.pt", "expected a file NAME.onnx or NAME.plan"),
                                 ("gs://bucket/models", "expected http://, https://, s3:// or oci://"), ("s3://", "expected http://"),
                                 ("https://host/a.onnx#sha256=12", "expected #sha256= and 64 hexadecimal digits")):
            self.assertIn(message, self.fails(address), address)
        self.assertIn("HTTP status 404", self.fails(self.url + "/absent.onnx"))


if __name__ == "__main__":
    support.main()
