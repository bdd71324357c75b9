"""Routes of books that share pictures."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from index.attributes import some_of
from retrieval.collection.collection import Collection
from retrieval.collection.layout import GROUPS
from retrieval.library.shared_books import shared_books
from retrieval.web.access.limits import SEARCHING
from retrieval.web.curation_models import BooksMatrix
from retrieval.web.routes.layout import NOT_CHANGED, answer_kept
from retrieval.web.routes.saved import table_file
from retrieval.web.service import service_of

router = APIRouter(prefix="/api", tags=["groups"], dependencies=SEARCHING)

Category = Annotated[str | None, Query(description="Count what saved searches have found alone, of this category.")]
_PAIRS, _PAGES = 2000, 100  # that are listed


@router.get("/books", response_model=BooksMatrix, responses=NOT_CHANGED)
def books(request: Request, category: Category = None) -> Response:
    """Show which books share pictures, from groups and from the results of saved searches."""
    collection = service_of(request).collection
    groups = collection.folder / GROUPS
    state = groups.stat().st_mtime_ns if groups.is_file() else 0  # groups are in no row of the catalogue

    def shared_pictures(_catalogue: object, category: str | None, _state: int) -> dict[str, Any]:
        return _described(collection, category)

    return answer_kept(request, shared_pictures, category, state)


@router.get("/books.csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
def books_file(request: Request, category: Category = None, form: Literal["matrix", "pages"] = "matrix") -> Response:
    """Return a table (CSV) of how many pictures each two books share, or of the pages that match."""
    shared = shared_books(service_of(request).collection, category)
    return table_file(shared.matrix() if form == "matrix" else shared.page_rows(), f"books-{form}.csv")


def _described(collection: Collection, category: str | None) -> dict[str, Any]:
    shared = shared_books(collection, category)
    fields = ("first_page", "second_page", "numbers", "searches", "box")
    pairs = [
        {
            **some_of(one, "first", "second", "pictures"),
            "pages": [some_of(page, *fields) for page in one.pages[:_PAGES]],
        }
        for one in shared.pairs[:_PAIRS]
    ]
    return {"books": shared.books, "pairs": pairs, "total": len(shared.pairs), "grouped": shared.grouped}
