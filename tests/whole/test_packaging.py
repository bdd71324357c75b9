"""What is built and installed: archives, the manual page, and a command that no file of the user gets in the way of."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from retrieval.commands.help_pages import pages
from scripts.check_archives import differences, wrong_source, wrong_wheel
from scripts.documentation.manual_page import PAGE, manual_page, roff
from tests.support.command_tree import command_tree
from tests.support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


CONDA_NAMES = {"opencv-contrib-python-headless": "py-opencv", "prometheus-client": "prometheus_client"}

# What a stranger may write; the last lines are wrong, and nothing else.
CLIENT = """\
from pathlib import Path
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import cairn


def found(folder: Path, photo: Path) -> list[str]:
    with cairn.create(folder, exist_ok=True, words=100) as collection:
        assert_type(collection, cairn.Collection)
        assert_type(collection.add(photo), cairn.Added)
        answer = collection.search(photo, top=3, where=cairn.Filter(camera='Leica'))
        assert_type(answer, cairn.Answer)
        assert_type(answer[0], cairn.Result)
        assert_type(answer[0].homography, NDArray[np.float64] | None)
        for photo_of_it in collection:
            assert_type(photo_of_it.tags, tuple[str, ...])
        return [result.name for result in answer.found]


def regions(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    rows = cairn.detect(image)
    assert_type(cairn.Descriptor.load('rootsift').describe(cairn.patches(image, rows)), NDArray[np.float32])
    return rows


try:
    print(found(Path('c.cairn'), Path('a.jpg')), cairn.__version__)
except cairn.CollectionNotFound as error:
    assert_type(error, cairn.CollectionNotFound)

cairn.open(3)
cairn.open("c.cairn").search("a.jpg").result
cairn.nothing
"""


@dataclass(frozen=True)
class Built:
    """What the backend makes of this checkout."""

    source: list[str]  # files of the source distribution
    wheel: Path
    files: dict[str, bytes]  # of the wheel


def _tracked() -> list[str]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("not a checkout")
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def _build(what: str, source: Path, out: Path) -> Path:
    out.mkdir()
    program = f"from setuptools import build_meta; build_meta.build_{what}({str(out)!r})"
    done = subprocess.run([sys.executable, "-c", program], cwd=source, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (made,) = out.iterdir()
    return made


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A source distribution and a wheel, built from what is tracked, among what a checkout gathers."""
    scratch = tmp_path_factory.mktemp("built")
    source = scratch / "source"
    for name in _tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    for name in (
        ".venv-test/bin/python",
        "site/index.html",
        "docs/photos.cairn/collection.toml",
        "deploy/.env",
        "tests/__pycache__/a.pyc",
        "index/__pycache__/a.pyc",
        "photos/private.jpg",
        "scripts/.mypy_cache/a",
        "dist/old.whl",
    ):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("left behind")
    with tarfile.open(_build("sdist", source, scratch / "sdist")) as archive:
        names = [one.name.partition("/")[2] for one in archive.getmembers() if not one.isdir()]
    wheel = _build("wheel", source, scratch / "wheel")
    with zipfile.ZipFile(wheel) as archive:
        return Built(names, wheel, {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")})


@pytest.mark.slow
def test_the_source_distribution_holds_what_is_tracked_and_the_site_alone(built: Built) -> None:
    assert list(wrong_source(built.source, _tracked(), ["site/index.html"])) == []
    assert "site/index.html" in built.source and "bom.cdx.json" in built.source


@pytest.mark.slow
def test_the_wheel_holds_what_runs(built: Built) -> None:
    assert list(wrong_wheel(built.files)) == []
    (metadata,) = (text.decode() for name, text in built.files.items() if name.endswith("/METADATA"))
    assert f"\nVersion: {PROJECT['project']['version']}\n" in metadata
    (page,) = (text for name, text in built.files.items() if name.endswith("/share/man/man1/cairn.1"))
    assert page == PAGE.read_bytes()


def test_what_is_wrong_with_an_archive_is_said() -> None:
    assert [*wrong_source(["a.py", "site/b.html"], ["a.py", "c.py"])] == ["the source distribution lacks c.py"]
    assert [*wrong_source(["a.py", "photo.jpg"], ["a.py"])] == ["the source distribution holds photo.jpg"]
    hook = "scripts/pins/bom.py"
    assert [*wrong_source([hook], [hook])] == ["the source distribution lacks bom.cdx.json"]
    assert [*wrong_source(["a.py", "tests/x.cairn/a"])] == ["the source distribution holds tests/x.cairn/a"]
    found = [*wrong_wheel(["tests/a.py", "index/a.pyc"])]
    assert "the wheel lacks cairn.py" in found and "the wheel would install tests" in found
    assert "the wheel holds index/a.pyc" in found
    assert [*differences({"a": b"1", "b": b"2"}, {"a": b"1", "b": b"3", "c": b""})] == [
        f"the wheel and the one of the source distribution differ in {name}" for name in ("b", "c")
    ]


def test_the_manual_page_is_what_the_help_texts_say() -> None:
    assert manual_page() == PAGE.read_text(encoding="ascii"), "run python -m scripts.documentation.manual_page"


def test_the_manual_page_has_every_command_and_option() -> None:
    sections = dict(re.findall(r'^\.SS "(.*?)"\n(.*?)(?=^\.S[SH] |\Z)', manual_page(), re.MULTILINE | re.DOTALL))
    for path, command in list(pages(command_tree()))[1:]:
        for option in command.params:
            for name in (*option.opts, *option.secondary_opts) if option.param_type_name == "option" else ():
                assert roff(name) in sections[roff(" ".join(path))], (path, name)


def test_roff_prints_what_it_is_given() -> None:
    assert roff("a-b \\n 'x' `y` ~^") == r"a\-b \en \(aqx\(aq \(gay\(ga \(ti\(ha"
    assert roff(".TH is no macro") == r"\&.TH is no macro"
    assert roff("√n") == r"\[u221A]n"


def test_the_manual_page_is_sound_roff() -> None:
    if shutil.which("groff") is None:
        pytest.skip("there is no groff")
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", str(PAGE)], capture_output=True, text=True, timeout=60, encoding="utf-8"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "cairn index COLLECTION" in re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)


@pytest.mark.slow
def test_a_type_checker_finds_the_types_of_an_installed_wheel(built: Built, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    with zipfile.ZipFile(built.wheel) as archive:
        archive.extractall(packages)
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")  # NumPy and the like
    (tmp_path / "client").mkdir()
    (tmp_path / "client" / "client.py").write_text(CLIENT)
    programs = sorted((ROOT / "docs" / "examples" / "programs").glob("*.py"))
    for path in programs:
        shutil.copy(path, tmp_path / "client")
    python = tmp_path / "venv" / "bin" / "python"
    names = ["client.py", *(path.name for path in programs)]
    command = [sys.executable, "-P", "-m", "mypy", "--strict", "--ignore-missing-imports"]
    command += ["--python-executable", str(python), *names]
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    done = subprocess.run(
        command, cwd=tmp_path / "client", env=environment, capture_output=True, text=True, timeout=300
    )
    found = re.findall(r"^client\.py:(\d+): error: (.*?)  \[([\w-]+)\]$", done.stdout, re.MULTILINE)
    assert done.stdout.count(": error: ") == len(found), done.stdout  # none in a program
    last = len(CLIENT.splitlines())
    assert [(int(line), kind) for line, _, kind in found] == [
        (last - 2, "arg-type"),
        (last - 1, "attr-defined"),
        (last, "attr-defined"),
    ], done.stdout


def test_the_conda_recipe_needs_and_gives_what_the_project_does() -> None:
    jinja2, yaml = pytest.importorskip("jinja2"), pytest.importorskip("yaml")
    text = (ROOT / "deploy" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    recipe = yaml.safe_load(jinja2.Template(text).render(PYTHON="python"))
    declared = PROJECT["project"]
    assert recipe["package"] == {"name": declared["name"], "version": declared["version"]}
    python = f"python {declared['requires-python']}"
    wanted = [re.fullmatch(r"([\w-]+)(.*)", one).groups() for one in declared["dependencies"]]  # type: ignore[union-attr]
    assert recipe["requirements"]["run"] == [
        python,
        *(f"{CONDA_NAMES.get(name, name)} {bounds}" for name, bounds in wanted),
    ]
    (build,) = PROJECT["build-system"]["requires"]
    assert recipe["requirements"]["host"] == [python, "pip", build.replace(">=", " >=")]
    assert recipe["build"]["entry_points"] == [f"{name} = {place}" for name, place in declared["scripts"].items()]
    assert (recipe["about"]["license"], recipe["about"]["summary"]) == (declared["license"], declared["description"])
    assert (ROOT / "deploy" / "conda" / recipe["source"]["path"] / recipe["about"]["license_file"]).is_file()
