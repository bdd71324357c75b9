"""Close connections that are idle, slow, or do not read their answer, so that they do not block other clients.

The server behind this, uvicorn, waits for ever for the head of a request. Here a connection that no request is under
way on has some seconds for the next one to be whole, however its bytes drip in; and where too many are open, the one
that has waited longest is closed for the one that comes.
"""

import asyncio
from collections import OrderedDict
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from index.files.limits import allow_files
from retrieval.web.access.gate import is_this_machine
from retrieval.web.access.own_user import PEER_USER
from retrieval.web.access.peers import connecting_user

HEAD_SECONDS = 15.0
"""Seconds in which the head of a request must have arrived."""
SEND_SECONDS = 60.0
"""Seconds in which a client must read what is waiting for it."""
MOST = 4096
"""Most connections at a time, if the system allows that many open files."""
SPARE = 128
"""Open files that are reserved for everything else."""


def most_connections() -> int:
    """Raise the limit of open files as far as the system allows; return how many connections that is enough for."""
    allowed = allow_files(MOST + SPARE)
    return MOST if allowed is None else max(16, min(MOST, allowed - SPARE))


class _PatientConnection(H11Protocol):
    """A connection with time limits, which are class attributes: see `patient_protocol`."""

    most: int
    head_seconds: float
    send_seconds: float
    users: bool
    idle: OrderedDict[Any, None]  # connections on which no request is under way, oldest first
    _timer: asyncio.TimerHandle | None = None
    _sending: asyncio.TimerHandle | None = None  # runs while the client takes nothing

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.users and self.client and self.server and is_this_machine(self.client[0]):
            # Of the connection, and not of each request: a port may be another user's by then.
            self.app_state = {**self.app_state, PEER_USER: connecting_user(self.client, self.server)}
        if len(self.connections) > self.most:
            oldest = next(iter(self.idle), None)
            (oldest or self).transport.abort()
            if oldest is None:
                return
            self.idle.pop(oldest, None)
        self._look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        self._forget()
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_taking()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_sending()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self._forget_sending()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Start the time limit while no request is under way."""
        if self.transport.is_closing():  # what is still to be sent is waited for
            self._forget()
            self._await_taking()
        elif self.cycle is not None and not self.cycle.response_complete:
            self._forget()
        elif self._timer is None:
            self._timer = self.loop.call_later(self.head_seconds, self.transport.abort)
            self.idle[self] = None

    def _await_taking(self) -> None:
        if self._sending is None:
            self._sending = self.loop.call_later(self.send_seconds, self.transport.abort)

    def _forget_sending(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def _forget(self) -> None:
        self.idle.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def patient_protocol(
    most: int, seconds: float = HEAD_SECONDS, send_seconds: float = SEND_SECONDS, *, users: bool = False
) -> type[asyncio.Protocol]:
    """Make the class of connections of one server, for the option `http` of uvicorn: `most` at a time.

    The head of a request must arrive within `seconds`; a client must read what is waiting for it within `send_seconds`.
    With `users`, the user of each local connection is requested from the kernel: `PEER_USER` in the state of requests.
    """
    kind = {"most": most, "head_seconds": seconds, "send_seconds": send_seconds, "users": users, "idle": OrderedDict()}
    return type("Patient", (_PatientConnection,), kind)
