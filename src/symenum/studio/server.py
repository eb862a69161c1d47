"""The studio's server: which address answers what. The work is done by the modules that it asks."""

from __future__ import annotations

import asyncio
import contextlib
import json
import mimetypes
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from symenum.run_directory import Run, Status
from symenum.studio.answers import RequestError, json_answer
from symenum.studio.law_rows import LawRows, RowsOfRuns, table_rows
from symenum.studio.requests import checked_request, checked_time, number_list
from symenum.studio.runs import Runs
from symenum.studio.security import Gate, inside
from symenum.studio.snapshots import DOWNLOADS, summary
from symenum.studio.streams import Streams
from symenum.studio.tables import LIMITS, Limits, Tables
from symenum.version import __version__

__all__ = ["PRIVATE", "make_app"]

PRIVATE = ".studio"
"""The studio's own folder among the runs: its token and uploads."""
_PAGE = Path(__file__).parent / "page"
_MAX_JSON = 4 << 20  # bytes of a request in JSON, 4 MiB: the names of 5,000 columns
_MAX_POINTS = 20_000  # of a plot: more than a screen has
_DEFAULT_POINTS = 2_000
_LAW_THREADS = 2  # requests about laws that are computed at the same time; a search wants the cores
_SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"  # a report is a page of its own


def make_app(
    folder: Path, token: str, hosts: frozenset[str], port: int, limits: Limits = LIMITS, page: Path = _PAGE
) -> Starlette:
    """The application on the runs of a folder."""
    studio = _Studio(folder, limits, page)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        studio.streams.close()
        studio.law_threads.shutdown(wait=False, cancel_futures=True)

    routes = [
        Route("/", studio.index),
        Route("/page/{path:path}", studio.page_file),
        Route("/api/info", studio.info),
        Route("/api/runs", studio.runs_list),
        Route("/api/runs", studio.start, methods=["POST"]),
        Route("/api/tables", studio.upload, methods=["POST"]),
        Route("/api/runs/{run}", studio.snapshot),
        Route("/api/runs/{run}/events", studio.events),
        Route("/api/runs/{run}/stop", studio.stop, methods=["POST"]),
        Route("/api/runs/{run}/resume", studio.resume, methods=["POST"]),
        Route("/api/runs/{run}/laws/{index:int}", studio.law),
        Route("/api/runs/{run}/laws/{index:int}/plots", studio.plots),
        Route("/api/runs/{run}/laws/{index:int}/try", studio.try_law, methods=["POST"]),
        Route("/api/runs/{run}/files/{name}", studio.download),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Gate, token=token, hosts=hosts, port=port)],
        exception_handlers={RequestError: _refused, HTTPException: _http_error, Exception: _failed},
        lifespan=lifespan,
    )
    app.state.streams = studio.streams
    return app


async def _refused(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestError):
        raise error
    return json_answer({"error": error.sentence}, error.status)


async def _http_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    sentences = {404: "There is nothing at this address.", 405: "This address does not take such requests."}
    return json_answer({"error": sentences.get(error.status_code, str(error.detail))}, error.status_code)


async def _failed(request: Request, error: Exception) -> Response:
    """Starlette raises the error again afterwards, so that it stands in the terminal with its traceback."""
    return json_answer({"error": f"The server failed ({type(error).__name__}): look at its terminal."}, 500)


class _Studio:
    """The answers, each a method."""

    def __init__(self, folder: Path, limits: Limits, page: Path) -> None:
        self.folder = folder
        self.page = page
        self.limits = limits
        self.runs = Runs(folder)
        self.tables = Tables(folder / PRIVATE / "tables", limits)
        self.streams = Streams()
        self.rows = RowsOfRuns(_read_law_rows)
        self.law_threads = ThreadPoolExecutor(_LAW_THREADS, "symenum studio law")

    async def index(self, request: Request) -> Response:
        file = self.page / "index.html"
        if not file.is_file():
            return Response("symenum studio: the page is not installed.", media_type="text/plain")
        return FileResponse(file, headers={"Cache-Control": "no-store"})

    async def page_file(self, request: Request) -> Response:
        parts = request.path_params["path"].split("/")
        path = self.page
        try:
            for part in parts:
                path = inside(path, part)
        except (ValueError, OSError) as error:
            raise RequestError(404, "There is no such file of the page.") from error
        if not path.is_file():
            raise RequestError(404, "There is no such file of the page.")
        kind = "text/javascript" if path.suffix in (".js", ".mjs") else mimetypes.guess_type(path.name)[0]
        return FileResponse(path, media_type=kind, headers={"Cache-Control": "no-cache"})

    async def info(self, request: Request) -> Response:
        return json_answer(await asyncio.to_thread(_info, self.folder, self.limits))

    async def runs_list(self, request: Request) -> Response:
        found = await asyncio.to_thread(lambda: [summary(run) for run in self.runs.all()])
        return json_answer(found)

    async def upload(self, request: Request) -> Response:
        name = request.query_params.get("name", "table.csv")
        key = await self.tables.take(name, request.headers.get("content-length"), request.stream())
        return json_answer(await asyncio.to_thread(self.tables.describe, key))

    async def start(self, request: Request) -> Response:
        body = await _json_body(request)
        table = body.get("table")
        if not isinstance(table, str):
            raise RequestError(422, "table must be the key of a table that was uploaded before.")

        def begin() -> str:
            wanted = checked_request(body, self.tables.path(table), self.tables.name(table))
            return self.runs.start(wanted)

        return json_answer({"id": await asyncio.to_thread(begin)}, 201)

    async def snapshot(self, request: Request) -> Response:
        return json_answer(await asyncio.to_thread(self.runs.snapshot, request.path_params["run"]))

    async def events(self, request: Request) -> Response:
        name = request.path_params["run"]
        await asyncio.to_thread(self.runs.path, name)  # an error before the stream is one that the page can read
        return self.streams.answer(lambda: self.runs.snapshot(name))

    async def stop(self, request: Request) -> Response:
        status = await asyncio.to_thread(self.runs.stop, request.path_params["run"])
        return json_answer({"status": status})

    async def resume(self, request: Request) -> Response:
        body = await _json_body(request)
        seconds = None if body.get("max_time") is None else checked_time(body["max_time"])
        status = await asyncio.to_thread(self.runs.resume, request.path_params["run"], seconds)
        return json_answer({"status": status})

    async def law(self, request: Request) -> Response:
        from symenum.studio.laws import details

        return await self._of_law(request, details)

    async def plots(self, request: Request) -> Response:
        from symenum.studio.plots import law_plots

        query = request.query_params
        points = query.get("points", str(_DEFAULT_POINTS))
        if not points.isdigit() or not 1 <= int(points) <= _MAX_POINTS:
            raise RequestError(422, f"points must be a whole number from 1 to {_MAX_POINTS}, not {points[:20]!r}.")
        constants = _query_numbers(query["constants"]) if query.get("constants") else None
        return await self._of_law(request, law_plots, int(points), constants)

    async def try_law(self, request: Request) -> Response:
        from symenum.studio.laws import try_constants

        body = await _json_body(request)
        constants = number_list(body.get("constants"), "constants")
        return await self._of_law(request, try_constants, constants, body.get("fit") is True)

    async def _of_law(self, request: Request, answer: Callable[..., Any], *values: Any) -> Response:
        """The answer of a function of a law and its rows, in a thread of its own few, so that lists never wait."""
        name, index = request.path_params["run"], request.path_params["index"]
        state = request.query_params.get("state")

        def work() -> Response:
            from symenum.studio.laws import choose_law

            run = self.runs.run(name)
            if run.status is Status.UNREADABLE:
                raise RequestError(409, run.message)
            law = choose_law(run, state, index)
            return json_answer(answer(law, self.rows.of(run, law.front.target), *values))

        return await asyncio.get_running_loop().run_in_executor(self.law_threads, work)

    async def download(self, request: Request) -> Response:
        folder = await asyncio.to_thread(self.runs.path, request.path_params["run"])
        name = request.path_params["name"]
        try:
            path = inside(folder, name)
        except (ValueError, OSError) as error:
            raise RequestError(404, f"There is no such file: {error}.") from error
        if name not in DOWNLOADS or not path.is_file():
            raise RequestError(404, f"There is no {name[:40]!r} in this run yet: it is written at the end.")
        if path.suffix == ".html":
            return FileResponse(path, media_type="text/html", headers={"Content-Security-Policy": _SANDBOX})
        return FileResponse(path, media_type="application/octet-stream", filename=f"{folder.name}-{name}")


def _info(folder: Path, limits: Limits) -> dict[str, Any]:
    from symenum.estimator.parameters import PARAMETERS
    from symenum.operators import OPERATOR_SETS, OPERATORS, get_operators

    return {
        "version": __version__,
        "folder": str(folder),
        "operators": [{"name": one.name, "text": one.name, "arity": one.arity} for one in OPERATORS.values()],
        "operator_sets": {name: [one.name for one in get_operators(name)] for name in OPERATOR_SETS},
        "defaults": {"operators": PARAMETERS["operators"].default, "max_time": PARAMETERS["max_time"].default},
        "limits": {"upload_bytes": limits.upload_bytes, "columns": limits.columns},
    }


def _read_law_rows(run: Run, state: str | None) -> LawRows:
    if run.kind != "motion":
        return table_rows(run)
    from symenum.studio.motion_rows import motion_rows

    return motion_rows(run, state)


async def _json_body(request: Request) -> dict[str, Any]:
    """The object of a request in JSON, read in bounded pieces; an empty body is an empty object."""
    if "json" not in request.headers.get("content-type", "application/json"):
        raise RequestError(415, "The request must be JSON (Content-Type: application/json).")
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > _MAX_JSON:
            raise RequestError(413, f"The request is larger than {_MAX_JSON >> 20} MB.")
    try:
        body = json.loads(bytes(content) or b"{}")
    except (ValueError, RecursionError) as error:
        raise RequestError(400, f"The request is no JSON: {error}.") from error
    if not isinstance(body, dict):
        raise RequestError(422, "The request must be a JSON object.")
    return body


def _query_numbers(text: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        return number_list([float(part) for part in text.split(",")], "constants")
    except ValueError as error:
        raise RequestError(422, f"constants must be numbers with commas between them, not {text[:40]!r}.") from error
