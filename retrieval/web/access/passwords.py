"""Who may come in: a file with a line for each password and each token, of which it keeps hashes alone."""

import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from index.arrays import save_bytes
from index.errors import CairnError
from retrieval.web.access.roles import Role

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST, LONGEST = 8, 1024  # characters of a password
TOKEN = "cairn_"  # begins every token, so that one in a public place is recognised
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_TOKEN_HASH = re.compile(r"sha256\$[0-9a-f]{64}")


@dataclass(frozen=True)
class Entry:
    """A line of the file.

    Attributes
    ----------
    name : str
        Of a person, or of a program.
    role : Role
    hash : str
        Of a password, by Argon2; or of a token, by SHA-256: a token is drawn at random, so none can be guessed.
    """

    name: str
    role: Role
    hash: str

    @property
    def is_token(self) -> bool:
        """Whether a program comes in with it."""
        return self.hash.startswith("sha256$")


@cache
def usual_hasher() -> "PasswordHasher":
    """Argon2id with the parameters of RFC 9106 for little memory: 64 MiB and about a tenth of a second."""
    from argon2 import PasswordHasher

    return PasswordHasher()


def read_entries(path: Path) -> list[Entry]:
    """Read a password file.

    Raises
    ------
    CairnError
        There is none, others may write it, or a line of it is wrong.
    """
    try:
        with path.open(encoding="utf-8") as file:
            if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o022:
                raise CairnError(f"Others may write {path}: take that away with chmod 600 {path}.")
            text = file.read(1 << 20)
    except FileNotFoundError:
        raise CairnError(f"There is no file {path}: make it with cairn password {path} NAME.") from None
    except (OSError, UnicodeError) as error:
        raise CairnError(f"The file of passwords {path} cannot be read ({error}).") from None
    return list(_parse(text, path))


def _parse(text: str, path: Path) -> Iterator[Entry]:
    known = set()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, rest = line.strip().partition(":")
        role, _, hashed = rest.partition(":")
        right = _NAME.fullmatch(name) and role in set(Role)
        if not right or not (_TOKEN_HASH.fullmatch(hashed) or hashed.startswith("$argon2")):
            raise CairnError(f"Line {number} of {path} is not NAME:ROLE:HASH: write it with cairn password.")
        entry = Entry(name, Role(role), hashed)
        if (name, entry.is_token) in known:
            raise CairnError(f"Line {number} of {path} names {name} again: remove one of the two.")
        known.add((name, entry.is_token))
        yield entry


def check_name(name: str) -> None:
    """Refuse what is no name; CairnError."""
    if not _NAME.fullmatch(name):
        raise CairnError(
            f"{name!r} is no name: take 1 to 64 letters (a to z), digits, dots, hyphens, underscores or @ signs."
        )


def hash_password(password: str) -> str:
    """Hash a password; CairnError where it is too short or too long."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise CairnError(f"A password has {SHORTEST} to {LONGEST} characters: choose another.")
    return usual_hasher().hash(password)


def new_token() -> tuple[str, str]:
    """Draw a token; give it, and what is kept of it."""
    token = TOKEN + secrets.token_urlsafe(32)
    return token, hash_token(token)


def hash_token(token: str) -> str:
    """What is kept of a token."""
    return f"sha256${hashlib.sha256(token.encode()).hexdigest()}"


def change_entry(path: Path, name: str, *, token: bool, entry: Entry | None) -> bool:
    """Put an entry in place of that of the same name and kind, or remove it; other lines and comments stay.

    Parameters
    ----------
    path : Path
        Made where it is not there, readable for its owner alone.
    name : str
    token : bool
        Whether the entry is a token.
    entry : Entry, or None
        None: it is removed.

    Returns
    -------
    bool
        Whether there was one.
    """
    lines: list[str] = []
    found = False
    if path.exists():
        read_entries(path)  # all of it is right
        for line in path.read_text(encoding="utf-8").splitlines():
            (before,) = _parse(line, path) if line.strip() and not line.startswith("#") else (None,)
            if before is not None and (before.name, before.is_token) == (name, token):
                found = True
            else:
                lines.append(line)
    if entry is not None:
        lines.append(f"{entry.name}:{entry.role}:{entry.hash}")
    save_bytes(path, "".join(f"{line}\n" for line in lines).encode(), mode=0o600)
    return found


class Accounts:
    """The entries of a password file, read again when it changes.

    Parameters
    ----------
    path : Path
        The file.
    hasher : PasswordHasher, optional
        What verifies passwords, and makes the hash that a wrong name is verified against.

    Raises
    ------
    CairnError
        The file is wrong. While the server runs, a file that becomes wrong lets nobody in.
    """

    def __init__(self, path: Path, hasher: "PasswordHasher | None" = None) -> None:
        self._path, self._hasher = path, hasher or usual_hasher()
        self._nobody = self._hasher.hash(secrets.token_hex(16))
        self._stamp = self._now()
        self._entries = read_entries(path)

    def __iter__(self) -> Iterator[Entry]:
        stamp = self._now()
        if stamp != self._stamp:
            try:
                self._entries = read_entries(self._path)
            except CairnError:
                self._entries = []
            self._stamp = stamp
        return iter(self._entries)

    def _now(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size

    def person(self, name: str) -> Entry | None:
        """Who has a password under a name."""
        return next((one for one in self if one.name == name and not one.is_token), None)

    def verify(self, name: str, password: str) -> Entry | None:
        """Who has this name and password; a wrong name takes as long as a wrong password."""
        from argon2.exceptions import InvalidHashError, VerificationError

        entry = self.person(name)
        try:
            self._hasher.verify(self._nobody if entry is None else entry.hash, password[: LONGEST + 1])
        except (VerificationError, InvalidHashError):
            return None
        return entry

    def program(self, token: str) -> Entry | None:
        """Whose token this is."""
        hashed = hash_token(token)
        found = None
        for one in self:
            if one.is_token and hmac.compare_digest(one.hash, hashed):
                found = one
        return found
