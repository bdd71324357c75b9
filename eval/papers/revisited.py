"""Radenović et al. (CVPR 2018): Oxford5K and Paris6K with new annotation, and three protocols."""

from collections.abc import Mapping, Sequence

from eval.papers.buildings import TITLES, searched
from eval.papers.paper import Parts, of_paper
from eval.reproduce.measures import Value
from eval.reproduce.plan import Cell, Table
from eval.reproduce.steps import Scale, Step

SOURCE = "Radenović, Iscen, Tolias, Avrithis, Chum: Revisiting Oxford and Paris (CVPR 2018)"
experiment = of_paper("revisited", SOURCE)

# Table 5: HesAff, rootSIFT, ASMK* and spatial verification.
_PUBLISHED = {"roxford5k": {"medium": 60.6, "hard": 36.7}, "rparis6k": {"medium": 61.4, "hard": 35.0}}
_AMONG_A_MILLION = {"roxford1m": {"medium": 46.8, "hard": 26.9}, "rparis1m": {"medium": 42.3, "hard": 16.8}}
_DIFFERS = (
    "Regions, rootSIFT and spatial verification are Cairn's own, and photos are reduced to 1,024 pixels; the published "
    "ones are of its authors' programs.",
    "The published vocabulary of 65,536 words is made of other landmark photos (of the other set at first); here it is "
    "made of the photos that are searched, which reads higher.",
)
_FEATURES = ("--descriptor", "rootsift", "--detector", "hessian-affine", "--turns", "1", "--max-side", "1024")
_ENGINES = ("tf-idf", "tf-idf-sp", "signatures", "asmk", "asmk-sp")


def _cells(dataset: str, engine: str, step: Step, published: Mapping[str, float]) -> list[Cell]:
    """Results of one engine, by protocol."""
    return [
        Cell(
            f"{TITLES[dataset]}, {engine}",
            protocol,
            Value(step, ("protocols", protocol, "mAP"), 100),
            published.get(protocol),
        )
        for protocol in ("easy", "medium", "hard")
    ]


def _table(cells: Sequence[Cell]) -> Table:
    return Table("mAP", "Mean average precision, percent", tuple(cells), digits=1, better="higher")


@experiment(", table 5: HesAff–rSIFT–ASMK* with spatial verification", *_DIFFERS)
def table5(scale: Scale) -> Parts:
    """Engines of local features, by protocol."""
    cells: list[Cell] = []
    for dataset, published in _PUBLISHED.items():
        firsts: list[Step] = []
        for engine in _ENGINES:
            step = searched(
                dataset,
                scale,
                _FEATURES,
                ("--engine", engine),
                title=engine,
                words=65_536,
                first=firsts[0] if firsts else None,
            )
            firsts.append(step)
            cells += _cells(dataset, engine, step, published if engine == "asmk-sp" else {})
    return _table(cells)


@experiment(
    ": HesAff–rSIFT–ASMK* with spatial verification, R1M",
    *_DIFFERS,
    notes=(
        "The published numbers are as Phan, Nguyen, Warrier and Gupta (ACCV 2022) cite them: we have not read them "
        "in the paper itself.",
    ),
)
def million(scale: Scale) -> Parts:
    """Local features among a million distractors."""
    cells: list[Cell] = []
    for dataset, published in _AMONG_A_MILLION.items():
        step = searched(dataset, scale, _FEATURES, ("--engine", "asmk-sp"), title="asmk-sp", words=65_536)
        cells += _cells(dataset, "asmk-sp", step, published)
    return _table(cells)
