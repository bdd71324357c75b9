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
        """Names of the current holders."""

    @abstractmethod
    def ask(self, calls: Mapping[str, Sequence[Call]], seconds: float) -> dict[str, list[Any] | Exception]:
        """Call several holders in parallel, and wait for all: results of the calls of each; or `Lost`, if one is gone
        or has not answered in time; or the error that was raised there.
        """
