"""The bounds of our own two policies, against numbers computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from manyarms.errors import ParameterError
from manyarms.theory import hybrid_moss_plus_plus_bound, patience_bound


def test_hybrid_moss_plus_plus() -> None:
    # log2 T = 16, 16^2.5 = 1024; the rate at 0.25 is 0.75, 2^(16 * 0.75) = 4096
    assert hybrid_moss_plus_plus_bound(0.25, 2**16, beta=0.5) == pytest.approx(
        1.4142135623730951 * 160 * 1024 * 4096
    )
    both = hybrid_moss_plus_plus_bound(np.array([0.0, 1.0]), 2**4, beta=0.5)
    np.testing.assert_allclose(both, [226.27417 * 32 * 4, 226.27417 * 32 * 16])


def test_patience() -> None:
    # log 2 = 0.693147: 4 log T + 3 = 5.772589; 2 sqrt(1 * 2 * 5.772589) + 1
    assert patience_bound(3, 3, 2) == pytest.approx(7.795642, abs=1e-5)
    # log 10000 = 9.210340: 39.841361; n/m = 25: 2 sqrt(25 * 10000 * 39.841361) + 1
    assert patience_bound(100, 4, 10_000) == pytest.approx(6313.002, abs=0.01)
    np.testing.assert_allclose(patience_bound(np.array([3, 12]), 3, 2), [7.795642, 14.591285], 1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 4, 10), r"`m` must be <= n, the number of arms, got 1 too many"),
        ((3, 1, 1), r"`horizon` must be an integer >= 2, got 1"),
        ((0, 1, 9), r"`n` must be an integer >= 1, got 0"),
    ],
)
def test_bad_input(arguments: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        patience_bound(*arguments)


def test_it_is_for_rewards_in_the_unit_interval() -> None:
    with pytest.raises(ParameterError, match=r"`sigma` must be 0.5 for this bound, got 1.0"):
        patience_bound(3, 1, 10, sigma=1.0)
