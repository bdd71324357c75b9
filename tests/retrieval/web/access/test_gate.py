"""Who is let in: addresses, tokens, names of the server, proxies, and other sites' requests."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from index.errors import CairnError
from retrieval.state.tokens import new_token
from retrieval.web.access.options import LOOPBACK, AccessOptions, NetworkOptions
from retrieval.web.access.passwords import NO_PASSWORD, PasswordEntry, change_entry
from retrieval.web.access.roles import Role
from tests.retrieval.web.access.conftest import ANNA, BEN, MACHINE, QUICK, STRANGER, Visitor, make_app

Visit = Callable[..., Visitor]


@pytest.fixture(scope="module")
def without_password() -> Any:
    return make_app(AccessOptions())


@pytest.mark.parametrize(
    "address", [STRANGER, "192.168.1.2", "10.0.0.1", "2001:db8::1", "::ffff:192.0.2.1", "", "localhost"]
)
def test_without_a_password_nobody_but_this_machine_is_answered(without_password: Any, address: str) -> None:
    visitor = Visitor(without_password, address)
    for path in ("/", "/api/things/1", "/static/js/api.js", "/metrics", "/login", "/api/ready", "/nothing"):
        refused = visitor.get(path)
        assert refused.status_code == 403 and "--password-file" in refused.json()["detail"], path
    # What a stranger says of where they are is not believed.
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
        assert visitor.get("/", headers={name: "127.0.0.1"}).status_code == 403


@pytest.mark.parametrize("address", [MACHINE, "127.8.8.8", "::1", "::ffff:127.0.0.1"])
def test_this_machine_may_do_all_without_a_password(without_password: Any, address: str) -> None:
    visitor = Visitor(without_password, address)
    assert visitor.get("/").json() == {"user": None, "role": "write", "scheme": "http"}
    assert visitor.ask("POST", "/api/things", json={}, headers={"X-Cairn": "1"}).status_code == 200
    assert visitor.get("/login").headers["Location"] == "/"
    assert visitor.get("/metrics").status_code == 200


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"])
def test_without_a_password_nobody_is_answered_through_a_proxy(without_password: Any, name: str) -> None:
    refused = Visitor(without_password, MACHINE).get("/", headers={name: STRANGER})
    assert refused.status_code == 403 and "--password-file" in refused.json()["detail"]


def test_with_a_password_a_stranger_gets_the_login_page_and_nothing_else(visit: Visit) -> None:
    for address in (STRANGER, MACHINE):
        visitor = visit(address)
        for path in (
            "/",
            "/api/things/1",
            "/api/things/x",
            "/nothing",
            "/api/nothing",
            "/login/x",
            "/static",
            "/api/ready/",
        ):
            assert visitor.get(path).status_code == 401, path
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "BREW"):
            assert visitor.ask(method, "/api/things", headers={"X-Cairn": "1"}).status_code == 401, method
        assert visitor.get("/login").status_code == visitor.get("/api/ready").status_code == 200
        assert visitor.get("/static/css/cairn.css").status_code == 200


@pytest.mark.parametrize(
    "host", ["x/static/", "x/static/y?", "photos.example:80/login#", "x/api/ready?", "", "[", "a@b"]
)
def test_what_a_request_calls_the_server_opens_nothing(visit: Visit, host: str) -> None:
    for path in ("/", "/api/things/1", "/metrics"):
        assert visit().get(path, headers={"Host": host}).status_code == 401


def test_programs_come_in_with_a_token(visit: Visit, tokens: dict[str, str]) -> None:
    visitor = visit()

    def bearing(token: str, method: str = "GET", path: str = "/") -> Any:
        return visitor.ask(method, path, json={} if method == "POST" else None, headers={"Authorization": token})

    assert bearing(f"Bearer {tokens['read']}").json()["role"] == "read"
    assert bearing(f"bearer {tokens['write']}").json()["user"] == "program-write"
    # No browser sends this header by itself, so a token needs no other.
    assert bearing(f"Bearer {tokens['write']}", "POST", "/api/things").status_code == 200
    assert bearing(f"Bearer {tokens['read']}", "POST", "/api/things").status_code == 403
    for wrong in (
        "Bearer",
        "Bearer x",
        f"Bearer {tokens['read']}x",
        tokens["read"],
        f"Basic {tokens['read']}",
        "Bearer \xff",
    ):
        assert visitor.get("/", headers={b"Authorization": wrong.encode("latin-1")}).status_code == 401
    # A wrong token beside a right session is a mistake that is said.
    visitor.sign_in(*ANNA)
    assert visitor.get("/").status_code == 200 and bearing("Bearer x").status_code == 401


def test_figures_are_for_tokens_and_for_this_machine(visit: Visit, tokens: dict[str, str]) -> None:
    assert visit().get("/metrics").status_code == 401
    anna = visit()
    anna.sign_in(*ANNA)
    assert anna.get("/metrics").status_code == 401
    assert visit().get("/metrics", headers={"Authorization": f"Bearer {tokens['read']}"}).status_code == 200
    assert visit(MACHINE).get("/metrics").status_code == 200
    # What a proxy on this machine passes on is not of this machine.
    assert visit(MACHINE).get("/metrics", headers={"X-Forwarded-For": STRANGER}).status_code == 401


OWN = [{"X-Cairn": "1"}, {"Origin": "http://photos.example"}, {"Sec-Fetch-Site": "same-origin"}]
FOREIGN: list[dict[str, str]] = [
    {},
    {"Origin": "null"},
    {"Origin": "https://evil.example"},
    {"Origin": "https://photos.example"},  # another scheme
    {"Origin": "http://photos.example:8000"},
    {"Origin": "http://photos.example.evil.example"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://photos.example"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Referer": "http://photos.example/"},
]


def test_no_other_site_has_a_browser_change_anything(visit: Visit) -> None:
    """CSRF: a request that changes something says that a page of this server has sent it."""
    anna = visit()
    anna.sign_in(*ANNA)
    local = Visitor(make_app(AccessOptions()), MACHINE)
    for visitor in (anna, local):
        for headers in OWN:
            assert visitor.ask("POST", "/api/things", json={}, headers=headers).status_code == 200, headers
        for headers in FOREIGN:
            refused = visitor.ask("POST", "/api/things", json={}, headers=headers)
            assert refused.status_code == 403 and "X-Cairn" in refused.json()["detail"], headers
    assert anna.ask("POST", "/logout", headers=FOREIGN[2]).status_code == 403 and anna.get("/").status_code == 200
    assert anna.ask("POST", "/logout", headers=OWN[0]).status_code == 204 and anna.get("/").status_code == 401


def test_another_site_may_ask_where_an_option_names_it(visit: Visit, tokens: dict[str, str]) -> None:
    friend, evil = {"Origin": "https://www.example.org"}, {"Origin": "https://evil.example"}
    ask = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,x-cairn"}
    named = visit(cors=("https://www.example.org",))
    allowed = named.ask("OPTIONS", "/api/things", headers=friend | ask)
    assert (allowed.status_code, allowed.headers["Access-Control-Allow-Origin"]) == (200, friend["Origin"])
    assert "Access-Control-Allow-Credentials" not in allowed.headers  # cookies are not for other sites
    token = {"Authorization": f"Bearer {tokens['read']}"}
    assert named.get("/", headers=friend | token).headers["Access-Control-Allow-Origin"] == friend["Origin"]
    assert "Access-Control-Allow-Origin" not in named.get("/", headers=evil | token).headers
    assert named.ask("OPTIONS", "/api/things", headers=evil | ask).status_code == 400
    policy = "Cross-Origin-Resource-Policy"  # of pictures, of which browsers tell the page's origin as the referrer
    for told in (friend, {"Referer": "https://www.example.org/viewer?x=1"}):
        assert named.get("/", headers=told | token).headers[policy] == "cross-origin"
    for told in (evil, {"Referer": "https://www.example.org.evil.example/"}, {"Referer": "http://["}, {}):
        assert named.get("/", headers=told | token).headers[policy] == "same-origin"
    unnamed = visit()
    assert "Access-Control-Allow-Origin" not in unnamed.get("/", headers=friend | token).headers
    assert unnamed.ask("OPTIONS", "/api/things", headers=friend | ask).status_code == 401


def test_only_proxies_that_are_named_say_who_asks(visit: Visit, tokens: dict[str, str]) -> None:
    said = {"X-Forwarded-For": "198.51.100.9", "X-Forwarded-Proto": "https"}
    token = {"Authorization": f"Bearer {tokens['read']}"}
    options = {"forwarded_from": ("10.0.0.0/8", "::1")}
    assert visit("10.1.2.3", **options).get("/", headers=said | token).json()["scheme"] == "https"
    assert visit("::1", **options).get("/", headers=said | token).json()["scheme"] == "https"
    assert visit("11.1.2.3", **options).get("/", headers=said | token).json()["scheme"] == "http"
    assert visit("10.1.2.3").get("/", headers=said | token).json()["scheme"] == "http"
    # Without a password: the proxy is on this machine, who asks is not; and what the nearest proxy says counts.
    app = make_app(AccessOptions(forwarded_from=(MACHINE,)))
    assert Visitor(app, MACHINE).get("/", headers=said).status_code == 403
    assert Visitor(app, MACHINE).get("/", headers={"X-Forwarded-For": "127.0.0.1, 198.51.100.9"}).status_code == 403
    assert Visitor(app, STRANGER).get("/", headers={"X-Forwarded-For": MACHINE}).status_code == 403


def test_a_secure_cookie_is_set_behind_a_named_proxy_with_tls(visit: Visit) -> None:
    proxied = visit(MACHINE, forwarded_from=(MACHINE,), root_path="/photos")
    proxied.client.headers["X-Forwarded-Proto"] = "https"
    proxied.client.base_url = "https://photos.example"  # as the browser sees it
    answer = proxied.sign_in(*ANNA, target="/photos/?q=1", root="/photos")
    assert answer.headers["Location"] == "/photos/?q=1"
    assert "Secure" in answer.headers["Set-Cookie"] and "Path=/photos;" in answer.headers["Set-Cookie"]


def test_all_of_it_lies_below_a_path_whether_the_proxy_takes_it_away_or_not(visit: Visit) -> None:
    for prefix in ("", "/photos"):
        visitor = visit(root_path="/photos")
        page = visitor.get(f"{prefix}/login")
        assert 'action="/photos/login"' in page.text
        assert re.search(r'href="/photos/static/[0-9a-f]{12}/css/cairn\.css"', page.text)
        sent = visitor.get(f"{prefix}/?q=1", headers={"Accept": "text/html"})
        assert sent.headers["Location"] == "/photos/login?next=/photos/%3Fq%3D1"
        assert visitor.get(f"{prefix}/static/css/cairn.css").status_code == 200
        assert visitor.get(f"{prefix}/api/ready").status_code == 200
    assert visit(root_path="/photos").get("/photos", headers={"Accept": "text/html"}).status_code == 303
    signed = visit(root_path="/photos")
    signed.sign_in(*BEN, root="/photos")
    assert signed.get("/photos/api/things/1").json()["user"] == "ben"


def test_names_of_the_server_are_those_that_are_allowed(visit: Visit) -> None:
    named = NetworkOptions(allowed_host=["Photos.Example"]).access_options("0.0.0.0")
    assert named.hosts == LOOPBACK | {"0.0.0.0", "photos.example"}
    visitor = visit(hosts=named.hosts)
    assert visitor.get("/api/ready").status_code == 200
    assert visitor.get("/api/ready", headers={"Host": "photos.example:8443"}).status_code == 200
    refused = visitor.get("/api/ready", headers={"Host": "evil.example"})
    assert refused.status_code == 400 and "--allowed-host" in refused.json()["detail"]
    assert NetworkOptions().access_options("localhost").hosts == LOOPBACK
    assert NetworkOptions().access_options("0.0.0.0").hosts == LOOPBACK | {"0.0.0.0"}  # no password
    assert NetworkOptions(password_file=Path("people")).access_options("0.0.0.0").hosts is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"forwarded_from": ["proxy"]},
        {"cors": ["*"]},
        {"cors": ["example.org"]},
        {"root_path": "photos"},
        {"root_path": "/a b"},
    ],
)
def test_options_that_are_wrong_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(CairnError, match=r"^(forwarded_from|cors|root_path) must be"):
        NetworkOptions(**wrong).access_options("127.0.0.1")


def test_who_searches_too_often_has_to_wait(visit: Visit) -> None:
    anna, again, ben = (visit(searches=3) for _ in range(3))
    for visitor, who in ((anna, ANNA), (again, ANNA), (ben, BEN)):
        visitor.sign_in(*who)
    assert [anna.get("/api/search").status_code for _ in range(3)] == [200, 200, 200]
    refused = again.get("/api/search")
    assert refused.status_code == 429 and 1 <= int(refused.headers["Retry-After"]) <= 20
    assert ben.get("/api/search").status_code == 200 and anna.get("/api/things/1").status_code == 200
    local = Visitor(make_app(AccessOptions(searches=3)), MACHINE)
    assert [local.get("/api/search").status_code for _ in range(9)] == [200] * 9


def test_every_answer_has_the_headers_and_a_defect_is_one_sentence(visit: Visit, tokens: dict[str, str]) -> None:
    visitor = visit()
    token = {"Authorization": f"Bearer {tokens['read']}"}
    answers = [
        visitor.get("/login"),
        visitor.get("/"),
        visitor.get("/", headers=token),
        visitor.get("/metrics", headers=token),
    ]
    answers += [
        visitor.get("/api/breaks", headers=token),
        visitor.get("/static/css/cairn.css"),
        visitor.get("/api/ready"),
    ]
    assert [one.status_code for one in answers] == [200, 401, 200, 200, 500, 200, 200]
    for one in answers:
        assert one.headers["X-Content-Type-Options"] == "nosniff" and one.headers["Referrer-Policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in one.headers["Content-Security-Policy"]
    assert "RuntimeError" not in answers[4].text and answers[4].json()["detail"].endswith(".")


def test_a_token_is_taken_until_its_last_day(visit: Visit, password_file: Path) -> None:
    today = datetime.now(UTC).date()
    answers = []
    for days in (1, 0, -1):
        drawn, kept = new_token()
        last = today + timedelta(days)
        change_entry(password_file, "backup", token=True, entry=PasswordEntry("backup", Role.READ, kept, expires=last))
        answers.append(visit().get("/", headers={"Authorization": f"Bearer {drawn}"}))
    assert [one.status_code for one in answers[:2]] == [200, 200] or datetime.now(UTC).date() != today
    refused = answers[2]
    assert refused.status_code == 401 and f"until {last}" in refused.json()["detail"]
    assert "WWW-Authenticate" in refused.headers


HEADER = "X-Remote-User"
PROXY = {"forwarded_from": ("10.0.0.0/8",), "user_header": HEADER}


def test_a_proxy_that_is_named_says_who_signed_in_and_nobody_else_does(visit: Visit, tokens: dict[str, str]) -> None:
    said = {HEADER: "ben", "X-Forwarded-For": STRANGER}
    ben = visit("10.1.2.3", **PROXY).get("/api/things/1", headers=said)
    assert ben.json() == {"user": "ben", "role": "read"}
    assert visit("::ffff:10.1.2.3", **PROXY).get("/api/things/1", headers=said).json()["user"] == "ben"
    # Anybody else may say what they like: also who comes by the proxy's own machine, or says that they are the proxy.
    for address in (STRANGER, MACHINE, "11.1.2.3", "::1", ""):
        for headers in (said, said | {"X-Forwarded-For": "10.1.2.3"}, {HEADER: "anna"}):
            assert visit(address, **PROXY).get("/", headers=headers).status_code == 401, (address, headers)
    # Without the option the header is nothing.
    assert visit("10.1.2.3", forwarded_from=("10.0.0.0/8",)).get("/", headers=said).status_code == 401
    # Nor is one that looks like it.
    for name in ("X_Remote_User", "X-Remote-User-", "Remote-User"):
        assert visit("10.1.2.3", **PROXY).get("/", headers={name: "ben"}).status_code == 401


def test_what_the_proxy_says_is_a_name_of_the_file_and_only_one(visit: Visit, password_file: Path) -> None:
    proxy = visit("10.1.2.3", **PROXY)
    refused = proxy.get("/", headers={HEADER: "carl"})
    assert refused.status_code == 403 and "not known here" in refused.json()["detail"]
    change_entry(password_file, "carl", token=False, entry=PasswordEntry("carl", Role.WRITE, NO_PASSWORD))
    assert proxy.get("/", headers={HEADER: "carl"}).json()["role"] == "write"
    assert proxy.get("/", headers={HEADER: ""}).status_code == 401  # nobody has signed in there
    assert proxy.get("/", headers={HEADER: "program-read"}).status_code == 403  # a program is no person
    twice = proxy.get("/", headers=[(HEADER, "ben"), (HEADER, "anna")])
    assert twice.status_code == 400
    # A name without a password is signed in by nobody else, with whatever word.
    for word in ("", NO_PASSWORD, "anything at all"):
        assert proxy.sign_in("carl", word).status_code == 401
    # Its word counts more than a session of somebody who sat there before; another site makes it change nothing.
    proxy.sign_in(*ANNA)
    assert proxy.get("/").json()["user"] == "anna"
    assert proxy.get("/", headers={HEADER: "carl"}).json()["user"] == "carl"
    assert proxy.ask("POST", "/api/things", json={}, headers={HEADER: "carl"}).status_code == 403
    assert proxy.ask("POST", "/api/things", json={}, headers={HEADER: "carl", "X-Cairn": "1"}).status_code == 200
    assert proxy.get("/api/sessions", headers={HEADER: "carl"}).status_code == 403


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"trusted_user_header": HEADER}, "needs forwarded_from"),
        ({"trusted_user_header": HEADER, "forwarded_from": ["10.0.0.1"]}, "password_file"),
        (
            {"trusted_user_header": "a b", "forwarded_from": ["10.0.0.1"], "password_file": Path("people")},
            "must be a name",
        ),
    ],
)
def test_a_trusted_header_needs_a_proxy_and_names(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CairnError, match=sentence):
        NetworkOptions(**options).access_options("127.0.0.1")


def test_who_may_see_other_collections_reaches_nothing_of_the_only_one(password_file: Path) -> None:
    drawn, kept = new_token()
    some = PasswordEntry("anna", Role.WRITE, QUICK.hash(ANNA[1]), ("other.cairn",))
    change_entry(password_file, "anna", token=False, entry=some)
    change_entry(password_file, "some", token=True, entry=replace(some, name="some", hash=kept))
    app = make_app(AccessOptions(password_file=password_file), "holiday.cairn")
    anna = Visitor(app)
    assert anna.sign_in(*ANNA).status_code == 303
    bearer = {"Authorization": f"Bearer {drawn}"}
    for path in ("/", "/api/things/1", "/metrics", "/nothing"):
        assert anna.get(path).status_code in (401, 403), path
        refused = anna.get(path, headers=bearer)
        assert refused.status_code == 403 and "holiday" not in refused.text, path
    assert anna.ask("POST", "/api/things", json={}, headers={"X-Cairn": "1"}).status_code == 403
    # They can look at where they are signed in, and leave.
    assert anna.get("/api/sessions").status_code == anna.get("/login").status_code == 200
    change_entry(password_file, "anna", token=False, entry=replace(some, collections=("holiday.cairn", "other.cairn")))
    assert anna.get("/").json()["role"] == "write"
    # Figures are of all that is served.
    assert Visitor(app, MACHINE).get("/metrics", headers=bearer).status_code == 403
