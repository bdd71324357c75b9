"""The commands password and token."""

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from retrieval.web.access import passwords
from retrieval.web.access.passwords import Accounts, read_entries
from retrieval.web.access.roles import Role
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
    assert "no name" in cairn("password", path, "an:na").refused()

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
