"""An asynchronous client of the service."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack, cast, overload

from manyarms.client.answers import Answer
from manyarms.client.base import Attempt, Client, NoAnswer
from manyarms.client.calls import Limits, Plan
from manyarms.client.remote import Remote
from manyarms.errors import MissingExtraError
from manyarms.live.pulls import Pull

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(
    method: Callable[Concatenate[Client, P], T],
) -> Callable[Concatenate[AsyncRemote, P], Coroutine[Any, Any, T]]:
    """Turn a method of `Remote` into a coroutine: `AsyncRemote._run` returns an awaitable."""
    shared = cast("Callable[..., Awaitable[T]]", method)

    async def call(self: AsyncRemote, /, *values: P.args, **given: P.kwargs) -> T:
        return await shared(self, *values, **given)

    return functools.update_wrapper(call, method)


class AsyncRemote(Client):
    """An experiment of a service, with the methods of `Remote` as coroutines.

    `pending()` is a method here, and `n_arms` and `pulls` are fields of `await progress()`. Create
    experiments with `Remote.create`.

    Parameters
    ----------
    url, experiment, token, timeout, retry_for
        As for `Remote`.

    Notes
    -----
    This client needs httpx, which the extra `serve` installs. Use it in one event loop only.

    Examples
    --------
    >>> from manyarms import AsyncRemote
    >>> async def one_visitor() -> None:
    ...     async with AsyncRemote("http://127.0.0.1:8765", "captions", token="...") as remote:
    ...         pull = await remote.ask()
    ...         await remote.tell(pull, 1.0)
    """

    _sleep = staticmethod(asyncio.sleep)

    def _open(self, headers: dict[str, str]) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingExtraError("httpx", "for AsyncRemote", "serve") from None
        self._client = httpx.AsyncClient(headers=headers, trust_env=False)

    @overload
    async def ask(
        self, *, fallback: bool | str | int | None = None, **limits: Unpack[Limits]
    ) -> Pull: ...
    @overload
    async def ask(
        self, k: int, *, fallback: bool | str | int | None = None, **limits: Unpack[Limits]
    ) -> list[Pull]: ...

    async def ask(
        self,
        k: int | None = None,
        *,
        fallback: bool | str | int | None = None,
        **limits: Unpack[Limits],
    ) -> Any:
        """Return the next pull, or a list of the next `k` pulls, as `Remote.ask` does."""
        return await self._ask(k, fallback, **limits)

    _ask = _awaited(Remote._ask)
    season = _awaited(Remote.season)
    tell = _awaited(Remote.tell)
    tell_many = _awaited(Remote.tell_many)
    abandon = _awaited(Remote.abandon)
    observe = _awaited(Remote.observe)
    add_arms = _awaited(Remote.add_arms)
    sync_arms = _awaited(Remote.sync_arms)
    retire = _awaited(Remote.retire)
    restore = _awaited(Remote.restore)
    pause = _awaited(Remote.pause)
    resume = _awaited(Remote.resume)
    stop = _awaited(Remote.stop)
    change = _awaited(Remote.change)
    recommend = _awaited(Remote.recommend)
    top = _awaited(Remote.top)
    verdict = _awaited(Remote.verdict)
    uplift = _awaited(Remote.uplift)
    arms = _awaited(Remote.arms)
    pending = _awaited(Remote._pending)
    progress = _awaited(Remote.progress)
    summary = _awaited(Remote.summary)

    async def _run(self, plan: Plan[T], limits: Limits) -> T:
        steps, outcome = self._steps(plan, limits), None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                result: T = done.value
                return result
            if isinstance(step, Attempt):
                outcome = await self._attempt(step)
            else:
                outcome = await self._sleep(step)

    async def _attempt(self, attempt: Attempt) -> Answer | NoAnswer:
        import httpx

        call, to, seconds = attempt
        url = f"{to.scheme}://{to.host}{to.prefix}{call.path}"
        try:
            response = await self._client.request(
                call.method, url, content=call.body, headers=call.headers, timeout=seconds
            )
        except httpx.TransportError as error:
            sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            stale = sent and not isinstance(error, httpx.TimeoutException)
            return NoAnswer(f"{type(error).__name__} {error}".rstrip(), sent, stale)
        retry_after = response.headers.get("Retry-After")
        return Answer.of(response.status_code, response.content, retry_after)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def __aenter__(self) -> AsyncRemote:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
