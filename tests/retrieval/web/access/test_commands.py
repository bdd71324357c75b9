"""The commands password and token."""

import io
import os
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from retrieval.web.access import passwords
from retrieval.web.access.passwords import Accounts, PasswordEntry, change_entry, read_entries
from retrieval.web.access.roles import Role
from retrieval.web.access.sessions import Sessions, sessions_file
from tests.conftest import Ran

Cairn = Callable[..., Ran]
QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "usual_hasher", lambda: QUICK)


def test_a_password_is_read_from_standard_input_or_asked_for_twice(
    cairn: Cairn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "passwords"
    monkeypatch.setattr(sys, "stdin", io.StringIO("correct horse\n"))
    done = cairn("password", path, "anna", "--role", "read")
    assert (done.code, done.out) == (0, "") and "horse" not in done.err
    assert Accounts(path).verify("anna", "correct horse") == read_entries(path)[0]
    monkeypatch.setattr(sys, "stdin", io.StringIO("short\n"))
    assert "8 to 1024" in cairn("password", path, "anna").refused()
    assert "not a valid name" in cairn("password", path, "an:na").refused()

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    answers = iter(("battery staple", "battery stapler", "battery staple", "battery staple"))
    monkeypatch.setattr("getpass.getpass", lambda prompt: next(answers))
    assert "differ" in cairn("password", path, "anna").refused()
    assert cairn("password", path, "anna").code == 0
    assert [(one.name, one.role) for one in read_entries(path)] == [("anna", Role.WRITE)]
    assert Accounts(path).verify("anna", "battery staple")
    assert cairn("password", path, "anna", "--remove").code == 0 and read_entries(path) == []
    assert "no password of anna" in cairn("password", path, "anna", "--remove").refused()


def test_a_token_is_printed_once_and_kept_as_a_hash(cairn: Cairn, tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    first = cairn("token", path, "monitoring").out.strip()
    second = cairn("token", path, "monitoring", "--role", "write").out.strip()
    assert first != second and second.startswith("cairn_") and second not in path.read_text()
    accounts = Accounts(path)
    program = accounts.program(second)
    assert program is not None and (program.name, program.role) == ("monitoring", Role.WRITE)
    assert accounts.program(first) is None
    assert cairn("token", path, "monitoring", "--remove").code == 0 and accounts.program(second) is None


def _lines(path: Path) -> list[str]:
    return [f"{one.name} {one.role} {','.join(one.collections)}" for one in read_entries(path)]


def test_rights_for_some_collections_and_lines_without_a_password(
    cairn: Cairn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "passwords"
    monkeypatch.setattr(sys, "stdin", io.StringIO("correct horse\n"))
    both = ("--collection", "holiday.cairn", "--collection", "Köln: 1998", "--collection", "holiday.cairn")
    assert cairn("password", path, "anna", *both).code == 0
    assert _lines(path) == ["anna write holiday.cairn,Köln: 1998"] and len(path.read_text().splitlines()) == 1
    assert read_entries(path)[0].may_see("Köln: 1998") and not read_entries(path)[0].may_see("holiday")
    # The role and the collections alone, with the password as it was.
    assert cairn("password", path, "anna", "--keep-password", "--role", "read").code == 0
    assert _lines(path) == ["anna read "] and Accounts(path).verify("anna", "correct horse")
    assert "no password of ben" in cairn("password", path, "ben", "--keep-password").refused()
    assert cairn("password", path, "carl", "--no-password").code == 0
    assert Accounts(path).person("carl") and Accounts(path).verify("carl", "-") is None
    assert cairn("token", path, "backup", "--collection", "holiday.cairn").code == 0
    assert _lines(path)[-1] == "backup read holiday.cairn"
    for wrong in ("", ".", "..", "a/b", "a\\b", "a\nb"):
        assert "--collection" in cairn("token", path, "backup", "--collection", wrong).refused()
    assert "Give only one of" in cairn("password", path, "carl", "--no-password", "--remove").refused()


def test_a_token_may_have_a_last_day(cairn: Cairn, tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    today = datetime.now(UTC).date()
    assert cairn("token", path, "a", "--expires", "2099-01-31").code == 0
    assert cairn("token", path, "b", "--days", "90").code == 0
    assert read_entries(path)[0].expires == date(2099, 1, 31)
    assert 0 <= (read_entries(path)[1].expires - today).days - 90 <= 1  # type: ignore[operator]  # midnight may pass
    assert "has passed" in cairn("token", path, "a", "--expires", "2001-01-31").refused()
    assert "a day such as" in cairn("token", path, "a", "--expires", "soon").refused()
    assert "not both" in cairn("token", path, "a", "--expires", "2099-01-31", "--days", "1").refused()
    assert read_entries(path)[0].expires == date(2099, 1, 31)


def test_people_with_their_sessions_and_tokens_are_listed_and_signed_out(cairn: Cairn, tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    assert "create it with" in cairn("password", path).refused()
    change_entry(path, "anna", token=False, entry=PasswordEntry("anna", Role.WRITE, QUICK.hash("correct horse")))
    change_entry(path, "ben", token=False, entry=PasswordEntry("ben", Role.READ, "-", ("holiday.cairn",)))
    cairn("token", path, "backup", "--expires", "2099-01-31")
    accounts = Accounts(path)
    anna, token = accounts.person("anna"), next(one for one in accounts if one.is_token)
    assert anna
    server = Sessions(accounts, sessions_file(path))
    value = server.begin(anna, ("Firefox", "Linux"), "192.0.2.1\x1b[2J")
    assert "backup: read, for use until 2099-01-31, never used" in cairn("token", path).out
    server.use_token(token)
    listed = cairn("password", path).out
    assert listed.startswith("anna: write\n  signed in 20") and "Firefox on Linux, 192.0.2.1" in listed
    assert "ben: read, without a password, holiday.cairn\n" in listed and "\x1b" not in listed
    assert "never" not in cairn("token", path).out
    assert server.check(value) == anna
    assert "signed in on 1 device, and" in cairn("password", path, "anna", "--sign-out").out
    assert server.check(value) is None and accounts.verify("anna", "correct horse")
    assert "no password of nobody" in cairn("password", path, "nobody", "--sign-out").refused()


def test_who_runs_a_command_as_root_leaves_the_files_to_their_owner(cairn: Cairn, tmp_path: Path) -> None:
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root writes files of others")
    path = tmp_path / "passwords"
    cairn("token", path, "backup")
    os.chown(path, 12345, 12345)
    cairn("token", path, "other")
    found = path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (12345, 12345, 0o600)
