"""Supersampling of pixels: what settings allow."""

from raymarch.arguments.checks import whole

MOST_SUPERSAMPLE = 8  # rays along each edge of a pixel
SUPERSAMPLE = whole(1, MOST_SUPERSAMPLE)
