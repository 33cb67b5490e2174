"""Samples of normal and Beta distributions as pure functions of random words.

Written by hand because SciPy's and NumPy's samplers cannot be called from compiled code without
allocation, and do not take the random bits as an argument.
"""

from __future__ import annotations

import math

from manyarms.core.jit import kernel, rare
from manyarms.core.rng import Stream, draw, next_word, open_unit

# Wichura's quotients of two polynomials: the coefficients above and below the line, the highest
# power first.
_CENTRAL = (  # for |p - 1/2| <= 0.425, r = 0.425^2 - (p - 1/2)^2
    (2509.0809287301227, 5226.495278852854),
    (33430.57558358813, 28729.085735721943),
    (67265.7709270087, 39307.89580009271),
    (45921.95393154987, 21213.794301586597),
    (13731.69376550946, 5394.196021424751),
    (1971.5909503065513, 687.1870074920579),
    (133.14166789178438, 42.31333070160091),
    (3.3871328727963665, 1.0),
)
_NEAR_TAIL = (  # for sqrt(-log p) <= 5, r = that - 1.6
    (0.0007745450142783414, 1.0507500716444169e-09),
    (0.022723844989269184, 0.0005475938084995345),
    (0.2417807251774506, 0.015198666563616457),
    (1.2704582524523684, 0.14810397642748008),
    (3.6478483247632045, 0.6897673349851),
    (5.769497221460691, 1.6763848301838038),
    (4.630337846156546, 2.053191626637759),
    (1.4234371107496835, 1.0),
)
_FAR_TAIL = (  # beyond, r = sqrt(-log p) - 5
    (2.0103343992922881e-07, 2.0442631033899397e-15),
    (2.7115555687434876e-05, 1.421511758316446e-07),
    (0.0012426609473880784, 1.8463183175100548e-05),
    (0.026532189526576124, 0.0007868691311456133),
    (0.29656057182850487, 0.014875361290850615),
    (1.7848265399172913, 0.1369298809227358),
    (5.463784911164114, 0.599832206555888),
    (6.657904643501103, 1.0),
)


@rare
def normal_variate(word: int) -> float:
    """Return the standard normal quantile at a uniform number made of `word`.

    Wichura's algorithm AS 241 (PPND16), correct to about 16 digits.
    """
    p = open_unit(word)
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        return q * _quotient(_CENTRAL, r)
    r = math.sqrt(-math.log(p if q < 0.0 else 1.0 - p))
    tail = _quotient(_NEAR_TAIL, r - 1.6) if r <= 5.0 else _quotient(_FAR_TAIL, r - 5.0)
    return -tail if q < 0.0 else tail


@kernel
def normal(stream: Stream) -> float:
    """Draw from the standard normal distribution, with the next word of a stream.

    >>> from manyarms.kit import SPARSE, normal, restart, stream
    >>> words = stream(SPARSE)
    >>> restart(words, 7)
    >>> round(normal(words), 4), round(2.0 + 0.5 * normal(words), 4)  # mean 2, deviation 0.5
    (-0.2798, 0.9374)
    """
    return normal_variate(next_word(stream))


@kernel
def _quotient(coefficients: tuple[tuple[float, float], ...], r: float) -> float:
    over, under = 0.0, 0.0
    for above, below in coefficients:
        over = over * r + above
        under = under * r + below
    return over / under


@rare
def beta_variate(a: float, b: float, key: int) -> float:
    """Draw from Beta(a, b) with the random words that belong to `key`."""
    log_x = _log_gamma_variate(a, draw(key, 0))
    log_y = _log_gamma_variate(b, draw(key, 1))
    return 1.0 / (1.0 + math.exp(min(log_y - log_x, 700.0)))  # e^700 is still finite


@rare
def _log_gamma_variate(shape: float, key: int) -> float:
    """Draw the logarithm of a Gamma(shape) number; for small shapes the number would underflow.

    Marsaglia & Tsang (2000); shapes below 1 by their relation to shape + 1.
    """
    boosted = shape + 1.0 if shape < 1.0 else shape
    d = boosted - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    words = 0
    while True:
        x = normal_variate(draw(key, words))
        u = open_unit(draw(key, words + 1))
        words += 2
        v = (1.0 + c * x) ** 3
        if v > 0.0 and math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            break
    result = math.log(d * v)
    if shape < 1.0:
        result += math.log(open_unit(draw(key, words))) / shape
    return result
