"""Logging of requests, and metrics for Prometheus."""

import json
import logging
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from index.text import printable_name
from retrieval.web.access.gate import SHARED
from retrieval.web.access.options import AccessLog, LogLevel
from retrieval.web.access.rights import caller_of

if TYPE_CHECKING:
    from retrieval.web.service import Service

ACCESS = logging.getLogger("cairn.access")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
SEARCHES = ("/api/search", "/api/match")
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class RequestFigures:
    """Counts of requests, and the state of the collections that `services` returns."""

    def __init__(self, services: "Callable[[], Iterable[Service]]") -> None:
        self._registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self._requests = Counter("cairn_requests", "Requests that were answered.", labels, registry=self._registry)
        self._seconds = Histogram(
            *("cairn_request_seconds", "Seconds until a request was answered whole.", ("route",)),
            buckets=SECONDS,
            registry=self._registry,
        )
        self._searches = Counter("cairn_searches", "Searches and matches that were answered.", registry=self._registry)
        self._registry.register(_ServerFigures(services))

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self._requests.labels(method if method in METHODS else "other", route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        if route.endswith(SEARCHES) and status == 200:
            self._searches.inc()

    def text(self) -> str:
        """All figures in Prometheus' text format."""
        return generate_latest(self._registry).decode()


class _ServerFigures(Collector):
    """Read at each scrape, so that nothing is counted twice."""

    def __init__(self, services: "Callable[[], Iterable[Service]]") -> None:
        self._services = services

    def collect(self) -> Iterator[Metric]:
        photos = GaugeMetricFamily("cairn_photos", "Photos of a collection.", labels=["collection"])
        pool = ("collection", "pool")
        waiting = GaugeMetricFamily("cairn_queue_length", "Jobs that no worker has begun.", labels=pool)
        alive = GaugeMetricFamily("cairn_workers_alive", "Worker processes.", labels=pool)
        opened = GaugeMetricFamily("cairn_open", "Whether all is open that searches need.", labels=["collection"])
        for service in self._services():
            photos.add_metric([service.name], service.count())
            opened.add_metric([service.name], service.searching.is_open)
            for name, one in (("search", service.searching), ("pictures", service.decoding)):
                waiting.add_metric([service.name, name], one.waiting())
                alive.add_metric([service.name, name], len(one.processes()))
        yield from (photos, waiting, alive, opened)


class Watch:
    """Middleware that counts and logs requests."""

    def __init__(self, app: ASGIApp, figures: RequestFigures, log: AccessLog) -> None:
        self._app, self._figures, self._log = app, figures, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, and log it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        status, size = 500, 0
        # While it is answered, routes below a path of their own write to the scope.
        path, root, peer = scope["path"], scope.get("root_path", ""), (scope.get("client") or ("-",))[0]

        async def counted(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, counted)
        finally:
            seconds = time.perf_counter() - begun
            self._figures.count(scope["method"], route_of(scope, root), status, seconds)
            if self._log is not AccessLog.NONE:
                fields = {
                    "method": printable_name(scope["method"]),
                    "path": printable_name(_discreet(path)),
                    "status": status,
                    "ms": round(1000 * seconds, 1),
                    "bytes": size,
                    "user": caller_of(scope).name,
                    "peer": printable_name(peer),
                }
                line = '{peer} {user} "{method} {path}" {status} {ms} ms {bytes} bytes'
                ACCESS.info(line.format_map(fields | {"user": fields["user"] or "-"}), extra={"fields": fields})


def _discreet(path: str) -> str:
    """Return a path without the token of a link to an album."""
    return re.sub(rf"({SHARED})[^/]+", r"\1…", path, count=1)


def route_of(scope: Scope, root: str = "") -> str:
    """Return the route that answered below `root`, with {names} for its parameters, so that there are few."""
    below = str(scope.get("root_path", ""))[len(root) :]
    route = getattr(scope.get("route"), "path", None)
    if isinstance(route, str):
        return f"/{below.split('/')[1]}/{{name}}{route}" if below else route
    return "/static" if below.endswith("/static") else "other"


class _Lines(logging.Formatter):
    """Records as lines of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        more: dict[str, Any] = getattr(record, "fields", {"message": record.getMessage()})
        return json.dumps(fields | more, ensure_ascii=False)


def set_up_logs(level: LogLevel, access: AccessLog) -> None:
    """Have logs written to standard error: as lines of JSON where the access log is, else as text."""
    handler = logging.StreamHandler(sys.stderr)
    text = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    handler.setFormatter(_Lines() if access is AccessLog.JSON else logging.Formatter(text))
    for name in ("cairn", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
        logger.setLevel(level.upper())
    ACCESS.setLevel(logging.INFO)  # it is chosen by an option of its own
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # it warns about every damaged form
