"""Rate limits for requests that cost the server work."""

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from fastapi import Depends, Request

from index.messages import said
from retrieval.web.problems import ProblemError

CLIENT = "cairn.client"
"""Key in a request's scope: its client, see `client_key`."""
LIMITER = "cairn.limiter"
"""Key in a request's scope: the `Limiter` of searches; without it there is no limit."""


class Limiter:
    """Limits how often each client does something (token bucket): `number` times at once, and again in `seconds`.

    It remembers a number of `clients`, those seen last.
    """

    def __init__(
        self, number: int, seconds: float, clients: int = 10_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._number, self._rate, self._clients, self._clock = number, number / seconds, clients, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # times left, and when that was counted

    def take(self, client: str) -> float:
        """Use one turn; return 0, or, if none is left, the seconds until the next."""
        now = self._clock()
        left, then = self._left.get(client, (float(self._number), now))
        left = min(self._number, left + (now - then) * self._rate)
        wait = 0.0 if left >= 1 else (1 - left) / self._rate
        self._keep(client, left - 1 if not wait else left, now)
        return wait

    def give_back(self, client: str) -> None:
        """Give one turn back."""
        left, then = self._left.get(client, (float(self._number), self._clock()))
        self._keep(client, min(self._number, left + 1), then)

    def _keep(self, client: str, remaining: float, now: float) -> None:
        self._left[client] = remaining, now
        self._left.move_to_end(client)
        while len(self._left) > self._clients:
            self._left.popitem(last=False)


class ConnectionSlot:
    """The place of a listening connection; it is freed once no reference to it is left."""


class Listeners:
    """Limits the connections of the server to `most`, and those of one client to the newest `of_one`."""

    def __init__(self, most: int = 64, of_one: int = 8) -> None:
        self._most, self._of_one = most, of_one
        # The oldest first. A connection that breaks off before it was answered gives its place back as it is forgotten.
        self._clients: WeakKeyDictionary[ConnectionSlot, str] = WeakKeyDictionary()

    def enter(self, client: str) -> ConnectionSlot | None:
        """Take a place for a client; return it for `leave`, or None if none is free."""
        own = [one for one, of in self._clients.items() if of == client]
        if len(own) >= self._of_one:
            self.leave(own[0])
        elif len(self._clients) >= self._most:
            return None
        place = ConnectionSlot()
        self._clients[place] = client
        return place

    def leave(self, place: ConnectionSlot) -> None:
        """Give a place back; that may be done after it was taken away, too."""
        self._clients.pop(place, None)

    def __contains__(self, place: ConnectionSlot) -> bool:
        return place in self._clients

    def __len__(self) -> int:
        return len(self._clients)


def client_key(address: str, user: str | None = None) -> str:
    """Name a client: by user name, or else by address; of IPv6 by the network of 64 bits, which is one client's.

    >>> client_key("2001:db8::1:2"), client_key("192.0.2.7"), client_key("192.0.2.7", "anna")
    ('2001:db8::/64', '192.0.2.7', 'anna of the password file')
    """
    if user is not None:
        return f"{user} of the password file"
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if ip.version == 4:
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((ip, 64), strict=False))


def too_often(sentence: str, wait: float) -> ProblemError:
    """The answer to a client that must wait some ``{seconds}``: two at least, for a plural in any sentence."""
    seconds = max(math.ceil(wait), 2)
    return ProblemError(429, sentence, retry=seconds, seconds=seconds)


def _spend(request: Request) -> None:
    """Refuse a client that searches too often."""
    limiter: Limiter | None = request.scope.get(LIMITER)
    if limiter is not None and (wait := limiter.take(request.scope[CLIENT])):
        raise too_often(said("You have searched often in a short time: try again in {seconds} seconds."), wait)


SEARCHING: list[Any] = [Depends(_spend)]
"""Dependency of every route that searches or takes an upload: ``dependencies=SEARCHING``."""
