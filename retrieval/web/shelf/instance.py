"""One server per home: a file in it has the server's address, so that no second one is started."""

import contextlib
import hashlib
import html
import ipaddress
import json
import os
import socket
import time
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit

from index.arrays import save_bytes
from index.errors import CairnError
from retrieval.collection.locking import CollectionLocked, lock_file
from retrieval.state.folder import state_folder
from retrieval.web.access.options import LOOPBACK

FILE = "server.json"
LOCK = "server.lock"
STARTING = 30.0
"""Seconds in which a server that has begun must answer."""
_LARGEST = 65536  # bytes of the file, and of the answer


@contextlib.contextmanager
def only_server(home: Path) -> Iterator[None]:
    """Be the only server of a home within the block; raises CollectionLocked if there is another."""
    with contextlib.ExitStack() as stack:
        with _writing(home):
            home.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock_file(home / LOCK, f"Another server of {home} has begun."))
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                (home / FILE).unlink()


def announce(home: Path, address: str, server: str) -> None:
    """Write the address of the server of a home, and how it identifies itself there; raises CairnError on failure."""
    with _writing(home):
        save_bytes(home / FILE, json.dumps({"address": address, "pid": os.getpid(), "server": server}).encode())


@contextlib.contextmanager
def _writing(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CairnError(
            f"{home} cannot be written ({error.strerror or error}): name another folder for collections."
        ) from None


def running_server(home: Path) -> str | None:
    """Return the address of the server of a home; None if that server does not answer there."""
    # The answer may be in another protocol: another program may use the address by now.
    with contextlib.suppress(OSError, HTTPException, ValueError, RecursionError, AttributeError):
        with (home / FILE).open("rb") as file:
            record = json.loads(file.read(_LARGEST))
        address, server = record.get("address"), record.get("server")
        parts = urlsplit(address)
        # Anyone may have written the file: a browser is only sent to this machine, and to a server that knows the file.
        if parts.scheme != "http" or not _is_here(parts.hostname or "") or not isinstance(server, str) or not server:
            return None
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://{parts.netloc}/api/health", timeout=3) as answer:
                is_it = json.loads(answer.read(_LARGEST)).get("server") == server
        except HTTPError as error:
            is_it = error.code in (401, 403) and _is_locked(
                home
            )  # without a password file it tells other users nothing
        if is_it:
            return f"http://{parts.netloc}/"
    return None


def keep_token(place: Path, token: str) -> None:
    """Store the token of a server for its user's next `cairn open`, readable only by that user."""
    with contextlib.suppress(CairnError, OSError):  # the printed address has it, too
        save_bytes(_token_file(place), token.encode(), mode=0o600)


def kept_token(place: Path) -> str:
    """The token of the server that was announced in a folder; "" if there is no token, or it is another user's."""
    with contextlib.suppress(CairnError, OSError, UnicodeError):
        return _token_file(place).read_text(encoding="ascii")
    return ""


def _token_file(place: Path) -> Path:
    return state_folder("open") / hashlib.sha256(os.fsencode(place.resolve())).hexdigest()[:32]


def leading_file(address: str) -> Path:
    """Write a page, readable only by this user, that sends a browser to an address; raises CairnError if that fails."""
    path = state_folder("open") / "lead.html"
    page = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={html.escape(address)}">'
    try:
        save_bytes(path, page.encode(), mode=0o600)
    except OSError as error:
        raise CairnError(f"{path} cannot be written ({error.strerror}): open {address} in your browser.") from None
    return path


def _is_here(host: str) -> bool:
    """Whether a host is this machine, given by its IP address: names may resolve to another one later."""
    if host in LOOPBACK:
        return True
    family = socket.AF_INET if ipaddress.ip_address(host).version == 4 else socket.AF_INET6
    with contextlib.suppress(OSError), socket.socket(family) as trying:
        trying.bind((host, 0))
        return True
    return False


def _is_locked(home: Path) -> bool:
    """Whether another process is the server of a home."""
    try:
        with lock_file(home / LOCK, "It runs."):
            return False
    except CollectionLocked:
        return True


def await_server(home: Path, seconds: float = STARTING) -> str:
    """Return the address of a server that another process has started; raises CairnError if it does not answer in
    time.
    """
    until = time.monotonic() + seconds
    while True:
        address = running_server(home)
        if address is not None:
            return address
        if time.monotonic() > until:
            raise CairnError(f"Another process is serving {home} and does not answer: stop it, then try again.")
        if not _is_locked(home):
            raise CairnError(f"The server of {home} has just ended: try again.")
        time.sleep(0.2)
