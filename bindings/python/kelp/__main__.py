# SPDX-License-Identifier: Apache-2.0
"""The program `kelp`, for `python -m kelp` and the commands that pip installs."""
import os
import sys

from . import _native


def main():
    """Replaces this process by the program."""
    path = _native.program()
    os.execv(path, [path] + sys.argv[1:])


def tritonserver():
    """Replaces this process by the program, with its second name."""
    os.execv(_native.program(), ["tritonserver"] + sys.argv[1:])


if __name__ == "__main__":
    main()
