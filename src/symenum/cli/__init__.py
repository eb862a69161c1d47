"""The command line: `symenum fit`, `predict`, `score`, `resume`, `fit-ode`, `bench` and `devices`.

Exit codes: 0, a law was found (also after Ctrl-C, which keeps what was found until then); 1, something failed on our
side or the machine's; 2, the request or the data cannot be used as they are. Results go to stdout, all else to stderr.

Torch takes seconds to import: commands import it, and whatever needs it, only once the request makes sense.
"""

from __future__ import annotations

import click

from symenum import __version__
from symenum.cli.bench import bench_group
from symenum.cli.devices import devices_command
from symenum.cli.fit import fit_command
from symenum.cli.fit_ode import fit_ode_command
from symenum.cli.messages import InputError
from symenum.cli.predict import predict_command
from symenum.cli.resume import resume_command
from symenum.cli.score import score_command
from symenum.core.registration import PluginError, load_plugins

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
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


main.add_command(fit_command)
main.add_command(predict_command)
main.add_command(score_command)
main.add_command(resume_command)
main.add_command(fit_ode_command)
main.add_command(bench_group)
main.add_command(devices_command)
