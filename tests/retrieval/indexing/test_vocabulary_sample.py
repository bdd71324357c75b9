"""Which photos make a vocabulary, and by how many passes: as it is made, and made again."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from index.errors import CairnError
from index.vocabulary import Vocabulary
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions, read_options
from retrieval.indexing.adding import index_photos
from retrieval.indexing.retrain_options import RetrainOptions
from retrieval.indexing.retraining import retrain
from tests.conftest import Ran
from tests.support.written_photos import Album

PLAIN = CollectionOptions(words=12, iterations=3, signature="none")


def made(folder: Path, photos: list[Path], options: CollectionOptions) -> Vocabulary:
    with Collection.create(folder, options) as collection:
        index_photos(collection, photos)
        return collection.vocabulary


@pytest.mark.slow
def test_distractors_have_no_part_in_the_vocabulary_where_a_folder_is_named(album: Album, tmp_path: Path) -> None:
    album.put(**{f"set__s{i}": i for i in range(6)}, **{f"noise__n{i}": i for i in range(11, 30)})
    own, both = album.photos / "set", [album.photos / "noise", album.photos / "set"]
    alone = made(tmp_path / "alone.cairn", [own], PLAIN)
    options = replace(PLAIN, sample_from=str(own))
    beside = made(tmp_path / "beside.cairn", both, options)
    assert beside.fingerprint == alone.fingerprint != made(tmp_path / "all.cairn", both, PLAIN).fingerprint
    assert beside.trained_on == "6 photos of beside.cairn"
    # The size that follows from the features is that of these photos, too.
    by_size = [
        made(tmp_path / f"{name}.cairn", photos, replace(options, words=0)).words
        for name, photos in (("one", [own]), ("two", both))
    ]
    assert by_size[0] == by_size[1]
    # A collection remembers it, so that the vocabulary that is made again is of the same photos.
    assert read_options(tmp_path / "beside.cairn" / "collection.toml") == options
    with Collection.open(tmp_path / "beside.cairn") as collection:
        retrain(collection, RetrainOptions(words=12))
        assert collection.vocabulary.trained_on == "6 photos of beside.cairn"
        retrain(collection, RetrainOptions(words=12, sample=2, iterations=5))
        assert collection.vocabulary.trained_on == "2 photos of beside.cairn"
        assert collection.vocabulary.training["iterations"] == 5
    with pytest.raises(CairnError, match="index that folder first"):
        made(tmp_path / "other.cairn", [album.photos / "noise"], options)


def test_links_to_a_folder_lead_to_its_photos(album: Album, tmp_path: Path) -> None:
    album.put(**{f"set__s{i}": i for i in range(4)}, **{f"noise__n{i}": i for i in range(11, 20)})
    (tmp_path / "link").symlink_to(album.photos / "set")
    found = made(tmp_path / "c.cairn", [album.photos], replace(PLAIN, sample_from=str(tmp_path / "link")))
    assert found.trained_on.startswith("4 photos")


def test_all_photos_or_some_make_it(album: Album, tmp_path: Path) -> None:
    album.put(**{f"s{i}": i for i in range(9)})
    found = {many: made(tmp_path / f"{many}.cairn", [album.photos], replace(PLAIN, sample=many)) for many in (0, 3, 50)}
    assert [int(one.trained_on.split()[0]) for one in found.values()] == [9, 3, 9]
    assert found[0].fingerprint == found[50].fingerprint != found[3].fingerprint


def test_the_command_takes_them(cairn: Callable[..., Ran], album: Album, tmp_path: Path) -> None:
    album.put(**{f"set__s{i}": i for i in range(6)}, **{f"noise__n{i}": i for i in range(11, 20)})
    folder, own = tmp_path / "c.cairn", album.photos / "set"
    command = ("index", folder, album.photos, "--words", 12, "--workers", 1)
    requested = ("--vocabulary-folder", own, "--vocabulary-photos", 4, "--kmeans-passes", 3)
    assert cairn(*command, *requested).code == 0
    kept = read_options(folder / "collection.toml")
    assert (kept.sample, kept.sample_from, kept.iterations) == (4, str(own), 3)
    # What a later run asks for does not count, and that is said; the same again is not.
    assert "options" not in cairn(*command, *requested).err
    reported = cairn(*command, "--vocabulary-photos", "all", "--kmeans-passes", 4).err
    assert "--vocabulary-photos" in reported and "--kmeans-passes" in reported and "--vocabulary-folder" not in reported
    assert cairn("retrain", folder, "--words", 12, "--vocabulary-photos", "all", "--workers", 1).code == 0
    with Collection.open(folder) as collection:
        assert collection.vocabulary.trained_on == "6 photos of c.cairn"
    new = ("index", tmp_path / "new.cairn", album.photos)
    assert "all" in cairn(*new, "--vocabulary-photos", "some").refused()
    assert "1 at least" in cairn(*new, "--vocabulary-photos", 0).refused()
    assert "check the name" in cairn(*new, "--vocabulary-folder", tmp_path / "none").refused()
    assert not (tmp_path / "new.cairn").exists()
