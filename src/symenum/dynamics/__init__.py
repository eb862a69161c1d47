"""Dynamics: laws of motion from noisy trajectories, and of fields on grids."""

from symenum.dynamics.derivatives import (
    DERIVATIVES,
    CentralDifferences,
    Differentiator,
    Motion,
    SavitzkyGolay,
    SmoothingSpline,
)
from symenum.dynamics.discover import SystemReport
from symenum.dynamics.pde_regressor import PDERegressor
from symenum.dynamics.regressor import ODERegressor
from symenum.dynamics.simulate import Simulation, simulate

__all__ = [
    "DERIVATIVES",
    "CentralDifferences",
    "Differentiator",
    "Motion",
    "ODERegressor",
    "PDERegressor",
    "SavitzkyGolay",
    "Simulation",
    "SmoothingSpline",
    "SystemReport",
    "simulate",
]
