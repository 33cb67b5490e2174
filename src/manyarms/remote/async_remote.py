"""A game that a service plays, for programs with an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from manyarms.core.checks import by_name
from manyarms.errors import MissingExtraError, ServiceError
from manyarms.inference.estimates import ArmEstimate, Progress
from manyarms.inference.question import CONFIDENCE
from manyarms.inference.uplift import Uplift
from manyarms.inference.verdict import StopVerdict
from manyarms.live.pulls import Pull
from manyarms.live.synced import SyncedArms
from manyarms.protocol.policy import Policy
from manyarms.remote.answers import Answer
from manyarms.remote.calls import Call, Plan
from manyarms.remote.client import Address, Client, Lost, Run
from manyarms.remote.fallback import check_fallback

P = ParamSpec("P")
T = TypeVar("T")


def _by_name(
    method: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, Coroutine[Any, Any, T]]:
    """Do as `by_name`, but raise when the call is awaited, as all methods here do."""
    checked = by_name(method)

    @functools.wraps(method)
    async def call(*values: P.args, **given: P.kwargs) -> T:
        return await checked(*values, **given)

    return call


class AsyncRemote(Client):
    """A game that a service plays, like `Remote`, with methods to be awaited.

    Parameters
    ----------
    url, experiment, token, worker, timeout, patience
        As for `Remote`.

    Notes
    -----
    It needs httpx, which the extra `serve` installs. Use it in one event loop.

    Examples
    --------
    >>> import manyarms as ma
    >>> async def one_visitor() -> None:
    ...     async with ma.AsyncRemote("http://127.0.0.1:8765", "captions", token="...") as remote:
    ...         pull = await remote.ask()
    ...         await remote.tell(pull, 1.0)
    """

    def _open(self) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingExtraError("httpx", "for AsyncRemote", "serve") from None
        self._client = httpx.AsyncClient(
            headers=self._headers, timeout=self._timeout, trust_env=False
        )

    @overload
    async def ask(
        self, *, timeout: float | None = None, fallback: bool | str | int | None = None
    ) -> Pull: ...
    @overload
    async def ask(
        self, k: int, *, timeout: float | None = None, fallback: bool | str | int | None = None
    ) -> list[Pull]: ...

    async def ask(
        self,
        k: int | None = None,
        *,
        timeout: float | None = None,
        fallback: bool | str | int | None = None,
    ) -> Pull | list[Pull]:
        """Return the arm to pull next, or a list of the next `k`. As `Remote.ask`."""
        within, instead = check_fallback(timeout, fallback)
        end = None if within is None else time.monotonic() + within
        try:
            pulls = await self._run(self._calls.ask(k), within)
        except ServiceError as error:
            if instead is None:
                raise
            return self._fallback.pulls(k, instead, error)
        if instead is True and self._fallback.stale:
            left = self._attempt_within(end)
            with contextlib.suppress(ServiceError):
                self._fallback.remember(await self._run(self._calls.best(), left))
        return pulls

    async def tell(self, pull: Pull | int, reward: float, *, again: str = "refuse") -> None:
        """Report the reward of a pull. As `Remote.tell`."""
        await self._run(self._calls.tell(pull, reward, again))

    async def tell_many(
        self, rewards: Iterable[tuple[Pull | int, float]], *, again: str = "refuse"
    ) -> None:
        """Report several rewards. As `Remote.tell_many`."""
        await self._run(self._calls.tell_many(rewards, again))

    async def abandon(self, pull: Pull | int, *, again: str = "refuse") -> None:
        """Give up a pull whose reward will never come. As `Remote.abandon`."""
        await self._run(self._calls.abandon(pull, again))

    async def add_arms(self, arms: int | Iterable[str | int]) -> Sequence[Any]:
        """Add arms; return their names. As `Remote.add_arms`."""
        return await self._run(self._calls.add_arms(arms))

    async def sync_arms(self, names: Iterable[str | int]) -> SyncedArms:
        """Let exactly these arms be in play. As `Remote.sync_arms`."""
        return await self._run(self._calls.sync_arms(names))

    async def retire(self, arm: str | int) -> None:
        """Never ask for an arm again. As `Remote.retire`."""
        await self._run(self._calls.retire(arm))

    async def restore(self, arm: str | int) -> None:
        """Let a retired arm come back. As `Remote.restore`."""
        await self._run(self._calls.restore(arm))

    async def observe(self, arm: str | int, rewards: float | Iterable[float]) -> None:
        """Report rewards of an arm that no pull earned. As `Remote.observe`."""
        await self._run(self._calls.observe(arm, rewards))

    async def season(
        self,
        experiment: str,
        *,
        horizon: int | None = None,
        policy: Policy | str | None = None,
        seed: int | None = None,
    ) -> AsyncRemote:
        """Create an experiment that remembers this one, and return it. As `Remote.season`."""
        await self._run(self._calls.season(experiment, policy, horizon=horizon, seed=seed))
        return self._beside(experiment)

    async def pause(self) -> None:
        """Let the service refuse asks for a while."""
        await self._run(self._calls.change("pause"))

    async def resume(self) -> None:
        """Let the service answer asks again."""
        await self._run(self._calls.change("resume"))

    async def stop(self) -> None:
        """Ask for no pull any more, for good."""
        await self._run(self._calls.change("stop"))

    async def recommend(self) -> ArmEstimate:
        """Return the arm to deploy. As `Remote.recommend`."""
        best = await self._run(self._calls.recommend())
        self._fallback.remember(best.arm)
        return best

    async def top(self, k: int) -> list[ArmEstimate]:
        """Return the `k` best arms. As `Remote.top`."""
        return await self._run(self._calls.top(k))

    @_by_name
    async def verdict(
        self,
        *,
        epsilon: float | str | None = None,
        quantile: float | None = None,
        confidence: float | None = None,
        target: float | str | None = None,
        margin: float | str | None = None,
    ) -> StopVerdict:
        """Return whether the recommended arm is good enough to stop. As `Remote.verdict`."""
        return await self._run(
            self._calls.verdict(
                epsilon=epsilon,
                quantile=quantile,
                confidence=confidence,
                target=target,
                margin=margin,
            )
        )

    async def change(self, **settings: float | str | None) -> None:
        """Change settings of the experiment. As `Remote.change`."""
        await self._run(self._calls.change_settings(**settings))

    @_by_name
    async def uplift(self, *, confidence: float = CONFIDENCE) -> Uplift:
        """Return how much better the recommended arm is than the control. As `Remote.uplift`."""
        return await self._run(self._calls.uplift(confidence))

    async def arms(self) -> list[ArmEstimate]:
        """Return what is known of every arm that was pulled, those of most pulls first."""
        return await self._run(self._calls.arms())

    async def pending(self) -> list[Pull]:
        """Return the pulls whose reward was not told yet. As `Remote.pending`."""
        return await self._run(self._calls.pending())

    async def progress(self) -> Progress:
        """Return how far the game is."""
        return await self._run(self._calls.progress())

    async def summary(self) -> dict[str, Any]:
        """Return all that the service says of the experiment at a glance."""
        return await self._run(self._calls.summary())

    async def _run(self, plan: Plan[T], within: float | None = None) -> T:
        run = Run(plan, self._addresses, self._patience if within is None else within)
        end = None if within is None else time.monotonic() + within
        for step in run:
            if isinstance(step, Call):
                seconds = self._attempt_within(end)
                run.came = await self._attempt(step, self._addresses.all[run.at], seconds)
            else:
                await asyncio.sleep(step)
        return run.result

    async def _attempt(self, call: Call, to: Address, seconds: float) -> Answer | Lost:
        import httpx

        url = f"{to.scheme}://{to.host}{to.prefix}{call.path}"
        try:
            response = await self._client.request(
                call.method, url, content=call.body, headers=call.headers, timeout=seconds
            )
        except httpx.TransportError as error:
            sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            stale = sent and not isinstance(error, httpx.TimeoutException)
            return Lost(f"{type(error).__name__} {error}".rstrip(), sent, stale)
        retry_after = response.headers.get("Retry-After")
        return Answer.of(response.status_code, response.content, retry_after)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def __aenter__(self) -> AsyncRemote:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
