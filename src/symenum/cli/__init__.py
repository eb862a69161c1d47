"""The command line: `symenum fit`, `predict`, `score`, `resume`, `fit-ode`, `bench`, `cluster`, `devices`, `studio`.

Exit codes: 0, a law was found (also after Ctrl-C, which keeps what was found until then); 1, something failed on our
side or the machine's; 2, the request or the data cannot be used as they are. Results go to stdout, all else to stderr.

Torch takes seconds to import: commands import it, and whatever needs it, only once the request makes sense. A command's
own module is imported when the command is asked for, so that `symenum --help` is there at once.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from symenum import __version__
from symenum.cli.messages import InputError, did_you_mean
from symenum.core.registration import PluginError, load_plugins

__all__ = ["main"]


# Where each command is, and its line in `symenum --help`.
_COMMANDS = {
    "bench": ("symenum.cli.bench:bench_group", "Run systems on public problems, and report what they recover."),
    "cluster": ("symenum.cli.cluster:cluster_group", "Look at the workers of a cluster, and measure them."),
    "devices": ("symenum.cli.devices:devices_command", "Show cores, memory, torch and CUDA devices."),
    "fit": ("symenum.cli.fit:fit_command", "Search for the law of a column of a table."),
    "fit-ode": ("symenum.cli.fit_ode:fit_ode_command", "Search for laws of motion x' = f(x) of a trajectory."),
    "predict": ("symenum.cli.predict:predict_command", "The values of a saved law on the rows of a table."),
    "resume": ("symenum.cli.resume:resume_command", "Go on with a search that was saved."),
    "score": ("symenum.cli.score:score_command", "Fit the constants of a formula that you have."),
    "studio": ("symenum.studio.command:studio_command", "Look at searches in the browser, and start new ones."),
}


class _Commands(click.Group):
    """The commands, each imported when it is asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _COMMANDS:
            hint = f" To search a table: symenum fit {name}" if Path(name).is_file() else did_you_mean(name, _COMMANDS)
            raise click.UsageError(f"No such command {name!r}.{hint}", context)
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_text) for name, (_, help_text) in sorted(_COMMANDS.items())])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="symenum", message="%(prog)s %(version)s")
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="MODULE",
    help="Import a module first, which registers parts of your own; see CONTRIBUTING.md.",
)
def main(plugins: tuple[str, ...]) -> None:
    """Find the closed-form law behind a table of numbers.

    \b
    symenum fit data.csv --target y       search for y as a formula of the other columns
    symenum predict DIR new.csv           values of the law that --out DIR has saved, for other rows
    symenum score data.csv "a*x**2 + b"   fit the constants of a formula that you have
    symenum fit --example planets         Kepler's third law from the eight planets
    symenum resume DIR                    go on with a search that --out DIR has saved
    symenum fit-ode motion.csv --time t   search for the laws of motion x' = f(x) of a trajectory
    """
    try:
        load_plugins(plugins)
    except PluginError as error:
        raise InputError(f"--plugin: {error}.") from error
