# SPDX-License-Identifier: Apache-2.0
"""`kelp serve` under a service manager: systemd's notifications, watchdog and socket activation, and `kelp health`."""
import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import support
from support import PATIENCE_S, ROOT, Server

MODELS = os.path.join(ROOT, "examples", "models")
# Starts a program with the given descriptors from 3 on and LISTEN_PID, as systemd does.
ACTIVATE = """
import os, sys
count = int(sys.argv[1])
for i in range(count):
    os.set_inheritable(3 + i, True)
os.environ.update(LISTEN_PID=str(os.getpid() + int(os.environ.pop("PID_OFFSET", "0"))), LISTEN_FDS=sys.argv[1])
os.execv(sys.argv[2], sys.argv[2:])
"""


def listening(family=socket.AF_INET, address=("127.0.0.1", 0)):
    result = socket.socket(family)
    result.bind(address)
    result.listen(64)
    return result


@contextlib.contextmanager
def activated(sockets, *options, names=None, environment=None):
    """Runs `kelp serve` with sockets as descriptors 3, 4, …"""
    with tempfile.TemporaryFile() as errors:
        # Descriptors are moved out of the way first, so that none is overwritten.
        moved = [os.dup2(item.fileno(), 200 + i, inheritable=True) for i, item in enumerate(sockets)]
        script = "".join(f"os.dup2({fd}, {3 + i}); " for i, fd in enumerate(moved))
        variables = {**os.environ, **({"LISTEN_FDNAMES": names} if names is not None else {}), **(environment or {})}
        process = subprocess.Popen([sys.executable, "-c", "import os; " + script + ACTIVATE, str(len(sockets)), support.KELP, "serve", *options],
                                   stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, env=variables, pass_fds=moved)
        for fd in moved:
            os.close(fd)
        try:
            yield process, lambda: os.pread(errors.fileno(), 1 << 20, 0).decode()
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()


def wait_ready(process):
    """Returns the output up to the last address."""
    text = ""
    for line in process.stdout:
        text += line.decode()
        if line.startswith(b"HTTP "):
            return text
    raise AssertionError(f"kelp serve ended: {text}")


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, body


class Notifications(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="kelp-notify-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.path = os.path.join(self.directory, "notify")
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.bind(self.path)
        self.manager.settimeout(PATIENCE_S)
        self.addCleanup(self.manager.close)

    def until(self, wanted):
        """Returns the messages up to one that contains `wanted`."""
        messages = []
        while not messages or wanted not in messages[-1]:
            messages.append(self.manager.recv(4096).decode())
        return messages

    def test_ready_follows_the_loading_and_stopping_the_signal(self):
        with Server("--model-repository", MODELS, environment={"NOTIFY_SOCKET": self.path}) as server:
            messages = self.until("READY=1")
            self.assertEqual(messages[0], "STATUS=Loading models")
            self.assertEqual(messages[-1], "READY=1\nSTATUS=Serving 2 of 2 models")
            self.assertEqual(server.call("GET", "/v2/health/ready")[0], 200)
            self.assertEqual(server.stop(), 0)
            self.assertIn("STOPPING=1", self.until("STOPPING=1")[-1])

    def test_abstract_address(self):
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        name = f"kelp-notify-{os.getpid()}"
        manager.bind("\0" + name)
        manager.settimeout(PATIENCE_S)
        with Server("--model-repository", MODELS, environment={"NOTIFY_SOCKET": "@" + name}):
            self.assertEqual(manager.recv(4096), b"STATUS=Loading models")

    def test_failed_start_is_not_ready(self):
        with Server("--model-repository", self.directory, "--http-address", "256.1.1.1", ready=False, environment={"NOTIFY_SOCKET": self.path}) as server:
            self.assertEqual(server.process.wait(PATIENCE_S), 1)
        self.manager.setblocking(False)
        messages = []
        with contextlib.suppress(BlockingIOError):
            while True:
                messages.append(self.manager.recv(4096))
        self.assertEqual([message for message in messages if b"READY" in message], [])

    def test_watchdog_is_notified_while_the_server_responds(self):
        environment = {"NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": "400000"}
        with Server("--model-repository", MODELS, environment=environment) as server:
            self.until("READY=1")
            for _ in range(3):
                self.until("WATCHDOG=1")
            os.kill(server.process.pid, signal.SIGSTOP)
            self.manager.settimeout(2)
            with self.assertRaises(TimeoutError):
                while True:
                    self.manager.recv(4096)
            os.kill(server.process.pid, signal.SIGCONT)
            self.manager.settimeout(PATIENCE_S)
            self.until("WATCHDOG=1")

    def test_watchdog_of_another_process(self):
        environment = {"NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"}
        with Server("--model-repository", MODELS, environment=environment):
            self.until("READY=1")
            self.manager.settimeout(1)
            with self.assertRaises(TimeoutError):
                self.manager.recv(4096)

    def test_malformed_variables(self):
        for variables, message in (({"NOTIFY_SOCKET": "relative"}, "NOTIFY_SOCKET is invalid: expected an absolute path"),
                                   ({"NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": "soon"}, "WATCHDOG_USEC is invalid"),
                                   ({"NOTIFY_SOCKET": self.directory + "/none"}, "cannot connect to the service manager")):
            with Server("--model-repository", MODELS, ready=False, environment=variables) as server:
                self.assertEqual(server.process.wait(PATIENCE_S), 1)
                self.assertIn(message, server.log())


class Activation(unittest.TestCase):
    def test_a_request_before_the_start_is_answered(self):
        with listening() as http_socket, listening() as metrics_socket:
            port, metrics_port = http_socket.getsockname()[1], metrics_socket.getsockname()[1]
            answers = []
            early = threading.Thread(target=lambda: answers.append(get(port, "/v2/models/digits/ready")))
            early.start()
            with activated([http_socket, metrics_socket], "--model-repository", MODELS, names="http:metrics") as (process, _):
                text = wait_ready(process)
                early.join(PATIENCE_S)
                self.assertEqual([answer[0] for answer in answers], [200])
                self.assertIn(f"HTTP  http://127.0.0.1:{port}\n", text)
                self.assertEqual(get(metrics_port, "/metrics")[0], 200)
                self.assertEqual(get(metrics_port, "/v2/health/ready")[0], 404)
                process.terminate()
                self.assertEqual(process.wait(PATIENCE_S), 0)

    def test_connections_wait_while_the_server_restarts(self):
        with listening() as http_socket:
            port = http_socket.getsockname()[1]
            with activated([http_socket], "--model-repository", MODELS, names="kelp.socket") as (process, _):
                wait_ready(process)
                process.terminate()
                self.assertEqual(process.wait(PATIENCE_S), 0)
            answers = []
            between = threading.Thread(target=lambda: answers.append(get(port, "/v2/health/ready")[0]))
            between.start()
            time.sleep(0.2)
            self.assertEqual(answers, [])
            with activated([http_socket], "--model-repository", MODELS) as (process, _):
                wait_ready(process)
                between.join(PATIENCE_S)
                self.assertEqual(answers, [200])

    def test_unix_socket(self):
        with tempfile.TemporaryDirectory(prefix="kelp-e2e-") as directory:
            path = os.path.join(directory, "http")
            with listening(socket.AF_UNIX, path) as http_socket:
                with activated([http_socket], "--model-repository", MODELS, names="http") as (process, _):
                    self.assertIn(f"HTTP  unix:{path}\n", wait_ready(process))
                    self.assertEqual(support.kelp("health", f"unix:{path}").stdout, "ready\n")
                    process.terminate()
                    self.assertEqual(process.wait(PATIENCE_S), 0)
                self.assertTrue(os.path.exists(path), "the socket belongs to the service manager")

    def test_variables_of_another_process_are_ignored(self):
        with listening() as http_socket:
            with activated([http_socket], "--model-repository", MODELS, "--http-port", "0", environment={"PID_OFFSET": "1"}) as (process, _):
                self.assertNotIn(f":{http_socket.getsockname()[1]}\n", wait_ready(process))

    def test_unusable_sockets(self):
        with socket.socket() as unbound, listening() as first, listening() as second:
            for sockets, names, options, message in (
                    ([unbound], "http", (), "descriptor 3, which LISTEN_FDS passes, is not a listening stream socket"),
                    ([first, second], "http:web", (), "socket 1 of LISTEN_FDNAMES has the unknown name 'web'"),
                    ([first, second], "http:grpc", ("--allow-grpc=false",), "a socket named 'grpc' was passed, but option '--allow-grpc' is false")):
                with activated(sockets, "--model-repository", MODELS, *options, names=names) as (process, errors):
                    self.assertEqual(process.wait(PATIENCE_S), 1)
                    self.assertIn(message, errors())

    def test_systemd_socket_activate(self):
        program = shutil.which("systemd-socket-activate")
        if program is None:
            self.skipTest("systemd-socket-activate is not installed")
        with listening() as free:
            port = free.getsockname()[1]
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen([program, "-l", f"127.0.0.1:{port}", "--fdname=http", support.KELP, "serve", "--model-repository", MODELS],
                                       stdout=errors, stderr=errors)
            try:
                deadline = time.monotonic() + PATIENCE_S
                while True:
                    try:
                        self.assertEqual(get(port, "/v2/health/ready")[0], 200)
                        break
                    except ConnectionRefusedError:
                        self.assertLess(time.monotonic(), deadline)
                        time.sleep(0.05)
                process.terminate()
                self.assertEqual(process.wait(PATIENCE_S), 0)
            finally:
                process.kill()
                process.wait()


class Health(unittest.TestCase):
    def test_answers(self):
        with Server("--model-repository", MODELS) as server:
            for words in ((), ("--live",), ("--model", "digits")):
                done = support.kelp("health", server.url, *words)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(support.kelp("health", f"http://{server.url}/").returncode, 0)
            done = support.kelp("health", server.url, "--model", "absent")
            self.assertEqual(done.returncode, 1)
            self.assertIn("not model ready: the server", done.stderr)

    def test_failures(self):
        with listening() as silent:
            port = silent.getsockname()[1]
            done = support.kelp("health", f"127.0.0.1:{port}", "--timeout-ms", "200")
            self.assertEqual(done.returncode, 1)
            self.assertIn("did not respond in time", done.stderr)
        done = support.kelp("health", f"http://127.0.0.1:{port}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Connection refused", done.stderr)
        for url in ("ftp://x", "http://", "http://[::1", "h:port", "http://h/path", "unix:"):
            done = support.kelp("health", url)
            self.assertEqual(done.returncode, 2, url)
            self.assertIn(f"invalid URL '{url}': expected http://HOST[:PORT] or unix:PATH", done.stderr)
        self.assertEqual(support.kelp("health", "--model", "a/b").returncode, 2)
        self.assertEqual(support.kelp("health", "--model", "a", "--live").returncode, 2)


if __name__ == "__main__":
    support.main()
