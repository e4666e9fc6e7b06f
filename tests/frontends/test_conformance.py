#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of cases.py against a front-end.

    test_conformance.py --kelp PATH [unittest arguments]            starts `kelp serve`
    test_conformance.py --url http://HOST:PORT [unittest arguments] uses a server that is running; see server.py. The scheme
                                                                    is http or grpc.
"""
import json
import math
import sys
import threading
import unittest

import cases
import clients
import server

TARGET = {}


def matches(expected, found):
    """Returns True if `found` matches: objects may have more members than expected, numbers are compared by value."""
    if isinstance(expected, cases.Contains):
        if isinstance(found, str):
            return expected.item in found
        return any(matches(expected.item, item) for item in found)
    if isinstance(expected, cases.AtLeast):
        return int(found) >= expected.value
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(name in found and matches(value, found[name]) for name, value in expected.items())
    if isinstance(expected, list):
        return len(expected) == len(found) and all(matches(a, b) for a, b in zip(expected, found))
    if isinstance(expected, float):
        return math.isclose(expected, found, rel_tol=1e-4, abs_tol=1e-6)
    return expected == found


class Case(unittest.TestCase):
    def failed(self, error, failure):
        if failure.code is not None:
            self.assertEqual(failure.code, error.code, failure.message)
        for word in error.words:
            self.assertIn(word, failure.message)

    def run_step(self, client, operation, arguments, expected):
        try:
            found = getattr(client, operation)(**arguments)
        except clients.Failure as failure:
            self.assertIsInstance(expected, cases.Error, failure)
            self.failed(expected, failure)
            return
        self.assertNotIsInstance(expected, cases.Error, f"{operation} succeeded: {str(found)[:500]}")
        self.assertTrue(matches(expected, found), f"expected {str(expected)[:1000]}, found {str(found)[:1000]}")

    def run_steps(self, make, steps):
        client = make(TARGET["host"], TARGET["port"])
        try:
            for (operation, arguments), expected in steps:
                self.run_step(client, operation, arguments, expected)
        finally:
            client.close()

    def run_http(self, case):
        status, headers, content = TARGET["http"].request(case["method"], case["path"], case["body"], case["headers"])
        self.assertEqual(status, case["status"], content[:500])
        if status != 200:
            message = json.loads(content)["error"]
            for word in case["words"]:
                self.assertIn(word, message)
        for name, value in case["expect_headers"].items():
            self.assertEqual(headers.get(name), value)
        if case["expect"] is not None:
            found = json.loads(content)
            self.assertTrue(matches(case["expect"], found), f"expected {case['expect']}, found {str(found)[:1000]}")

    def check_concurrent_requests_get_their_own_results(self, make):
        failures = []

        def work(first):
            operation, arguments = cases.numbers(8)
            arguments["inputs"][0]["data"] = list(range(first, first + 8))
            try:
                for _ in range(20):
                    self.run_steps(make, [((operation, arguments), {"outputs": {"OUTPUT0": {"data": list(range(first, first + 8))}}})])
            except Exception as error:  # noqa: BLE001: reported below
                failures.append(error)

        threads = [threading.Thread(target=work, args=(i * 100,)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


def add(name, run, *arguments):
    """Adds a test method."""
    def method(self):
        run(self, *arguments)
    method.__doc__ = name
    setattr(Case, "test " + name, method)


def use(scheme, host, port):
    TARGET.update(host=host, port=port)
    for make in clients.CLIENTS[scheme]:
        for name, steps in cases.CASES.items():
            add(f"{make.__name__}: {name}", Case.run_steps, make, steps)
        add(f"{make.__name__}: concurrent requests get their own results",
            Case.check_concurrent_requests_get_their_own_results, make)
    if scheme != "grpc":
        TARGET["http"] = clients.Http(host, port)
        for name, case in cases.HTTP_CASES.items():
            add(f"HTTP: {name}", Case.run_http, case)


if __name__ == "__main__":
    sys.exit(server.main("__main__", use, started="kelp"))
