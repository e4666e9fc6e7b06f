# SPDX-License-Identifier: Apache-2.0
"""Base class of objects that hold a pointer into the library."""


class Handle:
    """An object that holds a pointer into the library. It cannot be copied or pickled.

    A class with CREATED_BY cannot be called: `_made` creates its objects.
    """

    __slots__ = ()
    CREATED_BY = None

    def __init__(self, *_, **__):
        raise TypeError(f"cannot create a {type(self).__name__} directly: use {self.CREATED_BY}")

    @classmethod
    def _made(cls, *arguments):
        made = cls.__new__(cls)
        made._init(*arguments)
        return made

    def __reduce_ex__(self, protocol):
        raise TypeError(f"cannot copy or pickle a {type(self).__name__}")
