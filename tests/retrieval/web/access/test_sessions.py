"""The list of sessions: one for all servers that share a password file, and over restarts."""

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from index.errors import CairnError
from retrieval.web.access import sessions as module
from retrieval.web.access.options import AccessOptions
from retrieval.web.access.passwords import Accounts, PasswordEntry, change_entry
from retrieval.web.access.roles import Role
from retrieval.web.access.sessions import Sessions, sessions_file
from tests.retrieval.web.access.conftest import ANNA, BEN, QUICK, STRANGER, Visitor, hidden, make_app

Visit = Callable[..., Visitor]
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
PHONE = "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Mobile Safari/537.36"
OWN = {"X-Cairn": "1"}


def _server(password_file: Path) -> "Server":
    return Server(make_app(AccessOptions(password_file=password_file)))


class Server:
    """One of several over the same password file."""

    def __init__(self, app: object) -> None:
        self.app = app

    def visitor(self, agent: str = FIREFOX) -> Visitor:
        one = Visitor(self.app, STRANGER)  # type: ignore[arg-type]
        one.client.headers["User-Agent"] = agent
        return one


def _cookie(answer: object) -> dict[str, str]:
    return {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}  # type: ignore[attr-defined]


def test_signing_out_at_one_server_holds_at_all_and_after_a_restart(password_file: Path) -> None:
    one, two = _server(password_file), _server(password_file)
    stolen = _cookie(one.visitor().sign_in(*ANNA))
    other = _cookie(two.visitor().sign_in(*ANNA))
    assert [it.visitor().get("/", headers=stolen).status_code for it in (one, two)] == [200, 200]
    # Each ends one while the other has the list of before in memory.
    assert one.visitor().ask("POST", "/logout", headers=stolen | OWN).status_code == 204
    assert two.visitor().ask("POST", "/logout", headers=other | OWN).status_code == 204
    for server in (one, two, _server(password_file)):
        assert server.visitor().get("/", headers=stolen).status_code == 401
        assert server.visitor().get("/", headers=other).status_code == 401


def test_sessions_that_begin_and_end_at_once_at_two_servers_are_all_kept(password_file: Path) -> None:
    accounts, path = Accounts(password_file, QUICK), sessions_file(password_file)
    entry = accounts.person("anna")
    assert entry
    servers = [Sessions(accounts, path) for _ in range(2)]
    begun: list[str] = []

    def work(server: Sessions) -> None:
        for place in range(8):
            value = server.begin(entry)
            if place % 2:
                server.end(value)
            else:
                begun.append(value)

    threads = [threading.Thread(target=work, args=(server,)) for server in servers]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for server in (*servers, Sessions(accounts, path)):
        assert len(server.listed("anna")) == len(begun) == 8
        assert all(server.check(value) == entry for value in begun)


def test_who_signed_in_sees_where_and_signs_out_of_one_or_all(visit: Visit, password_file: Path) -> None:
    server = _server(password_file)
    desktop, phone, ben = server.visitor(FIREFOX), server.visitor(PHONE), server.visitor()
    for visitor, who in ((desktop, ANNA), (phone, ANNA), (ben, BEN)):
        visitor.sign_in(*who)
    told = desktop.get("/api/sessions").json()
    assert told["user"] == "anna" and {(one["browser"], one["system"]) for one in told["sessions"]} == {
        ("Firefox", "Linux"),
        ("Chrome", "Android"),
    }
    assert [one["address"] for one in told["sessions"]] == [STRANGER] * 2
    (here,) = [one for one in told["sessions"] if one["current"]]
    (there,) = [one for one in told["sessions"] if not one["current"]]
    assert here["system"] == "Linux" and here["used"] >= here["begun"]
    # Nobody ends another's, and no other site ends any.
    assert ben.ask("DELETE", f"/api/sessions/{here['id']}", headers=OWN).status_code == 404
    assert desktop.ask("DELETE", "/api/sessions").status_code == 403
    assert desktop.ask("DELETE", f"/api/sessions/{there['id']}", headers=OWN).json() == {"ended": 1}
    assert (desktop.get("/").status_code, phone.get("/").status_code) == (200, 401)
    phone.sign_in(*ANNA)
    assert phone.ask("DELETE", "/api/sessions", headers=OWN).json() == {"ended": 2}
    assert (desktop.get("/").status_code, phone.get("/").status_code, ben.get("/").status_code) == (401, 401, 200)


def test_a_program_of_the_same_name_sees_and_ends_no_sessions(
    visit: Visit, password_file: Path, tokens: dict[str, str]
) -> None:
    from retrieval.state.tokens import new_token

    drawn, kept = new_token()
    change_entry(password_file, "anna", token=True, entry=PasswordEntry("anna", Role.WRITE, kept))
    visit().sign_in(*ANNA)
    bearer = {"Authorization": f"Bearer {drawn}"}
    assert visit().get("/", headers=bearer).json()["user"] == "anna"
    for method in ("GET", "DELETE"):
        refused = visit().ask(method, "/api/sessions", headers=bearer)
        assert refused.status_code == 403 and "password" in refused.json()["detail"]
    local = Visitor(make_app(AccessOptions()), "127.0.0.1")
    assert local.get("/api/sessions").status_code == 403 and local.get("/account").status_code == 303


def test_the_list_opens_nothing_and_is_its_owners(visit: Visit, password_file: Path) -> None:
    cookie = _cookie(visit().sign_in(*ANNA))
    path = sessions_file(password_file)
    text = path.read_text()
    assert cookie["Cookie"].partition("=")[2] not in text and "anna" in text
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.with_name(f"{path.name}.lock").stat().st_mode & 0o077 == 0
    name = cookie["Cookie"].partition("=")[0]
    for number in json.loads(text)["sessions"]:
        assert visit().get("/", headers={"Cookie": f"{name}={number}"}).status_code == 401


def test_others_who_may_read_the_list_end_all_sessions(
    visit: Visit, password_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    anna = visit()
    anna.sign_in(*ANNA)
    path = sessions_file(password_file)
    key = json.loads(path.read_text())["key"]
    path.chmod(0o644)
    assert anna.get("/").status_code == 401 and "Other users can read" in caplog.text
    with pytest.raises(CairnError, match="Other users can read"):
        make_app(AccessOptions(password_file=password_file))
    # Who signs in again makes a list of its own, with another key.
    anna.sign_in(*ANNA)
    assert anna.get("/").status_code == 200
    assert path.stat().st_mode & 0o777 == 0o600 and json.loads(path.read_text())["key"] != key


def test_permissions_of_the_password_file_are_looked_at_while_the_server_runs(
    visit: Visit, password_file: Path, tokens: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    anna = visit()
    anna.sign_in(*ANNA)
    bearer = {"Authorization": f"Bearer {tokens['read']}"}
    assert anna.get("/").status_code == visit().get("/", headers=bearer).status_code == 200
    password_file.chmod(0o666)  # nothing else of it changes
    assert anna.get("/").status_code == visit().get("/", headers=bearer).status_code == 401
    assert "chmod 600" in caplog.text
    password_file.chmod(0o600)
    assert anna.get("/").status_code == visit().get("/", headers=bearer).status_code == 200


def test_another_password_ends_the_sessions_of_its_name_and_no_others(visit: Visit, password_file: Path) -> None:
    anna, phone, ben = visit(), visit(), visit()
    for visitor, who in ((anna, ANNA), (phone, ANNA), (ben, BEN)):
        visitor.sign_in(*who)
    change_entry(password_file, "anna", token=False, entry=PasswordEntry("anna", Role.WRITE, QUICK.hash("another one")))
    assert [one.get("/").status_code for one in (anna, phone, ben)] == [401, 401, 200]
    visit().sign_in("anna", "another one")
    kept = json.loads(sessions_file(password_file).read_text())["sessions"].values()
    assert sorted(one["name"] for one in kept) == ["anna", "ben"]


def test_one_name_has_so_many_sessions_and_the_oldest_ends(password_file: Path) -> None:
    accounts = Accounts(password_file, QUICK)
    entry = accounts.person("anna")
    assert entry
    sessions = Sessions(accounts)
    values = [sessions.begin(entry) for _ in range(module.MOST + 1)]
    assert sessions.check(values[0]) is None and all(sessions.check(one) for one in values[1:])


def test_the_last_use_is_written_from_time_to_time(password_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1e9]
    monkeypatch.setattr(module.time, "time", lambda: now[0])
    accounts, path = Accounts(password_file, QUICK), sessions_file(password_file)
    entry = accounts.person("anna")
    assert entry
    one, two = Sessions(accounts, path), Sessions(accounts, path)
    value = one.begin(entry, ("Firefox", "Linux"), "192.0.2.1")
    before = path.stat().st_mtime_ns
    now[0] += 60
    one.check(value, "192.0.2.2")
    assert path.stat().st_mtime_ns == before  # not at each request
    now[0] += module.USED_SECONDS
    one.check(value, "192.0.2.2")
    ((_, session),) = two.listed("anna")
    assert (session.begun, session.used, session.address) == (1e9, now[0], "192.0.2.2")
    now[0] += AccessOptions.session_seconds
    assert one.check(value) is None and two.listed("anna") == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"key": 1}', '{"key": "' + "a" * 64 + '", "sessions": {"x": {}}}', "\0"]
)
def test_a_damaged_list_holds_nobody(password_file: Path, text: str) -> None:
    path = sessions_file(password_file)
    path.touch(0o600)
    path.write_text(text)
    sessions = Sessions(Accounts(password_file, QUICK), path)
    assert sessions.listed("anna") == [] and sessions.check("x") is None
    entry = sessions._accounts.person("anna")
    assert entry and sessions.check(sessions.begin(entry)) == entry


def test_a_folder_that_may_not_be_written_keeps_sessions_in_memory(
    password_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(module, "write_private", refuse)
    sessions = Sessions(Accounts(password_file, QUICK), sessions_file(password_file))
    entry = sessions._accounts.person("anna")
    assert entry
    value = sessions.begin(entry)
    assert sessions.check(value) == entry
    sessions.end(value)
    assert sessions.check(value) is None


def test_the_page_to_sign_out_works_without_scripts(visit: Visit) -> None:
    anna = visit()
    anna.sign_in(*ANNA)
    page = anna.get("/login")
    assert 'href="/account"' in page.text and "form" in hidden(page)
