#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Backends written with the crate triton-rs 0.2.0 of crates.io in `kelp serve`: one that never gives its requests back, and one with all
hooks. scripts/rust.sh builds them.

    test_triton_rs.py --kelp PATH --libraries FOLDER [unittest arguments]
"""
import json
import os
import shutil
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import support  # noqa: E402

LIBRARIES = None
ECHO = """
backend: "rsecho"
input [ { name: "IN" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_STRING dims: [ 1 ] } ]
"""
FULL = """
backend: "rsfull"
input [ { name: "COUNT" data_type: TYPE_UINT64 dims: [ 1 ] }, { name: "WORD" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] }, { name: "INSTANCES" data_type: TYPE_UINT64 dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU count: 2 } ]
"""


def tensor(name, kind, value):
    return {"name": name, "datatype": kind, "shape": [1], "data": [value]}


class Backends(unittest.TestCase):
    def setUp(self):
        self.repository = support.Repository()
        self.addCleanup(self.repository.__exit__)
        self.repository.add("echo", config=ECHO)
        self.repository.add("full", config=FULL)
        with open(os.path.join(self.repository.path, "full", "1", "greeting.txt"), "w", encoding="utf-8") as file:
            file.write("hail \n")
        for name in ("echo", "full"):
            shutil.copy(os.path.join(LIBRARIES, f"libtriton_rs{name}.so"), os.path.join(self.repository.path, name))
        self.refuses = os.path.join(self.repository.path, "refuses")
        os.environ["TRITON_RS_FULL_REFUSES"] = self.refuses

    def serve(self, *models):
        words = [word for model in models for word in ("--load-model", model)]
        server = support.Server("--model-repository", self.repository.path, "--model-control-mode", "explicit", *words)
        self.addCleanup(server.__exit__)
        return server

    def infer(self, server, model, *inputs):
        status, answer = server.infer(model, {"inputs": list(inputs)})
        self.assertEqual(status, 200, answer)
        return {output["name"]: output["data"][0] for output in answer["outputs"]}

    def index(self, server):
        status, _, body = server.call("POST", "/v2/repository/index", {})
        self.assertEqual(status, 200, body)
        return {model["name"]: model for model in json.loads(body)}

    def until(self, what, condition):
        end = time.monotonic() + support.PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)

    def unload(self, server, model):
        self.assertEqual(server.call("POST", f"/v2/repository/models/{model}/unload", {})[0], 200)
        self.until(f"{model} was not unloaded: {self.index(server)[model]}",
                   lambda: self.index(server)[model]["state"] == "UNAVAILABLE" and self.index(server)[model]["reason"] == "unloaded")

    def counted(self, server, model, count):
        def reached():
            _, _, body = server.call("GET", f"/v2/models/{model}/stats")
            self.stats = json.loads(body)["model_stats"][0]
            return int(self.stats["inference_stats"]["success"]["count"]) == count
        self.until(f"{count} inferences of {model} are not counted", reached)
        self.assertEqual(int(self.stats["inference_count"]), count, self.stats)

    def test_requests_that_are_never_released(self):
        server = self.serve("echo")
        for word in ("one", "", "größer"):
            self.assertEqual(self.infer(server, "echo", tensor("IN", "BYTES", word)), {"OUT": f"echo 1 says {word}"})
        self.counted(server, "echo", 3)
        self.unload(server, "echo")
        self.assertEqual(server.call("POST", "/v2/repository/models/echo/load", {})[0], 200)
        self.assertEqual(self.infer(server, "echo", tensor("IN", "BYTES", "again")), {"OUT": "echo 1 says again"})
        self.assertEqual(server.stop(), 0)

    def test_a_batch_that_fails_midway(self):
        """What was answered stays so, the others get the failure, and nothing is answered twice."""
        with open(os.path.join(self.repository.path, "echo", "config.pbtxt"), "a", encoding="utf-8") as file:
            file.write("max_batch_size: 8\ndynamic_batching { }\n")
        server = self.serve("echo")
        gate, answers = os.path.join(self.repository.path, "gate"), {}

        def ask(word):
            answers[word] = server.infer("echo", {"inputs": [{**tensor("IN", "BYTES", word), "shape": [1, 1]}]})

        threads = [threading.Thread(target=ask, args=(word,)) for word in (f"wait for {gate}", "first", "fail", "last")]
        for thread in threads:
            thread.start()
            time.sleep(0.1)  # so that they probably queue in this order
        with open(gate, "w", encoding="utf-8"):
            pass
        for thread in threads:
            thread.join(support.PATIENCE_S)
        self.assertEqual(answers[f"wait for {gate}"][0], 200, answers)
        self.assertGreaterEqual(answers["fail"][0], 400, answers)
        self.assertIn("told to fail", answers["fail"][1]["error"])
        for word in ("first", "last"):
            status, answer = answers[word]
            if status == 200:
                self.assertEqual(answer["outputs"][0]["data"], [f"echo 1 says {word}"])
            else:
                self.assertIn("told to fail", answer["error"])
        self.unload(server, "echo")
        self.assertEqual(server.stop(), 0)

    def test_every_hook(self):
        server = self.serve("full")
        self.assertEqual(self.infer(server, "full", tensor("COUNT", "UINT64", 2), tensor("WORD", "BYTES", "you")),
                         {"TEXT": "hailyouyou", "INSTANCES": 2})
        self.counted(server, "full", 1)
        self.unload(server, "full")
        self.until("the instances did not end", lambda: server.log().count("an instance ends") == 2)
        self.assertEqual(server.stop(), 0)
        self.assertEqual(server.log().count("the backend ends"), 1)

    def test_errors_of_execute(self):
        """A failure is the answer of the request, and the server goes on."""
        server = self.serve("full")
        os.remove(os.path.join(self.repository.path, "full", "1", "greeting.txt"))
        status, answer = server.infer("full", {"inputs": [tensor("COUNT", "UINT64", 2), tensor("WORD", "BYTES", "you")]})
        self.assertGreaterEqual(status, 400, answer)
        self.assertIn("No such file", answer["error"])
        self.unload(server, "full")
        self.assertEqual(server.stop(), 0)

    def test_an_instance_that_refuses(self):
        with open(self.refuses, "w", encoding="utf-8"):
            pass
        server = self.serve()
        status, _, body = server.call("POST", "/v2/repository/models/full/load", {})
        self.assertGreaterEqual(status, 400, body)
        self.assertIn(b"no instance today", body)
        found = self.index(server)["full"]
        self.assertEqual(found["state"], "UNAVAILABLE", found)
        self.assertIn("no instance today", found["reason"])
        os.remove(self.refuses)
        self.assertEqual(server.call("POST", "/v2/repository/models/full/load", {})[0], 200)
        self.infer(server, "full", tensor("COUNT", "UINT64", 0), tensor("WORD", "BYTES", "x"))
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    place = sys.argv.index("--libraries")
    LIBRARIES = os.path.abspath(sys.argv[place + 1])
    del sys.argv[place:place + 2]
    support.main()
