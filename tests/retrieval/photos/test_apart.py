"""Photos are decoded in processes of their own: with the same result, for a bounded time, whatever becomes of these."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from index.errors import CairnError
from retrieval.photos import apart
from retrieval.photos.apart import decoding_here, is_apart, prepare_decoding
from retrieval.photos.decoding import read_colour, read_orientation, read_photo
from retrieval.photos.options import ImageOptions
from tests.support.heavy_photos import every_format, slow
from tests.support.hostile import encode, photo, png
from tests.support.live import until
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(not is_apart(), reason="photos are decoded by the process that asks")


@pytest.fixture(scope="module")
def slow_photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("slow") / "slow.jpg"
    path.write_bytes(slow())
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.jpg"
    path.write_bytes(encode(photo(size=(96, 64)), "JPEG"))
    return path


def _children(of: int | None) -> list[psutil.Process]:
    """Processes that a process has started, and that have not ended."""
    found = []
    for one in psutil.Process(of).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
    return found


def _servers(of: int | None = None) -> list[psutil.Process]:
    """Processes that fork those that decode, of this process or another."""
    found = []
    for one in _children(of):
        with contextlib.suppress(psutil.NoSuchProcess):  # of an earlier test, ended just now
            if "serve_forks" in str(one.cmdline()):
                found.append(one)
    return found


def _decoding(path: Path, of: int | None = None) -> list[psutil.Process]:
    """Processes that decode this photo now, of this process or another."""
    found = []
    for server in _servers(of):
        with contextlib.suppress(psutil.NoSuchProcess):
            found += _children(server.pid)
    return [one for one in found if _reads(one, path)]


def _reads(process: psutil.Process, path: Path) -> bool:
    with contextlib.suppress(OSError):  # it has ended just now
        return Path(f"/proc/{process.pid}/fd/0").readlink() == path
    return False


class _Reading:
    """A photo that is read meanwhile."""

    def __init__(self, path: Path) -> None:
        self.found: object = None
        self._path = path
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        try:
            self.found = read_photo(self._path)
        except CairnError as error:
            self.found = str(error)

    def join(self) -> object:
        self._thread.join()
        return self.found


@pytest.mark.parametrize(("name", "content"), every_format().items(), ids=every_format())
def test_every_format_gives_the_same_pixels_without_rights(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / "photo"
    path.write_bytes(content)
    for options in (ImageOptions(), ImageOptions(max_side=40)):
        with decoding_here():
            grey, colour = read_photo(path, options), read_colour(path, options)
        apart_ = read_photo(path, options)
        assert (apart_.width, apart_.height) == (grey.width, grey.height) == (96, 64)
        np.testing.assert_array_equal(apart_.grey, grey.grey)
        np.testing.assert_array_equal(read_colour(path, options), colour)
    assert read_orientation(path) == 1


def test_heic_gives_the_same_pixels_without_rights(tmp_path: Path) -> None:
    pillow_heif = pytest.importorskip("pillow_heif")
    pillow_heif.from_pillow(photo(size=(96, 64))).save(tmp_path / "a.heic")
    with decoding_here():
        here = read_colour(tmp_path / "a.heic")
    np.testing.assert_array_equal(read_colour(tmp_path / "a.heic"), here)


def test_a_photo_that_takes_too_long_is_given_up(slow_photo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_photo(slow_photo).grey.shape == (683, 1024)
    monkeypatch.setattr(apart, "LEAST_SECONDS", 1)
    monkeypatch.setattr(apart, "PIXELS_A_SECOND", 1_000_000_000)
    with pytest.raises(CairnError, match=r"^decoding it takes far longer than a photo of its size does$"):
        read_photo(slow_photo)


def test_what_a_photo_may_take_grows_with_its_pixels(slow_photo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "LEAST_SECONDS", 1)
    assert read_photo(slow_photo).grey.shape == (683, 1024)


@pytest.mark.parametrize(
    ("number", "reason"), [(signal.SIGSEGV, "its decoder crashed"), (signal.SIGKILL, "for want of memory")]
)
def test_a_process_that_dies_of_a_photo_is_that_photos_reason(
    slow_photo: Path, small: Path, number: signal.Signals, reason: str
) -> None:
    read_photo(small)
    reading = _Reading(slow_photo)
    until(lambda: _decoding(slow_photo))[0].send_signal(number)
    assert reason in str(reading.join())
    assert read_photo(small).width == 96


@pytest.mark.slow
def test_photos_are_read_again_where_the_process_that_forks_was_killed(slow_photo: Path, small: Path) -> None:
    read_photo(small)
    for server in _servers():  # of earlier tests, too
        server.kill()
        server.wait()
    assert read_photo(small).width == 96
    reading = _Reading(slow_photo)
    decoding = until(lambda: _decoding(slow_photo))
    decoding[0].parent().kill()
    found = reading.join()
    assert not isinstance(found, str), found
    until(lambda: not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in decoding))


def test_several_photos_are_decoded_at_once(slow_photo: Path, small: Path) -> None:
    readings = [_Reading(slow_photo) for _ in range(2)]
    until(lambda: len(_decoding(slow_photo)) == 2)
    assert read_photo(small).width == 96
    assert len(_decoding(slow_photo)) == 2
    for process in _decoding(slow_photo):
        process.kill()
    assert all("memory" in str(one.join()) for one in readings)


@pytest.fixture
def reader(slow_photo: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A program that reads a photo."""
    script = f"""
        from pathlib import Path
        from retrieval.photos.decoding import read_photo
        read_photo(Path({str(slow_photo)!r}))
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_what_decodes_ends_with_the_program_that_asks(slow_photo: Path, reader: "subprocess.Popen[bytes]") -> None:
    (decoding,) = until(lambda: _decoding(slow_photo, reader.pid))
    server = decoding.parent()
    reader.kill()
    reader.wait()
    until(lambda: not (decoding.is_running() or server.is_running()))
    assert reader.stderr is not None and reader.stderr.read() == b""


def test_the_limit_of_memory_of_who_asks_holds(tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = tmp_path / "large.png"
    large.write_bytes(png(12_000, 12_000))
    monkeypatch.setattr(apart, "_memory", lambda: 140 << 20)
    assert read_photo(small).width == 96
    with pytest.raises(CairnError, match="there is not enough memory to decode it"):
        read_photo(large)


def test_decoding_is_prepared_once_and_waited_for(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "_server", None)
    before = _servers()
    for _ in range(3):
        prepare_decoding()
    assert read_photo(small).width == 96
    (started,) = set(_servers()) - set(before)
    started.kill()
    started.wait()
    prepare_decoding()
    assert read_photo(small).width == 96


def test_what_decodes_has_no_secret_and_no_other_file(
    slow_photo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the photo, whom it answers, and a place where nothing goes."""
    monkeypatch.setattr(apart, "_server", None)
    monkeypatch.setenv("CAIRN_TOKEN", "secret-of-a-test")
    reading = _Reading(slow_photo)
    with (tmp_path / "open").open("w"):
        decoding = until(lambda: [one for one in _decoding(slow_photo) if one.cpu_times().user > 0.2])[0]
        handles = Path(f"/proc/{decoding.pid}/fd")
        opened = {int(one.name): str(one.readlink()) for one in handles.iterdir()}
        assert sorted(opened) == [0, 1, 2]
        assert (opened[0], opened[2]) == (str(slow_photo), os.devnull) and opened[1].startswith("socket:")
        assert b"secret" not in Path(f"/proc/{decoding.pid}/environ").read_bytes()
    decoding.kill()
    reading.join()


def test_where_no_process_can_be_started_the_photo_says_so(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "_server", None)

    def none(*_: object, **__: object) -> None:
        raise BlockingIOError(11, os.strerror(11))

    monkeypatch.setattr(subprocess, "Popen", none)
    with pytest.raises(CairnError, match="no process can be started to decode it"):
        read_photo(small)
