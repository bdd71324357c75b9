"""Uploads: limited while they stream in, stored under random names in a private folder, and deleted after the
request.
"""

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeVar

from pydantic import BaseModel
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

from retrieval.web.problems import ProblemError

Model = TypeVar("Model", bound=BaseModel)


def form_of(fields: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """Describe the form of a route for the OpenAPI document: ``openapi_extra`` of the route.

    `fields` are JSON schemas by name, or the model of a JSON field.
    """
    models = {name: one.__name__ for name, one in fields.items() if isinstance(one, type)}
    references = {name: {"$ref": f"#/components/schemas/{model}"} for name, model in models.items()}
    form = {"schema": {"type": "object", "properties": fields | references, "required": required}}
    if models:
        form["encoding"] = {name: {"contentType": "application/json"} for name in models}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": form}}}


def add_models(document: dict[str, Any], models: Sequence[type[BaseModel]]) -> None:
    """Add models of form fields to the OpenAPI document: forms are parsed by hand, so FastAPI does not know them."""
    schemas = document["components"]["schemas"]
    for model in models:
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(schema.pop("$defs", {}))
        schemas[model.__name__] = schema


@dataclass(frozen=True)
class UploadOptions:
    """Limits of uploads."""

    photo_bytes: int = 50_000_000  # bytes of one photo
    photos: int = 8  # photos of one request
    requests: int = 16  # requests with photos that are received and answered at a time: bounds what the disk must hold
    field_bytes: int = 64_000  # bytes of a field that is no photo
    seconds: float = 60.0  # in which a request must have arrived
    # Too large requests are still received to their end, up to a limit, and discarded: a browser that cannot send
    # all it has does not read the answer.
    drained_bytes: int = 1_000_000_000


@dataclass
class Uploads:
    """A form that was received."""

    fields: dict[str, str] = field(default_factory=dict)
    photos: list[Path] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # names of the photos given by the sender

    def request(self, model: type[Model]) -> Model:
        """Read the field with a request, JSON of a model."""
        if "request" not in self.fields:
            raise ProblemError(422, "The form needs the field request, a JSON object.")
        return model.model_validate_json(self.fields["request"])


class Receiver:
    """Receives forms; a private folder holds photos while they are needed."""

    def __init__(self, folder: Path, options: UploadOptions) -> None:
        self._folder, self._options = folder, options
        self._open = 0

    @asynccontextmanager
    async def receive(self, request: Request) -> AsyncIterator[Uploads]:
        """Receive a multipart form; its photos are files until the block is left.

        Raises ProblemError if it is not such a form (400), too large (413), too slow (504), or one of too many (503).
        """
        if self._open >= self._options.requests:
            raise ProblemError(503, "The server is busy: try again in a moment.")
        kind, parameters = parse_options_header(request.headers.get("content-type", ""))
        boundary = parameters.get(b"boundary", b"")
        if kind != b"multipart/form-data" or not boundary:
            raise ProblemError(400, "The request must be a form of the type multipart/form-data.")
        form = _Form(self._folder, self._options)
        self._open += 1
        try:
            try:
                async with asyncio.timeout(self._options.seconds):
                    await _read(request, form, boundary, self._options)
            except TimeoutError:
                raise ProblemError(504, "The upload took too long: try again, or with a smaller photo.") from None
            except ClientDisconnect:
                raise ProblemError(400, "The upload was cut off: try again.") from None
            yield form.uploads
        finally:
            self._open -= 1
            form.discard()


async def _read(request: Request, form: "_Form", boundary: bytes, options: UploadOptions) -> None:
    problem: ProblemError | None = None
    received = 0
    try:
        parser = MultipartParser(boundary, form.callbacks())
    except FormParserError:
        raise ProblemError(400, "The form's boundary is too long.") from None
    async for chunk in request.stream():
        received += len(chunk)
        if problem is None:
            try:
                parser.write(chunk)
            except FormParserError:  # base class of the parser's errors
                problem = ProblemError(400, "The form is damaged: try again.")
            except ProblemError as error:
                problem = error
            except OSError as error:
                problem = ProblemError(
                    503, "The server cannot store the upload ({strerror}): try again later.", strerror=error.strerror
                )
        elif received > options.drained_bytes:
            break
    if problem is not None:
        raise problem
    if not form.ended:
        raise ProblemError(400, "The form ends too early: try again.")


class _Form:
    """Collects the events of the parser."""

    def __init__(self, folder: Path, options: UploadOptions) -> None:
        self.uploads = Uploads()
        self.ended = False
        self._folder, self._options = folder, options
        self._header, self._value, self._disposition = bytearray(), bytearray(), b""
        self._name = ""
        self._text = bytearray()
        self._file: IO[bytes] | None = None
        self._size = 0

    def callbacks(self) -> Any:
        """For the parser."""
        return {
            "on_part_begin": self._part_begin,
            "on_header_field": lambda data, start, end: self._grow(self._header, data[start:end]),
            "on_header_value": lambda data, start, end: self._grow(self._value, data[start:end]),
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_finished,
            "on_part_data": self._part_data,
            "on_part_end": self._part_end,
            "on_end": self._end,
        }

    def discard(self) -> None:
        """Remove the files."""
        if self._file is not None:
            self._file.close()
        for path in self.uploads.photos:
            with contextlib.suppress(OSError):
                path.unlink()

    def _grow(self, text: bytearray, data: bytes) -> None:
        text += data
        if len(text) > 8_000:
            raise ProblemError(400, "The form's headers are too long.")

    def _part_begin(self) -> None:
        self._disposition, self._size = b"", 0
        self._text = bytearray()

    def _header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = bytes(self._value)
        self._header, self._value = bytearray(), bytearray()

    def _headers_finished(self) -> None:
        _, parameters = parse_options_header(self._disposition)
        self._name = parameters.get(b"name", b"").decode("utf-8", "replace")
        if self._name not in ("photo", "photos", "table"):
            if self._name in self.uploads.fields or len(self.uploads.fields) >= 8:
                raise ProblemError(400, "The form has too many fields.")
            return
        count = len(self.uploads.photos)
        if count >= self._options.photos:
            raise ProblemError(413, "At most {photos} photos can be sent at once.", photos=self._options.photos)
        path = self._folder / secrets.token_hex(16)
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self.uploads.photos.append(path)
        self.uploads.names.append(_called(parameters.get(b"filename", b""), count))

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        self._size += end - start
        if self._file is None:
            if self._size > self._options.field_bytes:
                raise ProblemError(413, "A field of the form is too long.")
            self._text += data[start:end]
            return
        if self._size > self._options.photo_bytes:
            limit = self._options.photo_bytes / 1e6
            raise ProblemError(
                413, "A photo may have {limit} MB at most: make it smaller, and try again.", limit=f"{limit:g}"
            )
        self._file.write(data[start:end])

    def _part_end(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        else:
            self.uploads.fields[self._name] = self._text.decode("utf-8", "replace")

    def _end(self) -> None:
        self.ended = True


def _called(name: bytes, count: int) -> str:
    """Name of an upload in answers: that of its file without folders; nothing is written under it."""
    text = name.decode("utf-8", "replace").replace("\\", "/").rpartition("/")[2].strip()
    return text[:200] or f"upload {count + 1}"
