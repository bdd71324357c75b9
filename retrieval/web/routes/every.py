"""All routes of the web application of a collection."""

from fastapi import APIRouter

from retrieval.web.routes.adding import router as adding
from retrieval.web.routes.albums import router as albums
from retrieval.web.routes.books import router as books
from retrieval.web.routes.duplicates import router as duplicates
from retrieval.web.routes.editing import router as editing
from retrieval.web.routes.exports import router as exports
from retrieval.web.routes.groups import router as groups
from retrieval.web.routes.iiif import router as iiif
from retrieval.web.routes.improve import router as improve
from retrieval.web.routes.jobs import router as jobs
from retrieval.web.routes.layout import router as layout
from retrieval.web.routes.objects import router as objects
from retrieval.web.routes.pages import router as pages
from retrieval.web.routes.photos import router as photos
from retrieval.web.routes.presentation import pages as lasting
from retrieval.web.routes.presentation import router as presentation
from retrieval.web.routes.rejections import router as rejections
from retrieval.web.routes.saved import router as saved
from retrieval.web.routes.search import router as search
from retrieval.web.routes.sharing import router as sharing
from retrieval.web.routes.tables import router as tables

ROUTERS: tuple[APIRouter, ...] = (
    editing,
    albums,
    sharing,
    tables,
    photos,
    presentation,
    iiif,
    layout,
    objects,
    search,
    groups,
    improve,
    exports,
    jobs,
    adding,
    rejections,
    saved,
    books,
    duplicates,
    lasting,
    pages,
)
"""In the order in which an address is looked for in them."""
