"""The checks of extensions find what breaks a contract."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from index.errors import CairnError
from retrieval.foreign.opening import open_features
from retrieval.library.testing import check_descriptor, check_detector, check_features, check_protocol
from tests.support import toy_detector
from tests.support.toy_extensions import Lines, Means


class Changed(Means):
    def __init__(self, change) -> None:
        super().__init__()
        self.change = change

    def describe(self, patches: np.ndarray) -> np.ndarray:
        return self.change(super().describe(patches), patches)


def brightness(rows: np.ndarray, patches: np.ndarray) -> np.ndarray:
    return np.column_stack([rows[:, 1:], patches.mean(axis=(1, 2)) / 255]).astype(np.float32)


def spoil(rows: np.ndarray, patches: np.ndarray) -> np.ndarray:
    patches[:] = 0
    return rows


def test_a_sound_descriptor_passes() -> None:
    check_descriptor(Means())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows, patches: rows[:, 1:], r"shape \(300, 15\), and not \(300, 16\)"),
        (lambda rows, patches: rows.astype(np.float64), "float64, and not float32"),
        (lambda rows, patches: rows * np.float32(np.nan), "not all finite"),
        (lambda rows, patches: rows - rows.mean(axis=0), "depend on what else is in the batch"),
        (lambda rows, patches: np.ones_like(rows), "different patches give the same row"),
        (brightness, "change where grey values are multiplied by"),
        (spoil, "changes the patches"),
    ],
)
def test_a_descriptor_that_breaks_the_contract_does_not(change, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check_descriptor(Changed(change))


def test_a_descriptor_needs_all_its_attributes() -> None:
    with pytest.raises(CairnError, match="it has no dim"):
        check_descriptor(SimpleNamespace(name="nothing", patch_size=16, extent=1.0))


def test_a_detector_must_follow_the_image() -> None:
    def beside(octave):
        return [np.roll(one, 6, axis=1) for one in toy_detector.laplacian(octave)]

    with pytest.raises(AssertionError, match="are found again where the image is mirrored"):
        check_detector(replace(toy_detector.DETECTOR, respond=beside))
    with pytest.raises(AssertionError, match="finds 0 regions"):
        check_detector(replace(toy_detector.DETECTOR, threshold=1e6))


def test_a_format_of_features_and_a_protocol_are_read(tmp_path: Path) -> None:
    arrays = {"keypoints": np.full((3, 2), 5.0), "descriptors": np.eye(3, dtype=np.float32)}
    (tmp_path / "all").mkdir()
    np.savez(tmp_path / "all" / "1.npz", **arrays)
    form = SimpleNamespace(recognises=lambda path: path == tmp_path / "all", open=open_features)
    check_features(form, tmp_path / "all", tmp_path / "1.jpg")
    with pytest.raises(AssertionError, match="what is not there is recognised"):
        check_features(
            SimpleNamespace(recognises=lambda path: True, open=open_features), tmp_path / "all", Path("1.jpg")
        )
    (tmp_path / "t.lines").write_text("q a b\n")
    check_protocol(Lines(), tmp_path / "t.lines")
    wrong = SimpleNamespace(recognises=Lines().recognises, read=lambda path: {"q": {"photo": "a", "box": (1, 2)}})
    with pytest.raises(AssertionError, match="box of 'q' is not four numbers"):
        check_protocol(wrong, tmp_path / "t.lines")
