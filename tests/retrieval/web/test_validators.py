"""The validator of the IIIF Image API (`pip install iiif-validator`) finds what level 2 requires."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.adding import index_photos
from retrieval.web.access.options import AccessOptions
from tests.retrieval.web.access.conftest import password_file, tokens  # noqa: F401
from tests.support.live import client_of, serving

validator = pytest.importorskip("iiif_validator.validator", exc_type=ImportError)
pytestmark = pytest.mark.slow

FOR_EVERYONE = {"cors"}  # `Access-Control-Allow-Origin: *` is what --open-manifests sends
WRONG = {"size_noup"}  # demands that `!w,h` beyond the photo is refused: the standard gives it in its own size
OPTIONAL = 3  # level of the tests of what no level requires


@pytest.fixture
def squares(tmp_path: Path) -> Path:
    """A collection of the photo that the validator knows: ten by ten squares of 100 pixels."""
    (tmp_path / "photos").mkdir()
    colours = np.array(validator.ValidationInfo().colorInfo, np.uint8).transpose(1, 0, 2)
    Image.fromarray(colours.repeat(100, 0).repeat(100, 1)).save(tmp_path / "photos" / "squares.png")
    with Collection.create(tmp_path / "squares.cairn", CollectionOptions(signature="none", words=16)) as collection:
        index_photos(collection, [tmp_path / "photos"])
    return tmp_path / "squares.cairn"


def complaints(base: str, names: set[str]) -> dict[str, str]:
    """What tests of the validator have against the first photo of a server, by their names."""
    suite, found = validator.TestSuite(validator.ValidationInfo()), {}
    for name in sorted(names):
        asked = validator.ImageAPI("0", base.removeprefix("http://"), "api/iiif", version="3.0", debug=False)
        try:
            suite.run_test(name, asked)
        except Exception as error:
            found[name] = repr(error)
        if asked.exception is not None:
            found[name] = str(asked.exception)
    return found


def test_the_image_api_is_that_of_level_2(squares: Path, password_file: Path, tmp_path: Path) -> None:  # noqa: F811
    listed: dict[str, Any] = validator.TestSuite(validator.ValidationInfo()).list_tests("3.0")
    required = {name for name, told in listed.items() if told["level"] < OPTIONAL}
    assert len(required) > 30
    with serving(squares, tmp_path / "cache") as base, client_of(base) as client:
        assert complaints(base, required - FOR_EVERYONE - WRONG) == {}
        whole = client.get("/api/iiif/0/full/!2000,3000/0/default.png")
        assert whole.status_code == 200 and client.get("/api/iiif/0/full/2000,/0/default.png").status_code == 400
    everyone = AccessOptions(password_file=password_file, open_manifests=True)
    with serving(squares, tmp_path / "cache", access=everyone) as base:
        assert complaints(base, FOR_EVERYONE) == {}
