"""Checkpoints of a fit as it runs: when one is due, what is there already, and what a disk that refuses means."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from raymarch.arguments import checks
from raymarch.arguments.checks import flag, instance_of, optional
from raymarch.arguments.declared import checked_field, validate_fields
from raymarch.errors import RaymarchError
from raymarch.fitting.checkpoints.checkpoint import MINUTES, NOTE, bytes_of_checkpoint, load_checkpoint, save_checkpoint
from raymarch.fitting.checkpoints.checkpoint_file import is_checkpoint, read_record
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.report import NotFinite
from raymarch.fitting.settings.settings import FitSettings
from raymarch.io.files.atomic import require_writable
from raymarch.io.files.authorship import require_ours
from raymarch.io.files.lock import lock_file

log = logging.getLogger(__name__)

DEFAULT_INTERVAL = 10.0  # minutes


@dataclass(frozen=True)
class Checkpoints:
    """Checkpoints of a fit: pass them to `rm.fit` as `checkpoints=`.

    Attributes:
        path: of the file, by custom that of the volume with `.checkpoint` behind it.
        every: minutes between two; None for 10, or for what the fit that is gone on with had.
        resume: whether to go on from the one that is there.
        overwrite: whether one that is there may be lost, or a file that is none.
        note: a text of your own, kept in the file; that of the fit that is gone on with stays if none is given.

    Raises RaymarchError for what is no path or no time, and for a note of over a million letters.

    Example:
        >>> Checkpoints("tower.h5.checkpoint", every=5).resume
        False
    """

    path: str | os.PathLike[str] = checked_field(checks.path, None)
    every: float | None = checked_field(optional(MINUTES), None)
    resume: bool = checked_field(flag, False)
    overwrite: bool = checked_field(flag, False)
    note: str = checked_field(NOTE, "")

    def __post_init__(self) -> None:
        validate_fields(self)

    def require(self) -> None:
        """RaymarchError where there is nothing to go on from, or where a checkpoint or another file would be lost."""
        if self.resume:
            self.require_there()
        elif is_checkpoint(self.path) and not self.overwrite:
            raise RaymarchError(
                f"{self.path}: {self._in_words()}; go on with it by --resume (resume=True in Python), or lose it by"
                " --overwrite (overwrite=True)"
            )
        require_ours([self.path], "checkpoint", is_checkpoint, self.overwrite)
        require_writable(self.path)

    def say_what_is_lost(self) -> None:
        """Say in the log that the checkpoint which is there is lost once the new fit has one, or is at its end."""
        if not self.resume and is_checkpoint(self.path):
            log.warning("%s: %s; this fit takes its place", self.path, self._in_words())

    def locked(self) -> AbstractContextManager[None]:
        """Context in which no other fit writes this checkpoint; RaymarchError where one does."""
        return lock_file(self.path, "choose another path")

    def remove(self) -> None:
        """Remove the checkpoint, once what it led to is safe."""
        try:
            Path(self.path).unlink(missing_ok=True)
        except OSError as error:
            log.warning("%s: cannot be removed (%s); remove it", self.path, error.strerror)

    def require_there(self) -> None:
        """RaymarchError where there is nothing to go on from."""
        if not os.path.lexists(self.path):
            raise RaymarchError(f"{self.path}: there is no checkpoint to resume from; leave --resume (resume=True) out")
        read_record(self.path)

    def _in_words(self) -> str:
        """What the checkpoint is of."""
        try:
            record = read_record(self.path)
        except RaymarchError:
            return "is a checkpoint, though a damaged one"
        seconds = record["seconds"] - record["ready"]
        return f"has a fit of {record['steps']} steps and {seconds:.0f} s that did not come to its end"


CHECKPOINTS = instance_of(Checkpoints, "an rm.Checkpoints", "rm.Checkpoints(path) is one")


class CheckpointSaver:
    """Saving of a fit's checkpoints; None for no checkpoints does nothing.

    Attributes:
        resumed_from: step that the fit went on from, or None.
        writes: False of a rank that only goes on from what the first rank writes.
    """

    def __init__(self, checkpoints: Checkpoints | None, writes: bool = True):
        self._checkpoints, self._last, self.writes = checkpoints, time.monotonic(), writes
        self._step: int | None = None  # of the last one
        self.resumed_from: int | None = None
        if checkpoints is not None and writes:
            checkpoints.require()
            checkpoints.say_what_is_lost()
        elif checkpoints is not None and checkpoints.resume:
            checkpoints.require_there()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Context in which no other fit writes this checkpoint; RaymarchError where one does."""
        if self._checkpoints is None or not self.writes:
            yield
            return
        with self._checkpoints.locked():
            yield

    def as_found(self, settings: FitSettings) -> FitSettings:
        """Settings with the resolution of the fit that is gone on with, where they leave it open: it was found by the
        threads and the memory there were."""
        if self._checkpoints is None or not self._checkpoints.resume or settings.resolution is not None:
            return settings
        return replace(settings, resolution=read_record(self._checkpoints.path)["settings"].get("resolution"))

    def begin(self, fitter: Fitter) -> None:
        """Go on from the checkpoint that is there, if that is what is asked for.

        Raises RaymarchError where a whole one would find no room.
        """
        if self._checkpoints is None:
            return
        if self.writes:
            require_writable(self._checkpoints.path, bytes_of_checkpoint(fitter))
        self._every = DEFAULT_INTERVAL if self._checkpoints.every is None else self._checkpoints.every
        self._note = self._checkpoints.note
        if self._checkpoints.resume:
            record = load_checkpoint(fitter, self._checkpoints.path)
            self._every = record["every"] if self._checkpoints.every is None else self._every
            self._note = self._note or record["note"]
            self.resumed_from = self._step = record["steps"]
        elif self._checkpoints.note and self.writes:
            self._write(fitter)  # what it tells took time to find out
        self._last = time.monotonic()

    def after(self, fitter: Fitter) -> None:
        """Save a checkpoint if one is due after a report."""
        if self._checkpoints is None or not self.writes:
            return
        if time.monotonic() - self._last >= 60 * self._every and fitter.progress < 1:
            self.save(fitter)

    def save(self, fitter: Fitter) -> None:
        """Save a checkpoint, if a step was made since the last; where that fails it is said, and the fit goes on with
        the older one kept."""
        if self._checkpoints is not None and self.writes and fitter.steps_done not in (0, self._step):
            self._write(fitter)

    def _write(self, fitter: Fitter) -> None:
        assert self._checkpoints is not None
        try:
            save_checkpoint(fitter, self._checkpoints.path, every=self._every, note=self._note)
            self._step = fitter.steps_done
        except NotFinite:
            raise
        except RaymarchError as error:
            kept = f"that of step {self._step} is kept" if self._step is not None else "there is none yet"
            log.warning("no checkpoint at step %d, %s: %s", fitter.steps_done, kept, error)
        self._last = time.monotonic()
