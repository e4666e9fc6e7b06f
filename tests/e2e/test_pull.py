# SPDX-License-Identifier: Apache-2.0
"""`kelp pull` from an HTTP server that breaks connections, changes files and redirects. tests/packaging/test_stores.py has real stores."""
import hashlib
import http.server
import json
import os
import shutil
import tempfile
import threading
import unittest

import support

BODY = bytes(range(256)) * 4096  # 1 MiB


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        server.seen.append((self.path, dict(self.headers)))
        action = server.actions.pop(0) if server.actions else None
        if server.challenge and self.path.startswith("/v2/") and self.headers.get("Authorization") != server.authorization:
            self.send_response(401)
            self.send_header("WWW-Authenticate", server.challenge)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"login")
            return
        if isinstance(action, int):
            self.send_response(action)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"sorry")
            return
        if self.path.startswith("/redirect"):
            self.send_response(302)
            self.send_header("Location", "/model.onnx")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body, etag = server.files.get(self.path.split("?")[0], (None, None))
        if body is None:
            self.send_error(404)
            return
        if etag and self.headers.get("If-None-Match") == etag:
            self.send_response(304)
            self.send_header("ETag", etag)
            self.end_headers()
            return
        if action == "hang":
            server.released.wait(60)
            return
        offset = 0
        if "Range" in self.headers and self.headers.get("If-Range") in (None, etag):
            offset = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {offset}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(200)
        if etag:
            self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(body) - offset))
        self.end_headers()
        if action == "break":
            self.wfile.write(body[offset:offset + 400_000])
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(2)
            return
        self.wfile.write(body[offset:])


class Store(http.server.ThreadingHTTPServer):
    """Serves `files`, {path: (content, ETag or None)}. `seen` has the requests, and `actions` what happens to the next ones."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.seen, self.actions = {}, [], []
        self.challenge = self.authorization = None
        self.released = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.released.set()
        self.shutdown()
        self.server_close()


class Pull(unittest.TestCase):
    def setUp(self):
        self.server = Store()
        self.server.files = {"/model.onnx": (BODY, '"one"')}
        self.url = self.server.url
        self.addCleanup(self.server.close)
        self.directory = tempfile.mkdtemp(prefix="kelp-pull-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.path = os.path.join(self.directory, "models", "digits", "1", "model.onnx")
        self.digest = hashlib.sha256(BODY).hexdigest()

    def pull(self, path="/model.onnx", *words, output=None, code=0):
        done = support.kelp("pull", self.url + path, "--output", output or self.path, *words, env={**os.environ, "no_proxy": "*"})
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def content(self, path=None):
        with open(path or self.path, "rb") as file:
            return file.read()

    def test_file(self):
        done = self.pull()
        self.assertEqual(done.stdout, f"sha256:{self.digest}  {self.path}\n")
        self.assertEqual(self.content(), BODY)
        self.assertEqual(os.listdir(os.path.dirname(self.path)), ["model.onnx"])

    def test_name_from_the_address(self):
        self.pull("/model.onnx?version=3", output=self.directory + "/")
        self.assertEqual(self.content(os.path.join(self.directory, "model.onnx")), BODY)

    def test_redirection(self):
        self.pull("/redirect")
        self.assertEqual(self.content(), BODY)

    def test_broken_connections_are_continued(self):
        self.server.actions = ["break", "break", None]
        self.pull("/model.onnx", "--digest", "sha256:" + self.digest)
        self.assertEqual(self.content(), BODY)
        self.assertEqual([headers.get("Range") for _, headers in self.server.seen], [None, "bytes=400000-", "bytes=800000-"])

    def test_another_process_continues(self):
        self.server.actions = ["break", 404]
        done = self.pull(code=1)
        self.assertIn("cannot download 'model.onnx': HTTP status 404: sorry", done.stderr)
        self.assertFalse(os.path.exists(self.path))
        self.assertEqual(os.path.getsize(self.path + ".part"), 400_000)
        self.server.seen.clear()
        self.pull()
        self.assertEqual(self.server.seen[0][1]["Range"], "bytes=400000-")
        self.assertEqual(self.server.seen[0][1]["If-Range"], '"one"')
        self.assertEqual(self.content(), BODY)

    def test_file_that_changes_is_downloaded_again(self):
        self.server.actions = ["break", 404]
        self.pull(code=1)
        changed = BODY[::-1]
        self.server.files["/model.onnx"] = (changed, '"two"')
        self.pull()
        self.assertEqual(self.content(), changed)

    def test_file_without_etag_is_downloaded_again(self):
        self.server.files["/model.onnx"] = (BODY, None)
        self.server.actions = ["break", None]
        self.pull()
        self.assertEqual([headers.get("Range") for _, headers in self.server.seen], [None, None])
        self.assertEqual(self.content(), BODY)

    def test_digest(self):
        wrong = "0" * 64
        done = self.pull("/model.onnx", "--digest", "sha256:" + wrong, code=1)
        self.assertIn(f"'model.onnx' has the wrong digest: expected sha256:{wrong}, found sha256:{self.digest}", done.stderr)
        self.assertEqual(os.listdir(os.path.dirname(self.path)), [])
        self.pull("/model.onnx", "--digest", "sha256:" + self.digest.upper())
        self.server.seen.clear()
        self.pull("/model.onnx", "--digest", "sha256:" + self.digest)
        self.pull("/model.onnx#sha256=" + self.digest)
        self.assertEqual(self.server.seen, [], "a file that has the digest is not downloaded")
        self.assertIn("expected one digest", self.pull("/model.onnx#sha256=" + self.digest, "--digest", "sha256:" + self.digest, code=2).stderr)

    def test_server_errors_are_retried(self):
        for actions in ([503, 429, None], [500, None]):
            self.server.seen.clear()
            self.server.actions = actions.copy()
            self.pull()
            self.assertEqual(len(self.server.seen), len(actions))
        self.server.actions = [500] * 5
        self.assertIn("HTTP status 500: sorry", self.pull(code=1).stderr)

    def test_failures(self):
        self.assertIn("HTTP status 404", self.pull("/absent", code=1).stderr)
        blocked = os.path.join(self.directory, "file")
        with open(blocked, "wb"):
            pass
        self.assertIn("cannot create", self.pull(output=blocked + "/model.onnx", code=1).stderr)
        for address in ("model.onnx", "ftp://host/model.onnx", "http://", "://x"):
            done = support.kelp("pull", address)
            self.assertEqual(done.returncode, 2, address)
            self.assertIn(f"invalid address '{address}': expected http://, https://, s3:// or oci://", done.stderr)
        for digest in ("sha256:12", "md5:" + "0" * 64, "sha256:" + "g" * 64):
            self.assertIn("invalid digest", support.kelp("pull", self.url + "/model.onnx", "--digest", digest).stderr)
        self.assertEqual(support.kelp("pull").returncode, 2)
        self.assertIn("expected s3://BUCKET/KEY", support.kelp("pull", "s3:///x").stderr)
        for address in ("registry", "registry/", "/m"):
            self.assertIn("expected oci://REGISTRY/REPOSITORY", support.kelp("pull", "oci://" + address).stderr)

    def test_names_of_a_store_stay_in_the_output(self):
        """A registry and a bucket that are hostile."""
        blob = b"owned"
        digest = "sha256:" + hashlib.sha256(blob).hexdigest()
        for name in ("../escaped", "/escaped", "a/../../escaped", ""):
            manifest = {"schemaVersion": 2, "layers": [{"digest": digest, "size": len(blob), "annotations": {"org.opencontainers.image.title": name}}]}
            self.server.files = {"/v2/m/manifests/latest": (json.dumps(manifest).encode(), None), f"/v2/m/blobs/{digest}": (blob, None)}
            done = support.kelp("pull", f"oci://127.0.0.1:{self.server.server_port}/m", "--plain-http", "--output", self.directory + "/out")
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "unsafe name|is an archive")
        for page in (b"<EncodingType>url</EncodingType><Contents><Key>p/..%2F..%2Fescaped</Key></Contents>", b"<Contents><Key>p/../../escaped</Key></Contents>"):
            self.server.files = {"/bucket/": (page, None)}
            done = support.kelp("pull", "s3://bucket/p/", "--output", self.directory + "/out", env={**os.environ, "AWS_ENDPOINT_URL": self.url})
            self.assertEqual(done.returncode, 1)
            self.assertIn("unsafe name '../../escaped'", done.stderr)
        self.assertEqual(os.listdir(self.directory), [])

    def registry(self, code=0, **environment):
        """Pulls from the registry of setUp, which has one file."""
        digest = "sha256:" + self.digest
        manifest = {"layers": [{"digest": digest, "annotations": {"org.opencontainers.image.title": "model.onnx"}}]}
        self.server.files |= {"/v2/m/manifests/latest": (json.dumps(manifest).encode(), None), f"/v2/m/blobs/{digest}": (BODY, None)}
        self.server.seen.clear()
        shutil.rmtree(self.directory + "/out", ignore_errors=True)
        done = support.kelp("pull", f"oci://127.0.0.1:{self.server.server_port}/m", "--plain-http", "--output", self.directory + "/out",
                            env={**os.environ, **environment})
        self.assertEqual(done.returncode, code, done.stderr)
        if code == 0:
            self.assertEqual(self.content(self.directory + "/out/model.onnx"), BODY)
        return done

    def test_a_registry_without_a_login(self):
        self.registry()

    def test_a_registry_that_wants_a_token(self):
        self.server.challenge = f'Bearer realm="{self.url}/token?a=b",service="my registry",scope="repository:m:pull"'
        self.server.authorization = "Bearer secret"
        for body in ({"token": "secret"}, {"access_token": "secret"}):
            self.server.files["/token"] = (json.dumps(body).encode(), None)
            self.registry()
            path, headers = self.server.seen[1]
            self.assertEqual((path, headers.get("Authorization")), ("/token?a=b&service=my%20registry&scope=repository%3Am%3Apull", None))
        self.registry(KELP_REGISTRY_USERNAME="me", KELP_REGISTRY_PASSWORD="pw")
        self.assertEqual(self.server.seen[1][1]["Authorization"], "Basic bWU6cHc=")
        for body, message in (({"token": 3}, "the registry sent no token"), ({}, "the registry sent no token"), ({"token": "wrong"}, "HTTP status 401")):
            self.server.files["/token"] = (json.dumps(body).encode(), None)
            self.assertIn(message, self.registry(code=1).stderr)
        del self.server.files["/token"]
        self.assertIn("cannot get a token from", self.registry(code=1).stderr)

    def test_a_registry_that_wants_a_password(self):
        self.server.challenge, self.server.authorization = 'Basic realm="x"', "Basic bWU6cHc="
        self.registry(KELP_REGISTRY_USERNAME="me", KELP_REGISTRY_PASSWORD="pw")
        self.assertIn("the registry wants a name and a password", self.registry(code=1).stderr)
        self.assertIn("HTTP status 401", self.registry(code=1, KELP_REGISTRY_USERNAME="me", KELP_REGISTRY_PASSWORD="no").stderr)

    def bucket(self, address, code=0, **environment):
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        self.server.seen.clear()
        done = support.kelp("pull", address, "--output", self.directory + "/out/",
                            env={**{k: v for k, v in os.environ.items() if k not in names}, "AWS_ENDPOINT_URL": self.url + "/", **environment})
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_a_bucket(self):
        self.server.files = {"/bucket/p/model.onnx": (BODY, '"one"'), "/bucket/p/config.pbtxt": (b"config", None), "/bucket/":
                             (b"<ListBucketResult><Contents><Key>p/model.onnx</Key></Contents><Contents><Key>p/config.pbtxt</Key></Contents></ListBucketResult>", None)}
        self.bucket("s3://bucket/p/model.onnx")
        self.assertEqual(self.content(self.directory + "/out/model.onnx"), BODY)
        self.assertNotIn("Authorization", self.server.seen[0][1])
        self.bucket("s3://bucket/p/", AWS_ACCESS_KEY_ID="id", AWS_SECRET_ACCESS_KEY="key")
        self.assertEqual(self.content(self.directory + "/out/config.pbtxt"), b"config")
        for _, headers in self.server.seen:
            self.assertTrue(headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=id/"), headers)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            self.assertIn("expected both or none of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
                          self.bucket("s3://bucket/p/", code=1, **{name: "x"}).stderr)
        self.assertIn("HTTP status 404", self.bucket("s3://bucket/absent", code=1).stderr)
        self.assertIn("cannot list", self.bucket("s3://other/", code=1).stderr)

    def test_keys_of_a_list(self):
        """A store that percent-encodes the keys, and one that only escapes markup."""
        for page in (b"<EncodingType>url</EncodingType><Contents><Key>p/a%26b%20%25%2B</Key></Contents>", b"<Contents><Key>p/a&amp;b %+</Key></Contents>"):
            self.server.files = {"/bucket/": (page, None), "/bucket/p/a%26b%20%25%2B": (BODY, None)}
            done = support.kelp("pull", "s3://bucket/p/", "--output", self.directory, env={**os.environ, "AWS_ENDPOINT_URL": self.url})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.content(os.path.join(self.directory, "a&b %+")), BODY)
            os.unlink(os.path.join(self.directory, "a&b %+"))
        self.server.files = {"/bucket/": (b"<Contents><Key>p/a&#10;b</Key></Contents>", None)}
        done = support.kelp("pull", "s3://bucket/p/", "--output", self.directory, env={**os.environ, "AWS_ENDPOINT_URL": self.url})
        self.assertEqual(done.returncode, 1)
        self.assertIn("unknown entity: 'p/a&#10;b'", done.stderr)

    def test_malformed_manifests(self):
        for manifest, message in ((b"{", "the manifest:1:"), (b"[]", "has no layers"), (b'{"layers":[]}', "has no layers"), (b'{"layers":[3]}', "has the digest ''"),
                                  (b'{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}', "found 'application/vnd.oci.image.index.v1+json'"),
                                  (b'{"layers":[{"digest":"sha512:00"}]}', "expected sha256"),
                                  (b'{"layers":[{"digest":"sha256:' + b"0" * 65 + b'"}]}', "expected sha256"),
                                  (b'{"layers":[{"digest":"sha256:' + b"0" * 63 + b'"}]}', "expected sha256"),
                                  (b'{"layers":[{"digest":"sha256:' + b"x" * 64 + b'"}]}', "expected sha256"),
                                  (b'{"layers":[{"digest":"sha256:' + b"0" * 64 + b'"}]}', "is an archive")):
            self.server.files = {"/v2/m/manifests/1": (manifest, None)}
            done = support.kelp("pull", f"oci://127.0.0.1:{self.server.server_port}/m:1", "--plain-http", "--output", self.directory + "/out")
            self.assertEqual(done.returncode, 1)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    support.main()
