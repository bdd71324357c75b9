"""Watching folders: what happens while nobody looks is not lost, and what the collection writes does not count."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from retrieval.photos.listing import list_photos
from retrieval.photos.watching import WatchOptions, changes
from tests.support.hostile import photo
from tests.support.paths import ROOT
from tests.support.patience import patience


@pytest.mark.slow
def test_it_yields_at_once_after_a_change_and_when_time_is_up(tmp_path: Path) -> None:
    inside = tmp_path / "c.cairn"
    inside.mkdir()
    every = patience(3.0)
    watching = changes([tmp_path], inside, WatchOptions(every=every, settle=0.1))
    next(watching)
    (tmp_path / "new.jpg").write_bytes(b"1")  # while the caller is at work
    start = time.monotonic()
    next(watching)
    assert time.monotonic() - start < every - 0.5
    (inside / "segment.npy").write_bytes(b"1")
    (tmp_path / ".hidden.jpg").write_bytes(b"1")
    start = time.monotonic()
    next(watching)
    assert time.monotonic() - start > every - 1


def test_a_collection_among_the_photos_is_not_indexed(tmp_path: Path) -> None:
    (tmp_path / "c.cairn" / "cache" / "thumbnails").mkdir(parents=True)
    (tmp_path / "c.cairn" / "collection.toml").touch()
    (tmp_path / "c.cairn" / "cache" / "thumbnails" / "1.jpg").touch()
    (tmp_path / "1.jpg").touch()
    assert [path.name for _, path in list_photos([tmp_path])] == ["1.jpg"]


@pytest.mark.slow
def test_the_command_keeps_a_collection_as_its_folder_is(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    for number, name in enumerate(("astronaut", "coffee")):
        photo(name, (200, 150)).save(photos / f"{number}.jpg")
    # A process that was started in the background takes no notice of Ctrl-C.
    program = "import signal, cairn; signal.signal(signal.SIGINT, signal.default_int_handler); cairn.main()"
    command = [sys.executable, "-c", program, "index", photos / "c.cairn", photos, "--watch", "--json"]
    with subprocess.Popen(
        [*map(str, command)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdout is not None

        def told() -> dict[str, object]:
            report = json.loads(process.stdout.readline())  # type: ignore[union-attr]
            return {key: report[key] for key in ("added", "moved", "vanished", "images")}

        assert told() == {"added": 2, "moved": [], "vanished": [], "images": 2}
        photo("rocket", (200, 150)).save(photos / "2.jpg")
        assert told() == {"added": 1, "moved": [], "vanished": [], "images": 3}
        (photos / "0.jpg").rename(photos / "moved.jpg")
        assert told() == {"added": 0, "moved": ["moved.jpg"], "vanished": [], "images": 3}
        (photos / "1.jpg").unlink()
        assert told() == {"added": 0, "moved": [], "vanished": ["1.jpg"], "images": 3}
        process.send_signal(signal.SIGINT)
        assert process.wait(patience(20)) == 0
