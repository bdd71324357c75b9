"""The log of a run: every printed number as one line of JSON, written after each command."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eval.reproduce.steps import Step

LOG = "log.jsonl"
"""Name of the log in the folder of the pages."""


def append_log(path: Path, experiment: str, step: Step, result: Mapping[str, Any]) -> None:
    """Append the numbers of a finished step, a line of JSON each: ``time``, ``experiment``, ``step``, ``key`` (its
    folder), ``name``, ``at`` (place in a list, such as an iteration; else null) and ``value``.
    """
    common = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "experiment": experiment,
        "step": step.title,
        "key": step.key,
    }
    numbers = [("seconds", None, result["seconds"]), *numbers_in(result["printed"], "printed")]
    lines = [json.dumps({**common, "name": name, "at": at, "value": value}) for name, at, value in numbers]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))


def numbers_in(printed: Any, name: str, at: int | None = None) -> Iterator[tuple[str, int | None, float]]:
    """Yield dotted names, indices in a list, and values of the numbers of a JSON value; not of inner lists."""
    if isinstance(printed, Mapping):
        for key, value in printed.items():
            yield from numbers_in(value, f"{name}.{key}", at)
    elif isinstance(printed, list):
        for place, value in enumerate(printed if at is None else []):
            yield from numbers_in(value, name, place)
    elif isinstance(printed, int | float) and not isinstance(printed, bool):
        yield name, at, printed
