"""Rows of selected mined patches, stored or not."""

import mmap
from pathlib import Path

import numpy as np
import pytest

from learning.latent import described_patches as module
from learning.latent.described_patches import describe_mined
from learning.mining.matches import MinedMatches
from tests.support.learning.mined_files import drawn, write


def blocks_of(patches: np.ndarray) -> np.ndarray:
    """Rows of a simple descriptor: four samples of each patch, exact in float16."""
    return patches[:, ::12, 5].reshape(len(patches), -1) / np.float64(4)


class TestDescribed:
    @pytest.fixture
    def matches(self, tmp_path: Path) -> MinedMatches:
        return MinedMatches.open(write(tmp_path / "mined.npz", drawn(np.random.default_rng(5))))

    @pytest.fixture
    def numbers(self, matches: MinedMatches) -> np.ndarray:
        return np.arange(0, len(matches.patches), 2)

    @pytest.mark.parametrize("batch", [1, 3, 100])
    @pytest.mark.parametrize("kept", [False, True])
    def test_rows_are_those_of_the_patches_that_are_asked_for(
        self,
        matches: MinedMatches,
        numbers: np.ndarray,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        batch: int,
        kept: bool,
    ) -> None:
        monkeypatch.setattr(module, "_BATCH", batch)
        path = tmp_path / "rows.npy" if kept else None
        reported: list[tuple[int, int]] = []
        found = describe_mined(matches, numbers, blocks_of, path, progress=lambda *now: reported.append(now))
        wanted = blocks_of(matches.patches[numbers])
        assert found.rows.dtype == np.float16 and found.dim == wanted.shape[1]
        np.testing.assert_array_equal(found.rows, wanted)
        assert [done for done, _ in reported] == sorted({done for done, _ in reported})
        assert reported[-1] == (len(numbers), len(numbers)) and len(reported) == -(-len(numbers) // batch)
        backwards = numbers[::-1]
        taken = found.take(backwards)
        assert taken.dtype == np.float32
        np.testing.assert_array_equal(taken, wanted[::-1])
        np.testing.assert_array_equal(found.numbers[found.places(backwards)], backwards)
        assert {each.name for each in tmp_path.iterdir()} == {"mined.npz"} | ({"rows.npy"} if kept else set())

    def test_workers_change_nothing(
        self, matches: MinedMatches, numbers: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_BATCH", 3)
        one = describe_mined(matches, numbers, blocks_of, tmp_path / "one.npy")
        two = describe_mined(matches, numbers, blocks_of, tmp_path / "two.npy", workers=2)
        np.testing.assert_array_equal(one.rows, two.rows)
        assert (tmp_path / "one.npy").read_bytes() == (tmp_path / "two.npy").read_bytes()

    def test_what_is_there_is_not_described_again_and_what_is_unfinished_is_not_there(
        self, matches: MinedMatches, numbers: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_BATCH", 3)
        path = tmp_path / "rows.npy"
        calls = []

        def failing(patches: np.ndarray) -> np.ndarray:
            calls.append(len(patches))
            if len(calls) == 2:
                raise OSError("no space")
            return blocks_of(patches)

        with pytest.raises(OSError, match="no space"):
            describe_mined(matches, numbers, failing, path)
        assert not path.exists()
        found = describe_mined(matches, numbers, failing, path)
        before = len(calls)
        again = describe_mined(matches, numbers, failing, path)
        assert len(calls) == before and isinstance(again.rows.base, mmap.mmap)
        np.testing.assert_array_equal(again.rows, found.rows)
        np.testing.assert_array_equal(again.rows, blocks_of(matches.patches[numbers]))
