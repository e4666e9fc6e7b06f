#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs NVIDIA's public QA tests of the server (directory `qa` of their repository) unmodified on NVIDIA's executable, once with our
libtritonserver.so and once with theirs, and compares the results test by test.

The sources are not part of this repository: pass a copy. Models are made by their generators (ONNX only). A test of a directory counts as passed
if their log of it says so. `--directories` selects directories; `--models` keeps the generated models between runs."""
import argparse
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# The generator of each model directory, and its options.
GENERATORS = {
    "qa_model_repository": "gen_qa_models.py",
    "qa_variable_model_repository": "gen_qa_models.py --variable",
    "qa_identity_model_repository": "gen_qa_identity_models.py",
    "qa_reshape_model_repository": "gen_qa_reshape_models.py --variable",
    "qa_sequence_model_repository": "gen_qa_sequence_models.py",
    "qa_variable_sequence_model_repository": "gen_qa_sequence_models.py --variable",
    "qa_sequence_initial_state_implicit_model_repository": "gen_qa_implicit_models.py --initial-state zero",
    "qa_sequence_implicit_model_repository": "gen_qa_implicit_models.py",
    "qa_variable_sequence_implicit_model_repository": "gen_qa_implicit_models.py --variable",
    "qa_dyna_sequence_model_repository": "gen_qa_dyna_sequence_models.py",
    "qa_dyna_sequence_implicit_model_repository": "gen_qa_dyna_sequence_implicit_models.py",
    "qa_ragged_model_repository": "gen_qa_ragged_models.py",
}
# Directories, with settings of their scripts that leave out engines and hardware that are not tested here. The wheel has no ONNX backend, so
# that NVIDIA's library runs the variants of the backends python and custom only.
DIRECTORIES = {
    "L0_batcher": {"kelp": {"BACKENDS": "onnx python"}, "nvidia": {"BACKENDS": "python"}},
    "L0_sequence_batcher": {"kelp": {"BACKENDS": "onnx", "MODEL_TRIALS": "0 v", "ENSEMBLES": "0"}, "nvidia": None},
    "L0_dyna_sequence_batcher": {"kelp": {"BACKENDS": "onnx"}, "nvidia": None},
    "L0_simple_ensemble": {},
    "L0_optional_input": {},
    "L0_priority": {},
    "L0_model_queue": {},
    "L0_rate_limiter": {},
    "L0_decoupled": {},
    "L0_response_cache": {},
    "L0_request_cancellation": {},
    "L0_iterative_sequence": {},
    "L0_model_config": {},
    "L0_batch_input": {},
    "L0_batch_custom": {},
    "L0_warmup": {},
    "L0_passive_instance": {},
}
# Makes the installation ($0) available, in a mount namespace, at the path that their scripts and executable contain.
PRIVATE = "mount -t tmpfs none /opt && ln -s $0 /opt/tritonserver && exec bash -x test.sh"
# `python3` of their scripts must be the one with Triton's clients; no GPU exists.
NO_GPU = "#!/bin/sh\nexit 9\n"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", help="a copy of NVIDIA's server repository, with the directory qa")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="directory of our build")
    parser.add_argument("--nvidia", default=os.path.join(ROOT, "build", "nvidia"), help="directory that the wheel is unpacked in")
    parser.add_argument("--work", help="directory for models and logs; default: a temporary one")
    parser.add_argument("--directories", nargs="*", default=list(DIRECTORIES), help="directories of qa to run")
    parser.add_argument("--libraries", nargs="*", default=["kelp", "nvidia"], choices=["kelp", "nvidia"])
    parser.add_argument("--timeout", type=int, default=1800, help="seconds for one directory")
    return parser.parse_args()


def generate(qa, data):
    """Makes the models that do not exist yet."""
    for name, command in GENERATORS.items():
        out = os.path.join(data, name)
        if os.path.isdir(out):
            continue
        script, *options = command.split()
        os.makedirs(out + ".new")
        result = subprocess.run([sys.executable, script, *options, "--onnx", "--onnx_opset=0", f"--models_dir={out}.new"],
                                cwd=os.path.join(qa, "common"), capture_output=True, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"qa: cannot make {name}: {result.stderr[-2000:]}")
        adapt(out + ".new", data)
        os.rename(out + ".new", out)


def stage(options, directory, library):
    """Prepares a Triton installation with NVIDIA's executable and one of the libraries. Returns the environment."""
    sys.argv = [sys.argv[0], "--build", options.build, "--nvidia", options.nvidia]
    import interop  # pylint: disable=import-outside-toplevel
    interop.need_nvidia()
    environment = interop.stage(directory)
    if library == "nvidia":
        theirs = glob.glob(os.path.join(interop.NVIDIA_LIBRARIES, "libtritonserver-*.so"))[0]
        for link in os.listdir(os.path.join(directory, "lib")):
            os.remove(os.path.join(directory, "lib", link))
            os.symlink(theirs, os.path.join(directory, "lib", link))
    tools = os.path.join(directory, "tools")
    os.mkdir(tools)
    with open(os.path.join(tools, "nvidia-smi"), "w", encoding="utf-8") as file:
        file.write(NO_GPU)
    os.chmod(os.path.join(tools, "nvidia-smi"), 0o755)
    environment["PATH"] = f"{tools}:{os.path.dirname(sys.executable)}:{environment['PATH']}"
    return environment


def results_of(directory):
    """Reads the outcome of each test from the logs of Python's unittest and from the tests' own lines."""
    results = {}
    for path in sorted(glob.glob(os.path.join(directory, "**", "*.log"), recursive=True)):
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        name = os.path.relpath(path, directory)
        for outcome, test in re.findall(r"^(FAIL|ERROR): (\w+) \(", text, flags=re.M):
            results[f"{name}:{test}"] = "failed"
        ran = re.findall(r"^Ran (\d+) tests? in ", text, flags=re.M)
        if ran:
            failed = sum(1 for key in results if key.startswith(name + ":"))
            results[name] = (sum(map(int, ran)), failed)
    return results


def adapt(directory, data):
    """Makes scripts and configurations independent of the machine that they were written for: no GPU, the place of the generated models, and
    directories of versions, which git does not store because they are empty."""
    for folder, subfolders, files in os.walk(directory):
        if "config.pbtxt" in files and not any(name.isdigit() for name in subfolders):
            os.mkdir(os.path.join(folder, "1"))
        for file in files:
            path = os.path.join(folder, file)
            if not file.endswith((".sh", ".pbtxt")) or os.path.islink(path):
                continue
            with open(path, encoding="utf-8") as opened:
                text = opened.read()
            # Scripts edit configurations of both kinds: a pattern of sed must not match the other kind as well.
            new = re.sub("(?<!s/kind: )KIND_GPU", "KIND_CPU", text).replace("/data/inferenceserver/${REPO_VERSION}", data)
            if new != text:
                with open(path, "w", encoding="utf-8") as opened:
                    opened.write(new)


def run(options, qa, data, name, library):
    """Runs the script of a directory. Returns its exit status and the number of tests that ran and failed."""
    with tempfile.TemporaryDirectory(prefix="kelp-qa-") as installation:
        environment = stage(options, installation, library)
        place = os.path.join(options.work, f"{name}.{library}", name)
        shutil.rmtree(os.path.dirname(place), ignore_errors=True)
        shutil.copytree(os.path.join(qa, name), place, symlinks=True)
        for shared in os.listdir(qa):
            if not shared.startswith("L"):
                shutil.copytree(os.path.join(qa, shared), os.path.join(os.path.dirname(place), shared), symlinks=True)
        adapt(os.path.dirname(place), data)
        environment.update(TRITON_DIR=installation, DATADIR=data, NVIDIA_TRITON_SERVER_VERSION="kelp", MODELDIR=place,
                           TEST_SYSTEM_SHARED_MEMORY="0", PYTHONPATH=os.path.join(qa, "common"), **DIRECTORIES.get(name, {}).get(library, {}))
        with open(os.path.join(options.work, f"{name}.{library}.log"), "w", encoding="utf-8") as log:
            process = subprocess.Popen(["unshare", "--map-root-user", "--mount", "sh", "-c", PRIVATE, installation], cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            try:
                status = process.wait(options.timeout)
            except subprocess.TimeoutExpired:
                status = "timeout"
            finally:  # also a server that the script left behind
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        return status, results_of(place)


def main():
    options = arguments()
    options.build, options.nvidia = os.path.abspath(options.build), os.path.abspath(options.nvidia)
    qa = os.path.join(os.path.abspath(options.sources), "qa")
    if not os.path.isdir(os.path.join(qa, "common")):
        sys.exit(f"qa: '{qa}/common' does not exist: expected a copy of NVIDIA's server repository")
    temporary = None if options.work else tempfile.TemporaryDirectory(prefix="kelp-qa-work-")
    options.work = os.path.abspath(options.work or temporary.name)
    data = os.path.join(options.work, "data", "kelp")
    os.makedirs(data, exist_ok=True)
    generate(qa, data)
    worse = 0
    for name in options.directories:
        found = {}
        for library in options.libraries:
            if DIRECTORIES.get(name, {}).get(library, {}) is None:
                continue
            start = time.monotonic()
            status, results = run(options, qa, os.path.join(options.work, "data", "kelp"), name, library)
            counts = [value for value in results.values() if isinstance(value, tuple)]
            ran, failed = sum(count[0] for count in counts), sum(count[1] for count in counts)
            found[library] = {key for key, value in results.items() if value == "failed"}
            print(f"{name:28} {library:7} exit {status!s:8} {ran:4} tests, {failed:4} failed, {time.monotonic() - start:6.0f} s", flush=True)
        if len(found) == 2:
            for test in sorted(found["kelp"] - found["nvidia"]):
                worse += 1
                print(f"  only with our library: {test}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
