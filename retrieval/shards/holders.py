"""The holders of shards as the front reaches them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from retrieval.shards.holder import Call


class Lost(Exception):
    """Holders did not answer."""

    def __init__(self, members: Sequence[str]) -> None:
        super().__init__(", ".join(members))
        self.members = tuple(members)


class Holders(ABC):
    """Processes that may hold shards, by name."""

    @abstractmethod
    def members(self) -> list[str]:
        """Names of those that are there now."""

    @abstractmethod
    def ask(self, calls: Mapping[str, Sequence[Call]], seconds: float) -> dict[str, list[Any] | Exception]:
        """Ask several at once, and wait for all: what the calls of each gave; or `Lost`, where one has gone or has not
        answered in time; or what went wrong there.
        """
