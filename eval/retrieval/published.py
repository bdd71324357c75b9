"""Choices of published retrieval experiments as options: those stated in a paper are set, others stay open."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

from index.errors import CairnError
from index.text import one_of

Choices = Mapping[str, tuple[Any | EllipsisType, ...]]
"""Allowed values by the name of an option, with the default first; with ``...``, any other value too."""


@dataclass(frozen=True)
class Published:
    """An experiment."""

    title: str  # paper and tables
    choices: Choices  # options common to all of its search methods
    ways: tuple[Choices, ...]  # search methods, the default first


_COMMON: Choices = {
    "words": (500_000,),
    "vocabulary_photos": ("all", ...),
    "turns": (1,),
    "soft": (1,),
    "tf": ("linear",),
    "max_features": (0,),
    "signature": ("none",),
}
_SIMONYAN_WAYS: tuple[Choices, ...] = ({"engine": ("tf-idf-sp", "tf-idf", "raw"), "expand": ("none",)},)

PUBLISHED = {
    "simonyan14": Published(
        "Simonyan et al., TPAMI 2014, section 10.2, table 4",
        {
            **_COMMON,
            "descriptor": ("rootsift", ...),
            "detector": ("dog-affine",),
            "measurement_scale": (12.5,),
            "upright": (True,),
            "similarity": (None,),
        },
        _SIMONYAN_WAYS,
    ),
    "simonyan14/table5": Published(
        "Simonyan et al., TPAMI 2014, section 10.2, table 5",
        {
            **_COMMON,
            "descriptor": ("sift", ...),
            "detector": ("hessian-affine",),
            "measurement_scale": (3**0.5,),
            "upright": (False,),
            "similarity": (None,),
        },
        _SIMONYAN_WAYS,
    ),
    "yan13": Published(
        "Yan et al., IJCNN 2013, section V, tables II and III",
        {
            **_COMMON,
            "descriptor": ("rootsift", "sift"),
            "detector": ("hessian-affine",),
            "upright": (False,),
        },
        (
            {"engine": ("tf-idf",), "expand": ("none",)},
            {"engine": ("tf-idf-sp",), "expand": ("average",)},
        ),
    ),
}
"""Experiments by the names for `--as-published`."""


def set_as_published(
    name: str, values: Mapping[str, Any], explicit: Set[str], free: Set[str] = frozenset()
) -> dict[str, Any]:
    """All options with an experiment's choices; raises CairnError if an explicit one differs, unless it is `free`."""
    if name not in PUBLISHED:
        raise CairnError(f"Nothing is published as {name!r}: choose {one_of(PUBLISHED)}.")
    published = PUBLISHED[name]
    for way in published.ways:
        wanted = {**published.choices, **way}
        wrong = [
            option
            for option, allowed in wanted.items()
            if option in explicit - free and ... not in allowed and values[option] not in allowed
        ]
        if not wrong:
            set_now = {option: allowed[0] for option, allowed in wanted.items() if option not in explicit}
            return {**values, **set_now}
    # If methods differ in it, report any of them: the last.
    option = wrong[0]
    raise CairnError(
        "As published in {title}, {choice}: leave {option} or {--as-published} out.",
        title=published.title,
        choice=_option_text(option, wanted[option][0]),
        option=_option_name(option),
    )


def _option_name(option: str) -> str:
    return "--upright/--rotated" if option == "upright" else f"--{option.replace('_', '-')}"


def _option_text(option: str, value: Any) -> str:
    """An option with a value, as typed."""
    if option == "upright":
        return f"patches are {'--upright' if value else '--rotated'}"
    if value is None:
        return f"there is no {_option_name(option)}"
    return (
        f"{_option_name(option)} is {value:.6g}" if isinstance(value, float) else f"{_option_name(option)} is {value}"
    )
