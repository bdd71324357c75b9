"""Tail probability of the Poisson distribution: SciPy has it too, but loads slower than most searches run."""

import math

_ENOUGH = 1e-17  # terms below this part of the sum change no bit of it
_ROUNDED = 1e-15
_TINY = 1e-300


def at_least(count: float, expected: float) -> float:
    """Probability that a Poisson variable is at least `count`, interpolated between whole numbers by the gamma
    function: the regularised lower incomplete gamma function P(count, expected), by its series below the mean and the
    continued fraction of its complement above (DLMF 8.7.1 and 8.9.2). Relative error below 1e-11 up to a thousand.
    """
    count, expected = float(count), float(expected)
    if count <= 0:
        return 1.0
    if expected <= 0:
        return 0.0
    scale = math.exp(count * math.log(expected) - expected - math.lgamma(count))
    if expected < count + 1:
        term = total = 1 / count
        above = count
        while term > total * _ENOUGH:
            above += 1
            term *= expected / above
            total += term
        return min(scale * total, 1.0)
    # Lentz's algorithm for continued fractions.
    below = expected + 1 - count
    numerators, denominators = 1 / _TINY, 1 / below
    fraction, change, step = denominators, 0.0, 0
    while abs(change - 1) > _ROUNDED:
        step += 1
        below += 2
        part = -step * (step - count)
        denominators = 1 / (part * denominators + below or _TINY)
        numerators = below + part / numerators or _TINY
        change = numerators * denominators
        fraction *= change
    return max(1 - scale * fraction, 0.0)
