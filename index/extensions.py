"""Extensions declared by installed packages or registered by the running program.

A package declares one by an entry point, such as ``ours = "our_package:OurDescriptor"`` in the group
``cairn.descriptors``. A collection stores the place of its extension (``module:object``) and its version. That text is
only compared with the extensions declared and registered here: nothing is imported because a file names it.
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
    """A kind of extension."""

    group: str  # group of its entry points
    names: tuple[str, ...]  # names of attributes that an extension must have
    # whether an extension is a class that Cairn instantiates with arguments; otherwise it is an object, or a class or
    # function that makes one when called without arguments
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
"""Every kind of extension by its name. ``cairn.testing`` checks their contracts."""

_PLACE = re.compile(r"[A-Za-z_][\w.]*:[\w.+-]+")


class ExtensionMissing(CairnError):
    """An extension is neither installed nor registered by the running program."""


@dataclass(frozen=True)
class Extension:
    """One extension."""

    kind: str  # one of `KINDS`
    name: str  # what users call it
    place: str  # ``module:object``, as a collection stores it
    version: str  # version of the package that declares it; "" if unknown
    _load: Callable[[], Any]
    is_declared: bool = False  # whether an installed package declares it; otherwise the running program registered it

    def load(self) -> Any:
        """Import it, once for each process. Raises CairnError if that fails or it breaks the contract."""
        return _loaded(self) if self.is_declared else self._load()


def _itself(extension: Any) -> Any:
    return extension


@cache
def _loaded(extension: Extension) -> Any:
    try:
        loaded = extension._load()
        if not KINDS[extension.kind].of_class and isinstance(loaded, type | FunctionType):
            loaded = loaded()
    except CairnError:
        raise
    except Exception as error:  # foreign code can fail in any way
        raise CairnError(
            "The {what} {name} ({place}) cannot be loaded ({reason}): mend or remove that extension.",
            what=extension.kind,
            name=extension.name,
            place=extension.place,
            reason=one_line(error)[:200],
        ) from error
    check_contract(extension.kind, loaded)
    return loaded


def check_contract(kind: str, candidate: Any) -> None:
    """Raise CairnError if an object lacks an attribute that its kind of extension must have."""
    lacking = [name for name in KINDS[kind].names if not hasattr(candidate, name)]
    if KINDS[kind].of_class and not isinstance(candidate, type):
        raise CairnError(f"An {kind} is a name, or a class that keeps the contract, and not {shown(repr(candidate))}.")
    if lacking:
        what = candidate.__name__ if isinstance(candidate, type) else type(candidate).__name__
        raise CairnError(
            "This {name} does not keep the contract of a {what}: it has no {lacking}.",
            name=what,
            what=kind,
            lacking=lacking[0],
        )


_registered: dict[str, dict[str, Extension]] = {kind: {} for kind in KINDS}


def register(kind: str, extension: Any, name: str = "") -> str:
    """Register an object so that Cairn takes it by name: a descriptor, a detector and so on.

    Options that take a name also take the object itself. A program must register the object before it opens a
    collection made with it. Worker processes receive it pickled.

    Parameters
    ----------
    kind : str
        ``descriptor``, ``detector``, ``engine`` (a class), ``extractor``, ``features``, ``global_descriptor``,
        ``protocol`` or ``verifier``.
    extension : object
        Follows the contract of its kind, which ``cairn.testing`` checks.
    name : str
        Its name; by default that of the object or its class.

    Returns
    -------
    str
        ``module:name``, which stands for the object in collections and options.

    Raises
    ------
    CairnError
        There is no such kind, or the object breaks the contract.

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
    module, called = _module_and_name(extension)
    called = re.sub(r"[^\w.+-]+", "-", name or called)
    place = f"{module}:{called}"
    if place in _installed(kind):  # an installed extension already has this place
        place += "-object"
    _registered[kind][place] = Extension(kind, called, place, "", partial(_itself, extension))
    return place


def named(kind: str, extension: Any) -> str:
    """Return a name as it is, or the name of an object after registering it: see `register`."""
    return extension if isinstance(extension, str) else register(kind, extension)


def _module_and_name(extension: Any) -> tuple[str, str]:
    own = extension if isinstance(extension, type) else getattr(extension, "respond", type(extension))
    name = "" if isinstance(extension, type) else getattr(extension, "name", "")
    return str(getattr(own, "__module__", "")) or "__main__", str(name or getattr(own, "__qualname__", "extension"))


def _declared_as(kind: str, extension: Any) -> Extension | None:
    module = _module_and_name(extension)[0]
    for one in _installed(kind).values():
        if one.place.partition(":")[0] == module:
            declared = one.load()
            mark = getattr(extension, "fingerprint", None)
            if declared is extension or (mark is not None and getattr(declared, "fingerprint", None) == mark):
                return one
    return None


@cache
def _installed(kind: str) -> Mapping[str, Extension]:
    """Extensions declared by installed packages, by place."""
    from importlib.metadata import entry_points

    installed = {}
    for one in entry_points(group=KINDS[kind].group):
        place = f"{one.module}:{one.attr}"
        if _PLACE.fullmatch(place):
            installed[place] = Extension(kind, one.name, place, one.dist.version if one.dist else "", one.load, True)
    return installed


def extensions(kind: str) -> list[Extension]:
    """All extensions of a kind that may be used: registered ones first."""
    return [*_registered[kind].values(), *_installed(kind).values()]


def find(kind: str, name: str) -> Extension | None:
    """Find an extension by its place or name, None if there is none; raises CairnError if two have that name."""
    every = extensions(kind)
    by_place = [one for one in every if one.place == name]
    matches = by_place or [one for one in every if one.name == name]
    if len({one.place for one in matches}) > 1:
        raise CairnError(
            "Several extensions are called {name}: name one of {places}.",
            name=repr(name),
            places=", ".join(one.place for one in matches),
        )
    return matches[0] if matches else None


def is_place(name: str) -> bool:
    """Whether a name is the place of an extension, ``module:object``."""
    return len(name) <= 200 and _PLACE.fullmatch(name) is not None


def refuse_missing(kind: str, name: str) -> None:
    """Raise ExtensionMissing if a name that was not found is the place of an extension, as a collection stores it."""
    if is_place(name):
        raise ExtensionMissing(
            "The {what} {name} is neither installed nor registered here: install the package that declares it, or "
            "register it by cairn.register.",
            what=kind,
            name=shown(name),
        )


def place_of(kind: str, name: str) -> str:
    """Place of an extension, as a collection stores it; the name itself if there is no such extension."""
    match = find(kind, name)
    return match.place if match is not None else name


def carried() -> "Carried | None":
    """Registered extensions for worker processes; None if there are none."""
    registered = [
        (kind, one.name, one.place, one.load()) for kind, some in _registered.items() for one in some.values()
    ]
    return Carried(registered) if registered else None


@dataclass(frozen=True)
class Carried:
    """Registered extensions on their way to another process."""

    kept: list[tuple[str, str, str, Any]]

    def run(self, task: Callable[[], T]) -> T:
        """Register them, then do a task."""
        for kind, name, place, extension in self.kept:
            _registered[kind][place] = Extension(kind, name, place, "", partial(_itself, extension))
        return task()
