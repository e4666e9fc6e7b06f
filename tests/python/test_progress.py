#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Progress bars appear in a terminal (here, a pty) and in a notebook if work takes a while, and are erased at its end."""
import io
import os
import pty
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import kelp
from kelp import _progress
from support import DIGITS, main

SESSION = f"""
import kelp
from kelp import _progress
_progress.AFTER_S = 0
kelp.InferenceSession({DIGITS!r}, **OPTIONS)
"""
SERVER = """
import kelp
with kelp.Server(DIRECTORY, **OPTIONS) as server:
    server.unload("slow")
    server.load("slow")
"""
CONFIG = """backend: "identity"
input [ { name: "INPUT" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT" data_type: TYPE_FP32 dims: [ -1 ] } ]
parameters { key: "instance_delay_ms" value { string_value: "1200" } }
"""


def in_terminal(code, **environment):
    """Returns what a program writes to a terminal."""
    ours, theirs = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name != "KELP_NO_PROGRESS"}
    child = subprocess.Popen([sys.executable, "-c", code], stderr=theirs, stdin=subprocess.DEVNULL,
                             env=dict(env, COLUMNS="100", **environment))
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        written += part
    os.close(ours)
    assert child.wait(60) == 0, written.decode()
    return written.decode()


class Terminal(unittest.TestCase):
    def test_a_session_shows_its_phases(self):
        written = in_terminal(SESSION.replace("OPTIONS", "{}"))
        self.assertRegex(written, r"^\rloading .*/digits/1/model.onnx \[[#-]{24}\] +\d+ % \d+\.\d s")
        self.assertRegex(written, r"\r +\r$")  # the bar is erased

    def test_progress_can_be_turned_off(self):
        self.assertEqual(in_terminal(SESSION.replace("OPTIONS", "{}"), KELP_NO_PROGRESS="1"), "")
        self.assertEqual(in_terminal(SESSION.replace("OPTIONS", "{'progress': False}")), "")
        self.assertIn("loading", in_terminal(SESSION.replace("OPTIONS", "{'progress': True}"), KELP_NO_PROGRESS="1"))

    def test_short_work_shows_nothing(self):
        self.assertEqual(in_terminal(SESSION.replace("OPTIONS", "{}").replace("AFTER_S = 0", "AFTER_S = 600")), "")

    def test_a_server_shows_the_models_that_it_loads(self):
        with tempfile.TemporaryDirectory() as directory:
            os.makedirs(directory + "/slow/1")
            with open(directory + "/slow/config.pbtxt", "w", encoding="utf-8") as file:
                file.write(CONFIG)
            code = SERVER.replace("DIRECTORY", repr(directory))
            written = in_terminal(code.replace("OPTIONS", "{'control': 'explicit', 'models': ['slow']}"))
            self.assertRegex(written, r"\rloading slow \[-*###-*\] \d+\.\d s")
            self.assertEqual(written.count("\rloading slow [###"), 2)  # each of two bars begins on the left
            self.assertRegex(written, r"\r +\r$")

    def test_nothing_is_written_to_a_pipe(self):
        ended = subprocess.run([sys.executable, "-c", SESSION.replace("OPTIONS", "{}")], stderr=subprocess.PIPE, check=True)
        self.assertEqual(ended.stderr, b"")


class Notebook(unittest.TestCase):
    def shown(self, shell):
        made = types.ModuleType("IPython")
        made.get_ipython = lambda: type(shell, (), {})()
        with mock.patch.dict(sys.modules, {"IPython": made}), mock.patch.object(sys, "stderr", io.StringIO()) as written, \
                mock.patch.object(_progress, "AFTER_S", 0):
            kelp.InferenceSession(DIGITS)
            return written.getvalue()

    def test_a_notebook_shows_a_bar(self):
        self.assertIn("model.onnx [", self.shown("ZMQInteractiveShell"))
        self.assertEqual(self.shown("TerminalInteractiveShell"), "")  # here, its terminal is a file

    def test_a_missing_stderr_is_ignored(self):
        with mock.patch.object(sys, "stderr", None):
            kelp.InferenceSession(DIGITS)

    def test_a_closed_terminal_is_ignored(self):
        closed = io.StringIO()
        with mock.patch.object(sys, "stderr", closed), mock.patch.object(_progress, "AFTER_S", 0):
            with _progress.Progress("x" * 300, asked=True):
                self.assertLess(len(closed.getvalue().split("\r")[1]), 100)  # not wider than the terminal
                closed.close()


if __name__ == "__main__":
    main()
