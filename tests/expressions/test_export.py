"""Every export computes what `evaluate` computes, and none of them runs on a name that its language refuses."""

import ctypes
import math
import pickle
import shutil
import subprocess
import sys
import warnings
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from expressions.strategies import any_tree, tame_tree
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from symenum.expressions import (
    Constant,
    Variable,
    apply,
    evaluate,
    parse,
    to_c,
    to_callable,
    to_jax,
    to_numpy_source,
    to_python,
    to_torch,
    walk,
)
from symenum.operators import OPERATORS, make_operator

NAMES = ["x1", "x2", "x10"]


X = np.array([[0.7, -1.3, 2.1], [1.4, 0.6, -0.3], [-2.2, 3.1, 0.9], [0.05, 1.9, 1.1]])


COMPILER = shutil.which("cc") or shutil.which("gcc")


softplus = make_operator("softplus", torch.nn.functional.softplus)


def columns(X=X, names=NAMES):
    return {name: X[:, i] for i, name in enumerate(names)}


def expected(tree, X=X):
    """The values, and the rows on which rounding cannot be blown up: parts neither huge nor nearly cancelled."""
    parts = [evaluate(node, columns(X)) for node in walk(tree)]
    with np.errstate(all="ignore"):
        safe = [np.isfinite(part) & ((part == 0) | ((np.abs(part) > 1e-3) & (np.abs(part) < 1e3))) for part in parts]
    return parts[-1], np.all(safe, axis=0)


def run(source, name="f"):
    """The function that the source defines; only tests execute generated code."""
    space = {}
    exec(compile(source, "<generated>", "exec"), space)
    return space[name]


def close(got, values):
    return got == pytest.approx(values, rel=1e-9, abs=1e-9, nan_ok=True)


@settings(max_examples=200)
@given(tame_tree)
def test_python_source_agrees(tree):
    values, safe = expected(tree)
    function = run(to_python(tree, NAMES))
    for row in np.flatnonzero(safe):
        assert close(function(*X[row].tolist()), values[row])


@settings(max_examples=200)
@given(tame_tree)
def test_numpy_source_agrees(tree):
    values, safe = expected(tree)
    with np.errstate(all="ignore"):
        got = run(to_numpy_source(tree, NAMES))(*X.T)
    assert got.shape == values.shape
    assert close(got[safe], values[safe])
    assert np.isfinite(got[safe]).all()


@pytest.fixture(scope="module")
def jax_numpy():
    """jax.numpy in double precision; where JAX is not installed, NumPy, which has the same names."""
    try:
        import jax
    except ImportError:
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "jax", SimpleNamespace(numpy=np))
            patch.setitem(sys.modules, "jax.numpy", np)
            yield np
        return
    jax.config.update("jax_enable_x64", True)
    yield jax.numpy


@settings(max_examples=200)
@given(tree=tame_tree)
def test_jax_source_agrees(jax_numpy, tree):
    values, safe = expected(tree)
    with np.errstate(all="ignore"):
        got = np.asarray(run(to_jax(tree, NAMES))(*X.T))
    assert got.shape == values.shape
    assert close(got[safe], values[safe])


def test_jax_source_of_every_operator_and_of_a_constant(jax_numpy):
    x = np.array([0.3, 0.7])
    for operator in OPERATORS.values():
        if operator.form is None and operator.source is not None:
            tree = apply(operator, Variable("x"))
            assert close(np.asarray(run(to_jax(tree, ["x"]))(x)), evaluate(tree, {"x": x}))
    assert np.asarray(run(to_jax(parse("pi"), ["x"]))(x)).tolist() == [math.pi] * 2


@pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed")
def test_jax_source_can_be_differentiated_and_compiled():
    import jax

    function = run(to_jax(parse("sin(x)*x**2"), ["x"]))
    assert float(jax.jit(jax.grad(function))(1.0)) == pytest.approx(math.cos(1) + 2 * math.sin(1), rel=1e-5)


@settings(max_examples=200)
@given(any_tree)
def test_sources_are_valid_python_for_any_tree(tree):
    names = ["x1", "x2", "x10", "theta", "mass_ratio", "e", "_", "sin"]
    for write in (to_python, to_numpy_source, to_jax):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            code = compile(write(tree, names), "<generated>", "exec")
        assert "f" in code.co_names  # the function that the source defines


@settings(max_examples=200)
@given(tame_tree)
def test_callable_and_torch_module_agree_exactly(tree):
    values = evaluate(tree, columns())
    np.testing.assert_array_equal(to_callable(tree, NAMES)(X), values)
    np.testing.assert_allclose(to_torch(tree, NAMES)(torch.from_numpy(X)).detach().numpy(), values, rtol=1e-12)


@pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc, gcc) on this machine")
@settings(max_examples=2, phases=[Phase.explicit, Phase.generate])
@given(st.lists(tame_tree, min_size=80, max_size=80))
def test_c_source_agrees(tmp_path_factory, trees):
    folder = tmp_path_factory.mktemp("c")
    by_hand = [
        parse(text) for text in ("1/3", "-(-x1)", "x1 - (-2)", "sign(sqrt(-x1 - 9))", "sign(0)*x1", "abs(x1)**E/pi")
    ]
    trees = [*by_hand, *trees]
    library = compile_c(folder, [to_c(tree, NAMES, f"law{i}") for i, tree in enumerate(trees)])
    for i, tree in enumerate(trees):
        function = getattr(library, f"law{i}")
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * len(NAMES)
        values, safe = expected(tree)
        for row in np.flatnonzero(safe):
            assert close(function(*X[row]), values[row]), tree
    assert math.isnan(library.law3(*X[0]))


def compile_c(folder, sources):
    source, library = folder / "laws.c", folder / "laws.so"
    source.write_text("\n".join(sources), encoding="utf-8")
    command = [COMPILER, "-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library, source, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library))


@pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc, gcc) on this machine")
def test_c_names_that_are_keywords_macros_functions_or_not_ascii_compile(tmp_path):
    names = ["double", "NAN", "sin", "θ", "f", "pow", "template", "_Bool", "__x", "symenum_sign", "_"]
    tree = parse(" + ".join(f"{i + 1}*sin({name})*{name}**2" for i, name in enumerate(names)) + " + sign(θ)")
    values = np.linspace(0.3, 2.0, len(names))
    library = compile_c(tmp_path, [to_c(tree, names, "f")])
    library.f.restype, library.f.argtypes = ctypes.c_double, [ctypes.c_double] * len(names)
    wanted = evaluate(tree, {name: np.array(value) for name, value in zip(names, values, strict=True)})
    assert close(library.f(*values), float(wanted))


@pytest.mark.parametrize("write", [to_python, to_numpy_source])
def test_python_names_that_are_builtins_or_used_by_the_code_are_renamed(write):
    names = ["abs", "math", "np", "f", "_sign", "ﬁ", "fi", "print"]
    tree = parse("abs(abs) + sign(_sign)*math + f*np**2 + ﬁ*fi - print")
    source = write(tree, names)
    assert "abs_ is the variable 'abs'" in source
    values = np.linspace(0.3, 2.0, len(names))
    wanted = evaluate(tree, {name: np.array(value) for name, value in zip(names, values, strict=True)})
    assert close(float(run(source)(*values.tolist())), float(wanted))


def test_no_name_can_smuggle_code_into_the_source():
    names = ["x", "a\nimport os", "b */ int", "c\\"]
    for write in (to_python, to_numpy_source, to_jax, to_c):
        lines = write(Variable("x"), names).splitlines()
        assert not any(line.startswith(("import os", "int")) for line in lines)
        assert sum("whose name is" in line for line in lines) == 3


@pytest.mark.parametrize("write", [to_python, to_numpy_source, to_jax, to_c])
def test_whole_numbers_are_doubles(write):
    assert "1.0/3.0" in write(parse("1/3*x"), ["x"])


def test_c_writes_powers_as_calls():
    assert "return pow(x, 2.0);" in to_c(parse("x**2"), ["x"])


def test_python_stays_with_real_numbers():
    source = to_python(parse("(-x)**0.5 + (-2)**y"), ["x", "y"])
    with pytest.raises(ValueError, match="domain"):
        run(source)(1.0, 2.0)


def test_numpy_gives_nan_and_inf_where_evaluate_does():
    tree = parse("log(x) + 1/x + (-2)**(1/2)*0 + 1/(1 - 1)*0")
    with np.errstate(all="ignore"):
        assert np.isnan(run(to_numpy_source(tree, ["x"]))(np.array([1.0, -1.0, 0.0]))).all()
        assert run(to_numpy_source(parse("1/x"), ["x"]))(0) == math.inf


def test_numpy_source_takes_whole_numbers_lists_and_unused_columns():
    function = run(to_numpy_source(parse("x**2"), ["x", "y"]))
    assert function([10**10, 2], None).tolist() == [1e20, 4.0]
    assert run(to_numpy_source(parse("pi"), ["x"]))(np.zeros(3)).tolist() == [math.pi] * 3


def test_numpy_source_never_hands_back_its_input():
    x = np.ones(3)
    assert run(to_numpy_source(parse("x"), ["x"]))(x) is not x


def test_python_sign_of_nan_is_nan():
    sign = run(to_python(parse("sign(x)"), ["x"]))
    assert [sign(2.0), sign(-0.5), sign(0.0)] == [1.0, -1.0, 0.0]
    assert math.isnan(sign(math.nan))


def test_every_operator_that_a_tree_can_hold_has_source():
    for operator in OPERATORS.values():
        tree = apply(operator, *[Variable("x1")] * operator.arity)
        for write in (to_python, to_numpy_source, to_jax, to_c):
            assert "return" in write(tree, ["x1"])


@pytest.mark.parametrize("write", [to_python, to_numpy_source, to_jax, to_c])
def test_own_operators_have_no_source_and_the_message_says_what_to_use(write):
    with pytest.raises(ValueError, match=r"'softplus' is one of your own.*to_callable"):
        write(apply(softplus, Variable("x")), ["x"])


def test_own_operators_work_in_the_callable_and_the_module():
    tree = apply(softplus, apply("mul", Variable("x"), Constant(0.5)))
    wanted = np.log1p(np.exp(X[:, :1] * 0.5))[:, 0]
    np.testing.assert_allclose(to_callable(tree, ["x"])(X[:, :1]), wanted)
    np.testing.assert_allclose(to_torch(tree, ["x"])(torch.from_numpy(X[:, :1])).detach().numpy(), wanted)


@pytest.mark.parametrize("name", ["1f", "double", "sin", "a b", "θ", "y0", ""])
def test_c_function_names_that_cannot_be_are_refused(name):
    with pytest.raises(ValueError, match="function_name"):
        to_c(parse("x"), ["x"], name)


@pytest.mark.parametrize("export", [to_python, to_numpy_source, to_jax, to_c, to_callable, to_torch])
def test_names_must_hold_each_variable_once(export):
    with pytest.raises(ValueError, match="uses y, which names does not hold"):
        export(parse("x + y"), ["x"])
    with pytest.raises(ValueError, match="more than once"):
        export(parse("x"), ["x", "x"])
    with pytest.raises(TypeError, match="sequence"):
        export(parse("x"), "x")


def test_callable_survives_pickling_and_shows_the_law():
    function = pickle.loads(pickle.dumps(to_callable(parse("x1 + sin(x2)/2.5"), NAMES)))
    assert repr(function) == "<function of (x1, x2, x10): x1 + sin(x2)/2.5>"
    np.testing.assert_array_equal(function(X), X[:, 0] + np.sin(X[:, 1]) / 2.5)


def test_callable_takes_one_row_constants_and_frames_by_name():
    import pandas

    assert to_callable(Constant(2), NAMES)(X).tolist() == [2.0] * 4
    assert to_callable(parse("x2"), NAMES)(X[:1]).tolist() == [-1.3]
    frame = pandas.DataFrame(X[:, ::-1], columns=NAMES[::-1])
    assert to_callable(parse("x2 - x1"), NAMES)(frame).tolist() == (X[:, 1] - X[:, 0]).tolist()
    unnamed = pandas.DataFrame(X, columns=["a", "b", "c"])
    assert to_callable(parse("x2"), NAMES)(unnamed).tolist() == X[:, 1].tolist()


@pytest.mark.parametrize("shape", [(4,), (4, 2), (4, 3, 1)])
def test_wrong_shapes_are_refused_with_the_names_that_are_wanted(shape):
    with pytest.raises(ValueError, match=r"\(rows, 3\), a column for each of x1, x2, x10"):
        to_callable(parse("x1"), NAMES)(np.zeros(shape))
    with pytest.raises(ValueError, match=r"\(rows, 3\), a column for each of x1, x2, x10"):
        to_torch(parse("x1"), NAMES)(torch.zeros(shape))


def test_module_has_a_parameter_for_each_float_and_only_for_them():
    module = to_torch(parse("2.5*x1 + 2.5*sin(x2) + 3*pi - 1/2"), NAMES)
    assert [p.item() for p in module.parameters()] == [2.5, 2.5]
    assert all(p.dtype == torch.float64 for p in module.parameters())


def test_module_can_be_trained_and_gives_the_law_back():
    inputs = torch.from_numpy(X)
    target = 3.25 * inputs[:, 0] - 0.5
    module = to_torch(parse("1.0*x1 + 1.0"), NAMES)
    optimizer = torch.optim.LBFGS(module.parameters(), line_search_fn="strong_wolfe", tolerance_grad=1e-12)

    def loss():
        optimizer.zero_grad()
        value = ((module(inputs) - target) ** 2).mean()
        value.backward()
        return value

    for _ in range(5):
        optimizer.step(loss)
    slope, offset = (node.value for node in walk(module.law()) if isinstance(node, Constant))
    assert (slope, offset) == pytest.approx((3.25, -0.5), abs=1e-6)
    again = to_torch(parse("1.0*x1 + 1.0"), NAMES)
    again.load_state_dict(module.state_dict())
    assert again.law() == module.law()


def test_module_keeps_the_precision_of_its_input():
    module = to_torch(parse("2.5*x1"), ["x1"])
    assert module(torch.ones(2, 1)).dtype == torch.float32
    assert module(torch.ones(2, 1, dtype=torch.int64)).dtype == torch.float64
    assert "2.5*x1" in repr(module)
