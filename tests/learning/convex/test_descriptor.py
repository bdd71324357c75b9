"""Learning a descriptor: choices meet the request, stopped runs resume, and results are reproducible."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from index.errors import CairnError
from learning.convex import descriptor as module
from learning.convex import ring_distances
from learning.convex.candidates import PoolOptions
from learning.convex.descriptor import LearningOptions, Learnt, learn_descriptor
from learning.convex.projection import ProjectionOptions
from learning.convex.records import Record
from learning.convex.ring_selection import SelectionOptions
from learning.measures.roc import fpr95
from learning.patches.augmentation import AugmentationOptions
from learning.patches.phototour import write_bitmaps, write_info, write_pairs
from learning.patches.sources import PatchFolder, open_sources
from retrieval.descriptors.learnt import LearntDescriptor, save_model
from retrieval.regions.patches import resample_patches
from tests.support.learning.learnt_models import pooling as some_pooling
from tests.support.learning.learnt_models import textures

POINTS, VIEWS = 60, 3
SMALL = LearningOptions(
    dim=20,
    max_pooled_dim=64,
    pool=PoolOptions(step=5, angles=8),
    selection=SelectionOptions(mus=(0.3, 0.1), gammas=(0.1,), iterations=60, batch=20),
    projection=ProjectionOptions(mus=(0.02, 0.005), gammas=(0.1,), iterations=30, batch=30),
    augmentation=AugmentationOptions(copies=0),
)
PROJECTED = replace(SMALL, stage="projection", base="rootsift")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Textures seen three times, shifted, rotated and noisy; two thirds of the points are for training."""
    folder = tmp_path_factory.mktemp("set")
    rng = np.random.default_rng(0)
    views = []
    for patch in textures(POINTS, 64, sigma=4):
        for _ in range(VIEWS):
            turn = cv2.getRotationMatrix2D((31.5, 31.5), rng.normal() * 8, np.exp(rng.normal() * 0.1))
            turn[:, 2] += rng.normal(size=2) * 2
            view = cv2.warpAffine(patch, turn, (64, 64), borderMode=cv2.BORDER_REFLECT)
            views.append(np.clip(view + 15 * rng.normal(size=view.shape), 0, 255))
    points = np.arange(POINTS * VIEWS) // VIEWS
    write_bitmaps(folder, np.rint(views).astype(np.uint8))
    write_info(folder, points, np.zeros_like(points))
    for split, chosen in enumerate((np.arange(40), np.arange(40, POINTS))):
        first = np.concatenate([VIEWS * chosen, VIEWS * chosen + 1])
        others = np.concatenate([VIEWS * np.roll(chosen, 1), VIEWS * np.roll(chosen, 3) + 2])
        write_pairs(folder, split, np.tile(first, 2), np.concatenate([first + 1, others]), points)
    return folder


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[None]:
    """Few pairs to a file, so that there are several. (In which parts rows are added up shows in the last digits.)"""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ring_distances, "BLOCK", 25)
        yield


@pytest.fixture
def sources(folder: Path) -> list[PatchFolder]:
    return open_sources([folder])


def written(learnt: Learnt, path: Path) -> bytes:
    """Bytes of the descriptor's file."""
    save_model(path, learnt.model)
    return path.read_bytes()


def timeless(records: list[Record]) -> list[dict[str, Any]]:
    return [asdict(replace(record, seconds=0)) for record in records]


@pytest.fixture(scope="module")
def undisturbed(folder: Path, small_blocks: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Learnt]:
    """A run of both stages in one go, and the bytes of its file."""
    work = tmp_path_factory.mktemp("undisturbed")
    learnt = learn_descriptor(open_sources([folder]), work, SMALL)
    return written(learnt, work / "d.npz"), learnt


@pytest.fixture
def began(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, list[Any]]]:
    """Newly computed results by stage: μ of models, numbers of pairs in blocks."""
    counted: dict[str, list[Any]] = {"pooling": [], "projection": [], "psi": []}

    def counting(stage: str, what: Callable[..., Any], output: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            counted[stage].append(output(*arguments))
            return what(*arguments)

        return run

    for name, owner, stage, output in (
        ("_pooling_models", module, "pooling", lambda *given: given[-2]),
        ("_projection_models", module, "projection", lambda *given: given[-2]),
        ("_write_block", ring_distances, "psi", lambda *given: len(given[1])),
    ):
        monkeypatch.setattr(owner, name, counting(stage, getattr(owner, name), output))
    yield counted


class Stopped(Exception):
    pass


def stop_at(stage: str, after: int) -> Callable[[str, int, int], None]:
    """Progress that stops the run at some point of a step."""

    def tell(step: str, done: int, of: int) -> None:
        if step == stage and done >= after:
            raise Stopped

    return tell


def ranks_by(monkeypatch: pytest.MonkeyPatch, rule: Callable[[float], tuple[int, float]]) -> list[int]:
    """Projections with rank and error by a rule of μ*; lists the ranks of the learnt ones."""
    ranks = []

    def learnt(*given: Any) -> list[tuple[Record, np.ndarray]]:
        rank, error = rule(given[-2])
        ranks.append(rank)
        return [(replace(fake(given[-2], rank), key=given[0], fpr95=error), np.eye(rank, 128))]

    monkeypatch.setattr(module, "_projection_models", learnt)
    return ranks


class TestWhatIsLearnt:
    def test_it_fits_what_was_asked_for(self, undisturbed: tuple[bytes, Learnt]) -> None:
        _, learnt = undisturbed
        model, tried = learnt.model, learnt.tried
        assert model.pooling is not None and model.projection is not None
        assert learnt.pooling is not None and learnt.projection is not None
        assert model.pooling.dim == learnt.pooling.dim <= 64
        assert model.projection.shape == (learnt.projection.dim, learnt.pooling.dim)
        assert 0 < learnt.projection.dim <= 20
        assert learnt.projection.rings == len(np.unique(model.pooling.rings))
        # The best of those that fit; some of the others were shrunk.
        assert learnt.pooling in tried and learnt.projection in tried
        for stage, chosen, limit in (("pooling", learnt.pooling, 64), ("projection", learnt.projection, 20)):
            fitting = [one for one in tried if one.stage == stage and 0 < one.dim <= limit]
            assert chosen.fpr95 == min(one.fpr95 for one in fitting)
        assert any(one.dim > 64 for one in tried) and any(one.refits for one in tried)

    def test_rings_are_counted_alike_by_both_stages(self, sources: list[PatchFolder], tmp_path: Path) -> None:
        """Rings that coincide in the centre count as one ring of the descriptor."""
        options = replace(SMALL, stage="pooling", max_pooled_dim=1000)
        learnt = learn_descriptor(sources, tmp_path, options)
        assert learnt.pooling is not None and learnt.model.pooling is not None
        assert learnt.pooling.rings == len(np.unique(learnt.model.pooling.rings))

    @pytest.mark.slow
    @pytest.mark.parametrize("stage", ["pooling", "both", "rootsift"])
    def test_the_errors_told_are_those_of_the_descriptor_made(
        self, sources: list[PatchFolder], tmp_path: Path, stage: str
    ) -> None:
        """By describing the validation pairs' patches with it."""
        options = replace(PROJECTED, dim=128) if stage == "rootsift" else replace(SMALL, stage=stage)
        options = replace(options, augmentation=AugmentationOptions(copies=1))
        learnt = learn_descriptor(sources, tmp_path, options)
        chosen = learnt.projection or learnt.pooling
        assert chosen is not None
        descriptor = LearntDescriptor(learnt.model)
        (source,) = sources
        pairs = source.validation
        one, two = (
            descriptor.describe(resample_patches(source.patches.read(numbers), descriptor.patch_size))
            for numbers in (pairs.first, pairs.second)
        )
        error = fpr95(((one - two) ** 2).sum(axis=1), pairs.match)
        assert chosen.fpr95 == pytest.approx(error, abs=0.026)  # one non-match of 40: ψ is stored in half precision
        assert error < 0.5

    def test_moments_are_those_of_the_training_patches(
        self, undisturbed: tuple[bytes, Learnt], sources: list[PatchFolder]
    ) -> None:
        model, (source,) = undisturbed[1].model, sources
        numbers = np.unique(np.concatenate([source.train.first, source.train.second]))
        rows = LearntDescriptor(model).describe(resample_patches(source.patches.read(numbers), 31)).astype(float)
        assert model.mean is not None and model.covariance is not None
        np.testing.assert_allclose(model.mean, rows.mean(axis=0), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(model.covariance, np.cov(rows.T), rtol=1e-3, atol=1e-7)

    @pytest.mark.slow
    @pytest.mark.parametrize("dim", [1, 3, 20, 40])
    def test_a_dimension_between_those_of_the_grid_is_looked_for(
        self, sources: list[PatchFolder], tmp_path: Path, dim: int
    ) -> None:
        options = replace(PROJECTED, dim=dim, projection=replace(SMALL.projection, mus=(0.05,)))
        learnt = learn_descriptor(sources, tmp_path, options)
        assert learnt.model.projection is not None and learnt.projection is not None
        assert 0 < len(learnt.model.projection) <= dim
        assert 1 < len(learnt.tried) <= 6
        assert learnt.projection in learnt.tried
        # Never by leaving out rows of what was learnt: its rank is what it came out with.
        ranks = {one.mu: one.dim for one in learnt.tried}
        assert ranks[learnt.projection.mu] == len(learnt.model.projection)

    def test_once_a_dimension_near_the_wanted_one_is_found_the_search_ends(
        self, sources: list[PatchFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Even if a smaller one does better."""
        ranks = ranks_by(monkeypatch, lambda mu: (10, 0.1) if mu == 0.05 else (19, 0.2))
        learn_descriptor(sources, tmp_path, replace(PROJECTED, projection=replace(SMALL.projection, mus=(0.05,))))
        assert ranks == [10, 19]

    def test_no_model_is_tried_twice(
        self, sources: list[PatchFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ranks_by(monkeypatch, lambda mu: (10 if mu == 0.005 else 30, 0.1))
        learnt = learn_descriptor(sources, tmp_path, PROJECTED)
        assert learnt.projection is not None and learnt.projection.dim == 10
        assert len(learnt.tried) == len({one.mu for one in learnt.tried})

    @pytest.mark.parametrize("base", ["sift", pytest.param("rootsift", marks=pytest.mark.slow)])
    def test_frobenius_keeps_the_dimension_nuclear_does_not(
        self, sources: list[PatchFolder], tmp_path: Path, base: str
    ) -> None:
        dims = {}
        for norm in ("nuclear", "frobenius"):
            options = replace(PROJECTED, base=base, dim=128, projection=replace(SMALL.projection, norm=norm))
            learnt = learn_descriptor(sources, tmp_path / norm, options)
            assert learnt.model.name == f"{base}-proj" and learnt.model.pooling is None and learnt.pooling is None
            dims[norm] = [one.dim for one in learnt.tried]
            if norm == "frobenius":  # no looking for a dimension that cannot be chosen
                assert len(learnt.tried) == 2
        assert max(dims["nuclear"][:2]) < min(dims["frobenius"])

    def test_a_whitening_is_chosen_by_its_error_on_validation_pairs(
        self, sources: list[PatchFolder], tmp_path: Path
    ) -> None:
        options = replace(SMALL, stage="whitening", base="rootsift", augmentation=AugmentationOptions(copies=1))
        learnt = learn_descriptor(sources, tmp_path, options)
        model, record = learnt.model, learnt.projection
        assert learnt.pooling is None and record is not None and model.pooling is None
        assert model.name == "rootsift-white" and model.extent == 1
        assert model.projection is not None and model.centre is not None
        assert model.projection.shape == (record.dim, 128) and record.dim <= options.dim
        assert len(learnt.tried) == len(options.whitening.settings(options.dim))
        assert record.fpr95 == min(one.fpr95 for one in learnt.tried)
        again = learn_descriptor(sources, tmp_path, options, workers=2)
        assert again.model.fingerprint == model.fingerprint and again.tried == learnt.tried
        # Another share of copies is another model.
        other = learn_descriptor(sources, tmp_path, replace(options, augmentation=SMALL.augmentation))
        assert other.model.fingerprint != model.fingerprint

    @pytest.mark.slow
    def test_given_regions_are_projected_as_they_are(self, sources: list[PatchFolder], tmp_path: Path) -> None:
        given = some_pooling()
        options = replace(SMALL, stage="projection", dim=60)
        learnt = learn_descriptor(sources, tmp_path, options, pooling=given)
        assert learnt.model.pooling is given and learnt.pooling is None
        assert {one.stage for one in learnt.tried} == {"projection"}
        assert all(one.rings == given.rings.max() + 1 for one in learnt.tried)
        assert not (tmp_path / "ring-distances").exists()

    @pytest.mark.slow
    def test_projections_alone_are_learnt_from_distorted_copies(
        self, sources: list[PatchFolder], undisturbed: tuple[bytes, Learnt], began: dict[str, list[Any]], tmp_path: Path
    ) -> None:
        learn_descriptor(sources, tmp_path, SMALL)
        computed = {name: len(found) for name, found in began.items()}
        fingerprints = {undisturbed[1].model.fingerprint}
        for augmentation in (AugmentationOptions(copies=1), AugmentationOptions(copies=1, seed=1)):
            learnt = learn_descriptor(sources, tmp_path, replace(SMALL, augmentation=augmentation))
            fingerprints.add(learnt.model.fingerprint)
            assert learnt.model.pooling is not None and undisturbed[1].model.pooling is not None
            assert (learnt.model.pooling.regions == undisturbed[1].model.pooling.regions).all()
        assert len(fingerprints) == 3
        assert len(began["pooling"]) == computed["pooling"] and len(began["psi"]) == computed["psi"]


class TestRepeated:
    @pytest.mark.parametrize(
        ("stage", "after"),
        [
            ("psi-train", 50),
            ("pooling", 2),
            *(
                pytest.param(*one, marks=pytest.mark.slow)
                for one in (("psi-validation", 1), ("pooling", 1), ("projection", 1), ("projection", 2))
            ),
        ],
    )
    def test_a_stopped_run_goes_on_where_it_was(
        self,
        sources: list[PatchFolder],
        undisturbed: tuple[bytes, Learnt],
        began: dict[str, list[Any]],
        tmp_path: Path,
        stage: str,
        after: int,
    ) -> None:
        with pytest.raises(Stopped):
            learn_descriptor(sources, tmp_path, SMALL, progress=stop_at(stage, after))
        so_far = {name: len(found) for name, found in began.items()}
        learnt = learn_descriptor(sources, tmp_path, SMALL)
        assert written(learnt, tmp_path / "d.npz") == undisturbed[0]
        assert timeless(learnt.tried) == timeless(undisturbed[1].tried)
        # Each once, despite interruptions.
        for name in ("pooling", "projection"):
            assert len(began[name]) == len(set(began[name]))
        assert sum(began["psi"]) == 2 * 80 + 2 * 40
        assert so_far["psi"] > 0 and (stage.startswith("psi") == (so_far["pooling"] == 0))

    def test_once_more_nothing_is_learnt_at_all(
        self, sources: list[PatchFolder], undisturbed: tuple[bytes, Learnt], began: dict[str, list[Any]], tmp_path: Path
    ) -> None:
        learn_descriptor(sources, tmp_path, SMALL)
        for found in began.values():
            found.clear()
        output = []
        again = learn_descriptor(sources, tmp_path, SMALL, progress=lambda *step: output.append(step))
        assert began == {"pooling": [], "projection": [], "psi": []}
        assert written(again, tmp_path / "d.npz") == undisturbed[0]
        # And reported as done.
        assert ("pooling", 2, 2) in output and ("projection", 2, 2) in output

    def test_another_dimension_needs_no_other_pooling(
        self, sources: list[PatchFolder], began: dict[str, list[Any]], tmp_path: Path
    ) -> None:
        first = learn_descriptor(sources, tmp_path / "work", SMALL)
        before = {name: list(found) for name, found in began.items()}
        other = replace(SMALL, dim=4)
        second = learn_descriptor(sources, tmp_path / "work", other)
        assert (began["pooling"], began["psi"]) == (before["pooling"], before["psi"])
        assert len(began["projection"]) == len(set(began["projection"]))
        assert first.model.pooling is not None and second.model.pooling is not None
        assert (first.model.pooling.regions == second.model.pooling.regions).all()
        # Existing results change nothing.
        alone = learn_descriptor(sources, tmp_path / "alone", other)
        assert written(second, tmp_path / "a.npz") == written(alone, tmp_path / "b.npz")

    def test_two_processes_give_what_one_gives(
        self, sources: list[PatchFolder], undisturbed: tuple[bytes, Learnt], tmp_path: Path
    ) -> None:
        learnt = learn_descriptor(sources, tmp_path, SMALL, workers=2)
        assert written(learnt, tmp_path / "d.npz") == undisturbed[0]
        assert timeless(learnt.tried) == timeless(undisturbed[1].tried)

    def test_threads_of_linear_algebra_change_nothing(self, sources: list[PatchFolder], tmp_path: Path) -> None:
        """One process has all of them, each of several processes its share."""
        found = []
        steps = ProjectionOptions(mus=(0.01,), gammas=(0.1,), iterations=5, batch=0, norm="frobenius")
        for threads in (1, 2):
            with threadpool_limits(threads, "blas"):
                options = replace(PROJECTED, dim=128, projection=steps)
                found.append(learn_descriptor(sources, tmp_path / str(threads), options))
        assert written(found[0], tmp_path / "1.npz") == written(found[1], tmp_path / "2.npz")

    def test_another_seed_gives_another_descriptor(
        self, sources: list[PatchFolder], undisturbed: tuple[bytes, Learnt], began: dict[str, list[Any]], tmp_path: Path
    ) -> None:
        seeded = replace(
            SMALL, selection=replace(SMALL.selection, seed=1), projection=replace(SMALL.projection, seed=1)
        )
        learn_descriptor(sources, tmp_path, SMALL)
        computed = len(began["pooling"])
        other = learn_descriptor(sources, tmp_path, seeded)  # not from what another seed has left
        assert len(began["pooling"]) == 2 * computed
        assert other.model.fingerprint != undisturbed[1].model.fingerprint

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "changed", ["pairs", *(pytest.param(one, marks=pytest.mark.slow) for one in ("channels", "base"))]
    )
    def test_models_of_other_data_are_not_taken(
        self, folder: Path, sources: list[PatchFolder], began: dict[str, list[Any]], tmp_path: Path, changed: str
    ) -> None:
        learn_descriptor(sources, tmp_path, PROJECTED if changed == "base" else SMALL)
        computed = {name: len(found) for name, found in began.items()}
        options = SMALL
        if changed == "pairs":
            sources = open_sources([folder], pairs=60)
        elif changed == "channels":
            options = replace(SMALL, channels=replace(SMALL.channels, quantile=0.9))
        else:
            options = replace(PROJECTED, base="sift")
        learnt = learn_descriptor(sources, tmp_path, options)
        assert len(began["projection"]) > computed["projection"]
        if changed != "base":
            assert len(began["pooling"]) == 2 * computed["pooling"]
            assert learnt.model.pooling is not None and learnt.model.pooling.channels == options.channels


class TestTime:
    def test_without_time_one_model_of_each_stage_is_learnt(
        self, sources: list[PatchFolder], began: dict[str, list[Any]], tmp_path: Path
    ) -> None:
        hasty = replace(SMALL, hours=1e-9, dim=64)
        learnt = learn_descriptor(sources, tmp_path, hasty)
        assert (began["pooling"], began["projection"]) == ([0.3], [0.02])
        assert learnt.model.projection is not None
        # If one model exists, no further one is begun; with time, the rest are.
        again = learn_descriptor(sources, tmp_path, hasty)
        assert (began["pooling"], began["projection"]) == ([0.3], [0.02])
        assert again.model.fingerprint == learnt.model.fingerprint
        learn_descriptor(sources, tmp_path, replace(hasty, hours=0))
        assert began["pooling"] == [0.3, 0.1]


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({"stage": "pool"}, "no stage 'pool'; choose one of pooling, projection, both"),
            ({"base": "surf"}, "no base 'surf'; choose one of pooled, rootsift, sift"),
            ({"stage": "pooling", "base": "sift"}, "not learnt for the base sift: choose the stage projection"),
            ({"dim": 0}, "dimensions must be positive"),
            ({"max_pooled_dim": 7}, "8 at least"),
        ],
    )
    def test_options_that_mean_nothing(self, options: dict[str, Any], reason: str) -> None:
        with pytest.raises(CairnError, match=reason):
            LearningOptions(**options)

    def test_a_projection_of_no_regions(self, sources: list[PatchFolder], tmp_path: Path) -> None:
        with pytest.raises(CairnError, match="name the descriptor file whose pooling regions"):
            learn_descriptor(sources, tmp_path, replace(SMALL, stage="projection"))

    def test_no_regions_that_fit(self, sources: list[PatchFolder], tmp_path: Path) -> None:
        selection = replace(SMALL.selection, keep=0, mus=(0.1,))
        with pytest.raises(CairnError, match=r"has 8 dimensions or fewer: allow more \(max_pooled_dim\)"):
            learn_descriptor(sources, tmp_path, replace(SMALL, selection=selection, max_pooled_dim=8))

    def test_no_regions_at_all(self, sources: list[PatchFolder], tmp_path: Path) -> None:
        with pytest.raises(CairnError, match="or learn from more pairs"):
            learn_descriptor(sources, tmp_path, replace(SMALL, selection=replace(SMALL.selection, mus=(5,))))

    def test_no_projection_that_fits(self, sources: list[PatchFolder], tmp_path: Path) -> None:
        options = replace(PROJECTED, dim=2, projection=replace(SMALL.projection, norm="frobenius"))
        with pytest.raises(CairnError, match=r"has 2 dimensions or fewer: allow more \(dim\)"):
            learn_descriptor(sources, tmp_path, options)

    def test_damaged_records(self, sources: list[PatchFolder], tmp_path: Path) -> None:
        learnt = learn_descriptor(sources, tmp_path, PROJECTED)
        table = (tmp_path / "records.json").read_text()
        for contents in (table[: len(table) // 2], "[3]"):
            (tmp_path / "records.json").write_text(contents)
            with pytest.raises(CairnError, match=r"records\.json is damaged"):
                learn_descriptor(sources, tmp_path, PROJECTED)
        (tmp_path / "records.json").write_text(table)
        assert learnt.projection is not None
        (tmp_path / f"projection-{learnt.projection.key[:16]}-0.npy").write_bytes(b"\x93NUMPY")
        with pytest.raises(CairnError, match="damaged"):
            learn_descriptor(sources, tmp_path, PROJECTED)

    def test_a_damaged_block(self, sources: list[PatchFolder], tmp_path: Path) -> None:
        learn_descriptor(sources, tmp_path, replace(SMALL, stage="pooling"))
        block = next((tmp_path / "ring-distances").rglob("*.npy"))
        block.write_bytes(block.read_bytes()[:200])
        with pytest.raises(CairnError, match=block.name):
            learn_descriptor(sources, tmp_path, replace(SMALL, stage="pooling"))


def fake(mu: float, dim: int) -> Record:
    return Record("projection", "", mu, 0.1, dim, 0, 0.1, 0.1, 0, 0.0)


def test_mu_is_looked_for_between_those_that_bracket_the_dimension() -> None:
    between = module._between
    assert between([fake(0.01, 30), fake(0.04, 10), fake(0.16, 5)], 20) == pytest.approx(0.02)
    assert between([fake(0.01, 20), fake(0.04, 10)], 20) == pytest.approx(0.005)  # all fit: a smaller one may yet
    assert between([fake(0.01, 30), fake(0.04, 25)], 20) == pytest.approx(0.2)  # none fits: from there to 1
