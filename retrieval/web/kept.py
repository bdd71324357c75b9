"""Cache of answers about all photos, made once for each state of the catalogue and stored as they are sent."""

import gzip
import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MOST_BYTES = 64 << 20
"""Largest size of all cached answers, in bytes."""
LEAST_ZIPPED = 1024  # bytes: a shorter answer is sent as it is


@dataclass(frozen=True)
class SentAnswer:
    """An answer as it is sent."""

    plain: bytes
    zipped: bytes
    tag: str

    @classmethod
    def of(cls, content: dict[str, Any]) -> "SentAnswer":
        """Write what is answered."""
        plain = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
        zipped = gzip.compress(plain, 1, mtime=0) if len(plain) >= LEAST_ZIPPED else b""
        return cls(plain, zipped, f'"{hashlib.blake2b(plain, digest_size=12).hexdigest()}"')


class AnswerCache:
    """Cache of answers of one revision of the catalogue, by request, of `most` bytes; the least recently used go first.

    Several threads may use it at once.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._revision = -1
        self._answers: OrderedDict[Any, SentAnswer] = OrderedDict()

    def answer(self, revision: int, key: Any, make: Callable[[], dict[str, Any]]) -> SentAnswer:
        """Return the cached answer to a request, or make and cache it. Two threads with the same request both make it:
        neither waits for a slow one with another request.
        """
        with self._lock:
            if revision == self._revision and key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        answer = SentAnswer.of(make())
        with self._lock:
            if revision < self._revision:
                return answer
            if revision > self._revision:
                self._revision = revision
                self._answers.clear()
            self._answers[key] = answer
            while sum(len(one.plain) + len(one.zipped) for one in self._answers.values()) > self._most:
                self._answers.popitem(last=False)
        return answer
