"""Requests that drip in: bounded in bytes and in time."""

import asyncio

from fastapi import HTTPException
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from retrieval.web.access.options import AccessOptions


class Patience:
    """Middleware for the time limits of requests."""

    def __init__(self, app: ASGIApp, options: AccessOptions) -> None:
        self._app, self._options = app, options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        options, clock = self._options, asyncio.get_running_loop().time
        # Forms with uploads have limits of their own, and are written to a disk.
        is_form = Headers(scope=scope).get("content-type", "").lower().startswith("multipart/form-data")
        begun, received, whole = clock(), 0, False

        async def patient_receive() -> Message:
            nonlocal received, whole
            if whole:  # what comes now is that the client has gone
                return await receive()
            limit = begun + options.body_seconds + received / options.body_rate
            try:
                async with asyncio.timeout(limit - clock()):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408) from None
            received += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if received > options.body_bytes and not is_form:
                raise HTTPException(413)
            return message

        await self._app(scope, patient_receive, send)
