"""Write the pages of the Python reference: a table of the public names, and an autodoc page for each."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cairn
from documentation.public_names import INNER

_HEAD = """Python
======

``import cairn`` gives these names. What a name needs is imported when it is first used.
The :ref:`index <genindex>` lists them all, with their methods.

.. currentmodule:: cairn

"""


def public_names() -> list[str]:
    """The public names in their order, without those of the module itself, such as ``__version__``."""
    return [name for name in getattr(cairn, "PUBLIC", {}) if not name.startswith("_")]


def public_classes() -> list[str]:
    """The public names of classes, errors among them."""
    return [name for name in public_names() if inspect.isclass(getattr(cairn, name))]


def write_python_pages(folder: Path) -> None:
    """Write the index and a page for each public name."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds: dict[str, list[str]] = {"Functions": [], "Classes": [], "Errors": [], "Data": []}
    for name in public_names():
        thing = getattr(cairn, name)
        if inspect.isclass(thing):
            thing.__name__ = name  # of a class defined under another name, autodoc only shows an alias
        kinds[_kind(thing)].append(name)
        (folder / f"cairn.{name}.rst").write_text("\n".join(_page(name, thing)), encoding="utf-8")
    (folder / "index.rst").write_text(_HEAD + "\n".join(_tables(kinds)), encoding="utf-8")


def _kind(thing: Any) -> str:
    if inspect.isclass(thing):
        return "Errors" if issubclass(thing, BaseException) else "Classes"
    return "Functions" if callable(thing) else "Data"


def _page(name: str, thing: Any) -> Iterator[str]:
    title = f"cairn.{name}"
    yield from [title, "=" * len(title), "", ".. currentmodule:: cairn", ""]
    kind = _kind(thing)
    if kind == "Functions":
        yield f".. autofunction:: {name}"
    elif kind == "Data":
        yield f".. autodata:: {name}"
    else:
        yield from [f".. autoclass:: {name}", "   :members:"]
        if inner := INNER.get(title):
            yield f"   :exclude-members: {', '.join(sorted(inner))}"
        yield "   :show-inheritance:" if kind == "Errors" else "   :inherited-members: object, tuple, Sequence, Mapping"
    yield ""


def _tables(kinds: dict[str, list[str]]) -> Iterator[str]:
    for title, names in kinds.items():
        if names:
            yield from [title, "-" * len(title), "", ".. autosummary::", "   :nosignatures:", ""]
            yield from (f"   {name}" for name in names)
            yield ""
    if pages := [f"cairn.{name}" for names in kinds.values() for name in names]:
        yield from [".. toctree::", "   :hidden:", "", *(f"   {page}" for page in pages), ""]


def resolve_public_name(app: Any, environment: Any, node: Any, content: Any) -> Any:
    """Resolve references to the module of a public name to that name's page: for Sphinx's `missing-reference`."""
    places = {place.replace(":", "."): f"cairn.{name}" for name, place in getattr(cairn, "PUBLIC", {}).items()}
    public = places.get(node.get("reftarget", ""))
    if node.get("refdomain") != "py" or public is None:
        return None
    domain = environment.get_domain("py")
    return domain.resolve_xref(environment, node.get("refdoc"), app.builder, "obj", public, node, content)


def hide_constructor(app: Any, what: str, name: str, thing: Any, options: Any, signature: Any, gives: Any) -> Any:
    """Hide the constructor of a class that only Cairn constructs: for autodoc's `autodoc-process-signature`."""
    has_parameters = what != "class" or not signature or "\nParameters\n---" in (inspect.getdoc(thing) or "")
    return None if has_parameters else ("", None)
