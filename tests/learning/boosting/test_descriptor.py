"""Learning boosted descriptors: every kind, reproducibly to the last bit, from given learners, and by the command."""

import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from index.errors import CairnError
from learning.boosting import weak_learners
from learning.boosting.descriptor import BoostingOptions, LearntBoosted, learn_boosted
from learning.boosting.metric import MetricOptions, factorise
from learning.boosting.search import LearnerSearchOptions
from learning.boosting.weak_learners import CandidateOptions
from learning.patches.sources import PatchFolder, open_sources
from retrieval.descriptors.boosted import KINDS
from retrieval.descriptors.boxes import ResponseOptions
from retrieval.descriptors.learnt import LearntDescriptor, load_model, save_model
from retrieval.regions.patches import resample_patches
from tests.conftest import Ran
from tests.support.learning.boosting_cases import POINTS, VIEWS, write_views

SMALL = BoostingOptions(
    "bgm",
    learners=24,
    dim=8,
    draws=2,
    responses=ResponseOptions(orientations=8),
    candidates=CandidateOptions(150),
    search=LearnerSearchOptions(sample=500, finalists=8),
    metric=MetricOptions(batch=60, epochs=6),
)
SSC = replace(SMALL, kind="ssc", responses=ResponseOptions("intensity"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_views(tmp_path_factory.mktemp("boosting") / "set")


@pytest.fixture(scope="module")
def sources(folder: Path) -> list[PatchFolder]:
    return open_sources([folder])


@pytest.fixture(scope="module")
def bgm(sources: list[PatchFolder]) -> LearntBoosted:
    return learn_boosted(sources, SMALL)


def options_of(kind: str) -> BoostingOptions:
    if kind == "ssc":
        return SSC
    return replace(SMALL, kind=kind, metric=replace(SMALL.metric, diagonal=kind == "lbgm-diag"))


class TestKinds:
    @pytest.mark.parametrize("kind", KINDS)
    def test_each_tells_unseen_matches_from_others_better_than_chance(self, kind, sources, bgm, tmp_path):
        given = None if kind == "ssc" else bgm.model.base_model.learners
        learnt = learn_boosted(sources, options_of(kind), learners=given)
        save_model(tmp_path / "d.npz", learnt.model)
        descriptor = LearntDescriptor(load_model(tmp_path / "d.npz"))
        assert descriptor.name == kind and descriptor.fingerprint == learnt.model.fingerprint
        assert descriptor.dim == (24 if kind in ("bgm", "ssc") else 8)
        (source,) = sources
        numbers = np.arange(len(source.patches))
        rows = descriptor.describe(resample_patches(source.patches.read(numbers), descriptor.patch_size))
        pairs = source.validation
        distances = np.linalg.norm(rows[pairs.first] - rows[pairs.second], axis=1)
        assert distances[pairs.match].mean() < 0.8 * distances[~pairs.match].mean()
        # The descriptor's file has the errors measured in learning.
        above = np.sort(distances[pairs.match])[int(np.ceil(0.95 * pairs.match.sum())) - 1] + 1e-6
        assert (distances[~pairs.match] <= above).mean() == pytest.approx(learnt.error, abs=0.02)
        moments = learnt.model.mean, learnt.model.covariance
        trained = np.unique(np.concatenate([source.train.first, source.train.second]))
        np.testing.assert_allclose(moments[0], rows[trained].mean(axis=0), atol=1e-5)
        np.testing.assert_allclose(moments[1], np.cov(rows[trained].T), atol=1e-5)

    def test_boosting_gradients_beats_boosting_grey_values(self, sources, bgm):
        """Figure 3a of the paper, in small."""
        assert bgm.error < learn_boosted(sources, SSC).error

    def test_the_embedding_is_that_of_the_learnt_matrix(self, sources, bgm):
        learnt = learn_boosted(sources, options_of("lbgm"), learners=bgm.model.base_model.learners)
        metric = learnt.metric
        np.testing.assert_array_equal(learnt.model.base_model.embedding, metric.embedding(8))
        assert learnt.error == metric.errors[metric.chosen]
        factor, signs = factorise(metric.matrix, 24)
        np.testing.assert_allclose((factor * signs) @ factor.T, metric.matrix, atol=1e-9)

    def test_the_loss_falls_round_by_round_across_draws(self, bgm):
        losses = [one.loss for one in bgm.rounds]
        assert len(losses) == 24 and (np.diff(losses) < 0).all() and losses[-1] < 0.5
        weights = bgm.model.base_model.learners.weights
        np.testing.assert_allclose(weights, [one.weight for one in bgm.rounds], rtol=1e-6)


class TestRepeatability:
    @pytest.mark.slow
    def test_neither_workers_nor_a_second_run_change_a_bit_and_the_seed_does(self, sources, tmp_path):
        options = replace(options_of("lbgm"), learners=6, dim=4, candidates=CandidateOptions(50))

        def written(workers: int, seed: int) -> bytes:
            path = tmp_path / "d.npz"
            save_model(path, learn_boosted(sources, replace(options, seed=seed), workers=workers).model)
            return path.read_bytes()

        first = written(1, 0)
        assert written(3, 0) == first != written(1, 1)

    def test_the_first_of_given_learners_are_what_a_shorter_search_finds(self, sources, bgm):
        """Boosting is greedy: later learners do not change earlier ones."""
        shorter = learn_boosted(sources, replace(SMALL, learners=12), learners=bgm.model.base_model.learners)
        found = learn_boosted(sources, replace(SMALL, learners=12, draws=1))
        np.testing.assert_array_equal(shorter.model.base_model.learners.boxes, found.model.base_model.learners.boxes)
        assert shorter.model.fingerprint == found.model.fingerprint and shorter.rounds == []


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "told"),
        [
            ({"kind": "surf"}, "no kind 'surf'"),
            ({"learners": 0}, "weak learners, and not 0"),
            ({"kind": "lbgm", "dim": 25}, "1 to 24 dimensions"),
            ({"kind": "ssc"}, "grey values"),
            ({"responses": ResponseOptions(orientations=7)}, "in pairs"),
            ({"responses": ResponseOptions(patch_size=2)}, "3 to 128"),
            ({"responses": ResponseOptions(floor=0)}, "floor"),
            ({"responses": ResponseOptions(smoothing=-1)}, "smoothing"),
            ({"draws": 0}, "1 at least"),
            ({"metric": MetricOptions(step=0)}, "positive"),
            ({"metric": MetricOptions(start=float("nan"))}, "scale"),
            ({"metric": MetricOptions(form="cosine")}, "distance, inner"),
            ({"metric": MetricOptions(kept="all")}, "variance, eigenvalues"),
        ],
    )
    def test_options_that_cannot_be(self, change, told):
        with pytest.raises(CairnError, match=told):
            replace(SMALL, **change)

    def test_more_learners_than_were_given(self, sources, bgm):
        with pytest.raises(CairnError, match="There are 24 weak learners"):
            learn_boosted(sources, replace(SMALL, learners=25), learners=bgm.model.base_model.learners)

    def test_labels_that_say_nothing(self, sources):
        (source,) = sources
        pairs = source.train
        alike = replace(pairs, first=pairs.first * 0, second=pairs.second * 0)
        with pytest.raises(CairnError, match="better than chance"):
            learn_boosted([replace(source, train=alike)], SMALL)


class TestCommand:
    def test_it_learns_goes_on_and_what_it_writes_is_used(self, folder, cairn: Callable[..., Ran], tmp_path):
        few = ["--candidates", "60", "--draws", "1", "--json"]
        base, small = tmp_path / "bgm.npz", tmp_path / "lbgm.npz"
        told = cairn("learn", "boosted", folder, "--out", base, "--kind", "bgm", "--learners", "16", *few).json
        assert (told["name"], told["learners"], told["dim"], told["bytes"]) == ("bgm", 16, 16, 2)
        assert told["pairs"] == 240 and 0 < told["objective"] < 1 and 0 <= told["validation"]["fpr95"] <= 1
        assert told["fingerprint"] == load_model(base).fingerprint
        told = cairn("learn", "boosted", folder, "--out", small, "--from", base, "--dim", "6", *few).json
        assert (told["name"], told["learners"], told["dim"], told["bytes"]) == ("lbgm", 16, 6, 24)
        assert told["objective"] is None and told["validation"]["similarity_fpr95"] is not None
        provenance = load_model(small).provenance
        assert provenance["from"] == load_model(base).fingerprint and provenance["options"]["learners"] == 16
        assert provenance["sources"][0]["name"] == folder.name and "/" not in str(provenance)
        # Compressed, like any other learnt descriptor.
        coded = tmp_path / "coded.npz"
        assert cairn("compress", small, "--out", coded, "--bits", "64", "--json").json["bits"] == 64
        pairs = next(folder.glob("m50_*_1.txt")).name
        for file in (base, small, coded):
            measured = cairn("evaluate", "patches", folder, "--descriptor", file, "--pairs", pairs, "--json").json
            assert measured["fpr95"] < 0.9

    @pytest.mark.slow
    def test_a_large_set_is_learnt_from_with_as_many_candidates_as_memory_holds(
        self, folder, cairn: Callable[..., Ran], tmp_path, monkeypatch
    ):
        learn = ["learn", "boosted", folder, "--kind", "bgm", "--learners", "4", "--draws", "2", "--json"]
        monkeypatch.setattr(weak_learners, "MOST_BYTES", 2 * 240 * 70)  # of the 240 pairs
        ran = cairn(*learn, "--out", tmp_path / "a.npz")
        assert ran.json["candidates"] == load_model(tmp_path / "a.npz").provenance["options"]["candidates"]["number"]
        assert ran.json["candidates"] == 70
        assert ran.err.count("\n") == 1
        assert "70 candidates" in ran.err and "not 8,192" in ran.err and "240 pairs" in ran.err and "--pairs" in ran.err
        fewer = cairn(*learn, "--out", tmp_path / "b.npz", "--pairs", 120)
        assert fewer.json["candidates"] == 140
        # A requested number is met, or refused.
        wanted = cairn(*learn, "--out", tmp_path / "c.npz", "--candidates", 30)
        assert (wanted.json["candidates"], wanted.err) == (30, "")
        assert "draw 70 or fewer" in cairn(*learn[:-1], "--out", tmp_path / "d.npz", "--candidates", 71).refused()
        # Nothing is drawn with given learners.
        taken = cairn(*learn, "--out", tmp_path / "e.npz", "--from", tmp_path / "a.npz")
        assert (taken.json["candidates"], taken.err) == (None, "")

    def test_what_does_not_go_together_is_refused(self, folder, cairn: Callable[..., Ran], tmp_path):
        out = ["--out", tmp_path / "d.npz"]
        for arguments, told in (
            (["--kind", "bgm", "--dim", "8"], "--learners"),
            (["--kind", "ssc", "--orientations", "8"], "takes none"),
            (["--kind", "surf"], "no kind 'surf'"),
            (["--from", tmp_path / "none.npz"], "none.npz"),
            (["--orientations", "7"], "in pairs"),
            (["--learners", "8", "--dim", "9"], "1 to 8 dimensions"),
        ):
            assert told in cairn("learn", "boosted", folder, *out, *arguments).refused()
        assert not (tmp_path / "d.npz").exists()


def test_views_are_told_apart(folder: Path) -> None:
    """The set has the properties assumed by other tests."""
    (source,) = open_sources([folder])
    assert len(source.patches) == POINTS * VIEWS
    assert not np.intersect1d(source.train.first, source.validation.first).size


@pytest.mark.parametrize("content, told", [("8000000\n", True), ("max\n", False), ("9223372036854771712\n", False)])
def test_memory_is_what_the_limit_of_a_container_leaves(
    content: str, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = 64 << 30
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 1 << 12, "SC_PHYS_PAGES": machine >> 12}.__getitem__)
    monkeypatch.setattr("resource.getrlimit", lambda which: (resource.RLIM_INFINITY,) * 2)
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(weak_learners, "_CGROUP_LIMITS", (tmp_path / "none", limit))
    limit.write_text(content)
    assert weak_learners._memory() == (8_000_000 if told else machine)
    assert weak_learners.most_candidates(1000) == (4_000_000 if told else weak_learners.MOST_BYTES) // 2000


def test_memory_is_what_the_limit_of_the_process_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weak_learners, "_CGROUP_LIMITS", (tmp_path / "none",))
    monkeypatch.setattr("resource.getrlimit", lambda which: (6_000_000, resource.RLIM_INFINITY))
    assert weak_learners._memory() == 6_000_000
