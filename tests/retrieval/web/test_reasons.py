"""Reasons that photos could not be read, in the visitor's language."""

import ast
import re
from pathlib import Path

import pytest

from index.arrays import load_array
from index.errors import CairnError, Damaged
from index.messages import Message
from retrieval.metadata.fields import WORDS
from retrieval.photos.remarks import Remarks
from retrieval.photos.thumbnails import thumbnail
from retrieval.web.languages import translate
from retrieval.web.reasons import REASONS, in_language, reason_in, say_reasons

ROOT = Path(__file__).resolve().parents[3]
_REASON = re.compile("(?:it is|its|decoding it|the (?:PDF|file|film|page|photo) (?:is|has)) .*[a-z]")
_DAMAGE = re.compile(
    r"(?:The|It|What) [^{}()]*(?:missing|written|not the same|it is|damaged|regular file|said of them)\."
)


def test_what_stands_in_a_reason_is_kept() -> None:
    reason = "the photo is 70000x60000 pixels, which is more than the limit of 1000000000 pixels"
    assert reason_in(reason, "en") == reason
    translated = reason_in(reason, "de")
    assert translated != reason and all(number in translated for number in ("70000", "60000", "1000000000"))
    assert reason_in("no process can be started to decode it (Too many open files)", "de").endswith(
        " (Too many open files)"
    )
    assert reason_in("something new", "de") == "something new"
    assert "cairn index" not in reason_in("the file has changed since it was indexed: run cairn index", "en")
    assert reason_in("The file cannot be read (Input/output error).", "de").endswith(" (Input/output error)")
    (entry,) = say_reasons([{"name": "a.jpg", "reason": "the file is empty"}], "de")
    assert entry == {"name": "a.jpg", "reason": "the file is empty", "said": "die Datei ist leer"}


def test_a_reason_within_a_sentence_is_translated(tmp_path: Path) -> None:
    reason = CairnError("the photo is 70000x60000 pixels, which is more than the limit of 1000000000 pixels")
    said = in_language(Message("{name} cannot be read: {reason}.", name="a.jpg", reason=reason), "de")
    assert said.startswith("a.jpg lässt sich nicht lesen: ") and "70000" in said and "which" not in said
    photo = tmp_path / "a.jpg"
    photo.write_bytes(b"")
    with pytest.raises(CairnError) as shown:
        thumbnail(photo, None, 256, tmp_path)
    assert "a.jpg lässt sich nicht zeigen: die Datei ist leer. Stellen" in in_language(shown.value.message, "de")


def test_errors_of_files_are_translated(tmp_path: Path) -> None:
    with pytest.raises(Damaged) as missing:
        load_array(tmp_path / "words.npy")
    assert in_language(missing.value.message, "de").startswith(f"{tmp_path / 'words.npy'} fehlt: ")
    (tmp_path / "words.npy").write_bytes(b"no array")
    with pytest.raises(Damaged) as damaged:
        load_array(tmp_path / "words.npy")
    said = in_language(damaged.value.message, "de")
    assert " ist beschädigt und " in said and said.endswith("aus einer Kopie wieder her.") and "cairn repair" in said


def test_the_fields_of_a_table_are_translated() -> None:
    assert all(translate(word, "de") != word for word in WORDS)


@pytest.mark.parametrize("blank", (1, 3))
@pytest.mark.parametrize("pages", (1, 2))
def test_each_remark_is_translated(blank: int, pages: int) -> None:
    for remark in Remarks(missing=0.03, rough=True, pages=pages, over_dark=True, blank=blank).sentences():
        assert reason_in(remark, "de") != remark


def texts_of(modules: str, pattern: re.Pattern[str]) -> set[str]:
    """The texts in the source of some modules of `retrieval` that match a pattern."""
    nodes = (one for path in (ROOT / "retrieval").glob(modules) for one in ast.walk(ast.parse(path.read_text("utf-8"))))
    texts = (one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str))
    return {text for text in texts if pattern.fullmatch(text)}


def test_each_reason_of_decoding_is_known() -> None:
    said = texts_of("photos/*.py", _REASON)
    said -= {"it is not what was written"}  # of a file of tiles: users do not see it
    assert len(said) > 12 and not said - {*REASONS}
    assert all(reason_in(one, "de") != one for one in REASONS if "{" not in one)


def test_each_damage_that_a_check_finds_is_translated() -> None:
    found = texts_of("integrity/check*.py", _DAMAGE)
    assert len(found) > 18
    for sentence in found:
        assert reason_in(sentence, "de") != sentence.removesuffix("."), sentence
    assert reason_in("It cannot be read (disk I/O error).", "de").endswith(" (disk I/O error)")
