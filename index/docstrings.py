"""Docstrings that are completed by what annotations and other docstrings say already."""

import inspect
import re
from collections.abc import Callable, Mapping
from textwrap import indent, wrap
from types import FunctionType, NoneType, UnionType
from typing import Any, ClassVar, ForwardRef, TypeVar, Union, get_args, get_origin

C = TypeVar("C", bound=type)
T = TypeVar("T", bound=Callable[..., Any])

_LATER = re.compile(r"^(Raises|Warns|See Also|Notes|References|Examples)\n-+$", re.MULTILINE)
_RESULT = re.compile(r"^(Returns|Yields)\n-+$", re.MULTILINE)


def documented(kind: C) -> C:
    """Class decorator that lists the fields of a dataclass as attributes in its docstring.

    A field is ``names: Annotated[list[str], "What it means."]``, or with the shape of an array before the meaning, or
    with an object whose ``help`` is the meaning.
    """
    rows = []
    declared = {name: one for base in reversed(kind.__mro__) for name, one in inspect.get_annotations(base).items()}
    for name, annotation in declared.items():
        if not name.startswith("_") and get_origin(annotation) is not ClassVar:
            *shape, meaning = getattr(annotation, "__metadata__", [""])
            type_text = spoken(annotation).replace("ndarray", ", shape ".join(["ndarray", *shape]))
            lines = wrap(getattr(meaning, "help", meaning), 116, initial_indent="    ", subsequent_indent="    ")
            rows += [f"{name} : {type_text}", *lines]
    kind.__doc__ = _with_section(kind.__doc__ or "", "Attributes", "\n".join(rows))
    return kind


def completed(paragraphs: Mapping[str, str]) -> Callable[[T], T]:
    """Decorator of a function, or of a class with public methods, that completes docstrings.

    Lines that name shared paragraphs, such as ``{progress}``, are replaced by them, and what is returned is taken from
    the annotation unless it is described.
    """

    def complete(one: T) -> T:
        functions = [value for name, value in vars(one).items() if name[0] != "_"] if isinstance(one, type) else [one]
        for function in functions:
            if isinstance(function, FunctionType):
                text, returned = with_paragraphs(function.__doc__ or "", paragraphs), function.__annotations__["return"]
                if returned is not None and not _RESULT.search(inspect.cleandoc(text)):
                    text = _with_section(text, "Returns", spoken(returned))
                function.__doc__ = text
        return one

    return complete


def with_paragraphs(text: str, paragraphs: Mapping[str, str]) -> str:
    """Replace lines that name paragraphs by these, with their indentation."""
    lines = []
    for line in text.splitlines():
        name = line.strip()
        lines += indent(paragraphs[name], line[: line.index(name)]).splitlines() if name in paragraphs else [line]
    return "\n".join(lines)


def spoken(kind: Any) -> str:
    """Write a type as numpydoc does, such as ``list of str``."""
    if hasattr(kind, "__metadata__"):  # of `Annotated`
        kind = kind.__origin__
    origin, inside = get_origin(kind), [spoken(one) for one in get_args(kind)]
    if isinstance(kind, str | ForwardRef):  # of a module that is imported for type checkers alone
        return str(getattr(kind, "__forward_arg__", kind))
    if origin in (Union, UnionType):
        return " or ".join(inside)
    if origin is None:
        return "None" if kind is NoneType else "..." if kind is ... else str(kind.__name__)
    if origin is tuple and inside[-1] != "...":
        return f"({', '.join(inside)})"
    name = origin.__name__.lower()
    if name == "ndarray":
        kept = inside[-1].removeprefix("dtype of ").replace("floating", "float")
        return f"ndarray, {kept}".removesuffix(", Any")
    if issubclass(origin, Mapping):
        return name if inside[-1] == "Any" else f"{name} of {inside[0]} to {inside[1]}"
    return f"{name} of {inside[0]}"


def _with_section(text: str, title: str, lines: str) -> str:
    """Insert a section in numpydoc's order: after all that is not in `_LATER`."""
    text = inspect.cleandoc(text)
    section = f"{title}\n{'-' * len(title)}\n{lines}"
    later = _LATER.search(text)
    if later is None:
        return f"{text}\n\n{section}"
    return f"{text[: later.start()]}{section}\n\n{text[later.start() :]}"
