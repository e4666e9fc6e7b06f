#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The status page at /: its files, and the page in Chromium, if the package chromium-driver and selenium are installed.

    test_page.py --kelp PATH [unittest arguments]
"""
import http.client
import json
import os
import re
import shutil
import sys
import tempfile
import time
import unittest

import support
from support import ROOT, Repository, Server

try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
except ImportError:
    webdriver = None

DRIVER = shutil.which("chromedriver")
CONFIG = """
    backend: "identity"
    input [ { name: "%s" data_type: TYPE_%s dims: [ %s ] } ]
    output [ { name: "%s" data_type: TYPE_%s dims: [ %s ] } ]"""
# A name that would run a script and load a file, if the page inserted it as HTML.
HOSTILE = "<img src=x onerror=alert(1)>"


def identity(repository, name, datatype, dims, tensors=("INPUT0", "OUTPUT0")):
    repository.add(name, config=CONFIG % (tensors[0], datatype, dims, tensors[1], datatype, dims))


def serve(test, repository, *words):
    backends = os.path.join(os.path.dirname(os.path.dirname(support.KELP)), "backends")
    server = Server("--model-repository", repository.path, "--backend-directory", backends, *words)
    test.addCleanup(server.__exit__)
    return server


def get(server, path, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=support.PATIENCE_S)
    try:
        connection.request("GET", path, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()
    finally:
        connection.close()


class Files(unittest.TestCase):
    """What the server sends."""

    def setUp(self):
        self.repository = Repository()
        self.addCleanup(self.repository.__exit__)
        identity(self.repository, "m", "FP32", "-1")

    def test_the_page_loads_nothing_from_elsewhere(self):
        server = serve(self, self.repository)
        types = {"/": "text/html", "/status/page.css": "text/css", "/status/page.js": "text/javascript"}
        for path, kind in types.items():
            status, headers, text = get(server, path)
            self.assertEqual((status, headers["Content-Type"]), (200, kind + "; charset=utf-8"))
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertEqual(re.findall(r"https?://|innerHTML|document\.write|\beval\b", text), [])
        status, headers, text = get(server, "/")
        for path in re.findall(r'(?:src|href)="(/status[^"]*)"', text):
            self.assertEqual(get(server, path)[0], 200)

    def test_it_can_be_disabled(self):
        server = serve(self, self.repository, "--status-page=false")
        for path in "/", "/status/page.js":
            status, _, text = get(server, path)
            self.assertEqual((status, text), (404, '{"error":"Not Found"}'))

    def test_its_files_need_no_token_but_the_models_do(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("secret\n")
            file.flush()
            server = serve(self, self.repository, "--auth-token-file", file.name)
            self.assertEqual(get(server, "/")[0], 200)
            self.assertEqual(get(server, "/v2/models/stats")[0], 401)
            self.assertEqual(get(server, "/v2/models/stats", {"Authorization": "Bearer secret"})[0], 200)


@unittest.skipUnless(webdriver and DRIVER, "chromium-driver or selenium is missing")
class Chromium(unittest.TestCase):
    """A person with a browser."""

    @classmethod
    def setUpClass(cls):
        options = webdriver.ChromeOptions()
        for word in "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1200,1000":
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))

    @classmethod
    def tearDownClass(cls):
        cls.driver.quit()

    def setUp(self):
        self.repository = Repository()
        self.addCleanup(self.repository.__exit__)

    def open(self, *words, fragment=""):
        server = serve(self, self.repository, "--exit-on-error=false", *words)
        self.driver.get(f"http://127.0.0.1:{server.port}/{fragment}")
        return server

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def until(self, condition, message=""):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.1)
        errors = [entry["message"] for entry in self.driver.get_log("browser")]
        raise AssertionError(f"{message}\n{self.find('body').text}\n{errors}")

    def open_model(self, name):
        button = self.until(lambda: self.driver.find_elements(By.XPATH, f"//tbody//button[text()='{name}']"), name)[0]
        self.until(button.is_enabled, f"{name} is not ready")
        button.click()
        self.until(lambda: self.find("#model-title").text.startswith(name + ","))
        self.until(lambda: self.driver.find_elements(By.CSS_SELECTOR, "#inputs fieldset"))

    def infer(self, values):
        for area, value in zip(self.driver.find_elements(By.CSS_SELECTOR, "#inputs textarea"), values):
            area.clear()
            area.send_keys(value)
        self.find("#form [type=submit]").click()
        self.until(lambda: self.find("#elapsed").text or self.find("#infer-error").text)
        return self.find("#outputs").text, self.find("#infer-error").text

    def test_every_type_can_be_sent_and_received(self):
        values = {"FP32": "1.5, -2.25", "FP64": "0.1, -3", "FP16": "65504, -0.5", "BF16": "1.5, -2", "INT8": "-128, 127",
                  "UINT8": "0, 255", "INT16": "-32768, 7", "UINT16": "65535, 1", "INT32": "-5, 6", "UINT32": "4294967295, 0",
                  "INT64": "-9223372036854775808, 9007199254740993", "UINT64": "18446744073709551615, 1", "BOOL": "true, false"}
        for datatype in values:
            identity(self.repository, datatype.lower(), datatype, "2")
        identity(self.repository, "bytes", "STRING", "2")
        self.open()
        for datatype, text in values.items():
            with self.subTest(datatype=datatype):
                self.open_model(datatype.lower())
                shown, error = self.infer([text])
                self.assertEqual(error, "")
                self.assertEqual(shown.splitlines()[-1], text)
        self.open_model("bytes")
        self.assertEqual(self.infer(["grün\n<b>x</b>"]), ("OUTPUT0 (BYTES [2])\ngrün\n<b>x</b>", ""))

    def test_wrong_values_are_explained_and_nothing_is_sent(self):
        identity(self.repository, "m", "INT8", "2")
        server = self.open()
        self.open_model("m")
        for text, message in (("1", "shape [2] has 2 elements, found 1"), ("1, x", "'x' is not an integer"),
                              ("1, 128", "128 is outside of -128 to 127")):
            self.assertEqual(self.infer([text])[1], f"input 'INPUT0': {message}")
        stats = json.loads(get(server, "/v2/models/m/stats")[2])["model_stats"][0]
        self.assertEqual(stats["inference_count"], 0)

    def test_failures_and_load_are_shown(self):
        identity(self.repository, "m", "FP32", "-1")
        self.repository.add("broken", config='backend: "nothing"')
        server = self.open()
        self.open_model("m")
        row = "//tbody/tr[td[1]='%s']"
        reason = self.driver.find_element(By.XPATH, row % "broken" + "/td[3]").text
        self.assertRegex(reason, "UNAVAILABLE .*nothing")
        self.assertEqual(self.find("#health").text, "not ready")
        for _ in range(3):
            body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [1]}]}
            self.assertEqual(server.infer("m", body)[0], 200)
        self.until(lambda: self.driver.find_element(By.XPATH, row % "m" + "/td[4]").text == "3", "the count of requests")

    def test_names_are_never_html(self):
        identity(self.repository, "m", "FP32", "1", ("INPUT" + HOSTILE, "OUTPUT" + HOSTILE))
        self.open()
        self.open_model("m")
        shown, error = self.infer(["7"])
        self.assertEqual((shown.splitlines()[0], error), (f"OUTPUT{HOSTILE} (FP32 [1])", ""))
        self.assertEqual(self.driver.find_elements(By.TAG_NAME, "img"), [])
        self.assertEqual([entry for entry in self.driver.get_log("browser") if "Content Security" in entry["message"]], [])

    def test_an_image_is_resized_to_the_input(self):
        identity(self.repository, "pixels", "UINT8", "3, 4, 6")
        self.open()
        self.open_model("pixels")
        self.find("#inputs input[type=file]").send_keys(os.path.join(ROOT, "tests", "data", "page", "orange.png"))
        self.until(lambda: "resized to 6 × 4" in self.find("#inputs").text)
        self.find("#form [type=submit]").click()
        self.until(lambda: self.find("#elapsed").text or self.find("#infer-error").text)
        values = self.find("#outputs pre").text.split(", ")
        self.assertEqual(values, ["255"] * 24 + ["128"] * 24 + ["0"] * 24)

    def test_a_token_is_requested(self):
        identity(self.repository, "m", "FP32", "1")
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("secret\n")
            file.flush()
            self.open("--auth-token-file", file.name)
            token = self.until(lambda: self.find("#token").is_displayed() and self.find("#token"))
            token.send_keys("secret\t")
            self.open_model("m")
            self.assertEqual(self.infer(["3"]), ("OUTPUT0 (FP32 [1])\n3", ""))

    def test_it_fits_a_phone_and_a_desktop(self):
        identity(self.repository, "m" * 60, "FP32", "-1, 3, 224, 224")
        self.open()
        self.open_model("m" * 60)
        self.addCleanup(self.driver.set_window_size, 1200, 1000)
        for width in 390, 1200:
            self.driver.set_window_size(width, 900)
            sizes = self.driver.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
            self.assertLessEqual(sizes[0], sizes[1])


if __name__ == "__main__":
    support.main()
