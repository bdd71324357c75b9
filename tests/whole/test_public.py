"""`import cairn`: the public names are those that are recorded, documented, typed and quick to import."""

import doctest
import inspect
import operator
import re
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from typing import Any

import pytest

import cairn
from scripts.documentation.public_names import RECORD, STUBS, describe, methods, public_objects, record, sections, stubs
from tests.support.paths import ROOT

OBJECTS = public_objects()
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
PACKAGES = ("index", "retrieval", "learning", "eval")
HEAVY = {"numpy", "cv2", "faiss", "numba", "typer", "sqlalchemy", "scipy", "PIL", "rich", "pydantic"}


def _python(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_interface_is_the_recorded_one() -> None:
    assert record().splitlines() == RECORD.read_text(encoding="utf-8").splitlines(), (
        "the public interface has changed. If that is wanted: keep what there was, deprecated, for one minor version, "
        "or raise the minor version where it was announced; tell it in CHANGELOG.md; then run "
        "python -m scripts.documentation.public_names. See docs/reference/stability.md."
    )


def test_the_stubs_are_those_of_the_public_names() -> None:
    assert stubs() == STUBS.read_text(encoding="utf-8"), "run python -m scripts.documentation.public_names"


def test_all_names_are_there_and_no_other() -> None:
    assert [*cairn.__all__] == [*cairn.PUBLIC] and {*cairn.PUBLIC} < {*dir(cairn)}
    for name, one in OBJECTS.items():
        assert operator.attrgetter(name)(cairn) is one
    assert cairn.__version__ == cairn.version()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        cairn.nothing  # noqa: B018


def test_the_import_and_a_look_around_load_nothing_slow() -> None:
    program = f"import cairn, sys; dir(cairn), cairn.__all__; print(*({HEAVY!r} & sys.modules.keys()))"
    assert _python(program).split() == []


def _documented() -> Iterator[tuple[str, Any]]:
    """Every public function and class, and the public methods of those."""
    for name, one in OBJECTS.items():
        yield f"cairn.{name}", one
        if isinstance(one, type):
            for member, method in methods(f"cairn.{name}", one).items():
                yield f"cairn.{name}.{member}", method


def _parameters(one: Any) -> set[str]:
    parameters = [*inspect.signature(one).parameters.values()]
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return {stars.get(each.kind, "") + each.name for each in parameters if each.name not in ("self", "cls")}


DOCUMENTED = dict(_documented())


@pytest.mark.parametrize("name", DOCUMENTED)
def test_docstrings_fit_the_signatures(name: str) -> None:
    one = DOCUMENTED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpydoc warns of sections that it does not know, or that come twice
        found = sections(one)
    assert inspect.cleandoc(one.__doc__ or "").split("\n\n")[0].endswith((".", "?")), "no summary"
    if isinstance(one, type):
        if issubclass(one, BaseException):
            return
        fields = [line.split(":")[0].strip() for line in describe(name, one) if re.match(r"    \w+: ", line)]
        reported = {name for kind in one.__mro__[:-1] for names in sections(kind).values() for name in names}
        assert {*fields} <= reported | _properties(one), "attributes are missing"
        if found["Parameters"]:
            assert {*found["Parameters"]} == _parameters(one)
    elif callable(one):
        assert {*found["Parameters"]} == _parameters(one)


def _properties(one: type) -> set[str]:
    """Those have docstrings of their own."""
    return {
        name
        for name, value in inspect.getmembers_static(one)
        if isinstance(value, property | cached_property) and value.__doc__
    }


def _with_examples() -> list[str]:
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    named = [path.relative_to(ROOT) for path in paths if ">>> " in path.read_text(encoding="utf-8")]
    return [".".join(path.with_suffix("").parts) for path in named]


@pytest.mark.parametrize("module", _with_examples())
def test_examples_in_docstrings_do_what_they_say(
    module: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("examples"))
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    reported: list[str] = []
    for test in doctest.DocTestFinder(exclude_empty=True).find(import_module(module)):
        runner.run(test, out=reported.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(reported)
