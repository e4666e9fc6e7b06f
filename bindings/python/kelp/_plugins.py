# SPDX-License-Identifier: Apache-2.0
"""Lists of plug-in libraries as text, in the form of kelp_runtime_load_plugins."""
import os
import re
from collections.abc import Mapping

SPECIAL = re.compile(r"([,:=\\])")


def escaped(text):
    """Returns text with a backslash before each special character."""
    return SPECIAL.sub(r"\\\1", text)


def one(plugin):
    """Returns the text of a path or a tuple (path, {name: value})."""
    path, settings = plugin if isinstance(plugin, tuple) and len(plugin) == 2 else (plugin, {})
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"plugins: expected a path or (path, {{name: value}}), found '{type(path).__name__}'")
    if not isinstance(settings, Mapping):
        raise TypeError(f"plugins: the settings of '{os.fspath(path)}' are a '{type(settings).__name__}', expected a dict")
    return ",".join([escaped(os.fspath(path)), *(f"{escaped(str(name))}={escaped(str(value))}" for name, value in settings.items())])


def as_text(plugins):
    """Returns the text of a list of plug-in libraries; '' for an empty list."""
    if isinstance(plugins, (str, os.PathLike)):
        raise TypeError(f"plugins: expected a list of paths or (path, {{name: value}}), found the path '{os.fspath(plugins)}'")
    return ":".join(one(plugin) for plugin in plugins)
