"""A server without a password answers the user who started it, and no other user of the machine."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from retrieval.web.access.connections import patient_protocol
from retrieval.web.access.options import AccessOptions, NetworkOptions
from retrieval.web.access.own_user import PEER_USER
from retrieval.web.access.peers import kernel_tells
from tests.retrieval.web.access.conftest import MACHINE, Visitor, make_app
from tests.support.live import listening

TOKEN = "a-token-of-cairn-open"
OTHER = 12345
"""Number of a user that this machine need not have."""

telling = pytest.mark.skipif(not kernel_tells(), reason="the kernel does not say whose a connection is")


@contextmanager
def _serving(**options: object) -> Iterator[str]:
    app = make_app(AccessOptions(own_user=True, **options))  # type: ignore[arg-type]
    with listening(app, http=patient_protocol(100, users=True), log_config=None, lifespan="off") as address:
        yield address


ASKING = """
import encodings.idna, os, socket, sys
os.setgid({user}); os.setuid({user})
for path in sys.argv[2:]:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as asking:
        asking.sendall(f"GET {{path}} HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n".encode())
        said = b""
        while part := asking.recv(65536):
            said += part
        print(said.decode().replace("\\r\\n", " "))
"""  # all that is imported is imported before: another user may not read where Python lies


@telling
def test_the_own_user_needs_nothing() -> None:
    with _serving() as address:
        assert httpx.get(f"{address}/").json() == {"user": None, "role": "write", "scheme": "http"}
        assert httpx.post(f"{address}/api/things", json={}, headers={"X-Cairn": "1"}).status_code == 200


@telling
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can ask as another user")
def test_another_user_of_this_machine_is_told_how_to_get_in() -> None:
    with _serving() as address:
        paths = ("/", "/api/things/1", "/metrics", "/api/ready")
        asked = [sys.executable, "-c", ASKING.format(user=OTHER), address.rpartition(":")[2], *paths]
        answers = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [one.split()[1] for one in answers] == ["401", "401", "401", "200"], answers
    assert all("--every-user" in one for one in answers[:3])


def _visitor(user: int | None, **options: object) -> Visitor:
    """One whose connection is of a user."""
    app = make_app(AccessOptions(own_user=True, **options))  # type: ignore[arg-type]

    async def told(scope, receive, send):  # type: ignore[no-untyped-def]
        await app({**scope, "state": {PEER_USER: user}}, receive, send)

    return Visitor(told, MACHINE)  # type: ignore[arg-type]


def test_the_token_of_the_address_becomes_a_cookie() -> None:
    visitor = _visitor(OTHER, token=TOKEN)
    refused = visitor.get("/api/things/1")
    assert refused.status_code == 401 and "token that cairn open has printed" in refused.json()["detail"]
    assert visitor.get("/?token=wrong").status_code == 401
    assert visitor.get("/?token=").status_code == 401
    sent = visitor.get(f"/?q=a+b&token={TOKEN}&c=%C3%BC")
    assert (sent.status_code, sent.headers["Location"]) == (303, "/?q=a+b&c=%C3%BC")
    cookie = sent.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie and sent.headers["Cache-Control"] == "no-store"
    assert visitor.get("/api/things/1").json() == {"user": None, "role": "write"}
    assert visitor.ask("POST", "/api/things", json={}, headers={"X-Cairn": "1"}).status_code == 200
    # Another site's page has the browser send the cookie, at most; as ever that changes nothing.
    assert visitor.ask("POST", "/api/things", json={}).status_code == 403
    bare = _visitor(OTHER, token=TOKEN).get("/", headers={"Authorization": f"Bearer {TOKEN}"})
    assert bare.status_code == 200
    assert visitor.get(f"http://photos.example//evil.example/?token={TOKEN}").headers["Location"] == "/evil.example/"


@telling
@pytest.mark.parametrize(("user", "status"), [(None, 401), (OTHER, 401), (0, 200), (os.getuid(), 200)])
def test_root_is_answered_and_who_is_not_told_apart_is_not(user: int | None, status: int) -> None:
    assert _visitor(user).get("/").status_code == status
    assert _visitor(user, token=TOKEN).get("/").status_code == status


def test_where_nothing_tells_users_apart_all_of_this_machine_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval.web.access.own_user.kernel_tells", lambda: False)
    assert _visitor(None).get("/").status_code == 200
    assert _visitor(None, token=TOKEN).get("/").status_code == 401  # as cairn open starts it
    assert Visitor(make_app(AccessOptions(own_user=True)), "203.0.113.7").get("/").status_code == 403


def test_the_commands_answer_the_own_user_unless_they_are_told_otherwise() -> None:
    assert NetworkOptions().access_options("127.0.0.1").own_user
    assert not NetworkOptions(every_user=True).access_options("127.0.0.1").own_user
    assert not AccessOptions().own_user  # programs decide themselves
