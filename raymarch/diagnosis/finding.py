"""Findings: what is wrong with an image set or a fit, how bad it is, and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from raymarch.arguments.checks import one_of, text
from raymarch.arguments.declared import checked_field, validate_fields
from raymarch.volumes.volume import Volume

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """Finding of a diagnosis: a fault of an image set or of a fitted volume, with its cure.

    Attributes:
        code: its kind, a word or two with hyphens; docs/doctor.md lists them.
        severity: "error" where a fit cannot become anything, "warning" where it will be worse, "note" for what is only
            worth knowing.
        message: what is wrong, with the figures it was told by.
        cure: what to do, with the option that does it.

    Raises RaymarchError for another severity.

    Example:
        >>> Finding("blurred", "note", "view 3 is blurred", "take it out").record()["code"]
        'blurred'
    """

    code: str = checked_field(text, None)
    severity: str = checked_field(one_of(*SEVERITIES), None)
    message: str = checked_field(text, None)
    cure: str = checked_field(text, None)

    def __post_init__(self) -> None:
        validate_fields(self, "finding")

    def record(self) -> dict:
        """Finding as plain texts, for printing."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.severity}: {self.code}: {self.message}; {self.cure}"


def sort_findings(findings: list[Finding]) -> tuple[Finding, ...]:
    """The findings, the worst first."""
    return tuple(sorted(findings, key=lambda each: SEVERITIES.index(each.severity)))


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
