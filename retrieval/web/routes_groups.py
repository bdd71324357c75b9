"""Routes of groups: photos that verified matches link, as `cairn group` found them."""

import io
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from retrieval.web.models import MAX_NUMBER, GroupPage
from retrieval.web.problems import ProblemError
from retrieval.web.service import Service, service_of

router = APIRouter(prefix="/api", tags=["groups"])


@router.get("/groups")
def groups(
    request: Request,
    offset: Annotated[int, Query(ge=0, le=MAX_NUMBER)] = 0,
    limit: Annotated[int, Query(ge=0, le=500)] = 60,
) -> GroupPage:
    """List groups of photos, the largest first, a page at a time."""
    service = service_of(request)
    found = _read(service)
    return GroupPage(total=len(found), groups=found[offset : offset + limit])


@router.get("/groups.csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
def groups_table(request: Request) -> Response:
    """Give all groups as a table to keep: group, number, name."""
    text = io.StringIO()
    return Response(text.getvalue(), media_type="text/csv")


def _read(service: Service) -> list[Any]:
    raise ProblemError(404, "Groups have not been looked for yet: run cairn group COLLECTION.")
