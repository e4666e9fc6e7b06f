# SPDX-License-Identifier: Apache-2.0
"""KelpError and its codes."""
from ._enums import Code

__all__ = ["Code", "DeviceReset", "EPFail", "EngineError", "Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "KelpError",
           "MissingInput", "ModelLoadCanceled", "ModelLoaded", "ModelRequiresCompilation", "NoModel", "NoSuchFile", "NotFound", "NotImplemented",
           "RuntimeException", "TritonException", "UnsupportedModel"]


class KelpError(RuntimeError):
    """A failure of Kelp. It is raised as the subclass for its code, which has the name of ONNX Runtime's exception for the same failure.

    code: a `Code`.
    message: the failure, without its causes.
    cause: the KelpError that caused it, or None.
    paths: the paths that were searched for a missing kernel library; tried: a dict from path to the reason of its failure.

    >>> import kelp
    >>> try:
    ...     kelp.InferenceSession("nowhere.onnx")
    ... except kelp.KelpError as error:
    ...     print(error.code.name)
    NOT_FOUND
    """

    def __new__(cls, message="", code=Code.UNKNOWN, *_, **__):
        return super().__new__(BY_CODE.get(code, Fail) if cls is KelpError else cls)

    def __init__(self, message, code=Code.UNKNOWN, cause=None, paths=(), tried=()):
        super().__init__(message)
        self.message = message
        self.code = Code(code)
        self.cause = cause
        self.paths = list(paths)
        self.tried = dict(tried)

    def __str__(self):
        return self.message if self.cause is None else f"{self.message}: {self.cause}"

    def __reduce__(self):
        return type(self), (self.message, self.code, self.cause, self.paths, self.tried)


TritonException = KelpError


class Fail(KelpError):
    """A failure that no other class describes."""


class InvalidArgument(KelpError):
    """A wrong argument: the name, type or shape of an input, or an option."""


class MissingInput(InvalidArgument, ValueError):
    """A run without one of the inputs. ONNX Runtime raises ValueError."""


class NotFound(KelpError):
    """A name that does not exist."""


class NoSuchFile(NotFound):
    """A model file that does not exist."""


class InvalidProtobuf(InvalidArgument):
    """A model that is not a serialized ModelProto."""


class InvalidGraph(Fail, InvalidArgument):
    """A ModelProto that is not a valid model. ONNX Runtime raises InvalidGraph or Fail, depending on the defect."""


class NotImplemented(Fail):  # pylint: disable=redefined-builtin
    """An operator or function that Kelp does not have. ONNX Runtime raises Fail for operators without a schema."""


class UnsupportedModel(NotImplemented, InvalidGraph):
    """A model with operators that Kelp does not have. ONNX Runtime raises InvalidGraph, Fail or NotImplemented, depending on the operator."""


class RuntimeException(Fail):
    """A failure during a run, such as a lack of memory."""


class ModelLoaded(Fail):
    """A session that has a model already."""


class ModelLoadCanceled(Fail):
    """Loading that was cancelled."""


class NoModel(Fail):
    """A session without a model."""


class EngineError(Fail):
    """Raised by ONNX Runtime only; for programs that catch it."""


class EPFail(Fail):
    """Raised by ONNX Runtime only, by providers for devices; for programs that catch it."""


class DeviceReset(Fail):
    """Raised by ONNX Runtime only, by providers for devices; for programs that catch it."""


class ModelRequiresCompilation(Fail):
    """Raised by ONNX Runtime only; for programs that catch it."""


BY_CODE = {Code.INVALID_ARGUMENT: InvalidArgument, Code.OUT_OF_RANGE: InvalidArgument, Code.NOT_FOUND: NotFound,
           Code.UNIMPLEMENTED: NotImplemented, Code.RESOURCE_EXHAUSTED: RuntimeException, Code.INTERNAL: RuntimeException}


def as_subclass(error, cls):
    """Returns the same failure as an exception of another class."""
    return cls(error.message, error.code, error.cause, error.paths, error.tried).with_traceback(error.__traceback__)
