"""Fair queue: clients take turns, however many jobs each of them has waiting."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Generic, Protocol, TypeVar


class OfClient(Protocol):
    """The waiting item."""

    @property
    def client(self) -> str:
        """Its client."""


T = TypeVar("T", bound=OfClient)


class Turns(Generic[T]):
    """Queue of several clients, at most `most`: the next item is that of the client whose last turn was longest ago."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()  # by client; the next comes first

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._waiting.values())

    def add(self, one: T) -> T | None:
        """Enqueue an item; if the queue is full, return the newest item of the client with the most."""
        mine = self._waiting.setdefault(one.client, deque())
        mine.append(one)
        if len(self) <= self._most:
            return None
        mine.pop()  # the new item counts last: of two clients with equally many, the newcomer is refused
        longest = max(self._waiting.values(), key=len)
        refused = one
        if len(longest) > len(mine) + 1:
            refused = longest.pop()
            mine.append(one)
        if not mine:
            del self._waiting[one.client]
        return refused

    def take(self) -> T | None:
        """Return what is next; None if nothing waits."""
        if not self._waiting:
            return None
        client, own = self._waiting.popitem(last=False)
        one = own.popleft()
        if own:
            self._waiting[client] = own
        return one

    def take_out(self, wanted: Callable[[T], bool]) -> list[T]:
        """Remove and return the waiting items that match."""
        matches = [one for one in self if wanted(one)]
        for one in matches:
            own = self._waiting[one.client]
            own.remove(one)
            if not own:
                del self._waiting[one.client]
        return matches
