"""Results of work as small objects, with the values that commands print with --json."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from index.docstrings import documented


class Report:
    """Base of reports, which are dataclasses."""

    def __init_subclass__(cls) -> None:
        documented(cls)

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes, as the command prints them with --json."""
        found: dict[str, Any] = asdict(self)  # type: ignore[call-overload]  # every report is a dataclass
        return found | {"damaged": list(found["damaged"])} if "damaged" in found else found


def rounded(seconds: Mapping[str, float]) -> dict[str, float]:
    """Seconds of steps, to the millisecond."""
    return {step: round(value, 3) for step, value in seconds.items()}
