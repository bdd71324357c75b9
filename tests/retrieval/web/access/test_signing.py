"""Signing in and out: who gets in, what a session is worth, and what other sites can make of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from retrieval.web.access.options import AccessOptions
from retrieval.web.access.passwords import PasswordEntry, change_entry
from retrieval.web.access.roles import Role
from retrieval.web.access.signing import own_path
from tests.retrieval.web.access.conftest import ANNA, BEN, QUICK, Visitor, hidden, make_app

Visit = Callable[..., Visitor]
PAGE = {"Accept": "text/html"}


def test_one_who_signs_in_goes_where_they_wanted_and_may_do_what_their_role_says(visit: Visit) -> None:
    anna, ben = visit(), visit()
    sent = anna.get("/api/things/1?q=a&b=c", headers=PAGE)
    assert sent.status_code == 401 and "WWW-Authenticate" in sent.headers
    sent = anna.get("/?q=a&b=//c", headers=PAGE)
    assert (sent.status_code, sent.headers["Location"]) == (303, "/login?next=/%3Fq%3Da%26b%3D//c")
    page = anna.get(sent.headers["Location"])
    assert page.status_code == 200 and hidden(page)["next"] == "/?q=a&b=//c" and "<script" not in page.text
    done = anna.sign_in(*ANNA, target="/?q=a&b=//c")
    assert (done.status_code, done.headers["Location"]) == (303, "/?q=a&b=//c")
    assert anna.get("/").json() == {"user": "anna", "role": "write", "scheme": "http"}
    assert anna.ask("POST", "/api/things", json={}, headers={"X-Cairn": "1"}).status_code == 200
    ben.sign_in(*BEN)
    assert ben.get("/api/things/1").json() == {"user": "ben", "role": "read"}
    refused = ben.ask("POST", "/api/things", json={}, headers={"X-Cairn": "1"})
    assert refused.status_code == 403 and "not change it" in refused.json()["detail"]


def test_a_wrong_name_and_a_wrong_password_are_told_alike(visit: Visit) -> None:
    answers = [visit().sign_in(*who) for who in (("anna", "wrong password"), ("<b>nobody", "correct horse"), ("", ""))]
    assert {one.status_code for one in answers} == {401}
    assert all("The name or the password is wrong." in one.text and "set-cookie" in one.headers for one in answers)
    assert "&lt;b&gt;nobody" in answers[1].text and "<b>nobody" not in answers[1].text
    assert not any("cairn-" in name and "form" not in name for one in answers for name in one.cookies)


def test_a_cookie_is_for_this_server_alone_and_safe_behind_tls(visit: Visit) -> None:
    plain = visit().sign_in(*ANNA).headers["Set-Cookie"]
    assert "HttpOnly" in plain and "SameSite=lax" in plain and "Path=/" in plain and "Secure" not in plain
    assert "Secure" in visit(base="https://photos.example").sign_in(*ANNA).headers["Set-Cookie"]


def test_a_session_that_was_planted_is_never_taken_over(visit: Visit) -> None:
    """Session fixation: what a browser had before signing in is worth nothing after it."""
    anna = visit()
    name = visit().sign_in(*ANNA).headers["Set-Cookie"].partition("=")[0]
    anna.client.cookies.set(name, "planted", domain="photos.example")
    first = anna.sign_in(*ANNA)
    one = first.headers["Set-Cookie"].partition(";")[0].partition("=")[2]
    assert one != "planted"
    anna.client.cookies.clear()
    stranger = visit()
    assert stranger.get("/", headers={"Cookie": f"{name}=planted"}).status_code == 401
    # Signing in again rotates the session: the one before is ended.
    again = visit()
    again.client.cookies.set(name, one, domain="photos.example")
    form = {**hidden(stranger.get("/login")), "name": ANNA[0], "password": ANNA[1]}
    stranger.client.cookies.set(name, one, domain="photos.example")
    assert stranger.ask("POST", "/login", data=form).status_code == 303
    assert again.get("/").status_code == 401


def test_a_session_ends_with_the_password_the_account_or_on_leaving(visit: Visit, password_file: Path) -> None:
    anna, copy = visit(), visit()
    name, value = anna.sign_in(*ANNA).headers["Set-Cookie"].partition(";")[0].split("=", 1)
    stolen = {"Cookie": f"{name}={value}"}
    assert copy.get("/", headers=stolen).status_code == 200
    forged = value[:-2] + ("B" if value[-2] == "A" else "A") + value[-1]  # all bits of the last but one count
    assert copy.get("/", headers={"Cookie": f"{name}={forged}"}).status_code == 401
    page = anna.get("/login")
    assert "You are signed in" in page.text and "anna" in page.text
    assert anna.ask("POST", "/logout", data={"form": "forged"}).status_code == 403
    assert anna.get("/").status_code == 200
    out = anna.ask("POST", "/logout", data=hidden(page))
    assert (out.status_code, out.headers["Location"]) == (303, "/login")
    assert anna.get("/").status_code == 401 and copy.get("/", headers=stolen).status_code == 401
    # Also after a restart, whose key is that of before.
    again = Visitor(make_app(AccessOptions(password_file=password_file)))
    assert again.get("/", headers=stolen).status_code == 401

    anna.sign_in(*ANNA)
    assert anna.get("/").status_code == 200
    change_entry(password_file, "anna", token=False, entry=PasswordEntry("anna", Role.WRITE, QUICK.hash("another one")))
    assert anna.get("/").status_code == 401
    ben = visit()
    ben.sign_in(*BEN)
    change_entry(password_file, "ben", token=False, entry=None)
    assert ben.get("/").status_code == 401


def test_a_session_lasts_over_a_restart_and_not_beyond_its_time(visit: Visit, password_file: Path) -> None:
    anna = visit()
    name, value = anna.sign_in(*ANNA).headers["Set-Cookie"].partition(";")[0].split("=", 1)
    cookie = {"Cookie": f"{name}={value}"}
    assert (password_file.parent / "passwords.key").stat().st_mode & 0o777 == 0o600
    options = AccessOptions(password_file=password_file)
    assert Visitor(make_app(options)).get("/", headers=cookie).json()["user"] == "anna"
    short = AccessOptions(password_file=password_file, session_seconds=-1)
    assert Visitor(make_app(short)).get("/", headers=cookie).status_code == 401
    (password_file.parent / "passwords.key").unlink()  # the way to end all sessions at once
    assert Visitor(make_app(options)).get("/", headers=cookie).status_code == 401


def test_no_other_site_signs_anybody_in(visit: Visit) -> None:
    """Without the page's own field and cookie nothing happens, whatever the browser sends along."""
    victim, attacker = visit(), visit()
    theirs = hidden(attacker.get("/login"))
    for form in ({}, {"form": "x"}, theirs):
        fields = {"name": ANNA[0], "password": ANNA[1], **form}
        answer = victim.ask("POST", "/login", data=fields, headers={"Origin": "https://evil.example"})
        assert answer.status_code == 403 and "try again" in answer.text
    assert victim.get("/").status_code == 401


TARGETS = [
    "https://evil.example",
    "//evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/..//evil.example",
    "javascript:alert(1)",
]
TARGETS += [
    "/%0d%0aX-Bad: 1\r\nX-Bad: 1",
    "http:evil.example",
    "///evil.example",
    "/\t/evil.example",
    "/login",
    "@evil.example",
    "[",
    "",
]


@pytest.mark.parametrize("target", TARGETS)
def test_signing_in_leads_to_no_other_site(visit: Visit, target: str) -> None:
    answer = visit().sign_in(*ANNA, next=target)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/")
    assert "x-bad" not in answer.headers
    assert own_path("/photos/search?q=1#a", "/photos") == "/photos/search?q=1#a"
    assert own_path("/other", "/photos") == "/photos/" == own_path("/photos/../other", "/photos")


def test_who_guesses_has_to_wait(visit: Visit) -> None:
    options = {"logins": 3, "logins_of_name": 5}
    guessing = visit(**options)
    assert [guessing.sign_in("anna", f"wrong{place}").status_code for place in range(5)] == [401, 401, 401, 429, 429]
    late = guessing.sign_in(*ANNA)
    assert late.status_code == 429 and 0 < int(late.headers["Retry-After"]) <= 100 and "wait" not in late.text
    # Another address may try, until the name has been guessed at from everywhere.
    others = [visit(f"198.51.100.{place}", **options) for place in range(4)]
    assert [one.sign_in("anna", "wrong").status_code for one in others[:2]] == [401, 401]
    assert others[2].sign_in(*ANNA).status_code == 429
    assert others[3].sign_in(*BEN).status_code == 303  # nobody else is kept out
    assert [others[3].sign_in(*BEN).status_code for _ in range(6)] == [303] * 6  # right ones do not count


def test_a_form_that_is_too_long_or_damaged_is_refused(visit: Visit) -> None:
    visitor = visit()
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert visitor.ask("POST", "/login", content=b"a" * 20_000, headers=kind).status_code == 413
    for body in (b"\xff", b"&".join(b"a=1" for _ in range(99)), b"form=%ff%fe", b""):
        assert visitor.ask("POST", "/login", content=body, headers=kind).status_code == 403


def test_a_file_of_passwords_that_is_wrong_is_refused_at_the_start(tmp_path: Path) -> None:
    from index.errors import CairnError

    with pytest.raises(CairnError, match="cairn password"):
        make_app(AccessOptions(password_file=tmp_path / "nothing"))
