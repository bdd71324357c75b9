"""Every route that may change something asks for the role write, or is known to change nothing."""

from pathlib import Path

from fastapi.routing import APIRoute

from retrieval.web.access.gate import SAFE
from retrieval.web.access.options import AccessOptions
from retrieval.web.access.rights import WRITING
from retrieval.web.app import create_app
from retrieval.web.service import ServeOptions
from tests.conftest import Indexed

# Requests with a body that look, search or take away, and those that sign in and out.
LOOKING = {
    *(("POST", "/api/search"), ("POST", "/api/match"), ("POST", "/api/preview"), ("POST", "/api/export")),
    *(("POST", "/login"), ("POST", "/logout")),
}


def test_every_route_that_may_change_something_asks_for_the_role(indexed: Indexed, tmp_path: Path) -> None:
    app = create_app(indexed.folder, ServeOptions(cache=tmp_path, access=AccessOptions()))
    try:
        open_to_all = {
            (method, route.path)
            for route in app.routes
            if isinstance(route, APIRoute) and not set(WRITING) & set(route.dependencies)
            for method in (route.methods or ()) - SAFE
        }
        assert open_to_all == LOOKING
    finally:
        app.state.service.collection.catalogue.close()
