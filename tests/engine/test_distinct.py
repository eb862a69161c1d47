"""Duplicate removal: all duplicates are found, at any scale, and nothing else is merged."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from symenum.engine.distinct import canonical_signs, representatives, representatives_by_domain, signature
from symenum.expressions import sample_points

pytestmark = pytest.mark.usefixtures("one_thread")

NAN = math.nan
seeds = st.integers(0, 2**32 - 1)
exponents = st.integers(-300, 300)


def random_rows(seed, count, points, *, exponent=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, points, generator=generator, dtype=torch.float64) * 10.0**exponent


def random_rank(seed, count):
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed))


def rounding(seed, like, size=2e-16):
    """Factors that differ from one as much as rounding errors do."""
    generator = torch.Generator().manual_seed(seed + 1)
    return 1 + size * (2 * torch.rand(like.shape, generator=generator, dtype=torch.float64) - 1)


def lowest_of_group(group, rank):
    """For each member of a group the index of the member of lowest rank."""
    leader = {}
    for index in torch.argsort(rank).tolist():
        leader.setdefault(int(group[index]), index)
    return torch.tensor([leader[int(g)] for g in group])


class TestRepresentatives:
    """On data: finite values, differences relative to the norm."""

    @given(seed=seeds, count=st.integers(1, 30), points=st.integers(1, 300), exponent=exponents)
    def test_duplicates_are_found_at_any_scale_and_the_simplest_stays(self, seed, count, points, exponent):
        group = torch.randint(0, max(1, count // 2), (count,), generator=torch.Generator().manual_seed(seed))
        values = random_rows(seed, count, points, exponent=exponent)[group]
        values = values * rounding(seed, values)
        rank = random_rank(seed, count)
        assert torch.equal(representatives(values, rank), lowest_of_group(group, rank))

    @given(seed=seeds, data=st.data())
    def test_scales_may_be_mixed(self, seed, data):
        powers = data.draw(st.lists(exponents, min_size=1, max_size=8))
        base = random_rows(seed, len(powers), 20) * 10.0 ** torch.tensor(powers, dtype=torch.float64)[:, None]
        group = torch.arange(len(powers)).repeat(3)
        values = base[group] * rounding(seed, base[group])
        rank = random_rank(seed, len(group))
        assert torch.equal(representatives(values, rank), lowest_of_group(group, rank))

    @given(seed=seeds, count=st.integers(1, 200), points=st.integers(2, 64), exponent=exponents)
    def test_distinct_columns_of_random_data_are_never_merged(self, seed, count, points, exponent):
        values = random_rows(seed, count, points, exponent=exponent)
        assert torch.equal(representatives(values, random_rank(seed, count)), torch.arange(count))

    def test_no_two_of_many_random_columns_are_merged(self):
        values = random_rows(3, 30_000, 10)
        assert torch.equal(representatives(values, torch.arange(30_000)), torch.arange(30_000))

    @given(seed=seeds, points=st.integers(2, 300), exponent=exponents)
    def test_perturbations_of_a_billionth_are_not_merged(self, seed, points, exponent):
        row = random_rows(seed, 1, points, exponent=exponent)
        noise = random_rows(seed + 1, 1, points)
        values = torch.cat([row, row * (1 + 1e-9 * noise), row * (1 + 1e-9)])
        assume(float(noise.abs().max()) > 0.1)
        assert representatives(values, torch.arange(3)).tolist() == [0, 1, 2]

    @given(seed=seeds, scale=st.floats(1e-12, 1.0), points=st.integers(1, 100))
    def test_row_and_its_multiple_are_two(self, seed, scale, points):
        row = random_rows(seed, 1, points)
        assert representatives(torch.cat([row, row * (1 + scale)]), torch.arange(2)).tolist() == [0, 1]

    @given(seed=seeds, place=st.integers(0, 99))
    def test_difference_at_one_point_is_enough(self, seed, place):
        values = random_rows(seed, 1, 100).repeat(2, 1)
        values[1, place] += 1e-9 * float(values.abs().max())
        assert representatives(values, torch.arange(2)).tolist() == [0, 1]

    def test_row_and_its_negative_are_two(self):
        row = random_rows(0, 1, 10)
        assert representatives(torch.cat([row, -row]), torch.arange(2)).tolist() == [0, 1]

    def test_zero_rows_of_either_sign_are_one_and_nothing_else_is_zero(self):
        values = torch.tensor([[0.0, 0.0], [-0.0, 0.0], [1e-300, 0.0], [0.0, 1e-300]], dtype=torch.float64)
        assert representatives(values, torch.arange(4)).tolist() == [0, 0, 2, 3]

    def test_constant_rows_are_told_apart(self):
        values = torch.tensor([1.0, 2.0, 1.0, 1.0 + 1e-9, -1.0], dtype=torch.float64)[:, None].expand(5, 12)
        assert representatives(values.contiguous(), torch.arange(5)).tolist() == [0, 1, 0, 3, 4]

    @given(seed=seeds, count=st.integers(2, 30))
    def test_order_of_the_rows_does_not_matter(self, seed, count):
        group = torch.randint(0, count, (count,), generator=torch.Generator().manual_seed(seed))
        values, rank = random_rows(seed, count, 7)[group], random_rank(seed, count)
        shuffle = random_rank(seed + 1, count)
        plain = representatives(values, rank)
        shuffled = representatives(values[shuffle], rank[shuffle])
        assert torch.equal(shuffle[shuffled], plain[shuffle])

    @given(seed=seeds)
    def test_tolerance_is_a_part_of_the_norm(self, seed):
        row = random_rows(seed, 1, 50)
        near = row * (1 + 1e-12)
        both = torch.cat([row, near])
        assert representatives(both, torch.arange(2), tolerance=1e-10).tolist() == [0, 0]
        assert representatives(both, torch.arange(2), tolerance=1e-13).tolist() == [0, 1]

    def test_no_rows_give_no_representatives(self):
        assert representatives(torch.empty(0, 5, dtype=torch.float64), torch.arange(0)).tolist() == []

    def test_many_copies_of_a_few_rows(self):
        group = torch.arange(20_000) % 7
        values = random_rows(5, 7, 12)[group]
        rank = random_rank(5, 20_000)
        assert torch.equal(representatives(values, rank), lowest_of_group(group, rank))


def column(function, inputs=2):
    """Values of a function at the fixed points, NaN where it fails."""
    points = sample_points(inputs).numpy()
    with np.errstate(all="ignore"):
        values = np.asarray(function(*points.T), dtype=float) * np.ones(len(points))
    return torch.from_numpy(np.where(np.isfinite(values), values, NAN))


def by_domain(*functions, wider=True, rank=None):
    values = torch.stack([column(function) for function in functions])
    rank = torch.arange(len(functions)) if rank is None else torch.tensor(rank)
    return representatives_by_domain(values, rank, wider=wider).tolist()


def x_alone(x, y):
    return x


def exp_log(x, y):
    return np.exp(np.log(x))


class TestRepresentativesByDomain:
    """At the fixed points: NaN outside the domain, differences relative to each value."""

    def test_function_of_a_wider_domain_stands_for_a_narrower_one(self):
        assert by_domain(x_alone, exp_log) == [0, 0]

    def test_function_of_a_narrower_domain_does_not_stand_for_a_wider_one(self):
        assert by_domain(exp_log, x_alone) == [0, 1]

    def test_wider_domain_is_no_reason_without_a_lower_rank(self):
        assert by_domain(x_alone, exp_log, rank=[1, 0]) == [0, 1]

    def test_domains_are_not_crossed_when_not_asked(self):
        assert by_domain(x_alone, exp_log, wider=False) == [0, 1]

    def test_sum_of_logarithms_is_the_logarithm_of_the_product(self):
        assert by_domain(lambda x, y: np.log(x * y), lambda x, y: np.log(x) + np.log(y)) == [0, 0]

    def test_domains_that_only_overlap_are_not_crossed(self):
        def right(x, y):
            return np.where(x > 0, y, NAN)

        def upper(x, y):
            return np.where(y > 0, y, NAN)

        assert by_domain(right, upper) == [0, 1]

    def test_chains_end_at_the_widest(self):
        narrow = [lambda x, y: np.exp(np.log(x)) + 0 * np.log(y), exp_log, x_alone]
        assert by_domain(*narrow, rank=[2, 1, 0]) == [2, 2, 2]

    def test_duplicates_of_a_narrow_function_follow_it_to_the_wide_one(self):
        narrow = lambda x, y: np.sqrt(x) ** 2  # noqa: E731
        assert by_domain(narrow, exp_log, x_alone, rank=[1, 2, 0]) == [2, 2, 2]

    def test_simplest_of_several_wider_ones_is_taken(self):
        wide = lambda x, y: np.where(x > -2, x, NAN)  # noqa: E731
        assert by_domain(exp_log, wide, x_alone, rank=[2, 1, 0])[0] == 2
        assert by_domain(exp_log, wide, x_alone, rank=[2, 0, 1])[0] == 1

    def test_function_that_is_finite_nowhere_has_no_representative(self):
        assert by_domain(lambda x, y: np.log(-np.exp(x)), lambda x, y: x / (x - x), x_alone) == [-1, -1, 2]

    def test_function_that_is_hardly_ever_finite_is_not_merged(self):
        values = torch.full((2, 144), NAN, dtype=torch.float64)
        values[0] = column(x_alone)
        values[1, :3] = values[0, :3]
        assert representatives_by_domain(values, torch.arange(2), wider=True).tolist() == [0, 1]
        values[1, :4] = values[0, :4]
        assert representatives_by_domain(values, torch.arange(2), wider=True).tolist() == [0, 0]

    def test_infinite_values_lie_outside_the_domain(self):
        values = torch.stack([column(exp_log), column(exp_log)])
        values[1][values[1].isnan()] = math.inf
        assert representatives_by_domain(values, torch.arange(2), wider=False).tolist() == [0, 0]

    @given(seed=seeds, count=st.integers(1, 25), exponent=exponents, wider=st.booleans())
    def test_duplicates_are_found_at_any_scale_and_the_simplest_stays(self, seed, count, exponent, wider):
        group = torch.randint(0, max(1, count // 2), (count,), generator=torch.Generator().manual_seed(seed))
        base = random_rows(seed, count, 144, exponent=exponent)
        base[random_rows(seed + 1, count, 144) > 0.5] = NAN
        values = base[group] * rounding(seed, base)
        rank = random_rank(seed, count)
        assert torch.equal(representatives_by_domain(values, rank, wider=wider), lowest_of_group(group, rank))

    @given(seed=seeds, count=st.integers(1, 100), exponent=exponents, domains=st.integers(1, 5), wider=st.booleans())
    @settings(max_examples=25)
    def test_distinct_functions_are_never_merged(self, seed, count, exponent, domains, wider):
        values = random_rows(seed, count, 144, exponent=exponent)
        outside = random_rows(seed + 1, domains, 144) > 0.3
        values[outside[torch.arange(count) % domains]] = NAN
        found = representatives_by_domain(values, random_rank(seed, count), wider=wider)
        assert torch.equal(found, torch.arange(count))

    @given(seed=seeds, exponent=exponents, place=st.integers(0, 143))
    def test_perturbations_of_a_billionth_are_not_merged(self, seed, exponent, place):
        values = random_rows(seed, 1, 144, exponent=exponent).repeat(3, 1)
        values[1] *= 1 + 1e-9
        values[2, place] *= 1 + 1e-9
        assert representatives_by_domain(values, torch.arange(3), wider=True).tolist() == [0, 1, 2]

    @given(seed=seeds, count=st.integers(1, 40))
    @settings(max_examples=25)
    def test_representative_is_its_own_is_no_more_complex_and_equals_what_it_stands_for(self, seed, count):
        group = torch.randint(0, max(1, count // 3), (count,), generator=torch.Generator().manual_seed(seed))
        values = random_rows(seed, count, 144)[group]
        values[random_rows(seed + 1, 4, 144)[torch.arange(count) % 4] > 0.8] = NAN
        rank = random_rank(seed, count)
        found = representatives_by_domain(values, rank, wider=True)
        assert torch.equal(found[found], found)
        assert bool((rank[found] <= rank).all())
        inside = torch.isfinite(values)
        assert torch.equal(values[inside], values[found][inside])

    def test_no_rows_give_no_representatives(self):
        empty = torch.empty(0, 144, dtype=torch.float64)
        assert representatives_by_domain(empty, torch.arange(0), wider=True).tolist() == []


class TestSignature:
    """What stands for a row when rows are long."""

    @given(seed=seeds, points=st.integers(1, 16))
    def test_few_values_are_all_taken(self, seed, points):
        values = random_rows(seed, 3, points)
        assert torch.equal(signature(values), values)

    @given(points=st.integers(1, 10_000))
    def test_length_is_bounded(self, points):
        longest = signature(random_rows(0, 2, 10_000)).shape[1]
        assert longest < 300
        assert signature(random_rows(0, 2, points)).shape == (2, min(points, longest))

    @given(seed=seeds, points=st.integers(257, 3_000), data=st.data())
    def test_difference_at_any_one_point_shows(self, seed, points, data):
        values = random_rows(seed, 1, points).repeat(2, 1)
        values[1, data.draw(st.integers(0, points - 1))] += 1e-6
        marks = signature(values)
        assert representatives(marks, torch.arange(2)).tolist() == [0, 1]

    @given(seed=seeds, points=st.integers(257, 3_000), exponent=exponents)
    def test_equal_rows_have_equal_signatures_whatever_stands_beside_them(self, seed, points, exponent):
        values = random_rows(seed, 9, points, exponent=exponent)
        values[8] = values[0]
        marks = signature(values)
        assert representatives(marks, torch.arange(9)).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 0]
        torch.testing.assert_close(signature(values[:1])[0], marks[0], rtol=1e-12, atol=1e-12 * 10.0**exponent)

    @given(seed=seeds, points=st.integers(257, 3_000))
    def test_signature_of_the_negative_is_the_negative(self, seed, points):
        values = random_rows(seed, 5, points)
        assert torch.equal(signature(-values), -signature(values))


class TestCanonicalSigns:
    """One sign for a row, the other for its negative."""

    @given(
        row=hnp.arrays(
            np.float64, st.integers(1, 40), elements=st.floats(-1e300, 1e300, allow_nan=False, allow_subnormal=False)
        )
    )
    def test_row_and_its_negative_have_opposite_signs(self, row):
        assume(np.any(row))
        values = torch.from_numpy(np.stack([row, -row]))
        first, second = canonical_signs(values).tolist()
        assert abs(first) == 1
        assert first == -second

    @given(seed=seeds, points=st.integers(1, 300), exponent=exponents)
    def test_sign_does_not_depend_on_the_scale(self, seed, points, exponent):
        values = random_rows(seed, 6, points)
        assert torch.equal(canonical_signs(values * 10.0**exponent), canonical_signs(values))

    @given(seed=seeds)
    def test_points_outside_the_domain_count_as_zero(self, seed):
        values = random_rows(seed, 5, 144)
        outside = random_rows(seed + 1, 5, 144) > 0.5
        holes, zeros = values.clone(), values.clone()
        holes[outside], zeros[outside] = NAN, 0.0
        assert torch.equal(canonical_signs(holes), canonical_signs(zeros))
        assert torch.equal(canonical_signs(-holes), -canonical_signs(holes))

    @given(seed=seeds, exponent=exponents)
    def test_signs_make_a_row_and_its_negative_duplicates(self, seed, exponent):
        rows = random_rows(seed, 6, 30, exponent=exponent)
        values = torch.cat([rows, -rows * rounding(seed, rows)])
        signed = values * canonical_signs(values)[:, None]
        assert representatives(signed, torch.arange(12)).tolist() == [*range(6), *range(6)]

    def test_zero_has_a_sign(self):
        assert canonical_signs(torch.zeros(2, 5, dtype=torch.float64)).tolist() == [1.0, 1.0]
