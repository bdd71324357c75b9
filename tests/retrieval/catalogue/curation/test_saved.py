"""What standing searches have found: kept with the tag that it gets, or not at all."""

import pytest

from retrieval.catalogue.curation import saved
from retrieval.catalogue.curation.saved import Find, finds_of, keep_finds, save_search, saved_search
from tests.support.written_photos import Album


class Killed(BaseException):
    """Stands for the end of the process."""


def test_finds_are_kept_with_their_tag_or_not_at_all(album: Album, monkeypatch: pytest.MonkeyPatch) -> None:
    album.put(one=0, two=3)
    album.index()
    with album.open() as collection:
        catalogue = collection.catalogue
        first, second = (int(number) for number in catalogue.numbers()[:2])
        catalogue.import_values({first: {"tag": ["bridge", "Eileen"]}, second: {"tag": ["bridge"]}})
        search = save_search(catalogue, "Faces", {"queries": []}, standing=True, tag="eileen")
        before = saved_search(catalogue, search)
        finds = [Find(number, 0.9, None) for number in (first, second, 10**9)]

        def killed(*_: object) -> None:
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(saved, "add_tag", killed)
            with pytest.raises(Killed):
                keep_finds(catalogue, search, finds, 10**6)
        assert saved_search(catalogue, search) == before and not finds_of(catalogue, search)

        assert keep_finds(catalogue, search, finds, 10**6) == [first, second]
        assert keep_finds(catalogue, search, finds, 10**6) == []
        assert saved_search(catalogue, search).asked_to == 10**6
        tags = [catalogue.metadata([number])[number].tags for number in (first, second)]
        assert tags == [("bridge", "Eileen"), ("bridge", "eileen")]
