"""The one exception a user's input can cause."""


class RaymarchError(ValueError):
    """What came, what was wanted and the cure, in one line; the command line prints it and exits with 1.

    Example:
        >>> raise RaymarchError("focal is 0.0 pixels, want a positive number; check camera_angle_x")
        Traceback (most recent call last):
        raymarch.errors.RaymarchError: focal is 0.0 pixels, want a positive number; check camera_angle_x
    """
