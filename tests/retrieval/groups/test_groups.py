"""Groups of linked photos, and near duplicates among them."""

import csv
import io
import itertools
import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from index.errors import CairnError
from index.text import csv_text
from retrieval.catalogue.changes import make_tombstones
from retrieval.catalogue.photos import all_indexed, names_in_order, photo_of_name
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.commands.console import run
from retrieval.commands.groups import group
from retrieval.groups.groups import (
    DuplicateOptions,
    GroupOptions,
    NotGrouped,
    form_groups,
    group_photos,
    is_near_duplicate,
    read_groups,
)
from retrieval.groups.links import Link
from retrieval.groups.looks import Copy
from retrieval.groups.registration import Registered
from retrieval.groups.tables import group_rows

DUPLICATES = DuplicateOptions()
SAME = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)


def row(number: int, width: int = 400, height: int = 300, sha256: str | None = None, features: int = 100) -> ImageRow:
    return ImageRow(
        number=number, path=f"/p/{number}.jpg", name=f"{number}.jpg", width=width, height=height, sha256=sha256,
        features=features,
    )  # fmt: skip


def link(one: int, other: int, inliers: int = 50, transform: tuple[float, ...] = SAME) -> Link:
    return Link(one, other, inliers, transform)


def scaled(scale: float, x: float = 0.0, y: float = 0.0, stretch: float = 1.0) -> tuple[float, ...]:
    return (scale * stretch, 0.0, x, 0.0, scale, y)


@pytest.mark.parametrize(
    ("transform", "sizes", "duplicate"),
    [
        # The same picture, at any size: units are those of the longer sides.
        (SAME, ((400, 300), (400, 300)), True),
        (SAME, ((4000, 3000), (400, 300)), True),
        # 4 % of the width is cut off on one side: 96 % is shared. A fifth: no longer.
        (scaled(1 / 0.96), ((400, 300), (384, 288)), True),
        (scaled(1 / 0.80), ((400, 300), (320, 240)), False),
        # As wide as the other, but of half its height: it shows only a half of it.
        (SAME, ((400, 150), (400, 300)), False),
        (SAME, ((400, 300), (400, 150)), False),
        # Moved by a twentieth of the width: 95 % is shared; by a fifth: 80 %.
        (scaled(1, 0.05), ((400, 300), (400, 300)), True),
        (scaled(1, -0.2), ((400, 300), (400, 300)), False),
        # Turned by 90 degrees, as an editor does it.
        ((0.0, -1.0, 0.75, 1.0, 0.0, 0.0), ((400, 300), (300, 400)), True),
        # Seen at a slant.
        (scaled(0.85, stretch=1.17), ((400, 300), (400, 300)), False),
        (scaled(0.0), ((400, 300), (400, 300)), False),
    ],
)
def test_near_duplicates_show_nearly_all_of_each_other(
    transform: tuple[float, ...], sizes: tuple[tuple[int, int], tuple[int, int]], duplicate: bool
) -> None:
    one, other = row(1, *sizes[0]), row(2, *sizes[1])
    assert is_near_duplicate(link(1, 2, transform=transform), one, other, DUPLICATES) is duplicate
    assert not is_near_duplicate(link(1, 2, 9, transform), one, other, DUPLICATES)  # of 100 features


def test_the_overlap_is_that_of_pixels_counted() -> None:
    rng = np.random.default_rng(0)
    one, other = row(1, 400, 300), row(2, 300, 400)
    y, x = np.mgrid[0:400, 0:400]
    grid = np.stack([x.ravel() + 0.5, y.ravel() + 0.5]) / 400
    for _ in range(30):
        angle, scale = rng.uniform(0, 2 * np.pi), rng.uniform(0.7, 1.4)
        turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        shift = np.array([0.375, 0.5]) - turn @ [0.5, 0.375] + rng.uniform(-0.05, 0.05, 2)
        mapped = turn @ grid + shift[:, None]
        inside = (grid[1] < 0.75) & (mapped[0] > 0) & (mapped[0] < 0.75) & (mapped[1] > 0) & (mapped[1] < 1)
        overlap = inside.sum() / 400**2 / 0.75 * min(1, scale**2)
        affine = link(1, 2, transform=tuple(np.column_stack([turn, shift]).ravel().tolist()))
        assert is_near_duplicate(affine, one, other, DuplicateOptions(overlap=overlap - 0.02))
        assert not is_near_duplicate(affine, one, other, DuplicateOptions(overlap=overlap + 0.02))


@settings(deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 19), st.integers(0, 19)).filter(lambda pair: pair[0] < pair[1]),
        st.booleans(),
        max_size=25,
    ),
    st.lists(st.integers(0, 12), min_size=20, max_size=20),
)
def test_groups_are_parts_of_the_connected_components(found: dict[tuple[int, int], bool], contents: list[int]) -> None:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # Contents 6 and above are of one photo each; the others say how large their photos are.
    shas = [str(content) if content < 6 else None for content in contents]
    sizes = [400 + 40 * (content % 3) for content in contents]
    rows = {
        number: row(number, size, size * 3 // 4, sha)
        for number, (size, sha) in enumerate(zip(sizes, shas, strict=True))
    }
    links = {pair: link(*pair, transform=SAME if near else scaled(0.5)) for pair, near in found.items()}
    groups = form_groups(rows, links, DUPLICATES)

    same = [(i, j) for i in rows for j in rows if i < j and shas[i] is not None and shas[i] == shas[j]]
    edges = np.array([*links, *same], int).reshape(-1, 2)
    labels = connected_components(coo_array((np.ones(len(edges)), edges.T), (20, 20)), directed=False)[1]
    for one in groups:
        assert len(one.photos) > 1 and len(set(labels[list(one.photos)].tolist())) == 1
    grouped = [photo for one in groups for photo in one.photos]
    assert len(grouped) == len(set(grouped))
    assert list(groups) == sorted(groups, key=lambda one: (-len(one.photos), one.photos))
    home = {photo: one.number for one in groups for photo in one.photos}
    assert all(home[i] == home[j] for i, j in same)  # photos of one content are never parted
    assert [one.number for one in groups] == list(range(1, len(groups) + 1))
    repeats = {copy: original for one in groups for copy, original in one.duplicates.items()}
    for one in groups:
        # All links within a group count, and of photos of one content at least as many as join them.
        within = [pair for pair in links if {*pair} <= {*one.photos}]
        assert len(within) <= one.links <= len({*within, *(pair for pair in same if pair[0] in one.photos)})
        assert one.links >= len(one.photos) - 1
        assert {*one.duplicates, *one.duplicates.values()} <= set(one.photos)
        assert one.kinds == dict.fromkeys(sorted(one.duplicates), "copy")
    assert not set(repeats) & set(repeats.values())
    for i, j in same:
        # One of them repeats the other, or both repeat the same.
        assert repeats.get(i, i) == repeats.get(j, j)
    for (i, j), near in found.items():
        if near:
            assert i in repeats or j in repeats  # no two originals are alike
    assert all(rows[original].width >= rows[copy].width for copy, original in repeats.items())  # type: ignore[operator]


def test_a_copy_never_stands_for_what_it_is_a_copy_of() -> None:
    rows = {
        1: replace(row(1, 800, 600, "s"), name="Bridge Kopie.jpg"),
        2: row(2, 800, 600, "s"),
        3: replace(row(3, 4000, 3000), name="copy of Bridge.jpg"),
        4: replace(row(4, 800, 600), taken="1923"),
    }
    links = {(one, other): link(one, other) for one, other in itertools.combinations(rows, 2)}
    (one,) = form_groups(rows, links, DUPLICATES)
    assert one.duplicates == {1: 4, 2: 4, 3: 4}
    (one,) = form_groups({number: rows[number] for number in (1, 2)}, {}, DUPLICATES)
    assert one.duplicates == {1: 2}


def test_different_pictures_on_one_page_are_parts_of_it_and_not_of_one_group() -> None:
    page, left, right, mirrored, other = range(5)
    rows = {page: row(page, 1600, 1200), left: row(left), right: row(right), mirrored: row(mirrored), other: row(other)}
    pairs = [(page, left), (page, right), (left, other)]
    links = {pair: link(*pair, transform=scaled(0.4)) for pair in pairs}
    registered = {pair: Registered("part", pair[1]) for pair in pairs[:2]}
    groups = form_groups(rows, links, DUPLICATES, [Copy(left, mirrored, 0, True)], registered=registered)
    (one,) = (one for one in groups if left in one.photos)
    assert right not in one.photos or left not in one.duplicates
    repeats = {copy: original for one in groups for copy, original in one.duplicates.items()}
    assert repeats[mirrored] == left and left not in repeats  # it is the original of its own copies
    assert repeats.get(right, page) == page


def test_kinds_are_known_by_way_of_photos_that_were_compared_with_both() -> None:
    rows = {number: row(number, 1000 - 100 * number, 750 - 75 * number) for number in range(7)}
    registered = {
        (1, 2): Registered("part", 2),
        (0, 3): Registered("framed", 3),
        (2, 3): Registered("part", 2),  # a way that is no shorter
        (4, 5): Registered("part", 5),
    }
    copies = [Copy(0, 1, 0, False), Copy(0, 4, 1, False), Copy(1, 6, 0, False, negative=True)]
    links = {pair: link(*pair) for pair in registered}
    (one,) = form_groups(rows, links, DUPLICATES, copies, registered=registered)
    assert one.duplicates == dict.fromkeys(range(1, 7), 0)
    assert one.kinds == {1: "copy", 2: "part", 3: "framed", 4: "turned", 5: "part", 6: "negative"}


def test_a_row_of_photos_each_like_the_one_before_is_no_set_of_duplicates_of_the_first() -> None:
    rows = {number: row(number) for number in range(4)}
    links = {(number, number + 1): link(number, number + 1) for number in range(3)}
    (one,) = form_groups(rows, links, DUPLICATES)
    assert one.duplicates == {1: 0, 3: 2}


@pytest.fixture
def copy(linked: Path, tmp_path: Path) -> Path:
    shutil.copytree(linked, tmp_path / "copy.cairn")
    return tmp_path / "copy.cairn"


@pytest.fixture
def photos(copy: Path) -> Iterator[Collection]:
    with Collection.open(copy) as collection:
        yield collection


EXPECTED = [
    ["astronaut_0.png", "astronaut_1.png", "astronaut_2.png", "astronaut_copy.png"],
    ["chelsea_0.png", "chelsea_1.png", "chelsea_small.jpg"],
    ["coffee_0.png", "coffee_1.png"],
]
COPIES = {"astronaut_copy.png": "astronaut_0.png", "chelsea_small.jpg": "chelsea_0.png"}
PARTS = {  # the pictures turned and enlarged by a little, so that each view lacks a rim
    "astronaut_1.png": "astronaut_0.png",
    "astronaut_2.png": "astronaut_0.png",
    "chelsea_1.png": "chelsea_0.png",
    "coffee_1.png": "coffee_0.png",
}
REPEATED = COPIES | PARTS


def test_groups_are_the_objects_and_copies_are_marked(photos: Collection) -> None:
    with pytest.raises(NotGrouped, match=r"in .*copy\.cairn: run Collection\.group\.$"):
        read_groups(photos)
    found = group_photos(photos)
    assert (found.inliers, found.photos, found.out_of_date) == (20, 10, False)
    assert [sorted(photos.catalogue.read(names_in_order, one.photos)) for one in found.groups] == EXPECTED
    assert [one.links for one in found.groups] == [6, 3, 1]
    repeats = {copy: original for one in found.groups for copy, original in one.duplicates.items()}
    names = {row.number: row.name for row in photos.catalogue.read(all_indexed)}
    assert {names[copy]: names[original] for copy, original in repeats.items()} == REPEATED
    kinds = {names[copy]: kind for one in found.groups for copy, kind in one.kinds.items()}
    assert kinds == dict.fromkeys(PARTS, "part") | {"chelsea_small.jpg": "copy", "astronaut_copy.png": "copy"}
    assert all(one.similar == () for one in found.groups)
    assert read_groups(photos) == found

    table = list(csv.DictReader(io.StringIO(csv_text(group_rows(photos, found.groups)))))
    assert sorted(entry["name"] for entry in table) == sorted(name for names in EXPECTED for name in names)
    assert {entry["name"]: entry["duplicate_of"] for entry in table if entry["duplicate_of"]} == REPEATED
    assert {entry["name"]: entry["kind"] for entry in table if entry["kind"]} == kinds
    assert [int(entry["group"]) for entry in table] == [1] * 4 + [2] * 3 + [3] * 2
    assert all(Path(entry["path"]).name == entry["name"] for entry in table)


def test_groups_tell_that_photos_were_removed_since(photos: Collection) -> None:
    before = group_photos(photos)
    gone = [photos.catalogue.read(photo_of_name, name) for name in ("coffee_0.png", "astronaut_0.png")]
    photos.catalogue.write(make_tombstones, [image.number for image in gone if image is not None])
    stale = read_groups(photos)
    assert stale.out_of_date
    assert [sorted(photos.catalogue.read(names_in_order, one.photos)) for one in stale.groups] == [
        EXPECTED[0][1:],
        EXPECTED[1],
    ]
    assert stale.groups[0].duplicates == {} and stale.groups[1] == before.groups[1]
    assert len(list(group_rows(photos, stale.groups))) == 1 + 3 + 3
    with Collection.open(photos.folder) as again:
        assert not group_photos(again).out_of_date
        assert read_groups(again).groups[0].photos == stale.groups[0].photos


@pytest.mark.parametrize(
    "contents", ["", "[]", "null", "{}", '{"format": 1, "state": "", "groups": [{}]}', '{"format": "x"}']
)
def test_a_damaged_file_is_refused(photos: Collection, contents: str) -> None:
    (photos.folder / "groups.json").write_text(contents)
    with pytest.raises(CairnError, match=r"groups\.json is damaged"):
        read_groups(photos)


def test_groups_of_a_later_version_are_refused(photos: Collection) -> None:
    (photos.folder / "groups.json").write_text('{"format": 2}')
    with pytest.raises(CairnError, match="later version"):
        read_groups(photos)


def test_options_are_checked() -> None:
    with pytest.raises(CairnError, match="one inlier at least, not by 0"):
        GroupOptions(inliers=0)


def test_the_command(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer()
    app.command()(group)

    def cairn(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["group", *map(str, arguments)])
        code: object = 0
        try:
            run(app)
        except SystemExit as stop:
            code = stop.code
        out, err = capfd.readouterr()
        return int(code or 0), out, err  # type: ignore[call-overload]

    table = tmp_path / "groups.csv"
    code, out, err = cairn(copy, "--json", "--workers", 2, "--out", table)
    summary = json.loads(out)
    del summary["seconds"]
    assert (code, err) == (0, "")
    assert summary == {
        "collection": str(copy),
        "photos": 10,
        "inliers": 20,
        "groups": 3,
        "grouped": 9,
        "links": 10,
        "duplicates": 6,
        "kinds": {"copy": 2, "part": 4},
        "similar": 0,
        "augmented": None,
        "out": str(table),
    }
    with Collection.open(copy) as collection:
        assert table.read_text() == csv_text(group_rows(collection, read_groups(collection).groups))
    code, out, err = cairn(copy, "--inliers", 100_000)
    # Near duplicates are together however few matches link them; but parts of one photo that have nothing in common may
    # be different pictures on one page.
    assert code == 0 and "9 of 10 photos in 4 groups, 2 links, 5 near duplicates" in out
    code, out, err = cairn(copy, "--augment")
    assert (code, err) == (0, "") and "9 photos have borrowed features from linked photos again" in out
    code, out, err = cairn(copy)
    assert (code, err) == (0, "") and "0 photos have borrowed features from linked photos again" in out
    code, out, err = cairn(copy, "--no-augment")
    assert (code, err) == (0, "") and "borrowed" not in out
    with Collection.open(copy) as collection:
        removed = collection.catalogue.read(photo_of_name, "astronaut_copy.png")
        assert removed is not None
        collection.catalogue.write(make_tombstones, [removed.number])
    code, out, err = cairn(copy, "--inliers", 100_000)
    assert (code, err) == (0, "") and "7 of 9 photos in 3 groups, 1 links, 4 near duplicates" in out
    code, out, err = cairn(copy, "--out", tmp_path / "nowhere" / "groups.csv")
    assert code == 2 and out == "" and err.startswith("cairn: ") and err.count("\n") == 1
    code, out, err = cairn(tmp_path)
    assert code == 2 and "There is no collection" in err
