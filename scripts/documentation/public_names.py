"""Write the public interface: the record for a test, and stubs for type checkers.

`tests/whole/public.txt` has every name of `cairn.PUBLIC` with its signature, and of a class its methods and attributes.
`cairn-stubs/__init__.pyi` has the same for type checkers, as a module without a package cannot declare that it is
typed.

usage: python -m scripts.documentation.public_names
"""

import dataclasses
import enum
import inspect
import types
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, ForwardRef, Literal, TypeVar, Union, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike
from numpydoc.docscrape import NumpyDocString

import cairn
from retrieval.library import testing

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "tests" / "whole" / "public.txt"
STUBS = ROOT / "cairn-stubs" / "__init__.pyi"

INNER = {
    "cairn.Collection": {"__init__", "opened"},
    "cairn.NewSimilarity": {"matrix"},
}
"""Members of public classes for internal use, not part of the interface."""

_OURS = ("index", "retrieval", "learning", "eval")
_SPOKEN = ("__call__", "__contains__", "__enter__", "__exit__", "__getitem__", "__iter__", "__len__", "__array__")
_STUBS = '''\
"""The types of `import cairn`; written by scripts/documentation/public_names.py."""

from collections.abc import Collection as _Names

import typer as _typer

{imports}

__all__ = {names}
__version__: str
PUBLIC: dict[str, str]
COMMANDS: dict[str, tuple[str, str]]

def make_app(names: _Names[str] = ...) -> _typer.Typer: ...
def version() -> str: ...
def main() -> None: ...
'''


def public_objects() -> dict[str, Any]:
    """Return all public objects by name, in alphabetical order."""
    objects = {name: resolve_name(cairn.PUBLIC[name]) for name in sorted(cairn.PUBLIC)}
    return objects | {f"testing.{name}": getattr(testing, name) for name in testing.__all__}


def record() -> str:
    """Return the text of the record: a line for each name, and for each member of a class."""
    return "".join(f"{line}\n" for name, one in public_objects().items() for line in describe(f"cairn.{name}", one))


def describe(name: str, one: Any) -> Iterator[str]:
    """Return the lines of the record for an object, followed by the sorted members of a class."""
    if not isinstance(one, type):
        yield f"{name}{_signature(one)}" if callable(one) else f"{name}: {type(one).__qualname__}"
        return
    bases = ", ".join(_type(base) for base in one.__bases__ if base is not object and base.__name__[0] != "_")
    yield f"class {name}({bases})" if bases else f"class {name}"
    inner = INNER.get(name, set())
    if sections(one)["Parameters"] and "__init__" not in inner:  # else only Cairn constructs it
        constructor: Any = vars(one).get("__init__", one.__init__)  # type: ignore[misc]
        yield f"    __init__{_signature(constructor, method=True)}"
    yield from sorted(f"    {_member(kind, member)}" for member, kind in _members(one).items() if member not in inner)


def methods(name: str, one: type) -> dict[str, Any]:
    """Return the public methods of a public class and its base classes in Cairn, by name."""
    by_name = {}
    for member, kind in _members(one).items():
        value = inspect.getattr_static(kind, member, None)
        function = getattr(value, "__func__", value)
        if inspect.isfunction(function) and not member.startswith("_") and member not in INNER.get(name, ()):
            by_name[member] = function
    return by_name


def _members(one: type) -> dict[str, type]:
    """Return the public members of a class, each with its defining class in Cairn."""
    by_name: dict[str, type] = {}
    for kind in _own(one):
        members = vars(kind)
        for name in (*members, *inspect.get_annotations(kind), *sections(kind)["Attributes"]):
            if name in _SPOKEN or not name.startswith("_"):
                by_name.setdefault(name, kind)
    return by_name


def _own(one: type) -> list[type]:
    """Return a class and its base classes in Cairn."""
    return [kind for kind in one.__mro__ if kind.__module__.partition(".")[0] in _OURS]


def _member(kind: type, name: str) -> str:
    value = inspect.getattr_static(kind, name, None)
    annotated = (inspect.get_annotations(one).get(name) for one in _own(kind))
    annotation = next((one for one in annotated if one is not None), None)
    if isinstance(value, property | cached_property):
        function: Any = value.fget if isinstance(value, property) else value.func
        return f"{name}: {_type(inspect.signature(function).return_annotation)}"
    if isinstance(value, staticmethod | classmethod):
        how = type(value).__name__
        return f"{how} {name}{_signature(value.__func__, method=isinstance(value, classmethod))}"
    if inspect.isfunction(value):
        return f"{name}{_signature(value, method=True)}"
    if annotation is not None:
        default = f" = {_default(value)}" if dataclasses.is_dataclass(kind) and _has_default(kind, name) else ""
        return f"{name}: {_type(annotation)}{default}"
    return f"{name}: {sections(kind)['Attributes'].get(name) or type(value).__qualname__}"


def _has_default(kind: Any, name: str) -> bool:
    field = kind.__dataclass_fields__.get(name)
    return field is not None and field.default is not dataclasses.MISSING


def sections(one: Any) -> dict[str, dict[str, str]]:
    """Return the documented names and types of an object's docstring, by section."""
    docstring = NumpyDocString(inspect.cleandoc(one.__doc__ or ""))
    titles = ("Parameters", "Attributes")
    return {title: {name: part.type for part in docstring[title] for name in part.name.split(", ")} for title in titles}


def _signature(function: Any, *, method: bool = False) -> str:
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[method:]
    parts: list[str] = []
    is_keyword = False
    for place, one in enumerate(parameters):
        if one.kind is one.KEYWORD_ONLY and not is_keyword:
            if not any(before.kind is before.VAR_POSITIONAL for before in parameters):
                parts.append("*")
            is_keyword = True
        star = "*" * (one.kind is one.VAR_POSITIONAL) + "**" * (one.kind is one.VAR_KEYWORD)
        text = f"{star}{one.name}"
        if one.annotation is not one.empty:
            text += f": {_type(one.annotation)}"
        if one.default is not one.empty:
            text += f" = {_default(one.default)}"
        parts.append(text)
        following = parameters[place + 1 : place + 2]
        if one.kind is one.POSITIONAL_ONLY and not (following and following[0].kind is one.POSITIONAL_ONLY):
            parts.append("/")
    returned = signature.return_annotation
    return f"({', '.join(parts)})" + ("" if returned is signature.empty else f" -> {_type(returned)}")


def _default(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return str(value)
    plain = value is None or isinstance(value, str | bytes | int | float | tuple | Path)
    return repr(value) if plain else "<default>"


def _type(one: Any) -> str:
    """Format a type in short form, independent of the versions of Python and NumPy."""
    origin, inside = get_origin(one), get_args(one)
    if one is None or one is type(None):
        return "None"
    if one is ...:
        return "..."
    if isinstance(one, str | ForwardRef):
        return str(getattr(one, "__forward_arg__", one))
    if isinstance(one, list):
        return f"[{', '.join(map(_type, one))}]"
    if isinstance(one, TypeVar):
        return one.__name__
    if origin is np.ndarray:
        return f"NDArray[{_type(get_args(inside[1])[0])}]"
    if origin in (Union, types.UnionType):
        # Depending on the versions of NumPy and Python, a union or an alias.
        arrays = set(get_args(ArrayLike)) or {ArrayLike}
        if arrays <= set(inside):
            return " | ".join(["ArrayLike", *(_type(each) for each in inside if each not in arrays)])
        return " | ".join(map(_type, inside))
    if origin is Annotated:
        return _type(inside[0])
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, inside))}]"
    name = getattr(origin or one, "__qualname__", None) or getattr(one, "__name__", None) or str(one)
    return f"{name}[{', '.join(map(_type, inside))}]" if inside else name


def stubs() -> str:
    """Return the stub of the module: every public name, imported from its module."""
    imports = ["from retrieval.library import testing as testing"]
    for name, place in cairn.PUBLIC.items():
        module, _, inner = place.partition(":")
        imports.append(f"from {module} import {inner} as {name}")
    names = "[\n" + "".join(f'    "{name}",\n' for name in sorted(cairn.PUBLIC, key=_as_sorted)) + "]"
    return _STUBS.format(imports="\n".join(sorted(imports)), names=names)


def _as_sorted(name: str) -> tuple[bool, bool, str]:
    """Put constants first, then classes, then functions."""
    return not name.isupper(), not name[0].isupper(), name


def main() -> None:
    """Write the record and the stub."""
    RECORD.write_text(record(), encoding="utf-8")
    STUBS.parent.mkdir(exist_ok=True)
    STUBS.write_text(stubs(), encoding="utf-8")


if __name__ == "__main__":
    main()
