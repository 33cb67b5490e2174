"""The policies that may be the answer: those that need to know no more than the user does.

Facts decide, not names: what a policy knows (`About.knowledge`), which rewards it is made for,
whether it takes a best mean of 1 for granted, and which parameters it has. A policy that is
registered with an `about` joins by itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from manyarms.advice.question import Question
from manyarms.errors import ParameterError
from manyarms.lab.experiment import Objective
from manyarms.policies import Doubling
from manyarms.protocol import About, Policy, described, policy
from manyarms.protocol.registry import maker

__all__ = ["Candidate", "admitted_by", "candidates"]

# Tried where a policy has the beta of the paper's Algorithm 1; the middle one only where something
# is proven for every beta
_BETAS, _MIDDLE = (0.5, 0.6), 0.55
_UNKNOWN = About(
    needs="unknown", guarantee="none known", nanoseconds=300, scaling="unknown", good_at="unknown"
)


@dataclass(frozen=True)
class Candidate:
    """A policy that may be recommended, what to call it and what to type, and its facts."""

    policy: Policy
    label: str
    code: str
    about: About

    @property
    def proven(self) -> bool:
        """Whether anything is proven about it."""
        return _is_proven(self.about)


def _is_proven(about: About) -> bool:
    return not about.guarantee.startswith("none")


def candidates(question: Question) -> list[Candidate]:
    """Return the policies that can be played with what is known, in the catalogue's order."""
    said = described()
    chosen: tuple[str | Policy, ...] = tuple(
        name for name, about in said.items() if _is_for(question.objective, about)
    )
    if question.policies is not None:
        chosen = question.policies
    found: list[Candidate] = []
    for one in chosen:
        if isinstance(one, Policy):
            made = one if question.best_mean is None else one.with_best_mean(question.best_mean)
            about = said.get(one.name, _UNKNOWN)
            found.append(Candidate(made, made.label, repr(made), about))
        else:
            found += _forms(question, one, said.get(one, _UNKNOWN))
    if not found:
        raise ParameterError(
            "`policies` must contain some that need to know no more than you do, got none. "
            "Leave it out, or say what you know."
        )
    return found


def _is_for(objective: Objective, about: About) -> bool:
    """Whether a policy is made for the objective; to find, the paper's and ours play as well."""
    if objective == "earn":
        return not about.finds
    return about.finds or about.kind != "field"


def _forms(question: Question, name: str, about: About) -> Iterator[Candidate]:
    """Yield the default form of a policy and its variants, where they fit."""
    forms: list[tuple[str, About, Mapping[str, Any]]] = [(name, about, {})]
    for form in about.variants:
        facts = replace(about, guarantee=form.guarantee, rewards=form.rewards)
        forms.append((form.label, facts, form.parameters))
    taken = inspect.signature(maker(name)).parameters
    told = {key: value for key, value in _told(question, about).items() if key in taken}
    for label, facts, parameters in forms:
        if not _fits(question, facts):
            continue
        betas = sorted({*_BETAS, *([_MIDDLE] if _is_proven(facts) else [])})
        for beta in betas if "beta" in taken else (None,):
            given = {**parameters, **told, **({} if beta is None else {"beta": beta})}
            made = policy(name, **given)
            if isinstance(made, Doubling):  # it is for those who do not know the horizon
                continue
            if question.best_mean is not None:
                untold, made = made, made.with_best_mean(question.best_mean)
                values = {f.name: getattr(made, f.name) for f in fields(made)}
                given |= {k: v for k, v in values.items() if v != getattr(untold, k)}
            words = "".join(f", {key}={value!r}" for key, value in given.items())
            called = label if beta is None else f"{label} β={beta:g}"
            yield Candidate(made, called, f'ma.policy("{name}"{words})', facts)


def _fits(question: Question, about: About) -> bool:
    """Whether a policy needs to know no more than the user does, and fits these rewards."""
    own = question.instance
    known = {"none": True, "m": question.bounded, "mu*": question.best_mean is not None}
    perfect = question.best_mean == 1.0 or not about.perfect_best
    bounded = about.rewards == "any" or own is None or own.rewards.bounded
    return known.get(about.knowledge, False) and perfect and bounded


def _told(question: Question, about: About) -> dict[str, Any]:
    """Return what is known, by the names of parameters that ask for it."""
    told: dict[str, Any] = {"perfect_best": True} if question.best_mean == 1.0 else {}
    if question.in_flight > 0:
        told["count_late"] = True
    if about.knowledge == "m":
        share = question.fewest / question.n
        told |= {"m": question.fewest, "rho": share, "share": share}
    return told


def admitted_by(
    knowledge: str, *, perfect_best: bool = False, objective: Objective = "earn"
) -> list[str]:
    """Return the names of policies that need to know this.

    >>> admitted_by("mu*")[:2]
    ['parallel', 'anytime-parallel']
    """
    return [
        name
        for name, about in described().items()
        if about.knowledge == knowledge and about.perfect_best == perfect_best
        if _is_for(objective, about)
    ]
