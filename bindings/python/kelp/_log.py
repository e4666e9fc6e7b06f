# SPDX-License-Identifier: Apache-2.0
"""The log of sessions and runs: logging.getLogger("kelp"), with the severities of ONNX Runtime."""
import logging

from . import _kelp
from ._error import Code, KelpError

logger = logging.getLogger("kelp")

# ONNX Runtime's severities: verbose, info, warning, error, fatal.
LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
VERBOSE, INFO, WARNING = 0, 1, 2


class Defaults:
    """The severity and verbosity of runs and sessions that do not have one."""

    severity = WARNING
    verbosity = 0


def set_severity(severity):
    """Sets the level of the logger and the default severity."""
    if severity not in range(len(LEVELS)):
        raise KelpError(f"severity {severity}: expected 0 to {len(LEVELS) - 1}", Code.INVALID_ARGUMENT)
    logger.setLevel(LEVELS[severity])
    Defaults.severity = severity
    _kelp.set_default_severity(severity)


def set_verbosity(verbosity):
    """Sets the default verbosity."""
    Defaults.verbosity = int(verbosity)


def severity_of(*options):
    """Returns the severity of the first options that have one."""
    for item in options:
        if item is not None and item.log_severity_level >= 0:
            return item.log_severity_level
    return Defaults.severity


def name_of(kind, options):
    """Returns 'run' or "run 'logid'"."""
    return f"{kind} '{options.logid}'" if options is not None and options.logid else kind


def loaded(label, options, duration_ns):
    """Logs that a session is ready."""
    if severity_of(options) <= INFO:
        logger.info("%s: loading %s took %.3f ms", name_of("session", options), label, duration_ns / 1e6)


def finished(session_options, run_options, nodes, duration_ns):
    """Logs a run and its operators."""
    severity = severity_of(run_options, session_options)
    if severity > INFO:
        return
    who = name_of("run", run_options) if run_options is not None and run_options.logid else name_of("run", session_options)
    verbosity = max(options.log_verbosity_level for options in (run_options or session_options, session_options)) or Defaults.verbosity
    for op_type, name, algorithm, node_ns, _ in nodes if severity <= VERBOSE else ():
        how = f" ({algorithm})" if verbosity and algorithm else ""
        logger.debug("%s: %s '%s'%s took %.3f ms", who, op_type, name, how, node_ns / 1e6)
    logger.info("%s: %d operators took %.3f ms", who, len(nodes), duration_ns / 1e6)
