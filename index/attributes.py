"""Copy attributes between objects by their names."""

from dataclasses import fields
from typing import Any


def some_of(source: object, *names: str) -> dict[str, Any]:
    """Return some attributes of an object by name, in this order."""
    return {name: getattr(source, name) for name in names}


def shared_by(kind: Any, source: object) -> dict[str, Any]:
    """Return the attributes of an object that share a name with a field of a dataclass."""
    return some_of(source, *(one.name for one in fields(kind) if one.init and hasattr(source, one.name)))
