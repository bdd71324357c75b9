"""Every route that may change something asks for the role write, or is known to change nothing."""

from fastapi import APIRouter
from fastapi.routing import APIRoute

from retrieval.web.access import signing
from retrieval.web.access.gate import SAFE
from retrieval.web.access.rights import WRITING
from retrieval.web.access.watch import RequestFigures
from retrieval.web.routes.every import ROUTERS
from retrieval.web.shelf import routes as shelf

# Requests with a body that look, search or take away, and those that sign in and out.
LOOKING = {
    *(("POST", "/api/search"), ("POST", "/api/match"), ("POST", "/api/preview"), ("POST", "/api/export")),
    ("POST", "/api/photos/summary"),
    *(("POST", "/login"), ("POST", "/logout"), ("DELETE", "/api/sessions"), ("DELETE", "/api/sessions/{number}")),
}


def _open(router: APIRouter) -> set[tuple[str, str]]:
    """Methods and paths of requests that may change something, and for which nobody needs the role."""
    depended = [one.dependency for one in router.dependencies]
    wanted = WRITING[0].dependency
    return {
        (method, route.path)
        for route in router.routes
        if isinstance(route, APIRoute) and wanted not in [*depended, *(one.dependency for one in route.dependencies)]
        for method in (route.methods or set()) - SAFE
    }


def test_every_route_that_may_change_something_asks_for_the_role() -> None:
    routers = (*ROUTERS, shelf.router, shelf.pages, signing.routes(None, RequestFigures(list), list))
    assert sum(len(router.routes) for router in routers) > 30
    assert set().union(*map(_open, routers)) == LOOKING
