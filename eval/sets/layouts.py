"""Where the published sets lie below a folder, in whichever of the common layouts they were unpacked.

A set is looked for in the folder itself, then in folders below it that bear one of its names (``oxford5k``,
``roxford5k``, ``paris``, …), in any case of letters, there or in ``test``, ``datasets`` or ``data``. Within such a
home:

- Oxford5K and Paris6K: photos in ``images``, ``jpg``, ``oxbuild_images``, ``paris`` (a folder for each landmark) or in
  the home itself; ground truth in ``gt``, ``gt_files_170407``, ``paris_120310`` or there too.
- Revisited Oxford and Paris: ``gnd_roxford5k.pkl``, ``gnd_rparis6k.pkl``; the photos are those of Oxford5K and Paris6K.
- PhotoTour: a folder for each part, ``notredame`` or, of the Harris points, ``notredame_harris``.
- HPatches: a folder for each sequence, ``i_*`` and ``v_*``.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from index.errors import CairnError
from index.text import one_of
from retrieval.photos.listing import list_photos

PARTS = ("notredame", "yosemite", "liberty")
"""The parts of PhotoTour, each a set by itself too."""

NAMES: tuple[str, ...] = (
    *("oxford5k", "paris6k", "flickr100k", "roxford5k", "rparis6k", "phototour"),
    *PARTS,
    *("hpatches", "holidays", "ukbench"),
)
"""Every set that is known."""

CORRUPT_PARIS = frozenset(
    f"paris_{one}.jpg"
    for one in (
        *("louvre_000136", "louvre_000146", "moulinrouge_000422", "museedorsay_001059", "notredame_000188"),
        *("pantheon_000284", "pantheon_000960", "pantheon_000974", "pompidou_000195", "pompidou_000196"),
        *("pompidou_000201", "pompidou_000467", "pompidou_000640", "sacrecoeur_000299", "sacrecoeur_000330"),
        *("sacrecoeur_000353", "triomphe_000662", "triomphe_000833", "triomphe_000863", "triomphe_000867"),
    )
)
"""The 20 files of Paris6K that are no photos (its ``corrupt.txt``): the set has 6,392 photos without them."""

_HOMES = {
    "oxford5k": ("oxford5k", "oxford", "oxbuild", "oxbuildings", "roxford5k"),
    "paris6k": ("paris6k", "paris", "parisbuildings", "rparis6k"),
    "flickr100k": ("flickr100k", "oxc1_100k", "oxford100k", "ox100k"),
    "roxford5k": ("roxford5k", "oxford5k", "revisitop"),
    "rparis6k": ("rparis6k", "paris6k", "revisitop"),
    "phototour": ("phototour", "photo-tour", "photo_tour", "patchdata", "brown"),
    "hpatches": ("hpatches", "hpatches-release", "hpatches-sequences-release", "hpatches-sequences"),
    "holidays": ("holidays", "inria_holidays", "inria-holidays"),
    "ukbench": ("ukbench",),
}
_ABOVE = ("", "test", "datasets", "data", "data/datasets", "data/test")  # between the given folder and a home
_IMAGES = ("images", "jpg", "oxbuild_images", "oxbuild_images-v1", "paris")
_GROUND_TRUTH = ("gt", "gt_files_170407", "gt_files", "paris_120310", ".")
_OXFORD = "all_souls ashmolean balliol bodleian christ_church cornmarket hertford keble magdalen pitt_rivers radcliffe"
_PARIS = "defense eiffel invalides louvre moulinrouge museedorsay notredame pantheon pompidou sacrecoeur triomphe"
_OTHER_QUERIES = {"oxford5k": tuple(_PARIS.split()), "paris6k": tuple(_OXFORD.split())}
_OTHER_PHOTOS = {
    "oxford5k": re.compile("paris_"),
    "paris6k": re.compile(rf"({'|'.join(_OXFORD.split())})_(camera_)?\d{{6}}\."),
}
_PHOTOS = {  # sets whose photos are told by their names, whatever lies beside them
    "holidays": re.compile(r"1\d{5}\.jpe?g", re.IGNORECASE),
    "ukbench": re.compile(r"ukbench\d{5}\.jpe?g", re.IGNORECASE),
}


@dataclass(frozen=True)
class LocatedSet:
    """A published set that is there.

    Attributes
    ----------
    name : str
        One of `NAMES`.
    folder : Path
        Its home; of a part of PhotoTour the folder of patches, of PhotoTour that of its parts, of HPatches that of the
        sequences.
    images : tuple of Path
        Its photos, in a reproducible order, without those that are known to be corrupt; none for sets of patches.
    ground_truth : Path, optional
        Folder of the ground truth (Oxford5K, Paris6K), or the file ``gnd_*.pkl`` of the Revisited sets, which is never
        to be unpickled; None where the names of the photos say what belongs together.
    """

    name: str
    folder: Path
    images: tuple[Path, ...]
    ground_truth: Path | None


def locate(name: str, root: Path) -> LocatedSet:
    """Find a published set below a folder, or in it.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    root : Path
        A folder that holds sets, or the folder of this one.

    Raises
    ------
    CairnError
        There is no such set, or no such folder, or the set is not there: the sentence says what is missing, and ends
        with the command that gets it.
    """
    if name not in NAMES:
        raise CairnError(f"There is no set {name!r}: choose {one_of(NAMES)}.")
    root = Path(root)
    if not root.is_dir():
        raise CairnError(f"There is no folder {root}; get the set with: {get_command(name, root)}")
    return _FINDERS[name](name, root)


def get_command(name: str, root: Path) -> str:
    """The command that gets a set."""
    return f"cairn data get {name} --root {shlex.quote(str(root))}"


def published_layout(name: str, root: Path) -> tuple[Path, Path]:
    """Find the folders of photos and of ground truth of Oxford5K or Paris6K.

    Parameters
    ----------
    name : {"oxford5k", "paris6k"}
    root : Path
        A folder that holds sets, or the folder of this one.

    Returns
    -------
    images, gt : Path
        Folder of the photos (searched with its subfolders), folder of the ground truth.

    Raises
    ------
    CairnError
        One of them is not there.
    """
    if not root.is_dir():
        raise CairnError(f"There is no folder {root}; get the set with: {get_command(name, root)}")
    for home in homes_of(name, root):
        gt = _ground_truth(name, home)
        if gt is not None:
            return _photo_folder(name, root, home, name), gt
    raise CairnError(f"There is no ground truth of {name} below {root}; get it with: {get_command(name, root)}")


def homes_of(name: str, root: Path) -> Iterator[Path]:
    """Folders where a set may lie: the given one, and those below it that bear one of the set's names."""
    yield root
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


def _photo_folder(name: str, root: Path, beside: Path, wanted: str) -> Path:
    """The folder with the photos of Oxford5K or Paris6K, that in the home of the ground truth first."""
    homes = [beside, *(home for home in homes_of(name, root) if home != beside)]
    folders = [home / images for home in homes for images in _IMAGES]
    # A home itself comes after those: below the given folder may lie photos of every set.
    folders += [home for home in homes if home != root] + [root] * (beside == root)
    for folder in folders:
        if folder.is_dir() and any(not _OTHER_PHOTOS[name].match(path.name) for _, path in list_photos([folder])):
            return folder
    raise CairnError(f"There are no photos of {name} below {root}; get them with: {get_command(wanted, root)}")


def _ground_truth(name: str, home: Path) -> Path | None:
    """The folder of ground truth in a home; one with queries of the other set of buildings does not count."""
    for folder in (home / one for one in _GROUND_TRUTH):
        if any(not path.name.startswith(_OTHER_QUERIES[name]) for path in folder.glob("*_query.txt")):
            return folder
    return None


def _buildings(name: str, root: Path) -> LocatedSet:
    """Oxford5K and Paris6K."""
    images, gt = published_layout(name, root)
    home = next(home for home in homes_of(name, root) if gt in (home, *(home / one for one in _GROUND_TRUTH)))
    return LocatedSet(name, home, _photos(images), gt)


def _photos(folder: Path) -> tuple[Path, ...]:
    return tuple(path for _, path in list_photos([folder]) if path.name not in CORRUPT_PARIS)


def _revisited(name: str, root: Path) -> LocatedSet:
    """The photos of Oxford5K or Paris6K with the ground truth of Radenovic et al. 2018."""
    file = f"gnd_{name}.pkl"
    home = next((home for home in homes_of(name, root) if (home / file).is_file()), None)
    if home is None:
        raise CairnError(f"There is no {file} below {root}; get it with: {get_command(name, root)}")
    folder = _photo_folder(name.removeprefix("r"), root, home, name)
    return LocatedSet(name, home, _photos(folder), home / file)


def _distractors(name: str, root: Path) -> LocatedSet:
    """Flickr100K: all photos in a folder of its name."""
    for home in homes_of(name, root):
        if home.name.lower() in _HOMES[name] and (photos := _photos(home)):
            return LocatedSet(name, home, photos, None)
    raise CairnError(f"There are no photos of {name} below {root}; get them with: {get_command(name, root)}")


def _told_by_names(name: str, root: Path) -> LocatedSet:
    """Holidays and UKBench: the names of the photos say what they are, and which belong together."""
    for home in homes_of(name, root):
        inner = (home / images for images in (*_IMAGES, "full", "."))
        for folder in (one for one in inner if one.is_dir()):
            photos = tuple(sorted(path for path in folder.iterdir() if _PHOTOS[name].fullmatch(path.name)))
            if photos:
                return LocatedSet(name, home, photos, None)
    raise CairnError(f"There are no photos of {name} below {root}; get them with: {get_command(name, root)}")


def _part(name: str, root: Path, wanted: str | None = None) -> LocatedSet:
    """A part of PhotoTour: the folder of patches."""
    folders = [root] if root.name.lower().removesuffix("_harris") == name else []
    folders += [home / called for called in (name, f"{name}_harris") for home in homes_of("phototour", root)]
    for folder in folders:
        for inner in (folder, folder / name):  # the archives hold no folder; some unpack them into one of the same name
            if (inner / "info.txt").is_file():
                return LocatedSet(name, inner, (), None)
    raise CairnError(f"There are no patches of {name} below {root}; get them with: {get_command(wanted or name, root)}")


def _phototour(name: str, root: Path) -> LocatedSet:
    """PhotoTour: the folder that holds all three parts."""
    above = set()
    for part in PARTS:
        folder = _part(part, root, name).folder.parent
        above.add(folder.parent if folder.name.lower().removesuffix("_harris") == part else folder)
    if len(above) > 1:
        raise CairnError(
            f"The parts of PhotoTour lie in different folders below {root}: move them together, or get them again "
            f"with: {get_command(name, root)}"
        )
    return LocatedSet(name, above.pop(), (), None)


def _hpatches(name: str, root: Path) -> LocatedSet:
    """HPatches: the folder of the sequences, as patches or as photos."""
    for home in homes_of(name, root):
        for folder in (home, *(home / one for one in _HOMES[name])):
            if folder.is_dir() and any(
                (one / file).is_file() for one in folder.glob("[iv]_*") for file in ("ref.png", "1.ppm", "1.png")
            ):
                return LocatedSet(name, folder, (), None)
    raise CairnError(f"There are no sequences of HPatches below {root}; get them with: {get_command(name, root)}")


_FINDERS: dict[str, Callable[[str, Path], LocatedSet]] = {
    **dict.fromkeys(("oxford5k", "paris6k"), _buildings),
    **dict.fromkeys(("roxford5k", "rparis6k"), _revisited),
    "flickr100k": _distractors,
    **dict.fromkeys(("holidays", "ukbench"), _told_by_names),
    **dict.fromkeys(PARTS, _part),
    "phototour": _phototour,
    "hpatches": _hpatches,
}
