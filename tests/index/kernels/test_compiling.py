"""Compiled functions take what they are declared for, and are kept where the user says."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from index.kernels import compiling
from index.kernels.compiling import FLOAT32, INT64, array, compiled
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
    asked = []
    real: Any = compiling.numba.njit

    def njit(signature: Any, *, cache: bool = False, **options: Any) -> Any:
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function 'twice': no locator available")
        return real(signature, **options)

    monkeypatch.setattr(compiling.numba, "njit", njit)

    @compiled(INT64)
    def twice(number: int) -> int:
        return 2 * number

    assert twice(21) == 42 and asked == [True, False]


@pytest.mark.parametrize("variable", ["CAIRN_CACHE", "NUMBA_CACHE_DIR"])
def test_what_was_compiled_is_kept_in_the_folder_that_is_named(variable: str, tmp_path: Path) -> None:
    program = "import retrieval.features.geometry_kernels"
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, timeout=120, env=environment | {variable: str(tmp_path)}
    )
    kept = {path.suffix for path in (tmp_path / "compiled" if variable == "CAIRN_CACHE" else tmp_path).rglob("*.nb*")}
    assert kept == {".nbi", ".nbc"}
