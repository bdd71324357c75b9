from collections.abc import Callable
from pathlib import Path

import pytest

import index.opencv
from index.errors import CairnError
from index.opencv import PACKAGE, refuse_mixture
from tests.conftest import Ran

OWN = "opencv_contrib_python_headless-4.14.0.94.dist-info"


@pytest.mark.parametrize(
    "others", [(), ("opencv_python-4.14.0.94.dist-info",), ("opencv_stubs-5.0.0.dist-info", "numpy-2.4.6.dist-info")]
)
def test_what_is_installed_here_and_packages_of_one_version_are_no_mixture(
    tmp_path: Path, others: tuple[str, ...]
) -> None:
    refuse_mixture()
    for name in (OWN, *others):
        (tmp_path / name).mkdir()
    refuse_mixture(tmp_path)


def test_another_package_alone_is_no_mixture(tmp_path: Path) -> None:
    (tmp_path / "opencv_python-5.0.0.dist-info").mkdir()
    refuse_mixture(tmp_path)


def test_the_sentence_says_which_package_to_remove(tmp_path: Path) -> None:
    for name in (OWN, "opencv_python-5.0.0.93.dist-info", "opencv_contrib_python-4.9.0.80.dist-info"):
        (tmp_path / name).mkdir()
    with pytest.raises(CairnError) as refused:
        refuse_mixture(tmp_path)
    said = str(refused.value)
    assert "pip uninstall opencv-contrib-python opencv-python" in said and f"{PACKAGE}==4.14.0.94" in said


def test_every_command_says_so_in_one_sentence_but_what_tells_of_the_installation(
    cairn: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise CairnError("opencv-python 5.0.0 is installed over it.")

    monkeypatch.setattr(index.opencv, "refuse_mixture", refuse)
    for command in (("check", tmp_path), ("index", tmp_path / "a.cairn", tmp_path), ("demo",)):
        assert "installed over" in cairn(*command).refused()
    assert cairn("--version").code == 0
    assert cairn("info", "--environment").code == 0
