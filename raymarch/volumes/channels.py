"""Channels other than red, green and blue: their background, one number for each, and their units in a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from raymarch.arguments import checks
from raymarch.errors import RaymarchError
from raymarch.volumes.activation import ColourActivation
from raymarch.volumes.harmonics import Y00
from raymarch.volumes.samples import COLOUR_CHANNELS, MAX_CHANNELS
from raymarch.volumes.storage import Dense, Sparse

WHITE = (1.0, 1.0, 1.0)


def background_of_channels(channels: Sequence[str], background: Any) -> tuple[float, ...]:
    """Background in numbers: a colour's in 0..1, or one number a channel; 0 for what is none.

    Example:
        >>> background_of_channels(("thermal", "label"), None)
        (0.0, 0.0)
    """
    if tuple(channels) == COLOUR_CHANNELS:
        return checks.colour("background", background)
    if background is None or background is WHITE:
        return (0.0,) * len(channels)
    if isinstance(background, str):
        try:
            background = [float(one) for one in background.split(",")]
        except ValueError:
            raise RaymarchError(
                f"background is {background!r}, want {_numbers(len(channels))}, for {', '.join(channels)}; write them"
                " with commas between"
            ) from None
    numbers = np.asarray(checks.numeric(background), float) if not np.isscalar(background) else np.array([background])
    numbers = numbers if numbers.shape != (1,) else np.repeat(numbers, len(channels))
    if numbers.shape != (len(channels),) or not np.isfinite(numbers).all():
        raise RaymarchError(
            f"background has shape {numbers.shape}, want {_numbers(len(channels), 'finite ')}, for"
            f" {', '.join(channels)}; give one a channel"
        )
    return tuple(float(one) for one in numbers)


def _numbers(count: int, kind: str = "") -> str:
    return f"{count} {kind}number{'s' if count > 1 else ''}"


def _colour_or_channels(value: object) -> object:
    """A colour; or a word, or numbers of channels, as they came, which `background_of_channels` reads."""
    try:
        colour = checks.colour.read(value)
        return value if isinstance(value, str) and "," not in value else colour
    except Exception:  # whatever says that it is no colour, unless it is numbers
        if not _are_numbers(value):
            raise
        return value


def _are_numbers(value: Any) -> bool:
    try:
        numbers = np.array([float(one) for one in (value.split(",") if isinstance(value, str) else value)])
    except (TypeError, ValueError):
        return False
    return 1 <= len(numbers) <= MAX_CHANNELS and bool(np.isfinite(numbers).all())


COLOUR_OR_CHANNELS = replace(checks.colour, read=_colour_or_channels)


CENTRED_SLOPE = 0.25  # of a sigmoid in the middle, so that rates are as of colours
CENTRED = ColourActivation("centred", lambda x: 0.5 + CENTRED_SLOPE * np.asarray(x, float))  # of a fit of channels


def unscaled_channels(samples: Dense | Sparse, ranges: np.ndarray) -> Dense | Sparse:
    """Samples of a fit, whose activation is `CENTRED` and 0..1 the ranges (channel, 2), in the channels' units, as the
    activation "identity" reads them.

    Example:
        >>> one = Dense(np.zeros((2, 2, 2)), np.zeros((2, 2, 2, 1)))
        >>> shown = unscaled_channels(one, np.array([[10.0, 30.0]]))
        >>> (shown.features()[0, 0, 0] * Y00).round(6).tolist()
        [20.0]
    """
    features = samples.features() if samples.bricks is None else samples.bricks.features
    low, high = ranges.T
    parts = features.reshape(*features.shape[:-1], -1, len(ranges)) * (CENTRED_SLOPE * (high - low))
    parts[..., 0, :] += (low + 0.5 * (high - low)) / Y00
    moved = parts.reshape(features.shape).astype(features.dtype)
    if samples.bricks is None:
        return Dense(samples.density(0.0), moved)
    return Sparse(replace(samples.bricks, features=moved), samples.shape)
