#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs NVIDIA's public QA tests of the server (directory `qa` of their repository) unmodified on NVIDIA's executable, once with our
libtritonserver.so and once with theirs, and compares the results case by case. With `--server kelp`, our own `tritonserver` takes the place of
NVIDIA's executable with our library, so that our front-ends are tested as well.

The sources are not part of this repository: pass a copy. Models are made by their generators (ONNX only). `--built` is a directory with what
NVIDIA's build adds to the sources, arranged as Dockerfile.QA of their repository does: `backends/NAME` (backends that the wheel lacks), `repoagents/NAME`, and `qa/L0_…`
(test programs, libraries and models that the scripts expect in their directories). Our library does not use their backend of ONNX Runtime.

Each run has its own mount, network and process namespaces: several can run at the same time. Logs and results stay in `--work`; `--report` prints
the table of the results that are there."""
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

import qa_results

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# The generator of each model directory, and its options.
ONNX = "--onnx --onnx_opset=0"
GENERATORS = {
    "qa_model_repository": f"gen_qa_models.py {ONNX}",
    "qa_variable_model_repository": f"gen_qa_models.py --variable {ONNX}",
    "qa_identity_model_repository": f"gen_qa_identity_models.py {ONNX}",
    "qa_reshape_model_repository": f"gen_qa_reshape_models.py --variable {ONNX}",
    "qa_sequence_model_repository": f"gen_qa_sequence_models.py {ONNX}",
    "qa_variable_sequence_model_repository": f"gen_qa_sequence_models.py --variable {ONNX}",
    "qa_sequence_initial_state_implicit_model_repository": f"gen_qa_implicit_models.py --initial-state zero {ONNX}",
    "qa_variable_sequence_initial_state_implicit_model_repository": f"gen_qa_implicit_models.py --initial-state zero --variable {ONNX}",
    "qa_sequence_implicit_model_repository": f"gen_qa_implicit_models.py {ONNX}",
    "qa_variable_sequence_implicit_model_repository": f"gen_qa_implicit_models.py --variable {ONNX}",
    "qa_dyna_sequence_model_repository": f"gen_qa_dyna_sequence_models.py {ONNX}",
    "qa_dyna_sequence_implicit_model_repository": f"gen_qa_dyna_sequence_implicit_models.py {ONNX}",
    "qa_ragged_model_repository": f"gen_qa_ragged_models.py {ONNX}",
    "qa_scalar_models": "gen_qa_ort_scalar_models.py --onnx_opset=0",
    "qa_ensemble_model_repository/qa_model_repository": "gen_qa_models.py --ensemble",
    "qa_ensemble_model_repository/qa_variable_model_repository": "gen_qa_models.py --ensemble --variable",
    "qa_ensemble_model_repository/qa_reshape_model_repository": "gen_qa_reshape_models.py --ensemble",
    "qa_ensemble_model_repository/qa_identity_model_repository": "gen_qa_identity_models.py --ensemble",
    "qa_ensemble_model_repository/qa_sequence_model_repository": "gen_qa_sequence_models.py --ensemble",
    "qa_ensemble_model_repository/qa_variable_sequence_model_repository": "gen_qa_sequence_models.py --ensemble --variable",
}
# ONNX models under the names of engines that are not tested here, for scripts that need such a model but do not test its engine.
STAND_INS = ("float32_float32_float32", "int32_int32_int32", "nobatch_int32_int32_int32", "float16_float32_float32", "int32_int8_int8")
# Directories, with settings of their scripts that leave out engines and hardware that are not tested here.
DIRECTORIES = {
    "L0_batcher": {"BACKENDS": "onnx python"},
    "L0_sequence_batcher": {"BACKENDS": "onnx custom", "MODEL_TRIALS": "0 v", "ENSEMBLES": "0"},
    "L0_dyna_sequence_batcher": {"BACKENDS": "onnx custom custom_string"},
    "L0_dyna_implicit_state": {"BACKENDS": "onnx"},
    "L0_implicit_state": {"BACKENDS": "onnx", "MODEL_TRIALS": "0 v"},
    "L0_simple_ensemble": {},
    "L0_optional_input": {},
    "L0_priority": {},
    "L0_model_queue": {},
    "L0_rate_limiter": {},
    "L0_decoupled": {},
    "L0_response_cache": {},
    "L0_request_cancellation": {},
    "L0_iterative_sequence": {},
    "L0_lifecycle": {},
    "L0_model_config": {},
    "L0_batch_input": {"BACKENDS": "onnx"},
    "L0_batch_custom": {},
    "L0_warmup": {"BACKENDS": "onnx"},
    "L0_parameters": {},
    "L0_infer": {"BACKENDS": "onnx python"},
    "L0_query": {},
    "L0_register": {},
    "L0_backend_identity": {},
    "L0_backend_output_detail": {},
    "L0_input_validation": {},
    "L0_output_name": {},
    "L0_multi_server": {},
    "L0_scalar_io": {},
}
# Directories that test the front-ends, and for which `--server kelp` is the useful choice.
FRONTENDS = {
    "L0_http": {},
    "L0_https": {},
    "L0_http_fuzz": {},
    "L0_data_compression": {},
    "L0_grpc": {},
    "L0_secure_grpc": {},
    "L0_grpc_state_cleanup": {},
    "L0_grpc_error_state_cleanup": {},
    "L0_client_timeout": {},
    "L0_client_nobatch": {},
    "L0_simple_example": {},
    "L0_simple_go_client": {},
    "L0_simple_nodejs_client": {},
    "L0_socket": {},
    "L0_server_status": {},
    "L0_response_statistics": {},
    "L0_shared_memory": {"BACKENDS": "python onnx"},
    "L0_cuda_shared_memory": {},
    "L0_infer_shm": {"BACKENDS": "onnx python", "TEST_SYSTEM_SHARED_MEMORY": "1"},
    "L0_infer": {"BACKENDS": "onnx python"},
    "L0_infer_zero": {},
    "L0_infer_reshape": {},
    "L0_input_validation": {},
    "L0_request_cancellation": {},
    "L0_large_payload": {},
    "L0_string_io": {},
    "L0_nullchar_string": {},
    "L0_nan_inf": {},
    "L0_sequence_corrid_batcher": {},
    "L0_trace": {},
    "L0_cmdline_trace": {},
    "L0_logging": {},
    "L0_metrics": {},
    "L0_config_json": {},
    # NVIDIA's server fails test_dynamic_resolution without a GPU, and does not stop after that.
    "L0_model_namespacing": {"TEST_LIST": "test_duplication test_ensemble_duplication test_no_duplication"},
    "L0_repoagent_checksum": {},
    "L0_triton_repo_agent": {},
    "L0_parameters": {},
    "L0_decoupled": {},
    "L0_response_cache": {},
    "L0_warmup": {"BACKENDS": "onnx"},
    "L0_backend_config": {},
    "L0_custom_model_config": {},
}
# Directories that NVIDIA's build makes as copies of others.
COPIES = {
    "L0_grpc_error_state_cleanup": "L0_grpc_state_cleanup",
    "L0_infer_shm": "L0_infer",
}
NVIDIA_VERSION = "2.51.0"  # of the library in the wheel
# Makes the installation ($0) available at the path that their scripts and executable contain. All ports, shared memory, and the files of nginx are
# private. The worker of nginx runs as the only user of the namespace.
PRIVATE = ("mount -t tmpfs none /opt && ln -s $0 /opt/tritonserver && mount -t tmpfs -o mode=1777 none /dev/shm && ip link set lo up && "
           "if [ -d /etc/nginx ]; then cp -r /etc/nginx $0/nginx && sed -i /^user/d $0/nginx/nginx.conf && mount --bind $0/nginx /etc/nginx && "
           "mount -t tmpfs none /run && mount -t tmpfs none /var/log; fi && mkdir -p /var/log/nginx && exec bash test.sh")
NAMESPACES = ["unshare", "--map-root-user", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
# NVIDIA's executable in the wheel is older than the scripts: options that it does not know yet are dropped. It always allows shared memory.
EXECUTABLE = """#!/bin/bash
for option; do
    shift
    case $option in
    --allow-client-shm=*) ;;
    *) set -- "$@" "$option" ;;
    esac
done
exec "${BASH_SOURCE%/*}/tritonserver.wheel" "$@"
"""
# Programs that their scripts call: no GPU exists, and nothing is installed. What Go installs is in BUILT/go, packages of npm are in the directory.
TOOLS = {"nvidia-smi": "exit 9", "apt": "exit 0", "apt-get": "exit 0", "pip": "exit 0", "pip3": "exit 0", "npm": "exit 0",
         "go": '[ "$1" = install ] || exec "$QA_GO" "$@"', "nginx": "exec /usr/sbin/nginx -g 'user root;' \"$@\"",
         "service": '[ ! -f /run/nginx.pid ] || kill $(cat /run/nginx.pid); [ "$2" = stop ] || exec nginx'}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", help="a copy of NVIDIA's server repository, with the directory qa")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="directory of our build")
    parser.add_argument("--nvidia", default=os.path.join(ROOT, "build", "nvidia"), help="directory that the wheel is unpacked in")
    parser.add_argument("--built", help="directory with what NVIDIA's build adds to the sources")
    parser.add_argument("--work", help="directory for models, logs and results; default: a temporary one")
    parser.add_argument("--server", default="nvidia", choices=["nvidia", "kelp"],
                        help="the executable that our library is compared with: NVIDIA's, or our own")
    parser.add_argument("--directories", nargs="*", help="directories of qa to run; default: those of the library or, with --server kelp, of the "
                        "front-ends")
    parser.add_argument("--libraries", nargs="*", default=["kelp", "nvidia"], choices=["kelp", "nvidia"])
    parser.add_argument("--timeout", type=int, default=1800, help="seconds for one directory")
    parser.add_argument("--keep-going", action="store_true", help="ignore `set -e` in the scripts, so that one failure does not hide the next cases")
    parser.add_argument("--report", action="store_true", help="run nothing; print the results that are in --work")
    return parser.parse_args()


def generate(qa, data):
    """Makes the models that do not exist yet."""
    for name, command in GENERATORS.items():
        out = os.path.join(data, name)
        if os.path.isdir(out):
            continue
        script, *options = command.split()
        os.makedirs(out + ".new")
        result = subprocess.run([sys.executable, script, *options, f"--models_dir={out}.new"], cwd=os.path.join(qa, "common"),
                                capture_output=True, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"qa: cannot make {name}: {result.stderr[-2000:]}")
        if name == "qa_model_repository":
            add_stand_ins(out + ".new")
        adapt(out + ".new", data)
        os.rename(out + ".new", out)


def add_stand_ins(repository):
    """Copies ONNX models to the names of other engines. L0_decoupled uses the names of outputs of PyTorch's models."""
    import onnx  # pylint: disable=import-outside-toplevel
    for model in STAND_INS:
        for engine in ("libtorch", "plan", "openvino"):
            place = shutil.copytree(os.path.join(repository, f"onnx_{model}"), os.path.join(repository, f"{engine}_{model}"))
            config = os.path.join(place, "config.pbtxt")
            with open(config, encoding="utf-8") as file:
                text = file.read().replace(f"onnx_{model}", f"{engine}_{model}")
            if engine == "libtorch" and "nobatch" in model:
                text = re.sub(r'"OUTPUT(\d)"', r'"OUTPUT__\1"', text)
                text = re.sub(r"dims: \[ *16 *\]", "dims: [ 1 ]", text)
                for path in glob.glob(os.path.join(place, "*", "model.onnx")):
                    file = onnx.load(path)
                    rename_outputs(file.graph)
                    onnx.save(file, path)
            with open(config, "w", encoding="utf-8") as file:
                file.write(text)


def rename_outputs(graph):
    """Renames OUTPUT0 to OUTPUT__0, and makes the dimension dynamic, because L0_decoupled sets it to 1 in the configuration."""
    for value in graph.output:
        value.name = re.sub(r"^OUTPUT(\d)$", r"OUTPUT__\1", value.name)
    for node in graph.node:
        node.output[:] = [re.sub(r"^OUTPUT(\d)$", r"OUTPUT__\1", each) for each in node.output]
    for value in [*graph.input, *graph.output]:
        value.type.tensor_type.shape.dim[0].dim_param = "n"


def write_program(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)


def stage(options, directory, library):
    """Prepares a Triton installation: NVIDIA's executable with one of the libraries, or our program ("server"). Returns the environment."""
    sys.argv = [sys.argv[0], "--build", options.build, "--nvidia", options.nvidia]
    import interop  # pylint: disable=import-outside-toplevel
    interop.need_nvidia()
    environment = interop.stage(directory)
    if library == "nvidia":
        theirs = glob.glob(os.path.join(interop.NVIDIA_LIBRARIES, "libtritonserver-*.so"))[0]
        for link in os.listdir(os.path.join(directory, "lib")):
            os.remove(os.path.join(directory, "lib", link))
            os.symlink(theirs, os.path.join(directory, "lib", link))
    executable = os.path.join(directory, "bin", "tritonserver")
    if library == "server":
        shutil.copy(interop.KELP, executable)
    else:
        os.rename(executable, executable + ".wheel")
        write_program(executable, EXECUTABLE)
    if options.built:
        backends = os.path.join(directory, "backends")
        for name in os.listdir(os.path.join(options.built, "backends")):
            if name == "onnxruntime" and library != "nvidia":
                continue
            if os.path.islink(os.path.join(backends, name)):
                os.remove(os.path.join(backends, name))
            shutil.copytree(os.path.join(options.built, "backends", name), os.path.join(backends, name))
        if os.path.isdir(os.path.join(options.built, "repoagents")):
            shutil.copytree(os.path.join(options.built, "repoagents"), os.path.join(directory, "repoagents"))
    tools = os.path.join(directory, "tools")
    os.mkdir(tools)
    for name, command in TOOLS.items():
        write_program(os.path.join(tools, name), f"#!/bin/sh\n{command}\n")
    environment["QA_GO"] = shutil.which("go") or "false"
    environment["PATH"] = f"{tools}:{os.path.dirname(sys.executable)}:{os.path.join(directory, 'bin')}:{environment['PATH']}"
    if options.built:
        go = os.path.join(options.built, "go")
        environment.update(GOPATH=go, GOPROXY="off", GOFLAGS="-mod=mod", TRITON_REPO_ORGANIZATION=os.path.join(options.built, "git"))
        environment["PATH"] += f":{go}/bin"
    return environment


def adapt(directory, data):
    """Makes scripts and configurations independent of the machine that they were written for: no GPU, the place of the generated models and of Python,
    and directories of versions, which git does not store because they are empty."""
    for folder, subfolders, files in os.walk(directory):
        if "config.pbtxt" in files and "model.py" not in files and not any(name.isdigit() for name in subfolders):
            os.mkdir(os.path.join(folder, "1"))
        for file in files:
            path = os.path.join(folder, file)
            if not file.endswith((".sh", ".pbtxt", ".py")) or os.path.islink(path):
                continue
            with open(path, encoding="utf-8") as opened:
                text = opened.read()
            # Scripts edit configurations of both kinds: a pattern of sed must not match the other kind as well.
            new = re.sub("(?<!s/kind: )KIND_GPU", "KIND_CPU", text).replace("/data/inferenceserver/${REPO_VERSION}", data)
            new = re.sub(r"\A#!/usr/bin/python3?$", "#!/usr/bin/env python3", new, flags=re.MULTILINE) if file.endswith(".py") else new
            if new != text:
                with open(path, "w", encoding="utf-8") as opened:
                    opened.write(new)


def version_of(library):
    """Returns the version of the server, which some tests compare."""
    if library == "nvidia":
        return NVIDIA_VERSION
    with open(os.path.join(ROOT, "src", "server", "server.h"), encoding="utf-8") as file:
        return re.search(r'KELP_SERVER_VERSION "(.*)"', file.read())[1]


def prepare(options, qa, data, name, library):
    """Copies the directory, and those that all directories share, to a fresh place. Returns the directory."""
    top = os.path.join(options.work, f"{name}.{library}")
    shutil.rmtree(top, ignore_errors=True)
    source = COPIES.get(name, name)
    shutil.copytree(qa, top, symlinks=True, ignore=lambda folder, names: [each for each in names if folder == qa and not used(each, source)])
    if options.built:
        for each in os.listdir(os.path.join(options.built, "qa")):
            if used(each, source):
                shutil.copytree(os.path.join(options.built, "qa", each), os.path.join(top, each), dirs_exist_ok=True)
    if name != source:
        os.rename(os.path.join(top, source), os.path.join(top, name))
    adapt(top, data)
    return os.path.join(top, name)


def used(each, name):
    """Returns whether the scripts of directory `name` use `each`. Those of implicit states run the scripts of the sequence batchers."""
    return not each.startswith("L") or each == name or (name, each) in (("L0_implicit_state", "L0_sequence_batcher"), (
        "L0_dyna_implicit_state", "L0_dyna_sequence_batcher"), ("L0_warmup", "L0_backend_python"), ("L0_trace", "L0_decoupled"))


def run(options, qa, data, name, library):
    """Runs the script of a directory. Returns its exit status and cases."""
    with tempfile.TemporaryDirectory(prefix="kelp-qa-") as installation:
        environment = stage(options, installation, library)
        place = prepare(options, qa, data, name, library)
        os.symlink(os.path.dirname(place), os.path.join(installation, "qa"))
        top = os.path.dirname(place)
        tests, trace, start = (os.path.join(top, each) for each in ("cases.tsv", "trace.log", "trace.sh"))
        with open(start, "w", encoding="utf-8") as file:
            file.write(qa_results.TRACE + (qa_results.KEEP_GOING if options.keep_going else ""))
        environment.update(TRITON_DIR=installation, DATADIR=data, NVIDIA_TRITON_SERVER_VERSION="kelp", TEST_SYSTEM_SHARED_MEMORY="0",
                           TRITON_SERVER_VERSION=version_of(library),
                           PYTHONPATH=f"{os.path.join(HERE, 'record')}:{os.path.join(top, 'common')}", KELP_QA_TESTS=tests, KELP_QA_TRACE=trace,
                           BASH_ENV=start, PYTEST_ADDOPTS="-p sitecustomize")
        environment.update((DIRECTORIES | FRONTENDS).get(name, {}))
        with open(os.path.join(options.work, f"{name}.{library}.log"), "w", encoding="utf-8") as log:
            process = subprocess.Popen([*NAMESPACES, "sh", "-c", PRIVATE, installation], cwd=place, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                status = process.wait(options.timeout)
            except subprocess.TimeoutExpired:
                status = "timeout"
            finally:  # also a server that the script left behind
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()
        return {"status": status, "tests": qa_results.python_cases(tests), "checks": qa_results.script_cases(trace, place)}


def compare(work, name, ours):
    kelp, nvidia = qa_results.read(work, name, ours), qa_results.read(work, name, "nvidia")
    for case in qa_results.worse(kelp, nvidia) if kelp and nvidia else []:
        print(f"  only with NVIDIA: {case}", flush=True)


def main():
    options = arguments()
    options.build, options.nvidia = os.path.abspath(options.build), os.path.abspath(options.nvidia)
    options.built = os.path.abspath(options.built) if options.built else None
    qa = os.path.join(os.path.abspath(options.sources), "qa")
    if not os.path.isdir(os.path.join(qa, "common")):
        sys.exit(f"qa: '{qa}/common' does not exist: expected a copy of NVIDIA's server repository")
    temporary = None if options.work else tempfile.TemporaryDirectory(prefix="kelp-qa-work-")
    options.work = os.path.abspath(options.work or temporary.name)
    data = os.path.join(options.work, "data", "kelp")
    os.makedirs(data, exist_ok=True)
    if not options.report:
        generate(qa, data)
    ours = "server" if options.server == "kelp" else "kelp"  # part of the names of results
    names = options.directories or list(FRONTENDS if ours == "server" else DIRECTORIES)
    for name in names:
        for library in [ours if each == "kelp" else each for each in options.libraries if not options.report]:
            start = time.monotonic()
            result = run(options, qa, data, name, library)
            qa_results.write(options.work, name, library, result)
            tests, checks = qa_results.counts(result["tests"]), qa_results.counts(result["checks"])
            print(f"{name:26} {library:7} exit {result['status']!s:8} tests {tests[1]} of {tests[0]}, checks {checks[1]} of {checks[0]}, "
                  f"{time.monotonic() - start:.0f} s", flush=True)
        compare(options.work, name, ours)
    lines, total = qa_results.table(options.work, names, ours)
    print("\n".join(lines))
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
