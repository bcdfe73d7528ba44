"""Who owns device memory: one tree of fields, freed once, and an error instead of a crash for any later use."""

from __future__ import annotations

from typing import Generic, TypeVar

import taichi as ti

from raymarch import runtime
from raymarch.errors import RaymarchError

Fields = TypeVar("Fields")


class Owner(Generic[Fields]):
    """Base of what holds fields on the device; `close` it, or use it in a `with`, in the thread that made it."""

    name = "this"
    _fields: Fields | None = None

    def _own(self, tree, fields: Fields) -> None:
        """Take the builder's finished tree and the record of its fields."""
        self._tree, self._fields = tree, fields
        ti.sync()  # Taichi checks new fields before the next kernel: later, a tree closed by then is freed memory

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """Free the device memory; any later use is a RaymarchError."""
        if self._fields is not None:
            runtime.require_owner()
            self._fields = None
            self._tree.destroy()

    @property
    def fields(self) -> Fields:
        """What kernels read and write."""
        runtime.require_owner()
        if self._fields is None:
            raise RaymarchError(f"{self.name} is closed; make a new one")
        return self._fields
