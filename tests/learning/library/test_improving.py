"""Improving the search of a collection: the learnt descriptor takes over if it finds more; else nothing changes."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

import learning.library.improving as improving
from index.errors import CairnError
from learning.library.choices import ImproveOptions
from learning.library.improving import improve
from learning.mining.mining import TooLittle
from retrieval.catalogue.metadata_store import import_values, metadata_of
from retrieval.collection.layout import IMPROVEMENT, IMPROVEMENT_PICTURE, IMPROVING
from retrieval.collection.locking import CollectionLocked, lock_file
from retrieval.descriptors.registry import find_descriptor, model_file
from retrieval.integrity.check import check_collection
from tests.conftest import Ran
from tests.support.processes import clean_forks
from tests.support.written_photos import Album, album, extraction_from_files  # noqa: F401

PHOTOS = {f"p{i:02}": i for i in (0, 1, 2, 3, 4, 5, 6, 10)}
LEARNT = find_descriptor("cairn")


def slow(*cases: Any) -> list[Any]:
    """Cases that are left to --all."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow) for case in cases]


@pytest.fixture
def filled(album: Album) -> Album:  # noqa: F811
    album.put(**PHOTOS)
    album.index()
    with album.open() as collection:
        collection.catalogue.write(import_values, {1: {"place": ["Ghent"]}})
    return album


class Learning:
    """Stands for learning and judging: returns a descriptor that comes with Cairn, with this outcome."""

    def __init__(self, outcome: str) -> None:
        self.outcome = outcome
        self.calls: list[str] = []

    def __call__(self, source: Path, out: Path, _model: Any, data: Any, *_: Any, **__: Any) -> Any:
        self.calls.append(data.rival)
        model = model_file("cairn")
        assert model is not None
        shutil.copyfile(model, out)
        gain = {"better": 0.1, "worse": -0.1}.get(self.outcome, 0.0)
        name = find_descriptor(data.rival).name
        figures = {"difference": gain, "standard_error": 0.01, "won": 12, "lost": 3}
        engines = {engine: {"learnt": 0.7 + gain, name: 0.7, **figures} for engine in ("tf-idf", "tf-idf-sp")}
        searched = {"photos": 8, "held_out_scenes": 5, "queries": 20}
        retrieval = {"measured": True, "outcome": self.outcome, **searched, **engines}
        return SimpleNamespace(
            name=LEARNT.name,
            fingerprint=LEARNT.fingerprint,
            verdict=f"The verdict is {self.outcome}.",
            to_dict=lambda: {"retrieval": retrieval},
        )


@pytest.fixture
def learning(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Learning]:
    def learn(outcome: str) -> Learning:
        made = Learning(outcome)
        monkeypatch.setattr(improving, "learn_from_photos", made)
        return made

    return learn


def state_of(album: Album) -> tuple[str, dict[str, int], Any]:  # noqa: F811
    """The descriptor in use, the numbers of the photos, and metadata of one."""
    with album.open() as collection:
        return collection.descriptor.fingerprint, album.held(), collection.catalogue.read(metadata_of, [1])


def test_what_finds_more_takes_over(filled: Album, learning: Callable[[str], Learning]) -> None:
    before, numbers, known = state_of(filled)
    steps: list[str] = []
    learnt = learning("better")
    done = improve(filled.place, ImproveOptions(workers=1), progress=lambda step, *_: steps.append(step))
    assert done.verdict == "better" and done.switched and learnt.calls == ["rootsift"]
    assert "of 20 searches for parts of 5 scenes" in done.sentence and "12 found more and 3 less" in done.sentence
    assert done.sentence.endswith("All photos are indexed with it now.")
    assert done.before == {
        "descriptor": "rootsift",
        "fingerprint": before,
        "map": {"words": 0.7, "verified": 0.7},
    }
    assert done.after is not None and done.after["map"]["verified"] == pytest.approx(0.8)
    assert {"extract", "vocabulary", "index"} <= set(steps) and set(steps) <= improving.TITLES.keys()
    assert state_of(filled) == (LEARNT.fingerprint, numbers, known)
    assert check_collection(filled.place).ok
    kept = json.loads((filled.place / IMPROVEMENT).read_text())
    assert kept == {"format": 1, **done.to_dict()}
    ElementTree.parse(filled.place / IMPROVEMENT_PICTURE)
    assert not (filled.place / IMPROVING).exists()
    # The next run is compared with the descriptor in use now.
    learnt = learning("same")
    assert not improve(filled.place, ImproveOptions(workers=1)).switched
    assert [Path(one).parent.name for one in learnt.calls] == ["vocabulary-000002"]


@pytest.mark.parametrize("outcome", ["same", *slow("worse", "cannot say")])
def test_what_finds_no_more_changes_nothing(
    filled: Album, learning: Callable[[str], Learning], outcome: str, cairn: Callable[..., Ran]
) -> None:
    before, answers = state_of(filled), filled.answers()
    learning(outcome)
    reported = cairn("improve", filled.place, "--workers", 1, "--json").json
    assert (reported["verdict"], reported["switched"]) == (outcome, False)
    assert reported["sentence"] == f"The verdict is {outcome}. Nothing is changed."
    assert set(reported) >= {"before", "after", "seconds", "searches", "collection", "dry_run"}
    assert state_of(filled) == before and filled.answers() == answers
    assert [path.name for path in filled.place.glob("vocabulary*")] == ["vocabulary"]
    assert json.loads((filled.place / IMPROVEMENT).read_text())["verdict"] == outcome
    assert check_collection(filled.place).ok


def test_too_few_photos_say_so(filled: Album, monkeypatch: pytest.MonkeyPatch, cairn: Callable[..., Ran]) -> None:
    def learn(*_: Any, **__: Any) -> Any:
        raise CairnError("Until then.") from TooLittle("Too few photos overlap.")

    monkeypatch.setattr(improving, "learn_from_photos", learn)
    ran = cairn("improve", filled.place, "--workers", 1)
    assert ran.code == 0 and "Too few photos overlap. Nothing is changed." in " ".join(ran.out.split())
    assert "No searches could be measured" in (filled.place / IMPROVEMENT_PICTURE).read_text()


def test_one_that_is_killed_while_it_clears_up_ends_the_same(
    filled: Album,
    learning: Callable[[str], Learning],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def die(folder: Path, **_: Any) -> None:
        (folder / "judged.json").unlink(missing_ok=True)
        raise KeyboardInterrupt

    learnt = learning("better")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(improving.shutil, "rmtree", die)
        improve(filled.place, ImproveOptions(workers=1))
    done = improve(filled.place, ImproveOptions(workers=1))
    assert (done.verdict, done.switched, len(learnt.calls)) == ("better", True, 1)
    assert not (filled.place / IMPROVING).exists()


def test_a_dry_run_is_the_first_part_of_the_next(filled: Album, learning: Callable[[str], Learning]) -> None:
    learnt, before = learning("better"), state_of(filled)
    done = improve(filled.place, ImproveOptions(dry_run=True, workers=1))
    assert done.verdict == "better" and not done.switched and "would index" in done.sentence
    assert state_of(filled) == before and not (filled.place / IMPROVEMENT).exists()
    report = check_collection(filled.place)
    assert report.ok and any("cairn improve again goes on with it" in note for note in report.notes)
    assert improve(filled.place, ImproveOptions(workers=1)).switched
    assert len(learnt.calls) == 1
    # Verdicts on other photos are not reused.
    improve(filled.place, ImproveOptions(dry_run=True, workers=1))
    filled.put(new=8)
    filled.index()
    improve(filled.place, ImproveOptions(dry_run=True, workers=1))
    assert len(learnt.calls) == 3


def _improve_until(place: str, collection: Path) -> None:
    """Learn a better descriptor, in a process that ends when a function is called."""
    with extraction_from_files(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(improving, "learn_from_photos", Learning("better"))
        patch.setattr(place, lambda *_, **__: os._exit(9))
        improve(collection, ImproveOptions(workers=1))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="victims are forked")
@pytest.mark.parametrize(
    ("place", "again"),
    [
        ("learning.library.improving.save_json", True),  # learnt, and not yet noted
        *slow(
            ("learning.library.improving.retrain", False),
            ("retrieval.indexing.retraining.write_photos", False),
            ("retrieval.indexing.retraining.segment_row", False),
        ),
        ("retrieval.indexing.retraining.replace_segments", False),
        ("retrieval.collection.sealing.seal", False),  # switched
        *slow(("learning.library.improving.draw_verdict", False)),
    ],
)
def test_a_run_that_is_killed_leaves_the_old_index_or_the_new_one_and_the_next_goes_on(
    filled: Album, learning: Callable[[str], Learning], place: str, again: bool
) -> None:
    learnt, before = learning("better"), state_of(filled)
    answers = filled.answers()
    process = clean_forks(__name__).Process(target=_improve_until, args=(place, filled.place))
    process.start()
    process.join()
    assert process.exitcode == 9
    switched = place.endswith((".seal", ".draw_verdict"))
    if switched:
        assert state_of(filled) == (LEARNT.fingerprint, *before[1:])
    else:
        assert state_of(filled) == before and filled.answers() == answers
    assert not (filled.place / IMPROVEMENT).exists()
    done = improve(filled.place, ImproveOptions(workers=1))
    assert done.switched and done.verdict == "better" and len(learnt.calls) == int(again)
    assert state_of(filled) == (LEARNT.fingerprint, *before[1:])
    assert (filled.place / IMPROVEMENT).is_file() and not (filled.place / IMPROVING).exists()
    assert check_collection(filled.place).ok


def test_what_could_not_be_indexed_anew_is_refused_before_all_work(
    filled: Album, learning: Callable[[str], Learning]
) -> None:
    learnt = learning("better")
    (filled.photos / "p01.jpg").unlink()
    with pytest.raises(CairnError, match=r"The files of 1 photos are gone, such as .*p01.jpg.*drop_missing"):
        improve(filled.place, ImproveOptions(workers=1))
    assert learnt.calls == [] and not (filled.place / IMPROVING).exists()
    done = improve(filled.place, ImproveOptions(drop_missing=True, workers=1))
    assert done.switched and [one["name"] for one in done.dropped] == ["p01.jpg"]


def test_two_at_a_time_are_refused(filled: Album, learning: Callable[[str], Learning]) -> None:
    learning("better")
    (filled.place / IMPROVING).mkdir()
    with (
        lock_file(filled.place / IMPROVING / "lock"),
        pytest.raises(CollectionLocked, match="Another cairn improve is at work"),
    ):
        improve(filled.place, ImproveOptions(workers=1))
