"""From a manifest to the first answer, and from the same pages in a folder.

Run as `python -m tests.benchmarks.bench_iiif`; it never gates. Pages of type of 1,500 pixels are given by a server of
files in another process of this machine, and are fetched as they are: what is indexed is the same. Seconds are those by
the clock from the first call to the first answer.
"""

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import cairn

_PRINTED = 30  # pages that differ; others are further photos of them


def main() -> None:
    """Measure and print."""
    from tests.support.printed_pages import photograph, print_page, typefaces, write_photo

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=2, help="the manifest comes after the folder in the first")
    parser.add_argument("--workers", type=int, default=0, help="processes that index (default: one for each core)")
    parser.add_argument("--max-side", type=int, default=512, help="longer side at which pages are read")
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} when it began", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "pages"
        folder.mkdir()
        printed = [print_page(seed, font=typefaces()[0]) for seed in range(min(_PRINTED, arguments.pages))]
        for number in range(arguments.pages):
            page = printed[number % len(printed)]
            write_photo(folder / f"{number:04}.jpg", photograph(page, number, scale=(1.07, 1.07))[0])
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        server = context.Process(target=_serve, args=(folder, there), daemon=True)
        server.start()
        address = here.recv()
        for turn in range(arguments.repeats + 1):
            known = Path(scratch) / f"{turn}"
            take = arguments.pages if turn else 4  # what is loaded once is loaded then
            sources = {"folder": sorted(folder.iterdir())[:take], "manifest": [f"{address}/{take}"]}
            seconds: dict[str, float] = {}
            for name in sorted(sources, reverse=turn % 2 == 0):
                seconds[name] = _measure(known / name, sources[name], arguments)
            wanted = _asked(here)
            again = _measure(known / "manifest", sources["manifest"], arguments)
            asked_again = _asked(here)
            if turn:
                print(
                    f"{take} pages: folder {seconds['folder']:.1f} s, manifest {seconds['manifest']:.1f} s "
                    f"({seconds['manifest'] / seconds['folder']:.2f}) by {wanted} requests, "
                    f"second run {again:.1f} s by {asked_again} request(s)",
                    flush=True,
                )
        server.terminate()


def _measure(place: Path, photos: Sequence[str | Path], arguments: argparse.Namespace) -> float:
    """Seconds until a collection of some photos gives its first answer."""
    start = time.perf_counter()
    place.parent.mkdir(exist_ok=True)
    made = cairn.open(place) if place.exists() else cairn.create(place, max_side=arguments.max_side, words=200)
    with made as collection:
        collection.add(photos, allow_hosts=["127.0.0.1"], workers=arguments.workers)
        assert len(collection) in (4, arguments.pages)
        assert list(collection.search(next(iter(collection)).name))
    return time.perf_counter() - start


def _asked(server: Connection) -> int:
    """How often the server was asked for anything but its robots.txt since this was called last."""
    server.send(None)
    return int(server.recv())


def _serve(folder: Path, client: Connection) -> None:
    """Serve files as pages of manifests, and tell how often they are asked for."""
    from PIL import Image

    from tests.support.iiif_server import serve_iiif

    with serve_iiif() as server:
        files = sorted(folder.iterdir())
        for file in files:
            with Image.open(file) as picture:
                server.add_picture(file.stem, file.read_bytes(), *picture.size)
        for take in (4, len(files)):
            names = {file.stem: file.stem for file in files[:take]}
            server.add_json(f"/{take}", server.manifest(f"/{take}", names), ETag=f'"{take}"')
        client.send(server.address)
        while True:
            client.recv()
            client.send(len(server.requested))
            server.requested.clear()


if __name__ == "__main__":
    main()
