"""Requests to other hosts, by one policy: for searching, only this module opens such connections (`connections`).

- ``http`` and ``https`` alone, without user names in addresses; no proxy is asked.
- A host is contacted only at public addresses, unless it is allowed by name. The connection goes to the address that
  was checked, even if the name resolves to another one a moment later (DNS rebinding); TLS verifies the name.
- A redirect is an address like any other, and checked again.
- Sizes, times, redirects, attempts and waits are bounded.
- One host gets few requests at a time, and none for as long as it asks (``Retry-After``).
- The ``robots.txt`` of a host is obeyed, except for hosts that the user names; it is read once.
"""

import http.client
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from time import monotonic
from urllib.parse import urljoin

from index.messages import Message, said
from retrieval.iiif.addresses import FetchError, PageAddress, RefusedError, is_public, parse_address, plain_host
from retrieval.iiif.connections import PlainConnection, SecureConnection, read_answer, seconds_to_wait
from retrieval.iiif.robots import RobotRules, read_rules

TOKENS = "CAIRN_IIIF_TOKENS"
"""Variable of the environment with access tokens, HOST=TOKEN, with spaces between them."""

_LARGEST_RULES = 1 << 20  # bytes of robots.txt: RFC 9309 asks for half as much at least
_LATER = frozenset((408, 425, 429, 500, 502, 503, 504))  # temporary errors
_MOVED = frozenset((301, 302, 303, 307, 308))


def how_to_sign_in(host: str) -> Message:
    """Say how a page is fetched that a host shows to people who sign in."""
    return Message(
        "its library has people sign in; an access token that it gave you is sent where the environment has "
        "{variable}={host}=TOKEN",
        variable=TOKENS,
        host=host,
    )


class WithheldError(FetchError):
    """A host does not give out what is at an address."""


class SignInError(WithheldError):
    """A host requires signing in for an address."""


class GoneError(WithheldError):
    """There is nothing at an address, or no longer."""


class _LaterError(FetchError):
    """A temporary error."""

    def __init__(self, text: str, wait: float | None = None, **values: object) -> None:
        super().__init__(text, **values)
        self.wait = wait  # seconds that the host asks for


@dataclass(frozen=True)
class FetchPolicy:
    """Which requests are allowed, and how long they may take."""

    allowed_hosts: Collection[str] = ()  # that may have private addresses
    ignore_robots: Collection[str] = ()  # hosts whose robots.txt is not asked for
    tokens: Mapping[str, str] = field(default_factory=dict)  # access tokens of hosts (IIIF Authorization Flow)
    redirects: int = 5
    attempts: int = 4
    connect_seconds: float = 10.0  # for each address of a host
    seconds: float = 120.0  # for a request, from the connection to the last byte
    longest_wait: float = 120.0  # longest wait that a host may ask for, in seconds
    at_once: int = 2  # requests to one host
    failures: int = 10  # failures in a row after which a host gets no more requests
    sleep: Callable[[float], object] | None = None  # in place of waiting, for tests


@dataclass(frozen=True)
class HostAnswer:
    """Content of an address."""

    address: str  # after redirects
    content: bytes
    etag: str = ""
    modified: str = ""
    is_same: bool = False  # not modified: there is no content


class Fetcher:
    """Sends requests to other hosts, by one policy. Calls from several threads are safe."""

    def __init__(self, policy: FetchPolicy | None = None) -> None:
        from importlib.metadata import PackageNotFoundError, version

        self.policy = policy or FetchPolicy()
        self._allowed = {plain_host(host) for host in self.policy.allowed_hosts}
        self._tokens = {plain_host(host): token for host, token in self.policy.tokens.items()}
        self._free = {plain_host(host) for host in self.policy.ignore_robots}
        try:
            number = version("cairn-search")
        except PackageNotFoundError:  # from a checkout that is not installed
            number = "0"
        self.agent = f"Cairn/{number} (cairn-search; photo search; reads IIIF when its user asks for it)"
        self._lock = threading.Lock()
        self._turns: dict[str, threading.Semaphore] = {}
        self._not_before: dict[str, float] = {}  # by host
        self._idle: dict[tuple[str, str, int], list[PlainConnection]] = {}
        self._active: set[PlainConnection] = set()
        self._failed: Counter[str] = Counter()  # requests in a row, by host
        self._rules: dict[tuple[str, str, int], RobotRules | Message] = {}  # or why no request is allowed
        self._delays: dict[str, float] = {}  # seconds between requests, by host
        self._reading_rules = threading.Lock()
        self._ahead: dict[str, HostAnswer] = {}  # prefetched answers, by address
        self._stopped = threading.Event()

    def __enter__(self) -> "Fetcher":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End all requests and waits of other threads, and close the connections that were kept."""
        self._stopped.set()
        with self._lock:
            for one in self._active:
                one.cut()
            for some in self._idle.values():
                for one in some:
                    one.close()
            self._idle.clear()

    def fetch(self, address: str, most: int, *, accept: str = "*/*", etag: str = "", modified: str = "") -> HostAnswer:
        """Fetch an address, if it was modified. Raises RefusedError if the policy or the host's ``robots.txt`` forbids
        it, GoneError for status 404 or 410, and FetchError if it cannot be fetched now.
        """
        ahead = self._ahead.pop(address, None)
        if ahead is not None:
            return ahead
        headers = {"User-Agent": self.agent, "Accept": accept, "Accept-Encoding": "gzip"}
        if etag:
            headers["If-None-Match"] = etag
        if modified:
            headers["If-Modified-Since"] = modified
        return self._follow(parse_address(address), headers, most)

    def fetch_ahead(self, address: str, most: int, *, accept: str = "*/*") -> HostAnswer:
        """Fetch an address, and keep the answer for the next call of `fetch` with it."""
        self._ahead[address] = answer = self.fetch(address, most, accept=accept)
        return answer

    def _follow(self, target: PageAddress, headers: Mapping[str, str], most: int, by_rules: bool = True) -> HostAnswer:
        """Send requests until there is an answer, following redirects."""
        redirects = attempts = 0
        while True:
            if by_rules and target.host not in self._free:
                self._keep_to_rules(target)
            if self._failed[target.host] >= self.policy.failures:
                raise FetchError(
                    "{host} failed {times} times in a row, and is not asked again: run the same command again later",
                    host=target.host,
                    times=self.policy.failures,
                )
            try:
                answer = self._ask(target, headers, most)
            except _LaterError as error:
                attempts += 1
                wait = error.wait if error.wait is not None else 2.0 ** (attempts - 1)
                if attempts >= self.policy.attempts or wait > self.policy.longest_wait:
                    self._failed[target.host] += 1
                    reason = error.message
                    if error.wait:
                        seconds = f"{wait:.0f}"
                        reason = Message(
                            "{reason}; it asks to be left alone for {seconds} s", reason=reason, seconds=seconds
                        )
                    raise FetchError("{reason}: run the same command again later", reason=reason) from None
                with self._lock:
                    until = max(self._not_before.get(target.host, 0.0), monotonic() + wait)
                    self._not_before[target.host] = until
                continue
            self._failed[target.host] = 0
            if isinstance(answer, HostAnswer):
                return answer
            redirects += 1
            if redirects > self.policy.redirects:
                raise RefusedError("{name} leads from one address to another without end", name=target.text[:200])
            target = answer

    def _keep_to_rules(self, target: PageAddress) -> None:
        """Raise FetchError if the robots.txt of a host forbids an address, or cannot be fetched."""
        with self._reading_rules:
            rules = self._rules.get(target[:3])
            if rules is None:
                rules = self._rules[target[:3]] = self._read_rules(target._replace(target="/robots.txt"))
        if isinstance(rules, Message):
            raise FetchError(rules)
        if not rules.allows(target.target):
            raise RefusedError(
                "the robots.txt of {host} forbids programs to fetch {path}: if you have the library's permission, "
                "{--ignore-robots} {host} fetches it anyway",
                host=target.host,
                path=target.target[:200],
            )

    def _read_rules(self, target: PageAddress) -> RobotRules | Message:
        """Read a robots.txt (RFC 9309, section 2.3.1): without one all is allowed; if it cannot be read, nothing."""
        try:
            headers = {"User-Agent": self.agent, "Accept": "text/plain, */*;q=0.5", "Accept-Encoding": "gzip"}
            content = self._follow(target, headers, _LARGEST_RULES, by_rules=False).content
        except RefusedError:
            raise
        except WithheldError:
            return RobotRules()
        except FetchError as error:
            return Message(
                "{host} is not asked, as its robots.txt cannot be had: {error}", host=target.host, error=error
            )
        rules = read_rules(content.decode("utf-8-sig", "replace"))
        if rules.delay > self.policy.longest_wait:
            return Message(
                "the robots.txt of {host} asks programs to wait {seconds} s between requests",
                host=target.host,
                seconds=f"{rules.delay:,.0f}",
            )
        with self._lock:
            self._delays[target.host] = max(rules.delay, self._delays.get(target.host, 0.0))
        return rules

    def _ask(self, target: PageAddress, headers: Mapping[str, str], most: int) -> "HostAnswer | PageAddress":
        """Send one request; return the answer, or the address of a redirect."""
        with self._lock:
            turn = self._turns.setdefault(target.host, threading.Semaphore(self.policy.at_once))
        with turn:
            self._wait(target.host)
            return self._request(target, headers, most)

    def _wait(self, host: str) -> None:
        """Wait for as long as a host has asked."""
        with self._lock:
            now, until = monotonic(), self._not_before.get(host, 0.0)
            if delay := self._delays.get(host):
                self._not_before[host] = max(now, until) + delay
        if until > now:
            (self.policy.sleep or self._stopped.wait)(until - now)
            with self._lock:
                if self._not_before.get(host) == until:
                    del self._not_before[host]

    def _request(self, target: PageAddress, headers: Mapping[str, str], most: int) -> "HostAnswer | PageAddress":
        name = target.text[:200]
        if self._stopped.is_set():
            raise FetchError("no more is fetched")
        connection, is_kept = self._connection(target)
        with self._lock:
            self._active.add(connection)
        timer = threading.Timer(self.policy.seconds, connection.cut)
        timer.daemon = True
        timer.start()
        whole = False
        try:
            connection.request("GET", target.target, headers={**headers, **self._token(target)})
            answer = connection.getresponse()
            status = answer.status
            if status in _MOVED and (location := answer.getheader("Location")):
                return parse_address(urljoin(target.text, location))
            if status == 304 and ("If-None-Match" in headers or "If-Modified-Since" in headers):
                answer.read()
                whole = not answer.will_close
                return HostAnswer(target.text, b"", is_same=True)
            if status in (404, 410):
                raise GoneError("there is nothing at {name} (status {status})", name=name, status=status)
            if status in _LATER:
                wait = seconds_to_wait(answer)
                raise _LaterError("{name} does not answer now (status {status})", wait, name=name, status=status)
            if status == 401:
                how = how_to_sign_in(target.host)
                raise SignInError("{name} is not given out (status 401): {how}", name=name, how=how)
            if status != 200:
                kind = WithheldError if 400 <= status < 500 else FetchError
                raise kind(said("{name} is not given out (status {status})"), name=name, status=status)
            content = read_answer(answer, most, name)
            whole = not answer.will_close
            etag, modified = (answer.getheader(one, "")[:500] for one in ("ETag", "Last-Modified"))
            return HostAnswer(target.text, content, etag, modified)
        except ssl.SSLCertVerificationError as error:
            raise FetchError(
                "{host} does not prove that it is that host ({error})", host=target.host, error=error.verify_message
            ) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            if connection.was_cut:
                seconds = f"{self.policy.seconds:.0f}"
                raise FetchError("{name} took more than {seconds} s", name=name, seconds=seconds) from None
            # A host may close an idle connection at any time: that is not a failure.
            raise _LaterError(
                "the connection to {host} failed ({error})",
                0.0 if is_kept else None,
                host=target.host,
                error=str(error) or type(error).__name__,
            ) from None
        finally:
            timer.cancel()
            with self._lock:
                self._active.discard(connection)
            if whole and not connection.was_cut:
                with self._lock:
                    self._idle.setdefault(target[:3], []).append(connection)
            else:
                connection.close()

    def _token(self, target: PageAddress) -> dict[str, str]:
        """The header with the token of a host, which travels by TLS, or to a host that the user names."""
        token = self._tokens.get(target.host) if target.scheme == "https" or target.host in self._allowed else None
        return {} if token is None else {"Authorization": f"Bearer {token}"}

    def _connection(self, target: PageAddress) -> tuple[PlainConnection, bool]:
        """Return a connection, and whether it is left from an earlier request."""
        with self._lock:
            if idle := self._idle.get(target[:3]):
                return idle.pop(), True
        kind = SecureConnection if target.scheme == "https" else PlainConnection
        return kind(target, self._check(target), self.policy.connect_seconds, self.policy.seconds), False

    def _check(self, target: PageAddress) -> list[str]:
        """Return the allowed addresses of a host; raises RefusedError if it has none."""
        try:
            resolved = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise _LaterError("there is no host {host} ({reason})", host=target.host, reason=reason) from None
        all_of = list(dict.fromkeys(str(one[4][0]) for one in resolved))
        public = all_of if target.host in self._allowed else [one for one in all_of if is_public(one)]
        if not public:
            raise RefusedError(
                "{host} has no address on the public Internet: {--allow-host|allow_hosts} {host} allows it",
                host=target.host,
            )
        return public[:4]
