"""The statistics that views show, with caches of slow results."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from manyarms.errors import ParameterError, UnknownArmError
from manyarms.inference.estimates import ArmEstimate, Progress
from manyarms.inference.next_steps import SERVICE
from manyarms.inference.tried_arms import TriedArms
from manyarms.inference.uneven_losses import Loss, uneven_losses
from manyarms.inference.uplift import Uplift, uplift_of
from manyarms.inference.verdict import StopVerdict, give_verdict
from manyarms.live.answers import question_of, stage_of, tried_arms_of

if TYPE_CHECKING:
    from manyarms.serve.experiment import ServedExperiment

T = TypeVar("T")
_MOST_CACHED = 30  # results of one event
_REUSE = 20  # a slow result is reused for this many times its computing time


class ViewData:
    """The statistics of one experiment. Results are computed at most once per event."""

    def __init__(self, one: ServedExperiment) -> None:
        self.one, self.experiment = one, one.experiment
        self._cache: dict[str, Any] = {}
        self._cached_at = -1  # the last event when they were computed
        self._slow: dict[str, tuple[float, Any, Any]] = {}

    def _once(self, what: str, compute: Callable[[], T]) -> T:
        if self._cached_at != self.experiment.seq:
            self._cache, self._cached_at = {}, self.experiment.seq
        if what not in self._cache:
            computed = compute()  # may use the cache, too
            if len(self._cache) >= _MOST_CACHED:  # such as the uplift with many confidences
                self._cache.clear()
            self._cache[what] = computed
        result: T = self._cache[what]
        return result

    def _rarely(self, what: str, about: Any, compute: Callable[[], T]) -> T:
        """Return the last result, unless it is too old or `about` has changed."""
        begun = time.monotonic()
        until, known, result = self._slow.get(what, (0.0, None, None))
        if begun > until or known != about:
            result = compute()
            ended = time.monotonic()
            self._slow[what] = ended + _REUSE * (ended - begun), about, result
        return result  # type: ignore[no-any-return]  # what `compute` returned

    def refresh(self) -> None:
        """Update the statistics of changed arms, so that the next view is fast."""
        tried_arms_of(self.experiment, self.one.context.name)

    @property
    def tried(self) -> TriedArms:
        """The statistics of all arms that were tried, in columns."""
        return self._once("tried", lambda: tried_arms_of(self.experiment, self.one.context.name))

    def ordered(self, sort: str) -> Any:
        """Return the rows of all arms that were tried, sorted, the largest first."""
        return self._once(f"order {sort}", lambda: self.tried.order(sort))

    def best(self, k: int) -> list[int]:
        """Return the rows of the `k` best arms, the recommended one first."""
        return self._once(f"best {k}", lambda: self.tried.best(k))

    def progress(self) -> Progress:
        """Return the progress of the experiment."""
        stage = stage_of(self.experiment)
        return self._once("progress", lambda: self.tried.progress(stage))

    def verdict(self) -> StopVerdict:
        """Return the verdict for the experiment's settings; may be some events old."""
        about = next(iter(self.best(1)), None), dict(self.one.status)
        return self._rarely("verdict", about, self.judged)

    def judged(
        self, epsilon: Any = None, target: float | str | None = None, **others: Any
    ) -> StopVerdict:
        """Return the verdict for a question; omitted parts are taken from the settings."""
        try:
            question = question_of(
                self.one.context, self.tried.facts, epsilon=epsilon, target=target, **others
            )
        except UnknownArmError as error:
            raise ParameterError(f"`target` must name an arm. {error}") from error
        stopped = self.one.state == "stopped"
        return give_verdict(self.tried, question, stopped=stopped, steps=SERVICE)

    def uplift(self, confidence: float) -> Uplift:
        """Compare the recommended arm with the control, or say why this is not possible yet."""
        return self._once(f"uplift {confidence}", lambda: uplift_of(self.tried, confidence))

    def losses(self) -> list[Loss]:
        """Return the arms that lose more or fewer rewards than others; may be some events old."""
        return self._rarely("losses", None, self._find_losses)

    def _find_losses(self) -> list[Loss]:
        pending = Counter(pull.arm for pull in self.experiment.ledger.pending.values())
        return uneven_losses(self.tried, pending)

    def recent(self) -> Counter[int]:
        """Return how many of the last pulls each arm got."""
        return self._once("recent", lambda: Counter(self.experiment.ledger.recent))

    def of_arm(self, number: int) -> ArmEstimate:
        """Return the estimate of an arm, tried or not."""
        place = self.tried.place(number)
        if place is not None:
            return self.tried.at(place)
        interval = self.experiment.settings.reward_range or (-math.inf, math.inf)
        name = self.one.context.name(number)
        gone = number in self.experiment.ledger.retired
        return ArmEstimate(name, math.nan, interval, 0, 0, gone, self.tried.rate)

    def found(self, search: str) -> list[int]:
        """Return the numbers of the arms whose names contain a text."""
        names = getattr(self.one.context.arms, "names", None)
        if names is not None:
            return [number for number, name in enumerate(names) if search in str(name)]
        known = (
            search.isdecimal() and len(search) < 19 and int(search) < self.experiment.ledger.n_all
        )
        return [int(search)] if known else []
