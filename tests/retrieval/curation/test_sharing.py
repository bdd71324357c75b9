"""Links to albums: made, found by their tokens, ended; what is kept of them opens nothing."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from index.errors import CairnError
from retrieval.collection.identity import write_identity
from retrieval.curation.sharing import FILE, KnownLinks, LinkNotFound, end_link, last_day, links_of, share
from retrieval.state.folder import STATE, state_folder

TODAY = datetime.now(UTC).date()


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "demo.cairn"
    folder.mkdir()
    write_identity(folder, "0" * 32)
    return folder


def test_a_link_is_found_by_its_token_until_it_is_ended(folder: Path, state: Path) -> None:
    known = KnownLinks()
    assert known.find("cairn_x") is None and links_of(folder) == []
    token, link = share(folder, 3, last_day(0), by="anna")
    other, _ = share(folder, 4, last_day(7))
    assert known.find(token) == link and not link.is_over and link.is_of(folder)
    assert {one.album for one in links_of(folder)} == {3, 4} and links_of(folder, 3) == [link]
    kept = (state / FILE).read_text()
    assert token not in kept and other not in kept
    assert (state / FILE).stat().st_mode & 0o077 == 0
    assert end_link(folder, link.id) == link
    assert known.find(token) is None and known.find(other) is not None
    with pytest.raises(LinkNotFound, match="no such link"):
        end_link(folder, link.id)


def test_a_link_is_of_one_collection_at_its_place(folder: Path, tmp_path: Path) -> None:
    token, link = share(folder, 3, last_day(7))
    folder.rename(tmp_path / "moved.cairn")
    assert not link.is_of(tmp_path / "moved.cairn") and links_of(tmp_path / "moved.cairn") == []
    folder.mkdir()  # another one at the same place
    write_identity(folder, "1" * 32)
    assert links_of(folder) == []
    with pytest.raises(LinkNotFound):
        end_link(folder, link.id)
    assert KnownLinks().find(token) == link  # which the server compares with what it serves


def test_the_last_day_is_checked() -> None:
    assert last_day() == (TODAY + timedelta(30)).isoformat()
    assert last_day(0) == TODAY.isoformat() and last_day(expires="2031-02-03") == "2031-02-03"
    for days, expires in ((1, "2031-02-03"), (None, "tomorrow"), (None, "2020-01-01"), (10**9, None), (-1, None)):
        with pytest.raises(CairnError):
            last_day(days, expires)


@pytest.mark.parametrize(
    "content", ["", "{}", '{"links": [{}]}', '{"links": 3}', "[" * 100_000, '{"links": [{"hash": 1}]}']
)
def test_a_damaged_file_opens_nothing(folder: Path, content: str) -> None:
    token, _ = share(folder, 3, last_day(7))
    (state_folder() / FILE).write_text(content)
    assert KnownLinks().find(token) is None and links_of(folder) == []
