"""A good spec, ways to spoil it, and the sentence for each."""

from __future__ import annotations

import pytest

import manyarms as ma
from manyarms.errors import SpecError
from manyarms.instances import FAMILIES
from manyarms.lab import parse_spec

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


def with_instance(*lines: str) -> str:
    start, rest = GOOD.split("[instance]")
    return (
        start + "[instance]\n" + "\n".join(lines) + "\n[[policy]]" + rest.split("[[policy]]", 1)[1]
    )


def with_policies(*lines: str) -> str:
    return GOOD.split("[[policy]]", 1)[0] + "\n".join(lines)


BAD = {
    # [experiment]
    "no horizon": (
        changed(("horizon = 500\n", "")),
        "experiment.horizon: is required.",
    ),
    "no name": (
        changed(('name = "beta-sweep"\n', "")),
        "experiment.name: is required.",
    ),
    "no experiment": (
        GOOD[GOOD.index("[instance]") :],
        "experiment: is required. Add a table [experiment].",
    ),
    "experiment is no table": (
        "experiment = 3\n" + GOOD[GOOD.index("[instance]") :],
        "experiment: must be a table [experiment], got 3.",
    ),
    "horizon as text": (
        changed(("horizon = 500", 'horizon = "500"')),
        "experiment.horizon: must be an integer >= 1 and <= 1099511627776, got '500'.",
    ),
    "horizon of zero": (
        changed(("horizon = 500", "horizon = 0")),
        "experiment.horizon: must be an integer >= 1 and <= 1099511627776, got 0.",
    ),
    "horizon beyond memory": (
        changed(("horizon = 500", "horizon = 10000000000000")),
        "experiment.horizon: must be an integer >= 1 and <= 1099511627776, got 10000000000000.",
    ),
    "horizon with a point": (
        changed(("horizon = 500", "horizon = [500, 1e3]")),
        "experiment.horizon: must be an integer >= 1 and <= 1099511627776, got 1000.0.",
    ),
    "an empty sweep": (
        changed(("horizon = 500", "horizon = []")),
        "experiment.horizon: must contain at least one value, got an empty list.",
    ),
    "a value twice": (
        changed(("horizon = 500", "horizon = [500, 500]")),
        "experiment.horizon: must contain different values, got 500 twice.",
    ),
    "replications true": (
        changed(("replications = 20", "replications = true")),
        "experiment.replications: must be an integer >= 1 and <= 1099511627776, got True.",
    ),
    "a sweep of seeds": (
        changed(("seed = 1", "seed = [1, 2]")),
        "experiment.seed: must be an integer >= 0 and <= 18446744073709551615, got [1, 2].",
    ),
    "a negative seed": (
        changed(("seed = 1", "seed = -1")),
        "experiment.seed: must be an integer >= 0 and <= 18446744073709551615, got -1.",
    ),
    "more checkpoints than pulls": (
        changed(("checkpoints = 5", "checkpoints = 501")),
        "experiment.checkpoints: must be an integer >= 1 and <= 500, got 501.",
    ),
    "a checkpoint after the shortest horizon": (
        changed(
            ("checkpoints = 5", "checkpoints = [10, 200]"),
            ("horizon = 500", "horizon = [500, 100]"),
        ),
        "experiment.checkpoints: must be an integer >= 1 and <= 100, got 200.",
    ),
    "no checkpoint": (
        changed(("checkpoints = 5", "checkpoints = []")),
        "experiment.checkpoints: must be an integer >= 1 and <= 500, got [].",
    ),
    "a name without words": (
        changed(('name = "beta-sweep"', 'name = " "')),
        "experiment.name: must be a text in quotes, got ' '.",
    ),
    "a misspelt key": (
        changed(("replications = 20", "replication = 20")),
        "experiment.replication: unknown key. Did you mean 'replications'?",
    ),
    "a key like one that is there": (
        changed(('family = "planted"', 'family = "planted"\nfile = "x.csv"')),
        "instance.file: unknown key. Known: alpha, best, family, m, n, others, rewards.",
    ),
    "a misspelt table": (
        changed(("[instance]", "[instanse]")),
        "instanse: unknown key. Did you mean 'instance'?",
    ),
    "too many pulls": (
        changed(
            ("horizon = 500", "horizon = 1000000000"),
            ("replications = 20", "replications = 1000000"),
        ),
        "experiment: must make at most 1e+15 pulls in all, got 6e+15.",
    ),
    "too many rows": (
        changed(("replications = 20", "replications = 1000000000")),
        "experiment: must make at most 1e+10 rows of regret, got 3e+10.",
    ),
    "too many combinations": (
        changed(("n = 2000", f"n = {list(range(1, 20_001))}")),
        "experiment: must make at most 1e+05 combinations of swept values, got 1.2e+05.",
    ),
    # [instance]
    "no family": (
        changed(('family = "planted"\n', "")),
        f"instance.family: is required. Known: {', '.join(sorted([*FAMILIES, 'reservoir']))}.",
    ),
    "an unknown family": (
        changed(('"planted"', '"plantd"')),
        "instance.family: unknown family 'plantd'. Did you mean 'planted'?",
    ),
    "a sweep of families": (
        changed(('"planted"', '["planted", "groups"]')),
        "instance.family: cannot be swept, got ['planted', 'groups']. Write a spec for each.",
    ),
    "family of a wrong type": (
        changed(('"planted"', "7")),
        "instance.family: must be a text in quotes, got 7.",
    ),
    "a sweep of an unknown key": (
        changed(("n = 2000", "n = 2000\nbets = [0.8, 0.9]")),
        "instance.bets: unknown key. Did you mean 'best'?",
    ),
    "a key of another table": (
        changed(("n = 2000", "n = 2000\nseed = 3")),
        "instance.seed: unknown key. It belongs in [experiment].",
    ),
    "alpha above 1": (
        changed(("[0.1, 0.2]", "[0.1, 1.2]")),
        "instance.alpha: must be a number >= 0 and <= 1, got 1.2.",
    ),
    "alpha not a number": (
        changed(("[0.1, 0.2]", "nan")),
        "instance.alpha: must be a number >= 0 and <= 1, got nan.",
    ),
    "a date": (
        changed(("n = 2000", "n = 2020-01-01")),
        "instance.n: must be an integer >= 1 and <= 1125899906842624, "
        "got datetime.date(2020, 1, 1).",
    ),
    "neither alpha nor m": (
        changed(("alpha = [0.1, 0.2]\n", "")),
        "instance: `alpha` or `m`, the hardness or the number of best arms, is required.",
    ),
    "both alpha and m": (
        changed(("n = 2000", "n = 2000\nm = 5")),
        "instance.alpha: must be left out with `m`, got 0.1. Give one of them.",
    ),
    "more best arms than arms": (
        with_instance('family = "planted"', "n = 10", "m = [5, 11]"),
        "instance.m: must be an integer >= 1 and <= 10, got 11....",
    ),
    "others as large as the best": (
        changed(("n = 2000", "n = 2000\nothers = [0.1, 0.95]")),
        "instance.others: must be smaller than best = 0.9, got 0.95.",
    ),
    "others without a list": (
        changed(("n = 2000", "n = 2000\nothers = 0.5")),
        "instance.others: must be a list with at least one number, got 0.5.",
    ),
    "lists and numbers mixed": (
        changed(("n = 2000", "n = 2000\nothers = [[0.1], 0.5]")),
        "instance.others: must be a list with at least one number, got 0.5.",
    ),
    "groups without sizes": (
        with_instance('family = "groups"', "means = [0.5, 0.9]"),
        "instance.sizes: is required.",
    ),
    "sizes and means of different length": (
        with_instance('family = "groups"', "sizes = [1, 2, 3]", "means = [0.5, 0.9]"),
        "instance: `sizes` and `means` must have the same length, got 3 and 2.",
    ),
    "a negative size": (
        with_instance('family = "groups"', "sizes = [1, -2]", "means = [0.5, 0.9]"),
        "instance.sizes: must be an integer >= 0, got -2.",
    ),
    "a mean above 1 for coins": (
        with_instance('family = "means"', "means = [0.5, 1.5]"),
        "instance.means: must be a number >= 0 and <= 1, got 1.5. "
        "Bernoulli rewards lie in [0, 1]; Gaussian() takes any mean.",
    ),
    "a text among means": (
        with_instance('family = "means"', 'means = [0.5, "a"]'),
        "instance.means: must be numbers, one for each arm: could not convert ...",
    ),
    "a reservoir without a distribution": (
        with_instance('family = "reservoir"'),
        "instance.distribution: is required. Known: beta, discrete, uniform.",
    ),
    "an unknown distribution": (
        with_instance('family = "reservoir"', 'distribution = "unifrom"'),
        "instance.distribution: unknown distribution 'unifrom'. Did you mean 'uniform'?",
    ),
    "a parameter of another distribution": (
        with_instance('family = "reservoir"', 'distribution = "uniform"', "a = 1.0"),
        "instance.a: unknown key. Known: distribution, epsilon, family, high, low, rewards.",
    ),
    "an oracle with nothing to be told": (
        with_instance('family = "reservoir"', 'distribution = "uniform"'),
        "policy[2]: Exactly one of `alpha`, `m` and `size` must be given, got none. An oracle must "
        "know how hard the problem is.",
    ),
    "probabilities that do not add up": (
        with_instance(
            'family = "reservoir"',
            'distribution = "discrete"',
            "values = [0.9, 0.5]",
            "probabilities = [[0.1, 0.9], [0.1, 0.8]]",
        ),
        "instance.probabilities: must add up to 1, got 0.9....",
    ),
    "a contest that is not there": (
        with_instance('family = "captions"', 'contest = "no/such/contest.csv"'),
        "instance.contest: must be a file that exists, got 'no/such/contest.csv'.",
    ),
    "a contest of a wrong type": (
        with_instance('family = "captions"', "contest = 1.5"),
        "instance.contest: must be a path, or a contest's number or name such as 652, got 1.5.",
    ),
    # rewards
    "an unknown reward model": (
        changed(('"bernoulli"', '"gausian"')),
        "instance.rewards: unknown model 'gausian'. Did you mean 'gaussian'?",
    ),
    "one mistake twice": (
        changed(('"bernoulli"', "[false, false]")),
        "instance.rewards: must be a text in quotes, got False.",
    ),
    "rewards without a model": (
        changed(('"bernoulli"', "{ sigma = 0.5 }")),
        "instance.rewards.model: is required. Known: bernoulli, beta, gaussian.",
    ),
    "rewards of a wrong type": (
        changed(('"bernoulli"', "5")),
        "instance.rewards: must be a text in quotes, got 5.",
    ),
    "a parameter of another model": (
        changed(('"bernoulli"', '{ model = "beta", sigma = 0.5 }')),
        "instance.rewards.sigma: unknown key. Known: concentration, model.",
    ),
    "sigma of zero": (
        changed(('"bernoulli"', '{ model = "gaussian", sigma = [0.5, 0] }')),
        "instance.rewards.sigma: must be a number > 0, got 0....",
    ),
    "a sweep within a sweep": (
        changed(('"bernoulli"', '["bernoulli", { model = "gaussian", sigma = [1, 2] }]')),
        "instance.rewards: must not contain a sweep within a sweep, "
        "got {'model': 'gaussian', 'sigma': [1, 2]}.",
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
    "a policy without a name": (
        with_policies("[[policy]]", "beta = 0.5"),
        "policy[1].name: is required.",
    ),
    "an unknown policy": (
        changed(('"moss-oracle"', '"mos-oracle"')),
        "policy[2].name: unknown policy 'mos-oracle'. Did you mean 'moss-oracle'?",
    ),
    "a misspelt parameter": (
        changed(('name = "moss-oracle"', 'name = "moss++"\nbetta = 0.6')),
        "policy[2].betta: unknown key. Did you mean 'beta'?",
    ),
    "a horizon for a policy": (
        changed(("beta = [0.5, 0.7]", "horizon = [100, 200]")),
        "policy[1].horizon: unknown key. It belongs in [experiment].",
    ),
    "beta out of range": (
        changed(("[0.5, 0.7]", "[0.5, 0.2]")),
        "policy[1].beta: must be a number ... got 0.2....",
    ),
    "beta as text": (
        changed(("[0.5, 0.7]", '"0.5"')),
        "policy[1].beta: must be a number ... got '0.5'....",
    ),
    "beta as table": (
        changed(("[0.5, 0.7]", "{ from = 0.5, to = 0.7 }")),
        "policy[1].beta: must be a number or a text, got {'from': 0.5, 'to': 0.7}.",
    ),
    "an oracle told of more best arms than arms": (
        changed(('name = "moss-oracle"', 'name = "moss-oracle"\nm = 2001')),
        "policy[2].m: must be an integer >= 1 and <= 2000, got 2001....",
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
    "broken TOML": (
        changed(("horizon = 500", "horizon = = 500")),
        "file: is not valid TOML: Invalid value (at line 4, ...",
    ),
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
