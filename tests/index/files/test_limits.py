"""Collections of many segments open even if the system's default limit of open files is low."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from index.arrays import load_array
from index.files.limits import allow_files

resource = pytest.importorskip("resource")


@pytest.fixture
def few() -> Iterator[int]:
    """A low soft limit; yields the hard limit."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < 1024:
        pytest.skip("no more files are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[0], 256) if before[0] > 0 else 256, before[1]))
    try:
        yield before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_arrays_of_many_segments_may_be_mapped(few: int, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(4))
    allowed = allow_files(1000)
    assert allowed == 1000 == allow_files(500)  # it is never lowered
    kept = [load_array(tmp_path / "a.npy", mmap=True) for _ in range(400)]
    assert kept[-1].tolist() == [0, 1, 2, 3]


def test_no_more_are_asked_for_than_the_system_allows(few: int) -> None:
    allowed = allow_files(10**7)
    assert allowed is None or (allowed >= 256 and (few == resource.RLIM_INFINITY or allowed <= few))
