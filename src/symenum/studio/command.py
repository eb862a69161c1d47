"""`symenum studio`: starts the server on a folder of runs and opens the page."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
import webbrowser
from pathlib import Path
from typing import Any

import click

from symenum.cli.messages import Failure, InputError, say

__all__ = ["listen", "server_config", "studio_command"]

_PORTS_TRIED = 50  # one after another from the wanted one: nobody runs more servers than that
_PRIVATE_HOSTS = ("127.0.0.1", "localhost", "::1")
_LEAST_TOKEN = 16  # characters: a shorter one could be guessed
_CONNECTIONS = 400  # at the same time; more are answered with 503 at once
_GOODBYE = 2  # seconds that open streams get at the end of the server


@click.command("studio")
@click.argument("folder", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0: any that is free.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Another address lets other machines in.")
@click.option("--token", help="The secret in the address. [default: kept in the folder]")
@click.option("--browser/--no-browser", default=True, help="Whether to open the page.")
def studio_command(folder: Path, port: int, host: str, token: str | None, browser: bool) -> None:
    """Look at the searches in FOLDER while they run, and start new ones, in the browser.

    Each run is a folder of its own in FOLDER. Ctrl-C ends the server; searches go on.
    """
    try:
        import uvicorn

        from symenum.studio.security import EVERYWHERE, own_hosts, stored_token
        from symenum.studio.server import PRIVATE, make_app
    except ImportError as error:
        raise InputError(f"The studio needs more packages ({error}): pip install 'symenum[studio]'.") from error
    if token is not None and (len(token) < _LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        raise InputError(f"--token must have at least {_LEAST_TOKEN} letters and digits.")
    folder = folder.resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / PRIVATE).mkdir(exist_ok=True, mode=0o700)
        token = token or stored_token(folder / PRIVATE / "token")
    except OSError as error:
        raise InputError(
            f"The folder '{folder}' cannot be written ({error.strerror or error}): name another, such as "
            "'symenum studio ~/symenum'."
        ) from error
    listening = listen(host, port)
    taken = listening.getsockname()[1]
    if port not in (0, taken):
        say(f"Port {port} is taken: this is port {taken}.")
    if host not in _PRIVATE_HOSTS:
        say(f"--host {host}: whoever reaches this machine and knows the token can use the studio.")
    app = make_app(folder, token, own_hosts(host, taken), taken)
    shown = "127.0.0.1" if host in EVERYWHERE else host
    address = f"http://{f'[{shown}]' if ':' in shown else shown}:{taken}/?token={token}"
    click.echo(f"symenum studio on '{folder}': {address}")
    say("Ctrl-C ends the server; searches that run go on.")
    server = uvicorn.Server(server_config(app))
    if browser:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listening])


def server_config(app: Any) -> Any:
    """How uvicorn serves the studio (a `uvicorn.Config`)."""
    import uvicorn

    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # it would hold the token
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=_GOODBYE,
        server_header=False,
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket at this port, or at the next one that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in range(port, min(port + _PORTS_TRIED, 65536)):
        listening = socket.socket(family, socket.SOCK_STREAM)
        if (
            os.name == "posix"
        ):  # a port that was ours a moment ago may be taken at once; elsewhere it means another thing
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, number))
            listening.listen()
        except OSError as error:
            listening.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise InputError(f"--host {host}: {error.strerror or error}. Leave it out for this machine.") from error
            continue
        return listening
    raise Failure(f"The ports {port} to {port + _PORTS_TRIED - 1} are all taken: name another one with --port.")
