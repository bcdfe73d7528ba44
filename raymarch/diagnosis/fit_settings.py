"""Settings that a volume was fitted with, as far as its provenance tells them."""

from __future__ import annotations

from raymarch.volumes.volume import Volume


def setting_of_fit(volume: Volume, name: str) -> object:
    """Value that a setting had in the fit of a volume; None where that is not known.

    Example:
        >>> from dataclasses import replace
        >>> fog = replace(Volume.from_array(np.ones((4, 4, 4))), provenance={"settings": {"near": 0.2}})
        >>> setting_of_fit(fog, "near"), setting_of_fit(fog, "exposure")
        (0.2, None)
    """
    settings = volume.provenance.get("settings")
    return settings.get(name) if isinstance(settings, dict) else None
