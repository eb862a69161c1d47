"""Server-sent events: a page hears of a run's news by one open answer, which says at most two things a second.

The number of open streams is bounded, so that a page that opens thousands cannot take the server from the others.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from symenum.studio.answers import RequestError, plain

__all__ = ["MAX_STREAMS", "Streams"]

MAX_STREAMS = 100
"""Open streams at the same time: dozens of tabs, each with one."""
_INTERVAL = 0.5  # seconds between two looks at a run: the two a second that the page expects at most
_HEARTBEAT = 10.0  # seconds after which a comment shows that the connection is alive
_CLOCK_FIELDS = ("elapsed", "time_left")  # they change always; alone they are no news


class Streams:
    """The open streams of the server."""

    def __init__(self, most: int = MAX_STREAMS) -> None:
        self._most = most
        self._open = 0
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End all streams: the server ends."""
        self._closing.set()

    def answer(self, read: Callable[[], dict[str, Any]]) -> Response:
        """The answer with the events of a run, which `read` reads; RequestError where too many streams are open."""
        if self._open >= self._most:
            raise RequestError(503, f"{self._open} pages look at this server already: close some tabs.")
        self._open += 1  # counted now: requests that come together must not all pass
        return _EventAnswer(self.events(read), self._release)

    def _release(self) -> None:
        self._open -= 1

    async def events(self, read: Callable[[], dict[str, Any]]) -> AsyncIterator[bytes]:
        """A snapshot at once, then one for each news, and a comment after a long silence, until the server ends."""
        known: dict[str, Any] | None = None
        silent = 0.0
        while not self._closing.is_set():
            try:
                shown = await asyncio.to_thread(read)
            except RequestError as error:  # the folder was removed
                yield _event("gone", 0, {"error": error.sentence})
                return
            news = {name: value for name, value in shown.items() if name not in _CLOCK_FIELDS}
            if news != known:
                known, silent = news, 0.0
                yield _event("snapshot", shown.get("version", 0), shown)
            elif silent >= _HEARTBEAT:
                silent = 0.0
                yield b": still here\n\n"
            await self._pause()
            silent += _INTERVAL

    async def _pause(self) -> None:
        try:
            await asyncio.wait_for(self._closing.wait(), _INTERVAL)
        except asyncio.TimeoutError:
            return


class _EventAnswer(StreamingResponse):
    """A stream that frees its place when it ends, also if the client was gone before its first event."""

    def __init__(self, events: AsyncIterator[bytes], release: Callable[[], None]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()


def _event(kind: str, number: int, value: object) -> bytes:
    text = json.dumps(plain(value), allow_nan=False, separators=(",", ":"))
    return f"event: {kind}\nid: {number}\ndata: {text}\n\n".encode()
