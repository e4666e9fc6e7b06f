# SPDX-License-Identifier: Apache-2.0
"""The container image of build/image/oci, run with podman and runc in namespaces of this machine, without a daemon.

    sudo python3 tests/packaging/test_image.py [--measure]
"""
import http.client
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LAYOUT = os.path.join(ROOT, "build", "image", "oci")
MODELS = None  # a repository with the model digits
PATIENCE_S = 60
LIMIT_BYTES = 15_000_000


def missing():
    """Returns why containers cannot be run, or None."""
    for program in ("podman", "runc", "skopeo"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return None if os.geteuid() == 0 else "running a container without a user session needs root"


def read(digest):
    with open(os.path.join(LAYOUT, "blobs", *digest.split(":")), encoding="utf-8") as file:
        return json.load(file)


def manifests():
    """Returns {architecture: manifest} of the index."""
    with open(os.path.join(LAYOUT, "index.json"), encoding="utf-8") as file:
        entry = json.load(file)["manifests"][0]
    return {item["platform"]["architecture"]: read(item["digest"]) for item in read(entry["digest"])["manifests"]}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def get(port, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("POST" if body else "GET", path, body)
    response = connection.getresponse()
    result = response.status, response.read()
    connection.close()
    return result


def wait_ready(port, process=None):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and (process is None or process.poll() is None):
        try:
            if get(port, "/v2/health/ready")[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.001)
    raise AssertionError("the container is not ready")


class Layout(unittest.TestCase):
    def test_size(self):
        for architecture, manifest in manifests().items():
            size = sum(layer["size"] for layer in manifest["layers"])
            print(f"{architecture}: {size / 1e6:.1f} MB compressed", file=sys.stderr)
            self.assertLessEqual(size, LIMIT_BYTES, architecture)

    def test_configuration(self):
        for manifest in manifests().values():
            config = read(manifest["config"]["digest"])["config"]
            self.assertEqual(config["User"], "65532:65532")
            self.assertEqual(config["Entrypoint"], ["/usr/bin/kelp"])
            self.assertEqual(config["StopSignal"], "SIGTERM")
            self.assertIn("8000/tcp", config["ExposedPorts"])
            for name in ("title", "description", "version", "licenses"):
                self.assertIn(f"org.opencontainers.image.{name}", config["Labels"])


class Containers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.store = tempfile.mkdtemp(prefix="kelp-image-")
        cls.options = ["--root", cls.store + "/storage", "--runroot", cls.store + "/run", "--storage-driver", "vfs"]
        target = f"containers-storage:[vfs@{cls.store}/storage+{cls.store}/run]localhost/kelp:test"
        subprocess.run(["skopeo", "copy", "--quiet", "oci:" + LAYOUT, target], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.podman("rm", "--all", "--force", "--time", "0")
        cls.podman("rmi", "--all", "--force")
        shutil.rmtree(cls.store, ignore_errors=True)

    @classmethod
    def podman(cls, *words, check=True, timeout=PATIENCE_S):
        done = subprocess.run(["podman", *cls.options, "--runtime", "runc", "--cgroup-manager", "cgroupfs", *words], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=timeout, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"podman {' '.join(words)}: {done.stderr}")
        return done

    # The limits on processes and files are explicit, because this machine may not permit podman's.
    LIMITS = ("--ulimit", "nofile=4096:4096", "--ulimit", "nproc=1024:1024")

    def start(self, *words, options=()):
        """Starts a server with a read-only root and no capability. Returns its port and name."""
        port = free_port()
        name = f"kelp-{port}"
        command = words or ("serve", "--model-repository", "/models", "--log-format", "json")
        self.podman("run", "--detach", "--name", name, "--network=host", *self.LIMITS, "--read-only", "--cap-drop", "all", "--volume", f"{MODELS}:/models:ro",
                    *options, "localhost/kelp:test", *command, "--http-port", str(port))
        return port, name

    def finish(self, name):
        """Stops a server, which must end by itself. Returns its log."""
        self.podman("stop", "--time", "30", name)
        self.assertEqual(self.podman("inspect", "--format", "{{.State.ExitCode}}", name).stdout.strip(), "0")
        done = self.podman("logs", name)
        self.podman("rm", name)
        return done.stdout + done.stderr

    def test_serves(self):
        port, name = self.start()
        wait_ready(port)
        with open(os.path.join(ROOT, "examples", "requests", "digits.json"), "rb") as file:
            status, body = get(port, "/v2/models/digits/infer", file.read())
        self.assertEqual((status, b'"digit"' in body), (200, True))
        with open(f"/proc/{self.podman('inspect', '--format', '{{.State.Pid}}', name).stdout.strip()}/status", encoding="utf-8") as file:
            status = file.read()
        self.assertRegex(status, r"(?m)^Uid:\t65532\t65532")
        self.assertRegex(status, r"(?m)^CapEff:\t0+$")
        self.assertEqual(self.podman("exec", name, "/usr/bin/kelp", "health", f"http://127.0.0.1:{port}").stdout, "ready\n")
        log = self.finish(name)
        records = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
        self.assertGreater(len(records), 0, log)

    def test_health_check(self):
        port = free_port()
        name = f"kelp-{port}"
        self.podman("run", "--detach", "--name", name, "--network=host", *self.LIMITS, "--volume", f"{MODELS}:/models:ro", "--health-cmd",
                    f'["/usr/bin/kelp","health","http://127.0.0.1:{port}"]', "--health-interval", "disable", "localhost/kelp:test", "serve",
                    "--model-repository", "/models", "--http-port", str(port))
        wait_ready(port)
        self.assertEqual(self.podman("healthcheck", "run", name).returncode, 0)
        self.finish(name)

    def test_threads_follow_the_limit_on_cpus(self):
        done = self.podman("run", "--rm", *self.LIMITS, "--network=host", "--cpus", "1", "localhost/kelp:test", "doctor", check=False)
        if done.returncode != 0 and "cgroup" in done.stderr:
            print(f"skipped: limits on CPUs: {done.stderr.strip()}")
            self.skipTest("this machine has no cgroup for CPUs")
        self.assertIn(" 1 usable CPUs", done.stdout)
        port, name = self.start(options=("--cpus", "1"))
        wait_ready(port)
        pid = self.podman("inspect", "--format", "{{.State.Pid}}", name).stdout.strip()
        limited = len(os.listdir(f"/proc/{pid}/task"))
        self.finish(name)
        if os.cpu_count() > 1:
            port, name = self.start()
            wait_ready(port)
            pid = self.podman("inspect", "--format", "{{.State.Pid}}", name).stdout.strip()
            self.assertGreater(len(os.listdir(f"/proc/{pid}/task")), limited)
            self.finish(name)

    def test_second_name(self):
        port = free_port()
        name = f"kelp-{port}"
        self.podman("run", "--detach", "--name", name, "--network=host", *self.LIMITS, "--volume", f"{MODELS}:/mnt/models:ro", "--entrypoint", "tritonserver",
                    "localhost/kelp:test", "--model-store=/mnt/models", f"--http-port={port}", "--allow-grpc=false", "--allow-metrics=false")
        wait_ready(port)
        self.finish(name)

    def test_libraries_are_complete(self):
        text = self.podman("run", "--rm", *self.LIMITS, "--network=host", "localhost/kelp:test", "doctor").stdout
        self.assertRegex(text, r"openssl +usable")
        self.assertRegex(text, r"curl +usable")
        self.assertEqual([line for line in text.splitlines() if " missing " in line and "lib" in line and "libtiff" not in line], [], text)


def make_repository(directory):
    """Makes the repository; the image has no backends, and addsub needs one."""
    global MODELS
    shutil.copytree(os.path.join(ROOT, "examples", "models", "digits"), os.path.join(directory, "digits"))
    os.chmod(directory, 0o755)
    MODELS = directory


def measure(rounds=20):
    """Prints the time from the start of runc to the first 200 of readiness, for a container that is unpacked."""
    bundle = tempfile.mkdtemp(prefix="kelp-bundle-")
    times, inner = [], []
    try:
        subprocess.run(["umoci", "unpack", "--image", LAYOUT + ":0.1.0", bundle + "/b"], check=True, capture_output=True)
        subprocess.run(["cp", "-r", MODELS, bundle + "/b/rootfs/repository"], check=True)
        with open(bundle + "/b/config.json", encoding="utf-8") as file:
            config = json.load(file)
        config["linux"]["namespaces"] = [item for item in config["linux"]["namespaces"] if item["type"] != "network"]
        config["process"]["rlimits"] = [{"type": "RLIMIT_NOFILE", "hard": 4096, "soft": 4096}]
        config["process"]["terminal"] = False
        for i in range(rounds):
            port = free_port()
            config["process"]["args"] = ["/usr/bin/kelp", "serve", "--model-repository", "/repository", "--http-port", str(port)]
            with open(bundle + "/b/config.json", "w", encoding="utf-8") as file:
                json.dump(config, file)
            began = time.monotonic()
            process = subprocess.Popen(["runc", "run", "-b", bundle + "/b", f"kelp-{os.getpid()}-{i}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_ready(port, process)
            times.append(1000 * (time.monotonic() - began))
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)
            began = time.monotonic()
            port = free_port()
            process = subprocess.Popen([bundle + "/b/rootfs/usr/bin/kelp", "serve", "--model-repository", MODELS, "--http-port", str(port)],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_ready(port, process)
            inner.append(1000 * (time.monotonic() - began))
            process.terminate()
            process.wait(PATIENCE_S)
    finally:
        shutil.rmtree(bundle)
    for name, values in (("runc run to ready", times), ("the program alone", inner)):
        print(f"{name}: median {statistics.median(values):.0f} ms, {min(values):.0f} to {max(values):.0f} ms of {len(values)}")


if __name__ == "__main__":
    reason = missing()
    if reason is not None:
        print(reason)
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="kelp-image-") as repository:
        make_repository(repository)
        if sys.argv[1:] == ["--measure"]:
            measure()
        else:
            unittest.main(verbosity=2)
