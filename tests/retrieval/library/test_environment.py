"""What the report of a failure says of the machine: all of it, whatever is broken, and nothing that is secret."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from retrieval.library import environment
from retrieval.library.environment import HIDDEN, describe_environment, reported_variables
from tests.conftest import Indexed, Ran
from tests.support.paths import ROOT

Cairn = Callable[..., Ran]


def test_it_tells_what_rounds_numbers_and_where_things_are_kept() -> None:
    import numpy as np

    reported = describe_environment()
    assert reported.not_loaded == {}
    assert reported.versions["Python"] == ".".join(map(str, sys.version_info[:3]))
    assert reported.versions["NumPy"] == np.__version__
    assert all(reported.versions.values())
    assert reported.processor["numba"] and reported.processor["numpy_baseline"]
    kernels = [one for one in reported.linear_algebra if one["kind"] in ("openblas", "mkl", "blis")]
    assert all(one["kernel"] and one["threads"] >= 1 and os.sep not in one["file"] for one in kernels)
    assert reported.cores["usable"] >= 1
    assert [one["of"] for one in reported.caches] == [
        "compiled functions",
        "copies from object stores",
        "temporary files",
    ]
    assert int(reported.process["umask"], 8) <= 0o777
    json.dumps(reported.to_dict())


def test_telling_leaves_the_umask_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0o027)
    try:
        assert describe_environment().process["umask"] == "027"
        assert os.umask(0o027) == 0o027
        monkeypatch.setattr(Path, "read_text", lambda *_, **__: "")  # a system that has no such file
        assert environment._umask() == 0o027 == os.umask(0o027)
    finally:
        os.umask(before)


def test_variables_that_change_results_are_told_and_secrets_are_not() -> None:
    reported = reported_variables(
        {
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_CORETYPE": "Haswell",
            "NPY_DISABLE_CPU_FEATURES": "AVX512F",
            "NUMBA_CACHE_DIR": "/var/numba",
            "MALLOC_ARENA_MAX": "2",
            "LC_ALL": "de_DE.UTF-8",
            "TZ": "Pacific/Auckland",
            "CAIRN_CACHE": "/var/cache",
            "CAIRN_CATALOGUE": "postgresql://cairn:hunter2@db/photos",
            "CAIRN_OF_SOMEBODY": "hunter2",
            "OPENCV_URL": "hunter2",
            "CAIRN_DATASETS": "https://me:hunter2@example.org/sets",
            "NUMBA_SOMETHING": "password=hunter2",
            "PGPASSWORD": "hunter2",
            "AWS_SECRET_ACCESS_KEY": "hunter2",
            "HOME": "/home/me",
        }
    )
    assert [*reported] == sorted(reported)
    assert "hunter2" not in str(reported)
    assert {name for name, value in reported.items() if value == HIDDEN} == {
        *("CAIRN_CATALOGUE", "CAIRN_OF_SOMEBODY", "OPENCV_URL", "CAIRN_DATASETS", "NUMBA_SOMETHING")
    }
    assert reported["OPENBLAS_CORETYPE"] == "Haswell" and reported["CAIRN_CACHE"] == "/var/cache"
    assert not {"PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "HOME"} & reported.keys()


def test_what_is_broken_is_told_and_stops_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "broken_library.py").write_text("raise ImportError('libfoo.so:\\n cannot open')")
    monkeypatch.syspath_prepend(str(tmp_path))
    broken = {"Foo": ("no-such-distribution", "broken_library")}
    monkeypatch.setattr(environment, "DISTRIBUTIONS", environment.DISTRIBUTIONS | broken)
    for name in ("numba", "cv2", "faiss", "threadpoolctl"):
        monkeypatch.setitem(sys.modules, name, None)  # importing it is an ImportError
    reported = describe_environment()
    assert reported.versions["Foo"] is None
    assert reported.not_loaded["broken_library"] == "ImportError: libfoo.so: cannot open"
    assert {"numba", "cv2", "faiss"} < reported.not_loaded.keys()
    assert reported.linear_algebra == [] and reported.caches


def test_folders_that_cannot_be_written_to_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "a file"
    file.touch()
    monkeypatch.setenv("CAIRN_CACHE", str(file))
    reported = {one["of"]: one for one in describe_environment(tmp_path / "c.cairn").caches}
    assert reported["copies from object stores"] == {
        "of": "copies from object stores",
        "folder": str(file),
        "writable": False,
    }
    assert reported["pictures"]["folder"] == str(tmp_path / "c.cairn" / "cache") and reported["pictures"]["writable"]
    assert not (tmp_path / "c.cairn").exists()  # nothing is made by asking


def test_the_command_needs_no_collection_for_it(
    cairn: Cairn, indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAIRN_CATALOGUE", "postgresql://cairn:hunter2@db/photos")
    reported = cairn("info", "--environment", "--json").json
    assert reported["variables"]["CAIRN_CATALOGUE"] == HIDDEN
    text = cairn("info", "--environment")
    assert text.code == 0 and text.err == "" and "hunter2" not in text.out
    for heading in ("versions", "processor", "linear algebra", "cores", "variables", "caches", "process"):
        assert f"{heading}\n" in text.out
    assert cairn("info", indexed.folder, "--environment", "--json").json["caches"][2]["of"] == "pictures"
    assert "COLLECTION" in cairn("info").refused()
    assert "COLLECTION" in cairn("info", "--json").refused()


@pytest.mark.slow
def test_failed_tests_come_with_it_before_the_closing_line(tmp_path: Path) -> None:
    """As scripts/test runs them."""
    outcomes = {"passes": "assert True", "fails": "assert False"}
    for name, line in outcomes.items():
        path = tmp_path / f"test_{name}.py"
        path.write_text(f"def test_{name}():\n    {line}\n")
        plugins = ("xdist", "tests.support.failure_report", "no:cacheprovider")
        arguments = [*(f"-p{plugin}" for plugin in plugins), "-n2", str(path)]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "--rootdir", str(tmp_path), "-c", os.devnull, *arguments],
            cwd=ROOT,
            env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # all others take seconds to load
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert ("cairn info --environment:" in done.stdout) == ("versions\n" in done.stdout) == (name == "fails")
        assert name.removesuffix("es").removesuffix("s") in done.stdout.splitlines()[-1]
