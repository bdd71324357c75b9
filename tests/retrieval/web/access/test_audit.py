"""The audit log: what people changed, a line each, and never a secret."""

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from index.errors import CairnError
from retrieval.web.access.audit import MOST, AuditFile
from retrieval.web.access.options import AccessOptions
from tests.retrieval.web.access.conftest import ANNA, BEN, STRANGER, Visitor, make_app

Visit = Callable[..., Visitor]
OWN = {"X-Cairn": "1"}


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def audited(visit: Visit, tmp_path: Path) -> tuple[Callable[[], Visitor], Path]:
    path = tmp_path / "audit.jsonl"
    return (lambda: visit(audit_log=path)), path


def test_who_changed_what_is_written_and_nothing_else(audited: tuple[Callable[[], Visitor], Path]) -> None:
    come, path = audited
    anna, ben = come(), come()
    anna.sign_in(*ANNA)
    ben.sign_in(*BEN)
    before = len(_lines(path))
    for looking in ("/", "/api/things/1", "/api/search", "/metrics", "/api/sessions"):
        anna.get(looking)
    assert len(_lines(path)) == before
    sent = {"kind": "remove", "photos": [3, 5], "title": "secret plans", "for_good": True, "tags": ["x"], "note": None}
    assert anna.ask("POST", "/api/things", json=sent, headers=OWN).status_code == 200
    assert ben.ask("POST", "/api/things", json=sent, headers=OWN).status_code == 403
    written, refused = _lines(path)[before:]
    assert written.pop("time").endswith("+00:00")
    assert written == {
        "event": "write",
        "user": "anna",
        "role": "write",
        "address": STRANGER,
        "method": "POST",
        "route": "/api/things",
        "what": {"kind": "remove", "photos": [3, 5], "for_good": True},
        "status": 200,
    }
    assert (refused["user"], refused["role"], refused["status"]) == ("ben", "read", 403)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_signing_in_failing_to_and_signing_out_are_written_without_what_was_typed(
    audited: tuple[Callable[[], Visitor], Path], tokens: dict[str, str]
) -> None:
    come, path = audited
    anna = come()
    anna.sign_in("anna", "my own password")
    anna.sign_in("correct horse", "anna")  # the password in the place of the name
    anna.sign_in(*ANNA)
    anna.ask("POST", "/logout", headers=OWN)
    anna.sign_in(*ANNA)
    anna.ask("DELETE", "/api/sessions", headers=OWN)
    come().ask("POST", "/api/things", json={}, headers={"Authorization": f"Bearer {tokens['write']}"})
    told = [(one["event"], one["user"], one["status"]) for one in _lines(path)]
    assert told == [
        ("sign-in refused", "anna", 401),
        ("sign-in refused", None, 401),
        ("sign-in", "anna", 303),
        ("sign-out", "anna", 204),
        ("sign-in", "anna", 303),
        ("sign-out", "anna", 200),
        ("write", "program-write", 200),
    ]
    text = path.read_text()
    assert not [word for word in ("my own password", "horse", "cairn-", tokens["write"]) if word in text]


def test_many_numbers_are_counted_and_odd_bodies_harm_nothing(audited: tuple[Callable[[], Visitor], Path]) -> None:
    come, path = audited
    anna = come()
    anna.sign_in(*ANNA)
    anna.ask("POST", "/api/things", json={"photos": list(range(1000))}, headers=OWN)
    assert _lines(path)[-1]["what"] == {"photos": list(range(MOST)), "photos_in_all": 1000}
    before = len(_lines(path))
    for body in (b"\xff", b"[1]", b"[" * 20_000, b'{"x": "' + b"a" * 100_000 + b'"}', b'{"\\u202e": 1, "a b": 2}'):
        anna.ask("POST", "/api/things", content=body, headers=OWN | {"Content-Type": "application/json"})
    written = _lines(path)[before:]
    assert len(written) >= 2 and not any(one["what"] for one in written)


def test_the_log_goes_on_in_a_new_file_where_the_old_one_was_moved(
    audited: tuple[Callable[[], Visitor], Path],
) -> None:
    come, path = audited
    anna = come()
    anna.sign_in(*ANNA)
    moved = path.rename(path.with_suffix(".1"))
    anna.ask("POST", "/api/things", json={}, headers=OWN)
    path.unlink()
    anna.ask("POST", "/api/things", json={}, headers=OWN)
    assert [len(_lines(one)) for one in (moved, path)] == [1, 1]
    # What another process adds stays: lines are put after all others.
    path.write_text(path.read_text() + "{}\n")
    anna.ask("POST", "/api/things", json={}, headers=OWN)
    assert [one.get("event") for one in _lines(path)] == ["write", None, "write"]


def test_a_log_that_cannot_be_written_stops_no_work_and_is_told(
    audited: tuple[Callable[[], Visitor], Path], caplog: pytest.LogCaptureFixture
) -> None:
    come, path = audited
    anna = come()
    anna.sign_in(*ANNA)
    path.unlink()
    path.mkdir()
    assert anna.ask("POST", "/api/things", json={"photos": [7]}, headers=OWN).json() == {"changed": True}
    assert "audit log" in caplog.text and '"photos": [7]' in caplog.text
    path.rmdir()
    anna.ask("POST", "/api/things", json={}, headers=OWN)
    assert len(_lines(path)) == 1


def test_a_log_that_cannot_be_written_at_the_start_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CairnError, match="audit log"):
        AuditFile(tmp_path)
    with pytest.raises(CairnError, match="audit log"):
        make_app(AccessOptions(audit_log=tmp_path / "nothing" / "audit.jsonl"))


def test_without_a_password_what_this_machine_changes_is_written_too(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    local = Visitor(make_app(AccessOptions(audit_log=path)), "127.0.0.1")
    local.ask("POST", "/api/things", json={}, headers=OWN)
    (line,) = _lines(path)
    assert (line["user"], line["role"], line["address"]) == (None, "write", "127.0.0.1")
