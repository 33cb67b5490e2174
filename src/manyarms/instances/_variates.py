"""Numbers of a given law as pure functions of random words, the same on every machine.

By hand because SciPy's and NumPy's samplers cannot be called from compiled code without
allocation, and do not take the random bits as an argument.
"""

from __future__ import annotations

import math

from manyarms.core.jit import kernel, rare
from manyarms.core.rng import draw, open_unit

__all__ = ["beta_variate", "normal_variate"]


@rare
def normal_variate(word: int) -> float:
    """Return the standard normal quantile at a uniform number made of `word`.

    Wichura's algorithm AS 241 (PPND16), correct to about 16 digits.
    """
    p = open_unit(word)
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        return q * _central(r)
    r = math.sqrt(-math.log(p if q < 0.0 else 1.0 - p))
    tail = _near_tail(r - 1.6) if r <= 5.0 else _far_tail(r - 5.0)
    return -tail if q < 0.0 else tail


@kernel
def _central(r: float) -> float:
    """Rational approximation for |p - 1/2| <= 0.425, r = 0.425^2 - (p - 1/2)^2."""
    over = 2509.0809287301227
    over = over * r + 33430.57558358813
    over = over * r + 67265.7709270087
    over = over * r + 45921.95393154987
    over = over * r + 13731.69376550946
    over = over * r + 1971.5909503065513
    over = over * r + 133.14166789178438
    over = over * r + 3.3871328727963665
    under = 5226.495278852854
    under = under * r + 28729.085735721943
    under = under * r + 39307.89580009271
    under = under * r + 21213.794301586597
    under = under * r + 5394.196021424751
    under = under * r + 687.1870074920579
    under = under * r + 42.31333070160091
    under = under * r + 1.0
    return over / under


@kernel
def _near_tail(r: float) -> float:
    """Rational approximation for sqrt(-log p) <= 5, r = that - 1.6."""
    over = 0.0007745450142783414
    over = over * r + 0.022723844989269184
    over = over * r + 0.2417807251774506
    over = over * r + 1.2704582524523684
    over = over * r + 3.6478483247632045
    over = over * r + 5.769497221460691
    over = over * r + 4.630337846156546
    over = over * r + 1.4234371107496835
    under = 1.0507500716444169e-09
    under = under * r + 0.0005475938084995345
    under = under * r + 0.015198666563616457
    under = under * r + 0.14810397642748008
    under = under * r + 0.6897673349851
    under = under * r + 1.6763848301838038
    under = under * r + 2.053191626637759
    under = under * r + 1.0
    return over / under


@kernel
def _far_tail(r: float) -> float:
    """Rational approximation for beyond, r = sqrt(-log p) - 5."""
    over = 2.0103343992922881e-07
    over = over * r + 2.7115555687434876e-05
    over = over * r + 0.0012426609473880784
    over = over * r + 0.026532189526576124
    over = over * r + 0.29656057182850487
    over = over * r + 1.7848265399172913
    over = over * r + 5.463784911164114
    over = over * r + 6.657904643501103
    under = 2.0442631033899397e-15
    under = under * r + 1.421511758316446e-07
    under = under * r + 1.8463183175100548e-05
    under = under * r + 0.0007868691311456133
    under = under * r + 0.014875361290850615
    under = under * r + 0.1369298809227358
    under = under * r + 0.599832206555888
    under = under * r + 1.0
    return over / under


@rare
def beta_variate(a: float, b: float, key: int) -> float:
    """Return a number of the Beta(a, b) law from the random words that belong to `key`."""
    log_x = _log_gamma_variate(a, draw(key, 0))
    log_y = _log_gamma_variate(b, draw(key, 1))
    return 1.0 / (1.0 + math.exp(min(log_y - log_x, 700.0)))  # e^700 is still finite


@rare
def _log_gamma_variate(shape: float, key: int) -> float:
    """Return the logarithm of a Gamma(shape) number: small shapes would underflow without.

    Marsaglia & Tsang (2000); below 1 by their relation of shape to shape + 1.
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
