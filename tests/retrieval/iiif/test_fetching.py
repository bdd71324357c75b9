"""What may be asked of other hosts, and what may not."""

import gzip
import re
import socket
import ssl
import threading
import time
from contextlib import suppress
from typing import Any

import pytest

from retrieval.iiif import connections, fetching
from retrieval.iiif.addresses import FetchError, RefusedError, is_public, parse_address
from retrieval.iiif.fetching import Fetcher, FetchPolicy, GoneError
from tests.support.iiif_server import IiifServer, Reply
from tests.support.paths import ROOT

HERE = ("127.0.0.1",)


def _fetcher(waits: list[float] | None = None, **policy: Any) -> Fetcher:
    taken = [] if waits is None else waits
    return Fetcher(FetchPolicy(**{"allowed_hosts": HERE, "sleep": taken.append, **policy}))


@pytest.mark.parametrize(
    "address",
    (
        *(
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
        ),
        *("240.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0", "fc00::1", "ff02::1", "2001:db8::1"),
        *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::", "64:ff9b:1::1"),
    ),
)
def test_addresses_that_are_not_public_are_known(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ("8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"))
def test_public_addresses_are_known(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    (
        *(
            "file:///etc/passwd",
            "ftp://example.org/1",
            "gopher://example.org",
            "//example.org/1",
            "",
            "http://",
            "1.jpg",
        ),
        *("http://user:secret@example.org/", "http://@example.org/", "http://a b/", "http://exa\nmple org/"),
        *("http://example.org:0/", "http://example.org:99999/", "http://[::1", "http://a%00b/"),
        *("http://-/", "http://" + "a" * 5000, "https://example.org\\@127.0.0.1/"),
    ),
)
def test_what_is_no_address_to_fetch_from_is_refused(address: str) -> None:
    with pytest.raises(RefusedError):
        parse_address(address)


def test_addresses_are_written_as_requests_have_them() -> None:
    assert parse_address("HTTPS://Bücher.example/a b/ü?q=ä#part").text == (
        "https://xn--bcher-kva.example/a%20b/%C3%BC?q=%C3%A4"
    )
    assert parse_address("http://[::1]:8080").text == "http://[::1]:8080/"
    assert parse_address("http://example.org/a%20b\r\nHost: x").target == "/a%20bHost:%20x"


@pytest.mark.parametrize("host", ("localhost", "127.0.0.1", "127.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"))
def test_addresses_that_are_not_public_are_not_asked(server: IiifServer, host: str) -> None:
    port = server.address.rpartition(":")[2]
    with _fetcher(allowed_hosts=("example.org",), attempts=1) as fetcher, pytest.raises(FetchError, match=r"."):
        fetcher.fetch(f"http://{host}:{port}/", 100)
    assert not server.requested


def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [["8.8.8.8", "127.0.0.1"], ["127.0.0.1"]]  # the name is led here after the first look
    reached: list[tuple[str, int]] = []

    def looked_up(host: str, port: int, **how: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in answers.pop(0)]

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        reached.append(address)
        return socket.socket()

    named: list[str] = []

    def wrap(context: ssl.SSLContext, sock: socket.socket, server_hostname: str, **how: Any) -> None:
        named.append(server_hostname)
        raise OSError("enough")

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    monkeypatch.setattr(socket, "create_connection", connect)
    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", wrap)
    with _fetcher(attempts=1) as fetcher, pytest.raises(FetchError, match="enough"):
        fetcher.fetch("https://rebound.example/1", 100)
    assert reached == [("8.8.8.8", 443)] and named == ["rebound.example"] and len(answers) == 1
    with _fetcher(attempts=1) as fetcher, pytest.raises(RefusedError, match="no address on the public Internet"):
        fetcher.fetch("https://rebound.example/1", 100)
    assert connections._tls().check_hostname and connections._tls().verify_mode == ssl.CERT_REQUIRED


@pytest.mark.parametrize("there", ("http://localhost:1/", "file:///etc/passwd", "http://10.0.0.1/", "//[::1]:1/x"))
def test_redirects_are_checked_again(server: IiifServer, there: str) -> None:
    server.files["/a"] = Reply(status=302, headers={"Location": there})
    with _fetcher() as fetcher, pytest.raises(RefusedError):
        fetcher.fetch(f"{server.address}/a", 100)


def test_redirects_end(server: IiifServer) -> None:
    for number in range(7):
        server.files[f"/{number}"] = Reply(status=301, headers={"Location": f"{number + 1}"})
    server.files["/7"] = Reply(b"here")
    with _fetcher() as fetcher:
        assert fetcher.fetch(f"{server.address}/2", 100).content == b"here"
        with pytest.raises(RefusedError, match="without end"):
            fetcher.fetch(f"{server.address}/1", 100)


def test_answers_are_bounded_before_and_after_they_are_unpacked(server: IiifServer) -> None:
    server.files["/long"] = Reply(b"x" * 3000)
    server.files["/claims"] = Reply(headers={"Content-Length": "9" * 30})
    server.files["/packed"] = Reply(gzip.compress(b"x" * 1_000_000), headers={"Content-Encoding": "gzip"})
    server.files["/cut"] = Reply(gzip.compress(bytes(range(200)))[:-30], headers={"Content-Encoding": "gzip"})
    server.files["/odd"] = Reply(b"x", headers={"Content-Encoding": "br"})
    with _fetcher(attempts=1) as fetcher:
        assert fetcher.fetch(f"{server.address}/packed", 1_000_000).content == b"x" * 1_000_000
        for path, most in (("long", 2999), ("claims", 100), ("packed", 999_999), ("cut", 1000), ("odd", 100)):
            with pytest.raises(FetchError):
                fetcher.fetch(f"{server.address}/{path}", most)


def test_a_slow_answer_is_cut(server: IiifServer) -> None:
    server.files["/slow"] = Reply(b"x", headers={"Content-Length": "100"})
    with _fetcher(seconds=0.2) as fetcher, pytest.raises(FetchError, match="took more than"):
        fetcher.fetch(f"{server.address}/slow", 100)
    assert len(server.requested) <= 1  # it is not asked again


def test_a_busy_host_is_left_alone_for_as_long_as_it_asks_for(
    server: IiifServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "monotonic", lambda: 1000.0)
    server.files["/a"] = Reply(b"here")
    server.first["/a"] = [Reply(status=429, headers={"Retry-After": "7"}), Reply(status=503), Reply(b"here", cut=1)]
    waits: list[float] = []
    with _fetcher(waits) as fetcher:
        assert fetcher.fetch(f"{server.address}/a", 100).content == b"here"
        assert waits == [7, 2, 4]
        server.first["/a"] = [Reply(status=429, headers={"Retry-After": "86400"})]
        with pytest.raises(FetchError, match=r"86400 s: run the same command again later"):
            fetcher.fetch(f"{server.address}/a", 100)
        server.first["/a"] = [Reply(status=500)] * 9
        with pytest.raises(FetchError, match="status 500"):
            fetcher.fetch(f"{server.address}/a", 100)
        assert len(server.first["/a"]) == 5  # four attempts
    assert len(waits) == 6


def test_a_host_that_fails_again_and_again_is_asked_no_more(server: IiifServer) -> None:
    server.files["/a"], server.files["/b"] = Reply(status=503), Reply(b"here")
    with _fetcher(attempts=1, failures=3) as fetcher:
        for path in ("a", "b", "a", "a", "a", "b"):
            with suppress(FetchError):
                fetcher.fetch(f"{server.address}/{path}", 100)
        assert server.requested == ["/a", "/b", "/a", "/a", "/a"]
        with pytest.raises(FetchError, match="failed 3 times in a row"):
            fetcher.fetch(f"{server.address}/b", 100)


def test_a_connection_is_kept_and_one_that_was_closed_meanwhile_is_no_failure(server: IiifServer) -> None:
    server.files["/a"] = Reply(b"here")
    waits: list[float] = []
    with _fetcher(waits) as fetcher:
        fetcher.fetch(f"{server.address}/a", 100)
        ((kept,),) = fetcher._idle.values()
        fetcher.fetch(f"{server.address}/a", 100)
        assert list(fetcher._idle.values()) == [[kept]]
        kept.sock.shutdown(socket.SHUT_WR)
        assert fetcher.fetch(f"{server.address}/a", 100).content == b"here"
        assert list(fetcher._idle.values()) != [[kept]]
    assert not waits


def test_what_is_not_given_out_is_told(server: IiifServer) -> None:
    server.files["/secret"] = Reply(status=401)
    with _fetcher() as fetcher:
        with pytest.raises(GoneError, match="status 404"):
            fetcher.fetch(f"{server.address}/gone", 100)
        with pytest.raises(FetchError, match="status 401"):
            fetcher.fetch(f"{server.address}/secret", 100)


def test_one_host_is_asked_for_two_things_at_a_time(server: IiifServer) -> None:
    held = threading.Barrier(2, timeout=60)
    plain = server.reply

    def reply(path: str, headers: Any) -> Reply:
        held.wait()  # two and no more: with a third the count below is another
        return plain(path, headers)

    server.reply = reply  # type: ignore[method-assign]
    server.files["/a"] = Reply(b"here")
    with _fetcher() as fetcher:
        threads = [threading.Thread(target=fetcher.fetch, args=(f"{server.address}/a", 9)) for _ in range(6)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert server.most_at_once == 2 and len(server.requested) == 6
    (agent,) = server.agents
    assert agent is not None and agent.startswith("Cairn/")


def test_a_fetcher_that_is_closed_ends_what_others_wait_for(server: IiifServer) -> None:
    server.files["/slow"] = Reply(b"x", headers={"Content-Length": "100"})
    fetcher = Fetcher(FetchPolicy(allowed_hosts=HERE))
    found: list[FetchError] = []

    def fetch() -> None:
        try:
            fetcher.fetch(f"{server.address}/slow", 100)
        except FetchError as error:
            found.append(error)

    thread = threading.Thread(target=fetch)
    thread.start()
    while not server.requested:
        time.sleep(0.005)
    fetcher.close()
    thread.join()
    assert len(found) == 1


@pytest.mark.parametrize("host", ("http://a", "a/b", "", "a b"))
def test_a_host_that_is_none_is_said(host: str) -> None:
    with pytest.raises(RefusedError, match="not the name of a host"):
        _fetcher(allowed_hosts=(host,))


def test_no_other_module_fetches() -> None:
    """Two modules of indexing and searching ask other hosts; `eval` gets published sets, when told to."""
    client = r"http\.client|requests|urllib3|urllib\.request|pooch|httpx|aiohttp|ftplib"
    connects = re.compile(rf"^\s*(?:import|from) (?:{client})\b|create_connection|\burlopen\b", re.MULTILINE)
    found = {
        path.relative_to(ROOT).as_posix()
        for package in ("index", "retrieval", "learning")
        for path in (ROOT / package).rglob("*.py")
        if connects.search(path.read_text(encoding="utf-8"))
    }
    here = {"retrieval/web/shelf/instance.py", "retrieval/web/access/peers.py"}  # which ask this machine alone
    assert found == {"retrieval/iiif/fetching.py", "retrieval/iiif/connections.py", *here}


def test_the_web_application_does_not_fetch() -> None:
    fetches = re.compile(r"retrieval\.(?:iiif|library\.manifests)")
    assert not [path for path in (ROOT / "retrieval" / "web").rglob("*.py") if fetches.search(path.read_text("utf-8"))]
