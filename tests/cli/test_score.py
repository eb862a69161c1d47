"""`symenum score`: the constants, how well the formula does, and what is wrong with a request."""

import pytest

DATA = "t,s\n" + "".join(f"{i / 5},{4.905 * (i / 5) ** 2 + 2 * i / 5}\n" for i in range(1, 20))


def test_constants_and_law_are_printed(symenum, table):
    result = symenum("score", table(DATA), "--target", "s", "g*t**2/2 + v*t")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["constant", "value", "standard", "error"]
    assert [line.split()[0] for line in lines[1:3]] == ["g", "v"]
    assert [float(line.split()[1]) for line in lines[1:3]] == pytest.approx([9.81, 2.0])
    assert "complexity 7" in lines[3]
    assert lines[-1].startswith("s = ")


def test_declared_constants_keep_their_names(symenum, table):
    result = symenum("score", table(DATA), "g*t**2/2 + v*t", "--constant", "g=9.81", "--quiet")
    assert result.output.startswith("s = g*t**2/2 + ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a*t +"], "cannot read the expression"),
        (["a*t", "--loss", "mea"], "Error: --loss must be one of"),
        (["a*t", "--constant", "g=x"], "must be a name and a number"),
        (["a*t", "--constant", "g"], "--constant names 'g', and the formula has no such constant: its constants are a"),
        (["2*t", "--start", "b=1"], "--start names 'b', and the formula has no such constant: it has none"),
        (["a*t", "--constant", "t=2"], "--constant declares 't', which is a variable"),
        (["a + log(-t)"], "no finite values on all rows: look for a logarithm"),
        (["a*t", "--target", "z"], "there is no column 'z'"),
    ],
)
def test_what_makes_no_sense_is_refused(symenum, table, arguments, message):
    result = symenum("score", table(DATA), *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


CLIMATE = "temperature,x1,x2,y\n" + "".join(f"{i},{i % 3},{i % 5},{3 * i + 1}\n" for i in range(12))


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("k*tempertaure", "there is no column 'tempertaure'. Did you mean 'temperature'?"),
        ("k*temp", "Did you mean 'temperature'?"),
        ("k*x9", "there is no column 'x9'. Did you mean 'x1'?"),
        ("k*y", "'y' is the column to explain"),
    ],
)
def test_a_name_that_looks_like_a_column_is_asked_about(symenum, table, formula, message):
    result = symenum("score", table(CLIMATE), formula)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_single_letters_other_words_and_declared_names_are_constants(symenum, table):
    result = symenum("score", table(CLIMATE), "k*temperature + offset", "--quiet")
    assert result.exit_code == 0
    assert result.stdout.startswith("y = 3.0*temperature + ")
    result = symenum("score", table(CLIMATE), "x9*temperature + temp0", "--constant", "x9", "--constant", "temp0", "-q")
    assert result.stdout.startswith("y = 3.0*temperature + ")


def test_a_formula_without_any_column_is_refused_with_the_columns(symenum, table):
    result = symenum("score", table("m_kg,v_m_s,E\n1,2,2\n2,3,9\n3,1,1.5\n"), "0.5*m*v")
    assert result.exit_code == 2
    assert "'0.5*m*v' holds no variable; there are m_kg, v_m_s" in result.stderr


def test_the_law_is_shown_with_five_digits_and_printed_with_all_of_them_for_programs(symenum, table):
    path = table("x,y\n1,1.23456789\n2,2.4691358\n3,3.70370368\n")
    assert symenum("score", path, "a*x").stdout.endswith("\ny = 1.2346*x\n")
    law = symenum("score", path, "a*x", "--quiet").stdout
    assert law.startswith("y = 1.2345678")
    assert len(law) > len("y = 1.2346*x")


def test_constants_beside_one_another_are_shown_as_people_write_them(symenum, table):
    path = table("x,y\n1,0.5\n2,1.5\n3,2.5\n4,3.75\n")
    shown = symenum("score", path, "a*b + x").stdout
    assert shown.splitlines()[-1] == "y = x - 0.4375"
