"""Compiled functions accept their declared types, and are cached where the user says."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from index.kernels import compiling
from index.kernels.compiling import FLOAT32, INT64, array, compiled, use_wide_vectors
from index.kernels.waiting import tell_of_compiling
from tests.support.paths import ROOT


@compiled(array(FLOAT32), INT64)
def scaled(values: Any, factor: int) -> Any:
    return values * factor / 0


def test_read_only_arrays_are_taken_and_other_types_refused() -> None:
    values = np.array([1, 2], np.float32)
    values.flags.writeable = False
    assert scaled(values, 0).shape == (2,) and np.isnan(scaled(values, 0)).all()
    assert np.isinf(scaled(values, 3)).all()  # as in NumPy, and no error
    for other in (values.astype(np.float64), np.zeros((2, 2), np.float32), np.zeros(4, np.float32)[::2]):
        with pytest.raises(TypeError):
            scaled(other, 3)


def test_where_nothing_can_be_kept_functions_are_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    requested = []

    def keep(function: Any) -> Any:
        requested.append(function.__name__)
        raise RuntimeError("cannot cache function 'twice': no locator available")

    monkeypatch.setattr(compiling, "CompiledCache", keep)
    tell_of_compiling(lambda: requested.append("told"))

    @compiled(INT64)
    def twice(number: int) -> int:
        return 2 * number

    tell_of_compiling(None)
    assert twice(21) == 42 and requested == ["twice", "twice", "told"]


PROGRAM = """
import numpy as np, sys
if sys.argv[1] == "no room":
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
from index.kernels.waiting import tell_of_compiling
tell_of_compiling(lambda: print("compiling", file=sys.stderr))
from retrieval.features.encoding import decode_frames
print(decode_frames(np.zeros((1, 5), np.uint8)).centres.tolist())
"""


def run_decoding(variable: str, folder: Path, damage: str = "") -> bool:
    """Decode in another process, with the cache folder in a variable; return whether it compiled."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    command = [sys.executable, "-c", PROGRAM, damage]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, env=environment | {variable: str(folder)}
    )
    assert (done.returncode, done.stdout) == (0, "[[0.0, 0.0]]\n"), done.stderr
    return "compiling" in done.stderr


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of compiled code, in the folder of NUMBA_CACHE_DIR; read-only."""
    folder = tmp_path_factory.mktemp("compiled")
    run_decoding("NUMBA_CACHE_DIR", folder)
    return folder


@pytest.mark.parametrize("damage", ["cut off", pytest.param("emptied", marks=pytest.mark.slow)])
def test_damage_of_what_was_kept_stops_nothing(damage: str, kept: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(kept, tmp_path / "compiled"))
    (index,) = folder.rglob("*.nbi")
    (code,) = folder.rglob("*.nbc")
    if damage == "emptied":
        index.write_bytes(b"")
    else:
        code.write_bytes(code.read_bytes()[:100])
    assert run_decoding("NUMBA_CACHE_DIR", folder)
    # And it is mended.
    assert index.stat().st_size and all(path.stat().st_size > 100 for path in folder.rglob("*.nbc"))


@pytest.mark.slow
def test_a_full_disk_stops_nothing(tmp_path: Path) -> None:
    run_decoding("NUMBA_CACHE_DIR", tmp_path, "no room")


@pytest.mark.slow
def test_what_was_compiled_is_kept_in_the_folder_that_is_named(kept: Path, tmp_path: Path) -> None:
    assert run_decoding("CAIRN_CACHE", tmp_path)
    assert not run_decoding("CAIRN_CACHE", tmp_path)
    for folder in (kept, tmp_path / "compiled"):
        assert {path.suffix for path in folder.rglob("*.nb*")} == {".nbi", ".nbc"}


def test_wide_vectors_are_asked_of_the_compiler_and_change_no_number() -> None:
    def dot(values: np.ndarray) -> float:
        use_wide_vectors()
        total = 0.0
        for value in values:
            total += value * value
        return total

    wide: Any = compiling.numba.njit(dot)
    assert wide(np.arange(5.0)) == 30
    (written,) = wide.inspect_llvm().values()
    assert '"prefer-vector-width"="512"' in written


@compiled(makes_arrays=False)
def _sum_of(values: Any) -> Any:
    total = 0.0
    for value in values:
        total += value
    return total


@compiled(array(FLOAT32, 2))
def sum_of_rows(rows: Any) -> Any:
    total, last = 0.0, rows[0]
    for row in range(len(rows)):
        last = rows[row]
        total += _sum_of(last) + _sum_of(last[1:])
    return total, last


def test_parts_that_count_nothing_keep_no_array_and_lose_none() -> None:
    rows = np.ones((50, 4), np.float32)
    before = sys.getrefcount(rows)
    for _ in range(100):
        assert sum_of_rows(rows)[0] == 350
    assert sys.getrefcount(rows) == before
    last = sum_of_rows(np.full((9, 4), 3, np.float32))[1]
    assert last.tolist() == [3] * 4


def test_parts_that_count_nothing_return_no_array() -> None:
    """Without reference counting it would be freed once too often."""
    seen = 0
    for path in [path for room in ("index", "retrieval") for path in (ROOT / room).rglob("*_kernels.py")]:
        for function in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(function, ast.FunctionDef):
                continue
            if not any("makes_arrays=False" in ast.unparse(one) for one in function.decorator_list):
                continue
            seen += 1
            indexed = {
                node.value.id
                for node in ast.walk(function)
                if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
            }
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                    names = {value.id for value in values if isinstance(value, ast.Name)}
                    assert not names & indexed, (path, function.name)
                    assert not any(isinstance(part, ast.Slice) for part in ast.walk(node)), (path, function.name)
    assert seen > 30
