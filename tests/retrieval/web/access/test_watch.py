"""The access log and the figures for Prometheus."""

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from retrieval.web.access.options import AccessLog, LogLevel
from retrieval.web.access.watch import ACCESS, set_up_logs
from tests.retrieval.web.access.conftest import MACHINE, STRANGER, Visitor

Visit = Callable[..., Visitor]


@pytest.fixture
def keep_loggers() -> Any:
    names = ("cairn", "uvicorn", "cairn.access")
    before = [(logging.getLogger(name), logging.getLogger(name).__dict__.copy()) for name in names]
    handlers = [list(logger.handlers) for logger, _ in before]
    yield
    for (logger, state), kept in zip(before, handlers, strict=True):
        logger.__dict__.update(state)
        logger.handlers[:] = kept
        logging.Logger.manager._clear_cache()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("keep_loggers")
def test_the_token_of_a_link_to_an_album_is_not_logged(visit: Visit, capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(LogLevel.ERROR, AccessLog.JSON)
    visitor = visit(access_log=AccessLog.JSON)
    for path in ("/shared/cairn_x", "/c/a.cairn/shared/cairn_x/3/large"):
        visitor.get(path)
    logged = [json.loads(line)["path"] for line in capsys.readouterr().err.splitlines()]
    assert logged == ["/shared/…", "/c/a.cairn/shared/…/3/large"]


@pytest.mark.usefixtures("keep_loggers")
def test_each_request_is_one_line_without_what_was_asked(
    visit: Visit, tokens: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_logs(LogLevel.ERROR, AccessLog.JSON)
    token = {"Authorization": f"Bearer {tokens['read']}"}
    visitor = visit(access_log=AccessLog.JSON)
    visitor.get("/api/things/1?secret=1", headers=token)
    visitor.get("/api/%1b[2J%0aforged%e2%80%a8line")
    visitor.get("/api/breaks", headers=token)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    first, odd, trace, broken = lines[0], lines[1], lines[2:-1], lines[-1]
    assert (first["method"], first["path"], first["status"]) == ("GET", "/api/things/1", 200)
    assert (first["user"], first["peer"], first["level"]) == ("program-read", STRANGER, "info")
    assert first["bytes"] > 10 and first["ms"] > 0 and first["time"].endswith("+00:00")
    assert odd["status"] == 401 and odd["user"] is None and "\x1b" not in odd["path"] and "\n" not in odd["path"]
    assert broken["status"] == 500 and any("RuntimeError: a defect" in one["message"] for one in trace)
    said = json.dumps(lines)
    assert "secret" not in said and tokens["read"] not in said
    set_up_logs(LogLevel.WARNING, AccessLog.TEXT)
    ACCESS.info('- "GET /"')
    assert capsys.readouterr().err.endswith('INFO cairn.access: - "GET /"\n')


def test_figures_count_by_route_and_not_by_address(visit: Visit, tokens: dict[str, str]) -> None:
    visitor = visit(MACHINE)
    token = {"Authorization": f"Bearer {tokens['read']}"}
    for path in ("/api/things/1", "/api/things/2", "/api/search", "/nothing", "/api/x" * 50, "/static/css/cairn.css"):
        visitor.get(path, headers=token)
    visitor.ask("BREW", "/", headers=token)
    answer = visitor.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    lines = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
    assert lines['cairn_requests_total{method="GET",route="/api/things/{number}",status="200"}'] == "2.0"
    assert lines['cairn_requests_total{method="GET",route="other",status="404"}'] == "2.0"
    assert lines['cairn_requests_total{method="GET",route="/static",status="200"}'] == "1.0"
    assert any(line.startswith('cairn_requests_total{method="other"') for line in lines)
    assert lines["cairn_searches_total"] == "1.0"
    assert lines['cairn_request_seconds_count{route="/api/things/{number}"}'] == "2.0"
    assert lines['cairn_request_seconds_bucket{le="+Inf",route="/api/search"}'] == "1.0"
