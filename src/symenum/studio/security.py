"""Who may talk to the server: only pages and programs that know its token, under its own name.

A page of another site that is open in the same browser can send requests to 127.0.0.1, but it can neither read the
answers nor forge Host and Origin. So every request needs our own Host (against names that resolve to 127.0.0.1), an
Origin that is ours where one is sent, and the token, as a header or a cookie that requests of other sites lack.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from symenum.studio.answers import json_answer

__all__ = ["EVERYWHERE", "HEADERS", "TOKEN_HEADER", "Gate", "inside", "own_hosts", "stored_token"]

EVERYWHERE = ("0.0.0.0", "::")
"""The hosts that stand for all addresses of this machine."""
TOKEN_HEADER = "x-symenum-token"
_TOKEN_BYTES = 32  # 256 bits: no guess hits it
_LEAST_TOKEN = 16  # characters of a token that the user names
HEADERS = {
    # Scripts, styles and pictures come from the server only; KaTeX sets styles of single elements. No page may frame
    # this one, no form may send elsewhere, and no base address may move its links.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the address may hold the token
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def stored_token(path: Path) -> str:
    """The token in a file that only its owner can read; made where there is none, so that pages outlive the server."""
    try:
        found = path.read_text(encoding="ascii").strip()
        if len(found) >= _LEAST_TOKEN:
            path.chmod(0o600)
            return found
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(token)
    path.chmod(0o600)
    return token


def own_hosts(host: str, port: int) -> frozenset[str]:
    """The names under which the server answers: those of this machine's own address, and the one that it was told.

    If it listens on all addresses, also the names and addresses of this machine in its network.
    """
    names = {"127.0.0.1", "localhost", "::1", host}
    if host in EVERYWHERE:
        names |= _names_of_this_machine()
    return frozenset(f"{f'[{name}]' if ':' in name else name}:{port}".lower() for name in names)


def _names_of_this_machine() -> set[str]:
    name = socket.gethostname()
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(name, None)}
    except OSError:  # a name that no server of names knows
        found = set()
    return {name, socket.getfqdn(), *found}


def inside(folder: Path, name: str) -> Path:
    """The path of an entry of a folder; ValueError for a name that leads elsewhere, by its text or by a link."""
    if not name or name in (".", "..") or "\0" in name or Path(name).name != name or "\\" in name:
        raise ValueError(f"{name[:40]!r} is no name of an entry of the folder")
    path = folder / name
    if path.is_symlink() or path.resolve().parent != folder.resolve():
        raise ValueError(f"{name[:40]!r} leads out of the folder")
    return path


class Gate:
    """Middleware that lets in only requests with our Host, our Origin and the token; and sets the headers of HEADERS.

    The first visit has the token in its address, /?token=…, and gets it as a cookie.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: Iterable[str], port: int) -> None:
        self._app = app
        self._token = token
        self._hosts = frozenset(hosts)
        self._cookie = f"symenum_studio_{port}"  # browsers share cookies between the ports of a machine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        first_visit = scope["path"] == "/" and self._is_token(_token_in_query(scope))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    if name not in sent:
                        sent[name] = value
                if first_visit:
                    sent.append("Set-Cookie", f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict")
            await send(message)

        if refusal is not None:
            await json_answer({"error": refusal}, 403)(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope, headers: Headers) -> str | None:
        """Why a request is not let in, in a sentence; None: it is."""
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or host.lower() not in self._hosts:
            return f"This server is not called {host[:60]!r}: open the address that `symenum studio` has printed."
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in {f"http://{name}" for name in self._hosts}:
            return "A page of another site may not talk to this server."
        # Browsers say where a request comes from. A link to the page itself may stand anywhere.
        if headers.get("sec-fetch-site") not in (None, "same-origin", "none") and scope["path"] != "/":
            return "A page of another site may not talk to this server."
        tokens = [headers.get(TOKEN_HEADER, ""), _cookie(headers, self._cookie)]
        if scope["path"] == "/":
            tokens.append(_token_in_query(scope))
        if not any(self._is_token(token) for token in tokens):
            return "The token is missing or wrong: open the address that `symenum studio` has printed, with its token."
        return None

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self._token.encode())


def _token_in_query(scope: Scope) -> str:
    query: bytes = scope.get("query_string", b"")
    return parse_qs(query.decode("latin-1")).get("token", [""])[0]


def _cookie(headers: Headers, name: str) -> str:
    try:
        jar: SimpleCookie = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return str(jar[name].value) if name in jar else ""
