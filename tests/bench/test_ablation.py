"""The paper's ablations: every variant exists, and every measurement is a table with a plot."""

from __future__ import annotations

from symenum.bench.ablation import VARIANTS, duplicates, efficiency, growth
from symenum.bench.systems import make_system


def test_every_variant_of_an_ablation_can_be_made() -> None:
    for make in VARIANTS.values():
        variants = make()
        assert variants.sets
        for system in variants.systems:
            make_system(system)


def test_ablations_of_the_engine_give_tables_and_plots() -> None:
    for measured in (growth(4), duplicates(2), efficiency((10,))):
        assert measured.table.cells
        assert all(len(line) == len(measured.table.columns) for line in measured.table.cells)
        assert measured.plot.startswith("<svg")
    columns = {line[2]: int(line[3].replace(",", "")) for line in duplicates(2).table.cells if line[0] == "koza"}
    assert columns["on"] < columns["off"]
