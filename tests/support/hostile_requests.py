"""Random requests made from an OpenAPI document, half of them valid, the others spoilt."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, quote_from_bytes

from tests.support.hostile import encode, hostile_files, photo

ODD_TEXTS = [
    *("", " ", "\0", "a\0b", "\x1b[31m", "\r\nX-Bad: 1", "\u202egnp.exe", "\ufeff", "\u0301" * 50, "石", "🏳️‍🌈" * 20),
    *("\ud800", "\udfff\ud800", "ß" * 5000, "x" * 100_000, "١٢٣", "%00", "%s%n", "${jndi:ldap://x}", "{{7*7}}"),
    *("' OR 1=1 --", '"; DROP TABLE images; --', "<script>alert(1)</script>", "--json", "-rf", "$(reboot)", "`id`"),
    *("../../../../etc/passwd", "/etc/passwd", "..\\..\\x", "....//....//x", "file:///etc/passwd", ".", "..", "~root"),
    *("/", "//", "C:\\x", "\\\\host\\share", "a/../../b", "CON.jpg", "null", "undefined", "NaN", "1e999", "-0", "0x10"),
    *("2023-02-30", "9999-99-99", "0000", "-1", "1923-05-17T25:61:61", "91,181,-1", "nan,inf,1", "a=b=c", "=", "a="),
]
ODD_NUMBERS = [
    *(-1, 0, 1, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 10**400, 1.5, -0.0, 1e308),
    *(float("nan"), float("inf"), float("-inf")),
]
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
TYPES = (
    *("application/json", "application/json; charset=utf-7", "application/JSON;;", "text/plain", "text/csv", "", "x"),
    *("application/x-www-form-urlencoded", "multipart/form-data", "multipart/form-data; boundary=x", "image/jpeg"),
    *("multipart/mixed; boundary=b0undary", "application/xml", "application/octet-stream"),
)
BOUNDARY = "b0undary"
SHARE = 0.12  # share of spoilt values in a spoilt request


@dataclass
class Asked:
    """One request."""

    operation: str  # such as "GET /api/photos/{number}"
    method: str
    target: str  # path and query, as sent
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    spoilt: bool = False  # else meant to be valid


class Maker:
    """Makes requests for the operations of one application.

    Parameters
    ----------
    document : dict
        Its OpenAPI document.
    prefix : str
        Mount path.
    seed : int
        Of all random draws.
    known : dict
        Existing values, by the name of a parameter or field, such as ``{"number": [0, 1]}``.
    """

    def __init__(
        self,
        document: dict[str, Any],
        prefix: str,
        seed: int,
        known: dict[str, list[Any]],
    ) -> None:
        self.schemas = document["components"]["schemas"]
        self.prefix, self.known, self.random = prefix, known, random.Random(seed)
        self.operations = [
            (method.upper(), path, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        ]
        self.files = [encode(photo(size=(200 + 8 * place, 150)), "JPEG") for place in range(4)]
        self.odd_files = list(hostile_files().items())

    def make(self, place: int) -> Asked:
        """Make a request for the operation at an index, modulo the number of operations."""
        draw = self.random
        method, path, operation = self.operations[place % len(self.operations)]
        spoil = draw.random() < 0.6
        share = SHARE if spoil else 0.0
        requested = Asked(f"{method} {self.prefix}{path}", method, self.prefix + self._path(path, operation, share))
        requested.spoilt = spoil
        fields = self._query(operation, share)
        if fields:
            requested.target += "?" + "&".join(fields)
        content = operation.get("requestBody", {}).get("content", {})
        for kind, described in content.items():
            requested.headers["Content-Type"] = kind
            if kind == "application/json":
                requested.body = self._json(self.value(described["schema"], "", share), share)
            else:
                requested.headers["Content-Type"] += f"; boundary={BOUNDARY}"
                requested.body = self._form(described["schema"], share)
        if spoil:
            self._spoil(requested)
        return requested

    def _spoil(self, requested: Asked) -> None:
        draw = self.random
        if draw.random() < 0.08:
            requested.method = draw.choice(METHODS)
        if draw.random() < 0.08:
            requested.headers["Content-Type"] = draw.choice(TYPES)
        if draw.random() < 0.05:
            requested.body = draw.choice(
                [
                    b"",
                    b"{",
                    b"[" * 30_000,
                    b'{"a":' * 20_000,
                    b"\xff\xfe\0",
                    b"null",
                    draw.randbytes(300),
                    b"0" * 70_000,
                ]
            )
        if draw.random() < 0.05 and requested.body:
            cut = draw.randrange(len(requested.body))
            requested.body = requested.body[:cut] + draw.choice([b"", draw.randbytes(3), requested.body[cut:] * 2])
        if draw.random() < 0.05:
            name = draw.choice(["Accept", "Accept-Language", "Range", "If-None-Match", "Cookie", "Origin", "Referer"])
            requested.headers[name] = draw.choice(
                ["*", "bytes=0-1,-1", "bytes=9-0", "text/html", '"', "x" * 3000, "de;q=x"]
            )
        if draw.random() < 0.04:
            requested.target = self.prefix + draw.choice(
                [
                    "/%2e%2e/%2e%2e/etc/passwd",
                    "/..%2f..%2fetc/passwd",
                    "//etc/passwd",
                    "/static/%2e%2e/app.py",
                    "/api//",
                ]
            )

    # Parameters

    def _path(self, path: str, operation: dict[str, Any], share: float) -> str:
        for one in operation.get("parameters", []):
            if one["in"] == "path":
                kinds = {"/api/jobs/": "job", "/api/sessions/": "session", "/api/shared/": "link"}
                of = next((kind for start, kind in kinds.items() if path.startswith(start)), one["name"])
                name = of if one["name"] in ("number", "id") else one["name"]
                value = self.value(one["schema"], name, share * 2)
                path = path.replace("{" + one["name"] + "}", self._quoted(value) or "%20")
        return path

    def _query(self, operation: dict[str, Any], share: float) -> list[str]:
        draw = self.random
        fields = []
        for one in operation.get("parameters", []):
            if one["in"] != "query" or not (one.get("required") or draw.random() < 0.35):
                continue
            value = self.value(one["schema"], one["name"], share)
            for each in value if isinstance(value, list) else [value]:
                if each is not None:
                    fields.append(f"{quote(one['name'])}={self._quoted(each)}")
        if share and draw.random() < 0.1:
            fields.append(draw.choice(["x", "=", "%", "%ff%fe", "a=1&a=2", "__proto__[x]=1", "q=" + "1" * 5000]))
        return fields

    def _quoted(self, value: Any) -> str:
        text = value if isinstance(value, str) else json.dumps(value)
        if self.random.random() < 0.02:
            return quote_from_bytes(self.random.randbytes(4), safe="")
        return quote(text.encode("utf-8", "surrogatepass")[:3000], safe="")

    # Bodies

    def _json(self, value: Any, share: float) -> bytes:
        text = json.dumps(value, ensure_ascii=self.random.random() < 0.5)
        if share and self.random.random() < 0.03 and text.startswith("{"):
            text = text[:-1] + ("," if len(text) > 2 else "") + '"a":1,"a":[' + "[" * 500 + "]" * 500 + "]}"
        return text.encode("utf-8", "surrogatepass")

    def _form(self, schema: dict[str, Any], share: float) -> bytes:
        draw = self.random
        parts = []
        for name, described in schema["properties"].items():
            if name not in schema.get("required", ()) and draw.random() < 0.5:
                continue
            many = described.get("type") == "array"
            for _ in range(draw.choice([1, 1, 2]) if many else 1):
                if described.get("items", described).get("format") == "binary":
                    parts.append(self._file(name, share))
                else:
                    value = self.value(described, name, share)
                    text = (
                        value.encode("utf-8", "surrogatepass") if isinstance(value, str) else self._json(value, share)
                    )
                    parts.append(b'Content-Disposition: form-data; name="%s"\r\n\r\n%s' % (name.encode(), text))
        if share and draw.random() < 0.1:
            parts.append(b'Content-Disposition: form-data; name="\xff\0"\r\n\r\n' + draw.randbytes(50))
        line = f"--{BOUNDARY}".encode()
        return b"".join(line + b"\r\n" + part + b"\r\n" for part in parts) + line + b"--\r\n"

    def _file(self, name: str, share: float) -> bytes:
        draw = self.random
        called, content = f"photo {draw.randrange(5)}.jpg", draw.choice(self.files)
        if name == "table":
            rows = "".join(
                f"{one},1923-05-1{place % 9},Title {place}\n" for place, one in enumerate(self.known["name"])
            )
            called, content = "table.csv", f"photo,date,title\n{rows}".encode()
        if share and draw.random() < 0.4:
            called, content = draw.choice(self.odd_files)
        if share and draw.random() < 0.3:
            called = draw.choice(ODD_TEXTS)[:2000]
        plain = called.replace('"', "%22").replace("\r", "").replace("\n", " ").encode("utf-8", "surrogatepass")
        head = b'Content-Disposition: form-data; name="%s"; filename="%s"\r\n' % (name.encode(), plain)
        return head + b"Content-Type: image/jpeg\r\n\r\n" + content

    # Values

    def value(self, schema: dict[str, Any], name: str, share: float) -> Any:
        """Draw a value allowed by a schema, with a `share` of nested values that are most likely forbidden."""
        draw = self.random
        if draw.random() < share:
            return self._odd()
        if "$ref" in schema:
            return self.value(self.schemas[schema["$ref"].rpartition("/")[2]], name, share)
        for kind in ("anyOf", "oneOf"):
            if kind in schema:
                return self.value(draw.choice(schema[kind]), name, share)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return draw.choice(schema["enum"])
        whole = "prefixItems" in schema or (name == "queries" and not share)
        if name in self.known and (whole or schema.get("type") in ("integer", "string")):
            return draw.choice(self.known[name])
        match schema.get("type"):
            case "integer":
                least = int(schema.get("minimum", 0))
                most = int(schema.get("maximum", schema.get("exclusiveMaximum", least + 21) - 1))
                return draw.randint(least, min(most, least + 20))
            case "number":
                least = schema.get("minimum", 0.0)
                most = schema.get("maximum", schema.get("exclusiveMaximum", least + 300))
                return round(draw.uniform(least, min(most, least + 300)), 3)
            case "boolean":
                return draw.random() < 0.5
            case "null":
                return None
            case "array":
                items = schema.get("prefixItems")
                if items:
                    return [self.value(one, name, share) for one in items]
                count = draw.randint(schema.get("minItems", 0), max(3, schema.get("minItems", 0)))
                return [self.value(schema.get("items", {}), name, share) for _ in range(count)]
            case "object":
                return self._object(schema, share)
        return draw.choice(["Été", "coffee", "1923", "2"])

    def _object(self, schema: dict[str, Any], share: float) -> dict[str, Any]:
        draw = self.random
        required = schema.get("required", ())
        made = {
            name: self.value(one, name, share)
            for name, one in schema.get("properties", {}).items()
            if name in required or draw.random() < 0.5
        }
        more = schema.get("additionalProperties")
        if isinstance(more, dict):
            made |= {
                draw.choice(["photo", "title", "a"]): self.value(more, "", share) for _ in range(draw.randrange(3))
            }
        if share and made and draw.random() < share:
            made.pop(draw.choice(list(made)))
        if draw.random() < share:
            made[draw.choice(ODD_TEXTS)[:200]] = self._odd()
        return made

    def _odd(self) -> Any:
        draw = self.random
        deep: Any = 1
        for _ in range(draw.choice([3, 60, 400])):
            deep = [deep] if draw.random() < 0.5 else {"a": deep}
        return draw.choice(
            [draw.choice(ODD_TEXTS), draw.choice(ODD_TEXTS), draw.choice(ODD_NUMBERS), None, True, [], {}, [[]], deep]
        )
