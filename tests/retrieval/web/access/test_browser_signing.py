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
from tests.support.browser import DESKTOP, visiting
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
