#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The installed program and libraries are hardened: what readelf tells about them.

    test_hardening.py PREFIX
"""
import glob
import os
import platform
import re
import subprocess
import sys
import unittest

PREFIX = None


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True, check=True).stdout


def files():
    libraries = [path for path in glob.glob(os.path.join(PREFIX, "lib", "*.so*")) if not os.path.islink(path)]
    return [os.path.join(PREFIX, "bin", "kelp"), *libraries, *glob.glob(os.path.join(PREFIX, "backends", "*", "*.so"))]


class Hardening(unittest.TestCase):
    def each(self):
        found = files()
        self.assertGreaterEqual(len(found), 4, found)
        for path in found:
            with self.subTest(file=os.path.relpath(path, PREFIX)):
                yield path

    def test_the_program_has_no_fixed_address(self):
        self.assertIn("DYN", readelf("-h", os.path.join(PREFIX, "bin", "kelp")))
        self.assertIn("PIE", readelf("-d", os.path.join(PREFIX, "bin", "kelp")))

    def test_relocations_are_read_only_from_the_start(self):
        for path in self.each():
            self.assertIn("GNU_RELRO", readelf("-l", path))
            self.assertRegex(readelf("-d", path), r"BIND_NOW|FLAGS_1.*\bNOW\b")
            self.assertNotIn("TEXTREL", readelf("-d", path))

    def test_the_stack_is_not_executable(self):
        for path in self.each():
            self.assertRegex(readelf("-l", path), r"GNU_STACK\s+(0x0+\s+)+(0x0+\s+)?RW\s")

    def test_stack_and_libc_functions_are_checked(self):
        for path in self.each():
            symbols = readelf("--dyn-syms", path)
            self.assertIn("__stack_chk_fail", symbols)
            if os.sep + "backends" + os.sep not in path:  # an example may call none of these functions
                self.assertRegex(symbols, r"__(mem|str|v?sn?printf|v?fprintf|read|recv|poll)\w*_chk")

    # The linker marks a file only if the start-up code of the C library is protected, too, which differs between distributions.
    @unittest.skipUnless(platform.machine() == "x86_64", "a feature of x86-64")
    def test_functions_are_marked_as_targets_of_indirect_branches(self):
        for path in self.each():
            code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True).stdout
            marked = set(re.findall(r"^\w+ <([^>]+)>:\n\s*\w+:\s+endbr64", code, re.MULTILINE))
            exported = re.findall(r"FUNC\s+GLOBAL\s+DEFAULT\s+\d+ ([^@\s]+)", readelf("--dyn-syms", path))
            self.assertEqual(set(exported) - marked, set())
            self.assertGreater(len(marked), 0)


if __name__ == "__main__":
    PREFIX = sys.argv.pop(1)
    unittest.main(verbosity=2)
