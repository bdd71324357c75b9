"""Additions to the OpenAPI document besides routes and models: the header of requests, and answers other than JSON."""

from collections.abc import Iterator
from typing import Any

from retrieval.web.access.gate import OWN, SAFE
from retrieval.web.access.rights import describe_signing_in

Json = dict[str, Any]

_HEADER = {
    "name": OWN,
    "in": "header",
    "required": True,
    "schema": {"type": "string", "default": "1"},
    "description": "Any value: it shows that no other site has a browser send this. A request with a token needs none.",
}


def complete(document: Json) -> Json:
    """Complete an OpenAPI document, and return it.

    Every request with a method that may change something declares the header that `Gate` requires; answers other than
    JSON are files or texts.
    """
    describe_signing_in(document)
    for method, operation in _operations(document):
        known = operation.setdefault("parameters", [])
        if method.upper() not in SAFE and not any(one.get("name") == OWN for one in known):
            known.append(_HEADER)
        for answer in operation["responses"].values():
            for kind, content in answer.get("content", {}).items():
                if not content.get("schema") and not kind.endswith("json"):
                    content["schema"] = _schema(kind)
    return document


def _schema(kind: str) -> Json:
    is_text = kind.startswith("text/") or kind.endswith("+xml")
    return {"type": "string"} if is_text else {"type": "string", "format": "binary"}


def _operations(document: Json) -> Iterator[tuple[str, Json]]:
    for ways in document["paths"].values():
        yield from ways.items()
