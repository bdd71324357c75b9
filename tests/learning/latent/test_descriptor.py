"""Learning from mined matches: training and validation data, objectives that never rise, resuming."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from index.errors import CairnError
from learning.latent.anchors import Anchors
from learning.latent.descriptor import Unlabelled, UnlabelledOptions, learn_unlabelled
from learning.latent.models import PoolingWork, ProjectionWork
from learning.mining.matches import MinedMatches
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel
from tests.support.learning.mined_files import drawn, in_memory
from tests.support.learning.unlabelled_cases import QUICK, mined_views, recall

FROBENIUS = replace(QUICK, dim=128, projection=replace(QUICK.projection, norm="frobenius"))
BASES = {
    "pooled": QUICK,
    "rootsift": replace(FROBENIUS, base="rootsift"),
    "sift": replace(FROBENIUS, base="sift"),
}
WORKS = {"pooling": PoolingWork, "projection": ProjectionWork}


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory) -> MinedMatches:
    return mined_views(tmp_path_factory)


class Spy:
    """Counts the learnt models, and stores their training data."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.learnt: Counter[str] = Counter()
        self.works: list[PoolingWork | ProjectionWork] = []
        for stage, kind in WORKS.items():
            self._watch(patch, stage, kind)

    def _watch(self, patch: pytest.MonkeyPatch, stage: str, kind: Any) -> None:
        learn = kind.learn

        def watched(work: PoolingWork | ProjectionWork, *arguments: Any) -> Any:
            self.learnt[stage] += 1
            self.works.append(work)
            return learn(work, *arguments)

        patch.setattr(kind, "learn", watched)

    @property
    def anchors(self) -> list[Anchors]:
        return [work.anchors for work in self.works]


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    return Spy(monkeypatch)


def told(records: list[Any]) -> list[dict[str, Any]]:
    """Records without fields that differ between runs, in a fixed order."""
    entries = [{**asdict(record), "seconds": 0} for record in records]
    return sorted(entries, key=lambda entry: (entry["stage"], entry["round"], entry["key"]))


def recall_of(matches: MinedMatches, features: np.ndarray, model: LearntModel) -> float:
    """Equation 15 of the rows of a model."""
    rows = LearntDescriptor(model).describe(np.asarray(matches.patches)).astype(np.float16).astype(np.float64)
    return recall(matches, features, rows)


# Learning


@pytest.mark.parametrize("base", BASES)
@pytest.mark.slow
def test_a_descriptor_of_each_base_is_learnt_on_some_image_pairs_and_validated_on_the_others(
    mined: MinedMatches, spy: Spy, tmp_path: Path, base: str
) -> None:
    options = BASES[base]
    found = learn_unlabelled(mined, tmp_path, options)
    model, record = found.model, found.projection
    assert model.name == f"{base}-proj"
    assert record is not None and model.projection is not None
    assert record.dim == len(model.projection) == LearntDescriptor(model).dim <= options.dim
    pooled = 128
    if base == "pooled":
        assert model.pooling is not None and found.pooling is not None
        pooled = model.pooling.dim
        assert found.pooling.dim == pooled <= options.max_pooled_dim
        assert found.pooling.rings == record.rings == len(np.unique(model.pooling.rings))
    assert model.projection.shape[1] == pooled

    # Not an image pair serves both.
    training, held_out = mined.pair_split(options.held_out, options.seed)
    assert set(training).isdisjoint(held_out) and len(training) + len(held_out) == len(mined.pairs)
    assert found.training == len(training)
    assert set(mined.pair[found.held.features]) == set(held_out)
    for work in spy.works:
        assert work.held.features is found.held.features
        assert set(mined.pair[work.anchors.features]) <= set(training)
        assert not np.intersect1d(work.anchors.features, found.held.features).size
    sizes = {len(anchors) for anchors in spy.anchors}
    assert sizes <= {options.pooling_features, options.projection_features}
    assert {record.share for record in found.tried} == set(options.shares)
    assert sum(spy.learnt.values()) == len(found.tried)

    # The figures of the chosen model hold for the result.
    features = found.held.features
    assert recall_of(mined, features, model) == pytest.approx(record.validation, abs=1.5 / len(features))
    if found.pooling is not None:
        expected = recall_of(mined, features, LearntModel("pooled", model.pooling))
        assert found.pooling.validation == pytest.approx(expected, abs=1.5 / len(features))
    for chosen in (found.pooling, record):
        if chosen is not None:
            rivals = [one for one in found.tried if (one.stage, one.round) == (chosen.stage, chosen.round)]
            most = options.dim if chosen is record else options.max_pooled_dim
            assert chosen.validation == max(one.validation for one in rivals if 0 < one.dim <= most)

    # Codes are learnt from training patches alone.
    patches = np.unique(mined.reference[np.isin(mined.pair, training)])
    rows = LearntDescriptor(model).describe(np.asarray(mined.patches[patches])).astype(np.float16).astype(np.float64)
    assert model.mean is not None and model.covariance is not None
    np.testing.assert_allclose(model.mean, rows.mean(axis=0), atol=1e-4)
    centred = rows - rows.mean(axis=0)
    np.testing.assert_allclose(model.covariance, centred.T @ centred / (len(rows) - 1), atol=1e-4)


@pytest.mark.parametrize(
    "base", ["rootsift", *(pytest.param(one, marks=pytest.mark.slow) for one in ("pooled", "sift"))]
)
def test_no_step_of_a_round_raises_the_objective(mined: MinedMatches, tmp_path: Path, base: str) -> None:
    found = learn_unlabelled(mined, tmp_path, replace(BASES[base], alternations=3))
    chosen = {"pooling": found.pooling, "projection": found.projection}
    for stage, record in chosen.items():
        rounds = [entry.round for entry in found.history if entry.stage == stage]
        assert bool(rounds) == (record is not None)
        assert rounds == sorted(rounds) and set(rounds) == set(range(max(rounds, default=-1) + 1))
        for number in set(rounds):
            objectives = [e.objective for e in found.history if (e.stage, e.round) == (stage, number)]
            assert all(after <= before + 1e-9 for before, after in pairwise(objectives))
            assert len(objectives) >= 3 or number == max(rounds)
        if record is not None:
            last = [entry for entry in found.history if entry.stage == stage][-1]
            assert (last.objective, last.validation) == (record.objective, record.validation)
            assert last.recall == record.recall


@pytest.mark.slow
def test_further_rounds_look_for_nearer_negatives_and_are_kept_only_where_they_help(
    mined: MinedMatches, spy: Spy, tmp_path: Path
) -> None:
    options = replace(BASES["rootsift"], rounds=3)
    found = learn_unlabelled(mined, tmp_path, options)
    assert found.projection is not None
    rounds = {work.anchors.fingerprint: len(work.anchors.negative_patches) for work in spy.works}
    assert list(rounds.values()) == sorted(rounds.values()) and len(rounds) > 1
    assert found.projection.validation == max(record.validation for record in found.tried)
    once = learn_unlabelled(mined, tmp_path, replace(options, rounds=1))
    assert once.projection is not None
    assert once.projection.validation <= found.projection.validation


@pytest.mark.slow
def test_each_stage_by_itself(mined: MinedMatches, spy: Spy, tmp_path: Path) -> None:
    pooled = learn_unlabelled(mined, tmp_path / "pooling", replace(QUICK, stage="pooling"))
    assert pooled.projection is None and pooled.model.projection is None and pooled.model.pooling is not None
    assert {entry.stage for entry in pooled.history} == {"pooling"}
    assert pooled.model.mean is not None and len(pooled.model.mean) == pooled.model.pooling.dim
    spy.learnt.clear()
    projected = learn_unlabelled(
        mined, tmp_path / "projection", replace(QUICK, stage="projection"), pooling=pooled.model.pooling
    )
    assert not spy.learnt["pooling"] and projected.pooling is None
    # As if both had been learnt in one run.
    both = learn_unlabelled(mined, tmp_path / "both", QUICK)
    assert both.model.fingerprint == projected.model.fingerprint
    with pytest.raises(CairnError, match="name the descriptor file whose pooling regions it projects"):
        learn_unlabelled(mined, tmp_path / "none", replace(QUICK, stage="projection"))


# Dimensions and time


@pytest.mark.slow
def test_fewer_dimensions_are_met(mined: MinedMatches, spy: Spy, tmp_path: Path) -> None:
    natural = learn_unlabelled(mined, tmp_path, replace(QUICK, dim=64))
    assert natural.projection is not None
    pooling = spy.learnt["pooling"]
    fewer = replace(QUICK, dim=natural.projection.dim - 8)
    found = learn_unlabelled(mined, tmp_path, fewer)
    assert found.projection is not None and found.model.projection is not None
    assert len(found.model.projection) <= fewer.dim
    assert found.projection.mu > max(QUICK.projection.mus)
    least = learn_unlabelled(mined, tmp_path, replace(QUICK, dim=1)).model.projection
    assert least is not None and len(least) == 1
    # The pooling regions are common to all of them.
    assert spy.learnt["pooling"] == pooling


def test_too_few_dimensions_for_any_selection_are_refused(mined: MinedMatches, tmp_path: Path) -> None:
    with pytest.raises(CairnError, match="max_pooled_dim"):
        learn_unlabelled(mined, tmp_path, replace(QUICK, max_pooled_dim=8, selection=replace(QUICK.selection, keep=0)))


@pytest.mark.slow
@pytest.mark.parametrize("dim", [24, 16])
def test_without_time_the_first_model_that_fits_is_taken(
    mined: MinedMatches, spy: Spy, tmp_path: Path, dim: int
) -> None:
    found = learn_unlabelled(mined, tmp_path, replace(QUICK, dim=dim, hours=1e-9))
    assert found.projection is not None and 0 < found.projection.dim <= dim
    assert spy.learnt["pooling"] == 1
    fitting = [record for record in found.tried if record.stage == "projection" and record.dim <= dim]
    assert len(fitting) == 1


# The same result, despite interruptions


@pytest.fixture(scope="module")
def whole(
    mined: MinedMatches, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Unlabelled, Path, Counter[str]]]:
    """A complete run, its folder, and the number of learnt models."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        spied = Spy(patch)
        found = learn_unlabelled(mined, folder, QUICK)
    yield found, folder, spied.learnt


def assert_same(found: Unlabelled, other: Unlabelled) -> None:
    assert found.model.fingerprint == other.model.fingerprint
    for name in ("mean", "covariance"):
        np.testing.assert_array_equal(getattr(found.model, name), getattr(other.model, name))
    assert told(found.tried) == told(other.tried)
    assert found.history == other.history
    np.testing.assert_array_equal(found.held.features, other.held.features)


def test_a_second_run_learns_nothing_anew(
    mined: MinedMatches, whole: tuple[Unlabelled, Path, Counter[str]], spy: Spy, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (whole[1] / "records.json").read_bytes()
    again = learn_unlabelled(mined, whole[1], QUICK)
    assert not spy.learnt
    assert_same(again, whole[0])
    assert (whole[1] / "records.json").read_bytes() == before


@pytest.mark.slow
def test_the_result_does_not_depend_on_the_number_of_workers(
    mined: MinedMatches, whole: tuple[Unlabelled, Path, Counter[str]], tmp_path: Path
) -> None:
    assert_same(learn_unlabelled(mined, tmp_path, QUICK, workers=2), whole[0])


class Stopped(Exception):
    """Stands for a signal that kills a run."""


@pytest.mark.parametrize(
    ("at", "times"),
    [
        *(("describe", 1), ("pooling", 2)),
        *(
            pytest.param(*later, marks=pytest.mark.slow)
            for later in (("psi", 1), ("projection", 2), ("pooling", 5), ("projection", 3))
        ),
    ],
)
def test_a_stopped_run_goes_on_where_it_was(
    mined: MinedMatches, whole: tuple[Unlabelled, Path, Counter[str]], spy: Spy, tmp_path: Path, at: str, times: int
) -> None:
    left = times

    def stop(step: str, done: int, of: int) -> None:
        nonlocal left
        left -= step == at
        if not left:
            raise Stopped

    with pytest.raises(Stopped):
        learn_unlabelled(mined, tmp_path, QUICK, progress=stop)
    begun = spy.learnt.total()
    assert begun < whole[2].total()
    assert_same(learn_unlabelled(mined, tmp_path, QUICK), whole[0])
    assert spy.learnt == whole[2]  # those that were there are not learnt again


@pytest.mark.slow
def test_what_is_tried_later_does_not_mix_with_what_is_there(
    mined: MinedMatches, whole: tuple[Unlabelled, Path, Counter[str]], spy: Spy, tmp_path: Path
) -> None:
    """Another seed, other matches or another share are other models, also in a folder that has some."""
    alone = learn_unlabelled(mined, tmp_path / "alone", replace(QUICK, seed=1))
    learn_unlabelled(mined, tmp_path / "shared", QUICK)
    assert_same(learn_unlabelled(mined, tmp_path / "shared", replace(QUICK, seed=1)), alone)
    assert alone.model.fingerprint != whole[0].model.fingerprint
    spy.learnt.clear()
    fewer = learn_unlabelled(mined, tmp_path / "shared", replace(QUICK, shares=(0.5, 0.3)))
    assert {record.share for record in fewer.tried} == {0.5, 0.3}
    assert spy.learnt["pooling"] >= 1


@pytest.mark.slow
def test_progress_is_told_to_the_end(mined: MinedMatches, tmp_path: Path) -> None:
    steps: dict[str, list[tuple[int, int]]] = {}
    learn_unlabelled(
        mined, tmp_path, QUICK, progress=lambda step, done, of: steps.setdefault(step, []).append((done, of))
    )
    assert steps.keys() == {"describe", "psi", "pooling", "projection"}
    for pairs in steps.values():
        assert pairs[-1][0] == pairs[-1][1] > 0
        assert all(0 <= done <= of for done, of in pairs)


def test_damaged_records_are_refused(mined: MinedMatches, tmp_path: Path) -> None:
    (tmp_path / "records.json").write_text("[{}]")
    with pytest.raises(CairnError, match=r"records\.json is damaged"):
        learn_unlabelled(mined, tmp_path, QUICK)


# Nothing to learn from


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"shares": ()}, "share"),
        ({"shares": (0.5, 0.0)}, "share"),
        ({"shares": (1.01,)}, "share"),
        ({"shares": (float("nan"),)}, "share"),
        ({"stage": "all"}, "no stage 'all'"),
        ({"base": "surf"}, "no base 'surf'"),
        ({"base": "sift", "stage": "pooling"}, "choose the stage projection"),
        ({"dim": 0}, "positive"),
        ({"max_pooled_dim": 7}, "8 at least"),
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CairnError, match=sentence):
        UnlabelledOptions(**wrong)


def test_one_image_pair_cannot_be_validated(tmp_path: Path) -> None:
    with pytest.raises(CairnError, match="by image pair"):
        learn_unlabelled(in_memory(drawn(np.random.default_rng(0), pairs=1)), tmp_path, QUICK)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kept", [0, 1])
def test_an_image_pair_without_features_is_not_all_there_is_on_one_side(tmp_path: Path, kept: int) -> None:
    arrays = drawn(np.random.default_rng(3), pairs=2)
    some = arrays["pair"] == kept
    for name in ("positive", "ambiguous"):
        rows = "positives" if name == "positive" else name
        lists = np.split(arrays[rows], arrays[f"{name}_starts"][1:-1])
        chosen = [row for row, one in zip(lists, some.tolist(), strict=True) if one]
        arrays[rows] = np.concatenate([np.zeros(0, np.int32), *chosen])
        arrays[f"{name}_starts"] = np.cumsum([0, *map(len, chosen)], dtype=np.int64)
    arrays |= {"reference": arrays["reference"][some], "pair": arrays["pair"][some]}
    with pytest.raises(CairnError, match="by image pair"):
        learn_unlabelled(in_memory(arrays), tmp_path, QUICK)


def test_features_without_negatives_are_refused(tmp_path: Path) -> None:
    matches = in_memory(drawn(np.random.default_rng(1), pairs=4, positive=0.8))  # the others are ambiguous
    with pytest.raises(CairnError, match="has a negative"):
        learn_unlabelled(matches, tmp_path, replace(QUICK, held_out=0.3))
