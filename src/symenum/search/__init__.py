"""Search: PSE whole (the paper's Algorithm 2) as a state and a `step`; whoever drives it adds clock and display."""

from symenum.search.plan import Plan, make_plan
from symenum.search.run import Outcome, run
from symenum.search.state import State, StepReport
from symenum.search.step import start, step, stop_reason
from symenum.search.task import Settings, Task, make_task

__all__ = [
    "Outcome",
    "Plan",
    "Settings",
    "State",
    "StepReport",
    "Task",
    "make_plan",
    "make_task",
    "run",
    "start",
    "step",
    "stop_reason",
]
