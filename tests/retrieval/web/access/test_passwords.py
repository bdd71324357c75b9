"""The file of passwords and tokens: what is kept of them, who may read it, and what is taken."""

import stat
import tempfile
import time
from datetime import date
from pathlib import Path

import pytest
from argon2 import PasswordHasher
from hypothesis import given
from hypothesis import strategies as st

from index.errors import CairnError
from retrieval.state.tokens import hash_token, new_token
from retrieval.web.access.passwords import Accounts, PasswordEntry, change_entry, read_entries
from retrieval.web.access.roles import Role

QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


def test_a_password_is_taken_until_it_changes_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    token, kept = new_token()
    for entry in (
        PasswordEntry("anna", Role.WRITE, QUICK.hash("correct horse")),
        PasswordEntry("ben", Role.READ, QUICK.hash("battery staple")),
        PasswordEntry("ben", Role.READ, kept),
    ):
        assert not change_entry(path, entry.name, token=entry.is_token, entry=entry)
    accounts = Accounts(path, QUICK)
    anna = accounts.verify("anna", "correct horse")
    assert anna is not None and anna.role is Role.WRITE
    for name, password in (
        ("anna", "battery staple"),
        ("ben", token),
        ("nobody", "correct horse"),
        ("", ""),
        ("anna:", ""),
    ):
        assert accounts.verify(name, password) is None
    program = accounts.program(token)
    assert program is not None and (program.name, program.role) == ("ben", Role.READ)
    assert accounts.program(token[:-1]) is None and accounts.program("") is None
    assert accounts.program(hash_token(token)) is None  # what the file says lets nobody in
    assert token not in path.read_text() and "horse" not in path.read_text()

    assert change_entry(path, "anna", token=False, entry=PasswordEntry("anna", Role.READ, QUICK.hash("something else")))
    assert accounts.verify("anna", "correct horse") is None
    changed = accounts.verify("anna", "something else")
    assert changed is not None and changed.role is Role.READ
    path.write_text("no such line")
    assert accounts.verify("anna", "something else") is None and accounts.program(token) is None


def test_the_file_is_its_owners_and_keeps_comments(tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    change_entry(path, "anna", token=False, entry=PasswordEntry("anna", Role.READ, QUICK.hash("correct horse")))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("# Family\n" + path.read_text())
    assert change_entry(path, "anna", token=False, entry=None)
    assert path.read_text() == "# Family\n" and list(tmp_path.iterdir()) == [path]
    path.chmod(0o666)
    with pytest.raises(CairnError, match="chmod 600"):
        read_entries(path)


@pytest.mark.parametrize(
    "line",
    [
        "anna",
        "anna:read",
        "anna:read:",
        "anna:admin:$argon2id$x",
        "an na:read:$argon2id$x",
        "a:read:plain",
        "a:read:sha256$0",
    ],
)
def test_a_wrong_line_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "passwords"
    path.write_text(f"# first\n{line}\n")
    path.chmod(0o600)
    with pytest.raises(CairnError, match=r"^Line 2 of"):
        read_entries(path)


def test_a_wrong_name_takes_as_long_as_a_wrong_password(tmp_path: Path) -> None:
    hasher = PasswordHasher(time_cost=4, memory_cost=4096, parallelism=1)
    path = tmp_path / "passwords"
    change_entry(path, "anna", token=False, entry=PasswordEntry("anna", Role.READ, hasher.hash("correct horse")))
    accounts = Accounts(path, hasher)

    def seconds(name: str) -> float:
        taken = []
        for _ in range(5):
            begun = time.process_time()
            assert accounts.verify(name, "wrong password") is None
            taken.append(time.process_time() - begun)
        return min(taken)

    wrong_password, wrong_name = seconds("anna"), seconds("nobody")
    assert wrong_password > 0.002 and 0.5 < wrong_name / wrong_password < 2


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(st.lists(NAMES, max_size=3), st.none() | st.dates(date(2026, 1, 1)))
def test_rights_and_last_days_are_read_as_they_were_written(collections: list[str], expires: date | None) -> None:
    _, kept = new_token()
    entry = PasswordEntry("backup", Role.READ, kept, tuple(collections), expires)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "passwords"
        change_entry(path, "backup", token=True, entry=entry)
        change_entry(path, "anna", token=False, entry=PasswordEntry("anna", Role.WRITE, "-"))
        assert read_entries(path) == [entry, PasswordEntry("anna", Role.WRITE, "-")]


TOKEN = f"backup:read:sha256${'0' * 64}"


@pytest.mark.parametrize(
    "line",
    [
        f"{TOKEN}:expires=2027-02-30",
        f"{TOKEN}:expires=",
        f"{TOKEN}:expires=2027-01-31:expires=2028-01-31",
        f"{TOKEN}:collection=",
        f"{TOKEN}:",
        f"{TOKEN}:networks=10.0.0.0/8",
        "anna:read:$argon2id$x:expires=2027-01-31",
        "anna:read:--",
    ],
)
def test_a_right_that_is_not_understood_is_none(tmp_path: Path, line: str) -> None:
    path = tmp_path / "passwords"
    path.write_text(f"{line}\n")
    path.chmod(0o600)
    with pytest.raises(CairnError, match=r"^Line 1 of"):
        read_entries(path)
