"""Files of the user that are called as Cairn's packages are: they do not get in the way, or it is said clearly."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.paths import ROOT

NAMES = ("index", "retrieval", "learning", "eval", "data")
# The working folder comes before these on Python's path, as it comes before installed packages.
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with a module of the name of each package, none of which is to be imported."""
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text('raise SystemExit("wrong one")\n')
    (tmp_path / "photos").mkdir()
    rng = np.random.default_rng(0)
    for number in range(4):
        pixels = rng.integers(0, 256, (12, 16), np.uint8)
        Image.fromarray(pixels).resize((160, 120)).save(tmp_path / "photos" / f"{number}.png")
    return tmp_path


@pytest.fixture
def script(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The command as installers write it, in a folder of its own."""
    path = tmp_path_factory.mktemp("bin") / "cairn"
    path.write_text("import sys\nfrom cairn import main\nif __name__ == '__main__':\n    sys.exit(main())\n")
    return str(path)


def _run(folder: Path, *arguments: str) -> str:
    """What Python prints in a folder; it must end well."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def test_the_command_finds_its_own_packages(hostile: Path, script: str) -> None:
    assert _run(hostile, script, "--version").startswith("cairn ")
    assert "Usage: cairn [OPTIONS]" in _run(hostile, "-m", "cairn", "--help")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["module", "script"])
def test_workers_find_their_own_packages(hostile: Path, script: str, how: str) -> None:
    command = ["-m", "cairn"] if how == "module" else [script]
    report = json.loads(_run(hostile, *command, "index", "c.cairn", "photos", "--workers", "2", "--json"))
    assert (report["added"], report["failed"]) == (4, [])


@pytest.mark.slow
@pytest.mark.parametrize("how", ["module", "script"])
def test_the_processes_of_the_server_find_their_own_packages(hostile: Path, script: str, how: str) -> None:
    command = [sys.executable, *(["-m", "cairn"] if how == "module" else [script])]
    subprocess.run([*command, "index", "c.cairn", "photos", "--quiet"], cwd=hostile, env=ENVIRONMENT, check=True)
    serve = [*command, "serve", "c.cairn", "--port", "0", "--workers", "1"]
    with subprocess.Popen(serve, cwd=hostile, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            (address,) = re.findall(r"http://\S+/", server.stdout.readline())
            with urllib.request.urlopen(f"{address}api/search?q=0", timeout=60) as answer:
                assert json.load(answer)["results"]
        finally:
            server.terminate()


@pytest.mark.parametrize(("package", "uses"), [("retrieval", "pass"), ("eval", "cairn.evaluate_retrieval")])
def test_the_library_says_what_hides_it(tmp_path: Path, package: str, uses: str) -> None:
    stranger = tmp_path / f"{package}.py"
    stranger.write_text('raise SystemExit("wrong one")\n')
    done = subprocess.run(
        [sys.executable, "-c", f"import cairn\n{uses}"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: Cairn's package '{package}' is hidden by {stranger}: "
        "rename that, or start Python in another folder."
    )


def test_the_library_works_beside_what_it_does_not_need(tmp_path: Path) -> None:
    for name in ("eval", "learning"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("mine = True\n")
    (tmp_path / "data.py").write_text("mine = True\n")
    program = "import cairn, eval, data; print(eval.mine, data.mine, cairn.Descriptor.load('cairn').dim > 8)"
    assert _run(tmp_path, "-c", program) == "True True True\n"
