"""House rules that a machine can check: one-way imports, no eval, pickle or swallowed errors, one home per decision.

Seeds have their own check, in the test of `core/seeds.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from symenum.operators import OPERATORS

PACKAGE = "symenum"
ROOT = Path(__file__).parents[1] / "src" / PACKAGE

# A part may import itself and the parts above it in this list (DESIGN.md, "The house"). A new part must be placed here.
# `data` and `core` know nothing of the package. `scans` and `fitting` stand before `heads`: a head hands back
# expressions whose constants are snapped already. `selection` stands before `front`: its rules take laws and numbers,
# and a front hands them its own. `cluster` stands before the estimators and the bench, which hand it their work by
# name. `display` stands before the estimators, which hand it plain values. `__init__`
# re-exports the library, so only what uses all of the library may import it.
ORDER = (
    "version",
    "data",
    "core",
    "operators",
    "expressions",
    "engine",
    "scans",
    "fitting",
    "sanity",
    "heads",
    "selection",
    "front",
    "tokens",
    "search",
    "cluster",
    "display",
    "run_directory",
    "estimator",
    "dynamics",
    "plugins",
    "bench",
    "__init__",
    "cli",
    "studio",
    "__main__",
)
PICKLES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve"}

# Printing, parsing, weights that the user gives by name, and the words of other packages: only these may ask for an
# operator's name.
NAMES_ARE_TEXT = (
    "expressions/complexity.py",
    "expressions/render.py",
    "expressions/parse.py",
    "expressions/export.py",
    "expressions/sympy_bridge.py",
    "estimator/template_text.py",
    "bench/systems/gplearn.py",
    "bench/systems/operon.py",
    "bench/systems/psrn.py",
)

# Thresholds of exactness are numbers here and formulas of these numbers elsewhere; a rival of the benchmark has a
# stopping rule of its own.
EXACTNESS_HOME = "core/exactness.py"
RIVALS = "bench/systems/"
SIGNALS_HOME = "core/interrupts.py"

MODULES = sorted(ROOT.rglob("*.py"))
each_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())


def part_of(path: Path) -> str:
    """The top-level part of a module: `engine` for symenum/engine/cpu.py."""
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def imported_modules(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of all that a module imports, wherever in it the import stands.

    `package` is the dotted package that the module lies in: relative imports start from there. `from a import b` gives
    a.b, since b may be a module.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def backward_imports(source: str, part: str, package: str = PACKAGE) -> list[str]:
    """What is wrong with the imports of a module of that part, one readable line each."""
    if part not in ORDER:
        return [f"part {part!r} has no place in the import order: add it to ORDER in {Path(__file__).name}"]
    faults = []
    for line, name in imported_modules(ast.parse(source), package):
        top, *rest = name.split(".")
        if top != PACKAGE:
            continue
        # `from symenum import operators` is the module; `from symenum import PSRN` is the package's own namespace.
        known = rest and (rest[0] in ORDER or (ROOT / rest[0]).is_dir() or (ROOT / f"{rest[0]}.py").is_file())
        target = rest[0] if known else "__init__"
        if target not in ORDER:
            faults.append(f"line {line}: imports {name}, and part {target!r} has no place in ORDER")
        elif ORDER.index(target) > ORDER.index(part):
            faults.append(f"line {line}: {part} imports {name}, but {target} comes after {part}")
    return faults


def forbidden_uses(source: str) -> list[str]:
    """eval, exec, pickle and swallowed exceptions, one readable line each."""
    tree = ast.parse(source)
    faults = [
        f"line {line}: imports {name}"
        for line, name in imported_modules(tree, PACKAGE)
        if name.split(".")[0] in PICKLES
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in {"eval", "exec", "__import__"}:
            faults.append(f"line {node.lineno}: uses {node.id}")
        elif isinstance(node, ast.keyword) and (node.arg, ast.unparse(node.value)) in {
            ("allow_pickle", "True"),
            ("weights_only", "False"),
        }:
            faults.append(f"line {node.value.lineno}: {ast.unparse(node)} reads a pickle")
        elif isinstance(node, ast.ExceptHandler) and node.type is None:
            faults.append(f"line {node.lineno}: bare except")
        elif isinstance(node, ast.ExceptHandler) and all(is_empty(statement) for statement in node.body):
            faults.append(f"line {node.lineno}: exception swallowed")
    return faults


def operator_name_tests(source: str) -> list[str]:
    """Where a module decides by an operator's name, one readable line each. Naming one to build a tree is no test."""
    faults: dict[tuple[int, str], None] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            found = any(is_name_of_operator(side) or names_operators(side) for side in (node.left, *node.comparators))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.Sub)):
            found = names_operators(node.left) or names_operators(node.right)
        elif isinstance(node, ast.Subscript):
            found = is_name_of_operator(node.slice)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"get", "index"}:
            found = any(is_name_of_operator(argument) for argument in node.args)
        elif isinstance(node, (ast.SetComp, ast.DictComp)):
            found = is_name_of_operator(node.key if isinstance(node, ast.DictComp) else node.elt)
        elif isinstance(node, ast.Dict):
            found = any(key is not None and names_operators(key) for key in node.keys)
        elif isinstance(node, ast.Set):
            found = names_operators(node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            found = any(part is not None and is_name_of_operator(part) for part in parts)
        else:
            found = False
        if found:
            faults[node.lineno, ast.unparse(node).splitlines()[0]] = None
    return [f"line {line}: {text}" for line, text in faults]


def is_name_of_operator(node: ast.AST) -> bool:
    """`operator.name`, `node.operator.name`, `op.name`, …"""
    if not isinstance(node, ast.Attribute) or node.attr != "name":
        return False
    owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
    return owner.strip("_") in {"operator", "op", "record"}


def names_operators(node: ast.AST) -> bool:
    """An operator's name as a literal, alone or among others."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return any(names_operators(element) for element in node.elts)
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in OPERATORS


def signal_handlers(source: str) -> list[str]:
    """Where a module sets a signal handler, one readable line each."""
    return [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"signal.signal", "signal.sigaction"}
    ] + [
        f"line {line}: imports {name}"
        for line, name in imported_modules(ast.parse(source), PACKAGE)
        if name == "signal.signal"
    ]


def exactness_numbers(source: str) -> list[str]:
    """Constants that say what is exact, or where rounding begins, by a small number of their own; one line each.

    Counts and sizes (of batches that are judged exactly, say) are no thresholds: they are 1 or more.
    """
    faults = []
    for node in ast.walk(ast.parse(source)):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        named = [name for name in names if "EXACT" in name or "ROUNDING_FLOOR" in name]
        if (
            named
            and is_number(node.value)
            and any(
                isinstance(one, ast.Constant) and isinstance(one.value, float) and abs(one.value) < 1
                for one in ast.walk(node.value)
            )
        ):
            faults.append(f"line {node.lineno}: {ast.unparse(node)}")
    return faults


def is_number(node: ast.AST | None) -> bool:
    """A number, or a formula of numbers only."""
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool)


def is_empty(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def test_there_are_modules_to_check() -> None:
    assert {part_of(path) for path in MODULES} >= {"__init__", "operators", "data", "cli"}


@each_module
def test_imports_point_one_way(path: Path) -> None:
    package = ".".join([PACKAGE, *path.parent.relative_to(ROOT).parts])
    faults = backward_imports(path.read_text(encoding="utf-8"), part_of(path), package)
    assert not faults, f"{path}:\n" + "\n".join(faults)


@each_module
def test_no_eval_pickle_or_swallowed_exception(path: Path) -> None:
    faults = forbidden_uses(path.read_text(encoding="utf-8"))
    assert not faults, f"{path}:\n" + "\n".join(faults)


@each_module
def test_no_module_decides_by_the_name_of_an_operator(path: Path) -> None:
    place = path.relative_to(ROOT).as_posix()
    if place.startswith("operators/") or place in NAMES_ARE_TEXT:
        return
    faults = operator_name_tests(path.read_text(encoding="utf-8"))
    assert not faults, f"{path}: ask for a role or a trait of the record\n" + "\n".join(faults)


@each_module
def test_only_core_interrupts_sets_signal_handlers(path: Path) -> None:
    if path.relative_to(ROOT).as_posix() != SIGNALS_HOME:
        faults = signal_handlers(path.read_text(encoding="utf-8"))
        assert not faults, f"{path}: use {SIGNALS_HOME}\n" + "\n".join(faults)


@each_module
def test_only_core_exactness_holds_thresholds_of_exactness_as_numbers(path: Path) -> None:
    place = path.relative_to(ROOT).as_posix()
    if place != EXACTNESS_HOME and not place.startswith(RIVALS):
        faults = exactness_numbers(path.read_text(encoding="utf-8"))
        assert not faults, f"{path}: derive them from EXACTNESS\n" + "\n".join(faults)


@pytest.mark.parametrize("source", ["import signal\nsignal.signal(2, f)", "from signal import signal"])
def test_guard_sees_a_signal_handler(source: str) -> None:
    assert len(signal_handlers(source)) == 1


def test_guard_accepts_a_signal_that_is_sent() -> None:
    assert signal_handlers("import signal\nsignal.raise_signal(signal.SIGINT)") == []


@pytest.mark.parametrize("source", ["_EXACT = 1e-12", "EXACT_LOSS: float = 1e-12**2", "_ROUNDING_FLOOR = -(2 * 1e-15)"])
def test_guard_sees_a_threshold_of_exactness(source: str) -> None:
    assert len(exactness_numbers(source)) == 1


@pytest.mark.parametrize(
    "source", ["_EXACT = EXACTNESS.fitted**2", "EXACT = True", "_EXACT_NAMES = ('a',)", "TIE = 1e-9"]
)
def test_guard_accepts_a_threshold_that_follows_from_another(source: str) -> None:
    assert exactness_numbers(source) == []


@pytest.mark.parametrize(
    "source",
    [
        'if operator.name == "f":\n    pass',
        'found = node.operator.name in ("f", "g")',
        "found = op.name not in known",
        'found = name == "sin"',
        'found = "mul" in names',
        'found = names & {"div", "inv"}',
        "found = table[node.operator.name]",
        "found = table.get(operator.name, 0)",
        "name, operands = node.operator.name, node.operands",
        "names = {operator.name for operator in operators}",
        'codes = {"add": 1}',
    ],
)
def test_guard_sees_a_decision_by_name(source: str) -> None:
    assert operator_name_tests(source)


@pytest.mark.parametrize(
    "source",
    [
        'tree = apply("mul", a, apply("sin", b))',
        'for kind in ("sin", "cos"):\n    print(kind)',
        "found = operator.role is Role.SUM",
        'raise ValueError(f"{operator.name} takes two operands")',
        'found = variable.name == "x1"',
        'axes.set_yscale("log")',
    ],
)
def test_guard_accepts_a_tree_that_is_built_and_a_name_that_is_printed(source: str) -> None:
    assert operator_name_tests(source) == []


@pytest.mark.parametrize(
    ("part", "package", "source"),
    [
        ("operators", "symenum", "import symenum.expressions"),
        ("operators", "symenum", "from symenum.expressions.tree import Apply"),
        ("operators", "symenum", "from symenum import expressions"),
        ("operators", "symenum", "from symenum import PSRN"),
        ("operators", "symenum", "import symenum"),
        ("operators", "symenum", "from . import search"),
        ("operators", "symenum", "def f():\n    from symenum import cli"),
        ("expressions", "symenum.expressions", "from ..engine import PSRN"),
        ("engine", "symenum.engine.cuda", "from ...search import step"),
        ("nowhere", "symenum", "import math"),
    ],
)
def test_guard_sees_an_import_that_points_backwards(part: str, package: str, source: str) -> None:
    assert len(backward_imports(source, part, package)) == 1


@pytest.mark.parametrize(
    ("part", "package", "source"),
    [
        ("engine", "symenum.engine.cuda", "from ..shortlist import Shortlist"),
        ("engine", "symenum.engine", "from symenum.expressions import evaluate"),
        ("expressions", "symenum.expressions", "from .tree import Apply"),
        ("cli", "symenum", "from symenum import PSRN, __version__"),
        ("__init__", "symenum", "from symenum.engine import PSRN"),
        ("operators", "symenum", "import torch\nfrom sympy.core import search"),
    ],
)
def test_guard_accepts_an_import_that_points_forwards(part: str, package: str, source: str) -> None:
    assert backward_imports(source, part, package) == []


@pytest.mark.parametrize(
    "source",
    [
        "eval('1')",
        "run = exec",
        "import pickle",
        "from pickle import loads",
        "numpy.load(f, allow_pickle=True)",
        "try:\n    f()\nexcept:\n    raise",
        "try:\n    f()\nexcept ValueError:\n    pass",
        "try:\n    f()\nexcept ValueError:\n    ...",
    ],
)
def test_guard_sees_a_forbidden_use(source: str) -> None:
    assert len(forbidden_uses(source)) == 1


def test_guard_accepts_a_method_called_eval_and_a_handled_error() -> None:
    assert forbidden_uses("model.eval()\ntry:\n    f()\nexcept ValueError:\n    g()") == []
