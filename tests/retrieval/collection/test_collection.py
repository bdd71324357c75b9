"""Collections that cannot be opened, or locked, as they should: what is said of them."""

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from index.inverted import ScoringOptions
from retrieval.collection.collection import Collection
from retrieval.collection.layout import SEAL
from retrieval.collection.locking import lock_folder
from retrieval.collection.seal import write_seal
from retrieval.collection.sealing import seal
from tests.conftest import Indexed, Ran

Cairn = Callable[..., Ran]


def test_a_drive_without_locks_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    for _ in range(2):
        with lock_folder(tmp_path):
            pass
    reported = capsys.readouterr().err
    assert reported.count("\n") == 1 and "cannot be locked" in reported and "no other cairn command" in reported


@pytest.fixture
def copy(indexed: Indexed, tmp_path: Path) -> Path:
    return Path(shutil.copytree(indexed.folder, tmp_path / "demo.cairn"))


def test_options_that_do_not_count_are_told(copy: Path, indexed: Indexed, cairn: Cairn) -> None:
    command = ("index", copy, indexed.photos, "--workers", 1)
    reported = cairn(*command, "--words", 9999, "--max-side", 1024, "--rotated", "--descriptor", "sift")
    assert reported.code == 0
    assert reported.err.count("\n") == 1
    assert reported.err.endswith("do not count: --descriptor, --words, --upright/--rotated.\n")
    assert cairn(*command, "--max-side", 1024).err == ""
    assert "no descriptor 'foo'" in cairn(*command, "--descriptor", "foo").refused()
    assert "foo.npz" in cairn(*command, "--descriptor", "foo.npz").refused()


@pytest.mark.parametrize("damage", ["empty catalogue", "no catalogue", "no options"])
def test_a_damaged_collection_is_to_be_repaired(copy: Path, indexed: Indexed, cairn: Cairn, damage: str) -> None:
    file = copy / ("collection.toml" if damage == "no options" else "catalogue.sqlite")
    file.unlink()
    if damage == "empty catalogue":
        file.touch()
    for command in (("info", copy), ("index", copy, indexed.photos)):
        reported = cairn(*command).refused()
        assert file.name in reported and "run cairn check, then cairn repair" in reported
    assert cairn("check", copy).code == 1
    assert cairn("repair", copy).code in (0, 1)
    assert cairn("info", copy, "--json").json["images"] > 0


@pytest.mark.parametrize("left", ["missing", "empty"])
def test_a_catalogue_on_a_server_needs_its_address(copy: Path, cairn: Cairn, left: str) -> None:
    (copy / SEAL).unlink(missing_ok=True)
    with Collection.open(copy) as collection:
        write_seal(copy / SEAL, replace(seal(collection), database="postgresql", catalogue=None))
    (copy / "catalogue.sqlite").unlink()
    if left == "empty":
        (copy / "catalogue.sqlite").touch()
    reported = cairn("info", copy).refused()
    assert "postgresql" in reported and "made with, with --catalogue" in reported


def test_what_is_not_there_makes_no_collection(indexed: Indexed, tmp_path: Path, cairn: Cairn) -> None:
    made = tmp_path / "new.cairn"
    assert "typo" in cairn("index", made, indexed.photos, tmp_path / "typo").refused()
    assert "typo" in cairn("index", made, indexed.photos, "--vocabulary", tmp_path / "typo").refused()
    assert not made.exists()


def test_what_was_read_is_kept_until_it_is_forgotten(opened: Collection) -> None:
    rooted = ScoringOptions("sqrt")
    before = opened.index, opened.scored_index(rooted), opened.vocabulary
    assert (opened.scored_index(ScoringOptions()), opened.scored_index(rooted), opened.vocabulary) == before
    assert not np.array_equal(before[0].norms, before[1].norms)
    opened.forget()
    assert opened.index is not before[0] and opened.vocabulary is before[2]
    # One that differs in an option shares nothing that was read.
    assert replace(opened, options=replace(opened.options, keep_descriptors=False)).vocabulary is not before[2]
