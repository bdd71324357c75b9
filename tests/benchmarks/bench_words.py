"""What it takes to find photos by words: any word beginning, in SQLite and in PostgreSQL.

Run as `python -m tests.benchmarks.bench_words [--photos N] [--rounds N]`; it never gates. Photos are rows without
files, each with a title of four words, three tags, a date and a camera; words are as frequent as those of a language
are (Zipf). A server of PostgreSQL is started where its programs are installed.
"""

import argparse
import contextlib
import string
import tempfile
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import sqlalchemy as sa

from retrieval.catalogue.browsing import numbers_of, shapes_of
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.facets import facets_of
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.metadata_store import import_values
from retrieval.catalogue.schema import ImageRow, SegmentRow
from retrieval.catalogue.segment_rows import commit_segment
from retrieval.catalogue.settings import reserve_numbers
from retrieval.catalogue.words import make_words
from retrieval.metadata.fields import Metadata
from tests.support.postgresql import Server

SEGMENT = 5000
DIFFERENT = 20_000  # words
ALBUMS = ("holiday", "wedding")


def vocabulary(rng: np.random.Generator) -> list[str]:
    """Words of three to nine letters, the frequent ones first."""
    letters = np.array(list(string.ascii_lowercase))
    return ["".join(letters[rng.integers(0, 26, rng.integers(3, 10))]) for _ in range(DIFFERENT)]


def fill(catalogue: Catalogue, photos: int) -> list[str]:
    """Add photos; give the words that were drawn from."""
    rng = np.random.default_rng(0)
    words = vocabulary(rng)
    for number, first in enumerate(range(0, photos, SEGMENT)):
        count = min(SEGMENT, photos - first)
        drawn = np.minimum(rng.zipf(1.2, (count, 7)), DIFFERENT) - 1
        numbers = catalogue.write(reserve_numbers, count)
        rows, metadata = [], []
        for i in range(count):
            said = [words[place] for place in drawn[i]]
            day = f"{rng.integers(1900, 2020)}-{rng.integers(1, 13):02}-{rng.integers(1, 29):02}"
            path = f"/archive/{day[:4]}/{said[0]}/IMG_{first + i:06d}.jpg"
            sizes = {"width": 6000, "height": 4000, "features": 1000}
            rows.append(ImageRow(number=numbers + i, path=path, name=path[9:], position=i, **sizes))
            title = " ".join(said[:4]).title()
            metadata.append(Metadata(title=title, tags=tuple(said[4:]), taken=day, camera=f"Leica M{i % 9}"))
        fingerprints = {"vocabulary_fingerprint": "a" * 64, "descriptor_fingerprint": "b" * 64}
        segment = SegmentRow(folder=f"{number:06d}", images=count, features=1000 * count, bytes=1, **fingerprints)
        catalogue.write(commit_segment, segment, rows, metadata)
    return words


def timed(rounds: int, ask: Callable[[], object]) -> float:
    """Milliseconds of the quickest, as other programs may run."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        ask()
        times.append(1000 * (time.perf_counter() - start))
    return min(times)


def measure(address: str, photos: int, rounds: int) -> Iterator[tuple[str, str]]:
    """What was asked, and how long it took."""
    with Catalogue.open(address, create=True) as catalogue:
        start = time.perf_counter()
        words = fill(catalogue, photos)
        yield f"add {photos:,} photos", f"{time.perf_counter() - start:.0f} s"
        start = time.perf_counter()
        catalogue.write(make_words)
        yield "all words anew", f"{time.perf_counter() - start:.1f} s"
        if catalogue.file is None:
            engine = sa.create_engine(catalogue.address, isolation_level="AUTOCOMMIT")
            with engine.connect() as connection:
                connection.execute(sa.text("VACUUM ANALYZE"))  # as the server does by itself in time
            engine.dispose()
        common, rare = words[0], words[DIFFERENT // 2]
        requested = [
            *string.ascii_lowercase,
            common[:2],
            common[:3],
            common,
            rare[:2],
            rare[:3],
            rare,
            "1923",
            "19",
            "leica",
        ]
        requested += ["may 1923", f"{common[:2]} {words[1][:2]}", f"{common} 1923"]

        def page(text: str) -> int:
            with Catalogue.open(address) as fresh:  # nothing is counted yet
                return fresh.page(0, 60, PhotoFilter(words=text))[0]

        opening = timed(rounds, lambda: page(""))
        slowest = ("", 0.0)
        for text in requested:
            found = page(text)
            with Catalogue.open(address) as fresh:
                fresh.revision()
                for kind, ask in (
                    ("numbers", lambda text=text: fresh.read(numbers_of, PhotoFilter(words=text))),
                    ("first page", lambda text=text: Catalogue.page(_forgetful(fresh), 0, 60, PhotoFilter(words=text))),
                ):
                    spent = timed(rounds, ask)
                    if kind == "first page" and spent > slowest[1]:
                        slowest = (text, spent)
                    if len(text) > 1 or text in "ae":
                        yield f"{kind} of {text!r}: {found:,} photos", f"{spent:.1f} ms"
        yield f"the slowest first page, of {slowest[0]!r}", f"{slowest[1]:.1f} ms"
        yield "opening, and a page of all", f"{opening:.1f} ms"
        for text in (common[:2], rare):
            wanted = PhotoFilter(words=text)
            yield f"facets of {text!r}", f"{timed(rounds, lambda w=wanted: catalogue.read(facets_of, w)):.1f} ms"
            yield f"wall of {text!r}", f"{timed(rounds, lambda w=wanted: catalogue.read(shapes_of, w)):.1f} ms"
        edits = iter(range(10**6))
        edit = timed(rounds, lambda: catalogue.write(import_values, {7: {"title": [f"Edit {next(edits)}"]}}))
        yield "a title edited", f"{edit:.1f} ms"


def _forgetful(catalogue: Catalogue) -> Catalogue:
    catalogue._pages = type(catalogue._pages)()
    return catalogue


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print("SQLite")
        for reported in measure(folder, arguments.photos, arguments.rounds):
            print(*reported, sep="\t", flush=True)
    with contextlib.suppress(pytest.skip.Exception), Server() as server:
        print("PostgreSQL")
        for reported in measure(server.new_database(), arguments.photos, arguments.rounds):
            print(*reported, sep="\t", flush=True)


if __name__ == "__main__":
    main()
