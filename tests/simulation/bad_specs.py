"""A good spec, ways to spoil it, and the sentence for each."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import manyarms as ma
from manyarms.errors import SpecError
from manyarms.instances import FAMILIES
from manyarms.simulation import parse_spec

__all__ = ["BAD", "GOOD", "changed", "problems_of", "with_instance", "with_policies"]

GOOD = """
[experiment]
name = "beta-sweep"
horizon = 500
replications = 20
seed = 1
checkpoints = 5

[instance]
family = "planted"
n = 2000
alpha = [0.1, 0.2]
rewards = "bernoulli"

[[policy]]
name = "moss++"
beta = [0.5, 0.7]

[[policy]]
name = "moss-oracle"
"""


def changed(*changes: tuple[str, str]) -> str:
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def problems_of(text: str) -> tuple[str, ...]:
    """Return what is wrong with a spec, line by line."""
    with pytest.raises(SpecError) as caught:
        parse_spec(text)
    assert isinstance(caught.value, ma.ManyarmsError)
    assert isinstance(caught.value, ValueError)
    for line in caught.value.problems:
        assert f"\n  {line}" in str(caught.value)
    return caught.value.problems


def with_instance(lines: str) -> str:
    """Return the good spec with another family, and its lines separated by semicolons."""
    start, rest = GOOD.split("[instance]")
    table = f"[instance]\nfamily = {lines}".replace("; ", "\n")
    return f"{start}{table}\n[[policy]]{rest.split('[[policy]]', 1)[1]}"


def with_policies(*lines: str) -> str:
    return GOOD.split("[[policy]]", 1)[0] + "\n".join(lines)


def put(place: str, value: str, text: str = GOOD) -> str:
    """Return a spec with another value at a place; "" for none."""
    table, key = place.split(".")
    parts = re.split(r"^(?=\[)", text, flags=re.MULTILINE)
    at = ["", "experiment", "instance", "policy[1]", "policy[2]"].index(table)
    lines = [line for line in parts[at].splitlines() if not line.startswith(f"{key} = ")]
    parts[at] = "\n".join([*lines, f"{key} = {value}" if value else "", ""])
    return "".join(parts)


# what is put into the good spec, or left out if it has no value, or put in place of [instance]; and
# the problem, in which dots stand for words of Python's and bounds of policies and instances
CASES = """
experiment.name
    experiment.name: is required.
experiment.name = " "
    experiment.name: must be a text in quotes, got ' '.
experiment.horizon
    experiment.horizon: is required.
experiment.horizon = "500"
    experiment.horizon: must be an integer >= 1 and <= 1099511627776, got '500'.
experiment.horizon = 0
    experiment.horizon: must be an integer >= 1 and <= 1099511627776, got 0.
experiment.horizon = 10000000000000
    experiment.horizon: must be an integer >= 1 and <= 1099511627776, got 10000000000000.
experiment.horizon = [500, 1e3]
    experiment.horizon: must be an integer >= 1 and <= 1099511627776, got 1000.0.
experiment.horizon = []
    experiment.horizon: must contain at least one value, got an empty list.
experiment.horizon = [500, 500]
    experiment.horizon: must contain different values, got 500 twice.
experiment.replications = true
    experiment.replications: must be an integer >= 1 and <= 1099511627776, got True.
experiment.seed = [1, 2]
    experiment.seed: must be an integer >= 0 and <= 18446744073709551615, got [1, 2].
experiment.seed = -1
    experiment.seed: must be an integer >= 0 and <= 18446744073709551615, got -1.
experiment.checkpoints = 501
    experiment.checkpoints: must be an integer >= 1 and <= 500, got 501.
experiment.checkpoints = []
    experiment.checkpoints: must be an integer >= 1 and <= 500, got [].
experiment.batches = 20
    experiment.batches: unknown key. Did you mean 'batch'?
instance.family = "plantd"
    instance.family: unknown family 'plantd'. Did you mean 'planted'?
instance.family = ["means"]
    instance.family: cannot be swept, got ['means']. Write a spec for each.
instance.family = 7
    instance.family: must be a text in quotes, got 7.
instance.bets = [0.8, 0.9]
    instance.bets: unknown key. Did you mean 'best'?
instance.seed = 3
    instance.seed: unknown key. It belongs in [experiment].
instance.file = "x.csv"
    instance.file: unknown key. Known: alpha, best, epsilon, family, m, n, others, rewards.
instance.alpha = [0.1, 1.2]
    instance.alpha: must be a number >= 0 and <= 1, got 1.2.
instance.alpha = nan
    instance.alpha: must be a number >= 0 and <= 1, got nan.
instance.n = 2020-01-01
    instance.n: must be an integer >= 1 and <= 1125899906842624, got datetime.date(2020, 1, 1).
instance.others = [0.1, 0.95]
    instance.others: must be smaller than best = 0.9, got 0.95.
instance.others = 0.5
    instance.others: must be a list with at least one number, got 0.5.
instance.others = [[0.1], 0.5]
    instance.others: must be a list with at least one number, got 0.5.
instance.rewards = "gausian"
    instance.rewards: unknown model 'gausian'. Did you mean 'gaussian'?
instance.rewards = [false, false]
    instance.rewards: must be a text in quotes, got False.
instance.rewards = 5
    instance.rewards: must be a text in quotes, got 5.
instance.rewards = ["beta", "beta"]
    instance.rewards: must contain different values, got beta twice.
instance.rewards = ["beta", { model = "gaussian", sigma = [1, 2] }]
    instance.rewards: must not contain a sweep within a sweep, got {'model': 'gaussian',
    'sigma': [1, 2]}.
policy[1].name
    policy[1].name: is required.
policy[2].name = "mos-oracle"
    policy[2].name: unknown policy 'mos-oracle'. Did you mean 'moss-oracle'?
policy[2].aplha = 0.6
    policy[2].aplha: unknown key. Did you mean 'alpha'?
policy[1].horizon = [100, 200]
    policy[1].horizon: unknown key. It belongs in [experiment].
policy[1].beta = [0.5, 0.2]
    policy[1].beta: must be a number ... got 0.2....
policy[1].beta = "0.5"
    policy[1].beta: must be a number ... got '0.5'....
policy[1].beta = { from = 0.5, to = 0.7 }
    policy[1].beta: must be a number or a text, got {'from': 0.5, 'to': 0.7}.
policy[2].m = 2001
    policy[2].m: must be an integer >= 1 and <= 2000, got 2001....
experiment.checkpoints = [10, 200] & experiment.horizon = [500, 100]
    experiment.checkpoints: must be an integer >= 1 and <= 100, got 200.
experiment.horizon = 1000000000 & experiment.replications = 1000000
    experiment: must make at most 1e+15 pulls in all, got 6e+15.
experiment.replications = 1000000000
    experiment: must make at most 1e+10 rows of regret, got 3e+10.
experiment.horizon = = 500
    file: is not valid TOML: Invalid value (at line ...
instance.alpha
    instance: `alpha` or `m`, the hardness or the number of best arms, is required.
instance.m = 5
    instance.alpha: must be left out with `m`, got 0.1. Give one of them.
instance.rewards = { sigma = 0.5 }
    instance.rewards.model: is required. Known: bernoulli, beta, gaussian.
instance.rewards = { model = "beta", sigma = 0.5 }
    instance.rewards.sigma: unknown key. Known: concentration, model.
instance.rewards = { model = "gaussian", sigma = [0.5, 0] }
    instance.rewards.sigma: must be a number > 0, got 0....
[instance] family = "planted"; n = 10; m = [5, 11]
    instance.m: must be an integer >= 1 and <= 10, got 11....
[instance] family = "groups"; means = [0.5, 0.9]
    instance.sizes: is required.
[instance] family = "groups"; sizes = [1, 2, 3]; means = [0.5, 0.9]
    instance: `sizes` and `means` must have the same length, got 3 and 2.
[instance] family = "groups"; sizes = [1, -2]; means = [0.5, 0.9]
    instance.sizes: must be an integer >= 0, got -2.
[instance] family = "means"; means = [0.5, 1.5]
    instance.means: must be a number >= 0 and <= 1, got 1.5. Bernoulli rewards lie in [0, 1];
    Gaussian() takes any mean.
[instance] family = "means"; means = [0.5, "a"]
    instance.means: must be numbers, one for each arm: could not convert ...
[instance] family = "reservoir"
    instance.distribution: is required. Known: beta, discrete, uniform.
[instance] family = "reservoir"; distribution = "unifrom"
    instance.distribution: unknown distribution 'unifrom'. Did you mean 'uniform'?
[instance] family = "reservoir"; distribution = "uniform"; a = 1.0
    instance.a: unknown key. Known: distribution, epsilon, family, high, low, rewards.
[instance] family = "reservoir"; distribution = "uniform"
    policy[2]: Exactly one of `alpha`, `m` and `size` must be given, got none. An oracle must
    know how hard the problem is.
[instance] family = "reservoir"; distribution = "discrete"; values = [1]; probabilities = [0.9]
    instance.probabilities: must add up to 1, got 0.9....
[instance] family = "captions"; contest = "no/such/contest.csv"
    instance.contest: must be a file that exists, got 'no/such/contest.csv'.
[instance] family = "captions"; contest = 1.5
    instance.contest: must be a path, or a contest's number or name such as 652, got 1.5.
"""


def _cases() -> Iterator[tuple[str, tuple[str, str]]]:
    for case in re.split(r"\n(?=\S)", CASES.strip()):
        change, *problem = case.split("\n    ")
        text = GOOD
        if change.startswith("[instance] family = "):
            text = with_instance(change.removeprefix("[instance] family = "))
        else:
            for one in change.split(" & "):
                place, _, value = one.partition(" = ")
                text = put(place, value, text)
        yield change, (text, " ".join(problem))


BAD = dict(_cases()) | {
    # [experiment]
    "no experiment": (
        GOOD[GOOD.index("[instance]") :],
        "experiment: is required. Add a table [experiment].",
    ),
    "experiment is no table": (
        "experiment = 3\n" + GOOD[GOOD.index("[instance]") :],
        "experiment: must be a table [experiment], got 3.",
    ),
    "a misspelt table": (
        changed(("[instance]", "[instanse]")),
        "instanse: unknown key. Did you mean 'instance'?",
    ),
    "too many combinations": (
        changed(("n = 2000", f"n = {list(range(1, 20_001))}")),
        "experiment: must make at most 1e+05 combinations of swept values, got 1.2e+05.",
    ),
    # [instance]
    "no family": (
        put("instance.family", ""),
        f"instance.family: is required. Known: {', '.join(sorted([*FAMILIES, 'reservoir']))}.",
    ),
    # [[policy]]
    "no policy": (
        GOOD.split("[[policy]]", 1)[0],
        "policy: is required. Add a table [[policy]] for each policy.",
    ),
    "one bracket": (
        with_policies("[policy]", 'name = "moss"'),
        "policy: is required, got {'name': 'moss'}. Add a table [[policy]] for each policy.",
    ),
    "policies as texts": (
        'policy = ["moss"]\n' + GOOD.split("[[policy]]", 1)[0],
        "policy[1]: must be a table with a name, got 'moss'.",
    ),
    "the same policy twice": (
        with_policies("[[policy]]", 'name = "moss"', "[[policy]]", 'name = "moss"'),
        "policy[2]: must differ from policy[1], got moss twice. Leave one out.",
    ),
    "the same policy in other words": (
        with_policies(
            "[[policy]]", 'name = "moss++"', "[[policy]]", 'name = "moss++"', "beta = 0.5"
        ),
        "policy[2]: must differ from policy[1], got moss++ twice. Leave one out.",
    ),
    # the file
    "a key twice": (
        changed(("seed = 1", "seed = 1\nseed = 2")),
        "file: is not valid TOML: Cannot overwrite a value (at line 7, ...",
    ),
    "an endless number": (
        changed(("seed = 1", f"seed = {'9' * 5000}")),
        "file: is not valid TOML: Exceeds the limit (4300 digits) ...",
    ),
    "nested too deeply": (
        changed(("seed = 1", f"seed = {'[' * 100_000}")),
        "file: is nested too deeply. Is it a spec?",
    ),
}
