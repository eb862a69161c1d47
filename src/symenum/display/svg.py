"""Plots as SVG text, for pages that need nothing from outside: the figures of a fit, and the plots of a benchmark."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from symenum.display.figures import COLOURS, EXACT, ROOM_FOR_ZERO, Figure, Series

__all__ = ["Dot", "bars", "labelled_dots", "points", "steps", "svg_figure"]

# In pixels: two plots fit side by side on a page of 78 em; above the axes there is room for a title and three lines of
# legend, on the left for numbers of ten characters.
_WIDTH, _HEIGHT = 640, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 62, 48  # margins in pixels, wide enough for ticks, labels and the title
_PLAIN_TICKS = 5  # about this many ticks on a plain axis: their numbers stay apart
_LOG_TICKS = 6  # about this many ticks on a logarithmic axis
_LABEL_TURN = 0.72  # part of the width beyond which a dot's name stands on its left: it has room for 20 characters
_CHARACTER = 7  # pixels: the mean width of a bold letter of 12 pixels
_LEGEND_COLUMNS, _LEGEND_WIDTH = 4, 140  # pixels of a column; four of them fill the width of the axes

Lines = Mapping[str, Sequence[tuple[float, float]]]
"""Points (x, y) by the name of their line."""


def steps(title: str, lines: Lines, x_label: str, y_label: str) -> str:
    """Shares from 0 to 1 that grow by steps, over a logarithmic x axis; "" if there is nothing to draw."""
    xs = [x for line in lines.values() for x, _ in line if x > 0]
    if not xs:
        return ""
    low, high = _decades(xs)
    body = [_axes(title, x_label, y_label), _x_ticks(low, high), _y_ticks([i / 5 for i in range(6)], _percent)]
    for i, (name, line) in enumerate(lines.items()):
        path, last = "", 0.0
        for x, y in line:
            path += f"{'L' if path else 'M'}{_x(max(x, 10**low), low, high):.1f},{_y(last):.1f}"
            path += f"L{_x(max(x, 10**low), low, high):.1f},{_y(y):.1f}"
            last = y
        body.append(f'<path d="{path}" fill="none" stroke="{_colour(i)}" stroke-width="2"/>')
        body.append(_legend(i, name))
    return _svg(body)


def points(title: str, lines: Lines, x_label: str, y_label: str) -> str:
    """Points on a plain x axis and a logarithmic y axis, joined in their order; "" if there is nothing to draw."""
    drawn = [
        Series(name, [x for x, _ in line], [y for _, y in line], joined="straight", colour=i)
        for i, (name, line) in enumerate(lines.items())
    ]
    return svg_figure(Figure(title, x_label, y_label, tuple(drawn), log_y=True))


@dataclass(frozen=True)
class Dot:
    """A labelled dot; one that is `published`, and not of this bench, is hollow."""

    label: str
    x: float
    y: float
    published: bool = False


def labelled_dots(title: str, dots: Sequence[Dot], lines: Lines, x_label: str, y_label: str) -> str:
    """Dots with their names beside them and lines behind them, over a logarithmic x axis; "" without a dot.

    A dot of a line's name has the line's colour; other dots are grey.
    """
    if not dots:
        return ""
    everything = [(dot.x, dot.y) for dot in dots] + [point for line in lines.values() for point in line]
    across, upward = _log_axis([x for x, _ in everything]), _plain_axis([y for _, y in everything])
    body = [_axes(title, x_label, y_label)]
    body += [_tick_x(_x_at(share), text) for share, text in across.ticks]
    body += [_tick_y(_y(share), text) for share, text in upward.ticks]
    for i, line in enumerate(lines.values()):
        path = _path([(_x_at(across.share(x)), _y(upward.share(y))) for x, y in line], stairs=True)
        body.append(f'<path d="{path}" fill="none" stroke="{_colour(i)}" stroke-width="2" opacity="0.6"/>')
    names = list(lines)
    for dot in dots:
        x, y = _x_at(across.share(dot.x)), _y(upward.share(dot.y))
        colour = _colour(names.index(dot.label)) if dot.label in names else "#555"
        fill = "white" if dot.published else colour
        left = x > (_LEFT + _WIDTH - _RIGHT) * _LABEL_TURN
        place = f'x="{x - 8:.1f}" text-anchor="end"' if left else f'x="{x + 8:.1f}"'
        body.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>')
        body.append(f'<text {place} y="{y + 4:.1f}" font-size="11" fill="{colour}">{escape(dot.label)}</text>')
    return _svg(body)


def svg_figure(figure: Figure) -> str:
    """A figure as SVG; "" if there is no point to draw.

    Left out are points that are not finite, or negative on a logarithmic axis.
    """
    drawn = [
        [(x, y) for x, y in zip(series.x, series.y, strict=True) if _has_place(x, y, log_y=figure.log_y)]
        for series in figure.series
    ]
    everything = [point for line in drawn for point in line]
    if not everything:
        return ""
    across = _plain_axis([x for x, _ in everything], whole=figure.whole_x)
    upward = (_log_axis if figure.log_y else _plain_axis)([y for _, y in everything])
    body = [_axes(figure.title, figure.x_label, figure.y_label)]
    body += [_tick_x(_x_at(share), text) for share, text in across.ticks]
    body += [_tick_y(_y(share), text) for share, text in upward.ticks]
    for i, (series, line) in enumerate(zip(figure.series, drawn, strict=True)):
        places = [(_x_at(across.share(x)), _y(upward.share(y))) for x, y in line]
        zeros = [figure.log_y and y == 0 for _, y in line]
        body += [*_marks(series, places, zeros), _legend(i, series.label, series.colour)]
    return _svg(body)


def _marks(series: Series, places: Sequence[tuple[float, float]], zeros: Sequence[bool]) -> Iterator[str]:
    """The line and the dots of a series at these places, in pixels; triangles for zeros of a logarithmic axis."""
    colour = _colour(series.colour)
    if series.joined:
        opacity = ' opacity="0.6"' if series.dots else ""
        path = _path(places, stairs=series.joined == "steps")
        yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"{opacity}/>'
    if series.dots:
        # Dots on a line are few: opaque. Dots without a line are many and may hide each other: half transparent.
        radius, opacity = (5, "") if series.large else (3.5, "") if series.joined else (3, ' opacity="0.6"')
        for (x, y), zero in zip(places, zeros, strict=True):
            if zero:
                side = 1.4 * radius
                path = f"M{x - side:.1f},{y - 2 * side:.1f}h{2 * side:.1f}L{x:.1f},{y:.1f}z"
                yield f'<path d="{path}" fill="{colour}"/>'
                continue
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"{opacity}/>'


@dataclass(frozen=True)
class _Axis:
    """An axis: the place of a value as a share of the length, and the ticks as shares and texts."""

    share: Callable[[float], float]
    ticks: Sequence[tuple[float, str]]


def _plain_axis(values: Sequence[float], *, whole: bool = False) -> _Axis:
    """A plain axis; `whole`: the ticks are whole numbers."""
    low, high = _span(values)
    ticks = [value for value in _round_numbers(low, high) if not whole or value.is_integer()]
    return _Axis(
        lambda value: _share(value, low, high), [(_share(value, low, high), f"{value:.6g}") for value in ticks]
    )


def _log_axis(values: Sequence[float]) -> _Axis:
    """A logarithmic axis; where a value is zero, its lower edge is the place of zeros."""
    positive = [value for value in values if value > 0]
    low, high = _decades(positive or [1.0])
    decades = range(low, high + 1, max(1, (high - low) // _LOG_TICKS))
    # From the exponents, not from the powers: 10**decade may lie outside the range of a double.
    edge = low if len(positive) == len(values) else low - max(1.0, ROOM_FOR_ZERO * (high - low))
    ticks = [((decade - edge) / (high - edge), _power(decade)) for decade in decades]
    if edge < low:
        ticks.insert(0, (0.0, EXACT))
    return _Axis(lambda value: (math.log10(value) - edge) / (high - edge) if value else 0.0, ticks)


def _has_place(x: float, y: float, *, log_y: bool) -> bool:
    return math.isfinite(x) and math.isfinite(y) and (y >= 0 or not log_y)


def _path(places: Sequence[tuple[float, float]], *, stairs: bool) -> str:
    """A path through all places in their order; as stairs, first across to the x of the next place, then to its y."""
    parts = [f"{'L' if n else 'M'}{x:.1f},{y:.1f}" for n, (x, y) in enumerate(places)]
    if stairs:
        parts[1:] = [f"H{x:.1f}V{y:.1f}" for x, y in places[1:]]
    return "".join(parts)


def bars(title: str, groups: Mapping[str, Mapping[str, tuple[float, float, float]]], y_label: str) -> str:
    """Bars in groups: (share, low, high) by group and name, low and high the ends of the interval; "" without any."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    if not names:
        return ""
    body = [_axes(title, "", y_label), _y_ticks([i / 5 for i in range(6)], _percent)]
    wide = (_WIDTH - _LEFT - _RIGHT) / len(groups)
    bar = 0.8 * wide / len(names)
    for place, (group, members) in enumerate(groups.items()):
        start = _LEFT + wide * (place + 0.1)
        body.append(_tick_x(start + 0.4 * wide, group))
        for i, name in enumerate(names):
            if name not in members:
                continue
            share, low, high = members[name]
            x = start + bar * i
            body.append(
                f'<rect x="{x:.1f}" y="{_y(share):.1f}" width="{bar * 0.9:.1f}" '
                f'height="{_y(0) - _y(share):.1f}" fill="{_colour(i)}"/>'
            )
            centre = x + bar * 0.45
            body.append(
                f'<line x1="{centre:.1f}" x2="{centre:.1f}" y1="{_y(low):.1f}" y2="{_y(high):.1f}" stroke="#333"/>'
            )
    body += [_legend(i, name) for i, name in enumerate(names)]
    return _svg(body)


def _svg(body: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" font-family="sans-serif" font-size="12">'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>{"".join(body)}</svg>'
    )


def _axes(title: str, x_label: str, y_label: str) -> str:
    title, x_label = (_cut(text, _WIDTH - _LEFT - _RIGHT) for text in (title, x_label))
    y_label = _cut(y_label, _HEIGHT - _TOP)
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    return (
        f'<text x="{_LEFT}" y="16" font-weight="bold">{escape(title)}</text>'
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>'
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">{escape(y_label)}</text>'
        f'<path d="M{_LEFT},{_TOP}V{_HEIGHT - _BOTTOM}H{_WIDTH - _RIGHT}" fill="none" stroke="#333"/>'
    )


def _cut(text: str, pixels: int) -> str:
    """The text, cut where it would be wider than so many pixels."""
    longest = pixels // _CHARACTER
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _legend(i: int, name: str, colour: int | None = None) -> str:
    x = _LEFT + 10 + _LEGEND_WIDTH * (i % _LEGEND_COLUMNS)
    y = 32 + 13 * (i // _LEGEND_COLUMNS)
    return (
        f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{_colour(i if colour is None else colour)}"/>'
        f'<text x="{x + 14}" y="{y}">{escape(name)}</text>'
    )


def _colour(i: int) -> str:
    return COLOURS[i % len(COLOURS)]


def _y(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def _x(value: float, low: int, high: int) -> float:
    return _LEFT + (math.log10(value) - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)


def _x_at(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _share(value: float, low: float, high: float) -> float:
    """The place of a value between two ends, from 0 to 1; halves, since high - low may overflow."""
    span = high / 2 - low / 2
    return (value / 2 - low / 2) / span if span > 0 else 0.5  # the halves of two neighbours may be equal


def _span(values: Sequence[float]) -> tuple[float, float]:
    """The ends of an axis with a margin on each side: 3% of the range, or half of the value where there is only one."""
    low, high = min(values), max(values)
    margin = 0.03 * (high - low) if low < high else 0.5 * abs(low) or 0.5
    widened = low - margin, high + margin
    return widened if all(map(math.isfinite, widened)) else (low, high)


def _round_numbers(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between two ends; the ends where they are too near or too far.

    >>> _round_numbers(0.3, 11.2)
    [2.0, 4.0, 6.0, 8.0, 10.0]
    """
    rough = high / _PLAIN_TICKS - low / _PLAIN_TICKS
    decade = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 0.0
    if decade == 0.0 or not math.isfinite(rough):
        return [low, high]
    step = min((factor * decade for factor in (1, 2, 5, 10)), key=lambda step: abs(math.log(step / rough)))
    first, last = math.ceil(low / step), math.floor(high / step)
    return [step * i for i in range(first, last + 1)]


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The exponents of the powers of ten around positive values, at least one decade apart."""
    low = math.floor(math.log10(min(values)))
    return low, max(low + 1, math.ceil(math.log10(max(values))))


def _x_ticks(low: int, high: int) -> str:
    return "".join(_tick_x(_x(10.0**decade, low, high), _power(decade)) for decade in range(low, high + 1))


def _y_ticks(shares: Sequence[float], write: Callable[[float], str]) -> str:
    return "".join(_tick_y(_y(share), write(share)) for share in shares)


def _tick_x(x: float, text: str) -> str:
    y = _HEIGHT - _BOTTOM
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 4}" stroke="#333"/>'
        f'<text x="{x:.1f}" y="{y + 17}" text-anchor="middle">{escape(text)}</text>'
    )


def _tick_y(y: float, text: str) -> str:
    return (
        f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>'
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def _power(decade: int) -> str:
    return f"{10.0**decade:g}" if -3 <= decade <= 4 else f"1e{decade}"
