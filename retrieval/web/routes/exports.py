"""Route to download photos: their files, or a contact sheet."""

from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from retrieval.web.access.limits import SEARCHING
from retrieval.web.models import ExportRequest
from retrieval.web.problems import ProblemError
from retrieval.web.service import describe_photos, service_of
from retrieval.web.taking.exports import check_files, one_a_file, refuse_originals, stream_archive

router = APIRouter(prefix="/api", tags=["photos"])


KINDS = {"zip": "application/zip", "sheet": "application/pdf", "png": "image/png"}


@router.post(
    "/export",
    dependencies=SEARCHING,
    responses={200: {"content": {kind: {} for kind in KINDS.values()}}},
    response_class=Response,
)
async def export(request: Request, chosen: ExportRequest) -> Response:
    """Return the files of some photos, as they were indexed, or a contact sheet."""
    service = service_of(request)
    options = service.options.exports
    numbers = list(dict.fromkeys(chosen.photos))
    most = options.photos if chosen.form == "zip" else options.pictures
    if len(numbers) > most:
        raise ProblemError(413, "At most {most} photos can be downloaded at once: select fewer.", most=most)
    rows = [await service.row(number) for number in numbers]
    if chosen.form != "zip":
        described = await run_in_threadpool(describe_photos, service, rows)
        photos = [
            {"path": row.path, "sha256": row.sha256 or "", "caption": one.title or one.name}
            for row, one in zip(rows, described, strict=True)
        ]
        form = "png" if chosen.form == "png" else "pdf"
        wanted = {"photos": photos, "cache": str(service.cache), "form": form}
        _, sheet = await service.decode(request, "sheet", wanted)
        return Response(sheet, media_type=KINDS[chosen.form], headers=_headers(f"contact-sheet.{form}"))
    refuse_originals(options)
    if service.exporting >= options.requests:
        raise ProblemError(503, "The server is busy: try again in a moment.")
    service.exporting += 1
    rows = one_a_file(rows)
    try:
        sizes = await run_in_threadpool(check_files, rows, options)
    finally:
        service.exporting -= 1
    return StreamingResponse(stream_archive(rows, sizes), media_type=KINDS["zip"], headers=_headers("photos.zip"))


TEI_TYPE = "application/tei+xml"
TEI: dict[int | str, dict[str, Any]] = {200: {"content": {TEI_TYPE: {}}}}


def attached(content: bytes, kind: str, name: str) -> Response:
    """Return a file as a download."""
    return Response(content, headers={"Content-Type": kind, "Content-Disposition": f'attachment; filename="{name}"'})


def _headers(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
