"""The house in figures, for one source tree or several side by side: python benchmarks/house.py [SRC ...]

Files, lines and lengths; how many files and functions a `symenum fit` passes before its first scan; in how many files
each decision of DESIGN.md is taken; how often an operator's name is tested outside the operator table. To see what a
change did:

    git worktree add /tmp/before f486af8
    python benchmarks/house.py /tmp/before/src src
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

# A file takes a decision if a line of it matches: it defines the threshold, formula or handler, and does not just ask
# for one. The patterns know the names of 0.1 and of today; a decision that comes back under a new name goes unseen.
DECISIONS = {
    "what is zero up to rounding": r"^_?\w*(EXACT|ROUNDING_FLOOR|_LAW)(_WINDOW)? = \d[\d.]*e-|^    law: float = ",
    "when a number is recognised": r"^_?\w*(RARITY|EXACT_ERRORS)\b.* = .*\d|rarity=0|^class Recognition",
    "what the same structure is": r"^def same_structure",
    "what R² of a pair is": r"- 2 \* g \* |mul_\(-2 \* first\)",
    "how triples are scanned": r"for third in range|^class _Threes|^def best_triples",
    "a step of nonlinear least squares": r"^_(FIRST|LEAST|MIN)_DAMPING\b.* = .*\d|optimize\.least_squares\(",
    "what a parameter of PSERegressor may be": r'"max_complexity": _|"--max-complexity"',
    "what a signal does": r"signal\.signal\(",
    "which budget holds, beside the argument": r"ContextVar\(",
}

TRACE = """
import os, sys
files, functions = set(), set()
def watch(frame, event, argument):
    code = frame.f_code
    if event != "call" or "/symenum/" not in code.co_filename or code.co_name.startswith("<"):
        return
    if code.co_name == "scan":
        print(len(files), len(functions), file=sys.stderr, flush=True)
        os._exit(0)
    files.add(code.co_filename)
    functions.add((code.co_filename, code.co_qualname if sys.version_info >= (3, 11) else code.co_name))
sys.argv = ["symenum", "fit", "--example", "planets", "--max-time", "5"]
from symenum.cli import main
sys.setprofile(watch)
main()
"""


def texts(src: Path) -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(src.rglob("*.py"))}


def places(src: Path, pattern: str) -> int:
    """In how many files a line matches."""
    return sum(bool(re.search(pattern, text, flags=re.MULTILINE)) for text in texts(src).values())


def name_tests(src: Path) -> int:
    """Comparisons with operator names outside the table, printing and parsing included: `operator.name == "exp"`."""
    homes = [path for path in texts(src) if "operators" in path.relative_to(src).parts[1]]
    table = "".join(path.read_text(encoding="utf-8") for path in homes)
    names = set(re.findall(r'_(?:unary|binary)\(\s*"(\w+)"', table))
    count = 0
    for path, text in texts(src).items():
        for node in ast.walk(ast.parse(text)):
            both = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr))
            if path not in homes and (both or isinstance(node, ast.Compare)):
                words = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}
                count += bool(words & names)
    return count


def walk_to_first_scan(src: Path) -> tuple[str, str]:
    """Distinct files and functions of the package that run between the command line and the first scan."""
    environment = {**os.environ, "PYTHONPATH": f"{src.resolve()}", "COLUMNS": "100"}
    done = subprocess.run([sys.executable, "-c", TRACE], env=environment, capture_output=True, text=True, check=False)
    found: list[tuple[str, str]] = re.findall(r"^(\d+) (\d+)$", done.stderr, flags=re.MULTILINE)
    if not found:
        raise SystemExit(f"no scan was reached in {src}: {done.stderr[-500:]}")
    return found[-1]


def figures(src: Path) -> dict[str, object]:
    lengths = [len(text.splitlines()) for text in texts(src).values()]
    files, functions = walk_to_first_scan(src)
    return {
        "files": len(lengths),
        "lines": sum(lengths),
        "median lines of a file": statistics.median(lengths),
        "files below 40 lines": sum(length < 40 for length in lengths),
        "files from `symenum fit` to the first scan": files,
        "functions on that way": functions,
        **{f"files that decide {name}": places(src, pattern) for name, pattern in DECISIONS.items()},
        "tests of operator names outside the table": name_tests(src),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("src", nargs="*", type=Path, default=[Path("src")], help="source trees")
    trees = parser.parse_args().src
    tables = [figures(tree) for tree in trees]
    print(f"| figure | {' | '.join(map(str, trees))} |")
    print(f"| --- |{' --- |' * len(trees)}")
    for name in tables[0]:
        print(f"| {name} | {' | '.join(str(table[name]) for table in tables)} |")


if __name__ == "__main__":
    main()
