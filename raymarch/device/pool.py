"""Memory pool of closed SNode trees: the next who asks for their like gets one, and the kernels compiled for it.

Taichi compiles a kernel anew for each tree and never frees what it compiled. So a tree that its owner closes is kept,
up to a share of the machine's memory, and a larger one serves who wants less: its shape is its room, not its content.
Owners give a tree back once, and any later use of them is an error, no crash.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Generic, NoReturn, TypeVar

from raymarch import engine, runtime
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.system import resources

Fields = TypeVar("Fields")
This = TypeVar("This", bound="Closing")

MAX_KEPT_FRACTION = 0.25  # of the device's memory that may be kept
SMALL_TREE_BYTES = 64 << 20  # bytes of a tree up to which it may be much larger than who asks wants
MAX_OVERSIZE = 4  # times what is wanted that a larger tree may take


@dataclass(frozen=True, eq=False)
class Tree:
    """SNode tree: fields that were allocated together, their kind, the room along each axis, the bytes.

    Its `roots` may be several: all but the first can be freed before it (`shed_roots`), after which it is kept for
    nobody. Numbers of 8 bytes have a root of their own in f32: beside narrower ones Vulkan reads and writes them at
    the wrong place (Taichi 1.7), and says nothing.
    """

    kind: tuple
    room: tuple[int, ...]
    size: int
    fields: Any
    roots: tuple
    whole: bool = True


_kept: list[Tree] = []  # the longest unused first
_dropped: deque[Tree] = deque()  # their owners were garbage: taken in by the next call from the right thread
# A Tape clears the gradients of every tree there ever was, and aborts the process at a place where one was freed. So a
# tree of one number fills the place until the next tree takes it.
_fillers: list = []


def take_tree(kind: tuple, room: tuple[int, ...], size_of: Callable[[tuple[int, ...]], int]) -> Tree | None:
    """Tree from the pool: the smallest of a kind with that much room, or None; one far too large stays where it is."""
    _collect()
    most = max(MAX_OVERSIZE * size_of(room), SMALL_TREE_BYTES)
    fitting = [t for t in _trees_of_kind(kind) if t.size <= most and _covers(t.room, room)]
    if not fitting:
        return None
    best = min(reversed(fitting), key=lambda tree: tree.size)  # the last one used, whose kernels are there
    _kept.remove(best)
    return best


def room_to_build(
    kind: tuple, room: tuple[int, ...], step: int, size_of: Callable[[tuple[int, ...]], int]
) -> tuple[int, ...]:
    """Room of a new tree: where that is small, rounded up to `step`, and to hold what any kept one of its kind does.

    Volumes of many shapes then soon share one tree. The smaller ones stay: Taichi traces all kernels anew after one is
    freed.
    """
    rounded = tuple(-(-n // step) * step for n in room)
    if size_of(rounded) > SMALL_TREE_BYTES:
        return room
    small = [tree.room for tree in _trees_of_kind(kind) if tree.size <= SMALL_TREE_BYTES]
    grown = tuple(max(axis) for axis in zip(rounded, *small, strict=True))
    return rounded if size_of(grown) > SMALL_TREE_BYTES else grown


def build_tree(
    builders: Sequence[ti.FieldsBuilder], kind: tuple, room: tuple[int, ...], size: int, fields: Any
) -> Tree:
    """Tree of builders, which are finished here."""
    roots = []
    for builder in builders:
        if _fillers:
            _remove_filler()
        roots.append(builder.finalize())
    ti.sync()  # Taichi checks new fields before the next kernel: later, a tree freed by then is freed memory
    return Tree(kind, room, size, fields, tuple(roots))


def shed_roots(tree: Tree) -> Tree:
    """Tree of which all but the first root was freed; its fields there must not be used again."""
    for root in tree.roots[1:]:
        _destroy(root)
    return replace(tree, roots=tree.roots[:1], size=0, whole=False)


def return_tree(tree: Tree) -> None:
    """Take back a tree that nobody uses any more; the longest unused ones are freed where it is too much."""
    _collect()
    _keep_tree(tree, len(_kept))


def watch_owner(owner: object, tree: Tree) -> weakref.finalize:
    """Take the tree back when its owner is garbage that was never closed; `detach` what this returns on closing."""
    watching = weakref.finalize(owner, _dropped.append, tree)
    watching.atexit = False
    return watching


def kept_bytes() -> int:
    """Bytes of the kept trees."""
    return sum(tree.size for tree in [*_kept, *_dropped])


def release() -> int:
    """Free the device memory that is kept for reuse after volumes, fits and images were closed; returns its bytes.

    What is in use stays. It is kept so that the next call compiles nothing, at most a quarter of the device's memory,
    and freed by itself before anything is refused for want of memory.

    Raises RaymarchError from another thread or process than the one that started raymarch.

    Example:
        >>> release() >= 0
        True
    """
    runtime.require_owner()
    _collect()
    freed = kept_bytes()
    while _kept:
        _free(_kept.pop())
    return freed


def forget() -> None:
    """Forget what was kept: its memory went with a Taichi that was stopped (`runtime.stop`)."""
    for kept in (_kept, _dropped, _fillers):
        kept.clear()


def _trees_of_kind(kind: tuple) -> list[Tree]:
    return [tree for tree in _kept if tree.kind == kind]


def _covers(room: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return all(n >= m for n, m in zip(room, wanted, strict=True))


def _keep_tree(tree: Tree, at: int) -> None:
    if not tree.whole:
        _free(tree)
        return
    _kept.insert(at, tree)
    resources.reclaim_with(_spare)
    while sum(tree.size for tree in _kept) > _max_kept_bytes():
        _free(_kept.pop(0))


def _collect() -> None:
    while _dropped:
        _keep_tree(_dropped.popleft(), 0)


def _spare(needed: int) -> None:
    """Free what is kept where so many bytes of the machine would not be there without it."""
    if runtime.runs_on_cpu() and kept_bytes() and needed > 0.9 * resources.free_bytes():
        with contextlib.suppress(RaymarchError):  # of another thread, whose it is
            release()


def _max_kept_bytes() -> int:
    if (of_gpu := runtime.device_bytes()) is not None:
        return int(MAX_KEPT_FRACTION * of_gpu[1])
    return int(MAX_KEPT_FRACTION * resources.total_bytes())


def _remove_filler() -> None:
    """Make a filler's place free, without `SNodeTree.destroy`: that has all kernels of the process compiled again."""
    filler = _fillers.pop()
    engine.destroy_tree(filler)
    filler.destroyed = True  # no kernel knows it


def _free(tree: Tree) -> None:
    for root in tree.roots:
        _destroy(root)


def _destroy(root: Any) -> None:
    root.destroy()
    builder = ti.FieldsBuilder()
    builder.place(ti.field(ti.i32))
    _fillers.append(builder.finalize())
    ti.sync()


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
            build: a room to a builder, finished here, and the record of its fields; or to several, as where some
                numbers have 8 bytes, or where `_shed` is to free all but the first.
            size_of: a room to its bytes.
            room: how much is wanted along each axis; the tree may have more.
            step: what the room of a new small tree is rounded up to.
            require: raises where there is no memory for a new tree.
        """
        runtime.start()
        runtime.require_owner()
        kind = (type(self).__name__, *kind)
        tree = found = take_tree(kind, room, size_of)
        if tree is None:
            require()
            room = room_to_build(kind, room, step, size_of)
            builders, fields = build(room)
            builders = [builders] if isinstance(builders, ti.FieldsBuilder) else builders
            tree = build_tree(builders, kind, room, size_of(room), fields)
        self._tree, self._fields = tree, tree.fields
        self._watching = watch_owner(self, tree)
        return found is None

    def _shed(self) -> None:
        """Free all but the first of several builders' fields, which must not be used again."""
        runtime.require_owner()
        self._watching.detach()
        self._tree = shed_roots(self._tree)
        self._watching = watch_owner(self, self._tree)

    def close(self) -> None:
        """Give the device memory back; any later use is a RaymarchError."""
        if self._fields is not None:
            runtime.require_owner()
            self._fields = None
            self._watching.detach()
            return_tree(self._tree)

    @property
    def fields(self) -> Fields:
        """Device fields that kernels read and write."""
        runtime.require_owner()
        if self._fields is None:
            raise RaymarchError(f"{self.name} is closed; make a new one")
        return self._fields
