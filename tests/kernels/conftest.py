"""What a test kept of the device goes back to the pool at its end: the next one, whether it drives kernels by hand or
opens a volume as users do, stands on the same trees, so that a kernel is compiled once for all of them."""

from __future__ import annotations

import drive
import pytest


@pytest.fixture(autouse=True)
def trees():
    yield
    drive.hand_back()
