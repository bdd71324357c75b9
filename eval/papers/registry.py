"""Every experiment by its name."""

from collections.abc import Callable, Sequence

from eval.papers import brown11, revisited, simonyan14_buildings, simonyan14_patches, trzcinski12, yan13
from eval.reproduce.plan import Experiment
from eval.reproduce.steps import Scale
from index.errors import CairnError
from index.text import one_of, shown

ALL = "all"
"""What means all experiments."""

_MAKERS: tuple[Callable[[Scale], Experiment], ...] = (
    simonyan14_patches.table1,
    simonyan14_patches.table2,
    simonyan14_patches.table3,
    simonyan14_buildings.table4,
    simonyan14_buildings.table5,
    simonyan14_patches.figure3,
    simonyan14_patches.figure4,
    simonyan14_patches.figure5,
    simonyan14_patches.figure6,
    simonyan14_patches.figure7,
    simonyan14_buildings.figure8,
    simonyan14_patches.text_lsh,
    simonyan14_buildings.text_regions,
    brown11.table1,
    brown11.table2,
    brown11.table3,
    brown11.table4,
    brown11.table5,
    brown11.figure5,
    brown11.figure6,
    brown11.figure7,
    brown11.figure10,
    brown11.figure12,
    brown11.figure13,
    trzcinski12.figure2,
    trzcinski12.figure3,
    trzcinski12.figure4,
    yan13.table2,
    yan13.table3,
    yan13.table4,
    yan13.figure2,
    yan13.figure3,
    yan13.figure4,
    yan13.figure5,
    yan13.figure6,
    revisited.table5,
    revisited.million,
)


def experiments(scale: Scale | None = None) -> dict[str, Experiment]:
    """Return all experiments by their names, in the order of the papers."""
    made = [make(scale or Scale()) for make in _MAKERS]
    return {one.name: one for one in made}


def chosen(names: Sequence[str], scale: Scale) -> list[Experiment]:
    """The experiments that are named: each by its name, those of a paper by the paper's, or all."""
    known = experiments(scale)
    found: dict[str, Experiment] = {}
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
        found.update(those)
    return list(found.values())
