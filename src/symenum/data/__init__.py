"""Small data sets that ship with the package, for the demo, the README and the tests.

Not for benchmark data: those are read from the folder that SYMENUM_DATA names.
"""

from __future__ import annotations

from importlib.resources import files

import pandas

__all__ = ["load_planets"]


def load_planets() -> pandas.DataFrame:
    """The orbits of the eight planets: semi-major axis in AU and sidereal period in years.

    Mean orbital elements at J2000 and sidereal periods, as JPL publishes them. A mean orbit is not an exact ellipse:
    Kepler's law holds to 0.06% in this table.

    >>> load_planets().head(3)
        planet  distance_au  period_years
    0  Mercury     0.387099      0.240847
    1    Venus     0.723336      0.615197
    2    Earth     1.000003      1.000017
    """
    with files("symenum.data").joinpath("planets.csv").open(encoding="utf-8") as file:
        return pandas.read_csv(file)
