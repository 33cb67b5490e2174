"""What both clients send: a plan for each method of `Remote`.

A plan yields requests, is given their answers, and returns what the method of a handle would.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from manyarms.core.checks import check_choice, check_int
from manyarms.errors import (
    DuplicateNameError,
    ManyarmsError,
    ParameterError,
    TurnError,
)
from manyarms.live.commands import check_reward, in_list, pairs_of
from manyarms.live.estimates import ArmEstimate, Progress
from manyarms.live.game import NO_PULL, Pull
from manyarms.live.syncing import SyncedArms
from manyarms.live.uplift import Uplift, check_confidence
from manyarms.live.verdict import StopVerdict
from manyarms.protocol.policy import Policy
from manyarms.protocol.registry import described_policy
from manyarms.remote.answers import Answer, arm_of, limit_of, refused_in, told_before, told_in_words

T = TypeVar("T")
MOST_PULLS = 10_000  # of one request
_PAGE = 1000  # arms of a page
_NDJSON = "application/x-ndjson"


@dataclass(frozen=True)
class Call:
    """One request."""

    method: str
    path: str
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    once: bool = False  # not to be sent again if it may have arrived


Plan = Generator[Call, Answer, T]


class Calls:
    """The plans of one experiment."""

    def __init__(self, experiment: str) -> None:
        if not isinstance(experiment, str) or not experiment:
            raise ParameterError(f"`experiment` must be its name, got {experiment!r}.")
        self._all = "/v1/experiments"
        self._path = f"{self._all}/{quote(experiment, safe='')}"

    def listing(self) -> Plan[list[dict[str, Any]]]:
        """Look at all experiments."""
        found: list[dict[str, Any]] = []
        cursor: str | None = ""
        while cursor is not None:
            page = yield Call("GET", f"{self._all}{_query(cursor=cursor)}")
            found += page.body["experiments"]
            cursor = page.body["cursor"]
        return found

    def create(self, spec: dict[str, Any], arms: Iterable[str | int] | None) -> Plan[list[str]]:
        """Create the experiment, and add its arms; return others that it has if it was there."""
        if isinstance(arms, int):
            raise ParameterError(
                f"`arms` must be the names of arms, got {arms}. Pass n_arms={arms} for arms that "
                f"are called by number."
            )
        wanted = None if arms is None else [str(arm) for arm in arms]
        made = yield Call("PUT", self._path, *_json(spec))
        if wanted is None:
            return []
        if made.body["n_arms"]:
            return (yield from self._others(wanted))
        yield from self.add_arms(wanted)
        return []

    def _others(self, wanted: list[str]) -> Plan[list[str]]:
        """Raise unless an experiment has these arms; return its others.

        If it has more than a page of arms, nothing is checked.
        """
        page = yield Call("GET", f"{self._path}/arms{_query(sort='arm', limit=_PAGE)}")
        if page.body["cursor"] is not None:
            return []
        there = {arm["arm"]: arm["retired"] for arm in page.body["arms"]}
        if unknown := [name for name in wanted if name not in there]:
            raise DuplicateNameError(
                f"There is an experiment of this name with other arms: it has "
                f"{len(there)}, and none is called {unknown[0][:100]!r}. Add it with "
                f"`add_arms`, or choose another name."
            )
        given = set(wanted)
        return [name for name, retired in there.items() if name not in given and not retired]

    def ask(self, k: int | None) -> Plan[Pull | list[Pull]]:
        """Ask; the key is the same however often this is sent."""
        fix = "Pass the number of pulls, or nothing for a single one."
        if isinstance(k, int) and k > MOST_PULLS:
            fix = "Ask again for more."
        count = 1 if k is None else check_int("k", k, at_least=1, at_most=MOST_PULLS, fix=fix)
        body, headers = _json({"k": count})
        headers["Idempotency-Key"] = secrets.token_hex(16)
        answer = yield Call("POST", f"{self._path}/asks", body, headers)
        pulls = [Pull(pull["arm"], pull["pull"]) for pull in answer.body["pulls"]]
        return pulls[0] if k is None else pulls

    def tell(self, pull: Pull | int, reward: float, again: str) -> Plan[None]:
        """Tell a reward."""
        check_choice("again", again, ("refuse", "ignore"))
        value = check_reward(reward, None)
        if _is_fallback(pull):
            return
        tell = {"pull": _number(pull), "reward": value}
        yield from self._ended("tells", {"tells": [tell]}, again)

    def tell_many(self, rewards: Iterable[tuple[Pull | int, float]], again: str) -> Plan[None]:
        """Tell rewards, in as many requests as they need; say which is wrong."""
        check_choice("again", again, ("refuse", "ignore"))
        tells = []
        for place, (pull, reward) in enumerate(pairs_of(rewards)):
            try:
                value = check_reward(reward, None)
                if not _is_fallback(pull):
                    tells.append({"pull": _number(pull), "reward": value})
            except ParameterError as error:
                raise error.framed(f"{in_list(place, pull)}: ", " Nothing was told.") from None
        wrong: list[tuple[int, ManyarmsError]] = []
        for k in range(0, len(tells), MOST_PULLS):
            body = {"tells": tells[k : k + MOST_PULLS]}
            try:
                answer = yield Call("POST", f"{self._path}/tells", *_json(body))
            except ManyarmsError as error:
                raise error.framed("", told_before(tells[:k], wrong)) from None
            wrong += [(k + at, error) for at, error in refused_in(answer, "tell", again)]
        if wrong:
            raise type(wrong[0][1])(told_in_words(tells, wrong))

    def abandon(self, pull: Pull | int, again: str) -> Plan[None]:
        """Abandon a pull."""
        check_choice("again", again, ("refuse", "ignore"))
        if _is_fallback(pull):
            return
        yield from self._ended("abandons", {"pulls": [_number(pull)]}, again)

    def _ended(self, where: str, content: dict[str, Any], again: str) -> Plan[None]:
        answer = yield Call("POST", f"{self._path}/{where}", *_json(content))
        for _, error in refused_in(answer, where.removesuffix("s"), again):
            raise error

    def add_arms(self, arms: int | Iterable[str | int]) -> Plan[Sequence[Any]]:
        """Add arms. Names are skipped if they are sent again; a count would be added twice."""
        names = None if isinstance(arms, int) else [str(arm) for arm in arms]
        body, headers = _json({"count": arms}) if names is None else _lines(names)
        once = names is None
        answer = yield Call("POST", f"{self._path}/arms", body, headers, once=once)
        there, added = answer.body["n_arms"], answer.body["added"]
        return range(there - added, there) if names is None else names

    def sync_arms(self, names: Iterable[str | int]) -> Plan[SyncedArms]:
        """Let exactly these arms be in play. Sent twice it does the same."""
        if isinstance(names, str | bytes | int):
            raise ParameterError(f"`names` must be a list of names, got {names!r}.")
        body, headers = _lines(map(str, names))
        seen = (yield Call("PUT", f"{self._path}/arms", body, headers)).body
        return SyncedArms(seen["added"], seen["restored"], seen["retired"], seen["n_arms"])

    def retire(self, arm: str | int) -> Plan[None]:
        """Retire an arm."""
        answer = yield Call("DELETE", f"{self._path}/arms/{quote(str(arm), safe='')}")
        if not (answer.body["applied"] or answer.repeated):
            raise TurnError(f"Cannot retire arm {arm!r}: it is retired already.")

    def restore(self, arm: str | int) -> Plan[None]:
        """Let a retired arm come back."""
        answer = yield Call("POST", f"{self._path}/restores", *_json({"arm": str(arm)}))
        if not (answer.body["applied"] or answer.repeated):
            raise TurnError(f"Cannot restore arm {arm!r}: it is not retired.")

    def observe(self, arm: str | int, rewards: float | Iterable[float]) -> Plan[None]:
        """Report rewards that no pull earned. Sent twice they would count twice."""
        several = rewards if isinstance(rewards, Iterable) else [rewards]
        values = [check_reward(reward, None, "observe") for reward in several]
        for k in range(0, len(values), MOST_PULLS):
            body, headers = _json({"arm": str(arm), "rewards": values[k : k + MOST_PULLS]})
            try:
                yield Call("POST", f"{self._path}/observations", body, headers, once=True)
            except ManyarmsError as error:
                kept = f" The first {k} of {len(values)} rewards were kept." if k else ""
                raise error.framed("", kept) from None

    def season(self, experiment: str, policy: Policy | str | None, **wanted: Any) -> Plan[None]:
        """Create an experiment that remembers this one. Sent twice it does the same."""
        named = None if policy is None else spec_of(policy, None)["policy"]
        body = {"name": experiment, "policy": named} | wanted
        yield Call("POST", f"{self._path}/season", *_json(body))

    def change(self, action: str) -> Plan[None]:
        """Pause, resume or stop."""
        yield Call("POST", f"{self._path}/{action}", *_json({}))

    def summary(self) -> Plan[dict[str, Any]]:
        """Look at the experiment."""
        return dict((yield Call("GET", self._path)).body)

    def progress(self) -> Plan[Progress]:
        """Look how far the game is."""
        seen = yield from self.summary()
        known = {one.name: seen[one.name] for one in fields(Progress) if one.name in seen}
        mean = math.nan if seen["mean_reward"] is None else seen["mean_reward"]
        spec, today = seen["spec"], seen["control_mean"]
        return Progress(
            **known
            | {
                "mean_reward": mean,
                "reward_name": spec["reward"] or "",
                "control": spec["control"],
                "control_mean": math.nan if today is None else today,
            }
        )

    def best(self) -> Plan[Any]:
        """Look which arm is recommended; None if none is."""
        seen = (yield Call("GET", f"{self._path}/leaders{_query(k=1)}")).body["arms"]
        return seen[0]["arm"] if seen else None

    def recommend(self) -> Plan[ArmEstimate]:
        """Look at the best arm."""
        return (yield from self.top(1))[0]

    def top(self, k: int) -> Plan[list[ArmEstimate]]:
        """Look at the best arms."""
        check_int("k", k, at_least=1, at_most=_PAGE)
        answer = yield Call("GET", f"{self._path}/leaders{_query(k=k)}")
        if not answer.body["arms"]:
            raise TurnError(
                "Cannot recommend an arm: no reward has been told yet for any arm in play."
            )
        return [arm_of(seen) for seen in answer.body["arms"]]

    def verdict(self, *, target: float | str | None, **question: Any) -> Plan[StopVerdict]:
        """Look whether to stop."""
        question["target"] = json.dumps(target) if isinstance(target, str) else target
        given = {name: value for name, value in question.items() if value is not None}
        seen = (yield Call("GET", f"{self._path}/verdict{_query(**given)}")).body
        known = {one.name: seen[one.name] for one in fields(StopVerdict) if one.name in seen}
        limit = -math.inf if seen["limit"] is None else seen["limit"]
        return StopVerdict(**known | {"limit": limit})

    def uplift(self, confidence: float) -> Plan[Uplift]:
        """Look how much better the recommended arm is than the control."""
        query = _query(confidence=check_confidence(confidence))
        seen = (yield Call("GET", f"{self._path}/uplift{query}")).body
        if seen["missing"]:
            raise TurnError(f"Cannot compare with a control: {seen['missing']}")
        known = {one.name: seen[one.name] for one in fields(Uplift) if one.name in seen}
        none, most = seen["ratio"] is None, math.inf
        return Uplift(
            **known
            | {
                "interval": (limit_of(seen["low"], -most), limit_of(seen["high"], most)),
                "ratio": math.nan if none else seen["ratio"],
                "ratio_interval": (
                    limit_of(seen["ratio_low"], -most),
                    limit_of(seen["ratio_high"], most),
                ),
            }
        )

    def change_settings(self, **settings: Any) -> Plan[None]:
        """Change settings."""
        yield Call("PATCH", self._path, *_json(settings))

    def pending(self) -> Plan[list[Pull]]:
        """Look at what is waited for."""
        answer = yield Call("GET", f"{self._path}/pending{_query(limit=MOST_PULLS)}")
        return [Pull(pull["arm"], pull["pull"]) for pull in answer.body["oldest"]]

    def arms(self) -> Plan[list[ArmEstimate]]:
        """Look at all arms that were pulled."""
        found: list[ArmEstimate] = []
        cursor: str | None = ""
        while cursor is not None:
            query = _query(sort="pulls", limit=_PAGE, cursor=cursor)
            page = yield Call("GET", f"{self._path}/arms{query}")
            found += [arm_of(seen) for seen in page.body["arms"]]
            cursor = page.body["cursor"]
        return found


# From what is given to JSON


def spec_of(policy: Policy | str, n_arms: int | None, **others: Any) -> dict[str, Any]:
    """Return an experiment as the service reads it."""
    spec: Any = policy
    if isinstance(policy, Policy):
        described = described_policy(policy)
        if described["name"] is None:
            raise ParameterError(
                f"`policy` must be one that the service knows by name, got {policy.label}. "
                f"Register it there, and give its name."
            )
        spec = _named(described)
    return {"policy": spec, "n_arms": n_arms} | others


def _named(described: dict[str, Any]) -> dict[str, Any]:
    parameters = {
        name: _named(value) if isinstance(value, dict) else value
        for name, value in described["parameters"].items()
    }
    return {"name": described["name"], "parameters": parameters}


def _json(content: Any) -> tuple[bytes, dict[str, str]]:
    return json.dumps(content).encode(), {"Content-Type": "application/json"}


def _lines(names: Iterable[str]) -> tuple[bytes, dict[str, str]]:
    text = "".join(f"{json.dumps(name)}\n" for name in names)
    return text.encode(), {"Content-Type": _NDJSON}


def _query(**given: Any) -> str:
    return f"?{urlencode(given)}"


def _is_fallback(pull: Pull | int) -> bool:
    """Whether no game gave this pull, so that its reward is nobody's."""
    number = pull.id if isinstance(pull, Pull) else pull
    return type(number) is int and number == NO_PULL


def _number(pull: Pull | int) -> int:
    number = pull.id if isinstance(pull, Pull) else pull
    return check_int("pull", number, fix="Pass what ask() returned, or its id.")
