"""Scenes shown in photos, from their names and tables, for measuring the precision of "verified"."""

import csv
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from index.errors import CairnError
from learning.labels.ground_truth import read_ground_truth

# Sources for which the table of groups has only the source, not the subject of a photo.
_VAGUE = {"geocbir", "hanoihue", "spotlight", "gim", "bsds", "osie", "kodak", "imagenet"}
# Scenes with different names that show the same object, by inspection.
_SAME = {
    "fountain": "castle",
    "oxford_hertford": "oxford_radcliffe_camera",
    "p00005": "p00014",
    "p00146": "p00028",
    "loftr:piazza_san_marco": "san marco",
    "dim:piazza_san_marco": "san marco",
    "loftr:st_pauls_cathedral": "st paul's",
    "dim:st_pauls_cathedral": "st paul's",
    "densematch:images": "st paul's",
    "gtpairs:Notre Dame": "notre dame",
    "glandm:notre_dame": "notre dame",
    "immpairs:false_positive": "notre dame",
    "turtle:turtle": "statue",
    "front:front": "statue",
    "magsacf:Leuven1": "leuven",
    "magsacf:Leuven2": "leuven",
    "yhpano:GrandCanyon1": "grand canyon",
    "yhpano:GrandCanyon2": "grand canyon",
    "magsach:LePoint1": "le point",
    "magsach:LePoint2": "le point",
    "magsach:LePoint3": "le point",
    "magsacf:shout": "lecture room",
    "magsacf:wash": "lecture room",
    "magsacf:elderhalla": "elder hall",
    "magsacf:oldclassicswing": "elder hall",
    "magsacf:booksh": "book shelf",
    "magsacf:zoom": "book shelf",
    "magsacf:glasscasea": "book shelf",
    "magsacf:boxesandbooks": "book shelf",
    "magsacf:temple1": "temple",
    "magsacf:temple2": "temple",
    "icepy4d:cam1": "glacier",
    "icepy4d:cam2": "glacier",
}
# Query photos of a painting that their ground truth does not name.
_ALSO = {"2019_qsd1_w4_00022": "p00075", "2019_qsd2_w1_00020": "p00116"}


@dataclass(frozen=True)
class RelatedPhotos:
    """Photos with known relations: for most pairs, whether they show the same object."""

    name: str
    folders: tuple[Path, ...]
    # by stem: scenes, source, and whether other photos of the source may show the same, too
    shown: Callable[[str], tuple[frozenset[str], str, bool]]

    def same(self, one: str, other: str) -> bool | None:
        """Whether two photos (stems) show the same object; None if unknown."""
        (first, source, vague), (second, other_source, unsure) = self.shown(one), self.shown(other)
        if first & second:
            return None if vague else True
        return None if source == other_source and (vague or unsure) else False


def find_photo_sets(root: Path, names: Iterable[str]) -> list[RelatedPhotos]:
    """Find the sets landmarks, paintings and unlabelled below a folder; raises CairnError if one is missing."""
    makers = {"landmarks": _landmarks, "paintings": _paintings, "unlabelled": _unlabelled}
    sets = []
    for name in names:
        if name not in makers or not (root / name).is_dir():
            raise CairnError(f"There is no set {name!r} in {root}; choose of {', '.join(makers)}.")
        sets.append(makers[name](root / name))
    return sets


def _landmarks(folder: Path) -> RelatedPhotos:
    """Names begin with the scene; distractors may be related to each other, but not to others."""

    def shown(stem: str) -> tuple[frozenset[str], str, bool]:
        if stem.startswith("distractor"):
            return frozenset([stem]), "distractor", True
        scene = re.sub(r"_?\d*$", "", stem)
        return frozenset([_SAME.get(scene, scene)]), "landmarks", False

    return RelatedPhotos("landmarks", (folder / "images",), cache(shown))


def _paintings(folder: Path) -> RelatedPhotos:
    """A painting is a scene, named in the ground truth of its photos; other photos are unknown."""
    named = {
        query.stem: frozenset(_SAME.get(one, one) for one in query.positives)
        for query in read_ground_truth(folder / "gt")
    }

    def shown(stem: str) -> tuple[frozenset[str], str, bool]:
        if re.fullmatch(r"p\d+", stem):
            return frozenset([_SAME.get(stem, stem)]), "paintings", False
        known = named.get(stem, frozenset()) | ({_ALSO[stem]} if stem in _ALSO else frozenset())
        return (known, "queries", False) if known else (frozenset([stem]), "queries", True)

    return RelatedPhotos("paintings", (folder / "images", folder / "queries"), cache(shown))


def _unlabelled(folder: Path) -> RelatedPhotos:
    """The table groups.tsv names the scene of each photo, or only its source."""
    with (folder / "groups.tsv").open(newline="", encoding="utf-8") as file:
        groups = {Path(row["file"]).stem: row["group"] for row in csv.DictReader(file, delimiter="\t")}

    def shown(stem: str) -> tuple[frozenset[str], str, bool]:
        group = groups.get(stem, stem)
        source = group.split(":")[0]
        return frozenset([_SAME.get(group, group)]), source, source in _VAGUE

    return RelatedPhotos("unlabelled", (folder,), cache(shown))
