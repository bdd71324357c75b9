"""Completeness of a published set: files required by its manifest, found, and missing."""

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from eval.protocols.truth import REFERENCE, read_truth
from eval.sets.layouts import CORRUPT_PARIS, HARRIS, PARTS, LocatedSet, find_ground_truth, find_photos, locate
from eval.sets.manifests import Manifest, read_manifest
from index.errors import CairnError
from learning.patches.phototour import bitmap_name, bitmaps_of
from retrieval.photos.listing import list_photos

_QUERIES = {
    "oxford5k": "all_souls ashmolean balliol bodleian christ_church cornmarket hertford keble magdalen pitt_rivers "
    "radcliffe_camera",
    "paris6k": "defense eiffel invalides louvre moulinrouge museedorsay notredame pantheon pompidou sacrecoeur "
    "triomphe",
}
_WITH = {"patches": ("pair_files",), "images": ("queries",)}  # parts of one download
_KINDS = ("query", "good", "ok", "junk")
_PATCHES = ("ref.png", *(f"{kind}{number}.png" for kind in "eht" for number in range(1, 6)))
_SEQUENCE = (*(f"{number}.ppm" for number in range(1, 7)), *(f"H_1_{number}" for number in range(2, 7)))


@dataclass
class SetFinding:
    """Result of checking a set."""

    name: str  # the set
    folder: str | None = None  # its folder; None if nothing of it was found
    # required and found number of each part; extra photos are harmless
    wanted: dict[str, int] = field(default_factory=dict)
    found: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)  # names of missing files, as far as known
    # parts with missing files, even if they have extra files
    incomplete: list[str] = field(default_factory=list)
    # files damaged in the published set too, which are ignored everywhere
    known_bad: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)  # photos of 0 bytes, which count as missing

    def lacks(self, part: str) -> bool:
        """Whether files of a part, or of parts that belong to it, are missing."""
        parts = [part, *(one for one in _WITH.get(part, ()) if one in self.wanted)]
        return part in self.incomplete or any(self.found.get(one, 0) < self.wanted[one] for one in parts)

    @property
    def whole(self) -> bool:
        """Whether the set is complete."""
        return not self.missing and not any(map(self.lacks, self.wanted))

    def as_json(self) -> dict[str, Any]:
        """Dictionary for ``--json``."""
        return {**asdict(self), "whole": self.whole}


def check(name: str, root: Path, manifests: Path | None = None) -> SetFinding:
    """Check whether a set is complete; only names, sizes and lists of patches are read."""
    manifest = read_manifest(name, manifests)
    if not root.is_dir():
        raise CairnError(f"There is no folder {root}; check the name.")
    finding = SetFinding(name)
    _CHECKS[name](manifest, root, finding, manifests)
    return finding


def _count_photos(finding: SetFinding, photos: list[Path]) -> list[Path]:
    """Count photos, listing empty ones and those known to be corrupt separately."""
    good = []
    for path in photos:
        if path.name in CORRUPT_PARIS:
            finding.known_bad.append(path.name)
        elif path.is_file() and path.stat().st_size:
            good.append(path)
        else:
            finding.empty.append(path.name)
    finding.found["images"] = len(good)
    return good


def _check_buildings(manifest: Manifest, root: Path, finding: SetFinding, manifests: Path | None) -> None:
    """Oxford5K, Paris6K, and their Revisited editions."""
    name = manifest.name
    finding.wanted = {part: manifest.layout[part] for part in ("images", "ground_truth")}
    photos, truth = find_photos(name, root), find_ground_truth(name, root)
    stems = set()
    if photos is not None:
        finding.folder = str(photos)
        stems = {path.stem for path in _count_photos(finding, [path for _, path in list_photos([photos])])}
    if truth is None:
        return
    finding.folder = str(truth if truth.is_dir() else truth.parent)
    if truth.is_file():
        finding.found["ground_truth"] = int(truth.stat().st_size > 0)
        return
    names = [
        f"{landmark}_{number}_{kind}.txt"
        for landmark in _QUERIES[name].split()
        for number in range(1, 6)
        for kind in _KINDS
    ]
    there = {path.name for path in truth.glob("*.txt")}
    finding.found["ground_truth"] = len(there & set(names))
    finding.missing += [name for name in names if name not in there]
    if photos is not None:
        bad = {Path(one).stem for one in CORRUPT_PARIS}
        absent = sorted(_stems_in(truth) - stems - bad)
        finding.missing += [f"{stem}.jpg" for stem in absent]
        finding.incomplete += ["images"] if absent else []


def _stems_in(truth: Path) -> set[str]:
    """Stems of the photos in a ground truth."""
    named = set()
    for path in truth.glob("*.txt"):
        words = path.read_text(encoding="utf-8", errors="replace").split()
        if path.stem.endswith("_query"):
            words = [word.removeprefix("oxc1_") for word in words[:1]]
        elif not re.search("_(good|ok|junk)$", path.stem):
            continue
        named.update(words)
    return named


def _check_photos(manifest: Manifest, root: Path, finding: SetFinding, manifests: Path | None) -> None:
    """Sets for which only photos are counted."""
    finding.wanted = dict(manifest.layout)
    try:
        located = locate(manifest.name, root)
    except CairnError:
        return
    finding.folder = str(located.folder)
    if located.queries is not None and manifest.name == "smvs":
        _check_references(finding, located)
        return
    good = _count_photos(finding, list(located.images))
    if "ground_truth" in finding.wanted:
        finding.found["ground_truth"] = int(located.ground_truth is not None)
    if located.queries is not None:
        finding.found["queries"] = len(list_photos([located.queries]))
    elif manifest.name == "smvs":
        finding.found["queries"] = sum(path.name.startswith("sf_q_") for path in good)
    elif "queries" in finding.wanted:  # Holidays: the first photo of each group
        finding.found["queries"] = sum(path.stem.endswith("00") for path in good)
    if manifest.name == "ukbench":
        there = {path.stem for path in good}
        names = (f"ukbench{number:05}" for number in range(finding.wanted["images"]))
        finding.missing += [f"{name}.jpg" for name in names if name not in there]


def _check_references(finding: SetFinding, located: LocatedSet) -> None:
    """Stanford Mobile Visual Search as its archives have it, as many as there are: each query needs its reference."""
    truth = read_truth(located.folder)
    photos = [path for _, path in list_photos([located.folder])]
    good = _count_photos(finding, photos)
    expected = {truth.name_of(path) for path in good if path.parent.name != REFERENCE}
    alone = expected - {query.name for query in truth.queries}
    finding.missing = sorted({"{0}/Reference/{2}.jpg".format(*name.split("/")) for name in alone})
    finding.wanted = {"images": len(photos), "queries": len(expected)}
    finding.found["queries"] = len(expected - alone)


def _check_part(manifest: Manifest, root: Path, finding: SetFinding, manifests: Path | None) -> None:
    """A part of PhotoTour: its list of patches, their bitmaps, and the pair files that experiments read."""
    layout = manifest.layout
    finding.wanted = {"patches": layout["patches"], "pair_files": len(layout["pair_files"])}
    try:
        folder = locate(manifest.name, root).folder
    except CairnError:
        return
    finding.folder = str(folder)
    with (folder / "info.txt").open("rb") as file:
        listed = sum(1 for line in file if line.strip())
    names = {path.name for path in folder.iterdir()}
    bitmaps = [bitmap_name(number) for number in range(bitmaps_of(finding.wanted["patches"]))]
    absent = [name for name in bitmaps if name not in names]
    finding.found["patches"] = listed if not absent else min(listed, max(0, listed - 256 * len(absent)))
    finding.found["pair_files"] = sum(name in names for name in layout["pair_files"])
    finding.missing += absent + [name for name in layout["pair_files"] if name not in names]


def _check_phototour(manifest: Manifest, root: Path, finding: SetFinding, manifests: Path | None) -> None:
    """PhotoTour: its parts, in one folder."""
    for part in PARTS:
        one = check(part, root, manifests)
        finding.wanted[part], finding.found[part] = 1, int(one.whole)
        finding.missing += [f"{part}/{name}" for name in one.missing]
    try:
        finding.folder = str(locate(manifest.name, root).folder)
    except CairnError:
        finding.folder = None


def _check_sequences(manifest: Manifest, root: Path, finding: SetFinding, manifests: Path | None) -> None:
    """HPatches: the complete sequences."""
    finding.wanted = dict(manifest.layout)
    try:
        folder = locate(manifest.name, root).folder
    except CairnError:
        return
    finding.folder = str(folder)
    wanted = _SEQUENCE if manifest.name == "hpatches-sequences" else _PATCHES
    whole = 0
    for sequence in sorted(folder.glob("[iv]_*")):
        names = {path.name for path in sequence.iterdir()} if sequence.is_dir() else set()
        absent = [f"{sequence.name}/{name}" for name in wanted if name not in names]
        whole += not absent
        finding.missing += absent
    finding.found["sequences"] = whole


_CHECKS: dict[str, Callable[[Manifest, Path, SetFinding, Path | None], None]] = {
    **dict.fromkeys(("oxford5k", "paris6k", "roxford5k", "rparis6k"), _check_buildings),
    **dict.fromkeys(("flickr100k", "holidays", "ukbench", "revisitop1m", "gldv2", "smvs"), _check_photos),
    **dict.fromkeys((*PARTS, *HARRIS), _check_part),
    "phototour": _check_phototour,
    **dict.fromkeys(("hpatches", "hpatches-sequences"), _check_sequences),
}
