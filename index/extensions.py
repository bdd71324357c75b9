"""Extensions: what installed packages declare, and what the running program registers, beside Cairn's own parts.

A package declares one by an entry point, such as ``ours = "our_package:OurDescriptor"`` in the group
``cairn.descriptors``. A collection keeps where its extension is (``module:object``) and its version. That text is only
compared with what is declared and registered here: nothing is imported because a file names it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from types import FunctionType
from typing import Any, TypeVar

from index.errors import CairnError
from index.text import one_line, shown

T = TypeVar("T")


@dataclass(frozen=True)
class ExtensionKind:
    """What may be extended.

    Attributes
    ----------
    group : str
        Of its entry points.
    names : tuple of str
        Names that an extension must have.
    of_class : bool
        Whether an extension is a class, of which Cairn makes objects; otherwise one is an object, or a class or a
        function that makes one when it is called without arguments.
    """

    group: str
    names: tuple[str, ...]
    of_class: bool = False


KINDS = {
    "descriptor": ExtensionKind(
        "cairn.descriptors", ("name", "patch_size", "extent", "dim", "bytes", "fingerprint", "describe")
    ),
    "detector": ExtensionKind("cairn.detectors", ("respond", "space", "threshold", "radius", "measurement_scale")),
    "engine": ExtensionKind(
        "cairn.engines", ("score_many", "verify", "verify_many", "refusal", "prepared"), of_class=True
    ),
    "extractor": ExtensionKind("cairn.extractors", ("name", "dim", "geometry", "fingerprint", "extract")),
    "features": ExtensionKind("cairn.features", ("recognises", "open")),
    "global_descriptor": ExtensionKind("cairn.global_descriptors", ("name", "dim", "fingerprint", "describe")),
    "protocol": ExtensionKind("cairn.protocols", ("recognises", "read")),
    "verifier": ExtensionKind("cairn.verifiers", ("verify",)),
}
"""Every kind of extension by its name. The contracts are those of ``cairn.testing``."""

_PLACE = re.compile(r"[A-Za-z_][\w.]*:[\w.+-]+")


class ExtensionMissing(CairnError):
    """An extension is neither installed nor registered by the running program."""


@dataclass(frozen=True)
class Extension:
    """One extension.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    name : str
        What users call it.
    place : str
        Where it is, ``module:object``: what a collection keeps.
    version : str
        Of the package that declares it; "" if that is not known.
    is_declared : bool
        Whether an installed package declares it; otherwise the running program registered it.
    """

    kind: str
    name: str
    place: str
    version: str
    _load: Callable[[], Any]
    is_declared: bool = False

    def load(self) -> Any:
        """Import it, once for each process; raises CairnError if that fails, or if it does not keep the contract."""
        return _loaded(self) if self.is_declared else self._load()


def _itself(extension: Any) -> Any:
    return extension


@cache
def _loaded(extension: Extension) -> Any:
    try:
        found = extension._load()
        if not KINDS[extension.kind].of_class and isinstance(found, type | FunctionType):
            found = found()
    except CairnError:
        raise
    except Exception as error:  # code of others fails in any way
        raise CairnError(
            "The {what} {name} ({place}) cannot be loaded ({reason}): mend or remove that extension.",
            what=extension.kind,
            name=extension.name,
            place=extension.place,
            reason=one_line(error)[:200],
        ) from error
    check_contract(extension.kind, found)
    return found


def check_contract(kind: str, found: Any) -> None:
    """Raise CairnError if an object lacks what an extension of a kind must have."""
    lacking = [name for name in KINDS[kind].names if not hasattr(found, name)]
    if KINDS[kind].of_class and not isinstance(found, type):
        raise CairnError(f"An {kind} is a name, or a class that keeps the contract, and not {shown(repr(found))}.")
    if lacking:
        what = found.__name__ if isinstance(found, type) else type(found).__name__
        raise CairnError(f"This {what} does not keep the contract of a {kind}: it has no {lacking[0]}.")


_registered: dict[str, dict[str, Extension]] = {kind: {} for kind in KINDS}


def register(kind: str, extension: Any, name: str = "") -> str:
    """Let this program use an object wherever Cairn takes the name of one: a descriptor, a detector and so on.

    What takes a name takes the object itself, too. A program that opens a collection which was made with an object
    registers that first. Worker processes get it pickled.

    Parameters
    ----------
    kind : str
        ``descriptor``, ``detector``, ``engine`` (a class), ``extractor``, ``features``, ``global_descriptor``,
        ``protocol`` or ``verifier``.
    extension : object
        Keeps the contract of its kind, which ``cairn.testing`` checks.
    name : str
        What it is called; its own name, or that of its class, where it is left out.

    Returns
    -------
    str
        ``module:name``, what a collection keeps, and what stands for the object in options.

    Raises
    ------
    CairnError
        There is no such kind, or the object does not keep the contract.

    Examples
    --------
    >>> import cairn
    >>> class Thirds:
    ...     def recognises(self, path): return path.suffix == ".thirds"
    ...     def open(self, path): ...
    >>> cairn.register("features", Thirds()).partition(":")[2]
    'Thirds'
    """
    if kind not in KINDS:
        raise CairnError(f"There is no kind of extension {kind!r}; choose one of {', '.join(KINDS)}.")
    check_contract(kind, extension)
    known = _declared_as(kind, extension)
    if known is not None:
        return known.place
    module, called = _called(extension)
    called = re.sub(r"[^\w.+-]+", "-", name or called)
    place = f"{module}:{called}"
    if place in _installed(kind):  # it is made otherwise than that
        place += "-object"
    _registered[kind][place] = Extension(kind, called, place, "", partial(_itself, extension))
    return place


def named(kind: str, given: Any) -> str:
    """Return the name that is given, or that of an object that is given: see `register`."""
    return given if isinstance(given, str) else register(kind, given)


def _called(extension: Any) -> tuple[str, str]:
    """The module of an object, and the name that tells it from others there."""
    own = extension if isinstance(extension, type) else getattr(extension, "respond", type(extension))
    name = "" if isinstance(extension, type) else getattr(extension, "name", "")
    return str(getattr(own, "__module__", "")) or "__main__", str(name or getattr(own, "__qualname__", "extension"))


def _declared_as(kind: str, extension: Any) -> Extension | None:
    """The installed extension that an object is."""
    module = _called(extension)[0]
    for one in _installed(kind).values():
        if one.place.partition(":")[0] == module:
            found = one.load()
            mark = getattr(extension, "fingerprint", None)
            if found is extension or (mark is not None and getattr(found, "fingerprint", None) == mark):
                return one
    return None


@cache
def _installed(kind: str) -> Mapping[str, Extension]:
    """Extensions that installed packages declare, by their places."""
    from importlib.metadata import entry_points

    found = {}
    for one in entry_points(group=KINDS[kind].group):
        place = f"{one.module}:{one.attr}"
        if _PLACE.fullmatch(place):
            found[place] = Extension(kind, one.name, place, one.dist.version if one.dist else "", one.load, True)
    return found


def extensions(kind: str) -> list[Extension]:
    """All extensions of a kind that may be used: registered ones first."""
    return [*_registered[kind].values(), *_installed(kind).values()]


def find(kind: str, name: str) -> Extension | None:
    """Find an extension by its place or its name; None if there is none.

    Raises
    ------
    CairnError
        Two have that name.
    """
    every = extensions(kind)
    by_place = [one for one in every if one.place == name]
    found = by_place or [one for one in every if one.name == name]
    if len({one.place for one in found}) > 1:
        raise CairnError(
            "Several extensions are called {name}: name one of {places}.",
            name=repr(name),
            places=", ".join(one.place for one in found),
        )
    return found[0] if found else None


def is_place(name: str) -> bool:
    """Whether a name is that of an extension by its place, ``module:object``."""
    return len(name) <= 200 and _PLACE.fullmatch(name) is not None


def refuse_missing(kind: str, name: str) -> None:
    """Raise ExtensionMissing if a name is the place of an extension, as a collection keeps it, and is not here."""
    if is_place(name):
        raise ExtensionMissing(
            "The {what} {name} is neither installed nor registered here: install the package that declares it, or "
            "register it by cairn.register.",
            what=kind,
            name=shown(name),
        )


def place_of(kind: str, name: str) -> str:
    """Where the extension of a name is, as a collection keeps it; the name itself if there is no such extension."""
    found = find(kind, name)
    return found.place if found is not None else name


def carried() -> "Carried | None":
    """What worker processes need to have what is registered here; None if nothing is."""
    kept = [(kind, one.name, one.place, one.load()) for kind, some in _registered.items() for one in some.values()]
    return Carried(kept) if kept else None


@dataclass(frozen=True)
class Carried:
    """Registered extensions on their way to another process."""

    kept: list[tuple[str, str, str, Any]]

    def run(self, task: Callable[[], T]) -> T:
        """Register them, then do a task."""
        for kind, name, place, found in self.kept:
            _registered[kind][place] = Extension(kind, name, place, "", partial(_itself, found))
        return task()
