"""An ask or a tell: what it does to an experiment, and its answer once that is committed."""

from __future__ import annotations

from typing import Any

import msgspec

from manyarms.serve import messages as m
from manyarms.serve.access import Headers, ticket, ticket_pull
from manyarms.serve.committer import Answers
from manyarms.serve.errors import RefusedError, invalid, refuse
from manyarms.serve.owned import AskedBefore, Given, Owned, refused_tell, told_before

EDGE = "~"  # what keys begin with that nodes make for each other
_MOST_KEY = 200
_MOST_OF_A_PAGE = 10  # pulls of an ask by the role browser
_encode = msgspec.json.Encoder().encode


def key_in(headers: Headers, *, forwarded: bool = False) -> str | None:
    """Return the key of an ask, if it has one; nodes make some when they send asks on."""
    key = headers.get(b"idempotency-key", b"").decode("latin-1")
    if len(key) > _MOST_KEY or (key.startswith(EDGE) and not forwarded):
        raise refuse(
            422,
            "key",
            f"An Idempotency-Key has at most {_MOST_KEY} characters, and does not begin with "
            f"{EDGE}.",
        )
    return key or None


class AskMove:
    """Gives out pulls; those of an ask with the same key again."""

    __slots__ = ("_body", "_browser", "_wanted", "key")

    def __init__(self, wanted: m.Ask, key: str | None, *, browser: bool = False) -> None:
        if browser:
            _check_page(wanted)
        self.key = key
        self._wanted, self._browser = wanted, browser
        # a page that guesses the key of another program's ask does not get its pulls
        self._body = f"page {wanted.k}" if browser else f"{wanted.k} {wanted.worker or ''}"

    @property
    def once(self) -> bool:
        """Whether it must not be sent again: without a key, that gives other pulls."""
        return self.key is None

    def knows(self, owned: Owned) -> bool:
        """Whether it can be told without the database if this ask came before."""
        key = self.key
        if key is None or key in owned.keys:
            return True
        return owned.all_keys and not key.startswith(EDGE)

    def change(self, owned: Owned, before: AskedBefore | None = None) -> Given:
        """Do it; `before` is what the database says of the key."""
        if self.key is not None:
            before = owned.keys.get(self.key, before)
            if before is not None:
                return owned.asked_before(before, self._body)
        return owned.ask(self._wanted.k, self._wanted.worker, self.key, self._body)

    def answer(self, owned: Owned, given: Given, answers: Answers) -> bytes:
        """Return the pulls as JSON."""
        arms, name = given.arms, owned.arm_name
        if answers.ended:
            arms = arms | {pull: end[2] for pull, end in answers.ended.items()}
        if self._wanted.tickets or self._browser:
            sign = owned.secret, owned.name
            pulls = [
                m.GivenPull(pull, name(arms[pull]), ticket(*sign, pull, owned.generation))
                for pull in given.pulls
            ]
        else:
            pulls = [m.GivenPull(pull, name(arms[pull])) for pull in given.pulls]
        return _encode(m.Asked(pulls, given.again))


def _check_page(wanted: m.Ask) -> None:
    """Bound what everybody who sees a page may ask for: no pulls of others, and few."""
    if wanted.worker is not None:
        raise refuse(403, "role", "The role browser may not name a `worker`.")
    if wanted.k > _MOST_OF_A_PAGE:
        raise refuse(
            403, "role", f"The role browser may ask for {_MOST_OF_A_PAGE} pulls at once, not more."
        )


class TellMove:
    """Lets rewards come."""

    __slots__ = ("_browser", "_wanted")
    once = False

    def __init__(self, wanted: m.Tells, *, browser: bool = False) -> None:
        self._wanted, self._browser = wanted, browser

    def knows(self, owned: Owned) -> bool:
        """Return True: what was told before, the commit finds out."""
        return True

    def change(self, owned: Owned) -> list[tuple[m.Told | None, int, float]]:
        """Do it."""
        results: list[tuple[m.Told | None, int, float]] = []
        for one in self._wanted.tells:
            pull = self._pull_of(owned, one)
            if isinstance(pull, m.Told):
                results.append((pull, 0, 0.0))
            else:
                results.append((owned.tell(pull, one.reward), pull, one.reward))
        return results

    def _pull_of(self, owned: Owned, one: m.Tell) -> int | m.Told:
        try:
            if one.ticket is not None and one.pull is None:
                return ticket_pull(owned.secret, owned.name, one.ticket, owned.generation)
            if one.pull is None or one.ticket is not None:
                raise invalid("A tell needs `pull` or `ticket`, one of them.")
            if self._browser:
                raise refuse(403, "role", "The role browser may tell by `ticket` only.")
        except RefusedError as error:
            return refused_tell(-1 if one.pull is None else one.pull, error.failure)
        return one.pull

    def answer(self, owned: Owned, results: Any, answers: Answers) -> bytes:
        """Return a result for each as JSON."""
        told = [
            told or told_before(pull, answers.ended.get(pull), reward)
            for told, pull, reward in results
        ]
        return _encode(m.ToldMany(told))
