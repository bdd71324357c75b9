"""Words of texts and dates, as they are searched for."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.metadata.words import LONGEST_WORD, months_meant, words_of, words_of_date


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2019/Urlaub/IMG_0042.jpg", ["2019", "urlaub", "img", "0042", "jpg"]),
        ("Zoë’s Café", ["zoe", "s", "cafe"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("Łódź Tromsø İstanbul ılık", ["lodz", "tromso", "istanbul", "ilik"]),
        ("東京タワー Berlin", ["東", "京", "タ", "ワ", "ー", "berlin"]),
        ("Rainbow🌈", ["rainbow", "🌈"]),
        ("नमस्ते", ["नमसत"]),
        ("می\u200cخواهم", ["میخواهم"]),
        ("ﬁsh ½", ["fish", "1", "2"]),
        ("'; DROP TABLE words; -- \" * ( )", ["drop", "table", "words"]),
        ("…", []),
        (100 * "a", [LONGEST_WORD * "a"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@given(st.text())
def test_forms_and_case_make_no_difference_and_words_are_whole(text: str) -> None:
    words = words_of(text)
    assert words == words_of(unicodedata.normalize("NFD", text)) == words_of(unicodedata.normalize("NFC", text))
    assert words_of(" ".join(words)) == words
    assert all(word and not set(word) & set(" '\"*:&|!()\\\0") for word in words)


@pytest.mark.parametrize("text", ["ÉCOLE Köln Übersee", "ŒUVRE ÆBLE", "ΣΊΣΥΦΟΣ"])
def test_case_makes_no_difference(text: str) -> None:
    assert words_of(text.lower()) == words_of(text) == words_of(text.upper())


def test_words_of_dates() -> None:
    assert words_of_date("1923") == ["1923"]
    *written, may = words_of_date("1923-05-17T14:30:00")
    assert written == ["1923", "05", "5", "17", "17"]
    assert words_of_date("1924-05") == ["1924", "05", "5", may]
    for word in ("may", "mai", "mayo", "maggio", "mei", "magg"):
        assert may in months_meant(word), word
    assert may not in months_meant("march") + months_meant("ma") + months_meant("mayor")
    assert len(months_meant("jui")) == 2  # juin and juillet
    assert months_meant(words_of("März")[0]) == months_meant("march") == months_meant("marzo")
    assert words_of(may) == []  # nobody can write it
