"""A small error in the library breaks each promise; without it, the same calls keep it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

import manyarms as ma
from tests.live.promises.arrivals import Arrival, play_arrival
from tests.live.promises.commands import (
    Abandon,
    Ask,
    AskAll,
    Name,
    Reopen,
    Restore,
    Retire,
    Season,
    Tell,
    Wait,
    Wrong,
)
from tests.live.promises.homes import Home, Recorded
from tests.live.promises.promises import PROMISES
from tests.live.promises.search import Failure, play_in
from tests.live.promises.shop import Plant, Planting, Serve, play_planting
from tests.live.promises.spec import Spec

Patch = Callable[[pytest.MonkeyPatch], None]
play_calls = play_in(Recorded)


def on_live(name: str, mutant: Callable[..., Any]) -> Patch:
    """Replace a method of `Live` by `mutant(method, live, *arguments)`."""

    def patch(patches: pytest.MonkeyPatch) -> None:
        method = getattr(ma.Live, name)

        @functools.wraps(method)
        def mutated(self: ma.Live, *args: Any, **kwargs: Any) -> Any:
            return mutant(method, self, *args, **kwargs)

        patches.setattr(ma.Live, name, mutated)

    return patch


def wider_window(begin: Any, live: ma.Live, *args: Any, **settings: Any) -> None:
    window = settings["window"]
    begin(live, *args, **settings | {"window": window and window + 5.0})


def tell_zero(abandon: Any, live: ma.Live, pull: Any) -> None:
    live.tell(pull, 0.0)


def half(tell: Any, live: ma.Live, pull: Any, reward: float) -> None:
    tell(live, pull, reward / 2)


def nothing(method: Any, live: ma.Live, *args: Any) -> None:
    """Do nothing."""


def one_less(season: Any, live: ma.Live, *, horizon: int, **settings: Any) -> None:
    season(live, horizon=horizon - 1, **settings)


def narrower(arms: Any, live: ma.Live) -> list[ma.ArmEstimate]:
    return [
        replace(a, interval=(a.interval[0] + 0.01, a.interval[1])) if a.told else a
        for a in arms(live)
    ]


def the_last(recommend: Any, live: ma.Live) -> ma.ArmEstimate:
    return live.top(99)[-1]


def higher(verdict: Any, live: ma.Live, **question: Any) -> ma.StopVerdict:
    answer: ma.StopVerdict = verdict(live, **question)
    return replace(answer, lower_bound=answer.lower_bound + 0.01)


def other_difference(uplift: Any, live: ma.Live) -> ma.Uplift:
    answer: ma.Uplift = uplift(live)
    return replace(answer, difference=answer.difference * 0.9)


def season_that_observes(season: Any, live: ma.Live, **settings: Any) -> None:
    season(live, **settings)
    live.observe("a", 1.0)


def one_by_one(observe: Any, live: ma.Live, arm: Any, rewards: Any) -> None:
    for reward in rewards if isinstance(rewards, list) else [rewards]:
        observe(live, arm, reward)


def accept_zero(ask: Any, live: ma.Live, *count: int) -> Any:
    return [] if count == (0,) else ask(live, *count)


def refuse(method: Any, live: ma.Live, *args: Any) -> None:
    raise ma.TurnError("no")


def refuse_a(verdict: Any, live: ma.Live, **question: Any) -> ma.StopVerdict:
    if question.get("target") == "a":
        raise ma.UnknownArmError("a")
    answer: ma.StopVerdict = verdict(live, **question)
    return answer


def retired_arm(ask: Any, live: ma.Live, *count: int) -> Any:
    return [pull._replace(arm="b") for pull in ask(live, *count)]


def keep_one(ask: Any, live: ma.Live, *count: int) -> Any:
    if live.horizon == live.pulls + 1:
        raise ma.TurnError("no")
    return ask(live, *count)


def write(uplift: Any, live: ma.Live) -> ma.Uplift:
    if live.pulls:
        live.observe("a", 1.0)
    answer: ma.Uplift = uplift(live)
    return answer


def after_load(change: Callable[[ma.Live], None]) -> Patch:
    """Change every experiment that is loaded."""

    def patch(patches: pytest.MonkeyPatch) -> None:
        load = ma.load

        def mutated(*args: Any, **kwargs: Any) -> ma.Live:
            live = load(*args, **kwargs)
            change(live)
            return live

        patches.setattr(ma, "load", mutated)

    return patch


def begin_again(live: ma.Live) -> None:
    """Lose what the policy knows about its own draws."""
    horizon = live.horizon
    assert horizon is not None
    live.season(horizon=horizon - live.pulls, seed=99)


def no_trials(patches: pytest.MonkeyPatch) -> None:
    patches.setattr(ma, "Prospector", functools.partial(ma.Prospector, trials=0.0))


def in_two_parts(sync: Any, live: ma.Live, names: list[str]) -> Any:
    sync(live, names[:-50])
    live.abandon(live.ask())
    return sync(live, names)


class Case(NamedTuple):
    """A promise, a patch that breaks it, and calls that show it."""

    promise: str
    patch: Patch
    commands: list[Any]
    spec: Any = Spec()
    play: Callable[[Any, list[Any]], Failure | None] = play_calls


ASK_TELL = [Ask(4), Tell(0, 1.0), Tell(0, 0.0), Tell(0, 1.0)]
CONTROL = Spec(control="the control")
WINDOW = Spec(window=10.0)
MANY = Spec(policy="empmoss++", arms=tuple("abcdefgh"))
CASES = [
    Case(
        "windows_end_on_time",
        on_live("__init__", wider_window),
        [Ask(), Wait(12.0)],
        WINDOW,
        play_in(Home),
    ),
    Case("pulls_are_counted", on_live("abandon", tell_zero), [Ask(), Abandon(0)]),
    Case("rewards_are_counted", on_live("tell", half), [Ask(), Tell(0, 1.0)]),
    Case("arms_are_available_or_retired", on_live("restore", nothing), [Retire(0), Restore(0)]),
    Case("budget_is_exact", on_live("season", one_less), [Ask(), Season(20)]),
    Case("intervals_follow_from_rewards", on_live("arms", narrower), ASK_TELL),
    Case("recommends_the_largest_lower_bound", on_live("recommend", the_last), ASK_TELL),
    Case("verdicts_agree_with_intervals", on_live("verdict", higher), ASK_TELL),
    Case(
        "uplift_compares_the_recommended_arm",
        on_live("uplift", other_difference),
        [Ask(16), *[Tell(0, 1.0), Tell(0, 0.0), Tell(0, 1.0)] * 5],
        CONTROL,
    ),
    Case("answers_survive", after_load(lambda live: live.observe("a", 1.0)), [*ASK_TELL, Reopen()]),
    Case(
        "answers_survive",
        after_load(lambda live: live.observe("a", 1.0)),
        [*ASK_TELL, Reopen(kill=True)],
    ),
    Case(
        "a_season_changes_no_statistic",
        on_live("season", season_that_observes),
        [*ASK_TELL, Season(20)],
    ),
    Case("refused_calls_change_nothing", on_live("observe", one_by_one), [Ask(), Wrong(7)]),
    Case("wrong_calls_are_refused", on_live("ask", accept_zero), [Wrong(28)]),
    Case("calls_succeed", on_live("restore", refuse), [Retire(0), Restore(0)]),
    Case("every_name_is_accepted", on_live("verdict", refuse_a), [Name(0)]),
    Case("asks_return_available_arms", on_live("ask", retired_arm), [Retire(1), Ask()]),
    Case("promised_pulls_can_be_asked_for", on_live("ask", keep_one), [AskAll()], Spec(horizon=3)),
    Case("pieces_equal_the_whole", after_load(begin_again), [Reopen()], MANY),
    Case("queries_write_nothing", on_live("uplift", write), [Ask()]),
    Case(
        "the_best_arm_is_tried_in_time",
        no_trials,
        [Serve(1500), Plant()],
        Planting(n_arms=2000),
        play_planting,
    ),
    Case(
        "the_best_arm_earns",
        on_live("recommend", the_last),
        [Serve(400), Plant()],
        Planting(),
        play_planting,
    ),
    Case(
        "the_newest_arrival_is_tried",
        on_live("sync_arms", in_two_parts),
        [],
        Arrival(gone=20),
        play_arrival,
    ),
]


@contextlib.contextmanager
def patched(patch: Patch) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patches:
        patch(patches)
        yield


def test_each_promise_has_a_case() -> None:
    assert {case.promise for case in CASES} == set(PROMISES)


@pytest.mark.patient
@pytest.mark.parametrize("case", CASES, ids=[case.promise for case in CASES])
def test_an_error_breaks_the_promise(case: Case) -> None:
    without = case.play(case.spec, case.commands)
    assert without is None, f"without an error: {without}"
    with patched(case.patch):
        failure = case.play(case.spec, case.commands)
    assert failure is not None, f"{case.promise} is kept in spite of the error"
    assert failure.broken.promise == case.promise, failure
