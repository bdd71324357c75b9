"""A log of what people changed: one line of JSON for each write, sign-in and sign-out, and never a secret."""

import contextlib
import json
import logging
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from index.errors import CairnError
from index.text import printable_name
from retrieval.web.access.gate import SAFE
from retrieval.web.access.rights import WRITE, caller_of

log = logging.getLogger("cairn.access")

BODY_BYTES = 65536
"""Largest request body, in bytes, that is inspected; for a larger one only its address is logged."""
MOST = 100
"""Most photo numbers in one line."""
KINDS = ("kind", "source")
"""Fields whose values are words of the server, not of a visitor."""


class AuditFile:
    """The log file, readable only by its owner; each line is appended and written at once.

    If it is missing, or was moved away, as logrotate does, it is made again.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, -1
        try:
            self._reopen()
        except OSError as error:
            raise CairnError(
                "The audit log {path} cannot be written ({strerror}): name another file.",
                path=path,
                strerror=error.strerror,
            ) from None

    def write(self, fields: dict[str, Any]) -> None:
        """Add a line; if that fails, the error goes to the server's own log, and the change itself stays."""
        line = json.dumps(fields, ensure_ascii=True) + "\n"
        try:
            self._reopen()
            data = line.encode()
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            log.error("The audit log %s cannot be written (%s), so this is not in it: %s", self._path, error, line[:-1])

    def _reopen(self) -> None:
        """Open the file that is at the path now."""
        if self._file >= 0:
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._file), os.stat(self._path)):  # noqa: PTH116
                    return
            os.close(self._file)
            self._file = -1
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        self._file = os.open(self._path, flags, 0o600)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class Audit:
    """Middleware that logs changes and who made them."""

    def __init__(self, app: ASGIApp, file: AuditFile) -> None:
        self._app, self._file = app, file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; its line is written before its answer is sent."""
        if scope["type"] != "http" or scope["method"] in SAFE:
            await self._app(scope, receive, send)
            return
        written: dict[str, Any] = {}
        scope[WRITE] = written
        body = bytearray()
        is_written = False

        async def listening() -> Message:
            message = await receive()
            if len(body) <= BODY_BYTES:
                body.extend(message.get("body", b"")[: BODY_BYTES + 1])
            return message

        def tell(status: int) -> None:
            nonlocal is_written
            if written and not is_written:
                is_written = True
                self._file.write(_fields(scope, written, bytes(body), status))

        async def telling(message: Message) -> None:
            if message["type"] == "http.response.start":
                tell(message["status"])
            await send(message)

        try:
            await self._app(scope, listening, telling)
        finally:
            tell(500)


def _fields(scope: Scope, written: dict[str, Any], body: bytes, status: int) -> dict[str, Any]:
    """One line: user, address, request and result."""
    caller = caller_of(scope)
    what = {name: value for name, value in written.items() if name not in ("root", "route", "event", "user", "ids")}
    what |= {name: _plain(value) for name, value in written.get("ids", {}).items()}
    if written.get("event") is None:
        what |= _safe_values(body)
    return {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "event": written.get("event", "write"),
        "user": written.get("user", caller.name),
        "role": caller.role,
        "address": printable_name((scope.get("client") or ("",))[0]),
        "method": printable_name(scope["method"]),
        "route": printable_name(str(written.get("root", "")) + str(written.get("route", ""))),
        "what": what,
        "status": status,
    }


def _safe_values(body: bytes) -> dict[str, Any]:
    """The numbers and kinds in a request's JSON, without free text."""
    if len(body) > BODY_BYTES:
        return {}
    try:
        body_json = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    record: dict[str, Any] = {}
    for name, value in body_json.items() if isinstance(body_json, dict) else ():
        if not name.isidentifier() or len(name) > 40:
            continue
        if isinstance(value, int):
            record[name] = value
        elif isinstance(value, list) and value and all(type(one) is int for one in value):
            record[name] = value[:MOST]
            if len(value) > MOST:
                record[f"{name}_in_all"] = len(value)
        elif name in KINDS and isinstance(value, str):
            record[name] = printable_name(value[:40])
    return record


def _plain(value: Any) -> Any:
    return value if isinstance(value, int) else printable_name(str(value)[:255])
