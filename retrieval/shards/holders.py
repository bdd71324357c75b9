"""The holders of shards as the front reaches them; here those in its own process, which tests and scripts use."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from retrieval.shards.holder import Call, Holder


class Lost(Exception):
    """Holders did not answer.

    Parameters
    ----------
    members : iterable of str
        Who.
    """

    def __init__(self, members: Sequence[str]) -> None:
        super().__init__(", ".join(members))
        self.members = tuple(members)


class Holders(ABC):
    """Who may hold shards, by names."""

    @abstractmethod
    def members(self) -> list[str]:
        """Names of those that are there now."""

    @abstractmethod
    def ask(self, calls: Mapping[str, Sequence[Call]], seconds: float) -> dict[str, list[Any] | Exception]:
        """Ask several at once, and wait for all.

        Parameters
        ----------
        calls : mapping of str to sequence of Call
            What each does, by its name.
        seconds : float
            That they have.

        Returns
        -------
        dict of str to list or Exception
            What the calls of each gave; or `Lost`, where one has gone or has not answered in time; or what went wrong
            there.
        """


class LocalHolders(Holders):
    """Holders in this process.

    Parameters
    ----------
    number : int
        How many.
    """

    def __init__(self, number: int) -> None:
        self.there: dict[str, Holder] = {f"holder-{one}": Holder() for one in range(number)}
        self.seconds: dict[str, float] = dict.fromkeys(self.there, 0.0)  # of processor time that each has taken
        self.messages = 0

    def members(self) -> list[str]:
        """Names of the holders: see `Holders.members`."""
        return list(self.there)

    def ask(self, calls: Mapping[str, Sequence[Call]], seconds: float) -> dict[str, list[Any] | Exception]:
        """Ask several, one after another: see `Holders.ask`."""
        found: dict[str, list[Any] | Exception] = {}
        for member, some in calls.items():
            self.messages += 1
            began = time.process_time()
            try:
                found[member] = self.there[member].run(some) if member in self.there else Lost([member])
            except Exception as error:  # as it would come back from another machine
                found[member] = error
            if member in self.seconds:
                self.seconds[member] += time.process_time() - began
        return found
