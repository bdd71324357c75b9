"""Headless Chromium for tests, and user actions on pages."""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Box = tuple[float, float, float, float]

PROGRAMS = ("/usr/bin/chromium", "chromium", "chromium-browser", "google-chrome")
PATIENCE = 60_000  # milliseconds before a page that does not answer is an error; machines that run tests are busy
DESKTOP, PHONE = (1280, 860), (360, 740)
WIDE = (1440, 900)
SMALLEST = (320, 640)  # width that pages must fit (WCAG 2, Reflow)
DOT = '<svg xmlns="http://www.w3.org/2000/svg" width="4" height="3"><rect width="4" height="3" fill="gray"/></svg>'
"""A picture for answers mocked by a test."""


def find_chromium() -> str | None:
    """The browser's program, if installed."""
    return next((found for program in PROGRAMS if (found := shutil.which(program))), None)


@dataclass
class Visit:
    """An open page, and the browser's complaints."""

    page: Any
    base: str
    complaints: list[str] = field(default_factory=list)

    def open(self, address: str) -> Any:
        """Go to an address of the server, and wait until its page has loaded."""
        self.page.goto(self.base + address)
        self.page.wait_for_load_state("networkidle")
        return self.page

    def excuse(self, text: str) -> None:
        """Remove an expected complaint, such as the browser's note of a 4xx; it must exist."""
        assert any(text in one for one in self.complaints), (text, self.complaints)
        self.complaints[:] = [one for one in self.complaints if text not in one]

    def number(self, name: str) -> int:
        """The number of a photo of the collection."""
        photos = self.page.request.get(f"{self.base}/api/photos?limit=500").json()["photos"]
        return next(int(photo["number"]) for photo in photos if photo["name"] == name)


class _Kept:
    """The browser, kept until a module that does not use it."""

    def __init__(self) -> None:
        self.stack: contextlib.ExitStack | None = None
        self.browser: Any = None

    def start(self) -> Any:
        """The running browser, started unless an earlier module has."""
        if self.stack is None:
            with contextlib.ExitStack() as stack:
                self.browser = _start(stack)
                self.stack = stack.pop_all()
        return self.browser

    def stop(self) -> None:
        """End it."""
        stack, self.stack, self.browser = self.stack, None, None
        if stack is not None:
            stack.close()


_kept = _Kept()


def _start(stack: contextlib.ExitStack) -> Any:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = find_chromium()
    if program is None:
        pytest.skip("there is no Chromium: neither chromium, chromium-browser nor google-chrome is installed")
    arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # root cannot have one
    home = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
    with pytest.MonkeyPatch.context() as patch:
        # The browser and its driver need to write to the home and the temporary folder, or they end at once. Their
        # sockets are there, too: the path must be short.
        for name in ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
            patch.setenv(name, home)
        driver = playwright.sync_playwright().start()
        stack.callback(driver.stop)
        browser = driver.chromium.launch(executable_path=program, args=arguments)
        stack.callback(browser.close)
    return browser


@pytest.fixture(scope="module")
def chromium() -> Any:
    """The browser, started once for modules that follow each other; tests open windows of their own."""
    return _kept.start()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the browser after the last such module: while it runs, no test of this process can start an event loop."""
    is_last = nextitem is None or nextitem.getparent(pytest.Module) is not item.getparent(pytest.Module)
    if is_last and "chromium" not in getattr(nextitem, "fixturenames", ()):
        _kept.stop()


@pytest.fixture
def visit(chromium: Any, served: str) -> Iterator[Visit]:
    """A desktop window on the live server; complaints of the browser fail the test."""
    with visiting(chromium, served) as one:
        yield one


class visiting:
    """A new window; `options` are those of Playwright's contexts."""

    def __init__(self, chromium: Any, base: str, size: tuple[int, int] = DESKTOP, **options: Any) -> None:
        width, height = size
        self.context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        self.context.set_default_timeout(PATIENCE)
        self.visit = Visit(self.context.new_page(), base)
        # Violations of the content security policy are errors of the console.
        self.visit.page.on("console", lambda said: self._hear(said.type, f"{said.text} {said.location.get('url', '')}"))
        self.visit.page.on("pageerror", lambda error: self._hear("error", str(error)))
        self.visit.page.on("dialog", self._dismiss)

    def _hear(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.visit.complaints.append(text)

    def _dismiss(self, dialog: Any) -> None:
        self._hear("error", "a dialog")
        dialog.dismiss()

    def __enter__(self) -> Visit:
        return self.visit

    def __exit__(self, kind: object, *_: object) -> None:
        self.context.close()
        if kind is None:
            assert not self.visit.complaints, self.visit.complaints


# User actions


def screen_point(page: Any, x: float, y: float) -> tuple[float, float]:
    """Screen position of a pixel of the original of the photo in the box tool."""
    canvas = page.locator(".box-canvas")
    canvas.scroll_into_view_if_needed()
    seen = canvas.bounding_box()
    width, height = (int(page.locator(".box-numbers input").nth(place).get_attribute("max")) + 1 for place in (2, 3))
    return seen["x"] + (x + 0.5) * seen["width"] / width, seen["y"] + (y + 0.5) * seen["height"] / height


def tab_to(page: Any, selector: str, text: str = "", most: int = 80) -> None:
    """Press Tab until the focus is on an element whose text or label contains `text`."""
    for _ in range(most):
        page.keyboard.press("Tab")
        script = """([selector, text]) => {
            const one = document.activeElement;
            const labels = [...(one?.labels ?? [])].map((label) => label.textContent);
            const said = [one?.textContent, one?.getAttribute("aria-label"), ...labels];
            return Boolean(one?.matches(selector)) && said.some((words) => words?.includes(text));
        }"""
        if page.evaluate(script, [selector, text]):
            return
    raise AssertionError(f"Tab does not reach {selector} {text}")


def draw_box(page: Any, box: Box) -> None:
    """Draw a box with the mouse; corners in pixels of the original."""
    page.locator(".box-canvas img").evaluate("picture => picture.decode()")
    page.mouse.move(*screen_point(page, *box[:2]))
    page.mouse.down()
    page.mouse.move(*screen_point(page, (box[0] + box[2]) / 2, (box[1] + box[3]) / 2))
    page.mouse.move(*screen_point(page, *box[2:]))
    page.mouse.up()


def read_box(page: Any) -> list[float]:
    """The four numbers next to the box tool."""
    return [float(value.input_value()) for value in page.locator(".box-numbers input").all()]


def wait_for_results(page: Any) -> list[str]:
    """Names of the results, best first, once complete."""
    done = "#results[aria-busy=false]:not([data-turned=looking]) .result, #error:not(:empty)"
    page.wait_for_selector(done, state="attached")  # similar photos are collapsed
    assert page.locator("#error").text_content() == ""
    return [str(name) for name in page.locator("#results .name").all_text_contents()]


def drawn_lines(page: Any) -> np.ndarray:
    """The lines drawn on the match page, in pixels of the two originals: (N, 2, 2)."""
    page.wait_for_selector("#pair .match", state="attached")
    page.evaluate("Promise.all([...document.querySelectorAll('#pair img')].map((picture) => picture.decode()))")
    page.wait_for_timeout(100)  # a frame for the drawing to follow the pictures
    script = """() => {
        const host = document.querySelector('#pair').getBoundingClientRect();
        const pictures = [...document.querySelectorAll('#pair img')].map((picture) => {
            const seen = picture.getBoundingClientRect();
            return [seen.left - host.left, seen.top - host.top, seen.width, seen.height, picture.getAttribute('width'),
                    picture.getAttribute('height')].map(Number);
        });
        const lines = [...document.querySelectorAll('#pair .match .join')].map((line) =>
            ['x1', 'y1', 'x2', 'y2'].map((name) => Number(line.getAttribute(name))));
        return JSON.stringify({ pictures, lines });
    }"""
    drawn = json.loads(page.evaluate(script))
    ends = np.array(drawn["lines"]).reshape(-1, 2, 2)
    seen = np.array(drawn["pictures"])  # (2, 6): left, top, width, height on the screen, width, height of the original
    return np.asarray((ends - seen[:, :2]) * seen[:, 4:] / seen[:, 2:4] - 0.5)


def project(matrix: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points (N, 2) under a homography."""
    mapped = np.column_stack([points, np.ones(len(points))]) @ matrix.T
    return np.asarray(mapped[:, :2] / mapped[:, 2:])


def corners(box: Box) -> np.ndarray:
    """Of a box, from the top left on clockwise: (4, 2)."""
    x0, y0, x1, y1 = box
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], np.float64)


def overlap(polygon: Any, other: Any) -> float:
    """Area that two convex polygons share, over that of both together."""
    import cv2

    one, two = (np.asarray(corners, np.float32) for corners in (polygon, other))
    shared = cv2.intersectConvexConvex(one, two)[0]
    return float(shared / (cv2.contourArea(one) + cv2.contourArea(two) - shared))


def phone_photo(source: Path, target: Path) -> Path:
    """Write a photo like a phone held upright: rotated pixels, and an EXIF orientation."""
    from PIL import Image

    with Image.open(source) as upright:
        lying = upright.transpose(Image.Transpose.ROTATE_90)
        exif = lying.getexif()
        exif[0x0112] = 6  # rotate by 90° clockwise
        lying.save(target, exif=exif, quality=92)
    return target


def violations(page: Any) -> list[dict[str, Any]]:
    """Accessibility violations of a page found by axe; the test is skipped without axe.

    The script is injected, which the content security policy forbids: visit with bypass_csp. Colours in transition
    would be judged too early: visit with reduced_motion="reduce".
    """
    package = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    page.evaluate((Path(package.__file__).parent / "axe.min.js").read_text())
    return list(page.evaluate("async () => (await axe.run()).violations"))
