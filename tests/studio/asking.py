"""A studio that is asked directly: one call of the application for each request, without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symenum.studio.security import own_hosts
from symenum.studio.server import make_app
from symenum.studio.tables import LIMITS, Limits

TOKEN = "a-token-of-24-characters"
PORT = 8765
HOST = f"127.0.0.1:{PORT}"


@dataclass(frozen=True)
class Answer:
    """What the server sent: status, headers in small letters, and body."""

    status: int
    headers: dict[str, str]
    body: bytes
    chunks_taken: int

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json()["error"])


class Studio:
    """The application on a folder, asked directly: each request is one call."""

    def __init__(self, folder: Path, limits: Limits = LIMITS) -> None:
        self.folder = folder
        self.app = make_app(folder, TOKEN, own_hosts("127.0.0.1", PORT), PORT, limits)

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: str = "",
        body: bytes | Iterable[bytes] = b"",
        json_body: Any = None,
        headers: dict[str, str] | None = None,
        token: str | None = TOKEN,
    ) -> Answer:
        """One request; `body` may be chunks, which are handed over as the server asks for them."""
        sent = {"host": HOST, **({} if token is None else {"x-symenum-token": token}), **(headers or {})}
        if json_body is not None:
            body, sent["content-type"] = json.dumps(json_body).encode(), "application/json"
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "server": ("127.0.0.1", PORT),
            "client": ("127.0.0.1", 50000),
        }
        return asyncio.run(_exchange(self.app, scope, [body] if isinstance(body, bytes) else body))

    def get(self, path: str, **more: Any) -> Answer:
        return self.ask("GET", path, **more)

    def post(self, path: str, json_body: Any = None, **more: Any) -> Answer:
        return self.ask("POST", path, json_body={} if json_body is None and "body" not in more else json_body, **more)

    def upload(self, content: bytes | Iterable[bytes], name: str = "table.csv", **more: Any) -> Answer:
        return self.ask("POST", "/api/tables", query=f"name={name}", body=content, **more)


async def _exchange(app: Any, scope: dict[str, Any], chunks: Iterable[bytes]) -> Answer:
    source, taken, ended = iter(chunks), 0, asyncio.Event()
    started: dict[str, Any] = {}
    body = bytearray()

    async def receive() -> dict[str, Any]:
        nonlocal taken
        try:
            chunk = next(source)
        except StopIteration:
            if taken >= 0:
                taken = -taken - 1  # the end of the body is told once
                return {"type": "http.request", "body": b"", "more_body": False}
            await ended.wait()
            return {"type": "http.disconnect"}
        taken += 1
        return {"type": "http.request", "body": chunk, "more_body": True}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            started.update(message)
        else:
            body.extend(message.get("body", b""))
            if not message.get("more_body"):
                ended.set()

    try:
        await app(scope, receive, send)
    except Exception:
        if not started:
            raise
        if started["status"] == 500:  # the traceback says more than the answer
            raise
    headers = {name.decode().lower(): value.decode() for name, value in started["headers"]}
    return Answer(started["status"], headers, bytes(body), taken if taken >= 0 else -taken - 1)


async def events(stream: AsyncIterator[bytes], wanted: int) -> list[str]:
    """The first messages of a stream of events."""
    found: list[str] = []
    async for message in stream:
        found.append(message.decode())
        if len(found) == wanted:
            break
    return found
