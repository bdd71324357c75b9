"""Tentative matches of a query with many photos: compiled."""

import numpy as np
from numpy.typing import NDArray

from index.kernels.compiling import INT32, INT64, UINT64, array, compiled, count_ones

_LEVELS = 64  # largest ambiguity that is distinguished
_SCATTERING = np.uint64(2654435769)  # Fibonacci hashing


@compiled(array(UINT64), array(INT64), array(INT64), array(INT64), array(INT32), array(INT64), array(INT64), INT64)
def match_words(
    bits: NDArray[np.uint64],
    ranks: NDArray[np.int64],
    firsts: NDArray[np.int64],
    counts: NDArray[np.int64],
    order: NDArray[np.int32],
    words: NDArray[np.int64],
    offsets: NDArray[np.int64],
    most: int,
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Pair the features of a query with those of photos that have the same word, by each photo's least ambiguous words;
    see `QueryWords.match_many`. Among words with equally many pairs a hash of the word decides, so that the choice does
    not depend on the order of words.

    `bits`, `ranks` (T,): for each block of 64 words, a bit for each word of the query, the lowest first, and the number
    of distinct words before the block. `firsts`, `counts`: the query's features of each distinct word in `order` (N,),
    its features by word.
    """
    photos = len(offsets) - 1
    # Runs of features of one photo and a word of the query: start, length, and place of the word.
    begins, lengths = np.empty(len(words), np.int64), np.empty(len(words), np.int64)
    places, keeps = np.empty(len(words), np.int32), np.empty(len(words), np.bool_)
    run_starts, totals = np.zeros(photos + 1, np.int64), np.zeros(photos, np.int64)
    sums = np.empty(_LEVELS, np.int64)
    runs = number = 0
    for photo in range(photos):
        for level in range(_LEVELS):
            sums[level] = 0
        at, stop, total = offsets[photo], offsets[photo + 1], 0
        first_run = runs
        while at < stop:
            word = words[at]
            # Most words are not in the query.
            block, bit = word >> 6, np.uint64(word & 63)
            if word < 0 or block >= len(bits) or not (bits[block] >> bit) & np.uint64(1):
                at += 1
                continue
            place = ranks[block] + np.int64(count_ones(bits[block] & ((np.uint64(1) << bit) - np.uint64(1))))
            begin = at
            while at < stop and words[at] == word:
                at += 1
            begins[runs], lengths[runs], places[runs] = begin, at - begin, place
            pairs_of_word = (at - begin) * counts[place]
            sums[min(pairs_of_word, _LEVELS - 1)] += pairs_of_word
            total += pairs_of_word
            runs += 1
        # The first level of ambiguity that does not fit as a whole, and the room left for it.
        last, room = _LEVELS, most
        if total > most:
            last = 0
            while sums[last] <= room:
                room -= sums[last]
                last += 1
        share = room / sums[last] if last < _LEVELS else 0.0
        for run in range(first_run, runs):
            pairs_of_word = lengths[run] * counts[places[run]]
            level = min(pairs_of_word, _LEVELS - 1)
            keeps[run] = level < last
            if level == last and pairs_of_word <= room:
                scattered = (np.uint64(words[begins[run]]) * _SCATTERING) & np.uint64(0xFFFFFFFF)
                keeps[run] = np.float64(scattered) < share * 4294967296.0
            if keeps[run]:
                number += pairs_of_word
        totals[photo] = total
        run_starts[photo + 1] = runs
    pairs, ambiguity = np.empty((number, 2), np.int32), np.empty(number, np.int64)
    starts = np.zeros(photos + 1, np.int64)
    done = 0
    for photo in range(photos):
        for run in range(run_starts[photo], run_starts[photo + 1]):
            if not keeps[run]:
                continue
            place = places[run]
            for feature in range(begins[run], begins[run] + lengths[run]):
                for one in range(firsts[place], firsts[place] + counts[place]):
                    pairs[done, 0], pairs[done, 1] = order[one], feature - offsets[photo]
                    ambiguity[done] = lengths[run] * counts[place]
                    done += 1
        starts[photo + 1] = done
    return pairs, starts, ambiguity, totals
