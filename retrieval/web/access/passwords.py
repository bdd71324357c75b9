"""The password file: a line for each password and token, which holds only a hash."""

import hmac
import logging
import os
import re
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from index.errors import CairnError
from retrieval.state.tokens import hash_token, stamp_of, write_private
from retrieval.web.access.roles import Role

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST, LONGEST = 8, 1024  # characters of a password
NO_PASSWORD = "-"  # in place of a hash: this name is signed in by the proxy alone
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_TOKEN_HASH = re.compile(r"sha256\$[0-9a-f]{64}")
_PASSWORD_HASH = re.compile(r"\$argon2[!-9;-~]+")  # without a colon

log = logging.getLogger("cairn.access")


@dataclass(frozen=True)
class PasswordEntry:
    """A line of the file."""

    name: str  # of a person, or of a program
    role: Role
    # of a password, by Argon2; or of a token, by SHA-256: a token is drawn at random, so none can be guessed; or
    # `NO_PASSWORD`
    hash: str
    collections: tuple[str, ...] = ()  # names of folders of the collections that may be seen; (): all
    expires: date | None = None  # last day (UTC) on which a token is taken

    @property
    def is_token(self) -> bool:
        """Whether it is a token of a program."""
        return self.hash.startswith("sha256$")

    @property
    def is_over(self) -> bool:
        """Whether it has expired."""
        return self.expires is not None and datetime.now(UTC).date() > self.expires

    def may_see(self, collection: str) -> bool:
        """Whether the collection of this name may be seen."""
        return may_see(self.collections, collection)

    def line(self) -> str:
        """The line of the file."""
        more = [f"collection={quote(one, safe='')}" for one in self.collections]
        more += [f"expires={self.expires}"] if self.expires else []
        return ":".join([self.name, self.role, self.hash, *more])


def may_see(collections: tuple[str, ...], name: str) -> bool:
    """Whether a user who may see some collections, () for all, may see the one of this name."""
    return not collections or name in collections


@cache
def usual_hasher() -> "PasswordHasher":
    """Argon2id with the parameters of RFC 9106 for little memory: 64 MiB and about a tenth of a second."""
    from argon2 import PasswordHasher

    return PasswordHasher()


def read_entries(path: Path) -> list[PasswordEntry]:
    """Read a password file; raises CairnError if it is missing, others may write it, or a line of it is wrong."""
    try:
        with path.open(encoding="utf-8") as file:
            if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o022:
                raise CairnError(f"Other users can write {path}: prevent that with chmod 600 {path}.")
            text = file.read(1 << 20)
    except FileNotFoundError:
        raise CairnError("There is no file {path}: create it with {cairn password} {path} NAME.", path=path) from None
    except (OSError, UnicodeError) as error:
        raise CairnError(f"The file of passwords {path} cannot be read ({error}).") from None
    return list(_parse(text, path))


def _parse(text: str, path: Path) -> Iterator[PasswordEntry]:
    known = set()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        entry = _entry(line.strip())
        if entry is None:
            raise CairnError(
                "Line {number} of {path} is not NAME:ROLE:HASH, followed by :collection=NAME and :expires=DATE where "
                "these are wanted: write it with {cairn password}.",
                number=number,
                path=path,
            )
        if (entry.name, entry.is_token) in known:
            raise CairnError(f"Line {number} of {path} names {entry.name} again: remove one of the two.")
        known.add((entry.name, entry.is_token))
        yield entry


def _entry(line: str) -> PasswordEntry | None:
    """The entry of a line; None if it is malformed."""
    name, role, hashed, *more = [*line.split(":"), "", ""][: max(3, line.count(":") + 1)]
    right = _NAME.fullmatch(name) and role in set(Role)
    if not right or not (hashed == NO_PASSWORD or _TOKEN_HASH.fullmatch(hashed) or _PASSWORD_HASH.fullmatch(hashed)):
        return None
    collections: list[str] = []
    expires = None
    for field in more:
        key, _, value = field.partition("=")
        if key == "collection" and value:
            collections.append(unquote(value))
        elif key == "expires" and expires is None and _TOKEN_HASH.fullmatch(hashed):
            try:
                expires = date.fromisoformat(value)
            except ValueError:
                return None
        else:  # of a later version: an unknown right is not granted
            return None
    return PasswordEntry(name, Role(role), hashed, tuple(collections), expires)


def check_name(name: str) -> None:
    """Raise CairnError if a name is not valid."""
    if not _NAME.fullmatch(name):
        raise CairnError(
            f"{name!r} is not a valid name: use 1 to 64 letters (a to z), digits, dots, hyphens, underscores or @ "
            "signs."
        )


def hash_password(password: str) -> str:
    """Hash a password; raises CairnError if it is too short or too long."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise CairnError(f"A password has {SHORTEST} to {LONGEST} characters: choose another.")
    return usual_hasher().hash(password)


def change_entry(path: Path, name: str, *, token: bool, entry: PasswordEntry | None) -> bool:
    """Replace or add the entry of a name and kind, or remove it (None); return whether there was one.

    Other lines and comments stay. A missing file is created, readable only by its owner.
    """
    lines: list[str] = []
    exists = False
    if path.exists():
        read_entries(path)  # all of it is right
        for line in path.read_text(encoding="utf-8").splitlines():
            (before,) = _parse(line, path) if line.strip() and not line.startswith("#") else (None,)
            if before is not None and (before.name, before.is_token) == (name, token):
                exists = True
            else:
                lines.append(line)
    if entry is not None:
        lines.append(entry.line())
    write_private(path, "".join(f"{line}\n" for line in lines).encode())
    return exists


class Accounts:
    """The entries of a password file, read again when it changes.

    Raises CairnError if the file is invalid; one that becomes invalid while the server runs admits no user.
    """

    def __init__(self, path: Path, hasher: "PasswordHasher | None" = None) -> None:
        self._path, self._hasher = path, hasher or usual_hasher()
        self._nobody = self._hasher.hash(secrets.token_hex(16))
        self._stamp = stamp_of(path)
        self._entries = read_entries(path)

    def __iter__(self) -> Iterator[PasswordEntry]:
        stamp = stamp_of(self._path)
        if stamp != self._stamp:
            try:
                self._entries = read_entries(self._path)
            except CairnError as error:
                log.error("Nobody is let in until this is mended: %s", error)
                self._entries = []
            self._stamp = stamp
        return iter(self._entries)

    def person(self, name: str) -> PasswordEntry | None:
        """The user of a name, who signed in with a password or through a proxy."""
        return next((one for one in self if one.name == name and not one.is_token), None)

    def verify(self, name: str, password: str) -> PasswordEntry | None:
        """The user of a name and password; a wrong name takes as long as a wrong password."""
        from argon2.exceptions import InvalidHashError, VerificationError

        entry = self.person(name)
        try:
            hashed = self._nobody if entry is None or entry.hash == NO_PASSWORD else entry.hash
            self._hasher.verify(hashed, password[: LONGEST + 1])
        except (VerificationError, InvalidHashError):
            return None
        return entry if entry is not None and hashed == entry.hash else None

    def program(self, token: str) -> PasswordEntry | None:
        """The entry of a token, which may have expired."""
        hashed = hash_token(token)
        match = None
        for one in self:
            if one.is_token and hmac.compare_digest(one.hash, hashed):
                match = one
        return match
