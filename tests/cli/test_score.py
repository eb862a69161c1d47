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
        (["a*t", "--loss", "mea"], "loss must be one of"),
        (["a*t", "--constant", "g"], "must be a name and a number"),
        (["a*t", "--start", "b=1"], "start names 'b'"),
        (["a + log(-t)"], "no finite values"),
        (["a*t", "--target", "z"], "there is no column 'z'"),
    ],
)
def test_what_makes_no_sense_is_refused(symenum, table, arguments, message):
    result = symenum("score", table(DATA), *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
