"""Simonyan, Vedaldi, Zisserman (TPAMI 2014), section 10.2: descriptors learnt from photos without labels."""

from collections.abc import Mapping, Sequence

from eval.papers.buildings import TITLES, mean_precision, searched
from eval.papers.paper import Parts, table_of_map
from eval.papers.phototour import drawing, made
from eval.papers.simonyan14_patches import QUICK_PROJECTIONS, QUICK_REGIONS, experiment
from eval.reproduce.measures import DifferenceOfTwo, PercentAbove, PerOne, Value
from eval.reproduce.plan import Cell, Plot, Series, Table
from eval.reproduce.steps import Argument, Data, Here, Made, Scale, Step

_ENGINES = ("tf-idf", "tf-idf-sp")
_TURNED: tuple[Argument, ...] = ("--detector", "hessian-affine", "--measurement-scale", "1.7320508", "--rotated")
"""Section 10.2.2 and table 5: the features of earlier work."""

_AS_TABLE_4: tuple[Argument, ...] = ("--as-published", "simonyan14")
_AS_TABLE_5: tuple[Argument, ...] = ("--as-published", "simonyan14/table5")
_AS_FIGURE_8: tuple[Argument, ...] = (
    *("--upright", "--turns", "1", "--signature", "none", "--max-features", "0", "--vocabulary-photos", "all"),
)

_TABLE_4 = {
    "oxford5k": {"rootSIFT": (0.795, 0.858), "rootSIFT-proj": (0.820, 0.888), "PR-proj": (0.825, 0.883)},
    "paris6k": {"rootSIFT": (0.780, 0.796), "rootSIFT-proj": (0.802, 0.817), "PR-proj": (0.810, 0.827)},
}
_RAW = {"oxford5k": {"rootSIFT-proj": 0.919, "PR-proj": 0.926}, "paris6k": {"rootSIFT-proj": 0.862, "PR-proj": 0.869}}
_TABLE_5 = {
    "oxford5k": {"SIFT": (0.636, 0.667), "SIFT-proj": (0.673, 0.706), "PR-proj": (0.709, 0.749)},
    "paris6k": {"SIFT": (0.656, 0.668), "PR-proj": (0.711, 0.722)},
}
_PHILBIN = {
    "oxford5k": {"SIFT": (0.613, 0.647), "SIFT-proj": (0.636, 0.665), "non-linear": (0.662, 0.707)},
    "paris6k": {"SIFT": (0.655, 0.669), "non-linear": (0.678, 0.689)},
}
"""Values in table 5 from Philbin et al. (ECCV 2010)."""
_PHILBIN_GAINS = {
    "oxford5k": {"SIFT-proj": (3.8, 2.8), "non-linear": (8.0, 9.3)},
    "paris6k": {"non-linear": (3.5, 3.0)},
}
_TABLE_5_GAINS = {
    "oxford5k": {"SIFT-proj": (5.8, 5.8), "PR-proj": (11.5, 12.3)},
    "paris6k": {"PR-proj": (8.4, 8.1)},
}
_DETECTORS = {"hessian-affine": ("HesAff", 3.0), "dog-affine": ("DoGAff", 1.0)}
"""Title, and radius of the detected region in scales σ of the detection, the factor of `--measurement-scale`."""
_SIZES = (5.196, 8.0, 12.5, 16.0, 20.0, 24.0)
"""Half the sides of measurement regions, in σ: from √3 times the region of Hessian-Affine."""

_WORDS = (
    "The paper does not say which photos its 500,000 words are made from: here those that are searched. Regions and "
    "verification are Cairn's own, not those of VLFeat and of its engine."
)
_LEARNING = (
    "The paper lists no values of μ, γ and K and no number of matches: here those of `cairn mine` and `cairn learn "
    "descriptor --as-published`. N(x) is the nearest negatives of a photo, looked for again with what was learnt, and "
    "not all of them."
)
_NOTES = (
    "Descriptors are learnt from Oxford5K without its ground truth; Paris6K shows how they do on photos of another "
    "place.",
)


def mined(scale: Scale, settings: tuple[Argument, ...] = ()) -> Step:
    """Mine matches from Oxford5K (section 9)."""
    share = () if scale.whole else ("--pairs", scale.count(10_000, 40), "--inliers", "10")
    return Step(
        f"Matches of Oxford5K{', turned patches' if settings else ''}",
        ("mine", Data("oxford5k", "images"), "--as-published", *settings, *share, "--out", Here("matches.npz")),
        scale.hours(6.0),
    )


def learnt(scale: Scale, kind: str, settings: tuple[Argument, ...] = ()) -> Step:
    """Learn from the matches: ``PR-proj``, ``rootSIFT-proj`` or ``SIFT-proj``."""
    matches = Made(mined(scale, settings), "matches.npz")
    own: tuple[Argument, ...]
    if kind == "PR-proj":
        own = ("--stage", "both", "--max-pooled-dim", "576", "--dim", "127")
    else:
        own = ("--stage", "projection", "--base", kind.removesuffix("-proj").lower(), "--dim", "128")
    grid: tuple[Argument, ...] = ()
    if scale.share < 0.01:
        grid = (*QUICK_PROJECTIONS, "--share", "0.7", "--alternations", "2", "--rounds", "1")
        grid = (*grid, *QUICK_REGIONS) if kind == "PR-proj" else grid
    return Step(
        f"{kind} from the matches of Oxford5K",
        (
            *("learn", "descriptor", matches, "--as-published", *own, *grid),
            "--out",
            Here(f"{kind.lower()}.npz"),
            "--work",
            Here("work"),
        ),
        scale.hours(10.0 if kind == "PR-proj" else 3.0),
    )


@experiment(", table 4, and raw descriptors in section 10.2.3", _WORDS, _LEARNING, notes=_NOTES)
def table4(scale: Scale) -> Parts:
    """Descriptors learnt from Oxford5K without labels, compared with rootSIFT."""
    cells = []
    for dataset, rows in _TABLE_4.items():
        for kind, published in rows.items():
            descriptor = _descriptor(kind, scale, ())
            firsts: list[Step] = []
            for engine, value in zip(_ENGINES, published, strict=True):
                step = _search(dataset, scale, descriptor, kind, engine, _AS_TABLE_4, firsts)
                cells.append(Cell(f"{TITLES[dataset]}, {kind}", engine, mean_precision(step), value))
            raw = _RAW[dataset].get(kind)
            if raw is not None:
                step = _search(dataset, scale, descriptor, kind, "raw", _AS_TABLE_4, [])
                cells.append(Cell(f"{TITLES[dataset]}, {kind}", "raw descriptors", mean_precision(step), raw))
    regions = drawing("Pooling regions learnt on Oxford5K (figure 5, right)", learnt(scale, "PR-proj"), "regions")
    return (table_of_map(cells), regions)


@experiment(
    ", table 5",
    _WORDS,
    _LEARNING,
    "What Philbin et al. learnt is not built here: its numbers are the published ones alone.",
    notes=_NOTES,
)
def table5(scale: Scale) -> Parts:
    """Learnt descriptors compared with SIFT, on features as earlier work had them."""
    cells, gains = [], []
    for dataset, rows in _TABLE_5.items():
        bases = {}
        for kind, published in rows.items():
            descriptor = _descriptor(kind, scale, _TURNED)
            firsts: list[Step] = []
            for place, engine in enumerate(_ENGINES):
                step = _search(dataset, scale, descriptor, kind, engine, _AS_TABLE_5, firsts)
                name, precision = f"{TITLES[dataset]}, {kind}", mean_precision(step)
                cells.append(Cell(name, engine, precision, published[place]))
                if kind == "SIFT":
                    bases[engine] = precision
                else:
                    known = _TABLE_5_GAINS[dataset][kind][place]
                    gains.append(Cell(name, engine, PercentAbove(precision, bases[engine]), known))
        cells += _others(dataset, _PHILBIN[dataset])
        gains += _others(dataset, _PHILBIN_GAINS[dataset])
    return (
        table_of_map(cells),
        Table("Gain over SIFT", "Percent of SIFT's mAP", tuple(gains), digits=1, better="higher"),
    )


def _others(dataset: str, published: Mapping[str, Sequence[float]]) -> list[Cell]:
    """Published values of Philbin et al., for methods that are not implemented here."""
    return [
        Cell(f"{TITLES[dataset]}, Philbin10, {kind}", engine, None, value)
        for kind, values in published.items()
        for engine, value in zip(_ENGINES, values, strict=True)
    ]


@experiment(
    ", figure 8",
    "The paper's axis is the factor that a detected region is enlarged by. A region of Hessian-Affine has a "
    "radius of 3 σ, one of VLFeat's DoG-Affine of σ: so that both can share an axis, it is in σ here, and the "
    "paper's √3 of the one and 12.5 of the other are at 5.2 and 12.5.",
    "The factors that the paper measured cannot be read off its text.",
    _WORDS,
)
def figure8(scale: Scale) -> Parts:
    """Detectors and measurement regions."""
    series = []
    for detector, (title, radius) in _DETECTORS.items():
        points = []
        for size in _SIZES:
            step = _rootsift(scale, detector, f"{size / radius:.4g}", "tf-idf-sp", _AS_FIGURE_8)
            points.append((size, mean_precision(step)))
        series.append(Series(title, tuple(points)))
    return Plot("rootSIFT, tf-idf-sp, upright", "half the patch's side, σ of the detection", "mAP", tuple(series))


@experiment(
    ", section 10.2.2",
    "The paper does not say which descriptor and engine its 5.1% and 5% are of, nor whether they are points of "
    "mAP: here rootSIFT and tf-idf-sp, as in figure 8, and points, as in its section 10.2.3.",
    "Thresholds of Cairn's detectors are chosen for the paper's counts, on other photos.",
    _WORDS,
)
def text_regions(scale: Scale) -> Parts:
    """Upright patches, and regions a photo."""
    gains, counts = [], []
    for detector, (title, _) in _DETECTORS.items():
        size = {"hessian-affine": "1.732", "dog-affine": "12.5"}[detector]
        upright, turned = (
            _rootsift(scale, detector, size, "tf-idf-sp", (way, *_AS_FIGURE_8[1:]))
            for way in ("--upright", "--rotated")
        )
        gain = DifferenceOfTwo(mean_precision(upright), mean_precision(turned), 100)
        gains += [
            Cell(title, "turned", _percent(turned)),
            Cell(title, "upright", _percent(upright)),
            Cell(title, "upright less turned", gain, {"HesAff": 5.1, "DoGAff": 5.0}[title]),
        ]
        counts.append(
            Cell(
                title,
                "regions",
                PerOne(Value(upright, ("features",)), Value(upright, ("images",))),
                {"HesAff": 3500, "DoGAff": 5500}[title],
            )
        )
    return (
        Table("mAP", "Points of mAP, percent", tuple(gains), digits=1, better="higher"),
        Table("Regions a photo", "Regions, the mean over Oxford5K", tuple(counts), digits=0, better=""),
    )


def _percent(step: Step) -> Value:
    return Value(step, ("mAP",), 100)


def _rootsift(scale: Scale, detector: str, size: str, engine: str, settings: tuple[Argument, ...]) -> Step:
    """Search Oxford5K with rootSIFT on regions of a detector, enlarged by `size`."""
    chosen = (*settings, "--detector", detector, "--measurement-scale", size)
    turned = ", turned" if "--rotated" in settings else ""
    return _search(
        "oxford5k", scale, "rootsift", f"{_DETECTORS[detector][0]}, scale {size}{turned}", engine, chosen, []
    )


def _descriptor(kind: str, scale: Scale, settings: tuple[Argument, ...]) -> Argument:
    """A designed descriptor by name, or a learnt one, on the regions used in searches."""
    return made(learnt(scale, kind, settings)) if kind.endswith("-proj") else kind.lower()


def _search(
    dataset: str,
    scale: Scale,
    descriptor: Argument,
    kind: str,
    engine: str,
    settings: tuple[Argument, ...],
    firsts: list[Step],
) -> Step:
    """Search with a descriptor; the first of several engines indexes."""
    step = searched(
        dataset,
        scale,
        (*settings, "--descriptor", descriptor),
        ("--engine", engine),
        title=f"{kind}, {engine}",
        first=firsts[0] if firsts else None,
    )
    firsts.append(step)
    return step
