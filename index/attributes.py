"""Attributes of objects by their names, where one object is made, or told, of those of another."""

from dataclasses import fields
from typing import Any


def some_of(source: object, *names: str) -> dict[str, Any]:
    """Some attributes of an object, by their names, in this order."""
    return {name: getattr(source, name) for name in names}


def shared_by(kind: Any, source: object) -> dict[str, Any]:
    """Attributes of an object for which a dataclass has fields of the same names."""
    return some_of(source, *(one.name for one in fields(kind) if one.init and hasattr(source, one.name)))
