#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Backends with the crate bindings/rust, built by cargo and asked over HTTP: in `kelp serve`, or, with KELP_NVIDIA_WHEEL set to a folder
that the wheel nvidia-pytriton 0.7.0 is unpacked in, in NVIDIA's executable on NVIDIA's library.

    test_rust.py --kelp PATH --work FOLDER [--cargo CARGO] [--libraries FOLDER:FOLDER] [unittest arguments]

--libraries: where libtritonserver.so and what it needs lie, to link the crate's own tests with; without it they do not run.

Exits 77 and prints the reason if cargo is missing, older than 1.82, or cannot download the crate ndarray.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
import support  # noqa: E402
import test_backends  # noqa: E402

CRATE = os.path.join(ROOT, "bindings", "rust")
OPTIONS = {"--work": None, "--cargo": "cargo", "--libraries": None}
WHEEL = os.environ.get("KELP_NVIDIA_WHEEL")
PACKAGE = """
[package]
name = "triton_{name}"
version = "0.0.0"
edition = "2021"
[lib]
crate-type = ["cdylib"]
[dependencies]
{dependency} = {{ package = "kelp-backend", path = "{crate}", features = ["ndarray"] }}
"""
NOT_YET = "to" + "do!();"
TENSORS = """
input [ {{ name: "{0}" data_type: TYPE_{2} dims: {3} }} ]
output [ {{ name: "{1}" data_type: TYPE_{2} dims: {3} }} ]
"""


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def write(text, *path):
    os.makedirs(os.path.dirname(os.path.join(*path)), exist_ok=True)
    if not os.path.exists(os.path.join(*path)) or read(*path) != text:
        with open(os.path.join(*path), "w", encoding="utf-8") as file:
            file.write(text)


def replaced(text, *pairs):
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def seeds():
    """The program as it is, and what it becomes by the alternatives in its comments."""
    seed = read(HERE, "seed.rs")
    filled = replaced(seed, (NOT_YET, ""))
    factory = replaced(filled, ("{Backend, Response}", "{Backend, Response, ResponseFactory}"),
                       ("let response = Response::from_request(request)?;", ""), ("// let factory", "let factory"),
                       ("// let response", "let response"), ("// request.release();", "request.release();"))
    array = replaced(filled, ("// let tensor", "let tensor"), ('response.add_output("output", &shape, data);', ""),
                     ('// or: response.add_output("output", tensor);', 'response.add_array("output", tensor);'))
    return {"seed": seed, "seed_filled": filled, "seed_factory": factory, "seed_array": array}


def shown(path):
    """A file that docs/rust.md shows."""
    found = re.search(r"^```\w*\n(?://|#) " + re.escape(path) + r"\n(.*?)^```", read(ROOT, "docs", "rust.md"), re.M | re.S)
    assert found, path
    return found.group(1)


def lay_out(work):
    """A workspace of all programs."""
    programs = {name: (text, "triton_rs") for name, text in seeds().items()}
    programs["conduct"] = (read(HERE, "conduct.rs"), "kelp-backend")
    for name in ("scale", "stream"):
        programs[name] = (shown(f"triton_{name}/src/lib.rs"), "kelp-backend")
    members = ", ".join(f'"{name}"' for name in programs)
    write(f'[workspace]\nresolver = "2"\nmembers = [{members}]\n[profile.dev]\ndebug = false\n', work, "Cargo.toml")
    crate = os.path.relpath(CRATE, os.path.join(work, "conduct"))
    for name, (text, dependency) in programs.items():
        write(text, work, name, "src", "lib.rs")
        write(PACKAGE.format(name=name, dependency=dependency, crate=crate), work, name, "Cargo.toml")
    # The page's own package must be the one that is built here, but for the place of the crate.
    page = replaced(shown("triton_scale/Cargo.toml"), ("KELP/bindings/rust", crate))
    write(page, work, "scale", "Cargo.toml")
    shutil.copy(os.path.join(HERE, "Cargo.lock"), work)
    return sorted(programs)


def cargo(*words, folder, **variables):
    ran = subprocess.run([OPTIONS["--cargo"], *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                         env={**os.environ, "CARGO_TARGET_DIR": os.path.join(OPTIONS["--work"], "target"), "CARGO_TERM_COLOR": "never",
                              **variables})
    return ran.returncode, ran.stdout + ran.stderr


def find_cargo():
    """Finds cargo, or ends as skipped."""
    found = shutil.which(OPTIONS["--cargo"]) or shutil.which(os.path.expanduser("~/.cargo/bin/cargo"))
    if not found:
        print("skipped: cargo is missing")
        sys.exit(77)
    OPTIONS["--cargo"] = found
    os.environ["PATH"] += os.pathsep + os.path.dirname(found)
    version = re.match(r"cargo (\d+)\.(\d+)", cargo("--version", folder=ROOT)[1])
    if not version or (int(version.group(1)), int(version.group(2))) < (1, 82):
        print("skipped: cargo 1.82 is needed, found " + (version.group(0) if version else "none that works"))
        sys.exit(77)


def prepare():
    """Lays out and builds, or ends as skipped."""
    work = os.path.join(OPTIONS["--work"], "programs")
    find_cargo()
    lay_out(work)
    code, text = cargo("fetch", "--locked", folder=work)
    if code and "lock file" not in text:
        print(text + "\nskipped: cargo cannot bring the crate ndarray")
        sys.exit(77)
    code, text = cargo("build", "--locked", folder=work)
    print(text)
    if code:
        sys.exit(1)


def tensor(name, data, kind="FP32"):
    return {"name": name, "datatype": kind, "shape": [len(data)], "data": data}


class Crate(unittest.TestCase):
    """The crate by itself."""

    @unittest.skipIf(WHEEL, "does not depend on the server")
    def test_declarations_are_those_that_the_headers_make(self):
        if not shutil.which("rustfmt"):
            self.skipTest("no rustfmt")
        ran = subprocess.run([sys.executable, os.path.join(CRATE, "make_sys.py"), "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    @unittest.skipIf(WHEEL, "does not depend on the server")
    def test_format(self):
        if not shutil.which("cargo-fmt"):
            self.skipTest("no cargo fmt")
        code, text = cargo("fmt", "--check", folder=CRATE)
        self.assertEqual(code, 0, text)

    def test_tests_and_examples_of_the_pages(self):
        if not OPTIONS["--libraries"]:
            self.skipTest("linked with a library that needs no sanitizer")
        folders = OPTIONS["--libraries"].split(":")
        flags = f"-L native={folders[0]} -C link-arg=-ltritonserver"
        code, text = cargo("test", "--all-features", "--locked", folder=CRATE, RUSTFLAGS=flags, RUSTDOCFLAGS=flags,
                           LD_LIBRARY_PATH=OPTIONS["--libraries"], CARGO_TARGET_DIR=os.path.join(OPTIONS["--work"], "tests"))
        self.assertEqual(code, 0, text)
        self.assertNotIn("FAILED", text)
        self.assertGreaterEqual(sum(map(int, re.findall(r"(\d+) passed", text))), 14, text)
        self.assertNotIn("warning", text)


class Programs(unittest.TestCase):
    def setUp(self):
        self.repository = support.Repository()
        self.addCleanup(self.repository.__exit__)

    def add(self, model, library, config):
        self.repository.add(model, config=f'backend: "{library}"\n' + re.sub(r"^backend:.*\n", "", config, flags=re.M))
        shutil.copy(os.path.join(OPTIONS["--work"], "target", "debug", f"libtriton_{library}.so"),
                    os.path.join(self.repository.path, model))

    def conduct(self, model="conduct", more=""):
        self.add(model, "conduct", TENSORS.format("IN", "OUT", "FP32", "[ -1 ]") + more)

    def serve(self, *words):
        if WHEEL:
            server = test_backends.NvidiaServer(WHEEL, self.repository.path, *words)
        else:
            server = support.Server("--model-repository", self.repository.path, *words)
        self.addCleanup(server.__exit__)
        return server

    def ask(self, server, model, data, name="IN", **parameters):
        return server.infer(model, {"id": "ask", "inputs": [tensor(name, data)], "parameters": parameters})

    def answer(self, server, model, data, **parameters):
        status, answer = self.ask(server, model, data, **parameters)
        self.assertEqual(status, 200, answer)
        return answer

    def fails(self, server, model, text, **parameters):
        status, answer = self.ask(server, model, [1], **parameters)
        self.assertGreaterEqual(status, 400, answer)
        self.assertIn(text, answer["error"])

    def until(self, what, condition):
        end = time.monotonic() + support.PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)

    def stats(self, server, model):
        return json.loads(server.call("GET", f"/v2/models/{model}/stats")[2])["model_stats"][0]

    def ends(self, server):
        self.assertEqual(server.stop(), 0, server.log())

    # ---- the program of which the crate is to be capable ----

    def test_seed(self):
        config = TENSORS.format("input", "output", "FP32", "[ -1, -1 ]")
        for name in seeds():
            self.add(name, name, config)
        server = self.serve()
        request = {"inputs": [{"name": "input", "datatype": "FP32", "shape": [2, 3], "data": [1, 2, 3, 4, 5, 6.5]}]}
        for _ in range(2):  # the server goes on after a panic
            status, answer = server.infer("seed", request)
            self.assertGreaterEqual(status, 400, answer)
            self.assertIn("the backend panicked: not yet implemented", answer["error"])
        for name in ("seed_filled", "seed_factory", "seed_array"):
            status, answer = server.infer(name, request)
            self.assertEqual(status, 200, answer)
            output = answer["outputs"][0]
            self.assertEqual((output["name"], output["shape"], output["data"]), ("output", [2, 3], [1, 2, 3, 4, 5, 6.5]))
            self.until("not counted", lambda: self.stats(server, name)["inference_count"] == 1)  # pylint: disable=cell-var-from-loop
        self.until("not counted", lambda: self.stats(server, "seed")["inference_stats"]["fail"]["count"] == 2)
        self.ends(server)

    # ---- the page ----

    @unittest.skipIf(WHEEL, "a command of ours")
    def test_page(self):
        project = os.path.join(self.repository.path, "scale")
        library = os.path.join(project, "target", "release", "libtriton_scale.so")
        os.makedirs(os.path.dirname(library))
        shutil.copy(os.path.join(OPTIONS["--work"], "target", "debug", "libtriton_scale.so"), library)
        write(shown("triton_scale/config.pbtxt"), project, "config.pbtxt")
        server = support.Server("--with-backend", library)
        self.addCleanup(server.__exit__)
        command = re.search(r"^curl -s localhost:8000(\S+).*?-d '(.*?)'", read(ROOT, "docs", "rust.md"), re.M | re.S)
        status, _, body = server.call("POST", command.group(1), command.group(2))
        self.assertEqual(status, 200, body)
        self.assertEqual(json.loads(body)["outputs"][0]["data"], [3, 6, 9])
        self.ends(server)

    def test_stream_of_answers_of_another_model(self):
        self.add("scale", "scale", shown("triton_scale/config.pbtxt"))
        self.add("stream", "stream", shown("triton_stream/config.pbtxt"))
        self.conduct()
        server = self.serve()
        answer = self.answer(server, "conduct", [1, 2, 4], do="call_all", whom="stream")
        self.assertEqual(sorted(answer["outputs"][0]["data"]), [3, 6, 12])
        self.assertEqual(self.answer(server, "conduct", [], do="call_all", whom="stream")["outputs"][0]["data"], [])
        self.until("not counted", lambda: self.stats(server, "stream")["inference_stats"]["success"]["count"] == 2)
        self.ends(server)

    # ---- conduct ----

    def test_facts(self):
        self.conduct(more='parameters { key: "setting" value { string_value: "high" } }\n')
        server = self.serve()
        self.answer(server, "conduct", [0])
        answer = self.answer(server, "conduct", [1.5], do="facts", mood="good", level=7, sure=True, ratio=0.5)
        self.assertEqual(answer["outputs"][0]["data"], [1.5])
        found = answer["parameters"]
        expected = {"got_mood": "good", "got_level": 7, "got_sure": True, "got_ratio": 0.5, "id": "ask", "model": "conduct 1", "count": 2,
                    "outputs": "OUT", "setting": "high", "dims": -1}
        self.assertEqual({name: found[name] for name in expected}, expected)
        self.assertTrue(found["instance"].startswith("conduct"), found)
        self.assertEqual(self.answer(server, "conduct", [1, 2], do="in_place")["outputs"][0]["data"], [2, 3])
        self.ends(server)

    def test_failures_are_answers(self):
        self.conduct()
        server = self.serve()
        for what, text in (("panic", "the backend panicked: on purpose, 1"), ("panic_while_answering", "midway"), ("error", "nothing here"),
                           ("io_error", "No such file"), ("forget", "the backend sent no response"), ("refuse", "not today"),
                           ("drop_response", "no response"), ("wrong_type", "input 'IN' is FP32, expected FP64"), ("missing_input", "NONE"),
                           ("wrong_shape", "shape [7] has 7 elements, not 1"), ("later_panic", "no response"), ("factory_lost", "no response"),
                           ("call_drop", "no response")):
            with self.subTest(what):
                self.fails(server, "conduct", text, do=what, whom="conduct")
        self.assertEqual(self.ask(server, "conduct", [1], do="error")[0], 404)
        self.assertEqual(self.answer(server, "conduct", [9])["outputs"][0]["data"], [9])
        # 14 with that of the lost factory, which may go after its request was reported.
        self.until("not counted", lambda: self.stats(server, "conduct")["inference_stats"]["fail"]["count"] >= 13)
        self.ends(server)

    def test_a_second_answer_is_refused(self):
        self.conduct()
        server = self.serve()
        self.assertEqual(self.answer(server, "conduct", [4], do="twice")["outputs"][0]["data"], [4])
        self.until("not logged", lambda: "the request already has its final response" in server.log() + getattr(server, "output", ""))
        self.ends(server)

    def test_answers_from_other_threads(self):
        self.conduct()
        server = self.serve()
        for what in ("later", "factory"):
            for value in range(20):
                self.assertEqual(self.answer(server, "conduct", [value, 2], do=what)["outputs"][0]["data"], [value, 2])
        self.ends(server)

    def test_calls(self):
        self.conduct()
        self.conduct("other")
        server = self.serve()
        for what in ("call", "call_await", "call_back"):
            with self.subTest(what):
                answer = self.answer(server, "conduct", [3, 4], do=what, whom="other", then="in_place")
                self.assertEqual(answer["outputs"][0]["data"], [4, 5])
                self.assertEqual(answer["parameters"]["id"], "asked")
                self.fails(server, "conduct", "asked: the backend panicked", do=what, whom="other", then="panic")
                self.fails(server, "conduct", "nowhere", do=what, whom="nowhere")
        self.ends(server)

    def states(self, server):
        return {model["name"]: model["state"] for model in json.loads(server.call("POST", "/v2/repository/index", {})[2])}

    @unittest.skipIf(WHEEL, "models are loaded by name")
    def test_unloading_waits(self):
        """For requests that are kept, and for calls that are under way though the request that made them is over."""
        self.conduct("held")
        self.conduct("other")
        gate = os.path.join(self.repository.path, "gate")
        server = self.serve("--model-control-mode", "explicit", "--load-model", "held", "--load-model", "other")
        answers = []
        thread = threading.Thread(target=lambda: answers.append(self.ask(server, "held", [5], do="wait", gate=gate)))
        thread.start()
        self.answer(server, "held", [1], do="call_and_answer", whom="other", then="wait", gate=gate)
        self.until("not begun", lambda: self.stats(server, "held")["execution_count"] == 2)
        for name in ("held", "other"):
            self.assertEqual(server.call("POST", f"/v2/repository/models/{name}/unload", {})[0], 200)
        time.sleep(0.1)
        self.assertEqual(answers, [])
        self.assertNotIn("a model goes", server.log())
        self.assertNotIn("a call goes", server.log())
        write("", gate)
        thread.join(support.PATIENCE_S)
        self.assertEqual((answers[0][0], answers[0][1]["outputs"][0]["data"]), (200, [5]))
        self.until("not unloaded", lambda: set(self.states(server).values()) == {"UNAVAILABLE"})
        self.until("states stay", lambda: server.log().count("a model goes") == 2)
        self.assertIn("a call goes", server.log())
        self.ends(server)

    @unittest.skipIf(WHEEL, "models are loaded by name")
    def test_loading_and_unloading(self):
        """Failures are told, states go, and a panic while they do is survived."""
        for name in ("error", "panic", "bomb"):
            self.conduct(name, f'parameters {{ key: "begin" value {{ string_value: "{name}" }} }}\n')
        self.conduct("instance", 'parameters { key: "instance" value { string_value: "error" } }\n')
        self.conduct("unready", 'parameters { key: "ready" value { string_value: "the cable is out" } }\n')
        self.conduct("good", "instance_group [ { kind: KIND_CPU count: 3 } ]\n")
        server = self.serve("--model-control-mode", "explicit", "--backend-config", "conduct,mood=mild")
        for name, text in (("error", b"no model today"), ("panic", b"the backend panicked: no model at all"), ("instance", b"no instance today")):
            status, _, body = server.call("POST", f"/v2/repository/models/{name}/load", {})
            self.assertGreaterEqual(status, 400, body)
            self.assertIn(text, body)
        for name in ("bomb", "good", "unready"):
            self.assertEqual(server.call("POST", f"/v2/repository/models/{name}/load", {})[0], 200)
        self.assertEqual(server.call("GET", "/v2/models/good/ready")[0], 200)
        self.assertNotEqual(server.call("GET", "/v2/models/unready/ready")[0], 200)
        self.answer(server, "good", [1])
        self.answer(server, "good", [1], do="later")
        for name in ("bomb", "good", "unready"):
            self.assertEqual(server.call("POST", f"/v2/repository/models/{name}/unload", {})[0], 200)
        self.until("not unloaded", lambda: set(self.states(server).values()) == {"UNAVAILABLE"})
        self.until(server.log(), lambda: server.log().count("an instance goes") == 5 and server.log().count("a model goes") == 3)  # one never got instances
        self.assertIn("the backend panicked: in a drop", server.log())
        self.assertIn("mild", server.log())
        self.ends(server)


def take_options():
    for word in list(sys.argv):
        if word in OPTIONS:
            place = sys.argv.index(word)
            OPTIONS[word] = sys.argv[place + 1]
            del sys.argv[place:place + 2]
    OPTIONS["--work"] = os.path.abspath(OPTIONS["--work"])


if __name__ == "__main__":
    take_options()
    prepare()
    support.main()
