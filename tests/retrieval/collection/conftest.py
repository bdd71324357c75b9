"""What tests of collections have in common."""

import shutil
from pathlib import Path

import pytest

from retrieval.collection.collection import Collection
from retrieval.collection.sealing import seal
from tests.conftest import Indexed


@pytest.fixture
def folder(indexed: Indexed, tmp_path: Path) -> Path:
    """A copy of the small collection, sealed."""
    copy = Path(shutil.copytree(indexed.folder, tmp_path / "demo.cairn"))
    with Collection.open(copy) as collection:
        seal(collection)
    return copy
