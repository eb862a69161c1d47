"""Constants of nature by name, with their units: CODATA's values, as SciPy has them, in units of the SI."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scipy.constants import physical_constants

from symenum.core.words import did_you_mean

__all__ = ["PHYSICAL_CONSTANTS", "named_constants"]

# Name in formulas -> name in CODATA, and unit. A name that is a usual one of a variable too (m, t, V, …) is not taken.
_CODATA: Mapping[str, tuple[str, str]] = {
    "c": ("speed of light in vacuum", "m/s"),
    "h": ("Planck constant", "J s"),
    "hbar": ("reduced Planck constant", "J s"),
    "G": ("Newtonian constant of gravitation", "m^3/(kg s^2)"),
    "k_B": ("Boltzmann constant", "J/K"),
    "e": ("elementary charge", "C"),
    "N_A": ("Avogadro constant", "1/mol"),
    "R": ("molar gas constant", "J/(mol K)"),
    "g_n": ("standard acceleration of gravity", "m/s^2"),
    "epsilon_0": ("vacuum electric permittivity", "F/m"),
    "mu_0": ("vacuum mag. permeability", "N/A^2"),
    "m_e": ("electron mass", "kg"),
    "m_p": ("proton mass", "kg"),
    "m_n": ("neutron mass", "kg"),
    "m_u": ("atomic mass constant", "kg"),
    "sigma_SB": ("Stefan-Boltzmann constant", "W/(m^2 K^4)"),
    "R_inf": ("Rydberg constant", "1/m"),
    "a_0": ("Bohr radius", "m"),
    "F": ("Faraday constant", "C/mol"),
    "mu_B": ("Bohr magneton", "J/T"),
    "alpha": ("fine-structure constant", "1"),
}

PHYSICAL_CONSTANTS: Mapping[str, tuple[float, str]] = {
    name: (float(physical_constants[key][0]), unit) for name, (key, unit) in _CODATA.items()
}
"""Value and unit by name."""


def named_constants(names: Iterable[object]) -> dict[str, float]:
    """The values of these constants of nature; ValueError for a name that is none of them.

    >>> named_constants(["c"])
    {'c': 299792458.0}
    """
    found: dict[str, float] = {}
    for name in names:
        if not isinstance(name, str) or name not in PHYSICAL_CONSTANTS:
            meant = did_you_mean(name, list(PHYSICAL_CONSTANTS)) if isinstance(name, str) else ""
            raise ValueError(
                f"constants names {name!r:.40}, which is no constant of nature{meant}; there are "
                f"{', '.join(PHYSICAL_CONSTANTS)}. Give one of your own with its value, as in {{'g': 9.81}}"
            )
        found[name] = PHYSICAL_CONSTANTS[name][0]
    return found
