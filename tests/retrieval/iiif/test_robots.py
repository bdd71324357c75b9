"""What hosts ask of programs: rules as RFC 9309 has them, read once, and kept to."""

import re
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from retrieval.iiif import fetching
from retrieval.iiif.addresses import FetchError, RefusedError
from retrieval.iiif.fetching import Fetcher, FetchPolicy, GoneError
from retrieval.iiif.robots import RobotRules, read_rules
from tests.retrieval.iiif.test_downloads import _fetch
from tests.support.iiif_server import IiifServer, Reply


def _fetcher(**policy: Any) -> Fetcher:
    return Fetcher(FetchPolicy(**{"allowed_hosts": ("127.0.0.1",), "sleep": lambda seconds: None, **policy}))


@pytest.mark.parametrize(
    ("text", "allowed", "refused"),
    (
        # RFC 9309, section 5.1, with this program in the place of each of its agents
        ("User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/", "/publications/a /a.gif?b", ""),
        ("User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/", "/", "/a.gif /example/"),
        (
            "User-Agent: *\nDisallow: /publications/\n\nUser-Agent: cairn\nDisallow:/\nAllow:/example/page.html\n",
            "/example/page.html",
            "/ /publications/ /example/",
        ),
        ("User-Agent: Cairn/2\nUser-Agent: bazbot\nDisallow: /example/page.html", "/ /example/", "/example/page.html"),
        ("User-Agent: *\nDisallow: /\n\nUser-Agent: cairn\n", "/ /example", ""),
        # 5.2, and 2.2.2 and 2.2.3
        ("User-Agent: cairn\nAllow: /a/page/\nDisallow: /a/page/no.gif", "/a/page/", "/a/page/no.gif"),
        ("User-Agent: cairn\nDisallow: /same\nAllow: /same", "/same", ""),
        ("User-agent: *\nDisallow: /foo/bar/ツ", "/foo/bar/", "/foo/bar/%E3%83%84 /foo/bar/%e3%83%84"),
        ("User-agent: *\nDisallow: /foo/bar/%62%61%7A", "/foo/bar/%2562", "/foo/bar/baz"),
        ("User-agent: *\nDisallow: /foo%2Fbar # no\n", "/foo/bar", "/foo%2fbar"),
        ("user-agent: *\ndisallow:\nallow /\n\0\nDisallow: /a", "/", "/a"),
        # groups of one agent are one; a group of another has no say
        ("User-agent: cairn\nDisallow: /a\nUser-agent: x\nDisallow: /\nUser-agent: CAIRN\nDisallow: /b", "/", "/a /b"),
        ("Disallow: /\nUser-agent: cairnbot\nDisallow: /", "/", ""),
    ),
)
def test_rules_are_read_as_the_standard_says(text: str, allowed: str, refused: str) -> None:
    rules = read_rules(text)
    assert [path for path in allowed.split() if not rules.allows(path)] == []
    assert [path for path in refused.split() if rules.allows(path)] == []


@given(st.text("ab*", max_size=8), st.booleans(), st.text("ab", max_size=8))
def test_patterns_match_as_regular_expressions_do(pattern: str, is_whole: bool, path: str) -> None:
    expression = "/" + ".*".join(map(re.escape, pattern.split("*"))) + ("$" if is_whole else "")
    rules = RobotRules(((f"/{pattern}{'$' * is_whole}", False),))
    assert rules.allows(f"/{path}") == (re.match(expression, f"/{path}") is None)


def test_a_long_pattern_takes_no_time() -> None:
    pattern = "/" + "*a" * 200_000
    assert read_rules(f"User-agent: *\nDisallow: {pattern}$").allows("/" + "a" * 4000)


def test_what_a_host_forbids_is_told_and_not_asked(server: IiifServer, tmp_path: Path) -> None:
    server.files["/robots.txt"] = Reply(b"User-agent: *\nDisallow: /image/p1/\n")
    server.pictures |= {f"p{number}": Image.new("RGB", (80, 100)) for number in range(3)}
    address = server.add_json("/m", server.manifest("/m", {"p0": "1r", "p1": "1v", "p2": "2r"}))
    (reported,) = _fetch(tmp_path, address)
    reason = (
        "the robots.txt of 127.0.0.1 forbids programs to fetch /image/p1/info.json: if you have the "
        "library's permission, ignore_robots 127.0.0.1 fetches it anyway"
    )
    assert (reported.fetched, [(one["page"], str(one["reason"])) for one in reported.failed]) == (2, [("1v", reason)])
    assert server.count("/image/p1") == 0 and server.robots == 1
    server.files["/robots.txt"] = Reply(b"User-agent: cairn\nDisallow: /m\n")
    server.requested.clear()
    (reported,) = _fetch(tmp_path, address)
    assert "forbids programs to fetch /m:" in str(reported.reason) and not server.requested


def test_a_host_that_the_user_names_is_asked_for_what_it_forbids(
    server: IiifServer, tmp_path: Path, cairn: Callable[..., Any]
) -> None:
    server.files["/robots.txt"] = Reply(b"User-agent: *\nDisallow: /image/\n")
    server.pictures["p0"] = Image.new("RGB", (80, 100))
    address = server.add_json("/m", server.manifest("/m", {"p0": "1r"}))
    reported = ["index", tmp_path / "c", address, "--allow-host", "127.0.0.1", "--ignore-robots", "example.org"]
    ran = cairn(*reported)
    assert server.count("/image") == 0 and server.robots == 1
    assert "if you have the library's permission, --ignore-robots 127.0.0.1 fetches it anyway" in ran.out + ran.err
    cairn(*reported, "--ignore-robots", "127.0.0.1")
    assert server.count("/image") == 2 and server.robots == 1


def test_redirects_keep_to_the_rules_too(server: IiifServer) -> None:
    server.files["/robots.txt"] = Reply(b"User-agent: *\nDisallow: /b\n")
    server.files["/a"] = Reply(status=302, headers={"Location": "/b"})
    with _fetcher() as fetcher, pytest.raises(RefusedError, match="forbids programs to fetch /b:"):
        fetcher.fetch(f"{server.address}/a", 100)
    assert server.requested == ["/a"]


@pytest.mark.parametrize(
    ("reply", "sentence"),
    (
        (Reply(status=404), ""),
        (Reply(status=403), ""),
        (Reply(b"\xff\xfe\0<html>", headers={"Content-Type": "text/html"}), ""),
        (Reply(status=302, headers={"Location": "/elsewhere"}), ""),
        (Reply(status=503), "is not asked, as its robots.txt cannot be had: .* does not answer now"),
        (Reply(status=501), "is not asked, as its robots.txt cannot be had: .* is not given out"),
        (Reply(b"User-agent", cut=3), "is not asked, as its robots.txt cannot be had: the connection to"),
        (
            Reply(headers={"Content-Length": "9" * 20}),
            "not asked, as its robots.txt cannot be had: .* more than 1 MB",
        ),
        (Reply(b"User-agent: *\nCrawl-delay: 86400"), "asks programs to wait 86,400 s between requests"),
        (Reply(status=302, headers={"Location": "http://10.0.0.1/"}), "no address on the public Internet"),
    ),
)
def test_a_host_without_rules_is_asked_and_one_that_does_not_tell_them_is_not(
    server: IiifServer, reply: Reply, sentence: str
) -> None:
    server.files |= {"/robots.txt": reply, "/a": Reply(b"here"), "/elsewhere": Reply(b"Disallow: /")}
    with _fetcher(attempts=2) as fetcher:
        for _ in range(2):
            if sentence:
                with pytest.raises(FetchError, match=sentence):
                    fetcher.fetch(f"{server.address}/a", 100)
            else:
                assert fetcher.fetch(f"{server.address}/a", 100).content == b"here"
    assert server.count("/a") == (0 if sentence else 2)


def test_requests_are_as_far_apart_as_a_host_asks(server: IiifServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.files["/robots.txt"] = Reply(b"User-agent: *\nCrawl-delay: 2.5\nDisallow:")
    server.first["/a"] = [Reply(b"here"), Reply(status=429, headers={"Retry-After": "7"})]
    clock, wanted = [1000.0], []
    monkeypatch.setattr(fetching, "monotonic", lambda: clock[0])

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    with _fetcher(sleep=sleep) as fetcher:
        request = fetcher._request
        monkeypatch.setattr(fetcher, "_request", lambda *given: (wanted.append(clock[0]), request(*given))[1])
        for path in "aabc":
            with suppress(GoneError):
                fetcher.fetch(f"{server.address}/{path}", 100)
    assert [later - first for first, later in pairwise(wanted)] == [0, 2.5, 7, 2.5, 2.5]
