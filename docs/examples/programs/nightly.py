"""Add what is new in a folder of photos, and tell which standing searches have found some of it.

usage: python nightly.py COLLECTION PHOTOS
"""

import sys

import cairn


def main(folder: str, photos: str) -> None:
    """Do one night's work; a photo that cannot be used stops nothing."""
    with cairn.create(folder, exist_ok=True) as collection:
        added = collection.add(photos)
        print(f"{added.added} photos added, {len(added.failed)} failed")
        for search in collection.ask_searches():
            print(f"{search.name}: {', '.join(search.found) or search.problem or 'nothing new'}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
