"""Order of names by the numbers in them: view 9 before view 10."""

from __future__ import annotations

import re

NUMBER = re.compile(r"(\d{1,18})")


def natural(name: str) -> list[int | str]:
    """Natural sort key of a name: what is between its numbers as text, and these by what they are.

    Example:
        >>> sorted(["r_10", "r_9", "r_9²"], key=natural)
        ['r_9', 'r_9²', 'r_10']
    """
    return [int(part) if i % 2 else part for i, part in enumerate(NUMBER.split(name))]
