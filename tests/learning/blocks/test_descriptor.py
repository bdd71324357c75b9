"""Learning building blocks: every pipeline, model selection, and reproducibility."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eval.patches import evaluate_patches
from index.arrays import load_json
from index.errors import CairnError
from learning.blocks.descriptor import EMBEDDED, PRESETS, TRIALS, BlockOptions, LearntBlocks, learn_blocks
from learning.blocks.pairs import BlockPairs, load_pairs
from learning.blocks.powell import PowellOptions, best_of
from learning.measures.roc import auc, fpr95
from learning.patches.phototour import PatchPairs
from learning.patches.sources import PatchFolder, open_sources
from retrieval.descriptors.blocks.descriptor import BEST, EMBEDDINGS, Blocks, is_blocks, named_blocks
from retrieval.descriptors.blocks.regions import ARRANGEMENTS
from retrieval.descriptors.blocks.transforms import TRANSFORMS
from retrieval.descriptors.learnt import LearntDescriptor, load_model, save_model
from tests.conftest import Ran
from tests.support.learning.boosting_cases import write_views

FEW = BlockOptions(
    "T1a-S4-17",
    "none",
    powell=True,
    patch_size=16,
    powell_pairs=0,
    search=PowellOptions(evaluations=25),
    alphas=(0.1, 0.3),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_views(tmp_path_factory.mktemp("blocks") / "set")


@pytest.fixture(scope="module")
def sources(folder: Path) -> list[PatchFolder]:
    return open_sources([folder])


@pytest.fixture(scope="module")
def validation(sources: list[PatchFolder]) -> BlockPairs:
    return load_pairs(sources, "validation", 16)


def error_of(learnt: LearntBlocks, pairs: BlockPairs) -> float:
    """False positives of the whole descriptor, by its public interface."""
    rows = LearntDescriptor(learnt.model).describe(pairs.patches)
    distances = np.square(rows[pairs.first] - rows[pairs.second]).sum(axis=1)
    return fpr95(distances, pairs.match)


class TestPairs:
    def test_they_are_those_of_the_source(self, folder: Path, sources: list[PatchFolder]) -> None:
        pairs = load_pairs(sources, "train", 64)
        given = sources[0].train
        np.testing.assert_array_equal(pairs.match, given.match)
        np.testing.assert_array_equal(pairs.patches[pairs.first[:9]], sources[0].patches.read(given.first[:9]))
        np.testing.assert_array_equal(pairs.patches[pairs.second[-9:]], sources[0].patches.read(given.second[-9:]))

    def test_two_sources_lie_one_after_the_other(self, sources: list[PatchFolder]) -> None:
        one, two = load_pairs(sources, "train", 16), load_pairs([*sources, *sources], "train", 16)
        assert len(two) == 2 * len(one) and len(two.patches) == 2 * len(one.patches)
        np.testing.assert_array_equal(two.first[len(one) :], one.first + len(one.patches))
        assert one.fingerprint != two.fingerprint == load_pairs([*sources, *sources], "train", 16).fingerprint

    @pytest.mark.parametrize("limit", [10, 61])
    def test_fewer_are_drawn_half_of_them_matches(self, sources: list[PatchFolder], limit: int) -> None:
        pairs = load_pairs(sources, "train", 16, limit=limit)
        assert len(pairs) == limit and abs(pairs.match.sum() - limit / 2) <= 0.5
        again = load_pairs(sources, "train", 16, limit=limit)
        np.testing.assert_array_equal(again.first, pairs.first)
        assert (load_pairs(sources, "train", 16, limit=limit, seed=1).first != pairs.first).any()

    @pytest.mark.parametrize(("limit", "each"), [(4, 2), (7, 3), (40, 20)])
    def test_a_limit_is_shared_out_among_sources_and_leaves_both_kinds_of_each(
        self, sources: list[PatchFolder], limit: int, each: int
    ) -> None:
        pairs = load_pairs([*sources, *sources], "train", 16, limit=limit)
        assert len(pairs) == 2 * each
        for part in (slice(0, each), slice(each, None)):
            assert 1 <= pairs.match[part].sum() < each and abs(pairs.match[part].sum() - each / 2) <= 0.5
        np.testing.assert_array_equal(pairs.match[:each], pairs.match[each:])  # two that are the same

    @pytest.mark.parametrize("rare", [True, False])
    def test_one_of_the_rarer_kind_is_always_drawn(self, sources: list[PatchFolder], rare: bool) -> None:
        pairs = sources[0].train
        rows = np.concatenate([np.flatnonzero(pairs.match == rare)[:1], np.flatnonzero(pairs.match != rare)])
        few = PatchFolder(
            sources[0].patches, PatchPairs(pairs.first[rows], pairs.second[rows], pairs.match[rows]), pairs
        )
        for limit in (2, 3, 12):
            found = load_pairs([few], "train", 16, limit=limit)
            assert len(found) == limit and (found.match == rare).sum() == 1

    @pytest.mark.parametrize(("limit", "number"), [(1, 1), (3, 2), (-1, 1), (1, 2)])
    def test_too_low_a_limit_is_refused(self, sources: list[PatchFolder], limit: int, number: int) -> None:
        with pytest.raises(CairnError, match="0 stands for all"):
            load_pairs(number * sources, "train", 16, limit=limit)

    @pytest.mark.parametrize("kind", [True, False])
    def test_pairs_of_one_kind_are_refused(self, sources: list[PatchFolder], kind: bool) -> None:
        pairs = sources[0].train
        rows = np.flatnonzero(pairs.match == kind)
        one = PatchFolder(
            sources[0].patches, PatchPairs(pairs.first[rows], pairs.second[rows], pairs.match[rows]), pairs
        )
        with pytest.raises(CairnError, match="both matches and non-matches"):
            load_pairs([one], "train", 16, limit=10)

    def test_rows_and_their_measures_are_the_descriptor_s(self, validation: BlockPairs) -> None:
        blocks = named_blocks("T2a-S3-9", 16)
        rows = blocks.describe(validation.patches)
        for workers in (1, 2):
            found = blocks.normalised(validation.pooled(blocks, workers))
            np.testing.assert_allclose(found, rows, atol=1e-5)
        distances = np.square(rows[validation.first] - rows[validation.second]).sum(axis=1)
        assert validation.area(rows) == pytest.approx(auc(distances, validation.match), abs=1e-4)
        assert validation.error(rows) == fpr95(distances, validation.match)


class TestPipelines:
    def test_parametric(self, sources: list[PatchFolder], validation: BlockPairs, tmp_path: Path) -> None:
        learnt = learn_blocks(sources, tmp_path, FEW)
        assert len(learnt.trials) == 25
        best = best_of(learnt.trials)
        assert best.area > learnt.trials[0].area
        blocks = learnt.model.base_model
        assert blocks is not None and blocks.meta()["parameters"] == pytest.approx(best.parameters)
        assert learnt.fpr95 == learnt.pooled == error_of(learnt, validation)
        # Alone, by the trial's own parameters.
        train = load_pairs(sources, "train", 16)
        rows = named_blocks("T1a-S4-17", 16).with_parameters(best.parameters).describe(train.patches)
        distances = np.square(rows[train.first] - rows[train.second]).sum(axis=1)
        assert best.area == pytest.approx(auc(distances, train.match), abs=1e-4)

    @pytest.mark.parametrize("embedding", ["pca", "lpp", "olpp", "lde", "olde", "glde", "golde"])
    def test_composite(
        self, sources: list[PatchFolder], validation: BlockPairs, tmp_path: Path, embedding: str
    ) -> None:
        options = replace(FEW, embedding=embedding, powell=False, dim=9)
        learnt = learn_blocks(sources, tmp_path, options)
        descriptor = LearntDescriptor(learnt.model)
        assert (descriptor.name, descriptor.dim) == (f"T1a-S4-17-{embedding}", 9)
        assert {record.alpha for record in learnt.embeddings} == ({0.0} if embedding == "pca" else {0.1, 0.3})
        assert learnt.fpr95 == min(record.fpr95 for record in learnt.embeddings)
        assert learnt.fpr95 == error_of(learnt, validation)
        assert not learnt.trials and not learnt.worse and len(load_json(tmp_path / EMBEDDED)) == len(learnt.embeddings)

    def test_non_parametric(self, sources: list[PatchFolder], validation: BlockPairs, tmp_path: Path) -> None:
        learnt = learn_blocks(sources, tmp_path, replace(FEW, blocks="T1a-grid-5", embedding="lpp", powell=False))
        rows = LearntDescriptor(learnt.model).describe(validation.patches)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
        assert {record.dim for record in learnt.embeddings} == {*range(8, 100, 4), 100}
        best = min(learnt.embeddings, key=lambda record: (record.fpr95, record.dim))
        assert rows.shape[1] == best.dim and learnt.fpr95 == error_of(learnt, validation)
        # Rows are centred before the projection.
        blocks = learnt.model.base_model
        assert isinstance(blocks, Blocks) and blocks.mean is not None
        train = load_pairs(sources, "train", 16)
        samples = blocks.with_parameters({}).describe(train.patches)
        np.testing.assert_allclose(blocks.mean, samples.mean(axis=0), atol=1e-6)
        projected = blocks.projected(samples)
        assert (np.abs(projected.mean(axis=0)) < 1e-4 * projected.std(axis=0)).all()
        assert (np.abs((samples @ blocks.projection.T).mean(axis=0)) > 1e-2 * projected.std(axis=0)).any()

    @pytest.mark.parametrize("blocks", ["T1a-S4-17", "T1a-grid-5"])
    @pytest.mark.parametrize("embedding", ["pca", "lpp", "olpp", "lde", "olde", "glde", "golde"])
    def test_without_regularisation_there_is_a_file_that_is_read_again(
        self, sources: list[PatchFolder], validation: BlockPairs, tmp_path: Path, blocks: str, embedding: str
    ) -> None:
        options = replace(FEW, blocks=blocks, embedding=embedding, powell=False, alphas=(0.0,), dim=60)
        learnt = learn_blocks(sources, tmp_path, options)
        save_model(tmp_path / "x.npz", learnt.model)
        model = load_model(tmp_path / "x.npz")
        np.testing.assert_array_equal(
            LearntDescriptor(model).describe(validation.patches),
            LearntDescriptor(learnt.model).describe(validation.patches),
        )
        assert np.abs(learnt.model.base_model.projection).max() < 3e3  # type: ignore[union-attr]

    def test_parameters_that_do_worse_on_validation_pairs_are_told(
        self, sources: list[PatchFolder], tmp_path: Path
    ) -> None:
        options = replace(FEW, search=PowellOptions(evaluations=3))
        learnt = learn_blocks(sources, tmp_path, options)
        assert learnt.worse == (learnt.pooled > learnt.before)
        assert replace(learnt, before=0.2, pooled=0.3).worse and not replace(learnt, before=0.3, pooled=0.3).worse
        assert not replace(learnt, before=0.2, pooled=0.3, trials=[]).worse

    def test_few_bits(self, sources: list[PatchFolder], validation: BlockPairs, tmp_path: Path) -> None:
        learnt = learn_blocks(sources, tmp_path, replace(FEW, powell=False, bits=2))
        assert LearntDescriptor(learnt.model).bytes == 17
        assert learnt.fpr95 == error_of(learnt, validation)


class TestRepeatability:
    def test_the_same_request_gives_the_same_file(self, sources: list[PatchFolder], tmp_path: Path) -> None:
        options = replace(FEW, embedding="lde", dim=6, search=PowellOptions(evaluations=6))
        files = []
        for number, workers in enumerate((1, 2)):
            learnt = learn_blocks(sources, tmp_path / str(number), options, workers=workers)
            path = tmp_path / f"{number}.npz"
            save_model(path, learnt.model)
            files.append(path.read_bytes())
        assert files[0] == files[1]

    def test_a_run_with_the_same_folder_evaluates_nothing_again(
        self, sources: list[PatchFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        options = replace(FEW, search=PowellOptions(evaluations=6))
        first = learn_blocks(sources, tmp_path, options)
        monkeypatch.setattr(BlockPairs, "area", lambda *_: pytest.fail("evaluated again"))
        assert learn_blocks(sources, tmp_path, options).trials == first.trials
        assert len(load_json(tmp_path / TRIALS)["trials"]) == 6

    def test_a_longer_run_before_changes_no_result(self, sources: list[PatchFolder], tmp_path: Path) -> None:
        def learnt(folder: str, evaluations: int) -> LearntBlocks:
            options = replace(FEW, search=PowellOptions(evaluations=evaluations))
            return learn_blocks(sources, tmp_path / folder, options)

        learnt("old", 30)
        again, fresh = learnt("old", 5), learnt("new", 5)
        assert again.trials == fresh.trials and len(fresh.trials) == 5
        assert again.model.fingerprint == fresh.model.fingerprint and again.fpr95 == fresh.fpr95

    def test_too_few_pairs_for_the_sources_are_refused_before_any_work(
        self, sources: list[PatchFolder], tmp_path: Path
    ) -> None:
        with pytest.raises(CairnError, match="2 sources at least 4 pairs"):
            learn_blocks([*sources, *sources], tmp_path / "x", replace(FEW, powell_pairs=3))
        assert not (tmp_path / "x").exists()

    def test_other_pairs_are_evaluated_anew(self, sources: list[PatchFolder], tmp_path: Path) -> None:
        options = replace(FEW, search=PowellOptions(evaluations=1))
        all_pairs = learn_blocks(sources, tmp_path, options).trials
        assert learn_blocks(sources, tmp_path, replace(options, powell_pairs=40)).trials != all_pairs


@pytest.mark.parametrize(
    "wrong",
    [
        {"blocks": "T9-S4-25"},
        {"embedding": "lda"},
        {"dim": 20, "embedding": "none"},
        {"dim": 69, "embedding": "pca"},
        {"dim": 0, "embedding": "pca"},
        {"alphas": ()},
        {"alphas": (1.0,), "embedding": "lpp"},
        {"bits": 9},
        {"bits": 2, "embedding": "pca"},
        {"bits": 2, "blocks": "T1a"},
        {"bits": 2, "blocks": "pixels-S3-9"},
        {"patch_size": 4},
        {"search": PowellOptions(evaluations=0)},
    ],
)
def test_what_cannot_be_learnt_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(CairnError):
        replace(FEW, **wrong)  # type: ignore[arg-type]


def test_presets_can_be_learnt() -> None:
    for preset in PRESETS.values():
        assert is_blocks(preset.blocks)
        BlockOptions(preset.blocks, preset.embedding, preset.dim)
    for name in BEST:
        assert (PRESETS[name].blocks, PRESETS[name].embedding) == (name, "none")


class TestCommand:
    def test_what_it_learns_goes_wherever_a_descriptor_does(
        self, cairn: Callable[..., Ran], folder: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "learnt.npz"
        arguments = ("--blocks", "T1a-S4-17", "--embedding", "oglde", "--dim", 12, "--patch-size", 16)
        reported = cairn("learn", "blocks", folder, "--out", out, *arguments, "--evaluations", 8, "--json").json
        assert (reported["name"], reported["pooled_dim"], reported["dim"], reported["bytes"]) == (
            "T1a-S4-17-golde",
            68,
            12,
            48,
        )
        assert reported["evaluations"] == 8 and reported["area"][1] >= reported["area"][0]
        assert set(reported["parameters"]) == {
            "smoothing", "clip", "phase", *(f"radius_{n}" for n in (1, 2)), *(f"width_{n}" for n in (0, 1, 2))
        }  # fmt: skip
        model = load_model(out)
        assert model.fingerprint == reported["fingerprint"] and model.mean is not None
        assert model.provenance["options"]["seed"] == 0 and "/" not in str(model.provenance)
        report = evaluate_patches(folder, LearntDescriptor(model), "validation")
        assert report.fpr95 == pytest.approx(reported["validation"]["fpr95"], abs=0.02)
        packed = cairn("compress", out, "--out", tmp_path / "code.npz", "--bits", 64, "--json").json
        assert packed["bytes"] == 8

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--blocks", "T9"], "no blocks"),
            (["--preset", "best"], "no preset"),
            (["--preset", "composite", "--dim", 3], "take them away"),
            (["--embedding", "lda"], "no embedding"),
            (["--dim", 30], "choose an embedding"),
            (["--bits", 2, "--embedding", "pca"], "1 to 8 bits"),
            (["--alpha", 0.1], "--alpha is for embeddings"),
            (["--alpha", 0, "--embedding", "pca"], "--alpha is for embeddings"),
            (["--preset", "composite", "--alpha", 0.1], "--alpha is for embeddings"),
            (["--no-powell", "--evaluations", 400], "of no use with --no-powell"),
            (["--no-powell", "--powell-pairs", 0], "of no use with --no-powell"),
            (["--powell-pairs", 1], "at least 2 pairs"),
        ],
    )
    def test_what_is_wrong_is_said_in_a_sentence(
        self, cairn: Callable[..., Ran], folder: Path, tmp_path: Path, arguments: list[object], words: str
    ) -> None:
        assert words in cairn("learn", "blocks", folder, "--out", tmp_path / "x.npz", *arguments).refused()

    def test_without_json_it_tells_what_became_of_it(
        self, cairn: Callable[..., Ran], folder: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "two.npz"
        arguments = ("--blocks", "T1a-S4-17", "--patch-size", 16, "--evaluations", 2, "--bits", 2, "--quiet")
        ran = cairn("learn", "blocks", folder, "--out", out, *arguments)
        assert ran.code == 0 and "2 evaluations" in ran.out + ran.err and "17 bytes" in ran.out + ran.err

    @pytest.mark.parametrize("worse", [True, False])
    def test_it_says_where_what_is_learnt_does_worse(
        self, cairn: Callable[..., Ran], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worse: bool
    ) -> None:
        monkeypatch.setattr(LearntBlocks, "worse", worse)
        arguments = ("--blocks", "T1a-S4-17", "--patch-size", 16, "--evaluations", 1, "--quiet")
        ran = cairn("learn", "blocks", folder, "--out", tmp_path / "one.npz", *arguments)
        assert ran.code == 0 and ("which is worse" in ran.out + ran.err) == worse
        reported = cairn("learn", "blocks", folder, "--out", tmp_path / "one.npz", *arguments, "--json").json
        assert reported["worse_on_validation"] == worse

    def test_a_preset_of_the_paper_s_four_goes_by_its_blocks(
        self, cairn: Callable[..., Ran], folder: Path, tmp_path: Path
    ) -> None:
        arguments = ("--preset", "T3h-S2-17", "--patch-size", 16, "--no-powell", "--json")
        reported = cairn("learn", "blocks", folder, "--out", tmp_path / "x.npz", *arguments).json
        assert (reported["name"], reported["dim"], reported["evaluations"]) == ("T3h-S2-17", 272, 0)

    def test_help_tells_all_names(self, cairn: Callable[..., Ran]) -> None:
        text = " ".join(cairn("learn", "blocks", "--help").out.replace("│", " ").split())
        for name in (*TRANSFORMS, *ARRANGEMENTS, *PRESETS, *EMBEDDINGS, "grid-8"):
            assert name in text
