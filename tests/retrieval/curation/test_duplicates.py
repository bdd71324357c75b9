"""Sets of near duplicates: which photo is the best and why, and what was decided is not asked again."""

import itertools

from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.curation.duplicates import ask_again, duplicate_sets, format_of, judge_set, keep_all, kept_sets
from retrieval.groups.groups import Group
from tests.support.written_photos import Album


def row(number: int, name: str, pixels: int = 100, size: int = 10, taken: str | None = None) -> ImageRow:
    return ImageRow(
        number=number,
        path=f"/p/{name}",
        name=name,
        width=pixels,
        height=pixels,
        size=size,
        taken=taken,
        sha256=str(number),
    )


def test_the_best_is_proposed_with_what_tells_it_from_the_others() -> None:
    first = row(5, "Bridge.tif", 200, 10, "1923")
    cases = [
        (row(1, "Bridge copy.tif", 400, 99, "1900"), "copy"),
        (row(2, "B.tif", 100, 99, "1900"), "resolution"),
        (row(3, "B.tif", 200, 99, "1924"), "date"),
        (row(4, "Bridge (1).tif", 200, 99, "1923"), "name"),
        (row(6, "B.jpg", 200, 99, "1923"), "format"),
        (row(7, "copies/B.tif", 200, 99, "1923"), "folder"),
        (row(8, "B.tiff", 200, 9, "1923"), "size"),
    ]
    for other, reason in cases:
        assert judge_set([other, first]).photos == (5, other.number)
        assert judge_set([other, first]).reasons == (reason,)
    everything = judge_set([first, *(other for other, _ in cases)])
    assert everything.photos[0] == 5 and everything.photos[-1] == 1
    assert everything.reasons == tuple(reason for _, reason in cases)
    same = judge_set([row(9, "b.jpg"), row(8, "a.jpg")])
    assert (same.photos, same.reasons) == ((8, 9), ())
    gone = row(1, "Bridge.tif", 900, 99, "1900")
    gone.missing_since = "2026-01-01"
    assert (judge_set([gone, first]).photos, judge_set([gone, first]).reasons) == ((5, 1), ("there",))
    for some in itertools.permutations([first, cases[0][0], cases[2][0]]):
        assert judge_set(some) == judge_set([first, cases[0][0], cases[2][0]])
    assert [format_of(row(1, name)) for name in ("a.JPEG", "a", "a.TIFF", "a.b/c")] == ["jpg", "", "tif", ""]


def test_sets_that_are_kept_come_again_only_with_more_photos(album: Album) -> None:
    groups = [Group(1, (1, 2, 3, 4, 5), 9, {2: 1, 3: 1, 5: 4}), Group(2, (6, 7), 1, {6: 7}), Group(3, (8, 9), 1, {})]
    assert duplicate_sets(groups) == [(1, 2, 3), (4, 5), (6, 7)]
    album.put(top=0)
    album.index()
    with album.open() as collection:
        assert isinstance(collection, Collection) and collection.catalogue.read(kept_sets) == []
        collection.catalogue.write(keep_all, [2, 1])
        collection.catalogue.write(keep_all, [7, 6])
        assert duplicate_sets(groups, collection.catalogue.read(kept_sets)) == [(1, 2, 3), (4, 5)]
        collection.catalogue.write(keep_all, [1, 2, 3])
        assert duplicate_sets(groups, collection.catalogue.read(kept_sets)) == [(4, 5)]
        assert len(collection.catalogue.read(kept_sets)) == 2  # the smaller set is part of the larger
        collection.catalogue.write(ask_again, [3, 2, 1])
        assert duplicate_sets(groups, collection.catalogue.read(kept_sets)) == [(1, 2, 3), (4, 5)]
