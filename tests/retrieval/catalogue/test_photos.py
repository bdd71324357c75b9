"""What is known of photos in a compact form: the same as a dictionary of all rows would tell."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from retrieval.catalogue import catalogue as module
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.changes import PhotoMove, make_tombstones, mark_missing, move_photos
from retrieval.catalogue.failures import Failure, failures_in, keep_failures
from retrieval.catalogue.photos import Known, all_indexed, indexed_folders, known_contents, missing_photos, rows_of
from retrieval.catalogue.schema import ImageRow, SegmentRow
from retrieval.catalogue.segment_rows import commit_segment
from retrieval.catalogue.settings import reserve_numbers


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def catalogue(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalogue]:
    """Photos of every state; some paths have failed after they were indexed, and before."""
    folder = tmp_path_factory.mktemp("catalogue") / "c"
    address = request.getfixturevalue("postgresql")() if request.param == "postgresql" else str(folder)
    with Catalogue.open(address, create=True) as catalogue:
        catalogue.write(keep_failures, [Failure(f"/p/{i}.jpg", "It is empty.", i, -i, f"{i:064x}") for i in range(20)])
        first = catalogue.write(reserve_numbers, 12_000)
        rows = [
            ImageRow(
                number=first + i,
                path=f"/p/{i}.jpg",
                position=i,
                size=None if i % 3 == 0 else 2**40 + i,
                mtime_ns=None if i % 5 == 0 else 2**60 - i,
                sha256=(None, f"{i // 2:064x}", "not a hash")[min(i % 10, 2) if i % 10 < 3 else 1],
            )
            for i in range(10, 12_000)
        ]
        values = {"features": 0, "bytes": 0}
        segment = SegmentRow(
            folder="1", images=len(rows), vocabulary_fingerprint="v", descriptor_fingerprint="d", **values
        )
        catalogue.write(commit_segment, segment, rows)
        catalogue.write(make_tombstones, [first + i for i in range(100, 200)])
        catalogue.write(mark_missing, [first + i for i in range(300, 310)])
        catalogue.write(keep_failures, [Failure(f"/p/{i}.jpg", "It is empty.") for i in range(300, 320)])
        yield catalogue


@pytest.fixture
def expected(catalogue: Catalogue) -> dict[str, Known]:
    """By path: what a dictionary of all rows would tell."""
    reported = {
        failure.path: Known(-1, "failed", failure.size, failure.mtime_ns, failure.sha256)
        for failure in catalogue.read(failures_in)
    }
    missing = {row.number for row in catalogue.read(missing_photos)}
    for row in catalogue.read(all_indexed):
        reported[row.path] = Known(row.number, "indexed", row.size, row.mtime_ns, row.sha256, row.number in missing)
    return reported


def unnumbered(known: Known) -> Known:
    return known if known.state == "indexed" else known._replace(number=-1)


def test_each_path_has_what_a_dictionary_of_all_rows_tells(catalogue: Catalogue, expected: dict[str, Known]) -> None:
    known = catalogue.known()
    assert len(known) == len(expected) and set(known) == set(expected)
    assert {path: unnumbered(known[path]) for path in expected} == expected
    assert known.get("/p/100.jpg") is None and "/elsewhere" not in known  # removed; never there
    assert {one.missing for one in expected.values()} == {True, False}
    assert {one.sha256 for one in expected.values()} >= {None, "not a hash"}


def test_photos_of_contents_and_all_but_some_paths(catalogue: Catalogue, expected: dict[str, Known]) -> None:
    known = catalogue.known()
    wanted = {f"{i:064x}" for i in (3, 12, 75, 400, 99_999)}
    showing = {path: one for path, one in expected.items() if one.state == "indexed" and one.sha256 in wanted}
    assert dict(known.of_contents(wanted)) == showing != {}
    assert dict(known.of_contents(set())) == {}
    paths = {f"/p/{i}.jpg" for i in range(5, 11_990)}
    left = {path: unnumbered(one) for path, one in known.without(paths)}
    assert left == {path: one for path, one in expected.items() if path not in paths} and len(left) == 15


def test_paths_are_those_of_the_moment(catalogue: Catalogue) -> None:
    known = catalogue.known()
    number = known["/p/5000.jpg"].number
    catalogue.write(make_tombstones, [number])
    assert known["/p/5000.jpg"].number == number  # of the moment that was looked at
    assert "/p/5000.jpg" not in set(known)  # what is still there


def test_contents_are_known_of_photos_that_are_indexed_or_failed(
    catalogue: Catalogue, expected: dict[str, Known]
) -> None:
    contents = catalogue.read(known_contents)
    known = {one.sha256 for one in expected.values() if one.sha256}
    requested = {*known, "not a hash", "other", *(f"{i:064x}" for i in (51, 5999, 6000, 77_777)), "0" * 64, "f" * 64}
    assert {one for one in requested if one in contents} == known and None not in contents


def test_folders_that_were_indexed(catalogue: Catalogue) -> None:
    first = catalogue.write(reserve_numbers, 4)
    paths = [
        ("/a/rome/1.jpg", "rome/1.jpg"),
        ("/a/rome/2.jpg", "rome/2.jpg"),
        ("/b/ü/3.jpg", "ü/3.jpg"),
        ("/4", "x.jpg"),
    ]
    rows = [ImageRow(number=first + i, path=path, name=name, position=i) for i, (path, name) in enumerate(paths)]
    values = {"images": 4, "features": 0, "bytes": 0}
    catalogue.write(
        commit_segment, SegmentRow(folder="2", vocabulary_fingerprint="v", descriptor_fingerprint="d", **values), rows
    )
    assert catalogue.read(indexed_folders) == [Path("/a"), Path("/b"), Path("/p")]


def test_rows_that_were_read_are_remembered_until_something_is_written(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = [row.number for row in catalogue.read(all_indexed)[5:0:-1]]
    requested: list[list[int]] = []

    def noted(session: Session, numbers: list[int]) -> list[ImageRow]:
        requested.append(numbers)
        return rows_of(session, numbers)

    monkeypatch.setattr(module, "rows_of", noted)
    first = catalogue.seen_images(numbers[:3])
    assert [row.path for row in first] == [row.path for row in catalogue.read(rows_of, numbers[:3])]
    requested.clear()
    assert [row.number for row in catalogue.seen_images(numbers[3::-1])] == numbers[3::-1]
    assert catalogue.seen_images(numbers[:3]) == first
    assert requested == [[numbers[3]]]  # nothing else was to be read
    # Whoever writes: what another connection changes is read again.
    address = catalogue.address.render_as_string(hide_password=False)
    with Catalogue.open(address if catalogue.file is None else catalogue.file.parent) as other:
        other.write(move_photos, [PhotoMove(numbers[0], "/elsewhere/1.jpg", "1.jpg", 1, 1)])
        other.write(make_tombstones, [numbers[1]])
    assert catalogue.seen_images(numbers[:1])[0].path == "/elsewhere/1.jpg"
    with pytest.raises(KeyError):
        catalogue.seen_images(numbers[:2])
