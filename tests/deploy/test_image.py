"""deploy/Dockerfile: what it copies exists, it runs as an ordinary user, and its health check tells the truth."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts.check_image import DOCKERFILE, DOCKERIGNORE, PORT, files_of, health_check, is_ignored, read_stages, sources
from tests.conftest import Indexed
from tests.support.paths import ROOT

STAGES = read_stages(DOCKERFILE.read_text())
IGNORE = DOCKERIGNORE.read_text()


def _texts(stage: int, name: str) -> list[str]:
    return [step.text for step in STAGES[stage] if step.name == name]


def test_what_is_copied_exists_and_is_let_through() -> None:
    copied = [source for stage in STAGES for step in stage if step.name == "COPY" for source in sources(step)]
    assert {"requirements.txt", "requirements-cluster.txt", "pyproject.toml", "retrieval"} <= set(copied)
    assert [source for source in copied if not list(files_of(source, IGNORE))] == []
    # What is let through and not copied would only repeat the builder's work.
    allowed = {line.removeprefix("!") for line in IGNORE.splitlines() if line.startswith("!")}
    assert allowed == set(copied)


def test_every_file_of_the_wheel_is_copied_and_nothing_else() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode != 0:
        pytest.skip("not a checkout")
    through = {path for path in tracked.stdout.splitlines() if not is_ignored(path, IGNORE)}
    packages = ("index/", "retrieval/", "learning/", "eval/", "data/models/", "data/sets/")
    assert {path for path in tracked.stdout.splitlines() if path.startswith(packages)} <= through
    rest = {path for path in through if not path.startswith(packages)}
    assert rest == {
        "LICENSE",
        "README.md",
        "cairn-stubs/__init__.pyi",
        "cairn.py",
        "docs/cairn.1",
        "pyproject.toml",
        "requirements.txt",
        "requirements-cluster.txt",
        "scripts/pins/bom.py",
    }
    for path in ("deploy/.env", ".git/config", ".venv-test/bin/cairn", "index/__pycache__/a.pyc", "data/matches.jpg"):
        assert is_ignored(path, IGNORE), path


@pytest.mark.parametrize(
    ("path", "ignore", "expected"),
    [
        ("a/b.txt", "*", True),
        ("a/b.txt", "*\n!a", False),
        ("a/b.txt", "*\n!a\n**/*.txt", True),
        ("a/b.txt", "*.txt", False),
        ("b.txt", "**/*.txt", True),
        ("a/b/c", "a/*/c", True),
        ("a/x/b/c", "a/*/c", False),
        ("a", "# a", False),
    ],
)
def test_what_is_ignored(path: str, ignore: str, expected: bool) -> None:
    assert is_ignored(path, ignore) is expected


def test_the_last_stage_has_no_tools_and_no_rights() -> None:
    build, final = STAGES
    # Both stages are of one image: the environment's Python is a link to the image's.
    assert [step.text.split()[0] for step in (build[0], final[0])] == ["python:${PYTHON}-slim-bookworm"] * 2
    user, group = _texts(1, "USER")[0].split(":")
    assert int(user) > 0 and int(group) > 0
    made, compiling = _texts(1, "RUN")
    assert f"useradd --uid {user} " in made and f"groupadd --gid {group} " in made
    assert not re.search(r"\b(apt|apt-get|pip|sudo)\b", made)
    names = [step.name for step in final]
    assert names.index("USER") < names.index("ENTRYPOINT") and names.count("USER") == 1
    # By that user, into the folder that a new volume begins as a copy of.
    assert compiling == "python -m retrieval.library.compiled"
    assert len(names) - names[::-1].index("RUN") - 1 in range(names.index("USER"), names.index("VOLUME"))


def test_volumes_port_and_command() -> None:
    final = STAGES[1]
    words = {step.name: step.words for step in final if step.name in ("VOLUME", "EXPOSE", "ENTRYPOINT", "CMD")}
    assert words["VOLUME"] == ["/photos", "/collection", "/state", "/cache"]
    assert words["EXPOSE"] == [PORT]
    assert words["ENTRYPOINT"] == ["cairn"] and words["CMD"][0] == "serve"
    assert Path(sys.executable).with_name("cairn").exists()


def test_python_is_one_that_the_pins_are_for() -> None:
    (python,) = re.findall(r"^ARG PYTHON=(\S+)$", DOCKERFILE.read_text(), re.MULTILINE)
    assert python in ("3.11", "3.12", "3.13", "3.14")  # as requirements.txt says
    assert "for Python 3.11 to 3.14" in (ROOT / "requirements.txt").read_text()


def test_the_wheels_need_only_libraries_that_the_image_has() -> None:
    if sys.platform != "linux":
        pytest.skip("the image is Linux's")
    folder = Path(next(path for path in sys.path if path.endswith("site-packages")))
    # OpenCV, faiss and NumPy are those with most libraries; what lies next to a wheel's own came with it.
    files = [path for name in ("cv2", "faiss", "numpy") for path in (folder / name).rglob("*.so*")]
    english = os.environ | {"LC_ALL": "C"}
    reported = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, env=english).stdout
    needed = {Path(path).name for path in re.findall(r"=> (/.+) \(0x", reported) if "site-packages" not in path}
    assert "libc.so.6" in needed and "not found" not in reported
    # Of libc6, libgcc-s1, libstdc++6 and zlib1g, without which Debian's apt does not run.
    has = r"lib(c|m|mvec|dl|pthread|rt|util|resolv|gcc_s|stdc\+\+|z)\.so\.\d+"
    assert [name for name in needed if not re.fullmatch(has, name)] == []


@pytest.mark.slow
def test_the_health_check_is_content_with_a_server_that_answers_and_with_no_other(indexed: Indexed) -> None:
    command = [sys.executable, "-m", "cairn", "serve", str(indexed.folder), "--port", "0", "--workers", "1"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            (port,) = re.findall(r"http://127.0.0.1:(\d+)/", server.stdout.readline())
            python, *rest = (part.replace(PORT, port) for part in health_check(STAGES[1]))
            assert python == "python"
            for _ in range(50):  # the address is said just before the server answers
                done = subprocess.run([sys.executable, *rest], capture_output=True, timeout=60)
                if done.returncode == 0:
                    break
                time.sleep(0.2)
            assert done.returncode == 0, done.stderr
            wrong = [part.replace("/api/ready", "/api/nothing") for part in rest]
            assert subprocess.run([sys.executable, *wrong], timeout=60).returncode == 1
        finally:
            server.terminate()
    assert subprocess.run([sys.executable, *rest], capture_output=True, timeout=60).returncode != 0
