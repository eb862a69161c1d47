"""The expression that is rebuilt from a candidate's number computes what the engine computed for that number."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from symenum import PSRN
from symenum.bench.problems.experiments import CHAOTIC_OPERATORS, EMPS_OPERATORS, TURBULENCE_OPERATORS
from symenum.core.budget import Budget
from symenum.core.target import check_target
from symenum.engine import cpu
from symenum.engine.architecture import Architecture
from symenum.engine.bank import build_bank
from symenum.engine.layer import SymbolLayer
from symenum.engine.shortlist import Pool, Scorer
from symenum.expressions import Constant, Variable, apply, evaluate, parse
from symenum.operators import get_operators

pytestmark = pytest.mark.usefixtures("one_thread")

ROWS = 5


@pytest.fixture
def _shared_decoding(monkeypatch):
    """Decode each single output once: ten thousand candidates have most of their sub-expressions in common."""
    decode = SymbolLayer.decode
    known = {}

    def once(layer, numbers):
        if len(numbers) != 1:
            return decode(layer, numbers)
        key = layer.width, int(numbers)
        if key not in known:
            known[key] = list(decode(layer, numbers))
        return iter(known[key])

    monkeypatch.setattr(SymbolLayer, "decode", once)


def names(inputs):
    return [f"x{i + 1}" for i in range(inputs)]


def assert_rebuilt(architecture, numbers, seed=0):
    """Rebuild the candidates `numbers` and compare with the layers' values on random data of both signs."""
    generator = np.random.default_rng(seed)
    data = torch.from_numpy(generator.uniform(-3, 3, (architecture.inputs, ROWS)))
    data[:, :2] = data[:, :2].abs() + 0.2  # most logarithms have a value on some row
    bank = architecture.values(data, architecture.kept)
    scored = architecture.last_layer.forward(bank, torch.as_tensor(numbers)).numpy()

    slots = [Variable(name) for name in names(architecture.inputs)]
    columns = dict(zip(names(architecture.inputs), data.numpy(), strict=True))
    rebuilt = np.stack([evaluate(architecture.reconstruct(int(number), slots), columns) for number in numbers])

    operands = np.zeros_like(scored)  # the difference of two nearly equal numbers is known to their size only
    for _, where, left, right in architecture.last_layer.decode(torch.as_tensor(numbers)):
        size = bank[left].abs() if right is None else torch.maximum(bank[left].abs(), bank[right].abs())
        operands[where.numpy()] = size.numpy()

    finite = np.isfinite(scored)
    assert finite.mean() > 0.1
    tolerance = 1e-9 * np.maximum(np.abs(scored), operands)
    wrong = finite & ~(np.abs(scored - rebuilt) <= tolerance)
    assert not wrong.any(), [str(architecture.reconstruct(int(numbers[i]), slots)) for i in np.argwhere(wrong)[:5, 0]]
    # What fails as an expression is nothing that the engine has a value for.
    assert not (finite & ~np.isfinite(rebuilt)).any()


@pytest.mark.usefixtures("_shared_decoding")
def test_ten_thousand_candidates_of_koza_on_four_inputs_are_rebuilt_as_they_were_computed():
    architecture = Architecture(4, get_operators("koza"), 3)
    numbers = np.random.default_rng(1).integers(0, architecture.last_layer.size, 10_000)
    # Unary outputs are few, and would hardly be drawn.
    numbers[:500] = np.random.default_rng(2).integers(0, 5 * len(architecture.kept), 500)
    assert_rebuilt(architecture, numbers)


@pytest.mark.parametrize(
    "operators", ["semikoza", "basic_koza", "arithmetic", CHAOTIC_OPERATORS, EMPS_OPERATORS, TURBULENCE_OPERATORS]
)
def test_candidates_of_every_named_set_are_rebuilt_as_they_were_computed(operators):
    architecture = Architecture(2, get_operators(operators), 3)
    assert_rebuilt(architecture, np.random.default_rng(3).integers(0, architecture.last_layer.size, 300))


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("inputs", [1, 3])
def test_every_candidate_of_a_small_net_is_rebuilt_as_it_was_computed(inputs, layers):
    architecture = Architecture(inputs, get_operators("koza"), layers)
    size = architecture.last_layer.size
    assert_rebuilt(architecture, np.arange(size) if size < 2_000 else np.arange(0, size, size // 1_500))


def test_four_layers_are_rebuilt_as_they_were_computed():
    architecture = Architecture(1, get_operators(["+", "/", "sin"]), 4)
    assert_rebuilt(architecture, np.random.default_rng(4).integers(0, architecture.last_layer.size, 300))


@pytest.mark.parametrize("operators", ["koza", "semikoza", ["+", "pow", "neg", "log", "sign"], ["semisub", "*", "inv"]])
def test_losses_of_the_scan_are_those_of_the_rebuilt_expressions(operators):
    architecture = Architecture(2, get_operators(operators), 2)
    generator = np.random.default_rng(5)
    values = generator.uniform(0.3, 3, (12, 2))
    target, _ = check_target(np.sin(values[:, 0]) - values[:, 1], generator.uniform(0.1, 2, 12), 12)
    data = torch.from_numpy(values).T.contiguous()
    bank = build_bank(architecture, data, torch.zeros(2, dtype=torch.int64))
    pool = Pool(10**6, target)  # room for all
    _, complete = cpu.scan(Scorer(architecture.last_layer, bank, target, pool), Budget(), 1)
    finds = pool.best()
    assert complete
    assert len(finds) > 30
    slots = [Variable(name) for name in names(2)]
    columns = dict(zip(names(2), data, strict=True))
    for number, loss, complexity in zip(
        finds.number.tolist(), finds.loss.tolist(), finds.complexity.tolist(), strict=True
    ):
        expression = architecture.reconstruct(number, slots, bank.stand_in)
        assert expression.complexity == complexity
        expected = float(target.loss(evaluate(expression, columns)[None])[0])
        assert loss == pytest.approx(expected, rel=1e-9, abs=1e-12 * target.mean_square)


def test_slots_may_be_expressions():
    net = PSRN(2, "arithmetic", 1)
    slots = [parse("a*b"), Constant(2)]
    size = net.sizes[-1]
    assert apply("add", *slots) in [net.expression(number, slots) for number in range(size)]
    assert {str(net.expression(number, ["u", "v"])) for number in range(size)} >= {"u*v", "u/v", "v - u", "u + u", "v"}


def test_every_number_has_its_own_expression_up_to_identity():
    net = PSRN(2, ["+", "-", "sin"], 1)
    assert len({net.expression(number) for number in range(net.sizes[-1])}) == net.sizes[-1] == 9


@pytest.mark.parametrize("number", [-1, 9, 10**12])
def test_number_beyond_the_candidates_is_refused(number):
    with pytest.raises(ValueError, match=r"number must be from 0 to 8"):
        PSRN(2, ["+", "-", "sin"], 1).expression(number)


@pytest.mark.parametrize("operators", ["koza", "semikoza", ("+", "inv", "pow2", "pow3", "sigmoid", "semisub", "**")])
def test_expressions_with_their_values_are_those_of_each_alone(operators):
    architecture = Architecture(3, get_operators(operators), 2)
    random = np.random.default_rng(4)
    data = torch.from_numpy(random.uniform(0.2, 3, (3, 11)))
    slots = [parse("a*b"), Variable("c"), Constant(2.5)]
    numbers = random.integers(architecture.last_layer.size, size=200).tolist()
    places = [Variable(name) for name in names(3)]
    columns = dict(zip(names(3), data, strict=True))
    for number, (expression, values) in zip(
        numbers, architecture.valued(numbers, slots, data, architecture.kept), strict=True
    ):
        assert expression == architecture.reconstruct(number, slots)
        truth = evaluate(architecture.reconstruct(number, places), columns)
        assert torch.equal(values.nan_to_num(7.0), truth.nan_to_num(7.0))
