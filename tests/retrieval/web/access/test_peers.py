"""Of which user of this machine a connection is, by what the kernel says."""

import os
import socket
import time

import pytest

from retrieval.web.access import peers
from retrieval.web.access.peers import connecting_user, kernel_tells

pytestmark = pytest.mark.skipif(not kernel_tells(), reason="the kernel does not say whose a connection is")


@pytest.mark.parametrize(
    ("listens", "connects"),
    [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::", "127.0.0.1"), ("::", "::ffff:127.0.0.1"), ("::", "::1")],
)
def test_a_connection_is_of_the_user_whose_process_holds_it(listens: str, connects: str) -> None:
    family = socket.AF_INET6 if ":" in listens else socket.AF_INET
    try:
        listening = socket.create_server((listens, 0), family=family, dualstack_ipv6=listens == "::")
    except OSError:
        pytest.skip("there is no IPv6")
    with listening, socket.create_connection((connects, listening.getsockname()[1])) as client:
        server, address = listening.accept()
        with server:
            ends = address[:2], server.getsockname()[:2]
            assert connecting_user(*ends) == os.geteuid()
            assert connecting_user((ends[0][0], 1), ends[1]) is None
            # Who asks and closes at once is nobody: the kernel would call what is left of that connection root's.
            client.close()
            assert connecting_user(*ends) is None


def test_a_connection_that_is_half_closed_is_nobodys() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as client,
    ):
        server, address = listening.accept()
        with server:
            client.shutdown(socket.SHUT_WR)
            time.sleep(0.05)
            assert connecting_user(address, server.getsockname()) is None


@pytest.mark.parametrize(
    ("state", "user", "inode", "found"),
    [
        (1, 1000, 77, 1000),
        (1, 0, 0, None),
        (6, 0, 0, None),
        (5, 1000, 77, None),
        (10, 1000, 77, None),
        (1, 4711, 77, None),
    ],
)
def test_only_what_a_process_holds_counts(
    state: int, user: int, inode: int, found: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = peers._TOLD.pack(2, state, 0, 0, b"", 0, 0, 0, user, inode)
    monkeypatch.setattr(peers, "_ask", lambda question: answer)
    monkeypatch.setattr(peers, "_unmapped", lambda: 4711)
    client, server = ("127.0.0.1", 50000), ("127.0.0.1", 8000)
    assert connecting_user(client, server) == found
    monkeypatch.setattr(peers, "_ask", lambda question: answer[:-1])
    assert connecting_user(client, server) is None
    for wrong in (("photos.example", 50000), ("", 50000), ("::1", 70000), ("127.0.0.1", None)):
        assert connecting_user(wrong, server) is None
