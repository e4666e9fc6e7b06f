# SPDX-License-Identifier: Apache-2.0
"""The packages of build/deb in fresh systems with Debian 12 and 13: installed, used, upgraded, removed and purged.

    sudo python3 tests/packaging/test_debian.py [Bookworm|Trixie]
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import roots

DEB = os.path.join(roots.ROOT, "build", "deb")
NAMES = ("kelp", "libkelp0.1", "libkelp-server", "libkelp-dev", "kelp-backends", "python3-kelp")
# Starts the server of a system and runs $1 with its address in `url`; the server must stop without an error.
SERVE = """
kelp serve --http-port 0 %s >/tmp/serve.out 2>/tmp/serve.err & server=$!
for i in $(seq 300); do
    url=$(sed -n 's/^HTTP  \\(http:.*\\)/\\1/p' /tmp/serve.out)
    [ -z "$url" ] || break
    sleep 0.1
done
[ -n "$url" ] || { cat /tmp/serve.err; exit 1; }
kelp health $url
%s
kill -TERM $server
wait $server
"""
USE_C = r"""
#include <kelp/engine.h>
#include <stdio.h>

int main(void) {
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_runtime *runtime = NULL;
    kelp_graph *graph = NULL;
    kelp_engine *engine = NULL;
    kelp_status *status = kelp_runtime_create(&options, &runtime);
    if (status == NULL)
        status = kelp_graph_load_file(kelp_allocator_system(), "/srv/examples/models/digits/1/model.onnx", NULL, &graph);
    if (status == NULL)
        status = kelp_engine_create(runtime, graph, NULL, &engine);
    printf("%s: %s\n", kelp_version(), status == NULL ? "engine" : kelp_status_message(status));
    kelp_engine_release(engine);
    kelp_graph_release(graph);
    kelp_runtime_release(runtime);
    return status != NULL;
}
"""
SERVER_C = r"""
#include <stdio.h>
#include <triton/core/tritonserver.h>

int main(void) {
    uint32_t major = 0, minor = 0;
    TRITONSERVER_Error *error = TRITONSERVER_ApiVersion(&major, &minor);
    printf("api %u.%u\n", major, minor);
    return error != NULL;
}
"""
CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(use C)
find_package(kelp 0.1 REQUIRED)
add_executable(shared use.c)
target_link_libraries(shared kelp::kelp)
add_executable(static use.c)
target_link_libraries(static kelp::kelp_static)
add_executable(server server.c)
target_link_libraries(server kelp::tritonserver)
"""
PYTHON = """
import json, numpy, kelp
session = kelp.InferenceSession("/srv/examples/models/digits/1/model.onnx")
image = numpy.zeros((1, 1, 8, 8), numpy.float32)
outputs = session.run(None, {session.get_inputs()[0].name: image})
with kelp.Server("/srv/examples/models") as server:
    served = server.infer("digits", {"image": image})
    a = numpy.arange(16, dtype=numpy.float32).reshape(1, 16)
    sums = server.infer("addsub", {"INPUT0": a, "INPUT1": a})
print(kelp.__version__, outputs[0].shape, sorted(served), sums["OUTPUT0"][0, 3], kelp.get_library_dirs())
"""


def packages():
    """Returns {name: path} of the packages that `make deb` made."""
    found = {}
    for path in glob.glob(os.path.join(DEB, "*.deb")):
        name = os.path.basename(path).split("_")[0]
        if not name.endswith("-dbgsym"):
            found[name] = path
    return found


def next_version(path, directory):
    """Makes the same package with a higher version, and returns its path."""
    tree = os.path.join(directory, "tree")
    subprocess.run(["dpkg-deb", "-R", path, tree], check=True)
    control = os.path.join(tree, "DEBIAN", "control")
    with open(control, encoding="utf-8") as file:
        text = file.read()
    version = re.search(r"^Version: (.*)$", text, re.M).group(1)
    with open(control, "w", encoding="utf-8") as file:
        file.write(text.replace(f"Version: {version}", f"Version: {version}+next1").replace(f"(= {version})", f"(= {version}+next1)"))
    out = os.path.join(directory, os.path.basename(path))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, out], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(tree)
    return out


def files_of(system):
    """Returns the files of the system, without those of apt, dpkg and temporary ones."""
    text = system.run("find / -xdev \\( -path /proc -o -path /dev -o -path /tmp -o -path /srv -o -path '/var/cache/*' -o "
                      "-path '/var/log/*' -o -path '/var/lib/apt/*' -o -path '/var/lib/dpkg/*' -o -path '/run/*' \\) -prune -o -print | sort")
    return set(text.splitlines())


class Packages(unittest.TestCase):
    def test_files_are_where_the_policy_says(self):
        found = packages()
        self.assertEqual(sorted(found), sorted(NAMES), "run make deb")
        contents = {name: subprocess.run(["dpkg-deb", "-c", path], capture_output=True, text=True, check=True).stdout for name, path in found.items()}
        for name, wanted in (("kelp", r" \./usr/bin/tritonserver -> kelp$"), ("kelp", r" \./usr/share/man/man1/kelp-serve\.1\.gz$"),
                             ("kelp", r" \./usr/share/bash-completion/completions/kelp$"),
                             ("libkelp0.1", r" \./usr/lib/[^/]*/libkelp\.so\.0\.1$|-> libkelp\.so\.0\.1\.0$"),
                             ("libkelp-server", r" \./usr/lib/[^/]*/kelp/libtritonserver\.so$"),
                             ("libkelp-dev", r" \./usr/lib/[^/]*/libkelp\.a$"), ("libkelp-dev", r" \./usr/include/kelp/engine\.h$"),
                             ("kelp-backends", r" \./usr/lib/[^/]*/kelp/backends/addsub/libtriton_addsub\.so$"),
                             ("python3-kelp", r" \./usr/lib/python3/dist-packages/kelp/_kelp\.abi3\.so$")):
            self.assertRegex(contents[name], re.compile(wanted, re.M), name)


class Suite:
    """The tests of one version of Debian, in the order of their names."""
    suite = None

    @classmethod
    def setUpClass(cls):
        cls.system = roots.System(cls.suite)
        for path in packages().values():
            cls.system.copy(path, "/srv/deb/" + os.path.basename(path))
        cls.system.copy(os.path.join(roots.ROOT, "examples"), "/srv/examples")
        cls.before = files_of(cls.system)

    @classmethod
    def tearDownClass(cls):
        cls.system.__exit__()

    def install(self, *names):
        return self.system.run("apt-get install -y --no-install-recommends " + " ".join(f"/srv/deb/{name}_*.deb" for name in names))

    def test_1_program(self):
        self.install("kelp", "libkelp0.1", "libkelp-server")
        self.assertRegex(self.system.run("kelp --version"), r"^kelp \d")
        self.assertIn("digit", self.system.run("kelp run /srv/examples/models/digits/1/model.onnx --random"))
        self.system.run(SERVE % ("/srv/examples/models/digits/1/model.onnx", "kelp health $url --model digits"))
        self.assertIn("tritonserver", self.system.run("tritonserver --help | head -n 5; dpkg -L kelp"))

    def test_2_backends(self):
        self.install("kelp-backends")
        self.system.run(SERVE % ("--model-repository /srv/examples/models", "kelp health $url --model addsub && kelp health $url --model digits"))

    def test_3_python(self):
        self.install("python3-kelp")
        self.system.copy(self.write(PYTHON), "/srv/use.py")
        text = self.system.run("python3 /srv/use.py")
        self.assertRegex(text, r"\['digit', .*\] 6\.0")
        self.assertIn("/kelp/backends", self.system.run("python3 -c 'from kelp import _native; print(_native.folder(\"backends\"))'"))
        self.assertRegex(self.system.run("python3 -m kelp --version"), r"^kelp \d")

    def test_4_development(self):
        self.install("libkelp-dev")
        self.system.run("apt-get install -y --no-install-recommends gcc libc6-dev pkg-config cmake make curl")
        for name, text in (("use.c", USE_C), ("server.c", SERVER_C), ("CMakeLists.txt", CMAKE)):
            self.system.copy(self.write(text), "/srv/use/" + name)
        text = self.system.run("""
            cd /srv/use
            gcc -Wall -Werror use.c -o shared-pc $(pkg-config --cflags --libs kelp) && ./shared-pc
            gcc -Wall -Werror use.c -o static-pc $(pkg-config --cflags kelp) -Wl,-Bstatic $(pkg-config --libs kelp) -Wl,-Bdynamic \
                $(pkg-config --static --libs kelp | sed 's/-lkelp//') && ./static-pc
            gcc -Wall -Werror server.c -o server-pc $(pkg-config --cflags --libs tritonserver) && ./server-pc
            ! ldd static-pc | grep libkelp
            ldd shared-pc | grep 'libkelp.so.0.1 => /'
            cmake -S . -B build >cmake.log 2>&1 && cmake --build build >>cmake.log 2>&1 || { cat cmake.log; exit 1; }
            build/shared && build/static && build/server
        """)
        self.assertEqual(len(re.findall(r"^0\.1\.0: engine$", text, re.M)), 4, text)
        self.assertEqual(len(re.findall(r"^api 1\.\d+$", text, re.M)), 2, text)
        text = self.system.run("""
            cd /srv && kelp new backend mine && cd mine && cmake -S . -B build >log 2>&1 && cmake --build build >>log 2>&1 &&
            ctest --test-dir build >>log 2>&1 || { cat log; exit 1; }; tail -n 5 log
        """)
        self.assertIn("100% tests passed", text)
        self.assertEqual(self.system.run("python3 -c 'import kelp; print(kelp.get_include())'").strip(), "/usr/include")

    def test_5_upgrade(self):
        with tempfile.TemporaryDirectory() as directory:
            for path in packages().values():
                self.system.copy(next_version(path, directory), "/srv/next/" + os.path.basename(path))
        self.system.run("apt-get install -y --no-install-recommends /srv/next/*.deb")
        self.assertEqual(self.system.run("dpkg-query -W -f '${Version}\\n' " + " ".join(NAMES) + " | grep -vc next1 || true").strip(), "0")
        self.assertRegex(self.system.run("kelp --version"), r"^kelp \d")

    def test_6_remove_and_purge(self):
        self.system.run("apt-get remove -y " + " ".join(NAMES))
        self.assertEqual(self.system.run("command -v kelp || true").strip(), "")
        self.assertTrue(os.path.exists(os.path.join(self.system.path, "etc/kelp/kelp.env")), "the configuration stays until the purge")
        self.system.run("dpkg --purge " + " ".join(NAMES))
        left = {path for path in files_of(self.system) - self.before if "kelp" in path or "triton" in path}
        self.assertEqual(left, set())

    def write(self, text):
        with tempfile.NamedTemporaryFile("w", delete=False, encoding="utf-8") as file:
            file.write(text)
        os.chmod(file.name, 0o644)
        self.addCleanup(os.unlink, file.name)
        return file.name


class Bookworm(Suite, unittest.TestCase):
    suite = "bookworm"


class Trixie(Suite, unittest.TestCase):
    suite = "trixie"


if __name__ == "__main__":
    reason = roots.missing()
    if reason is not None:
        print(reason)
        sys.exit(77)
    unittest.main(verbosity=2)
