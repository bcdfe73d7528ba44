"""Ownership of device memory: one tree of fields, given back once, and an error, no crash, for any later use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import wraps
from typing import Any, Generic, NoReturn, TypeVar

import taichi as ti

from raymarch import runtime
from raymarch.device import pool
from raymarch.errors import RaymarchError

Fields = TypeVar("Fields")
This = TypeVar("This", bound="Closing")


class Closing:
    """Context manager that is closed at its end."""

    def __enter__(self: This) -> This:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free what is held."""
        raise NotImplementedError

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """What `copy`, `pickle` and `torch.save` ask, of a module that has it as an attribute too: a refusal."""
        kind = type(self).__name__
        raise RaymarchError(
            f"a {kind} holds device memory and is not copied, pickled or saved; make one outside of the module or"
            " object that is, and pass it to the calls that use it"
        )


class Holder(Closing):
    """Holder of several owners, in `_owners`, which closes them together."""

    _owners: ExitStack

    def close(self) -> None:
        """Free the device memory; any later use is a RaymarchError."""
        self._owners.close()


class Owner(Closing, Generic[Fields]):
    """Owner of fields on the device; `close` it, or use it in a `with`, in the thread that made it.

    Its memory goes to a pool, for the next of its kind; that of one that was dropped without `close` does too.
    """

    name = "this"
    _fields: Fields | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Have a constructor that fails after it took memory give that back at once."""
        super().__init_subclass__(**options)
        make: Callable[..., None] = cls.__init__

        @wraps(make)
        def make_or_close(self: Owner, *args: Any, **values: Any) -> None:
            try:
                make(self, *args, **values)
            except BaseException:
                self.close()
                raise

        cls.__init__ = make_or_close  # type: ignore[assignment, method-assign]

    def _own(
        self,
        kind: tuple,
        build: Callable[[tuple[int, ...]], tuple[ti.FieldsBuilder | Sequence[ti.FieldsBuilder], Fields]],
        size_of: Callable[[tuple[int, ...]], int],
        *,
        room: tuple[int, ...] = (),
        step: int = 1,
        require: Callable[[], None] = lambda: None,
    ) -> bool:
        """Take a tree from the pool, or build one; whether it is new: then all is 0, else what lay there last.

        Args:
            kind: all that `build` depends on beside the room.
            build: a room to a builder, finished here, and the record of its fields; or to several, of which `_shed`
                frees all but the first.
            size_of: a room to its bytes.
            room: how much is wanted along each axis; the tree may have more.
            step: what the room of a new small tree is rounded up to.
            require: raises where there is no memory for a new tree.
        """
        runtime.start()
        runtime.require_owner()
        kind = (type(self).__name__, *kind)
        tree = found = pool.take(kind, room, size_of)
        if tree is None:
            require()
            room = pool.room_to_build(kind, room, step, size_of)
            builders, fields = build(room)
            builders = [builders] if isinstance(builders, ti.FieldsBuilder) else builders
            tree = pool.built(builders, kind, room, size_of(room), fields)
        self._tree, self._fields = tree, tree.fields
        self._watching = pool.watch(self, tree)
        return found is None

    def _shed(self) -> None:
        """Free all but the first of several builders' fields, which must not be used again."""
        runtime.require_owner()
        self._watching.detach()
        self._tree = pool.shed(self._tree)
        self._watching = pool.watch(self, self._tree)

    def close(self) -> None:
        """Give the device memory back; any later use is a RaymarchError."""
        if self._fields is not None:
            runtime.require_owner()
            self._fields = None
            self._watching.detach()
            pool.give(self._tree)

    @property
    def fields(self) -> Fields:
        """Device fields that kernels read and write."""
        runtime.require_owner()
        if self._fields is None:
            raise RaymarchError(f"{self.name} is closed; make a new one")
        return self._fields
