"""Locate the published sets below a folder, in whichever of the common layouts they were unpacked.

A set is looked for in folders with one of its names (``oxford5k``, ``roxford5k``, ``paris``, …), in any case of
letters, below the root or in ``test``, ``datasets`` or ``data`` there; then in the root itself. Within such a home:

- Oxford5K and Paris6K: photos in ``images``, ``jpg``, ``oxbuild_images``, ``paris`` (a folder for each landmark) or in
  the home itself; ground truth in ``gt``, ``gt_files_170407``, ``paris_120310`` or there too.
- Revisited Oxford and Paris: ``gnd_roxford5k.pkl``, ``gnd_rparis6k.pkl``; the photos are those of Oxford5K and Paris6K.
- PhotoTour: a folder for each part, such as ``notredame``, and for those of Harris corners, ``notredame_harris``.
- Revisited's million distractors: ``revisitop1m``, the photos in ``jpg`` or there.
- Google Landmarks v2: photos in ``index`` and ``test``; ``retrieval_solution_v2.1.csv`` in ``test``, in
  ``ground_truth`` or there.
- Stanford Mobile Visual Search: a folder for each category, in it ``Reference`` and one for each camera, such as
  ``Droid``; or a part of its landmarks: photos ``sf_q_*`` and ``sf_r_*`` in ``images``, ground truth in ``gt`` (in the
  layout of Oxford5K).
- HPatches: a folder for each sequence, ``i_*`` and ``v_*``, with patches (``ref.png``) or photos (``1.ppm``).
"""

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from eval.protocols.truth import REFERENCE, categories_of
from index.errors import CairnError
from index.text import one_of
from retrieval.photos.listing import list_photos

PARTS = ("notredame", "yosemite", "liberty")
"""The parts of PhotoTour, each also a separate set."""

HARRIS = tuple(f"{part}_harris" for part in PARTS)
"""The same scenes at Harris corners (Brown11, figure 12), not included in reported results on PhotoTour."""

NAMES: tuple[str, ...] = (
    *("oxford5k", "paris6k", "flickr100k", "roxford5k", "rparis6k", "phototour"),
    *PARTS,
    *HARRIS,
    *("hpatches", "hpatches-sequences", "holidays", "ukbench", "revisitop1m", "gldv2", "smvs"),
)
"""All known sets."""

CORRUPT_PARIS = frozenset(
    f"paris_{one}.jpg"
    for one in (
        *("louvre_000136", "louvre_000146", "moulinrouge_000422", "museedorsay_001059", "notredame_000188"),
        *("pantheon_000284", "pantheon_000960", "pantheon_000974", "pompidou_000195", "pompidou_000196"),
        *("pompidou_000201", "pompidou_000467", "pompidou_000640", "sacrecoeur_000299", "sacrecoeur_000330"),
        *("sacrecoeur_000353", "triomphe_000662", "triomphe_000833", "triomphe_000863", "triomphe_000867"),
    )
)
"""The 20 corrupt files of Paris6K (its ``corrupt.txt``): the set has 6,392 photos without them."""

_HOMES = {
    "oxford5k": ("oxford5k", "oxford", "oxbuild", "oxbuildings", "roxford5k"),
    "paris6k": ("paris6k", "paris", "parisbuildings", "rparis6k"),
    "flickr100k": ("flickr100k", "oxc1_100k", "oxford100k", "ox100k"),
    "roxford5k": ("roxford5k", "oxford5k", "revisitop"),
    "rparis6k": ("rparis6k", "paris6k", "revisitop"),
    "phototour": ("phototour", "photo-tour", "photo_tour", "patchdata", "brown"),
    "hpatches": ("hpatches", "hpatches-release", "hpatches-sequences-release", "hpatches-sequences"),
    "hpatches-sequences": ("hpatches", "hpatches-sequences", "hpatches-sequences-release"),
    "holidays": ("holidays", "inria_holidays", "inria-holidays"),
    "ukbench": ("ukbench",),
    "revisitop1m": ("revisitop1m",),
    "gldv2": ("gldv2", "gldv2_dataset", "google-landmarks-v2", "google-landmark"),
    "smvs": ("smvs", "wild"),
}
_ABOVE = ("", "test", "datasets", "data", "data/datasets", "data/test")  # between the root and a home
_SOLUTION = "retrieval_solution_v2.1.csv"
_REVISITED = ("roxford5k", "rparis6k")
_IMAGES = ("images", "jpg", "oxbuild_images", "oxbuild_images-v1", "paris")
_GROUND_TRUTH = ("gt", "gt_files_170407", "gt_files", "paris_120310", ".")
_OXFORD = "all_souls ashmolean balliol bodleian christ_church cornmarket hertford keble magdalen pitt_rivers radcliffe"
_PARIS = "defense eiffel invalides louvre moulinrouge museedorsay notredame pantheon pompidou sacrecoeur triomphe"
_OTHER_QUERIES = {"oxford5k": tuple(_PARIS.split()), "paris6k": tuple(_OXFORD.split())}
_OTHER_PHOTOS = {
    "oxford5k": re.compile("paris_"),
    "paris6k": re.compile(rf"({'|'.join(_OXFORD.split())})_(camera_)?\d{{6}}\."),
}
_PHOTOS = {  # sets whose photos are recognised by name, among any other files
    "holidays": re.compile(r"1\d{5}\.jpe?g", re.IGNORECASE),
    "ukbench": re.compile(r"ukbench\d{5}\.jpe?g", re.IGNORECASE),
}


@dataclass(frozen=True)
class LocatedSet:
    """A located published set."""

    name: str  # one of `NAMES`
    # its home; for a part of PhotoTour the folder of patches, for PhotoTour the folder of its parts, for HPatches the
    # folder of sequences
    folder: Path
    # its photos, in a reproducible order, without those known to be corrupt; empty for sets of patches
    images: tuple[Path, ...]
    # folder of the ground truth (Oxford5K, Paris6K), or the file ``gnd_*.pkl`` of the Revisited sets, which must never
    # be unpickled; the table of Google Landmarks; None if the names of the photos define it
    ground_truth: Path | None
    queries: Path | None = None  # folder of query photos outside the images


def locate(name: str, root: Path) -> LocatedSet:
    """Find a published set below a folder, or in it."""
    if name not in NAMES:
        raise CairnError(f"There is no set {name!r}: choose {one_of(NAMES)}.")
    root = Path(root)
    if not root.is_dir():
        raise CairnError(f"There is no folder {root}: {get_command(name, root)} gets it.")
    return _FINDERS[name](name, root)


def get_command(name: str, root: Path) -> str:
    """The command that gets a set."""
    return f"cairn data get {name} --root {shlex.quote(str(root))}"


def published_layout(name: str, root: Path) -> tuple[Path, Path]:
    """Folders of photos (with subfolders) and of ground truth of Oxford5K or Paris6K."""
    if not root.is_dir():
        raise CairnError(f"There is no folder {root}: {get_command(name, root)} gets it.")
    gt = find_ground_truth(name, root)
    if gt is None:
        raise CairnError(f"There is no ground truth of {name} below {root}: {get_command(name, root)} gets it.")
    images = find_photos(name, root)
    if images is None:
        raise _no_photos(name, root)
    return images, gt


def _no_photos(name: str, root: Path, wanted: str | None = None) -> CairnError:
    return CairnError(f"There are no photos of {name} below {root}: {get_command(wanted or name, root)} gets them.")


def homes_of(name: str, root: Path) -> Iterator[Path]:
    """Candidate folders of a set: folders below the root with one of the set's names, then the root itself."""
    seen = {root.resolve()}
    for folder in (root / above for above in _ABOVE):
        if not folder.is_dir():
            continue
        entries = {entry.name.lower(): entry for entry in sorted(folder.iterdir(), reverse=True)}
        for alias in _HOMES[name]:
            home = entries.get(alias)
            if home is not None and home.is_dir() and home.resolve() not in seen:
                seen.add(home.resolve())
                yield home
    yield root


def find_photos(name: str, root: Path) -> Path | None:
    """The folder with the photos of Oxford5K or Paris6K, preferably next to a ground truth; None if missing. `name`: a
    Revisited set has the photos of the set it is made of, and prefers those besides its own ground truth.
    """
    truth, photos_of = find_ground_truth(name, root), name.removeprefix("r")
    homes = list(homes_of(photos_of, root))
    if truth is not None:
        truth_home = next(home for home in homes_of(name, root) if truth in _truth_places(name, home))
        homes = [truth_home, *(home for home in homes if home != truth_home)]
    folders = [home / images for home in homes for images in _IMAGES]
    # A home itself comes last: the root may hold photos of all sets.
    folders += [home for home in homes if home != root]
    folders += [root] if truth is not None and homes[0] == root else []
    for folder in folders:
        if folder.is_dir() and any(not _OTHER_PHOTOS[photos_of].match(path.name) for _, path in list_photos([folder])):
            return folder
    return None


def find_ground_truth(name: str, root: Path) -> Path | None:
    """The folder or file of the ground truth of Oxford5K, Paris6K (by its queries) or a Revisited set, or None."""
    for home in homes_of(name, root):
        for place in _truth_places(name, home):
            if place.is_file() if name in _REVISITED else _has_queries(name, place):
                return place
    return None


def _truth_places(name: str, home: Path) -> list[Path]:
    return [home / one for one in ((f"gnd_{name}.pkl",) if name in _REVISITED else _GROUND_TRUTH)]


def _has_queries(name: str, folder: Path) -> bool:
    return any(not path.name.startswith(_OTHER_QUERIES[name]) for path in folder.glob("*_query.txt"))


def _buildings(name: str, root: Path) -> LocatedSet:
    """Oxford5K and Paris6K."""
    images, gt = published_layout(name, root)
    home = next(home for home in homes_of(name, root) if gt in _truth_places(name, home))
    return LocatedSet(name, home, _photos(images), gt)


def _photos(folder: Path) -> tuple[Path, ...]:
    return tuple(path for _, path in list_photos([folder]) if path.name not in CORRUPT_PARIS)


def _revisited(name: str, root: Path) -> LocatedSet:
    """The photos of Oxford5K or Paris6K with the ground truth of Radenovic et al. 2018."""
    truth = find_ground_truth(name, root)
    if truth is None:
        raise CairnError(f"There is no gnd_{name}.pkl below {root}: {get_command(name, root)} gets it.")
    folder = find_photos(name, root)
    if folder is None:
        raise _no_photos(name.removeprefix("r"), root, name)
    return LocatedSet(name, truth.parent, _photos(folder), truth)


def _distractors(name: str, root: Path) -> LocatedSet:
    """Flickr100K, and Revisited's million: all photos in a folder of its name."""
    for home in homes_of(name, root):
        if home.name.lower() in _HOMES[name] and (photos := _photos(home)):
            return LocatedSet(name, home, photos, None)
    raise _no_photos(name, root)


def _landmarks(name: str, root: Path) -> LocatedSet:
    """Google Landmarks v2: the photos of the index and of the test set, and its ground truth."""
    for home in homes_of(name, root):
        tables = (home / place / _SOLUTION for place in ("test", "ground_truth", "."))
        truth = next((table for table in tables if table.is_file()), None)
        if truth is not None and (home / "index").is_dir() and (home / "test").is_dir():
            return LocatedSet(name, home, _photos(home / "index"), truth, home / "test")
    raise _no_photos(name, root)


def _mobile(name: str, root: Path) -> LocatedSet:
    """Stanford Mobile Visual Search: its categories, or a part of its landmarks in one folder."""
    for home in homes_of(name, root):
        if categories := categories_of(home):
            photos = tuple(path for one in categories for path in _photos(one / REFERENCE))
            return LocatedSet(name, home, photos, home, home)
        if (home / "gt").is_dir() and (home / "images").is_dir():
            photos = tuple(path for path in _photos(home / "images") if path.name.startswith(("sf_q_", "sf_r_")))
            if photos:
                return LocatedSet(name, home, photos, home / "gt")
    raise _no_photos(name, root)


def _grouped_by_names(name: str, root: Path) -> LocatedSet:
    """Holidays and UKBench: the names of the photos define their groups."""
    for home in homes_of(name, root):
        inner = (home / images for images in (*_IMAGES, "full", "."))
        for folder in (one for one in inner if one.is_dir()):
            photos = tuple(sorted(path for path in folder.iterdir() if _PHOTOS[name].fullmatch(path.name)))
            if photos:
                return LocatedSet(name, home, photos, None)
    raise _no_photos(name, root)


def _part(name: str, root: Path, wanted: str | None = None) -> LocatedSet:
    """A part of PhotoTour: the folder of patches."""
    folders = [root] if root.name.lower() == name else []
    folders += [home / name for home in homes_of("phototour", root)]
    for folder in folders:
        for inner in (folder, folder / name):  # the archives have no folder; some unpack them into one of the same name
            if (inner / "info.txt").is_file():
                return LocatedSet(name, inner, (), None)
    raise CairnError(f"There are no patches of {name} below {root}: {get_command(wanted or name, root)} gets them.")


def _phototour(name: str, root: Path) -> LocatedSet:
    """PhotoTour: the folder that holds all three parts."""
    above = set()
    for part in PARTS:
        folder = _part(part, root, name).folder.parent
        above.add(folder.parent if folder.name.lower() == part else folder)
    if len(above) > 1:
        raise CairnError(
            f"The parts of PhotoTour lie in different folders below {root}: move them together, or let "
            f"{get_command(name, root)} get them again."
        )
    return LocatedSet(name, above.pop(), (), None)


def _hpatches(name: str, root: Path) -> LocatedSet:
    """HPatches: the folder of the sequences, for ``hpatches`` the folder of patches if it exists."""
    folders = [folder for home in homes_of(name, root) for folder in (home, *(home / one for one in _HOMES[name]))]
    kinds = (("1.ppm", "1.png"),) if name == "hpatches-sequences" else (("ref.png",), ("1.ppm", "1.png"))
    for files in kinds:
        for folder in folders:
            if any((one / file).is_file() for one in folder.glob("[iv]_*") for file in files):
                return LocatedSet(name, folder, (), None)
    raise CairnError(f"There are no sequences of HPatches below {root}: {get_command(name, root)} gets them.")


_FINDERS: dict[str, Callable[[str, Path], LocatedSet]] = {
    **dict.fromkeys(("oxford5k", "paris6k"), _buildings),
    **dict.fromkeys(("roxford5k", "rparis6k"), _revisited),
    **dict.fromkeys(("flickr100k", "revisitop1m"), _distractors),
    "gldv2": _landmarks,
    "smvs": _mobile,
    **dict.fromkeys(("holidays", "ukbench"), _grouped_by_names),
    **dict.fromkeys((*PARTS, *HARRIS), _part),
    "phototour": _phototour,
    **dict.fromkeys(("hpatches", "hpatches-sequences"), _hpatches),
}
