# SPDX-License-Identifier: Apache-2.0
"""Shared by the interoperability tests: paths, NVIDIA's files from their wheel, processes, ports, and repositories.

The files of the wheel load their library under a mangled name with an RPATH to the wheel's directory, which the loader searches
before LD_LIBRARY_PATH. So they are copied out of the wheel, next to a directory of links from the expected names to our library."""
import argparse
import glob
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

parser = argparse.ArgumentParser()
parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="directory of our build")
parser.add_argument("--nvidia", default=os.path.join(ROOT, "build", "nvidia"), help="directory that the wheel is unpacked in")
OPTIONS, REST = parser.parse_known_args()
BUILD = os.path.abspath(OPTIONS.build)
KELP = os.path.join(BUILD, "bin", "kelp")
LIBRARY = os.path.join(BUILD, "src", "server", "libtritonserver.so")
NVIDIA = os.path.join(os.path.abspath(OPTIONS.nvidia), "pytriton", "tritonserver")
NVIDIA_LIBRARIES = os.path.join(os.path.abspath(OPTIONS.nvidia), "nvidia_pytriton.libs")
EXAMPLES = os.path.join(ROOT, "examples", "models")


def skip(reason):
    """Ends the script as skipped, which is exit code 77 for CTest and scripts/interop.sh."""
    print(f"skipped: {reason}")
    sys.exit(77)


def need_nvidia():
    if not os.path.exists(os.path.join(NVIDIA, "bin", "tritonserver")):
        skip(f"no wheel nvidia-pytriton 0.7.0 in {OPTIONS.nvidia} (scripts/nvidia.sh downloads it)")


def stage(directory):
    """Copies NVIDIA's executable, python backend and caches to `directory`, and links their library's names to ours. Returns the environment to
    run them in."""
    links = os.path.join(directory, "lib")
    os.makedirs(links)
    os.symlink(LIBRARY, os.path.join(links, "libtritonserver.so"))
    for mangled in glob.glob(os.path.join(NVIDIA_LIBRARIES, "libtritonserver-*.so")):
        os.symlink(LIBRARY, os.path.join(links, os.path.basename(mangled)))
    os.makedirs(os.path.join(directory, "bin"))
    shutil.copy(os.path.join(NVIDIA, "bin", "tritonserver"), os.path.join(directory, "bin"))
    os.chmod(os.path.join(directory, "bin", "tritonserver"), 0o755)
    backends = os.path.join(directory, "backends")
    shutil.copytree(os.path.join(NVIDIA, "backends"), backends)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = os.path.join(NVIDIA, "python_backend_stubs", version, "triton_python_backend_stub")
    if os.path.exists(stub):
        shutil.copy(stub, os.path.join(backends, "python"))
        os.chmod(os.path.join(backends, "python", "triton_python_backend_stub"), 0o755)
    for name in ("addsub", "identity", "repeat"):
        os.symlink(os.path.join(BUILD, "backends", name), os.path.join(backends, name))
    # The stub contains its own Python, which ignores PYTHONPATH but searches the backend's directory.
    for path in glob.glob(os.path.join(sysconfig.get_paths()["platlib"], "numpy*")):
        os.symlink(path, os.path.join(backends, "python", os.path.basename(path)))
    shutil.copytree(os.path.join(NVIDIA, "caches"), os.path.join(directory, "caches"))
    # The wheel's directory contains NVIDIA's own library, so our directory is first.
    return {**os.environ, "LD_LIBRARY_PATH": f"{links}:{NVIDIA_LIBRARIES}"}


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as result:
        return result.read().decode()


class Server:
    """A server process with HTTP, gRPC and metrics; `log` is its log file."""

    def __init__(self, command, environment):
        self.log = tempfile.NamedTemporaryFile(mode="w+", suffix=".log")
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)

    def text(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_ready(self, port, timeout_s=120):
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            if self.process.poll() is not None:
                break
            try:
                get(port, "/v2/health/ready")
                return self
            except OSError:
                time.sleep(0.05)
        self.process.kill()
        raise AssertionError(f"the server did not become ready (exit code {self.process.poll()}):\n{self.text()}")

    def children(self, part):
        """Returns the command lines that contain `part` of the server's child processes."""
        found = subprocess.run(["ps", "-ww", "-o", "args=", "--ppid", str(self.process.pid)], capture_output=True, text=True,
                               check=False)
        return [line.strip() for line in found.stdout.splitlines() if part in line]

    def stop(self, timeout_s=60):
        """Sends SIGTERM and returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the server did not stop in {timeout_s} s:\n{self.text()}") from None


def nvidia_command(staged, repository, ports, *more):
    return [os.path.join(staged, "bin", "tritonserver"), "--model-repository", repository,
            "--backend-directory", os.path.join(staged, "backends"), "--cache-directory", os.path.join(staged, "caches"),
            "--http-address", "127.0.0.1", "--http-port", str(ports[0]), "--grpc-address", "127.0.0.1", "--grpc-port", str(ports[1]),
            "--metrics-address", "127.0.0.1", "--metrics-port", str(ports[2]), *more]


def kelp_command(staged, repository, ports, *more):
    """Our server, with HTTP and metrics on one port."""
    return [KELP, "serve", "--model-repository", repository, "--backend-directory", os.path.join(staged, "backends"),
            "--cache-directory", os.path.join(staged, "caches"), "--http-address", "127.0.0.1", "--http-port", str(ports[0]), *more]


def write_model(repository, name, config, files=None):
    """Writes REPOSITORY/NAME with config.pbtxt and version 1."""
    directory = os.path.join(repository, name)
    os.makedirs(os.path.join(directory, "1"))
    with open(os.path.join(directory, "config.pbtxt"), "w", encoding="utf-8") as file:
        file.write(config)
    for path, text in (files or {}).items():
        with open(os.path.join(directory, path), "w", encoding="utf-8") as file:
            file.write(text)
