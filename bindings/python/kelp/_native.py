# SPDX-License-Identifier: Apache-2.0
"""Paths of the program, libraries and plug-ins: in the package if it is a wheel, in the directories of the system if it is a package
of a distribution, which has libkelp.so in /usr/lib/TRIPLET and the rest in its subdirectory kelp, otherwise in the build directory."""
import os

from . import _kelp
from ._error import Code, KelpError

PACKAGE = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = os.path.dirname(os.path.realpath(_kelp.library_path()))


def find(*candidates):
    """Returns the first path that exists, or None."""
    for path in candidates:
        if os.path.exists(path):
            return os.path.normpath(path)
    return None


def program():
    """Returns the path of the program `kelp`."""
    path = find(os.path.join(PACKAGE, "bin", "kelp"), os.path.join(LIBRARIES, "bin", "kelp"), os.path.join(LIBRARIES, "..", "bin", "kelp"),
                os.path.join(LIBRARIES, "..", "..", "bin", "kelp"))
    if path is None:
        raise KelpError(f"program 'kelp' not found in '{PACKAGE}/bin' or next to '{LIBRARIES}'", Code.NOT_FOUND)
    return path


def triton_library():
    """Returns the path of Kelp's libtritonserver.so."""
    name = "libtritonserver.so"
    path = find(os.path.join(PACKAGE, "lib", name), os.path.join(LIBRARIES, name), os.path.join(LIBRARIES, "kelp", name),
                os.path.join(LIBRARIES, "src", "server", name))
    if path is None:
        raise KelpError(f"'{name}' not found in '{PACKAGE}/lib' or next to '{LIBRARIES}'", Code.NOT_FOUND)
    return path


def folder(name):
    """Returns a directory of plug-ins ('backends', 'kernels'), or None."""
    return find(os.path.join(PACKAGE, name), os.path.join(LIBRARIES, name), os.path.join(LIBRARIES, "kelp", name), os.path.join(LIBRARIES, "..", name))


def include():
    """Returns the directory of the C headers."""
    roots = (PACKAGE, os.path.join(LIBRARIES, ".."), os.path.join(LIBRARIES, "..", ".."))
    header = find(*(os.path.join(root, "include", "kelp", "engine.h") for root in roots))
    if header is None:
        raise KelpError(f"headers not found in '{PACKAGE}/include' or next to '{LIBRARIES}'", Code.NOT_FOUND)
    return os.path.dirname(os.path.dirname(header))


def library_dirs():
    """Returns the directories of libkelp.so and libtritonserver.so."""
    directories = os.path.normpath(LIBRARIES), os.path.dirname(triton_library())
    return list({os.path.realpath(path): path for path in directories}.values())  # one, if symbolic links lead to the same
