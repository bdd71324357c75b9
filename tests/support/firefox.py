"""Headless Firefox for tests, by its native protocol, WebDriver BiDi."""

import asyncio
import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROGRAMS = ("firefox-esr", "firefox")
PATIENCE = 60.0  # seconds before a page that does not answer is an error
TAB, ENTER, SHIFT, RIGHT, DELETE = "\ue004", "\ue007", "\ue008", "\ue014", "\ue017"

# Whether an element is one that a selector names, and says a text, in its label too.
_SAYS = """(one, selector, text) => one.matches(selector) &&
    [one.textContent, one.getAttribute('aria-label'), ...[...(one.labels ?? [])].map((label) => label.textContent)]
        .some((said) => said?.includes(text))"""


def find_firefox() -> str | None:
    """The browser's program, if installed."""
    return next((found for program in PROGRAMS if (found := shutil.which(program))), None)


class Firefox:
    """One window of a browser with a new profile.

    Parameters
    ----------
    folder : Path
        Folder of the profile.
    size : tuple of int
        Width and height of the page, pixels.
    language : str
        What pages are asked for in.
    """

    def __init__(self, folder: Path, size: tuple[int, int], language: str = "en") -> None:
        self.complaints: list[str] = []  # errors in its console
        self._folder, self._size, self.language = folder, size, language
        self._loop = asyncio.new_event_loop()
        self._numbers = 0

    def __enter__(self) -> Self:
        program = find_firefox()
        assert program is not None
        self._folder.mkdir(parents=True)
        (self._folder / "user.js").write_text(f'user_pref("intl.accept_languages", "{self.language}");')
        command = [program, "--headless", "--no-remote", "--profile", str(self._folder), "--remote-debugging-port", "0"]
        # Its log goes to a file: a pipe could fill up.
        log = self._folder / "log"
        with log.open("w") as file:
            self._process = subprocess.Popen(command, stdout=file, stderr=file)
        try:
            found = None
            for _ in range(int(PATIENCE / 0.1)):
                if found := re.search(r"WebDriver BiDi listening on (ws://\S+)", log.read_text()):
                    break
                time.sleep(0.1)
            assert found, log.read_text()
            self._loop.run_until_complete(self._connect(found[1] + "/session"))
            self._ask("session.new", capabilities={})
            self._ask("session.subscribe", events=["log.entryAdded"])
            # The first window of a headless browser has no focus: keys would press no button in it.
            self._context = self._ask("browsingContext.create", type="window")["context"]
            self._other = self._ask("browsingContext.create", type="tab")["context"]
            self._come_back()
            self.resize(self._size)
        except BaseException:
            self._process.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run_until_complete(self._session.close())
        self._process.terminate()
        self._process.wait(30)
        self._loop.close()

    def resize(self, size: tuple[int, int]) -> None:
        """Give the page another width and height."""
        width, height = size
        self._ask("browsingContext.setViewport", viewport={"width": width, "height": height}, **self._where)

    def open(self, address: str) -> None:
        """Go to an address, and wait until the page is loaded."""
        self._ask("browsingContext.navigate", url=address, wait="complete", **self._where)

    def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression on the page, awaiting promises."""
        expression = f"Promise.resolve({script}).then((value) => JSON.stringify(value ?? null))"
        reported = self._ask("script.evaluate", expression=expression, target=self._where, awaitPromise=True)
        assert reported["type"] == "success", reported
        return json.loads(reported["result"]["value"])

    def wait_for(self, script: str, seconds: float = PATIENCE) -> Any:
        """Wait until an expression is true on the page; return its value."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            if value := self.evaluate(script):
                return value
            time.sleep(0.05)
        raise AssertionError(
            f"{script} did not come true at {self.evaluate('location.href + document.body.innerText')}"
        )

    def press(self, *keys: str, holding: str = "") -> None:
        """Press keys in turn: characters, or WebDriver's key codes."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        if holding:
            actions = [{"type": "keyDown", "value": holding}, *actions, {"type": "keyUp", "value": holding}]
        self._act({"type": "key", "id": "keys", "actions": actions})

    def click(self, selector: str) -> None:
        """Click on the middle of an element."""
        self.drag(selector, (0.5, 0.5), (0.5, 0.5))

    def tab_to(self, selector: str, text: str = "", most: int = 120) -> None:
        """Press Tab until the focus is on an element with a text in it, or in its label."""
        for _ in range(most):
            self.press(TAB)
            if not self.evaluate("document.hasFocus()"):  # behind the last element come the browser's own
                self._come_back()
            if self.evaluate(f"({_SAYS})(document.activeElement, {json.dumps(selector)}, {json.dumps(text)})"):
                return
        raise AssertionError(f"Tab does not reach {selector} {text}")

    def activate(self, selector: str, text: str = "", by_keys: bool = False) -> None:
        """Press an element with a text in it: by Tab and Enter, or by a click."""
        requested = f"{json.dumps(selector)}, {json.dumps(text)}"
        found = f"[...document.querySelectorAll('*')].find((one) => ({_SAYS})(one, {requested}))"
        self.wait_for(f"Boolean({found}?.checkVisibility())")
        if by_keys:
            self.tab_to(selector, text)
            self.press(ENTER)
            return
        self.evaluate(f"{found}.setAttribute('data-aim', '')")
        self.click("[data-aim]")
        self.evaluate("document.querySelector('[data-aim]')?.removeAttribute('data-aim')")

    def drag(self, selector: str, begin: tuple[float, float], end: tuple[float, float]) -> None:
        """Press the mouse button on one point of an element, and release it on another, in shares of its sides."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.wait_for(f"{found} !== null")
        box = f"((b) => [b.left, b.top, b.width, b.height])({found}.getBoundingClientRect())"
        self.evaluate(f"{found}.scrollIntoView({{ block: 'nearest' }})")
        left, top, width, height = self.evaluate(box)
        begun, ended = (
            {"x": round(left + share[0] * width), "y": round(top + share[1] * height)} for share in (begin, end)
        )
        moves = [{"type": "pointerMove", **begun}, {"type": "pointerDown", "button": 0}]
        if begin != end:
            moves += [{"type": "pointerMove", "duration": 100, **ended}]
        self._act({"type": "pointer", "id": "mouse", "actions": [*moves, {"type": "pointerUp", "button": 0}]})

    def _come_back(self) -> None:
        """Give the page the focus, from another tab: what is asked for in a tab that is shown changes nothing."""
        for context in (self._other, self._context):
            self._ask("browsingContext.activate", context=context)

    @property
    def _where(self) -> dict[str, str]:
        return {"context": self._context}

    def _act(self, *sources: dict[str, Any]) -> None:
        self._ask("input.performActions", actions=list(sources), **self._where)

    def _ask(self, method: str, **values: Any) -> dict[str, Any]:
        return self._loop.run_until_complete(asyncio.wait_for(self._send(method, values), PATIENCE))

    async def _connect(self, address: str) -> None:
        import aiohttp

        self._session = aiohttp.ClientSession()
        self._socket = await self._session.ws_connect(address, max_msg_size=0)

    async def _send(self, method: str, values: dict[str, Any]) -> dict[str, Any]:
        """Send a command; return its result, and store events received meanwhile."""
        self._numbers += 1
        await self._socket.send_json({"id": self._numbers, "method": method, "params": values})
        while True:
            reported = await self._socket.receive_json()
            if reported.get("method") == "log.entryAdded" and reported["params"]["level"] == "error":
                self.complaints.append(str(reported["params"]["text"]))
            if reported.get("id") == self._numbers:
                assert reported["type"] == "success", reported
                return dict(reported["result"])
