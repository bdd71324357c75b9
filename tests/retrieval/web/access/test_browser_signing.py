"""Signing in and out in a real browser, on a server of several collections that lies below a path."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retrieval.web.access.options import AccessOptions
from retrieval.web.service import ServeOptions
from retrieval.web.shelf.app import create_shelf_app
from tests.conftest import Indexed
from tests.retrieval.web.access.conftest import ANNA, BEN
from tests.retrieval.web.shelf.test_app import small
from tests.support.browser import DESKTOP, SMALLEST, violations, visiting
from tests.support.browser import chromium as chromium
from tests.support.live import listening

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROOT = "/museum"


@pytest.fixture
def shelf(indexed: Indexed, tmp_path: Path, password_file: Path) -> Iterator[str]:
    """The address of a live server with a password, of a home with one collection."""
    home = tmp_path / "home"
    shutil.copytree(indexed.folder, home / "photos")
    access = AccessOptions(password_file=password_file, root_path=ROOT)
    app = create_shelf_app(home, small(ServeOptions(access=access)))
    with listening(app) as address:
        yield f"{address}{ROOT}"


def test_signing_in_and_out_and_in_again(chromium: Any, shelf: str) -> None:
    with visiting(chromium, shelf, DESKTOP) as visit:
        page = visit.open("/c/photos/albums?sort=name")

        def sign_in(name: str, password: str) -> None:
            page.get_by_label("Name").fill(name)
            page.get_by_label("Password").fill(password)
            page.get_by_label("Password").press("Enter")

        sign_in(ANNA[0], "wrong")
        page.get_by_text("The name or the password is wrong.").wait_for()
        visit.excuse("401")
        sign_in(*ANNA)
        page.wait_for_url(f"{shelf}/c/photos/albums?sort=name")
        # The session ends while the page is open: what is asked next leads to signing in, and back.
        page.get_by_role("button", name="Sign out").wait_for()
        page.wait_for_load_state("networkidle")  # nothing that was asked before is answered by the page to sign in
        page.context.clear_cookies()
        page.get_by_role("button", name="New album").first.click()
        page.get_by_role("dialog").get_by_role("textbox").fill("Mine")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{shelf}/login?**")
        visit.excuse("401")
        sign_in(*ANNA)
        page.wait_for_url(f"{shelf}/c/photos/albums?sort=name")
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url(f"{shelf}/login")
        assert page.request.get(f"{shelf}/api/collections").status == 401
        # Who may only read is shown nothing to write with, and can sign out from the list of collections, too.
        visit.open("/")
        sign_in(*BEN)
        page.wait_for_url(f"{shelf}/")
        page.get_by_role("button", name="Sign out").wait_for()
        for address in ("/", "/c/photos/albums", "/c/photos/saved", "/c/photos/work", "/c/photos/"):
            visit.open(address)
            page.get_by_role("button", name="Sign out").wait_for()
            assert not [one for one in page.locator(".writes").all() if one.is_visible()], address
            assert page.get_by_role("button", name="New album").or_(page.locator("input[type=file]")).is_hidden()
        visit.open("/")
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url(f"{shelf}/login")


def test_what_is_wrong_is_said_in_german(chromium: Any, shelf: str) -> None:
    with visiting(chromium, shelf, DESKTOP) as visit:
        visit.page.context.add_cookies([{"name": "cairn-language", "value": "de", "url": shelf}])
        page = visit.open("/login")
        page.locator("#name").fill("anna")
        page.locator("#password").fill("wrong")
        page.locator("#password").press("Enter")
        page.get_by_text("Der Name oder das Passwort ist falsch.").wait_for()
        visit.excuse("401")
        assert page.locator("html").get_attribute("lang") == "de"


PHONES = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 Version/17.5 Mobile Safari/604.1"


def _signed_in(visit: Any, shelf: str) -> Any:
    page = visit.open("/")
    page.locator("#name").fill(ANNA[0])
    page.locator("#password").fill(ANNA[1])
    page.locator("#password").press("Enter")
    page.wait_for_url(f"{shelf}/")
    return page


def test_where_one_is_signed_in_is_listed_and_ended(chromium: Any, shelf: str) -> None:
    with (
        visiting(chromium, shelf, DESKTOP, reduced_motion="reduce", bypass_csp=True) as visit,
        visiting(chromium, shelf, SMALLEST, user_agent=PHONES, locale="de-DE") as phone,
    ):
        page, small_page = _signed_in(visit, shelf), _signed_in(phone, shelf)
        page.get_by_role("link", name=ANNA[0]).click()
        page.wait_for_url(f"{shelf}/account")
        page.get_by_text("2 devices").wait_for()
        rows = page.locator("#sessions li")
        assert rows.filter(has_text="Chrome on Linux").get_by_text("This device").is_visible()
        assert rows.filter(has_text="Safari on iPhone").get_by_text("from 127.0.0.1").is_visible()
        assert rows.get_by_role("button").count() == 1  # one's own way out is in the head
        assert violations(page) == []
        # On a phone, in German: all of it fits.
        phone.open("/account")
        small_page.get_by_text("2 Geräte").wait_for()
        small_page.get_by_text("Safari auf iPhone").wait_for()
        assert small_page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        # There is no room in the head, so the way out is among the settings.
        assert small_page.get_by_role("button", name="Abmelden", exact=True).count() == 0
        small_page.locator("#settings summary").click()
        small_page.locator("#settings").get_by_role("button", name="Abmelden", exact=True).wait_for()
        small_page.keyboard.press("Escape")
        page.get_by_role("button", name="Sign out: Safari on iPhone").click()
        page.get_by_text("1 device", exact=True).wait_for()
        small_page.reload()
        small_page.wait_for_url(f"{shelf}/login?**")
        _signed_in(phone, shelf)
        phone.open("/account")
        small_page.get_by_role("button", name="Überall abmelden").click()
        small_page.wait_for_url(f"{shelf}/login")
        page.reload()
        page.wait_for_url(f"{shelf}/login?**")


def test_the_address_with_a_token_lets_a_browser_in_and_no_other(chromium: Any, tmp_path: Path) -> None:
    access = AccessOptions(own_user=True, token="a-token-of-cairn-open")
    app = create_shelf_app(tmp_path / "home", small(ServeOptions(access=access)))
    # This server does not ask the kernel, as where that does not say whose a connection is.
    with listening(app) as address, visiting(chromium, address, DESKTOP) as visit:
        page = visit.open("/")
        page.get_by_text("open the address with the token that cairn open has printed").wait_for()
        visit.excuse("401")
        visit.open("/?token=a-token-of-cairn-open")
        assert page.url == f"{address}/"
        page.get_by_role("button", name="Make the collection").wait_for()
        assert page.request.get(f"{address}/api/collections").status == 200
        assert "token" not in page.evaluate("document.cookie")  # no script reads it
        visit.open("/")
        page.get_by_role("button", name="Make the collection").wait_for()
        with visiting(chromium, address, DESKTOP) as other:
            other.open("/")
            other.excuse("401")
