"""Devices by what their browsers call themselves."""

import pytest

from retrieval.web.access.devices import device_of

AGENTS = [
    ("Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox", "Windows"),
    (
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/138.0 Safari/537.36 Edg/138.0",
        "Edge",
        "Windows",
    ),
    (
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/17.5 Safari/605.1.15",
        "Safari",
        "macOS",
    ),
    (
        "Mozilla/5.0 (iPad; CPU OS 17_5 like Mac OS X) AppleWebKit/605.1.15 CriOS/126.0 Mobile Safari/604.1",
        "Chrome",
        "iPad",
    ),
    ("Mozilla/5.0 (Android 14; Mobile; rv:127.0) Gecko/127.0 Firefox/127.0", "Firefox", "Android"),
    ("Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 Chrome/126.0 Safari/537.36", "Chrome", "ChromeOS"),
    ("python-httpx/0.28", "", ""),
    ("", "", ""),
    ("\x1b]0;x\x07\u202e", "", ""),
]


@pytest.mark.parametrize(("agent", "browser", "system"), AGENTS)
def test_a_device_is_named_in_words_of_ours_alone(agent: str, browser: str, system: str) -> None:
    assert device_of(agent) == (browser, system)
