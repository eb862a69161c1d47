"""Plans of jobs, names of jobs, and rows as text."""

from __future__ import annotations

import pytest

from symenum.bench.jobs import Job, make_bench_plan, row_from_json, row_to_json
from symenum.bench.problems import get_set

from .rows import make_row


def test_a_plan_is_seed_by_seed_and_names_what_it_skips(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_bench_plan(["nguyen", "R"], seeds=2, systems=["symenum"], noise=[0.0, 0.1])
    assert len(plan.jobs) == 15 * 2 * 2
    assert {job.seed for job in plan.jobs[:24]} == {0}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "gplearn" else object())
    plan = make_bench_plan(["r"], seeds=1, systems=["symenum", "gplearn"])
    assert plan.systems == ("symenum",)
    assert plan.notes == ("gplearn is skipped: gplearn is not installed (pip install gplearn)",)


def test_a_share_of_the_problems_is_always_the_same_and_stated() -> None:
    plan = make_bench_plan(["livermore"], seeds=1, systems=["symenum"], share=1 / 3)
    assert len(plan.jobs) == 7
    assert plan == make_bench_plan(["livermore"], seeds=1, systems=["symenum"], share=1 / 3)
    assert all(job.problem in plan.notes[0] for job in plan.jobs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sets": ["nguyne"]}, "did you mean 'nguyen'"),
        ({"sets": []}, "at least one"),
        ({"systems": ["pyopern"]}, "did you mean 'pyoperon'"),
        ({"systems": ["symenum:generator"]}, "name=value"),
        ({"systems": ["symenum:speed=9"]}, "no option 'speed'"),
        ({"systems": ["symenum:range=3"]}, "two numbers"),
        ({"systems": ["gplearn:x=1"]}, "takes no options"),
        ({"problems": ["Nguyen-99"]}, "did you mean 'Nguyen-9'"),
        ({"share": 0.0}, "share"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(arguments: dict[str, object], message: str) -> None:
    settings: dict[str, object] = {"sets": ["nguyen"], "systems": ["symenum"], "seeds": 1, **arguments}
    with pytest.raises(ValueError, match=message):
        make_bench_plan(settings.pop("sets"), **settings)  # type: ignore[arg-type]


def test_keys_of_jobs_differ_and_can_be_names_of_files() -> None:
    jobs = [
        Job(*parts)
        for parts in (
            ("r_star", "R-1*", "symenum", 0),
            ("r", "R-1", "symenum", 0),
            ("r", "R-1", "symenum", 0, 0.1),
            ("r", "R-1", "symenum:range=-1..1", 0),
            ("r", "R-1", "symenum:range=-3..3", 0),
            ("r", "R-1", "symenum:without=two terms", 0),
        )
    ]
    assert len({job.key for job in jobs}) == len(jobs)
    assert all("/" not in job.key and "*" not in job.key and ":" not in job.key for job in jobs)


def test_a_row_comes_back_from_its_text() -> None:
    assert row_from_json(row_to_json(make_row())) == make_row()


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', "{}", '{"job": {}}', '{"job": 3}'])
def test_what_is_no_row_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no row"):
        row_from_json(text)


def test_a_set_says_how_many_seeds_it_needs_where_nobody_else_does() -> None:
    assert {job.seed for job in make_bench_plan(["r"], seeds=None, systems=["symenum"]).jobs} == {0}
    assert get_set("real").protocol.seeds == 3
