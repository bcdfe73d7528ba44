"""Run a script's main so that a mistake in its arguments is one line, as it is on raymarch's own command line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from raymarch.errors import RaymarchError


def count(text: str) -> int:
    """A whole number from 1, for argparse."""
    if int(text) < 1:
        raise ValueError
    return int(text)


def plainly(main: Callable[[], None]) -> None:
    """Call `main`; what it cannot do is said in a line and by status 1, by 130 if it was interrupted."""
    try:
        main()
    except (RaymarchError, ValueError, OSError, ImportError) as error:
        sys.exit(str(error))
    except AttributeError as error:  # a library without the function
        if "undefined symbol" not in str(error):
            raise
        sys.exit(str(error))
    except subprocess.CalledProcessError as error:
        said = (error.stderr or b"").decode().strip()
        last = said.splitlines()[-1].removeprefix("raymarch.errors.RaymarchError: ") if said else ""
        sys.exit(last or f"{error.cmd[0]} ended with status {error.returncode}")
    except KeyboardInterrupt:
        sys.exit(130)
