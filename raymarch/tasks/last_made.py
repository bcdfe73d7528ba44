"""What a worker keeps from one task to the next: the last object that it made of a kind, such as a renderer."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from raymarch.tasks.device_thread import close_at_stop


class Closable(Protocol):
    """Owner of device memory."""

    def close(self) -> None: ...


T = TypeVar("T", bound=Closable)


class LastMade(Generic[T]):
    """The object that was made last, by what it was made of; its memory goes back before another is made."""

    def __init__(self) -> None:
        self._key: bytes | None = None
        self._made: T | None = None

    def of(self, recipe: object, make: Callable[[], T]) -> T:
        """That of a recipe, which is compared as it travels; made anew where it is another than the last."""
        key = pickle.dumps(recipe)
        if self._made is None or key != self._key:
            self.close()
            close_at_stop(self.close)
            self._made, self._key = make(), key
        return self._made

    def close(self) -> None:
        """Hand its memory back."""
        if self._made is not None:
            self._made.close()
        self._made = self._key = None
