"""Of which user of this machine a connection is, by what the kernel says."""

import os
import socket
import time
from pathlib import Path

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


ROW = (
    "   0: 0100007F:C350 0100007F:1F40 {state} 00000000:00000000 00:00000000 00000000 {user:>5}        0 {inode} 1 0\n"
)


@pytest.mark.parametrize(
    ("state", "user", "inode", "found"),
    [("01", 1000, 77, 1000), ("01", 0, 0, None), ("06", 0, 0, None), ("05", 1000, 77, None), ("01", 4711, 77, None)],
)
def test_only_what_a_process_holds_counts(
    state: str, user: int, inode: int, found: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "tcp"
    table.write_text("  sl  local_address rem_address   st\n" + ROW.format(state=state, user=user, inode=inode))
    monkeypatch.setattr(peers, "_TABLES", ((4, table),))
    monkeypatch.setattr(peers, "_unmapped", lambda: 4711)
    monkeypatch.setattr(peers.sys, "byteorder", "little")
    assert connecting_user(("127.0.0.1", 50000), ("127.0.0.1", 8000)) == found
    table.write_text("damaged")
    assert connecting_user(("127.0.0.1", 50000), ("127.0.0.1", 8000)) is None
    table.unlink()
    assert connecting_user(("127.0.0.1", 50000), ("127.0.0.1", 8000)) is None
    assert connecting_user(("photos.example", 50000), ("", 8000)) is None
