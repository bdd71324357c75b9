"""What holds for the project as a whole: its layers, its pins, its command and its set-up scripts."""

import ast
import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import cairn
from index.extras import EXTRAS, install_command
from scripts.pins.bom import read_pins
from tests.conftest import Indexed
from tests.support.paths import ROOT
from tests.support.sources import nodes_of

LAYERS = ("index", "retrieval", "learning", "eval")
PRODUCT = [*sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py")), ROOT / "cairn.py"]
REQUIREMENTS = ("requirements.txt", "requirements-cluster.txt", "requirements-test.txt")
CLUSTER = ("cluster", "s3", "postgresql", "heic", "pdf")  # extras of requirements-cluster.txt

# Slow to import: `cairn --help` must answer without them.
HEAVY = ("numpy", "cv2", "faiss", "numba", "scipy", "skimage", "sqlalchemy", "PIL", "joblib", "matplotlib")
HEAVY += ("fastapi", "starlette", "pydantic", "uvicorn", "python_multipart", "pooch", "requests")
COMMANDS = (
    "index",
    "query",
    "info",
    "remove",
    "compact",
    "retrain",
    "check",
    "repair",
    "backup",
    "metadata",
    "group",
    "serve",
    "mine",
    "learn",
    "compress",
    "patches",
    "data",
    "evaluate",
    "plot",
    "demo",
)
# Formats that run code when read, and the peers that benchmarks measure against.
PICKLES = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve"}
PEERS = {"pycolmap", "cvxpy"}


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every import in a file, those inside functions too."""
    package = path.relative_to(ROOT).parent.parts
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            yield node.lineno, ".".join([*base, *([node.module] if node.module else [])])


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_product_file_reads_what_can_run_code_or_needs_a_peer() -> None:
    wrong = []
    for path in PRODUCT:
        for line, name in _imports(path):
            if name.split(".")[0] in PICKLES | PEERS:
                wrong.append(f"{_name(path)}:{line} imports {name}")
        for node in nodes_of(path):
            match node:
                case ast.keyword(arg="allow_pickle", value=value) if not (
                    isinstance(value, ast.Constant) and value.value is False
                ):
                    wrong.append(f"{_name(path)}:{value.lineno} allows pickles")
                case ast.Attribute(value=ast.Name(id="joblib"), attr="dump" | "load"):
                    wrong.append(f"{_name(path)}:{node.lineno} pickles through joblib")
    assert not wrong


def _pins(file: str) -> list[Requirement]:
    """The pins of a requirements file without their hashes, those it includes by -r left out."""
    text = re.sub(r"\s*\\\n\s*--hash=\S+", "", (ROOT / file).read_text())
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    return [Requirement(line) for line in lines if line and not line.startswith("-r ")]


@pytest.mark.parametrize("file", REQUIREMENTS)
def test_requirements_pin_exactly_and_record_no_index(file: str) -> None:
    text = (ROOT / file).read_text()
    assert "://" not in text
    # An option, such as one that names an index.
    assert not re.search(
        r"^\s*-(?!r requirements(-cluster)?\.txt$|-hash=sha256:[0-9a-f]{64}( \\)?$)", text, re.MULTILINE
    )
    pins = _pins(file)
    assert pins
    hashed = {(pin.name, pin.version): pin.hashes for pin in read_pins(text)}
    assert len(hashed) == len(pins)
    for pin in pins:
        assert re.fullmatch(r"==[\w.]+", str(pin.specifier)), f"{pin} is not exact"
        assert pin.url is None
        hashes = hashed[canonicalize_name(pin.name), next(iter(pin.specifier)).version]
        assert len(hashes) == len(set(hashes)) > 0, f"{pin} has no hashes"


def test_requirements_meet_what_the_project_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    running, more, tools = map(_pins, REQUIREMENTS)
    wanted = {
        "running": (running, project["dependencies"]),
        "in a cluster": (running + more, [line for name in CLUSTER for line in extras[name]]),
        "testing": (
            running + more + tools,
            [line for name, lines in extras.items() if name != "peers" for line in lines],
        ),
    }
    wrong = []
    for purpose, (pins, declared) in wanted.items():
        for requirement in map(Requirement, declared):
            found = [pin for pin in pins if canonicalize_name(pin.name) == canonicalize_name(requirement.name)]
            versions = [next(iter(pin.specifier)).version for pin in found]
            if not versions or not all(requirement.specifier.contains(version) for version in versions):
                wrong.append(f"{purpose}: {requirement} is pinned to {versions or 'nothing'}")
    assert not wrong


def test_what_is_pinned_can_be_installed_with_the_oldest_python() -> None:
    """Not all that declares 3.11 takes each 3.11: Debian 12 has 3.11.2."""
    wrong = []
    for pin in (pin for file in REQUIREMENTS for pin in _pins(file)):
        with contextlib.suppress(metadata.PackageNotFoundError):  # of another system, or an extra
            needs = metadata.metadata(pin.name).get("Requires-Python")
            if pin.specifier.contains(metadata.version(pin.name)) and not SpecifierSet(needs or "").contains("3.11.0"):
                wrong.append(f"{pin} needs Python {needs}")
    assert not wrong


def test_no_message_names_a_distribution_that_nobody_can_get() -> None:
    """Cairn is on no package index: what a message says to install is the package behind an extra."""
    texts = [
        *PRODUCT,
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *(path for path in (ROOT / "scripts").iterdir() if path.is_file()),
    ]
    assert [_name(path) for path in texts if "cairn-search[" in path.read_text().replace("\\", "")] == []

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    del extras["docs"], extras["test"]
    assert EXTRAS.keys() == extras.keys()
    for extra, (declared,) in extras.items():
        command = shlex.split(install_command(extra))
        wanted, named = Requirement(declared), Requirement(command[-1])
        assert (command[:-1], named.name, named.extras) == (["pip", "install"], wanted.name, wanted.extras)


def _python(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_answers_without_loading_what_is_slow() -> None:
    loaded = _python(
        "-c", f"import cairn, sys; cairn.make_app(); print(*[name for name in {HEAVY} if name in sys.modules])"
    ).split()
    assert not loaded
    text = _python("-m", "cairn", "--help")
    for command in COMMANDS:
        assert re.search(rf"\b{command}\b", text), command


def test_info_loads_what_it_tells_of_and_nothing_that_sees_or_searches(indexed: Indexed) -> None:
    """It reads the catalogue (SQLAlchemy) and arrays (NumPy); Typer checks arguments with Pydantic."""
    needed = {"numpy", "sqlalchemy", "pydantic"}
    program = f"""
import atexit, sys
slow = {{*{HEAVY}, "alembic", "rich", "concurrent.futures.process", "eval", "learning", "retrieval.web"}} - {needed}
atexit.register(lambda: print("loaded", *sorted(slow & sys.modules.keys())))
sys.argv = ["cairn", "info", {str(indexed.folder)!r}]
import cairn
cairn.main()
"""
    *reported, last = _python("-c", program).splitlines()
    assert "photos" in reported[0] and last == "loaded"


def test_the_version_is_told_at_once() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    program = f"""
import atexit, sys
atexit.register(lambda: print(*[name for name in {HEAVY} if name in sys.modules]))
sys.argv = ["cairn", "--version"]
import cairn
cairn.main()
"""
    assert _python("-c", program) == f"cairn {declared}\n\n"


def test_the_version_of_a_checkout_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def nothing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    (tmp_path / "pyproject.toml").write_text('[project]\nname = "cairn-search"\nversion = "7.8.9"\n')
    monkeypatch.setattr(metadata, "version", nothing)
    monkeypatch.setattr(cairn, "__file__", str(tmp_path / "cairn.py"))
    assert cairn.version() == "7.8.9"


def test_commits_are_checked_by_what_the_tests_begin_with() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert "://" not in hooks and re.findall(r"repo: (.*)", hooks) == ["local"]
    first = re.findall(
        r'^check "[^"]+" "\$bin/(.+?)" ?(.*?)(?: \|\| failed=1| &)$',
        (ROOT / "scripts" / "test").read_text(),
        re.MULTILINE,
    )
    assert re.findall(r"entry: \.venv-test/bin/(\S+) (.*)", hooks) == first != []


# A Python that only pretends: it logs what it is asked to install, and fails while LOG.broken is there.
_FAKE_PYTHON = """#!/bin/sh
case "$1 $2" in
    "-c "*) exit 0 ;;
    "--version "*) echo "Python 3.11.0" ;;
    "-m venv")
        mkdir -p "$3/bin" && cp "$0" "$3/bin/python" &&
            printf '#!/bin/sh\\necho "cairn:$*"\\n' >"$3/bin/cairn" && chmod +x "$3/bin/cairn" ;;
    "-m pip") [ ! -e "$FAKE_LOG.broken" ] && echo "$*" >>"$FAKE_LOG" ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the set-up scripts need, in a folder whose name would trip careless quoting."""
    root = tmp_path / "a check out"
    shutil.copytree(ROOT / "scripts", root / "scripts")
    for name in (*REQUIREMENTS, "pyproject.toml"):
        shutil.copy(ROOT / name, root / name)
    python = tmp_path / "fake python"
    python.write_text(_FAKE_PYTHON)
    python.chmod(0o755)
    return root


def _demo(checkout: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    log, python = str(checkout.parent / "log"), str(checkout.parent / "fake python")
    return subprocess.run(
        [str(checkout / "scripts" / "demo"), *arguments],
        env=os.environ | {"FAKE_LOG": log, "CAIRN_PYTHON": python} | environment,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_an_environment_is_made_once_and_again_when_what_it_holds_changes(checkout: Path) -> None:
    log = checkout.parent / "log"
    broken = Path(f"{log}.broken")
    broken.touch()
    assert _demo(checkout).returncode == 1  # interrupted: what there is must not be taken for whole
    broken.unlink()

    made = _demo(checkout, "my photos", "--seed", "1")
    assert made.stdout == "cairn:demo --photos my photos --seed 1\n"
    steps = ("Setting up", "Making the virtual", "Installing what requirements.txt", "Installing Cairn", "Compiling")
    assert [line.startswith(step) for step, line in zip(steps, made.stderr.splitlines(), strict=True)] == [True] * 5
    assert "five minutes" in made.stderr
    installed = log.read_text()
    assert f"--require-hashes --requirement {checkout}/requirements.txt" in installed
    assert f"--no-deps --no-build-isolation --editable {checkout}" in installed

    again = _demo(checkout)
    assert (again.returncode, again.stdout, again.stderr) == (0, "cairn:demo\n", "")
    assert log.read_text() == installed

    with (checkout / "requirements.txt").open("a") as file:
        file.write("# changed\n")
    assert _demo(checkout).returncode == 0
    assert log.read_text() == 2 * installed


def _set_up(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program for bash with the functions of the set-up, in which a second is short."""
    begin = f"source '{ROOT}/scripts/environment.sh'\nsleep() {{ command sleep 0.05; }}\n"
    return subprocess.run(["bash", "-c", begin + program], cwd=folder, capture_output=True, text=True, timeout=60)


def test_what_takes_long_is_told_on_standard_error_and_nothing_runs_on(tmp_path: Path) -> None:
    reported = _set_up('step "Waiting" log sh -c "echo half done; sleep 1; echo done"; cat log', tmp_path)
    first, *ticks = reported.stderr.splitlines()
    assert (reported.returncode, reported.stdout, first) == (0, "half done\ndone\n", "Waiting …")
    assert ticks and all(re.fullmatch(r"    \d s so far\. (half )?done", tick) for tick in ticks)
    # It ends with the script, however that ends: who reads its standard error would wait for it.
    killed = _set_up('announce "Waiting"; kill -KILL $$', tmp_path)
    assert killed.returncode < 0 and killed.stderr.splitlines()[0] == "Waiting …"


def test_what_a_failed_step_wrote_is_shown(tmp_path: Path) -> None:
    reported = _set_up('set -e; step "Failing" log sh -c "echo no such package; exit 3"; echo not reached', tmp_path)
    assert (reported.returncode, reported.stdout) == (3, "")
    assert reported.stderr.endswith("no such package\n")


def test_a_missing_python_is_one_sentence(checkout: Path) -> None:
    done = _demo(checkout, CAIRN_PYTHON="no-such-python")
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.fullmatch(r"Cairn needs Python 3\.11 or newer [^\n]*no-such-python[^\n]*\.\n", done.stderr)
    assert not (checkout / ".venv-demo").exists()
