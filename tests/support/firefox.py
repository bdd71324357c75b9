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
    """

    def __init__(self, folder: Path, size: tuple[int, int]) -> None:
        self.complaints: list[str] = []  # errors in its console
        self._folder, self._size = folder, size
        self._loop = asyncio.new_event_loop()
        self._numbers = 0

    def __enter__(self) -> Self:
        program = find_firefox()
        assert program is not None
        self._folder.mkdir(parents=True)
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
            self._context = self._ask("browsingContext.getTree")["contexts"][0]["context"]
            width, height = self._size
            self._ask("browsingContext.setViewport", viewport={"width": width, "height": height}, **self._where)
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

    def open(self, address: str) -> None:
        """Go to an address, and wait until the page is loaded."""
        self._ask("browsingContext.navigate", url=address, wait="complete", **self._where)

    def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression on the page, awaiting promises."""
        expression = f"Promise.resolve({script}).then((value) => JSON.stringify(value ?? null))"
        told = self._ask("script.evaluate", expression=expression, target=self._where, awaitPromise=True)
        assert told["type"] == "success", told
        return json.loads(told["result"]["value"])

    def wait_for(self, script: str) -> Any:
        """Wait until an expression is true on the page; return its value."""
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends:
            if value := self.evaluate(script):
                return value
            time.sleep(0.05)
        raise AssertionError(f"{script} did not come true")

    def press(self, *keys: str) -> None:
        """Press keys in turn: characters, or WebDriver's key codes."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._act({"type": "key", "id": "keys", "actions": actions})

    def click(self, selector: str) -> None:
        """Click on the middle of an element."""
        self.drag(selector, (0.5, 0.5), (0.5, 0.5))

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
            told = await self._socket.receive_json()
            if told.get("method") == "log.entryAdded" and told["params"]["level"] == "error":
                self.complaints.append(str(told["params"]["text"]))
            if told.get("id") == self._numbers:
                assert told["type"] == "success", told
                return dict(told["result"])
