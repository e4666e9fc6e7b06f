#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program under the name `tritonserver`: options, defaults, log lines and exit codes of Triton's server.

    test_tritonserver.py --kelp PATH [unittest arguments]
"""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import support
from support import MODELS, ROOT, Repository

EXAMPLES = os.path.join(ROOT, "examples", "models")


def options():
    """Names and values of Triton's options."""
    with open(os.path.join(ROOT, "tests", "e2e", "triton_options.tsv"), encoding="utf-8") as file:
        return [tuple(line.rstrip("\n").split("\t")) for line in file if not line.startswith("#")]


def documented():
    with open(os.path.join(ROOT, "docs", "tritonserver.md"), encoding="utf-8") as file:
        return dict(re.findall(r"^\| `--([a-z0-9-]+)` \| (implemented|accepted with a warning) \|", file.read(), re.M))


def tritonserver(*words, program="tritonserver", **more):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, program)
        os.symlink(os.path.abspath(support.KELP), path)
        return subprocess.run([path, *words], capture_output=True, text=True, timeout=support.PATIENCE_S, stdin=subprocess.DEVNULL,
                              check=False, **more)


class CommandLine(unittest.TestCase):
    def test_every_option_of_triton_is_documented(self):
        names = [name for name, _ in options()]
        self.assertEqual(len(names), 90)
        self.assertEqual(sorted(documented()), sorted(names))

    def test_every_option_is_accepted_and_warns_once_if_it_has_no_effect(self):
        for name, value in options():
            for words in ([f"--{name}={value}"], [f"--{name}", value]) if value else ([f"--{name}"],):
                with self.subTest(words=words):
                    # The last word ends the program after the others were read.
                    ended = tritonserver(*words, *words, "--no-such-option")
                    self.assertEqual(ended.returncode, 1)
                    self.assertTrue(ended.stderr.rstrip().endswith("unknown option '--no-such-option'"), ended.stderr[-300:])
                    warnings = re.findall(r"^Warning: option '--(\S+)' has no effect: .+", ended.stderr, re.M)
                    self.assertEqual(warnings, [name] if documented()[name] == "accepted with a warning" else [])

    def test_an_option_that_triton_has_replaced_warns(self):
        for option, value, replacement in (("trace-file", "t", "--trace-config triton,file=FILE"), ("trace-level", "MIN", "--trace-config level=LEVEL"),
                                           ("trace-rate", "1", "--trace-config rate=N"), ("trace-count", "1", "--trace-config count=N"),
                                           ("trace-log-frequency", "1", "--trace-config triton,log-frequency=N"),
                                           ("strict-model-config", "true", "--disable-auto-complete-config")):
            with self.subTest(option=option):
                ended = tritonserver(f"--{option}={value}")
                self.assertEqual(ended.stderr.count(f"Warning: '--{option}' has been deprecated; use '{replacement}' instead"), 1, ended.stderr)

    def test_no_accepted_option_is_also_implemented(self):
        shown = subprocess.run([support.KELP, "help", "tritonserver"], capture_output=True, text=True, check=True).stdout
        names = re.findall(r"^  --([a-z0-9-]+)", shown, re.M)
        self.assertEqual(sorted(names), sorted(set(names)))

    def test_wrong_values_end_it_with_1(self):
        for words, expected in ((["--http-port=x"], "'--http-port': expected an integer"),
                                (["--grpc-port=x"], "'--grpc-port': expected an integer"),
                                (["--allow-http"], "'--allow-http' needs a value"),
                                (["--allow-http=maybe"], "expected true or false"),
                                (["--disable-auto-complete-config=true"], "does not have a value"),
                                (["--http"], "ambiguous option '--http'"),
                                (["--load-model=x"], "requires '--model-control-mode=explicit'"),
                                (["models"], "unexpected argument 'models'"),
                                (["-v"], "unexpected argument '-v'")):
            with self.subTest(words=words):
                ended = tritonserver(*words)
                self.assertEqual(ended.returncode, 1)
                self.assertTrue(ended.stderr.startswith("Usage: tritonserver [options]\n"))
                self.assertIn(expected, ended.stderr.splitlines()[-1])

    def test_settings_of_backends_and_configurations_are_checked(self):
        with support.Repository() as repository:
            for words, expected in ((["--backend-config=,a=3"], "--backend-config option format is [NAME,]KEY=VALUE, found ',a=3'"),
                                    (["--backend-config=a="], "--backend-config option format is [NAME,]KEY=VALUE, found 'a='"),
                                    (["--backend-config=a"], "--backend-config option format is [NAME,]KEY=VALUE, found 'a'"),
                                    (["--cache-config=local,size=1", "--cache-config=redis,key=value"], "multiple cache configurations"),
                                    (["--cache-config=local,size=1", "--response-cache-byte-size=1"], "incompatible flags"),
                                    (["--trace-config=rate=x"], 'Bad option: "--trace-config rate": expected a number'),
                                    (["--trace-config=mode=opentelemetry", "--trace-config=opentelemetry,bsp_schedule_delay=x"],
                                     'Bad option: "--trace-config opentelemetry,bsp_schedule_delay": expected a number'),
                                    (["--model-config-name="], "option '--model-config-name': expected a name, found ''")):
                with self.subTest(words=words):
                    ended = tritonserver(f"--model-repository={repository.path}", *words)
                    self.assertEqual(ended.returncode, 1)
                    self.assertIn(expected, ended.stderr)

    def test_help_is_printed_to_standard_error(self):
        ended = tritonserver("--help")
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertIn("--model-repository", ended.stderr)

    def test_a_repository_is_required(self):
        ended = tritonserver()
        self.assertEqual(ended.returncode, 1)
        self.assertIn("error: creating server: Invalid argument", ended.stderr)

    def test_a_model_that_does_not_load_ends_it_with_1(self):
        with Repository() as repository:
            repository.add("truncated", os.path.join(MODELS, "truncated.onnx"))
            ended = tritonserver("--model-repository", repository.path, "--http-port=0", "--metrics-port=0")
            self.assertEqual(ended.returncode, 1)
            self.assertTrue(ended.stderr.endswith("error: creating server: Internal - failed to load all models\n"), ended.stderr)
            self.assertEqual(ended.stderr.count("ModelProto"), 1, ended.stderr)


class Serving(unittest.TestCase):
    @unittest.skipUnless(shutil.which("unshare") and subprocess.run(["unshare", "-rn", "true"], check=False, capture_output=True).returncode == 0,
                         "no private network namespace")
    def test_addresses_ports_and_log_lines_are_those_of_triton(self):
        script = ("ip link set lo up; \"$0\" --model-repo=\"$1\" --model-control-mode=NONE & p=$!; "
                  "for i in $(seq 300); do curl -sf 127.0.0.1:8000/v2/health/ready && break; sleep 0.1; done; "
                  "curl -s 127.0.0.1:8000/v2; echo; curl -s 127.0.0.1:8002/metrics | grep -c ^nv_; "
                  "curl -s -o /dev/null -w '%{http_code}\\n' 127.0.0.1:8002/v2; "
                  "curl -s -o /dev/null -w 'page %{http_code}\\n' 127.0.0.1:8000/; kill $p; wait $p; echo status $?")
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "tritonserver")
            os.symlink(os.path.abspath(support.KELP), path)
            ended = subprocess.run(["unshare", "-rn", "sh", "-c", script, path, EXAMPLES], capture_output=True, text=True,
                                   timeout=support.PATIENCE_S, check=False)
        self.assertIn('"name":"triton"', ended.stdout, ended.stderr)
        self.assertRegex(ended.stdout, r'I\d{4} .*\] "Started HTTPService at 0\.0\.0\.0:8000"')
        self.assertRegex(ended.stdout, r'I\d{4} .*\] "Started Metrics Service at 0\.0\.0\.0:8002"')
        self.assertRegex(ended.stdout, r"I\d{4} .*\] \n\+-+\+-+\+-+\+\n\| Model +\| Version \| Status \|")
        self.assertRegex(ended.stdout, r"\| model_control_mode +\| MODE_NONE +\|")
        self.assertIn("\n404\n", ended.stdout)  # the metrics port serves nothing else
        self.assertIn("\npage 404\n", ended.stdout)  # as Triton
        self.assertIn("Signal (15) received.", ended.stdout)
        self.assertTrue(ended.stdout.endswith("status 0\n"), ended.stdout)

    def test_the_name_of_the_link_selects_the_program(self):
        self.assertIn("Usage: tritonserver", tritonserver("--help").stderr)
        self.assertIn("unknown command", tritonserver("tritonserver-x", program="kelp").stderr)
        ended = tritonserver("tritonserver", "--help", program="kelp")
        self.assertIn("Usage: tritonserver", ended.stderr)

    def test_an_address_in_use_is_reported_before_models_load(self):
        with support.Server("--model-repository", EXAMPLES) as first:
            ended = tritonserver("--model-repository", EXAMPLES, "--http-address=127.0.0.1", f"--http-port={first.port}", "--metrics-port=0")
            self.assertEqual(ended.returncode, 1)
            self.assertIn(f"cannot listen on 127.0.0.1 port {first.port}", ended.stderr)
            self.assertNotIn("digits", ended.stdout + ended.stderr)
            self.assertEqual(first.stop(), 0)


if __name__ == "__main__":
    support.main()
