"""Runs that try to break a search: `python benchmarks/trust COMMAND --help`."""

from __future__ import annotations

import argparse
import sys

import files
import fuzz
import interrupt
import kill
import limits
import memory
import motion_fuzz

COMMANDS = {
    "files": files,
    "fuzz": fuzz,
    "interrupt": interrupt,
    "kill": kill,
    "limits": limits,
    "memory": memory,
    "motion": motion_fuzz,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/trust", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, module in COMMANDS.items():
        module.add_arguments(commands.add_parser(name, help=(module.__doc__ or "").replace("%", "%%")))
    options = parser.parse_args()
    return int(COMMANDS[options.command].main(options))


if __name__ == "__main__":
    sys.exit(main())
