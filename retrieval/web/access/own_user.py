"""A server without a password file answers only the user who started it, not other users of the machine. The kernel
says who owns a connection, where it can (`peers.py`); the token in the address that `cairn open` prints works anywhere.
"""

import hmac
import os
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from retrieval.web.access.peers import kernel_tells

PEER_USER = "cairn.peer_user"
"""Key in the state of a request: number of the user of this machine who owns its connection."""
ROOT = 0
PARAMETER = "token"
"""Name of the parameter of an address that holds the token of `cairn open`."""
STRANGER = (
    "This server answers only the user of this machine who started it: start it with --every-user or --password-file "
    "to let others in."
)
NO_TOKEN = (
    "This server answers only the user who started it: open the address with the token that cairn open has printed, or "
    "run cairn open again to see it."
)


class OwnUser:
    """Distinguishes the user who runs the server from others, by number, or by a secret token ("": no secret)."""

    def __init__(self, user: int, token: str = "") -> None:
        self._users, self._token = frozenset((user, ROOT)), token
        # Cookies are sent to all servers of a host, whatever their ports.
        self._cookie = f"cairn-own-{quote(token[:8], safe='')}"

    def admits(self, request: Request, sent: str | None) -> bool:
        """Whether a request comes from this user; `sent` is its token."""
        if request.scope.get("state", {}).get(PEER_USER) in self._users:
            return True
        return any(self._is_token(one) for one in (sent, request.cookies.get(self._cookie)))

    def enter(self, request: Request) -> Response | None:
        """Redirect a browser from an address with the token to the one without it, and set a cookie instead."""
        fields = parse_qsl(request.url.query, keep_blank_values=True)
        token = dict(fields).get(PARAMETER)
        if request.method != "GET" or not self._is_token(token):
            return None
        rest = urlencode([(name, value) for name, value in fields if name != PARAMETER])
        answer = RedirectResponse(
            f"/{quote(str(request.scope['path']).lstrip('/'))}" + (f"?{rest}" if rest else ""), 303
        )
        answer.headers["Cache-Control"] = "no-store"
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="lax")
        return answer

    def refusal(self) -> str:
        """Answer to other users."""
        return NO_TOKEN if self._token else STRANGER

    def _is_token(self, token: str | None) -> bool:
        return bool(self._token and token) and hmac.compare_digest(str(token).encode(), self._token.encode())


def own_user(token: str) -> OwnUser | None:
    """Make what distinguishes this process's user from others; None without a token and with a kernel that does not
    say.
    """
    if not token and not kernel_tells():
        return None
    return OwnUser(os.geteuid() if hasattr(os, "geteuid") else -1, token)
