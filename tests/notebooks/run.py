#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executes the notebooks of examples/notebooks with Kelp's Python package. An exception in a cell is a failure.

    run.py [--write] [NAME …]      --write: keeps the outputs in the notebooks

Packages come from tools/requirements-notebooks.txt, models from tools/zoo.py. Notebooks that import PyTorch run if KELP_TORCH=1.
"""
import glob
import json
import os
import sys
import time

import nbclient
import nbformat

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NOTEBOOKS = os.path.join(ROOT, "examples", "notebooks")
TIMEOUT_S = 600
LARGEST_OUTPUT = 20_000


def needs_torch(notebook):
    return any(cell.cell_type == "code" and "import torch" in cell.source for cell in notebook.cells)


def clean(notebook):
    """Removes what differs between executions."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.execution_count = None
            for output in cell.outputs:
                output.pop("execution_count", None)
                if output.output_type == "execute_result":
                    output["execution_count"] = None
                if len(json.dumps(output)) > LARGEST_OUTPUT:
                    raise ValueError("an output is larger than 20 kB")
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"], "language_info": {"name": "python"}}


def execute(path, write):
    notebook = nbformat.read(path, as_version=4)
    if needs_torch(notebook) and os.environ.get("KELP_TORCH") != "1":
        print(f"skipped: {os.path.basename(path)} needs PyTorch, and KELP_TORCH=1", flush=True)
        return True
    began = time.monotonic()
    try:
        nbclient.NotebookClient(notebook, timeout=TIMEOUT_S, kernel_name="python3", resources={"metadata": {"path": NOTEBOOKS}}).execute()
    except nbclient.exceptions.CellExecutionError as error:
        print(f"FAILED {os.path.basename(path)}\n{str(error)[:2000]}\n…\n{str(error)[-2000:]}", flush=True)
        return False
    clean(notebook)
    if write:
        nbformat.write(notebook, path)
    print(f"ok {os.path.basename(path)} ({time.monotonic() - began:.0f} s)", flush=True)
    return True


def main():
    names = [word for word in sys.argv[1:] if word != "--write"]
    os.environ["PYTHONPATH"] = os.path.join(ROOT, "build", "release", "python")
    paths = [path for path in sorted(glob.glob(os.path.join(NOTEBOOKS, "*.ipynb")))
             if not names or os.path.splitext(os.path.basename(path))[0] in names]
    if not paths:
        sys.exit("no notebook has this name")
    good = [execute(path, "--write" in sys.argv) for path in paths]
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
