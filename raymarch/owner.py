"""Who owns device memory: one tree of fields, freed once, and an error instead of a crash for any later use."""

from __future__ import annotations

from typing import Generic, TypeVar

import taichi as ti

from raymarch import runtime
from raymarch.errors import RaymarchError

Fields = TypeVar("Fields")

# A Tape clears the gradients of every tree there ever was, and aborts the process at a place where one was freed. So a
# tree of one number fills the place until the next tree takes it.
_fillers: list = []


def _filler():
    builder = ti.FieldsBuilder()
    builder.place(ti.field(ti.i32))
    tree = builder.finalize()
    ti.sync()
    return tree


class Closing:
    """What is used in a `with` and closed at its end."""

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """Free what is held."""
        raise NotImplementedError


class Owner(Closing, Generic[Fields]):
    """Base of what holds fields on the device; `close` it, or use it in a `with`, in the thread that made it."""

    name = "this"
    _fields: Fields | None = None

    def _own(self, builder: ti.FieldsBuilder, fields: Fields) -> None:
        """Finish the builder's tree and take it, with the record of its fields."""
        if _fillers:
            _fillers.pop().destroy()
        self._tree, self._fields = builder.finalize(), fields
        ti.sync()  # Taichi checks new fields before the next kernel: later, a tree closed by then is freed memory

    def close(self) -> None:
        """Free the device memory; any later use is a RaymarchError."""
        if self._fields is not None:
            runtime.require_owner()
            self._fields = None
            self._tree.destroy()
            _fillers.append(_filler())

    @property
    def fields(self) -> Fields:
        """What kernels read and write."""
        runtime.require_owner()
        if self._fields is None:
            raise RaymarchError(f"{self.name} is closed; make a new one")
        return self._fields
