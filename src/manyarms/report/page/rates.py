"""Figure 1 of the paper for the page: rates against hardness, from theory alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyarms.report.page.parts import look_of
from manyarms.report.style import (
    ALPHA,
    HARDNESS,
    MINIMAX_LINE,
    QUANTILE_LINE,
    SUBSET_LINE,
    LineStyle,
    shades,
)
from manyarms.theory.rates import minimax_rate, moss_plus_plus_rate, quantile_rate, subset_rate

__all__ = ["rates"]

_BETAS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_ALPHAS = np.linspace(0.0, 1.0, 201)
_FEW = "MOSS on √T random arms"


def rates(place: int) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the lines as a setting of the page, the figure that shows it, and the lines' looks.

    Parameters
    ----------
    place
        Of the setting, among those of the page.
    """
    lines = {
        f"MOSS++ (β = {beta:g})": (moss_plus_plus_rate(_ALPHAS, beta=beta), LineStyle(colour))
        for beta, colour in zip(_BETAS, shades(len(_BETAS)), strict=True)
    }
    few = np.array([subset_rate(float(alpha), exponent=0.5) for alpha in _ALPHAS])
    lines |= {
        f"minimax: (1 + {ALPHA})/2": (minimax_rate(_ALPHAS), MINIMAX_LINE),
        _FEW: (few, SUBSET_LINE),
        "Quantile": (quantile_rate(_ALPHAS), QUANTILE_LINE),
    }
    setting = {
        "hidden": True,
        "times": _ALPHAS,
        "replications": 0,
        "policies": [f"rate {name}" for name in lines],  # unlike any policy's label
        "series": [{"mean": values} for values, _ in lines.values()],
    }
    figure = {
        "kind": "rates",
        "title": "Figure 1. Rates",
        "text": f"Regret grows as T to the power θ({ALPHA}): proved, not measured.",
        "axis": HARDNESS,
        "value": f"rate θ({ALPHA})",
        "choices": [{"label": "", "settings": [place]}],
    }
    looks = {f"rate {name}": look_of(name, style) for name, (_, style) in lines.items()}
    return setting, figure, looks
