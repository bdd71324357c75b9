"""Files as people have them, sent by a browser: each is searched with and shown, or refused with the reason."""

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from retrieval.web.pool.workers import WorkerPoolOptions
from tests.conftest import Ran
from tests.support.hostile import encode, photo
from tests.support.live import client_of, serving
from tests.support.odd_photos import SIZE, Odd, colours, luma, odd_photos
from tests.support.patience import patience

SHOWN = "chelsea.png"


def answers_wrongly(client: httpx.Client, name: str, odd: Odd) -> Iterator[str]:
    """What is wrong with the answers to an upload."""
    sent = {"photos": (name, odd.content), "request": (None, json.dumps({"queries": [{"upload": 0}], "turns": 1}))}
    found = client.post("/api/search", files=sent)
    shown = client.post("/api/preview", files={"photo": (name, odd.content)})
    if odd.refused:
        for answer in (found, shown):
            if answer.status_code not in (400, 413, 415, 422) or odd.refused not in answer.text:
                yield f"not refused with the reason: {answer.status_code} {answer.text[:200]!r}"
        return
    if found.status_code != 200 or shown.status_code != 200:
        yield f"refused: {found.text[:200]} {shown.text[:200] if shown.status_code != 200 else ''}"
        return
    size = tuple(int(shown.headers[f"x-photo-{side}"]) for side in ("width", "height"))
    if size != odd.size:
        yield f"shown as {size}"
    first = found.json()["results"][0]
    if odd.shows != "else" and (first["name"] != SHOWN or first["probability"] < 0.9):
        yield f"found {first['name']} with {first['probability']}"
    pixels = np.asarray(Image.open(io.BytesIO(shown.content)).convert("RGB")).astype(float)
    truth = {"photo": colours(), "luma": luma()[:, :, None]}.get(odd.shows, pixels)
    if (error := np.abs(pixels - truth).mean()) > max(6, odd.tolerance):
        yield f"shown with a mean error of {error:.1f}"


@pytest.mark.slow
def test_every_odd_photo_is_searched_with_and_shown_or_refused_with_the_reason(
    cairn: Callable[..., Ran], tmp_path: Path
) -> None:
    folder, collection = tmp_path / "photos", tmp_path / "a.cairn"
    folder.mkdir()
    for name in ("chelsea", "coffee", "rocket"):
        (folder / f"{name}.png").write_bytes(encode(photo(name, SIZE), "PNG"))
    assert cairn("index", collection, folder, "--words", 50, "--json").json["failed"] == []
    one = WorkerPoolOptions(workers=1)
    with (
        serving(collection, tmp_path / "cache", search=one, pictures=one) as address,
        client_of(address, timeout=patience(20)) as client,  # for each answer
    ):
        wrong = [f"{name}: {why}" for name, odd in odd_photos().items() for why in answers_wrongly(client, name, odd)]
        assert client.get("/api/health").json()["status"] == "ok"
    assert not wrong, "\n".join(wrong)
