"""Sentences in several forms: for the command line, a Python program, a page.

A `Message` is an English sentence with placeholders. ``{name}`` is a value; ``{--max-side}`` is an option, and ``{cairn
retrain}`` a command, each named as its reader writes it: ``--max-side`` or ``max_side``, ``cairn retrain`` or
``Collection.retrain``. If an option has another name in Python, it follows a bar: ``{--gt|labels}``.
A command may have options: ``{cairn retrain --signature}`` is ``Collection.retrain(signature=…)``.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Naming = Callable[[str], str]
"""Names options and commands: `in_python` or `on_command_line`."""

_PLACE = re.compile(r"\{(\w+|(?:--|cairn )[^{}]+)\}")
_FUNCTIONS = {
    "cairn check": "Collection.check",
    "cairn evaluate patches": "cairn.evaluate_patches",
    "cairn global": "Collection.add_global_descriptors",
    "cairn group": "Collection.group",
    "cairn index": "Collection.add",
    "cairn info": "Collection.info",
    "cairn learn descriptor": "cairn.learn_descriptor",
    "cairn query": "Collection.search",
    "cairn remove": "Collection.remove",
    "cairn retrain": "Collection.retrain",
}
"""Functions and methods that correspond to commands."""


def in_python(place: str) -> str:
    """Name an option by its argument, and a command by its function if it has one."""
    here, _, there = place.partition("|")
    if there:
        return there
    command, *options = re.split(r"(?:^| )--", here)
    names = [one.removeprefix("no-").split("/")[0].replace("-", "_") for one in options]
    if not command:
        return names[0]
    if command not in _FUNCTIONS:
        return here
    return f"{_FUNCTIONS[command]}({', '.join(f'{name}=…' for name in names)})" if names else _FUNCTIONS[command]


def on_command_line(place: str) -> str:
    """Name an option or a command as typed."""
    return place.partition("|")[0]


_naming: Naming = in_python


@contextmanager
def speaking(naming: Naming) -> Iterator[None]:
    """Use another naming of options and commands in this process, within a block."""
    global _naming
    before, _naming = _naming, naming
    try:
        yield
    finally:
        _naming = before


class Message:
    """A translatable sentence and the values of its placeholders; raises TypeError if their names differ."""

    def __init__(self, text: str, **values: object) -> None:
        if values and values.keys() != {place for place in _PLACE.findall(text) if place.isidentifier()}:
            raise TypeError(f"the values {sorted(values)} are not those of the message {text!r}")
        self.text, self.values = text, values

    @classmethod
    def of(cls, text: "str | Message", **values: object) -> "Message":
        """Make a message of a text and its values; a message is returned as it is."""
        return text if isinstance(text, Message) else cls(text, **values)

    def __str__(self) -> str:
        return self.sentence()

    def __repr__(self) -> str:
        return repr(str(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and (self.text, self.values) == (other.text, other.values)

    def __hash__(self) -> int:
        return hash(self.text)

    def sentence(self, naming: Naming | None = None, translate: Callable[[str], str] = str) -> str:
        """The sentence with its values. A sentence among the values loses its full stop if another mark follows.
        `naming`: of options and commands; by default that of this process, see `speaking`.
        """
        name = naming or _naming

        def place(match: re.Match[str]) -> str:
            if (inside := match[1]) not in self.values:
                return match[0] if inside.isidentifier() else name(inside)
            value = self.values[inside]
            inner = getattr(value, "message", value)
            if not isinstance(inner, Message):
                return str(value)
            text = inner.sentence(name, translate)
            return text.rstrip(".") if match.string[match.end() :].startswith((".", ":", ")")) else text

        return _PLACE.sub(place, translate(self.text))

    def to_dict(self) -> dict[str, Any]:
        """Convert it to a dictionary for JSON, with values as text."""
        inner = {name: getattr(value, "message", value) for name, value in self.values.items()}
        values = {name: one.to_dict() if isinstance(one, Message) else str(one) for name, one in inner.items()}
        return {"text": self.text, "values": values}

    @classmethod
    def from_dict(cls, message: dict[str, Any]) -> "Message":
        """Read the result of `to_dict`."""
        values = {name: cls.from_dict(one) if isinstance(one, dict) else one for name, one in message["values"].items()}
        return cls(message["text"], **values)


def said(text: str) -> str:
    """Mark a text of pages for translation."""
    return text
