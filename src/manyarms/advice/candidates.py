"""The policies that may be the answer: those that need to know no more than the user does.

Facts decide, not names: what a policy knows (`About.knowledge`), which rewards it is made for,
whether it takes a best mean of 1 for granted, and which parameters it has. A policy that is
registered with an `about` joins by itself.

Of our own catalogue only some play at first, because each policy that plays must be compiled.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from manyarms.advice.question import Question
from manyarms.errors import ParameterError
from manyarms.instances.rewards import Bernoulli, Gaussian
from manyarms.policies import Doubling
from manyarms.protocol import About, Policy, described, policy
from manyarms.protocol.about import Condition
from manyarms.protocol.plain_classes import PlainMaker, PlainPolicy
from manyarms.protocol.policy import table_labels
from manyarms.protocol.registry import maker, name_of, own_name
from manyarms.simulation.experiment import Objective

# Tried where a policy has the beta of the paper's Algorithm 1; the middle one only where something
# is proven for every beta
_BETAS, _MIDDLE = (0.5, 0.6), 0.55
# Those that play only if the whole catalogue is asked for: on all 38 problems of the leaderboard,
# and on all but 6 of 400 random ones, others that know as much lost no more.
_OUTPLAYED = frozenset(
    [
        "empmoss++",
        "moss",
        "quantile",
        "moss++",
        "parallel",
        "anytime-moss++",
        "anytime-parallel",
        "guarded-empmoss++",
        "uniform",
        "ucb1",
        "ucb",
        "kl-ucb",
        "kl-moss",
        "kl-ucb++",
        "kl-ucb-switch",
        "thompson",
        "ss-ucb",
    ]
)
_UNKNOWN = About(needs="unknown", guarantee="none known", scaling="unknown", good_at="unknown")


@dataclass(frozen=True)
class Candidate:
    """A policy that may be recommended, what to call it and what to type, and its facts.

    `code` is for Python, `word` for `--policy` on the command line; "" if it has no name there.
    """

    policy: Policy
    label: str
    code: str
    about: About
    word: str = ""
    unmet: tuple[Condition, ...] = ()  # conditions of its guarantee that the question excludes
    waits_for: str = ""  # it plays only if the policy of this name leads

    @property
    def proven(self) -> bool:
        """Whether anything is proven about it that applies to the question."""
        return _is_proven(self.about) and not self.unmet

    @property
    def proof(self) -> str:
        """What is proved about it here, in a sentence."""
        if not _is_proven(self.about):
            return "Nothing is proved about it."
        if self.unmet:
            needed = " and ".join(self.unmet)
            return f"Nothing is proved about it here: its guarantee needs {needed}."
        return f"Proved: {self.about.guarantee}."


def _is_proven(about: About) -> bool:
    return not about.guarantee.startswith("none")


def _unmet(question: Question, about: About) -> tuple[Condition, ...]:
    """Return the conditions of a guarantee that the question excludes, or cannot promise."""
    law = Bernoulli() if question.instance is None else question.instance.rewards
    met: dict[Condition, bool] = {
        "best mean 1": question.bests == (1.0,)
        if question.instance is None
        else question.instance.best_mean == 1.0,
        "rewards 0 and 1": isinstance(law, Bernoulli),
        "Gaussian rewards": isinstance(law, Gaussian),
        "more pulls than arms": question.horizon >= question.n,
        "hardness below 0.35": question.hardest.alpha < 0.35,
    }  # of a shape of the means, a question says nothing
    return tuple(condition for condition in about.only_if if not met.get(condition, False))


def candidates(question: Question) -> list[Candidate]:
    """Return the policies that can be played with what is known, in the catalogue's order."""
    said = described()
    found: list[Candidate] = []
    for one in _chosen(question, said):
        if isinstance(one, Policy):
            made = one if question.best_mean is None else one.with_best_mean(question.best_mean)
            found.append(_as_given(made, said.get(one.name, _UNKNOWN)))
            continue
        waits = _inner(one) if question.few and _inner(one) != one else ""
        forms = _forms(question, one, said.get(one, _UNKNOWN))
        found += (replace(form, waits_for=waits) for form in forms)
    if not found:
        raise ParameterError(
            "`policies` must contain some that need to know no more than you do, got none. "
            "Leave it out, or say what you know."
        )
    labels = table_labels([one.policy for one in found])
    return [
        # a policy that is registered under another name than that of its class is called so
        replace(
            one,
            label=label.replace(one.policy.name, one.label, 1),
            unmet=_unmet(question, one.about),
        )
        for one, label in zip(found, labels, strict=True)
    ]


def _chosen(question: Question, said: Mapping[str, About]) -> Sequence[str | Policy]:
    """Return who may play: those that the user names, the catalogue, or the few of it."""
    if question.policies is not None:
        return question.policies
    everyone = [name for name, about in said.items() if _is_for(question.objective, about)]
    few = [name for name in everyone if name not in _OUTPLAYED]
    return [name for name in few if _inner(name) in few] if question.few else everyone


def _inner(name: str) -> str:
    """Return the policy that a guard is around.

    With the guard it hardly ever loses less; so it plays only if the policy itself leads.
    """
    return name.removeprefix("guarded-")


def _as_given(made: Policy, about: About) -> Candidate:
    """Return a policy that the user made, with what to type to make it again."""
    code, word = repr(made), ""
    changed = {f.name: v for f in fields(made) if (v := getattr(made, f.name)) != f.default}
    if isinstance(made, PlainPolicy):
        words = [made.make.__name__, *(f"{key}={value!r}" for key, value in made.parameters)]
        code = f"ma.plain_policy({', '.join(words)})"
    elif name_of(type(made)) == made.name and "policy" not in changed:  # no wrapper
        code, word = _code(made.name, changed), _word(made.name, changed)
    return Candidate(made, made.name, code, about, word)


def _is_for(objective: Objective, about: About) -> bool:
    """Whether a policy is made for the objective; to find, the paper's and ours play as well."""
    if objective == "earn":
        return not about.finds
    return about.finds or about.kind != "field"


def _forms(question: Question, name: str, about: About) -> Iterator[Candidate]:
    """Yield the default form of a policy and its variants, where they fit."""
    forms: list[tuple[About, Mapping[str, Any]]] = [(about, {})]
    for form in about.variants:
        facts = replace(about, guarantee=form.guarantee, rewards=form.rewards, only_if=form.only_if)
        forms.append((facts, form.parameters))
    taken = inspect.signature(maker(name)).parameters
    told = {key: value for key, value in _told(question, about).items() if key in taken}
    for facts, parameters in forms:
        if not _fits(question, facts):
            continue
        betas = sorted({*_BETAS, *([_MIDDLE] if _is_proven(facts) else [])})
        for beta in betas if "beta" in taken else (None,):
            own = {} if beta is None or beta == taken["beta"].default else {"beta": beta}
            given = {**parameters, **told, **own}
            made = policy(name, **given)
            if isinstance(made, Doubling):  # it is for those who do not know the horizon
                continue
            if question.best_mean is not None:
                untold, made = made, made.with_best_mean(question.best_mean)
                values = {f.name: getattr(made, f.name) for f in fields(made)}
                given |= {k: v for k, v in values.items() if v != getattr(untold, k)}
            code, word = _code(name, given), _word(name, given)
            yield Candidate(made, own_name(name), code, facts, word)


def _code(name: str, parameters: Mapping[str, Any]) -> str:
    """Return what to type in Python; a policy of one's own is imported there, not named.

    >>> _code("moss++", {"beta": 0.6})
    'ma.policy("moss++", beta=0.6)'
    """
    words = [f"{key}={value!r}" for key, value in parameters.items()]
    if ":" not in name:
        return f"ma.policy({', '.join([json.dumps(name), *words])})"
    place = name.replace(":", ".")
    if isinstance(maker(name), PlainMaker):
        return f"ma.plain_policy({', '.join([place, *words])})"
    return f"{place}({', '.join(words)})"


def _word(name: str, parameters: Mapping[str, Any]) -> str:
    """Return what `--policy` takes.

    >>> _word("moss++", {"index": "kl++", "beta": 0.6}), _word("moss", {})
    ('moss++:index=kl++,beta=0.6', 'moss')
    """
    words = [f"{key}={value}" for key, value in parameters.items()]
    return ":".join([name, ",".join(words)]) if words else name


def _fits(question: Question, about: About) -> bool:
    """Whether a policy needs to know no more than the user does, and fits these rewards."""
    own = question.instance
    known = {"none": True, "m": question.bounded, "mu*": question.best_mean is not None}
    perfect = question.best_mean == 1.0 or not about.perfect_best
    bounded = about.rewards == "any" or own is None or own.rewards.bounded
    return known.get(about.knowledge, False) and perfect and bounded


def _told(question: Question, about: About) -> dict[str, Any]:
    """Return what is known, by the names of parameters that ask for it."""
    told: dict[str, Any] = {}
    if question.in_flight > 0:
        told["count_late"] = True
    if about.knowledge == "m":
        told["m"] = question.fewest
    return told


def admitted_by(knowledge: str, question: Question) -> list[str]:
    """Return the policies that would play, too, if this were known; not if the best mean were 1."""
    return [
        name
        for name, about in described().items()
        if about.knowledge == knowledge
        and not about.perfect_best
        and _is_for(question.objective, about)
        and (not question.few or name not in _OUTPLAYED)
    ]
