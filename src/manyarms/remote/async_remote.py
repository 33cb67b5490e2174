"""A game that a service plays, for programs with an event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, TypeVar, overload

from manyarms.errors import MissingExtraError
from manyarms.live.estimates import ArmEstimate, Progress
from manyarms.live.game import Pull
from manyarms.live.verdict import CONFIDENCE, EPSILON, QUANTILE, StopVerdict
from manyarms.remote.calls import Answer, Attempts, Call, Calls, base_of, not_served, progress_of

__all__ = ["AsyncRemote"]

T = TypeVar("T")


class AsyncRemote:
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

    def __init__(
        self,
        url: str,
        experiment: str,
        *,
        token: str | None = None,
        worker: str | None = None,
        timeout: float = 30.0,
        patience: float = 60.0,
    ) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingExtraError("httpx", "for AsyncRemote", "serve") from None
        scheme, host, prefix = base_of(url, timeout, patience)
        self.url, self.experiment = url, experiment
        self._calls = Calls(prefix, experiment, worker)
        self._patience = patience
        token = token or os.environ.get("MANYARMS_TOKEN")
        self._client = httpx.AsyncClient(
            base_url=f"{scheme}://{host}",
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=timeout,
            trust_env=False,
        )

    @overload
    async def ask(self) -> Pull: ...
    @overload
    async def ask(self, k: int) -> list[Pull]: ...

    async def ask(self, k: int | None = None) -> Pull | list[Pull]:
        """Return the arm to pull next, or a list of the next `k`. As `Remote.ask`."""
        pulls = await self._send(self._calls.ask(k))
        return pulls[0] if k is None else pulls

    async def tell(self, pull: Pull | int, reward: float, *, again: str = "refuse") -> None:
        """Report the reward of a pull. As `Remote.tell`."""
        for call in self._calls.tell([(pull, reward)], again, many=False):
            await self._send(call)

    async def tell_many(
        self, rewards: Iterable[tuple[Pull | int, float]], *, again: str = "refuse"
    ) -> None:
        """Report several rewards. As `Remote.tell_many`."""
        for call in self._calls.tell(rewards, again, many=True):
            await self._send(call)

    async def abandon(self, pull: Pull | int, *, again: str = "refuse") -> None:
        """Give up a pull whose reward will never come. As `Remote.abandon`."""
        await self._send(self._calls.abandon(pull, again))

    async def add_arms(self, arms: int | Iterable[str | int]) -> Sequence[Any]:
        """Add arms; return their names. As `Remote.add_arms`."""
        return await self._send(self._calls.add_arms(arms))

    async def retire(self, arm: str | int) -> None:
        """Never ask for an arm again. As `Remote.retire`."""
        await self._send(self._calls.retire(arm))

    async def pause(self) -> None:
        """Let the service refuse asks for a while."""
        await self._send(self._calls.change("pause"))

    async def resume(self) -> None:
        """Let the service answer asks again."""
        await self._send(self._calls.change("resume"))

    async def stop(self) -> None:
        """Ask for no pull any more, for good."""
        await self._send(self._calls.change("stop"))

    async def recommend(self) -> ArmEstimate:
        """Return the arm to deploy. As `Remote.recommend`."""
        return (await self.top(1))[0]

    async def top(self, k: int) -> list[ArmEstimate]:
        """Return the `k` best arms. As `Remote.top`."""
        return await self._send(self._calls.top(k))

    async def verdict(
        self,
        *,
        epsilon: float = EPSILON,
        quantile: float = QUANTILE,
        confidence: float = CONFIDENCE,
    ) -> StopVerdict:
        """Return whether the recommended arm is good enough to stop. As `Remote.verdict`."""
        return await self._send(self._calls.verdict(epsilon, quantile, confidence))

    async def observe(self, arm: str | int, rewards: float | Iterable[float]) -> NoReturn:
        """Raise `ServiceError`. As `Remote.observe`."""
        raise not_served("observe")

    async def season(self, **asked: Any) -> NoReturn:
        """Raise `ServiceError`. As `Remote.season`."""
        raise not_served("season")

    async def restore(self, arm: str | int) -> NoReturn:
        """Raise `ServiceError`. As `Remote.restore`."""
        raise not_served("restore")

    async def save(self, path: str | os.PathLike[str]) -> NoReturn:
        """Raise `ServiceError`. As `Remote.save`."""
        raise not_served("save")

    async def arms(self) -> list[ArmEstimate]:
        """Return what is known of every arm that was pulled, those of most pulls first."""
        found: list[ArmEstimate] = []
        cursor: str | None = ""
        while cursor is not None:
            some, cursor = await self._send(self._calls.arms(cursor))
            found += some
        return found

    async def pending(self) -> list[Pull]:
        """Return the pulls whose reward was not told yet. As `Remote.pending`."""
        return await self._send(self._calls.pending())

    async def progress(self) -> Progress:
        """Return how far the game is."""
        return progress_of(await self.summary())

    async def summary(self) -> dict[str, Any]:
        """Return all that the service says of the experiment at a glance."""
        return await self._send(self._calls.summary())

    def __repr__(self) -> str:
        return f"<AsyncRemote {self.experiment!r} at {self.url}>"

    async def _send(self, call: Call[T]) -> T:
        import httpx

        attempts = Attempts(self._patience)
        while True:
            answer, why, sent = None, "", True
            try:
                response = await self._client.request(
                    call.method, call.path, content=call.body, headers=call.headers
                )
                retry_after = response.headers.get("Retry-After")
                answer = Answer.of(response.status_code, response.content, retry_after)
            except httpx.TransportError as error:
                why = f"{type(error).__name__} {error}".rstrip()
                sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            settled = attempts.settle(call, answer, why, sent=sent)
            if answer is not None and answer.status < 300:
                return settled  # type: ignore[return-value]
            await asyncio.sleep(settled)  # type: ignore[arg-type]

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def __aenter__(self) -> AsyncRemote:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
