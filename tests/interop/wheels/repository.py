# SPDX-License-Identifier: Apache-2.0
"""The model repository of the tests of NVIDIA's wheels, and the options that a server of tritonserver needs to use it."""
import os
import shutil
import sys

import tritonserver

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.environ.get("KELP_BUILD", os.path.join(ROOT, "build", "release"))
MODELS = {
    "addsub": """
backend: "addsub" max_batch_size: 8 dynamic_batching { }
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] }, { name: "INPUT1" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] }, { name: "OUTPUT1" data_type: TYPE_FP32 dims: [ 16 ] } ]
""",
    "repeat": """
backend: "repeat" model_transaction_policy { decoupled: true }
input [ { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] }, { name: "DELAY" data_type: TYPE_UINT32 dims: [ -1 ] optional: true } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] }, { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] } ]
""",
    "text": """
backend: "identity"
input [ { name: "INPUT0" data_type: TYPE_STRING dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_STRING dims: [ -1 ] } ]
""",
    "half": """
backend: "identity"
input [ { name: "INPUT0" data_type: TYPE_FP16 dims: [ -1, -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP16 dims: [ -1, -1 ] } ]
""",
    "accumulator": """
backend: "accumulator" sequence_batching { }
input [ { name: "INPUT" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 1 ] }, { name: "COUNT" data_type: TYPE_INT64 dims: [ 1 ] } ]
""",
}


def make(directory):
    """Writes the models to `directory`: an ONNX model of digits, and models of the example backends."""
    shutil.copytree(os.path.join(ROOT, "examples", "models", "digits"), os.path.join(directory, "digits"))
    for name, config in MODELS.items():
        os.makedirs(os.path.join(directory, name, "1"))
        with open(os.path.join(directory, name, "config.pbtxt"), "w", encoding="utf-8") as file:
            file.write(config)
    return directory


def options(directory, **more):
    return tritonserver.Options(**{"server_id": "kelp", "model_repository": directory, "backend_directory": os.path.join(BUILD, "backends"),
                                   "model_control_mode": tritonserver.ModelControlMode.EXPLICIT, "startup_models": ["*"],
                                   "log_error": True, "exit_timeout": 10, **more})


def check_library():
    """Ends the program if the process uses another libtritonserver than that of the build."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        used = {line.split()[-1] for line in file if "libtritonserver" in line}
    wanted = os.path.realpath(os.path.join(BUILD, "src", "server", "libtritonserver.so"))
    if used != {wanted}:
        sys.exit(f"the process uses {sorted(used)} in place of {wanted}")
