"""Route of photos to take away."""

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from retrieval.web.exports import check_files, stream_archive
from retrieval.web.models import ExportRequest
from retrieval.web.problems import ProblemError
from retrieval.web.service import service_of

router = APIRouter(prefix="/api", tags=["photos"])


@router.post("/export", responses={200: {"content": {"application/zip": {}}}}, response_class=StreamingResponse)
async def export(request: Request, asked: ExportRequest) -> StreamingResponse:
    """Give the files of some photos as a ZIP archive, as they were indexed."""
    service = service_of(request)
    options = service.options.exports
    numbers = list(dict.fromkeys(asked.photos))
    if len(numbers) > options.photos:
        raise ProblemError(413, f"{options.photos} photos can be taken at once: select fewer.")
    rows = [await service.row(number) for number in numbers]
    sizes = await run_in_threadpool(check_files, rows, options)
    headers = {"Content-Disposition": 'attachment; filename="photos.zip"', "Cache-Control": "no-store"}
    return StreamingResponse(stream_archive(rows, sizes), media_type="application/zip", headers=headers)
