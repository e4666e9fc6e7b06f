# SPDX-License-Identifier: Apache-2.0
"""KelpError and its codes."""
from ._enums import Code

__all__ = ["Code", "KelpError", "TritonException"]


class KelpError(RuntimeError):
    """A failure of Kelp.

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
