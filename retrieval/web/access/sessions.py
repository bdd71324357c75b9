"""Who is signed in: signed cookies, which hold only while a password does."""

import contextlib
import hashlib
import hmac
import json
import secrets
import time
from pathlib import Path
from typing import Any

from itsdangerous import BadData, URLSafeTimedSerializer

from index.arrays import save_bytes
from retrieval.web.access.passwords import Accounts, Entry

FORM_SECONDS = 3600
"""After which a login page that was opened has to be opened again."""


class Sessions:
    """Begins, checks and ends sessions.

    Parameters
    ----------
    accounts : Accounts
        Who has a password.
    seconds : int
        After which a session ends.
    path : Path, optional
        File with the key that signs cookies, and with the sessions that were ended before their time. It is made where
        it is not there, for its owner alone. Where it can be neither read nor made, or without one, the key lasts as
        long as the process.
    """

    def __init__(self, accounts: Accounts, seconds: int, path: Path | None = None) -> None:
        self._accounts, self._seconds, self._path = accounts, seconds, path
        self._key, self._ended = _read(path)
        self._save()
        self._sessions = self._signer("session")
        self._forms = self._signer("form")
        # A name of its own: cookies are sent to all servers of a host, whatever their ports.
        mark = hashlib.sha256(self._key.encode()).hexdigest()[:8]
        self.cookie, self.form_cookie = f"cairn-{mark}", f"cairn-form-{mark}"

    def _signer(self, purpose: str) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._key, salt=purpose, signer_kwargs={"digest_method": hashlib.sha256})

    def begin(self, entry: Entry) -> str:
        """Begin a session; give the cookie's value, which nobody has had before."""
        return str(self._sessions.dumps([secrets.token_urlsafe(16), entry.name, _mark(entry)]))

    def check(self, value: str) -> Entry | None:
        """Whose session a cookie's value is; None where it is nobody's, or no longer."""
        with contextlib.suppress(BadData, ValueError, TypeError):
            number, name, mark = self._sessions.loads(value, max_age=self._seconds)
            entry = self._accounts.person(name)
            if entry is not None and number not in self._ended and hmac.compare_digest(_mark(entry), mark):
                return entry
        return None

    def end(self, value: str) -> None:
        """End a session: its cookie is taken no more, also after a restart."""
        if self.check(value) is None:
            return
        number, *_ = self._sessions.loads(value, max_age=self._seconds)
        self._ended[number] = time.time() + self._seconds
        self._save()

    def form(self, nonce: str) -> str:
        """What a form holds beside a cookie with `nonce`: another site knows neither."""
        return str(self._forms.dumps(nonce))

    def is_form(self, nonce: str, value: str) -> bool:
        """Whether a form was made for the browser that has the cookie."""
        with contextlib.suppress(BadData):
            signed = self._forms.loads(value, max_age=FORM_SECONDS)
            return bool(nonce) and isinstance(signed, str) and hmac.compare_digest(signed.encode(), nonce.encode())
        return False

    def _save(self) -> None:
        if self._path is None:
            return
        self._ended = {number: until for number, until in self._ended.items() if until > time.time()}
        text = json.dumps({"key": self._key, "ended": self._ended})
        with contextlib.suppress(OSError):  # a folder that may not be written
            save_bytes(self._path, text.encode(), mode=0o600)


def _read(path: Path | None) -> tuple[str, dict[str, float]]:
    """The key and the sessions that were ended; a new key where there is none."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        if path is not None:
            kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            key, ended = kept["key"], {str(number): float(until) for number, until in kept["ended"].items()}
            if isinstance(key, str) and len(key) >= 64:
                return key, ended
    return secrets.token_hex(32), {}


def _mark(entry: Entry) -> str:
    """Changes with the password."""
    return hashlib.sha256(entry.hash.encode()).hexdigest()[:32]
