"""Checks for formulas that take numbers or arrays of numbers."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_int, check_number
from manyarms.errors import ParameterError

MOST = 1 << 62  # pulls or arms
Numbers: TypeAlias = float | NDArray[Any]


def check_numbers(
    name: str,
    values: Any,
    *,
    at_least: float,
    at_most: float = math.inf,
    whole: bool = False,
    fix: str = "",
) -> NDArray[np.float64]:
    """Return a number or an array of numbers as an array of floats, or raise.

    >>> check_numbers("horizon", [2, 1.5], at_least=2, whole=True)
    Traceback (most recent call last):
    manyarms.errors.ParameterError: `horizon` must contain whole numbers >= 2, got 1.5.
    """
    check_unmasked(name, values)
    array = np.asarray(values)
    if array.ndim == 0:
        number = array.item()
        if whole:
            number = check_int(name, number, at_least=math.ceil(at_least), fix=fix)
        return np.asarray(check_number(name, number, at_least=at_least, at_most=at_most, fix=fix))
    if array.dtype.kind not in "iuf":
        raise ParameterError(f"`{name}` must contain numbers, got {array.dtype} values.")
    numbers = array.astype(np.float64)
    right = (numbers >= at_least) & (numbers <= at_most)  # written so that NaN is refused
    right &= np.isfinite(numbers) & ((numbers == np.floor(numbers)) | (not whole))
    for wrong in array[~right][:1]:
        rule = f"{'whole ' if whole else ''}numbers >= {at_least:g}"
        rule += "" if math.isinf(at_most) else f" and <= {at_most:g}"
        raise ParameterError(
            f"`{name}` must contain {rule}, got {wrong.item()!r}." + (f" {fix}" if fix else "")
        )
    return numbers


def check_unmasked(name: str, values: Any) -> None:
    """Raise if an array has masked values, because NumPy functions would use what is below a mask.

    >>> check_unmasked("means", np.ma.masked_equal([0.2, 0.9], 0.9))
    Traceback (most recent call last):
    manyarms.errors.ParameterError: `means` must have no masked values, got 1 of 2. Leave them out,
    for example with `compressed()`.
    """
    masked = int(np.ma.getmaskarray(values).sum()) if isinstance(values, np.ma.MaskedArray) else 0
    if masked > 0:
        raise ParameterError(
            f"`{name}` must have no masked values, got {masked} of {values.size}. Leave them out, "
            f"for example with `compressed()`.",
            parameter=name,
        )


def check_alpha(alpha: Any) -> NDArray[np.float64]:
    """Return the hardness as an array, or raise."""
    fix = "Above 1 no policy can expect to meet a best arm."
    return check_numbers("alpha", alpha, at_least=0.0, at_most=1.0, fix=fix)


def check_beta(beta: Any) -> float:
    """Return the parameter of MOSS++ or of the guard, or raise."""
    return check_number("beta", beta, at_least=0.5, at_most=1.0)


def check_horizon(
    horizon: Any, *, at_least: int = 2, fix: str = "One pull may choose a wrong arm."
) -> NDArray[np.float64]:
    """Return the horizon of a bound as an array, or raise."""
    return check_numbers("horizon", horizon, at_least=at_least, whole=True, fix=fix)


def check_arms(n: Any, m: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the numbers of arms and of best arms as arrays, or raise.

    >>> check_arms(10, np.array([3, 12]))
    Traceback (most recent call last):
    manyarms.errors.ParameterError: `m` must be <= n, the number of arms, got 2 too many.
    """
    arms = check_numbers("n", n, at_least=1, whole=True)
    best = check_numbers("m", m, at_least=1, whole=True)
    excess = float((best - arms).max())
    if excess > 0:
        raise ParameterError(f"`m` must be <= n, the number of arms, got {excess:g} too many.")
    return arms, best


def like(inputs: tuple[Any, ...], result: Any) -> Any:
    """Return a number if all inputs were numbers, else the array."""
    return float(result) if all(np.ndim(value) == 0 for value in inputs) else np.asarray(result)


def each(function: Callable[..., float], *inputs: Any) -> NDArray[Any]:
    """Apply a function of numbers to each entry of arrays, after broadcasting them.

    >>> each(math.pow, np.array([[2.0], [3.0]]), [1, 2])
    array([[2., 4.],
           [3., 9.]])
    """
    for name, values in zip(inspect.signature(function).parameters, inputs, strict=False):
        check_unmasked(name, values)
    arrays = np.broadcast_arrays(*inputs)
    rows = zip(*(array.ravel().tolist() for array in arrays), strict=True)
    return np.array([function(*row) for row in rows]).reshape(arrays[0].shape)
