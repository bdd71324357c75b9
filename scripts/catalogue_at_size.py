#!/usr/bin/env python3
"""Measure a catalogue of many photos: rates of adding, and times of pages, filters and checks.

The photos are synthetic rows without files and segments. They are written in bulk, as when a backup is restored (COPY
with PostgreSQL), and then some more as by indexing. A newly opened catalogue has no cached counts; measurements of "the
next page" have them.

ADDRESS is that of an empty database, such as postgresql+psycopg://HOST/DATABASE, or a folder for SQLite; a database
filled by this script before is measured unchanged. Prints a table in Markdown.
"""

import argparse
import datetime
import functools
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from index.errors import CairnError
from retrieval.catalogue.browsing import folders_of, numbers_of
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.changes import make_tombstones
from retrieval.catalogue.database import Database, chunks
from retrieval.catalogue.failures import failures_in
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.metadata_store import key_counts, metadata_of, tag_counts
from retrieval.catalogue.photos import count_indexed, counts_of_photos, indexed_folders, names_of, rows_of
from retrieval.catalogue.schema import (
    FROM_FILE,
    INDEXED,
    ImageRow,
    MetadataRow,
    SegmentRow,
    folder_of,
    path_hash_of,
    value_hash_of,
    values_of_row,
)
from retrieval.catalogue.segment_rows import commit_segment, segments_and_tombstones, segments_in
from retrieval.catalogue.settings import keep_setting, reserve_numbers
from retrieval.integrity.check_catalogue import check_server
from retrieval.integrity.compare_rows import check_images, check_rows, read_segment_rows, segment_ids
from retrieval.metadata.fields import Metadata
from retrieval.metadata.places import Near

FEATURES = 1500
DAYS = 7300
FIRST_DAY = datetime.datetime(1995, 1, 1)
CAMERAS = [f"{make} {model}" for make in ("Canon", "Nikon", "Olympus", "Leica") for model in range(100, 1100, 100)]
TOWNS, TAGS = 1000, 5000
WAS_FILLED = "catalogue_at_size.photos"

_hash_of = functools.lru_cache(maxsize=1 << 16)(value_hash_of)


@dataclass(frozen=True)
class Synthetic:
    """A synthetic photo."""

    row: ImageRow
    metadata: Metadata


def synthetic_photos(first: int, count: int, days: tuple[float, float], seed: int) -> Iterator[Synthetic]:
    """Photos of consecutive numbers, taken in order within some days."""
    rng = np.random.default_rng([seed, first])
    towns = np.random.default_rng(seed).uniform((-60, -180), (70, 180), (TOWNS, 2))
    at = rng.choice(TOWNS, count)
    places = np.round(towns[at] + rng.normal(0, 0.02, (count, 2)), 6)
    is_placed, is_titled = rng.random(count) < 0.5, rng.random(count) < 0.02
    contents = rng.bytes(32 * count).hex()
    tags = np.minimum(rng.zipf(1.3, (count, 3)), TAGS)
    has_tags = rng.integers(0, 4, count)
    cameras = rng.choice(len(CAMERAS), count)
    added = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    for i in range(count):
        taken_at = FIRST_DAY + datetime.timedelta(days=days[0] + (days[1] - days[0]) * i / count)
        name = f"{taken_at:%Y/%m/%d}/IMG_{first + i:08d}.jpg"
        metadata = Metadata(
            taken=taken_at.isoformat(timespec="seconds"),
            camera=CAMERAS[cameras[i]],
            latitude=float(places[i, 0]) if is_placed[i] else None,
            longitude=float(places[i, 1]) if is_placed[i] else None,
            title=f"Canal at town {at[i]}" if is_titled[i] else None,
            tags=tuple(dict.fromkeys(f"tag {tag}" for tag in tags[i, : has_tags[i]])),
        )
        row = ImageRow(
            number=first + i,
            path=f"/archive/photos/{name}",
            name=name,
            sha256=contents[64 * i : 64 * (i + 1)],
            size=3_000_000 + i,
            mtime_ns=int(taken_at.replace(tzinfo=datetime.UTC).timestamp()) * 10**9,
            width=6000,
            height=4000,
            features=FEATURES,
            position=i,
            quantisation_error=1.1,
            date_added=added,
        )
        yield Synthetic(row, metadata)


def segment_of(number: int, photos: int) -> SegmentRow:
    """The row of a segment with a number of photos."""
    features = photos * FEATURES
    return SegmentRow(
        folder=f"{number:06d}",
        images=photos,
        features=features,
        bytes=17 * features,
        vocabulary_fingerprint="a" * 64,
        descriptor_fingerprint="b" * 64,
    )


def write_in_bulk(database: Database, number: int, photos: list[Synthetic]) -> None:
    """Write a segment and its photos without queries."""
    with database.transaction(write=True) as session:
        values = values_of_row(segment_of(number, len(photos)))
        del values["id"]
        (of,) = session.execute(sa.insert(SegmentRow).values(values).returning(SegmentRow.id)).one()
        images, metadata = [], []
        for one in photos:
            row = one.row
            known = {key: getattr(one.metadata, key) for key in ("taken", "camera", "latitude", "longitude", "title")}
            derived = {"path_hash": path_hash_of(row.path), "folder": folder_of(row.name)}
            images.append(values_of_row(row) | known | derived | {"segment_id": of, "state": INDEXED})
            texts = [(key, 0, str(value)) for key, value in known.items() if value is not None]
            texts += [("tag", place, tag) for place, tag in enumerate(one.metadata.tags)]
            metadata += [
                dict(zip(_METADATA, (row.number, FROM_FILE, key, at, value, _hash_of(value)), strict=True))
                for key, at, value in texts
            ]
        for table, rows in ((ImageRow.__table__, images), (MetadataRow.__table__, metadata)):
            _copy(session, table, rows)


_METADATA = ("number", "source", "key", "position", "value", "value_hash")


def _copy(session: Any, table: Any, rows: list[dict[str, Any]]) -> None:
    if session.get_bind().dialect.name != "postgresql":
        for some in chunks(rows):
            session.execute(sa.insert(table), some)
        return
    names = [column.key for column in table.columns]
    lines = ("\t".join("\\N" if row[name] is None else str(row[name]) for name in names) for row in rows)
    connection = session.connection().connection.driver_connection
    with connection.cursor().copy(f"COPY {table.name} ({', '.join(names)}) FROM STDIN") as copy:
        copy.write("\n".join(lines) + "\n")


def add(
    catalogue: Catalogue, photos: int, segment: int, seed: int, write: Callable[[int, list[Synthetic]], object]
) -> float:
    """Add photos, segment by segment; return the seconds of writing."""
    sizes = [min(segment, photos - done) for done in range(0, photos, segment)]
    slots = np.random.default_rng(seed).permutation(len(sizes))
    number, spent = len(catalogue.read(segments_in)), 0.0
    for done, (size, slot) in enumerate(zip(sizes, slots, strict=True), 1):
        days = (float(DAYS * slot / len(sizes)), float(DAYS * (slot + 1) / len(sizes)))
        new_photos = list(synthetic_photos(catalogue.write(reserve_numbers, size), size, days, seed))
        start = time.perf_counter()
        write(number + done, new_photos)
        spent += time.perf_counter() - start
        if done % 10 == 0:
            print(f"{done} of {len(sizes)} segments, {spent:.0f} s", file=sys.stderr)
    return spent


def fill(address: str, photos: int, segment: int, seed: int) -> dict[str, str]:
    """Fill an empty catalogue in bulk; return the rates."""
    figures: dict[str, str] = {}
    with Catalogue.open(address, create=True) as catalogue:
        if catalogue.setting(WAS_FILLED) is not None:
            return {}
        if catalogue.read(count_indexed):
            raise CairnError(f"{catalogue} is not empty: give the address of an empty database.")
        database = Database(catalogue.address)
        spent = add(catalogue, photos, segment, seed, lambda number, made: write_in_bulk(database, number, made))
        figures[f"write {photos:,} photos in bulk"] = f"{spent:,.0f} s, {photos / spent:,.0f} photos a second"
        database.close()
        if catalogue.file is None:
            engine = sa.create_engine(catalogue.address, isolation_level="AUTOCOMMIT")
            with engine.connect() as connection:
                start = time.perf_counter()
                connection.execute(sa.text("VACUUM ANALYZE"))  # as the server does automatically in time
                figures["VACUUM ANALYZE"] = _shown(time.perf_counter() - start)
            engine.dispose()
        catalogue.write(keep_setting, WAS_FILLED, str(photos))
    return figures


def index(address: str, photos: int, segment: int, seed: int) -> dict[str, str]:
    """Add photos as indexing does; return the rates."""
    with Catalogue.open(address) as catalogue:

        def commit(number: int, new_photos: list[Synthetic]) -> None:
            catalogue.write(
                commit_segment,
                segment_of(number, len(new_photos)),
                [one.row for one in new_photos],
                [one.metadata for one in new_photos],
            )

        before = catalogue.read(count_indexed)
        spent = add(catalogue, photos, segment, seed + before, commit)
        return {f"add {photos:,} photos to {before:,} as indexing does": f"{photos / spent:,.0f} photos a second"}


def questions(catalogue: Catalogue, rng: np.random.Generator) -> dict[str, Callable[[], Any]]:
    """The queries, each time for other photos."""
    photos = catalogue.read(count_indexed)

    def some(count: int) -> list[int]:
        return sorted(rng.choice(photos, count, replace=False).tolist())

    def page(**wanted: Any) -> Any:
        return catalogue.page(0, 100, wanted=PhotoFilter(**wanted))

    middle = photos // 2
    return {
        "first page of all": lambda: catalogue.page(0, 100),
        "the next page": lambda: catalogue.page(100, 100),
        "page in the middle of all": lambda: catalogue.page(middle, 100),
        "the page after that": lambda: catalogue.page(middle + 100, 100),
        "last page of all": lambda: catalogue.page(photos - 100, 100),
        "page by a part of the name that one photo has": lambda: page(name=f"IMG_{rng.integers(photos):08d}"),
        "page by a part of the name that a tenth has": lambda: page(name="7.jpg"),
        "page of a folder, a day": lambda: page(folder=f"{rng.integers(1996, 2014)}/06/15"),
        "page of a folder, a year": lambda: page(folder=f"{rng.integers(1996, 2014)}"),
        "page of a month's dates": lambda: page(taken_from="2001-05", taken_to="2001-05"),
        "page of five years' dates": lambda: page(taken_from="2001", taken_to="2005"),
        "page of photos within 10 km": lambda: page(near=_near(rng)),
        "page by camera, one of 40": lambda: page(camera="nikon 500"),
        "page by title, 2 % have one": lambda: page(title="town 77"),
        "page by a tag, rare": lambda: page(tags=("tag 4000",)),
        "page by a tag, frequent": lambda: page(tags=("tag 1",)),
        "page without a tag, frequent": lambda: page(without_tags=("tag 1",)),
        "metadata of 100 photos": lambda: catalogue.read(metadata_of, some(100)),
        "rows of 200 photos": lambda: catalogue.read(rows_of, some(200), indexed=False),
        "names of 5,000 photos": lambda: catalogue.read(names_of, some(5000)),
        "how many photos and features": lambda: catalogue.read(counts_of_photos),
        "segments and tombstones": lambda: catalogue.read(segments_and_tombstones),
        "failures": lambda: catalogue.read(failures_in),
        "numbers of a month's photos": lambda: catalogue.read(
            numbers_of, wanted=PhotoFilter(taken_from="2001-05", taken_to="2001-05")
        ),
        "numbers of all photos": lambda: catalogue.read(numbers_of),
        "folders, counted": lambda: catalogue.read(folders_of),
        "tags, counted": lambda: catalogue.read(tag_counts),
        "keys, counted": lambda: catalogue.read(key_counts),
        "folders that were indexed": lambda: catalogue.read(indexed_folders),
        "remove 100 photos": lambda: catalogue.write(make_tombstones, some(100)),
    }


def _near(rng: np.random.Generator) -> Near:
    latitude, longitude = np.random.default_rng(0).uniform((-60, -180), (70, 180), (TOWNS, 2))[rng.integers(TOWNS)]
    return Near(round(float(latitude), 4), round(float(longitude), 4), 10.0)


def ask(address: str) -> dict[str, str]:
    """Time each query three times, each time with a newly opened catalogue, except queries that follow a page."""
    times: dict[str, list[float]] = {}
    for seed in range(3):
        start = time.perf_counter()
        catalogue = Catalogue.open(address)
        times.setdefault("open", []).append(time.perf_counter() - start)
        queries = questions(catalogue, np.random.default_rng(seed))
        for name, question in queries.items():
            if "page" in name and "after" not in name and "next" not in name:
                catalogue._pages.__init__()  # type: ignore[misc]
            start = time.perf_counter()
            question()
            times.setdefault(name, []).append(time.perf_counter() - start)
        catalogue.close()
    return {name: _shown(statistics.median(seconds)) for name, seconds in times.items()}


def know(address: str) -> dict[str, str]:
    """Read all photos as indexing does before it begins."""
    with Catalogue.open(address) as catalogue:
        start = time.perf_counter()
        known = catalogue.known()
        seconds = time.perf_counter() - start
        assert known.get("/nowhere") is None
        return {f"what is known of {len(known):,} photos, for indexing": f"{_shown(seconds)}, {_peak()}"}


def check(address: str) -> dict[str, str]:
    """Check the rows as `cairn check` does, without the segments."""
    database = Database(address if "://" in address else f"sqlite:///{address}/catalogue.sqlite")
    start = time.perf_counter()
    if database.file is None:
        check_server(database, Path("/nowhere"))
    for one in segment_ids(database):
        rows = read_segment_rows(database, one)
        assert rows is not None and check_images(rows[1]) is None
    middle = time.perf_counter()
    wrong = list(check_rows(database))
    assert not wrong, wrong
    end = time.perf_counter()
    database.close()
    return {
        "check: the rows of the segments' photos": f"{_shown(middle - start)}",
        "check: metadata and the rest": f"{_shown(end - middle)}, {_peak()}",
    }


def _peak() -> str:
    return f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB of memory"


def _shown(seconds: float) -> str:
    return (
        f"{1000 * seconds:,.1f} ms"
        if seconds < 0.1
        else f"{1000 * seconds:,.0f} ms"
        if seconds < 10
        else f"{seconds:,.0f} s"
    )


def _apart(measure: Callable[..., dict[str, str]], *arguments: Any) -> dict[str, str]:
    """Measure in a subprocess, for separate memory figures."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, arguments)


def main() -> int:
    """Fill a catalogue, and measure it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", metavar="ADDRESS")
    parser.add_argument("--photos", type=int, default=100_000)
    parser.add_argument("--indexed", type=int, default=20_000, help="photos that are then added as indexing does")
    parser.add_argument("--segment", type=int, default=10_000, help="photos of a segment")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    measured: dict[str, str] = {}
    try:
        measured |= fill(options.address, options.photos, options.segment, options.seed)
        measured |= _apart(index, options.address, options.indexed, options.segment, options.seed)
        for measure in (ask, know, check):
            measured |= _apart(measure, options.address)
    except CairnError as error:
        print(f"catalogue_at_size: {error}", file=sys.stderr)
        return 2
    print("| what | measured |\n|---|---|")
    for name, row in measured.items():
        print(f"| {name} | {row} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
