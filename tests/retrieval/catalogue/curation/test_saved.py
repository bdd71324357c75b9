"""What standing searches have found: kept with the tag that it gets, or not at all."""

import pytest

from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.curation import saved
from retrieval.catalogue.curation.saved import Find, finds_of, keep_finds, save_search, saved_search
from retrieval.catalogue.metadata_store import import_values, metadata_of
from tests.support.written_photos import Album


class Killed(BaseException):
    """Stands for the end of the process."""


def test_finds_are_kept_with_their_tag_or_not_at_all(album: Album, monkeypatch: pytest.MonkeyPatch) -> None:
    album.put(one=0, two=3)
    album.index()
    with album.open() as collection:
        catalogue = collection.catalogue
        first, second = (int(number) for number in catalogue.read(numbers_of)[:2])
        catalogue.write(import_values, {first: {"tag": ["bridge", "Eileen"]}, second: {"tag": ["bridge"]}})
        search = catalogue.write(save_search, "Faces", {"queries": []}, standing=True, tag="eileen")
        before = catalogue.read(saved_search, search)
        finds = [Find(number, 0.9, None) for number in (first, second, 10**9)]

        def killed(*_: object) -> None:
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(saved, "add_tag", killed)
            with pytest.raises(Killed):
                catalogue.write(keep_finds, search, finds, 10**6)
        assert catalogue.read(saved_search, search) == before and not catalogue.read(finds_of, search)

        assert catalogue.write(keep_finds, search, finds, 10**6) == [first, second]
        assert catalogue.write(keep_finds, search, finds, 10**6) == []
        assert catalogue.read(saved_search, search).asked_to == 10**6
        tags = [catalogue.read(metadata_of, [number])[number].tags for number in (first, second)]
        assert tags == [("bridge", "Eileen"), ("bridge", "eileen")]
