"""Name the browser and system of a request in familiar words, from its user agent."""

_BROWSERS = (  # the first that is named: most of them name others, too
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("Chrome", "Chrome"),
    ("CriOS", "Chrome"),
    ("Safari", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def device_of(agent: str) -> tuple[str, str]:
    """Name the browser and the system of a User-Agent (RFC 9110, 10.1.5); "" for what is not known.

    >>> device_of("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0")
    ('Firefox', 'Linux')
    >>> device_of("curl/8.5.0")
    ('', '')
    """
    browser, system = (next((word for mark, word in table if mark in agent), "") for table in (_BROWSERS, _SYSTEMS))
    return browser, system
