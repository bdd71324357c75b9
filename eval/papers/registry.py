"""Every experiment by its name."""

from collections.abc import Sequence

from eval.papers import brown11, revisited, simonyan14_buildings, simonyan14_patches, trzcinski12, yan13
from eval.papers.paper import EXPERIMENTS
from eval.reproduce.plan import Experiment
from eval.reproduce.steps import Scale
from index.errors import CairnError
from index.text import one_of, shown

ALL = "all"
"""Name that stands for all experiments."""

_PAPERS = ("simonyan14", "brown11", "trzcinski12", "yan13", "revisited")
_KINDS = ("table", "figure", "text", "million")
_MODULES = (brown11, revisited, simonyan14_buildings, simonyan14_patches, trzcinski12, yan13)  # fill `EXPERIMENTS`


def _place(name: str) -> tuple[int, int, int]:
    """Sort key of experiments: paper, kind, number."""
    paper, _, own = name.partition("/")
    kind = next(kind for kind in _KINDS if own.startswith(kind))
    return _PAPERS.index(paper), _KINDS.index(kind), int(own.removeprefix(kind)) if own[-1].isdecimal() else 0


def experiments(scale: Scale | None = None) -> dict[str, Experiment]:
    """All experiments by name, in the order of the papers."""
    return {name: EXPERIMENTS[name](scale or Scale()) for name in sorted(sorted(EXPERIMENTS), key=_place)}


def chosen(names: Sequence[str], scale: Scale) -> list[Experiment]:
    """Select experiments by name, by paper, or all."""
    known = experiments(scale)
    selection: dict[str, Experiment] = {}
    for name in names:
        those = {key: one for key, one in known.items() if name in (ALL, key, key.partition("/")[0])}
        if not those:
            papers = list(dict.fromkeys(key.partition("/")[0] for key in known))
            raise CairnError(
                "There is no experiment {value}: {cairn reproduce} list names them, those of a paper go by {papers}, "
                "and {all} means all.",
                value=shown(name),
                papers=one_of(papers),
                all=ALL,
            )
        selection.update(those)
    return list(selection.values())
