"""Viewers on other sites, in which people sign in: IIIF Authorization Flow API 2.0, and what Mirador takes of API 1.0.

A viewer reads manifests and `info.json` without a password, opens `ACCESS` in a window to sign in, and asks
`VIEWER_TOKEN` in a hidden frame for a token, which it shows to the probe service of a photo. Pictures come by the
cookie.
"""

import json
from html import escape
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from index.messages import said
from retrieval.web.access.gate import LOGIN, VIEWER_TOKEN, VIEWERS, cookie_of
from retrieval.web.access.sessions import VIEWER_SECONDS, Sessions
from retrieval.web.guard import POLICY
from retrieval.web.languages import spoken
from retrieval.web.rendering import SHELF, show_page

ACCESS = "/iiif/access"
CONTEXT = "http://iiif.io/api/auth/2/context.json"
_EARLIER = "http://iiif.io/api/auth/1"
_LONGEST_MESSAGE = 2000  # characters of what a viewer calls its request


def access_service(request: Request) -> dict[str, Any] | None:
    """Describe where people sign in (section 2.2); None if viewers are not let in."""
    if VIEWERS not in request.scope:
        return None
    server = _server(request)
    return {
        "id": f"{server}{ACCESS}",
        "type": "AuthAccessService2",
        "profile": "active",
        "label": spoken(said("Sign in")),
        "heading": spoken(said("Sign in to see the photos")),
        "confirmLabel": spoken(said("Sign in")),
        "service": [
            {"id": f"{server}{VIEWER_TOKEN}", "type": "AuthAccessTokenService2"},
            {"id": f"{server}{LOGIN}", "type": "AuthLogoutService2", "label": spoken(said("Sign out"))},
        ],
    }


def probe_service(address: str, access: dict[str, Any]) -> dict[str, Any]:
    """Describe where a viewer asks whether it may see something (section 2.1)."""
    return {"id": address, "type": "AuthProbeService2", "service": [access]}


def earlier_service(access: dict[str, Any]) -> dict[str, Any]:
    """Describe where people sign in as the Authentication API 1.0 does."""
    token, leave = access["service"]
    return {
        "@context": f"{_EARLIER}/context.json",
        "@id": access["id"],
        "profile": f"{_EARLIER}/login",
        "label": "Sign in to see the photos",
        "confirmLabel": "Sign in",
        "service": [
            {"@id": token["id"], "profile": f"{_EARLIER}/token"},
            {"@id": leave["id"], "profile": f"{_EARLIER}/logout", "label": "Sign out"},
        ],
    }


def probe_result(status: int) -> dict[str, Any]:
    """Say whether a viewer may see something (section 3.1)."""
    result: dict[str, Any] = {"@context": CONTEXT, "type": "AuthProbeResult2", "status": status}
    if status == 401:
        result["heading"] = spoken(said("Sign in to see the photos"))
        result["note"] = spoken(said("Whoever runs this server gives out names and passwords."))
    return result


def routes(sessions: Sessions | None) -> APIRouter:
    """Make the routes of signing in; without sessions they answer nothing."""
    router = APIRouter(include_in_schema=False)
    if sessions is None:
        return router

    @router.get(ACCESS)
    def access(request: Request) -> Response:
        return show_page(request, "viewer")

    @router.get(VIEWER_TOKEN)
    def token(request: Request, origin: str = "", messageId: str = "") -> Response:
        return _token_page(request, sessions, origin, messageId[:_LONGEST_MESSAGE])

    return router


def _token_page(request: Request, sessions: Sessions, origin: str, message: str) -> Response:
    """Give a viewer that frames this page a token, or say why there is none (sections 2.3 and 3.2)."""
    cookie = cookie_of(request.headers, sessions.cookie)
    message_body: dict[str, Any] = {"@context": CONTEXT, "messageId": message}
    own = f"{request.url.scheme}://{request.url.netloc}"
    is_known = origin == own or origin in request.scope.get(VIEWERS, ())
    if not (is_known and message):
        error = "invalidOrigin" if not is_known else "invalidRequest"
    elif sessions.check(cookie) is None:
        error = "missingAspect"
    else:
        error = ""
    if error:
        named = "missingCredentials" if error == "missingAspect" else error
        heading = spoken(said("Sign in to see the photos"))
        message_body |= {"type": "AuthAccessTokenError2", "profile": error, "heading": heading, "error": named}
    else:
        message_body |= {
            "type": "AuthAccessToken2",
            "accessToken": sessions.viewer_token(cookie),
            "expiresIn": VIEWER_SECONDS,
        }
    script = f"{urlsplit(_server(request)).path}/static/js/access/token.js"
    page = (
        f'<!doctype html><title>Cairn</title><script src="{escape(script)}" data-origin="{escape(origin)}" '
        f'data-message="{escape(json.dumps(message_body))}"></script>'
    )
    policy = POLICY.replace("frame-ancestors 'none'", f"frame-ancestors {origin}") if is_known else POLICY
    return HTMLResponse(page, headers={"Content-Security-Policy": policy, "Cache-Control": "no-store"})


def _server(request: Request) -> str:
    """Address of the server, or of its list of collections, without a slash at the end."""
    shelf = request.scope.get(SHELF)
    base = urlsplit(str(request.base_url))
    return urlunsplit(base._replace(path=shelf if shelf is not None else base.path)).rstrip("/")
