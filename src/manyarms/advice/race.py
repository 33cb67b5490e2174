"""Play the candidates in three rounds, and choose the one that is never far behind the best.

All play a few runs; after each round those with the smallest worst excess go on, and with them
whoever is best in some case, because the others are measured against it (successive halving: it is
a rule, not a proof that nobody better was dropped). Costs are estimates, so that nothing depends on
a clock.

The measure is the excess: how much more a policy loses than the best candidate does in the same
case, as a share of the horizon; or, where a good arm is to be found, how much lower the mean of
the recommended arm is. Where the user said between what the best mean lies, such as 0.01 and 0.05
for click rates, it is a share of all that can be lost: else the largest rate would decide
alone. Ratios would let the easiest problems decide, where everyone loses
little and one policy may still lose ten times as little as another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.advice.candidates import Candidate
from manyarms.advice.question import Case, Question
from manyarms.core.statistics import mean_limits, median_interval, runs_to_decide
from manyarms.simulation.experiment import Experiment, cell
from manyarms.simulation.players import Player
from manyarms.simulation.progress import ProgressCallback, progress_for
from manyarms.simulation.simulate import run_in_memory

ALIKE = 1.1  # times the regret, in every case: a guarantee is worth that much
_KEPT = (16, 8)  # who goes on after the first and after the second round
_BUDGET = 3e9  # nanoseconds of one processor, for each round; twice that for the last
_FEWEST, _MOST = 4, 400  # replications: of the first round, and of all
_ALWAYS = 14  # candidates that play, however long it takes
# Pulls take longer than usual on more arms or with another index, measured; and about twice as long
# while other pulls are pending.
_SLOWER, _LATE = 3, 2

Numbers = NDArray[np.float64]


@dataclass(eq=False)
class Race:
    """Everybody's regrets so far, and who is still in."""

    cases: list[Case]
    players: list[Candidate]
    regrets: list[Numbers]  # by candidate: regret by (run, case)
    missed: list[Numbers]  # likewise: whether no best arm was pulled
    left: list[int]  # the candidates that played to the end; the table shows them
    horizon: int  # 1 where regrets are simple ones, of one arm
    winner: int = 0

    def join(self, players: Sequence[Candidate]) -> None:
        """Let players in, who have not played yet."""
        nothing = np.empty((0, len(self.cases)))
        self.left += range(len(self.players), len(self.players) + len(players))
        self.players += players
        self.regrets += [nothing] * len(players)
        self.missed += [nothing] * len(players)

    @property
    def bounds(self) -> Numbers:
        """The most that a run can lose, by case."""
        return np.array([self.horizon * case.instance.largest_gap for case in self.cases])

    @property
    def means(self) -> Numbers:
        """Mean regret as a share of the horizon, by (candidate, case)."""
        return np.array([each.mean(axis=0) for each in self.regrets]) / self.horizon

    @property
    def excesses(self) -> Numbers:
        """What is lost beyond the best of those still in, by (candidate, case)."""
        means = self.means
        return np.asarray((means - means[self.left].min(axis=0)) / self.units)

    @property
    def units(self) -> Numbers:
        """By case: what excesses are measured in."""
        return np.array([case.unit for case in self.cases])

    @property
    def worst(self) -> Numbers:
        """By candidate: its largest excess."""
        return np.asarray(self.excesses.max(axis=1))

    @property
    def runs(self) -> int:
        """The runs of those who played to the end."""
        return len(self.regrets[self.left[0]])

    def best_in(self, case: int) -> int:
        """Return who loses least in a case, of those still in."""
        return min(self.left, key=lambda k: self.means[k, case])

    def keep(self, count: int) -> None:
        """Let the best of each case go on, and the smallest worst excesses, `count` in all."""
        firsts = dict.fromkeys(self.best_in(case) for case in range(len(self.cases)))
        order = sorted(self.left, key=lambda k: self.worst[k])
        self.left = sorted([*firsts, *(k for k in order if k not in firsts)][:count])

    def choose(self) -> None:
        """Take the smallest worst excess, or a guarantee that costs hardly more."""
        best = min(self.left, key=lambda k: self.worst[k])
        alike = [k for k in self.left if (self.means[k] <= ALIKE * self.means[best]).all()]
        proven = [k for k in alike if self.players[k].proven]
        if not self.players[best].proven and proven:
            best = min(proven, key=lambda k: self.worst[k])
        self.winner = best

    def not_told_apart(self) -> list[int]:
        """Return those whose worst excess is not usually larger than the winner's, by medians.

        The excess of a rival where it is largest, less that of the winner in any case, is taken run
        by run; the interval of its median must be above 0. The error of 5 % is shared.
        """
        return [
            rival
            for rival, beyond, _, confidence in self._against_rivals()
            if not all(
                median_interval(column, confidence=confidence).low > 0.0 for column in beyond
            )
        ]

    def undecided_on_average(self) -> dict[int, float]:
        """Return those whose worst excess may be no larger on average, and the runs to decide.

        The runs are an estimate, as that of `runs_to_decide`.
        """
        found = {}
        for rival, beyond, largest, confidence in self._against_rivals():
            low, _ = mean_limits(beyond.T, bounds=(-largest, largest), confidence=confidence)
            needed = [
                runs_to_decide(column, bounds=(-most, most), confidence=confidence)
                for column, most, end in zip(beyond, largest, low, strict=True)
                if end <= 0.0
            ]
            if needed:
                found[rival] = max(needed)
        return found

    def _against_rivals(self) -> Iterator[tuple[int, Numbers, Numbers, float]]:
        """Yield each rival, what it loses beyond the winner, the bounds of that, the confidence.

        The first is by (candidate and case, run): it must be above 0 whoever is best there. Within
        one case the best cancels. The error is shared among rivals and cases.
        """
        regrets = np.array([self.regrets[k] for k in self.left])  # (candidate, run, case)
        regrets, bounds = regrets / self.units, self.bounds / self.units
        rivals = [k for k in range(len(self.left)) if self.left[k] != self.winner]
        own = regrets[self.left.index(self.winner)]
        lead = own - regrets  # of the winner over each candidate: (candidate, run, case)
        confidence = 1.0 - 0.05 / max(1, len(rivals) * len(self.cases))
        for k in rivals:
            at = int(self.excesses[self.left[k]].argmax())
            best = int(self.means[self.left][:, at].argmin())
            behind = regrets[k, :, at] - regrets[best, :, at]
            beyond = behind[None, :, None] - lead
            beyond[:, :, at] = regrets[k, :, at] - own[:, at]
            largest = bounds + bounds[at]
            largest[at] = bounds[at]
            columns = np.moveaxis(beyond, 1, 2).reshape(-1, beyond.shape[1])
            yield self.left[k], columns, np.tile(largest, len(self.left)), confidence


def affordable(question: Question, players: Sequence[Candidate]) -> list[Candidate]:
    """Return those whose first round fits into the budget, in the order of their cost.

    Those that know what the user knows come before others of up to twice their speed.
    """

    def turn(k: int) -> float:
        about = players[k].about
        return pull_nanoseconds(about) * (1.0 if about.knowledge == "none" else 0.5)

    spent, found = 0.0, set[int]()
    for k in sorted(range(len(players)), key=turn):
        spent += _FEWEST * _cost(question, players[k])
        if spent <= 2 * _BUDGET or len(found) < _ALWAYS:
            found.add(k)
    return [player for k, player in enumerate(players) if k in found]


def _cost(question: Question, player: Candidate) -> float:
    """Estimate the nanoseconds of one run of every case."""
    pulls = question.horizon * len(question.cases()) * (_LATE if question.in_flight else 1)
    return _SLOWER * pull_nanoseconds(player.about) * float(pulls)


def race(
    question: Question, players: Sequence[Candidate], replications: int | None, **how: Any
) -> Race:
    """Play the rounds and choose; `how` is the seed, the workers and the progress."""
    scale = 1 if question.objective == "find" else question.horizon
    state = Race(question.cases(), [], [], [], [], scale)
    state.join([player for player in players if not player.waits_for])
    kept = [count for count in _KEPT if count < len(players)]
    shown = _Rounds(progress_for(how.get("progress")))
    for later in range(len(kept), -1, -1):
        if replications is None:
            total = sum(_cost(question, state.players[k]) for k in state.left)
            fewest = _FEWEST if total * _FEWEST <= 2 * _BUDGET else _FEWEST // 2
            budget = _BUDGET if later else 2 * _BUDGET
            runs = min(max(int(budget / total), fewest), _MOST - state.runs)
        else:
            runs = -(-replications // 2**later) - state.runs
        if runs > 0:
            _play(question, state, runs, **how | {"progress": shown.next(later + 1)})
        if later == len(kept):
            _let_in(question, state, players, **how | {"progress": shown.next(later + 1)})
        if later > 0:
            state.keep(kept[-later])
    state.choose()
    return state


def _let_in(question: Question, state: Race, players: Sequence[Candidate], **how: Any) -> None:
    """Let those play, as often as the others did, that waited for the policy that leads."""
    leader = state.players[min(state.left, key=lambda k: state.worst[k])].policy.name
    late = [player for player in players if player.waits_for and player.waits_for == leader]
    if late:
        before, runs = state.left, state.runs
        state.left = []
        state.join(late)
        _play(question, state, runs, **how)
        state.left = sorted([*before, *state.left])


class _Rounds:
    """Shows the progress of all rounds as one that never falls."""

    def __init__(self, report: ProgressCallback) -> None:
        self._report = report
        self._before = self._now = 0  # pulls of earlier rounds, and of this one
        self._share = 0.0
        self._left = 1  # this round and those to come

    def next(self, left: int) -> _Rounds:
        """Begin a round; `left` counts it and those to come, which are taken to be as long."""
        self._before, self._now, self._left = self._before + self._now, 0, left
        return self

    def __call__(self, done: int, total: int, note: str) -> None:
        self._now = done
        pulls = self._before + done
        self._share = max(self._share, pulls / max(1, self._before + self._left * total))
        self._report(pulls, round(pulls / self._share) if pulls else self._left * total, note)


def _play(question: Question, state: Race, runs: int, *, seed: int, **how: Any) -> None:
    """Let those that are still in play `runs` more runs."""
    players = [
        Player(state.players[k].policy, state.players[k].label, runs, {"candidate": k})
        for k in state.left
    ]
    cells = [
        cell(
            players,
            case.instance,
            horizon=question.horizon,
            first_replication=state.runs,
            checkpoints=1,
            delay=question.in_flight,
            parameters={"case": number},
        )
        for number, case in enumerate(state.cases)
    ]
    experiment = Experiment("advice", tuple(cells), seed)
    played = [each.by(question.objective) for each in run_in_memory(experiment, **how)]
    for place, k in enumerate(state.left):
        rows = [result.rows[place] for result in played]
        regrets = np.stack([row["regret"][:, -1] for row in rows], axis=1)
        missed = np.stack([row["best_pulls"] == 0 for row in rows], axis=1)
        state.regrets[k] = np.concatenate([state.regrets[k], regrets])
        state.missed[k] = np.concatenate([state.missed[k], missed])
