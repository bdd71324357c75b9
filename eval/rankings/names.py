"""Resolution of names in a ranking to photos and queries of a ground truth."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache

from eval.rankings.files import Rankings
from eval.rankings.ground_truth import JudgedQuery
from index.errors import CairnError
from index.text import shown
from retrieval.catalogue.photo_lookup import PhotoLookup
from retrieval.photos.listing import PHOTO_SUFFIXES

_PREFIX = "oxc1_"  # prefix of photo names, only in the query files of Oxford5K


def plain_name(name: str) -> str:
    r"""Return a photo's name without folder and extension, as in ground truths.

    >>> plain_name("oxbuild_images/all_souls_000013.jpg"), plain_name(r"C:\photos\st. paul.JPG"), plain_name("v1.2")
    ('all_souls_000013', 'st. paul', 'v1.2')
    """
    last = re.split(r"[/\\]", name)[-1]
    stem, dot, ending = last.rpartition(".")
    return stem if stem and f"{dot}{ending}".lower() in PHOTO_SUFFIXES else last


def known_as(name: str, named: Set[str]) -> str:
    """Return the name of a photo in a ground truth, or `name` itself if there is no match.

    Without a match apart from folder and extension, case and composition of letters are ignored, and the ground truth's
    name may have the extension: see `PhotoLookup`.
    """
    return _known_exactly(name, named) or _known_loosely(name, frozenset(named)) or name


def _known_exactly(name: str, named: Set[str]) -> str | None:
    ways = (name, plain_name(name), plain_name(name).removeprefix(_PREFIX))
    return next((way for way in ways if way in named), None)


def _known_loosely(name: str, named: frozenset[str]) -> str | None:
    lookup, names = _lookup_of(named)
    for way in (name, plain_name(name)):
        match = lookup.find(way)
        if isinstance(match, int):
            return names[match]
    return None


@lru_cache(maxsize=2)
def _lookup_of(named: frozenset[str]) -> tuple[PhotoLookup, list[str]]:
    names = sorted(named)
    return PhotoLookup([(number, name, name) for number, name in enumerate(names)]), names


def settle_photos(
    photos: Sequence[str], named: Set[str], query: str, rankings: Rankings, known: dict[str, str]
) -> list[str]:
    """Return the names of a ranking's photos in a ground truth; `known` caches lookups."""
    source, distractors = rankings.source, rankings.distractors
    if both := named & distractors:
        raise CairnError(
            f"{source} has a distractor {shown(min(both))}, which is the name of a photo in the ground truth: write it "
            "with its folder."
        )
    for photo in photos:
        if photo not in known:
            known[photo] = photo if photo in distractors else known_as(photo, named)
    settled = [known[photo] for photo in photos]
    if len(set(settled)) < len(settled):
        # Of two photos whose names differ only in case, the ground truth may have one.
        exact = {exact_name for photo in photos if (exact_name := _known_exactly(photo, named)) is not None}
        settled = [
            photo if name in exact and _known_exactly(photo, named) is None else name
            for photo, name in zip(photos, settled, strict=True)
        ]
    if len(set(settled)) < len(settled):
        first: dict[str, int] = {}
        for place, name in enumerate(settled):
            if name in first:
                raise CairnError(
                    f"{source} ranks the photo {shown(name)} twice for the query {shown(query)}, as number "
                    f"{first[name] + 1} ({shown(photos[first[name]])}) and {place + 1} ({shown(photos[place])}): keep "
                    "the better one."
                )
            first[name] = place
    return settled


def settle_queries(
    photos: Mapping[str, list[str]], queries: Sequence[JudgedQuery], source: str
) -> dict[str, list[str]]:
    """Return rankings by the query names of a ground truth; a file may name a query by its photo if that is unique."""
    by_name = {query.name: query.name for query in queries}
    of_photo: dict[str, list[str]] = {}
    for query in queries:
        of_photo.setdefault(query.stem, []).append(query.name)
    by_photo = {stem: names[0] for stem, names in of_photo.items() if len(names) == 1}
    settled: dict[str, list[str]] = {}
    written: dict[str, str] = {}
    for name, ranked in photos.items():
        match = _query_of(name, by_name) or _query_of(name, by_photo) or by_photo.get(known_as(name, by_photo.keys()))
        if match is None:
            raise CairnError(
                f"{source} has a ranking for {shown(name)}, which is no query of the ground truth: its "
                f"{len(by_name)} queries have names such as {shown(min(by_name))}."
            )
        if match in settled:
            raise CairnError(
                f"{source} has two rankings for the query {shown(match)}, as {shown(written[match])} and "
                f"{shown(name)}: keep one of them."
            )
        settled[match], written[match] = ranked, name
    return settled


def _query_of(name: str, known: Mapping[str, str]) -> str | None:
    for way in (
        name,
        plain_name(name),
        plain_name(name).removesuffix("_query"),
        plain_name(name).removeprefix(_PREFIX),
    ):
        if way in known:
            return known[way]
    return None


def check_known(ranked: Set[str], named: Set[str], source: str, photos: Iterable[str] | None = None) -> None:
    """Refuse rankings without any photo of the ground truth, or with one outside `photos`, the database."""
    if ranked and not ranked & named:
        raise CairnError(
            f"None of the {len(ranked)} photos in {source}, such as {shown(min(ranked))}, is named in the ground "
            f"truth, whose photos have names such as {shown(min(named))}: is it the ranking of another set?"
        )
    if photos is None:
        return
    searched = list(photos)
    there = {*searched, *map(plain_name, searched)} | named
    strange = sorted(photo for photo in ranked if photo not in there and plain_name(photo) not in there)
    if strange:
        raise CairnError(
            f"{source} ranks {len(strange)} photos, such as {shown(strange[0])}, that are not among the "
            f"{len(searched)} photos searched: give their folder, too, or correct the names."
        )
