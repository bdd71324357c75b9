"""Sentences in several forms: for the command line, a Python program, a page.

A `Message` is a sentence in English with places in it. ``{name}`` is a value; ``{--max-side}`` is an option, and
``{cairn retrain}`` a command, which are named as the reader writes them: ``--max-side`` or ``max_side``, ``cairn
retrain`` or ``Collection.retrain``. If an option has another name in Python, that follows a bar: ``{--gt|labels}``.
A command may have options: ``{cairn retrain --signature}`` is ``Collection.retrain(signature=…)``.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Naming = Callable[[str], str]
"""How options and commands are named: `in_python` or `on_command_line`."""

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
"""Functions and methods that do what a command does."""


def in_python(place: str) -> str:
    """Name an option by its argument, and a command by its function where there is one."""
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
    """Name an option or a command as it is typed."""
    return place.partition("|")[0]


_naming: Naming = in_python


@contextmanager
def speaking(naming: Naming) -> Iterator[None]:
    """Name options and commands in another way in this process, within a block."""
    global _naming
    before, _naming = _naming, naming
    try:
        yield
    finally:
        _naming = before


class Message:
    """A sentence with places in it, which a translator meets and which tells messages apart, and the values for them.
    Raises TypeError if the places have other names than the values.
    """

    def __init__(self, text: str, **values: object) -> None:
        if values and values.keys() != {place for place in _PLACE.findall(text) if place.isidentifier()}:
            raise TypeError(f"the values {sorted(values)} are not those of the message {text!r}")
        self.text, self.values = text, values

    @classmethod
    def of(cls, text: "str | Message", **values: object) -> "Message":
        """Take a message as it is, and a text with its values as one."""
        return text if isinstance(text, Message) else cls(text, **values)

    def __str__(self) -> str:
        return self.told()

    def __repr__(self) -> str:
        return repr(str(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and (self.text, self.values) == (other.text, other.values)

    def __hash__(self) -> int:
        return hash(self.text)

    def told(self, naming: Naming | None = None, translate: Callable[[str], str] = str) -> str:
        """The sentence, and those that stand within it, without their full stops where another mark follows. `naming`:
        how options and commands are named; by default as this process does, see `speaking`.
        """
        name = naming or _naming

        def place(found: re.Match[str]) -> str:
            if (inside := found[1]) not in self.values:
                return found[0] if inside.isidentifier() else name(inside)
            value = self.values[inside]
            inner = getattr(value, "message", value)
            if not isinstance(inner, Message):
                return str(value)
            text = inner.told(name, translate)
            return text.rstrip(".") if found.string[found.end() :].startswith((".", ":", ")")) else text

        return _PLACE.sub(place, translate(self.text))

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON has it, its values as text."""
        inner = {name: getattr(value, "message", value) for name, value in self.values.items()}
        values = {name: one.to_dict() if isinstance(one, Message) else str(one) for name, one in inner.items()}
        return {"text": self.text, "values": values}

    @classmethod
    def from_dict(cls, said: dict[str, Any]) -> "Message":
        """Read what `to_dict` gives."""
        values = {name: cls.from_dict(one) if isinstance(one, dict) else one for name, one in said["values"].items()}
        return cls(said["text"], **values)


def said(text: str) -> str:
    """Mark a text that pages say, so that translators meet it."""
    return text
