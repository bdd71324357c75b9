"""Files of a collection are sent where its user has said, and not where the collection says alone."""

import shutil
from pathlib import Path

import pytest

from index.errors import CairnError
from retrieval.catalogue.settings import keep_setting
from retrieval.collection.collection import Collection
from retrieval.collection.layout import STORAGE_KEY
from retrieval.shards.storage_place import STORAGE_VARIABLE, keep_storage_place, storage_place
from retrieval.state.folder import STATE
from tests.conftest import Indexed

PLACE = "s3://bucket/theirs"


def test_a_place_counts_where_this_user_has_named_it(
    indexed: Indexed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    folder = Path(shutil.copytree(indexed.folder, tmp_path / "one.cairn"))
    with Collection.open(folder) as collection:
        assert storage_place(collection) == str(folder.resolve())
        collection.catalogue.write(keep_setting, STORAGE_KEY, PLACE)
        with pytest.raises(CairnError, match=f"'{PLACE}', which you have not named: if that is right, set CAIRN_ST"):
            storage_place(collection)
        with monkeypatch.context() as patch:
            patch.setenv(STORAGE_VARIABLE, f"{PLACE}/other")
            with pytest.raises(CairnError):
                storage_place(collection)
            patch.setenv(STORAGE_VARIABLE, PLACE)
            assert storage_place(collection) == PLACE
        keep_storage_place(collection, PLACE)
        assert storage_place(collection) == PLACE
    moved = Path(shutil.copytree(folder, tmp_path / "two.cairn"))
    with Collection.open(moved) as collection, pytest.raises(CairnError, match="which you have not named"):
        storage_place(collection)
    monkeypatch.setenv(STATE, str(tmp_path / "another user"))
    with Collection.open(folder) as collection, pytest.raises(CairnError, match="which you have not named"):
        storage_place(collection)
