#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the documentation site in Chromium: it fits a phone and a desktop, search finds terms, diagrams are drawn, and nothing is
loaded from other hosts.

    test_site.py SITE [unittest arguments]        SITE: the directory that scripts/site.sh has built
"""
import functools
import glob
import http.server
import os
import re
import sys
import threading
import unittest

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

SITE = None
PATIENCE_S = 60
# Width and height of a phone and of a desktop.
PHONE, DESKTOP = (390, 844), (1280, 900)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SITE))
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.url = f"http://127.0.0.1:{cls.server.server_port}/"
        options = webdriver.ChromeOptions()
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
            options.add_argument(word)
        options.binary_location = "/usr/bin/chromium"
        cls.browser = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.server.shutdown()

    def resize(self, size):
        # The emulated size of a device: a window of Chromium is at least 500 pixels wide.
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                     {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False})

    def open(self, page):
        self.resize(DESKTOP)
        self.browser.get(self.url + page)

    def until(self, condition):
        return WebDriverWait(self.browser, PATIENCE_S).until(condition)

    def pages(self):
        found = sorted(os.path.relpath(path, SITE) for path in glob.glob(os.path.join(SITE, "**", "*.html"), recursive=True))
        self.assertGreater(len(found), 50)
        return [page for page in found if not page.startswith("source/")]

    def test_no_page_is_wider_than_the_screen(self):
        for page in self.pages():
            self.open(page)
            for size in (DESKTOP, PHONE):
                with self.subTest(page=page, width=size[0]):
                    self.resize(size)
                    self.assertLessEqual(self.browser.execute_script("return document.documentElement.scrollWidth"), size[0])

    def test_search_finds_terms_of_text_and_interfaces(self):
        for term, page in (("dynamic_batching", "model-configuration.html"), ("kelp_engine_create", "reference/c/engine.html"),
                           ("InferenceSession", "reference/python.html"), ("systemd", "deployment.html")):
            with self.subTest(term):
                self.open("index.html")
                box = self.until(lambda browser: browser.find_element(By.CSS_SELECTOR, "input.md-search__input"))
                box.click()
                box.send_keys(term)
                links = self.until(lambda browser: browser.find_elements(By.CSS_SELECTOR, ".md-search-result__link"))
                found = {re.sub(r"[?#].*", "", link.get_attribute("href")).removeprefix(self.url) for link in links}
                self.assertIn(page, found)

    def test_diagrams_are_drawn(self):
        # The element of a diagram is replaced by one with a closed shadow root that is as high as the drawing.
        for page in ("engines.html", "architecture.html", "compute.html"):
            self.open(page)
            self.until(lambda browser: not browser.find_elements(By.CSS_SELECTOR, "pre.mermaid"))
            drawings = self.browser.find_elements(By.CSS_SELECTOR, "div.mermaid")
            self.assertTrue(drawings)
            for drawing in drawings:
                self.assertGreater(drawing.size["height"], 50)

    def test_nothing_comes_from_other_hosts(self):
        for page in ("index.html", "engines.html", "reference/python.html"):
            self.open(page)
            self.until(lambda browser: browser.execute_script("return document.readyState") == "complete")
            loaded = self.browser.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
            self.assertTrue(loaded)
            self.assertEqual([name for name in loaded if not name.startswith((self.url, "data:", "blob:"))], [])


if __name__ == "__main__":
    SITE = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
