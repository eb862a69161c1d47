"""`symenum cluster`: what a cluster is, whether its workers can be used, and how fast they are."""

from __future__ import annotations

import click

from symenum.cli.messages import Failure, InputError, say

__all__ = ["cluster_group"]

_GIB = 1 << 30  # bytes
_WAIT = 60.0  # seconds for the first worker to say what it is


@click.group("cluster")
def cluster_group() -> None:
    """Look at the cluster that --cluster of fit and bench run names."""


@cluster_group.command("check", no_args_is_help=True)
@click.argument("address")
@click.option("--measure/--no-measure", default=True, help="Also time each worker, about a second each. [default: yes]")
def check_command(address: str, measure: bool) -> None:
    """Show the workers at ADDRESS (tcp://host:8786, or a number of processes here), and measure them.

    Exit code 1 where no worker can be used.
    """
    from symenum.cluster import ClusterError, Crew, connected
    from symenum.cluster.check import measure_crew

    try:
        with connected(address) as executor:
            click.echo(executor.name)
            crew = Crew(executor)
            crew.gathered(1, _WAIT)
            crew.gathered(len(executor.places()), _WAIT)
            for worker in crew.workers:
                facts = worker.facts
                memory = (worker.place.memory or int(facts["memory"])) / _GIB
                gpus = f", {worker.place.gpus} GPU" if worker.place.gpus else ""
                threads = f"{worker.place.threads} thread{'s' * (worker.place.threads != 1)}"
                click.echo(f"{worker.name}: {threads}{gpus}, {memory:.1f} GiB, torch {facts['torch']}")
            for name, why in crew.refused.items():
                click.echo(f"{name}: does not take part: {why}")
            if not crew.workers:
                raise Failure(f"{executor.name} has no worker that can be used.")
            if measure:
                say("Measuring …")
                found = measure_crew(crew)
                for one in found:
                    click.echo(
                        f"{one.worker.name}: {one.rate:.2g} candidates a second, {1e3 * one.answer:.1f} ms for a "
                        f"message there and back, {one.bandwidth / 1e6:.0f} MB a second"
                    )
                click.echo(f"together: {sum(one.rate for one in found):.2g} candidates a second")
    except ValueError as error:
        raise InputError(f"{error}.") from error
    except ClusterError as error:
        raise Failure(f"{error}.") from error
