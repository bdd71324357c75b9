"""Sessions: one list next to the password file, for all servers that share it.

A session is listed by the SHA-256 of its cookie, so that the list opens nothing. Only listed sessions are valid: one
that was ended stays ended for every server, and after a restart.
"""

import contextlib
import hashlib
import hmac
import json
import logging
import os
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from itsdangerous import BadData, URLSafeTimedSerializer

from index.errors import CairnError
from retrieval.collection.locking import await_lock
from retrieval.state.tokens import stamp_of, write_private
from retrieval.web.access.options import AccessOptions
from retrieval.web.access.passwords import Accounts, PasswordEntry

FORM_SECONDS = 3600
"""Seconds after which an open login page has to be loaded again."""
VIEWER_SECONDS = 3600
"""Seconds after which a viewer needs a new token."""
USED_SECONDS = 600
"""Seconds between two records of the last use of a session or a token."""
LOCK_SECONDS = 2.0
"""Seconds to wait for another server."""
MOST = 50
"""Most sessions of one name; another one ends the oldest."""

log = logging.getLogger("cairn.access")


@dataclass(frozen=True)
class Session:
    """A session: one user on one device."""

    name: str  # who
    mark: str  # changes with the password
    browser: str  # "" if it is not known
    system: str
    address: str  # of the last use
    begun: float  # seconds since 1970
    used: float


@dataclass
class _SessionFile:
    """What the file holds."""

    key: str = field(default_factory=lambda: secrets.token_hex(32))  # signs forms
    sessions: dict[str, Session] = field(default_factory=dict)  # by the SHA-256 of their cookies
    tokens: dict[str, float] = field(default_factory=dict)  # when the token of a name was used last


def sessions_file(password_file: Path) -> Path:
    """The file of sessions next to a password file."""
    return password_file.with_name(password_file.name + ".key")


class Sessions:
    """Begins, checks, lists and ends sessions, which last some seconds.

    `path` is the file of the sessions, and of the key that signs forms, created for its owner alone. Changes are made
    under a lock to its current content, and a changed file is read again. Without a file, or if it cannot be written,
    sessions last as long as the process. Raises CairnError if others may read it; later, such a file holds no session.
    """

    def __init__(
        self, accounts: Accounts, path: Path | None = None, seconds: int = AccessOptions.session_seconds
    ) -> None:
        self._accounts, self._path, self._seconds = accounts, path, seconds
        self._changing = threading.Lock()
        self._kept, self._stamp = _SessionFile(), None if path is None else stamp_of(path)
        if path is not None and self._stamp is not None:
            _refuse_open(path)
            self._kept = _read(path)
        if self._stamp is None:
            self._change(lambda kept: None)

    @property
    def cookie(self) -> str:
        """Name of the cookie, which differs between ports: a browser sends cookies to all servers of a host."""
        return f"cairn-{self._of_key()}"

    @property
    def form_cookie(self) -> str:
        """Name of the cookie that goes with a form."""
        return f"cairn-form-{self._of_key()}"

    def begin(self, entry: PasswordEntry, device: tuple[str, str] = ("", ""), address: str = "") -> str:
        """Begin a session; return the cookie's value, which is never used again."""
        value, now = secrets.token_urlsafe(32), time.time()
        session = Session(entry.name, _mark(entry), *device, address, now, now)

        def add(kept: _SessionFile) -> None:
            kept.sessions[session_id(value)] = session
            for old, _ in [one for one in kept.sessions.items() if one[1].name == entry.name][:-MOST]:
                del kept.sessions[old]

        self._change(add)
        return value

    def check(self, value: str, address: str = "") -> PasswordEntry | None:
        """The user of a cookie's session; None if it does not exist or has ended. Counts as a use."""
        number = session_id(value)
        session = self._now().sessions.get(number)
        entry = None if session is None else self._entry(session)
        if entry is not None and session is not None and abs(time.time() - session.used) > USED_SECONDS:
            used = replace(session, used=time.time(), address=address or session.address)

            def note(kept: _SessionFile) -> None:
                if number in kept.sessions:  # not ended meanwhile
                    kept.sessions[number] = used

            self._change(note)
        return entry

    def listed(self, name: str) -> list[tuple[str, Session]]:
        """Sessions of a name, the last used first, each after what it is listed by."""
        sessions = [
            (number, one) for number, one in self._now().sessions.items() if one.name == name and self._entry(one)
        ]
        return sorted(sessions, key=lambda one: -one[1].used)

    def end(self, value: str) -> None:
        """End the session of a cookie's value."""
        self._end([session_id(value)])

    def end_listed(self, name: str, number: str | None = None) -> int:
        """End one session of a name by its identifier, or all of them; return how many there were."""
        ending = [one for one, _ in self.listed(name) if number in (None, one)]
        self._end(ending)
        return len(ending)

    def use_token(self, entry: PasswordEntry) -> None:
        """Record the use of a token, from time to time."""
        if time.time() - self._now().tokens.get(entry.name, 0.0) > USED_SECONDS:
            self._change(lambda kept: kept.tokens.update({entry.name: time.time()}))

    def token_used(self, entry: PasswordEntry) -> float | None:
        """When a token was used last, seconds since 1970; None if that is not known."""
        return self._now().tokens.get(entry.name)

    def form(self, nonce: str) -> str:
        """Token of a form, to go with a cookie with `nonce`: another site knows neither."""
        return str(self._signer().dumps(nonce))

    def is_form(self, nonce: str, value: str) -> bool:
        """Whether a form was made for the browser that has the cookie."""
        with contextlib.suppress(BadData):
            signed = self._signer().loads(value, max_age=FORM_SECONDS)
            return bool(nonce) and isinstance(signed, str) and hmac.compare_digest(signed.encode(), nonce.encode())
        return False

    def viewer_token(self, value: str) -> str:
        """Token by which a viewer asks what the session of a cookie may see, for as long as that holds."""
        return str(self._signer("viewer").dumps(session_id(value)))

    def of_viewer(self, token: str) -> PasswordEntry | None:
        """The user of a viewer's token; None if its session does not exist or has ended."""
        with contextlib.suppress(BadData):
            session = self._now().sessions.get(str(self._signer("viewer").loads(token, max_age=VIEWER_SECONDS)))
            return None if session is None else self._entry(session)
        return None

    def _entry(self, session: Session) -> PasswordEntry | None:
        """The user of a session while it is valid."""
        entry = self._accounts.person(session.name)
        if entry is None or not hmac.compare_digest(_mark(entry), session.mark):
            return None
        return entry if time.time() - session.begun < self._seconds else None

    def _end(self, numbers: list[str]) -> None:
        if any(one in self._now().sessions for one in numbers):
            self._change(lambda kept: [kept.sessions.pop(one, None) for one in numbers])

    def _signer(self, salt: str = "form") -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._now().key, salt=salt, signer_kwargs={"digest_method": hashlib.sha256})

    def _of_key(self) -> str:
        return hashlib.sha256(self._now().key.encode()).hexdigest()[:8]

    def _now(self) -> _SessionFile:
        """Contents of the file, read again if it has changed; without a file, what is in memory."""
        if self._path is not None and (stamp := stamp_of(self._path)) != self._stamp:
            self._stamp = stamp
            try:
                _refuse_open(self._path)
                self._kept = _read(self._path)
            except CairnError as error:
                log.error("All sessions are ended: %s", error)
                self._kept = _SessionFile()
        return self._kept

    def _change(self, do: Callable[[_SessionFile], object]) -> None:
        """Change the current list under a lock."""
        with self._changing, self._locked():
            before = self._now()
            updated = _SessionFile(before.key, dict(before.sessions), dict(before.tokens))
            do(updated)
            updated.sessions = {number: one for number, one in updated.sessions.items() if self._entry(one)}
            self._kept = updated
            if self._path is None:
                return
            held = {number: asdict(one) for number, one in updated.sessions.items()}
            text = json.dumps({"key": updated.key, "sessions": held, "tokens": updated.tokens})
            try:
                write_private(self._path, text.encode())
                self._stamp = stamp_of(self._path)
            except OSError as error:  # such as a folder that may not be written
                log.warning("The list of sessions %s cannot be written (%s): it is kept in memory.", self._path, error)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other servers from changing the list, without waiting too long for one that holds it."""
        with contextlib.ExitStack() as stack:
            if self._path is not None:
                lock = self._path.with_name(f"{self._path.name}.lock")
                with contextlib.suppress(OSError, CairnError):
                    os.close(os.open(lock, os.O_RDWR | os.O_CREAT, 0o600))  # no other user may hold it
                    stack.enter_context(await_lock(lock, LOCK_SECONDS, "Another server changes the list of sessions."))
            yield


def _refuse_open(path: Path) -> None:
    """Refuse a file that others may read or write; CairnError."""
    with contextlib.suppress(FileNotFoundError):
        if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise CairnError("Other users can read {path}: remove it, and everybody has to sign in again.", path=path)


def _read(path: Path) -> _SessionFile:
    """Contents of a file; empty, with a new key, if it is missing or malformed."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        sessions = {str(number): _session(one) for number, one in record.get("sessions", {}).items()}
        tokens = {str(name): float(used) for name, used in record.get("tokens", {}).items()}
        if isinstance(record["key"], str) and len(record["key"]) >= 64:
            return _SessionFile(record["key"], sessions, tokens)
    return _SessionFile()


def _session(record: dict[str, Any]) -> Session:
    name, mark, browser, system, address = (
        str(record[one]) for one in ("name", "mark", "browser", "system", "address")
    )
    return Session(name, mark, browser, system, address, float(record["begun"]), float(record["used"]))


def session_id(value: str) -> str:
    """Key of a session in the list: the SHA-256 of its cookie's value."""
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()


def _mark(entry: PasswordEntry) -> str:
    """Changes with the password."""
    return hashlib.sha256(entry.hash.encode()).hexdigest()[:32]
