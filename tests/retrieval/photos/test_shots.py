"""Shots are recognised by their frames, and what stands for each."""

from collections.abc import Iterable

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval.photos.shots import LEAST_TIME, Sketch, difference, frames_of_shots, shot_starts, sketch
from tests.support import films

SIZE = (160, 90)

NAMES = ("chelsea", "coffee", "rocket", "astronaut")


def shot(name: str, frames: int, pan: float = 0) -> Iterable[NDArray[np.uint8]]:
    return films.shot(name, frames, SIZE, pan)


def grey(frames: int) -> Iterable[NDArray[np.uint8]]:
    return films.grey(frames, SIZE)


def sketches(*shots: Iterable[NDArray[np.uint8]], noise: float = 0) -> list[Sketch]:
    rng = np.random.default_rng(1)
    frames = (frame for some in shots for frame in some)
    return [
        sketch(40 * place, np.clip(frame + rng.normal(0, noise, frame.shape), 0, 255).astype(np.uint8))
        for place, frame in enumerate(frames)
    ]


def starts(found: list[Sketch]) -> list[int]:
    reported = list(shot_starts(found))
    assert [one.time for one, _ in reported] == [one.time for one in found]
    return [place for place, (_, begins) in enumerate(reported) if begins]


@pytest.mark.parametrize("noise", [0, 12])
def test_a_shot_begins_at_the_cut_alone(noise: float) -> None:
    lengths = (12, 7, 30, 21)
    film = [shot(name, frames, pan=2) for name, frames in zip(NAMES, lengths, strict=True)]
    assert starts(sketches(*film, noise=noise)) == np.cumsum(lengths)[:-1].tolist()


def test_neither_a_short_film_nor_none_has_a_cut() -> None:
    assert starts([]) == starts(sketches(shot("coffee", 1))) == starts(sketches(shot("coffee", 4))) == []
    assert list(frames_of_shots([])) == list(frames_of_shots(sketches(grey(30)))) == []


def test_the_difference_is_the_share_of_pixels_that_change_their_colour() -> None:
    half = np.zeros((90, 160, 3), np.uint8)
    half[:, 80:] = (0, 0, 255)
    black, mixed = sketch(0, np.zeros_like(half)), sketch(0, half)
    assert difference(black, mixed) == pytest.approx(0.5) and difference(mixed, mixed) == 0
    assert not black.shows and mixed.shows


def test_a_dissolve_begins_no_shot_and_has_a_frame_before_and_after_it() -> None:
    one, other = (list(shot(name, 40)) for name in ("coffee", "rocket"))
    mixed = [
        ((1 - part) * before + part * after).astype(np.uint8)
        for part, before, after in zip(np.linspace(0, 1, 40), one, other, strict=True)
    ]
    found = sketches(one, mixed, other, list(shot("rocket", 60)))
    assert starts(found) == []
    first, *_, last = frames_of_shots(found)
    assert first < 40 * 60 < last and last >= 40 * 70


def test_one_frame_stands_for_a_shot_that_stays_and_more_for_one_that_changes() -> None:
    still = list(frames_of_shots(sketches(*(shot(name, 75) for name in NAMES), noise=4)))
    assert [time // (75 * 40) for time in still] == [0, 1, 2, 3]
    assert len(list(frames_of_shots(sketches(shot("chelsea", 2 * LEAST_TIME // 40, pan=2))))) == 2


def test_the_sharpest_frame_is_taken_and_never_a_blank_one() -> None:
    sharp = list(shot("chelsea", 40))
    frames = [frame if place == 33 else cv2.GaussianBlur(frame, (5, 5), 0) for place, frame in enumerate(sharp)]
    assert list(frames_of_shots(sketches(grey(10), frames, grey(10)))) == [40 * (10 + 33)]


def test_what_is_parted_by_blank_frames_are_two_shots() -> None:
    found = list(frames_of_shots(sketches(shot("coffee", 20), grey(10), shot("coffee", 20))))
    assert len(found) == 2


def test_the_first_frame_is_settled_before_the_film_ends() -> None:
    read = []

    def endless() -> Iterable[Sketch]:
        one = sketches(shot("coffee", 1))[0]
        for time in range(0, 3_600_000, 40):
            read.append(time)
            yield Sketch(time, one.histogram, one.picture, one.sharpness, True)

    assert next(iter(frames_of_shots(endless()))) == 0
    assert read[-1] < 12_000
