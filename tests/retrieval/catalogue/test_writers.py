"""Several processes that write to one catalogue at once; one is killed, or the server starts again meanwhile."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from index.errors import CairnError, DatabaseError
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.metadata_store import tag_counts
from retrieval.catalogue.photos import all_indexed, count_indexed, counts_of_photos
from retrieval.catalogue.schema import ImageRow, SegmentRow
from retrieval.catalogue.segment_rows import commit_segment, segments_in
from retrieval.catalogue.settings import reserve_numbers
from tests.support.paths import ROOT
from tests.support.postgresql import Server

WRITERS, SEGMENTS, PHOTOS = 4, 6, 20

# A writer: it reserves numbers and folders, and commits segments of photos, half of which wish for names that those of
# the others wish for too. It prints what it was given, a line a segment, when that is committed.
WRITER = """
import json, sys
from pathlib import Path
from index.errors import CairnError
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.schema import ImageRow, SegmentRow
from retrieval.catalogue.segment_rows import commit_segment
from retrieval.catalogue.settings import reserve_numbers
from retrieval.metadata.fields import Metadata

address, shard, segments, photos = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with Catalogue.open(address, create=True) as catalogue:
    for number in range(segments):
        first = catalogue.write(reserve_numbers, photos)
        folder = catalogue.next_folder(Path("/nowhere"))
        rows = [
            ImageRow(number=first + i, path=f"/{shard}/{number}/{i}.jpg", position=i, features=2,
                     name=f"{number}/{i}.jpg" if i % 2 else f"{shard}/{number}/{i}.jpg")
            for i in range(photos)
        ]
        segment = SegmentRow(folder=folder, images=photos, features=2 * photos, bytes=1,
                             vocabulary_fingerprint="v", descriptor_fingerprint="d")
        names = catalogue.write(commit_segment, segment, rows, [Metadata(taken="2001", tags=(shard,))] * photos)
        print(json.dumps({"first": first, "folder": folder, "names": names}), flush=True)
"""


def start_writer(address: str, shard: str, segments: int = SEGMENTS) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, address, shard, str(segments), str(PHOTOS)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check_all(address: str, reported: list[dict[str, object]]) -> None:
    """All that writers had confirmed is in the catalogue, once, and nothing is there in part."""
    with Catalogue.open(address) as catalogue:
        rows, segments = catalogue.read(all_indexed), catalogue.read(segments_in)
        assert len({segment.folder for segment in segments}) == len(segments)
        assert {str(one["folder"]) for one in reported} <= {segment.folder for segment in segments}
        numbers = [row.number for row in rows]
        names = [str(row.name) for row in rows]
        assert len(set(numbers)) == len(set(names)) == len(rows) == PHOTOS * len(segments)
        assert catalogue.read(counts_of_photos) == {
            "indexed": len(rows),
            "failed": 0,
            "removed": 0,
            "features": 2 * len(rows),
        }
        there = dict(zip(numbers, names, strict=True))
        for one in reported:
            assert [there[int(str(one["first"])) + i] for i in range(PHOTOS)] == one["names"]
        assert catalogue.write(reserve_numbers, 1) > max(numbers)
        assert sum(count for _, count in catalogue.read(tag_counts)) == len(rows)
        assert catalogue.setting("cairn.revision") == catalogue.setting("cairn.revision_copy")


@pytest.mark.slow
def test_four_writers_at_once_lose_and_double_nothing(postgresql: Callable[[], str]) -> None:
    address = postgresql()
    writers = [start_writer(address, f"shard{i}") for i in range(WRITERS)]
    done = [writer.communicate(timeout=120) for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * WRITERS, done
    reported = [json.loads(line) for out, _ in done for line in out.splitlines()]
    assert len(reported) == WRITERS * SEGMENTS
    check_all(address, reported)
    with Catalogue.open(address) as catalogue:
        # The catalogue was made, each segment took three transactions, and the check above took one.
        assert catalogue.revision() == 1 + 3 * len(reported) + 1
        # Where several wish for a name, one has it.
        assert sum(str(row.name) == "0/1.jpg" for row in catalogue.read(all_indexed)) == 1


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_the_others_undisturbed(postgresql: Callable[[], str]) -> None:
    address = postgresql()
    victim = start_writer(address, "victim", 10_000)
    others = [start_writer(address, f"shard{i}") for i in range(2)]
    assert victim.stdout is not None
    reported = [json.loads(victim.stdout.readline()) for _ in range(3)]
    time.sleep(0.013)  # in the middle of something
    victim.send_signal(signal.SIGKILL)
    reported += [json.loads(line) for line in victim.stdout.read().splitlines() if line.endswith("}")]
    victim.wait(timeout=60)
    for writer in others:
        out, err = writer.communicate(timeout=120)
        assert writer.returncode == 0, err
        reported += [json.loads(line) for line in out.splitlines()]
    check_all(address, reported)


def segment_of(folder: str, first: int) -> tuple[SegmentRow, list[ImageRow]]:
    rows = [
        ImageRow(number=first + i, path=f"/{folder}/{i}.jpg", position=i, features=2, name=f"{folder}/{i}.jpg")
        for i in range(PHOTOS)
    ]
    fingerprints = {"vocabulary_fingerprint": "v", "descriptor_fingerprint": "d"}
    created = "2026-01-01T00:00:00+00:00"  # two that are made alike are one segment, whenever they are made
    row = SegmentRow(folder=folder, images=PHOTOS, features=2 * PHOTOS, bytes=1, created=created, **fingerprints)
    return row, rows


def test_a_server_that_starts_anew_interrupts_with_one_sentence(own_server: Server) -> None:
    address = own_server.new_database()
    with Catalogue.open(address, create=True) as catalogue:
        first = catalogue.write(reserve_numbers, PHOTOS)
        reported = pytest.raises(DatabaseError, match=r"connection .* was lost .* run the command again")
        with reported, catalogue.writing() as session:
            own_server.stop("fast")
            session.connection().exec_driver_sql("SELECT 1")
        own_server.start()
        assert catalogue.read(count_indexed) == 0
        catalogue.write(commit_segment, *segment_of("000001", first))
        assert catalogue.read(count_indexed) == PHOTOS


def test_a_call_waits_for_a_server_that_is_starting_anew(own_server: Server) -> None:
    address = own_server.new_database()
    with Catalogue.open(address, create=True) as catalogue:
        first = catalogue.write(reserve_numbers, PHOTOS)
        own_server.stop()
        starting = threading.Timer(0.5, own_server.start)
        starting.start()
        try:
            catalogue.write(commit_segment, *segment_of("000001", first))
        finally:
            starting.join()
        assert catalogue.read(count_indexed) == PHOTOS and catalogue.revision() == 3


def test_a_server_that_stays_away_is_told_in_one_sentence(own_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval.catalogue.database.RECONNECT_SECONDS", 0.3)
    with Catalogue.open(own_server.new_database(), create=True) as catalogue:
        own_server.stop()
        try:
            with pytest.raises(CairnError, match=r"cannot be used .* check that it exists"):
                catalogue.read(count_indexed)
        finally:
            own_server.start()
        assert catalogue.read(count_indexed) == 0


def test_what_was_committed_before_the_answer_was_lost_is_not_done_twice(postgresql: Callable[[], str]) -> None:
    with Catalogue.open(postgresql(), create=True) as catalogue:
        first = catalogue.write(reserve_numbers, PHOTOS)
        names = catalogue.write(commit_segment, *segment_of("000001", first))
        before = catalogue.read(counts_of_photos)
        assert catalogue.write(commit_segment, *segment_of("000001", first)) == names
        assert catalogue.read(counts_of_photos) == before
        # Another segment of that name is none that was committed.
        with pytest.raises(CairnError, match=r"(?i)unique"):
            catalogue.write(commit_segment, *segment_of("000001", catalogue.write(reserve_numbers, PHOTOS)))
        assert catalogue.read(counts_of_photos) == before


@pytest.mark.slow
def test_writers_go_on_when_the_server_has_started_anew(own_server: Server) -> None:
    address = own_server.new_database()
    Catalogue.open(address, create=True).close()
    writers = [start_writer(address, f"shard{i}", 10_000) for i in range(2)]
    reported = []
    for writer in writers:
        assert writer.stdout is not None
        reported.append(json.loads(writer.stdout.readline()))
    own_server.stop()
    own_server.start()
    # Each goes on, or ends with one sentence where it was in the middle of something.
    time.sleep(1)
    for writer in writers:
        writer.kill()
        out, err = writer.communicate(timeout=60)
        reported += [json.loads(line) for line in out.splitlines() if line.endswith("}")]
        if err:
            assert "run the command again" in err.splitlines()[-1], err
    check_all(address, reported)
    again = start_writer(address, "again", 2)
    out, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    check_all(address, reported + [json.loads(line) for line in out.splitlines()])


def test_folders_are_given_once(postgresql: Callable[[], str], tmp_path: Path) -> None:
    address = postgresql()
    (tmp_path / "000007").mkdir()
    with Catalogue.open(address, create=True) as one, Catalogue.open(address) as other:
        assert one.next_folder(tmp_path / "none") == "000001"
        assert other.next_folder(tmp_path) == "000008"
        assert one.next_folder(tmp_path / "none") == "000009"
