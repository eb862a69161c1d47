"""The memory limit: read from text, from the machine, or from the container."""

from __future__ import annotations

from pathlib import Path

import pytest

from symenum.core.memory import DEFAULT_MEMORY, LEAST_MEMORY, machine_memory, memory_limit


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2 * 10**9), ("1.5 gb", 15 * 10**8), ("512MiB", 512 << 20), ("600000000", 6 * 10**8), (10**9, 10**9)],
)
def test_sizes_are_read(text: object, size: int) -> None:
    assert memory_limit(text) == size


@pytest.mark.parametrize("value", ["", "2 apples", "-1GB", 2.5e9, True, [], 10, "1kB", "__import__('os')"])
def test_what_is_no_size_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"^max_memory must be"):
        memory_limit(value)


def test_the_machine_decides_where_nobody_does() -> None:
    assert LEAST_MEMORY <= memory_limit(None) <= DEFAULT_MEMORY


def test_a_container_has_less_than_the_machine(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    missing = tmp_path / "missing"
    limit.write_text("max\n")
    whole = machine_memory([limit, missing])
    limit.write_text("1000000000\n")
    assert machine_memory([limit, missing]) == min(whole, 10**9)
