"""Rules of a host for programs in its ``robots.txt`` (RFC 9309), and the delay between requests (``Crawl-delay``)."""

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

PRODUCT = "cairn"
"""Names of this program in ``robots.txt``, in lower case."""

_ESCAPED = re.compile("(?:%[0-9a-fA-F]{2})+")
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)


@dataclass(frozen=True)
class RobotRules:
    """Rules for requests to a host."""

    rules: tuple[tuple[str, bool], ...] = ()  # patterns of paths, and whether they are allowed
    delay: float = 0.0  # seconds between requests

    def allows(self, target: str) -> bool:
        """Whether a path with its query is allowed: the longest pattern counts, of equals the one that allows."""
        target = _plain(target)
        matching = ((len(pattern), allowed) for pattern, allowed in self.rules if _matches(pattern, target))
        return max(matching, default=(0, True))[1]


def read_rules(text: str) -> RobotRules:
    """Read the rules for this program or, without such rules, those for all programs."""
    rules: dict[str, list[tuple[str, bool]]] = {}
    delays: dict[str, float] = {}
    agents: list[str] = []
    is_head = False  # of a group: lines that name programs
    for line in text.splitlines():
        key, _, value = line.partition("#")[0].partition(":")
        key, value = key.strip().lower(), value.strip()
        if key == "user-agent":
            agents = [*(agents if is_head else ()), value.partition("/")[0].lower()]
            is_head = True
            rules.setdefault(agents[-1], [])
        elif key in ("allow", "disallow", "crawl-delay"):
            is_head = False
            for agent in agents:
                if key != "crawl-delay" and value:
                    rules[agent].append((_plain(value), key == "allow"))
                elif _SECONDS.fullmatch(value):
                    delays[agent] = max(float(value), delays.get(agent, 0.0))
    agent = PRODUCT if PRODUCT in rules else "*"
    return RobotRules(tuple(rules.get(agent, ())), delays.get(agent, 0.0))


def _matches(pattern: str, target: str) -> bool:
    """Whether a path matches a pattern from its beginning: ``*`` stands for anything, ``$`` for the end."""
    is_whole = pattern.endswith("$")
    first, *others = pattern.removesuffix("$").split("*")
    if not others:
        return target == first if is_whole else target.startswith(first)
    end = others.pop() if is_whole else ""
    at = len(first)
    if not target.startswith(first):
        return False
    for part in others:
        at = target.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return target.endswith(end) and len(target) - len(end) >= at


def _plain(text: str) -> str:
    """Normalise escapes, so that equivalent texts are equal."""
    text = _ESCAPED.sub(lambda found: quote(unquote_to_bytes(found[0]), safe=""), text)
    return quote(text, safe="/:@!$&'()*+,;=~%-._?#[]")
