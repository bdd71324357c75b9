"""Where the photos and ground truth of the published sets are, however their archives were unpacked."""

from pathlib import Path

import pytest

from eval.datasets import published_layout
from index.errors import CairnError


def unpack(root: Path, photos: str, gt: str, photo: str = "all_souls_000013.jpg") -> None:
    (root / photos / photo).parent.mkdir(parents=True, exist_ok=True)
    (root / photos / photo).write_bytes(b"")
    (root / gt).mkdir(parents=True, exist_ok=True)
    for kind in ("query", "good", "ok", "junk"):
        (root / gt / f"all_souls_1_{kind}.txt").write_text("")


@pytest.mark.parametrize(
    ("photos", "gt"),
    [
        ("images", "gt"),
        ("jpg", "gt"),
        ("oxbuild_images", "gt_files_170407"),  # the archives' own names
        ("oxbuild_images-v1", "gt_files_170407"),
        ("paris", "paris_120310"),
        (".", "gt"),
        (".", "."),  # Oxford5K's archives hold no folder: both unpacked in one place
        ("images", "."),
    ],
)
def test_photos_and_ground_truth_are_found(tmp_path: Path, photos: str, gt: str) -> None:
    unpack(tmp_path, photos, gt)
    assert published_layout(tmp_path) == (tmp_path / photos, tmp_path / gt)


def test_photos_may_lie_in_subfolders_as_those_of_paris_do(tmp_path: Path) -> None:
    unpack(tmp_path, "paris", "paris_120310", "eiffel/paris_eiffel_000000.jpg")
    assert published_layout(tmp_path) == (tmp_path / "paris", tmp_path / "paris_120310")


def test_a_folder_without_photos_is_passed_over(tmp_path: Path) -> None:
    unpack(tmp_path, "jpg", "gt")
    (tmp_path / "images").mkdir()
    assert published_layout(tmp_path)[0] == tmp_path / "jpg"


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(CairnError, match="no folder"):
        published_layout(tmp_path / "nowhere")
    with pytest.raises(CairnError, match="ground truth"):
        published_layout(tmp_path)
    unpack(tmp_path, "images", "gt")
    (tmp_path / "images" / "all_souls_000013.jpg").unlink()
    with pytest.raises(CairnError, match="no photos"):
        published_layout(tmp_path)
