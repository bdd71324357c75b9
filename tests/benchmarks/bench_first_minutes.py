"""The first minutes of a newcomer: when is the first photo seen, a search answered, and what *Improve* can do said?

Run as `python -m tests.benchmarks.bench_first_minutes --photos DIR`; it never gates. `cairn open` serves an empty
folder, and a program does what the pages do: it makes a collection of the photos, looks for the first small picture and
for the first photo that can be searched with as the pages look, searches with it, and asks whether search can be
improved. Wall-clock seconds from the request that makes the collection, and from that for *Improve*; the peer is
OpenCV's SIFT on all photos, one after the other, on one thread (S, seconds).
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests.support.live import client_of, running

LOOK = 0.25  # seconds between two requests
LONGEST = 1800.0
BARS = {"first picture": 3.0, "first answer": 60.0, "improve": 10.0}


def waited(condition: Callable[[], Any], since: float) -> float:
    """Seconds until a condition holds."""
    while not condition():
        if time.monotonic() - since > LONGEST:
            raise TimeoutError
        time.sleep(LOOK)
    return time.monotonic() - since


def sift(photos: list[Path]) -> float:
    """Seconds of OpenCV's SIFT on the photos."""
    import cv2

    cv2.setNumThreads(1)
    detector = cv2.SIFT_create()  # type: ignore[attr-defined]
    before = time.monotonic()
    for photo in photos:
        grey = cv2.imread(str(photo), cv2.IMREAD_GRAYSCALE)
        if grey is not None:
            detector.detectAndCompute(grey, None)
    return time.monotonic() - before


def searched(client: httpx.Client) -> bool:
    """Whether a search by one of the photos is answered."""
    photos = client.get("/api/photos", params={"limit": 1}).json().get("photos", [])
    if not photos:
        return False
    return client.get("/api/search", params={"q": str(photos[0]["number"])}).status_code == 200


def measure(folder: Path) -> dict[str, float]:
    """Seconds of each, by name."""
    with tempfile.TemporaryDirectory(prefix="cairn-bench-") as temporary:
        scratch = Path(temporary)
        (scratch / "collections").mkdir()
        arguments = ("open", scratch / "collections", "--no-browser", "--port", "0", "--photos", folder)
        with running(arguments, scratch, scratch / "said.txt") as base, client_of(base) as shelf:
            since = time.monotonic()
            made = shelf.post("/api/collections", json={"title": "First", "root": 0}).raise_for_status().json()
            facts = {}
            with client_of(base.rstrip("/") + made["address"].rstrip("/")) as client:
                picture = f"/api/jobs/{made['job']}/photos/0"
                facts["first picture"] = waited(lambda: client.get(picture).status_code == 200, since)
                facts["first answer"] = waited(lambda: searched(client), since)
                facts["all photos"] = waited(
                    lambda: client.get(f"/api/jobs/{made['job']}").json()["ended"] is not None, since
                )
                since = time.monotonic()
                client.get("/api/improve/look").raise_for_status()
                facts["improve"] = time.monotonic() - since
        return facts


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, required=True, help="a folder of photos; the bars are for 250")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    folder = arguments.photos.resolve()
    photos = sorted(folder.glob("*.jpg"))
    peer = sift(photos)
    facts = measure(folder)
    if arguments.json:
        print(json.dumps({"photos": len(photos), "sift": peer, **facts}))
        return
    print(f"{len(photos)} photos; SIFT {peer:.1f} s")
    for name, seconds in facts.items():
        bar = f", bar {BARS[name]:g} s" if name in BARS else ""
        print(f"{name}: {seconds:.1f} s, {seconds / peer:.2f} S{bar}")


if __name__ == "__main__":
    main()
