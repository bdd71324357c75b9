"""Slow and many connections, bodies that drip, and answers that nobody takes: nobody else is kept out."""

import asyncio
import contextlib
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from retrieval.web.access.connections import most_connections, patient_protocol
from retrieval.web.access.options import AccessOptions
from tests.retrieval.web.access.conftest import make_app
from tests.support.live import listening
from tests.support.patience import patience

BODY = (
    b"POST /api/things HTTP/1.1\r\nHost: x\r\nX-Cairn: 1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
)


@contextmanager
def _serving(app: FastAPI, most: int, seconds: float, send_seconds: float = 60) -> Iterator[tuple[str, int]]:
    protocol = patient_protocol(most, seconds, send_seconds)
    with listening(app, backlog=2048, http=protocol, log_config=None, lifespan="off") as address:
        yield "127.0.0.1", int(address.rpartition(":")[2])


def _ended(connection: socket.socket, seconds: float) -> bool:
    """Whether the server closes a connection within so many seconds, whatever it says before."""
    connection.settimeout(seconds)
    with contextlib.suppress(ConnectionError):
        try:
            while connection.recv(65536):
                pass
        except TimeoutError:
            return False
    return True


def test_a_connection_that_does_not_ask_in_time_is_closed_however_it_drips() -> None:
    limit = patience(0.4)
    with _serving(make_app(AccessOptions()), 100, limit) as where:
        silent, dripping, used = (socket.create_connection(where) for _ in range(3))
        # One that asks is answered, and then has the time anew.
        used.sendall(b"GET /api/ready HTTP/1.1\r\nHost: x\r\n\r\n")
        assert used.recv(65536).startswith(b"HTTP/1.1 200")
        begun = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - begun < 5 * limit:
                dripping.sendall(b"G")
                time.sleep(0.02)
        assert time.monotonic() - begun < 5 * limit
        assert all(_ended(one, patience(2)) for one in (silent, dripping, used))
        # A body that its request is not waited for drips no longer either.
        rude = socket.create_connection(where)
        rude.sendall(b"POST /nothing HTTP/1.1\r\nHost: x\r\nX-Cairn: 1\r\nContent-Length: 99999\r\n\r\n")
        assert rude.recv(65536).startswith(b"HTTP/1.1 404") and _ended(rude, patience(2))


def test_where_too_many_wait_the_oldest_makes_room() -> None:
    with _serving(make_app(AccessOptions()), 20, 60) as where:
        slow = [socket.create_connection(where) for _ in range(30)]
        for _ in range(5):
            assert httpx.get(f"http://127.0.0.1:{where[1]}/api/ready").status_code == 200
        assert _ended(slow[0], patience(2)) and not _ended(slow[-1], 0.05)
        for one in slow:
            one.close()


def test_a_body_that_drips_or_is_too_large_is_given_up() -> None:
    limit = patience(0.3)
    options = AccessOptions(body_seconds=limit, body_bytes=1000)
    with _serving(make_app(options), 20, limit) as where:
        with socket.create_connection(where) as one:
            one.sendall(BODY)
            one.settimeout(patience(10) + limit)
            answer = b"".join(iter(lambda: one.recv(65536), b""))
            assert answer.startswith(b"HTTP/1.1 408") and b"took too long" in answer
        base = f"http://127.0.0.1:{where[1]}"
        large = httpx.post(
            f"{base}/api/things", content=b"[" * 2000, headers={"X-Cairn": "1", "Content-Type": "application/json"}
        )
        assert (large.status_code, large.json()) == (413, {"detail": "The request is too large."})


def test_an_answer_that_nobody_takes_is_given_up() -> None:
    app = make_app(AccessOptions())
    ended = threading.Event()

    @app.get("/api/endless")
    def endless() -> Any:
        from starlette.responses import StreamingResponse

        async def parts() -> Any:
            try:
                while True:
                    yield bytes(1 << 20)
                    await asyncio.sleep(0.01)
            finally:
                ended.set()

        return StreamingResponse(parts())

    with _serving(app, 20, 5, 0.3) as where, socket.create_connection(where) as one:
        one.sendall(b"GET /api/endless HTTP/1.1\r\nHost: x\r\n\r\n")
        assert ended.wait(patience(5)) and _ended(one, patience(5))


def test_as_many_files_are_opened_as_the_system_allows() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        most = most_connections()
        assert 16 <= most < resource.getrlimit(resource.RLIMIT_NOFILE)[0] and resource.getrlimit(
            resource.RLIMIT_NOFILE
        )[0] >= min(before[1], 1024)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.slow
def test_a_thousand_slow_connections_keep_nobody_out() -> None:
    """A quarter says nothing, a quarter drips its head, a quarter its body, and a quarter takes no answer."""
    if (most := most_connections()) < 2100:
        pytest.skip("a process may not have so many files open")
    with _serving(make_app(AccessOptions(body_seconds=5)), most, 5, 5) as where:
        heads = [b"", b"GET / HT", BODY, b"GET /static/css/cairn.css HTTP/1.1\r\nHost: x\r\n\r\n" * 20]

        async def flood(stop: asyncio.Event) -> None:
            async def one(place: int) -> None:
                while not stop.is_set():
                    with contextlib.suppress(OSError):
                        _, writer = await asyncio.open_connection(*where)
                        writer.write(heads[place % 4])
                        writer.transport.pause_reading()
                        while not stop.is_set() and not writer.is_closing():
                            await asyncio.sleep(1)
                            writer.write(b"x" if place % 4 in (1, 2) else b"")
                        writer.transport.abort()
                    await asyncio.sleep(0.1)

            await asyncio.gather(*(one(place) for place in range(1000)))

        async def run() -> None:
            stop = asyncio.Event()
            attack = asyncio.create_task(flood(stop))
            await asyncio.sleep(3)
            taken = []
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{where[1]}", timeout=patience(20)) as client:
                for _ in range(100):
                    begun = time.perf_counter()
                    answer = await client.get("/api/things/1", headers={"Connection": "close"})
                    assert answer.status_code == 200
                    taken.append(time.perf_counter() - begun)
                    await asyncio.sleep(0.03)
            stop.set()
            await attack
            taken.sort()
            print(f"median {1000 * taken[50]:.0f} ms, 95% {1000 * taken[95]:.0f} ms, slowest {1000 * taken[-1]:.0f} ms")
            assert taken[95] < patience(2)

        asyncio.run(run())


CHUNKED = b"Transfer-Encoding: chunked\r\n"
REST = b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 5\r\n" + CHUNKED,
        CHUNKED + b"Content-Length: 5\r\n",
        b"content-length: 5\r\nTRANSFER-ENCODING: Chunked\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Transfer-Encoding: chunked, identity\r\nContent-Length: 5\r\n",
        b"Transfer-Encoding: x\r\nContent-Length: 5\r\n",
        b"Transfer-Encoding : chunked\r\nContent-Length: 5\r\n",
    ],
)
@pytest.mark.parametrize("method", [b"GET", b"POST"])
def test_a_request_whose_end_two_servers_may_see_at_two_places_is_refused(method: bytes, framing: bytes) -> None:
    """Request smuggling (RFC 9112, 6.1): what follows on the connection is nobody's request."""
    with _serving(make_app(AccessOptions()), 100, patience(15)) as where, socket.create_connection(where) as sender:
        head = b"%s /api/ready HTTP/1.1\r\nHost: x\r\nX-Cairn: 1\r\n%s\r\n" % (method, framing)
        sender.sendall(head + REST)
        sender.settimeout(patience(15))
        said = b""
        with contextlib.suppress(ConnectionError):
            while part := sender.recv(65536):
                said += part
    assert said.startswith(b"HTTP/1.1 400 ") and said.count(b"HTTP/1.1 ") == 1, said
