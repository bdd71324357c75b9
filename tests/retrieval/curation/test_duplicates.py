"""Sets of near duplicates: which photo is the best and why, and what was decided is not asked again."""

import itertools

from retrieval.catalogue.photos import all_indexed
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.curation.albums import make_album
from retrieval.curation.duplicates import (
    Said,
    ask_again,
    duplicate_sets,
    format_of,
    judge_set,
    keep_all,
    kept_sets,
    undecided_sets,
)
from retrieval.curation.editing import Edit, edit_photos
from retrieval.groups.groups import FoundGroup
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
    groups = [
        FoundGroup(1, (1, 2, 3, 4, 5), 9, {2: 1, 3: 1, 5: 4}),
        FoundGroup(2, (6, 7), 1, {6: 7}),
        FoundGroup(3, (8, 9), 1, {}),
    ]
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


def test_an_upright_whole_picture_comes_before_its_versions_and_parts_and_frames_stay() -> None:
    rows = [row(1, "a.jpg", 100), row(2, "cut.tif", 90), row(3, "framed.tif", 300), row(4, "turned.tif", 200, 99)]
    rows += [row(5, "negative.tif", 200, 99, "1900"), row(6, "small.jpg", 50)]
    kinds = {2: "part", 3: "framed", 4: "turned", 5: "negative", 6: "copy"}
    judged = judge_set(rows, kinds)
    assert judged.photos == (1, 6, 3, 5, 4, 2) and judged.reasons == ("kind", "resolution")
    assert judged.kinds == kinds and judged.stays == {2: "kind", 3: "kind"}
    # The whole stays where it cannot be the best.
    rows[0].missing_since = rows[5].missing_since = "2026-01-01"
    judged = judge_set(rows, kinds)
    assert judged.photos[0] == 3 and set(judged.stays) == {1, 2, 3, 6}
    similar = judge_set(rows)
    assert (similar.kinds, similar.stays) == ({}, {})


def test_nothing_is_proposed_where_nothing_tells_which_is_upright() -> None:
    first, other = row(1, "a.jpg", 200), row(2, "b.jpg", 200, 9)
    assert not judge_set([first, other], {2: "turned"}).is_sure
    assert judge_set([first, other], {2: "copy"}).is_sure
    assert judge_set([first, row(3, "copies/a.jpg", 200)], {3: "turned"}).is_sure
    assert judge_set([first, row(3, "c.jpg", 100)], {3: "turned"}).is_sure
    assert not judge_set([first, other], {2: "part"}).is_sure  # it stays


def test_what_somebody_said_something_of_stays_and_of_equal_files_is_the_best() -> None:
    plain, titled = row(1, "a.tif", 200), row(2, "a copy.jpg", 100)
    typed = {2: Said(frozenset({("title", "the bridge")}), by_people=True)}
    judged = judge_set([plain, titled], said=typed)  # a smaller one is no reason to clear the original away
    assert (judged.photos, judged.reasons, judged.stays) == ((1, 2), ("copy",), {2: "said"})
    titled.sha256 = plain.sha256
    titled.width = titled.height = 200
    judged = judge_set([plain, titled], said=typed)
    assert (judged.photos, judged.reasons, judged.stays) == ((2, 1), ("said",), {2: "said"})
    titled.missing_since = "2026-01-01"  # the only file that is left is not what is cleared away
    judged = judge_set([plain, titled], said=typed)
    assert (judged.photos, judged.reasons, judged.stays) == ((1, 2), ("there",), {2: "said"})


def test_what_a_file_says_keeps_it_unless_the_best_says_so_too() -> None:
    rows = [row(number, f"{number}.jpg", 100 - number) for number in range(4)]
    bridge, river = ("tag", "bridge"), ("tag", "river")
    said = {0: Said(frozenset({bridge})), 1: Said(frozenset({bridge})), 2: Said(frozenset({bridge, river}))}
    assert judge_set(rows, said=said).stays == {2: "said"}


def test_copies_and_similar_shots_are_two_lists() -> None:
    groups = [
        FoundGroup(1, (1, 2, 3, 4), 3, {2: 1, 4: 3}, {2: "part", 4: "copy"}, ((1, 3),)),
        FoundGroup(2, (5, 6, 7), 2, {6: 5}, {6: "copy"}, ((5, 7),)),
    ]
    assert duplicate_sets(groups) == [(1, 2), (3, 4), (5, 6)]
    assert duplicate_sets(groups, similar=True) == [(1, 3), (5, 7)]
    kept = [frozenset({1, 2, 3}), frozenset({5, 6})]
    assert duplicate_sets(groups, kept) == [(3, 4)] and duplicate_sets(groups, kept, similar=True) == [(5, 7)]


def test_what_is_in_the_catalogue_decides_and_same_files_come_first(album: Album) -> None:
    album.put(a=0, b=1, c=2, d=3, e=4, f=4)
    album.index()
    with album.open() as collection:
        assert isinstance(collection, Collection)
        catalogue = collection.catalogue
        of = {one.name: one.number for one in catalogue.read(all_indexed)}
        a, b, c, d, e, f = (of[name + ".jpg"] for name in "abcdef")
        kinds = {b: "copy", f: "copy", d: "part"}
        groups = [
            FoundGroup(1, (a, b, c, d), 3, {d: c, b: a}, kinds, ((a, c),)),
            FoundGroup(2, (e, f), 1, {f: e}, kinds),
        ]
        found = catalogue.read(undecided_sets, groups, 0, 9)
        assert (found.copies, found.similar) == (3, 1)
        assert [judged.photos for judged, _ in found.page] == [(e, f), (a, b), (c, d)]
        assert [judged.kinds for judged, _ in found.page] == [{f: "copy"}, {b: "copy"}, {d: "part"}]
        assert [judged.stays for judged, _ in found.page] == [{}, {}, {d: "kind"}]

        # A date that was typed in is no reason to keep a photo.
        catalogue.write(edit_photos, [b], Edit(taken="1923"))
        assert catalogue.read(undecided_sets, groups, 1, 1).page[0][0].stays == {}
        catalogue.write(make_album, "Bridges", [b])
        catalogue.write(edit_photos, [f], Edit(tags_add=("x",)))
        catalogue.write(edit_photos, [c], Edit(title="Another"))
        (first, rows), (second, _), _ = catalogue.read(undecided_sets, groups, 0, 9).page
        assert (first.photos, first.reasons, first.stays) == ((f, e), ("said",), {f: "said"})
        assert [one.number for one in rows] == [f, e]
        assert (second.photos[0], second.stays) == (b, {b: "said"})  # of the earliest date that is known
        (only,) = catalogue.read(undecided_sets, groups, 0, 9, similar=True).page
        assert (only[0].photos, only[0].kinds, only[0].stays) == ((a, c), {}, {c: "said"})
        catalogue.write(edit_photos, [c], Edit(title=""))
        catalogue.write(keep_all, [c, a])
        found = catalogue.read(undecided_sets, groups, 0, 9)
        assert (found.copies, found.similar) == (3, 0) and found.page[2][0].stays == {d: "kind"}
