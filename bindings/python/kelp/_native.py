# SPDX-License-Identifier: Apache-2.0
"""Where the program, the libraries and the plugins are: in the package when it is installed, in the build folder when it is staged."""
import os

from . import _kelp
from ._error import Code, KelpError

PACKAGE = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = os.path.dirname(os.path.realpath(_kelp.library_path()))


def find(*candidates):
    """The first path that exists, or None."""
    for path in candidates:
        if os.path.exists(path):
            return os.path.normpath(path)
    return None


def program():
    """Path of the program `kelp`."""
    path = find(os.path.join(PACKAGE, "bin", "kelp"), os.path.join(LIBRARIES, "bin", "kelp"), os.path.join(LIBRARIES, "..", "bin", "kelp"))
    if path is None:
        raise KelpError(f"the program 'kelp' is neither in '{PACKAGE}/bin' nor beside '{LIBRARIES}'", Code.NOT_FOUND)
    return path


def triton_library():
    """Path of our libtritonserver.so."""
    name = "libtritonserver.so"
    path = find(os.path.join(PACKAGE, "lib", name), os.path.join(LIBRARIES, name), os.path.join(LIBRARIES, "src", "server", name))
    if path is None:
        raise KelpError(f"'{name}' is neither in '{PACKAGE}/lib' nor beside '{LIBRARIES}'", Code.NOT_FOUND)
    return path


def folder(name):
    """A folder of plugins ('backends', 'kernels'), or None."""
    return find(os.path.join(PACKAGE, name), os.path.join(LIBRARIES, name), os.path.join(LIBRARIES, "..", name))
