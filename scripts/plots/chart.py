"""Charts of lines and of bars as SVG, one for light and one for dark pages, with nothing but the standard library."""
from __future__ import annotations

import dataclasses
import html
import math
import pathlib

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 64, 56


@dataclasses.dataclass(frozen=True)
class Theme:
    paper: str
    ink: str
    faint: str  # grid
    muted: str  # axes, bounds
    lines: tuple[str, ...]  # told apart by readers who do not see red and green as two colours


LIGHT = Theme("#ffffff", "#1b1f24", "#e3e6ea", "#6b737c",
              ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#5b4a9c", "#7a7a7a"))
DARK = Theme("#0d1117", "#e6edf3", "#262c34", "#8b949e",
             ("#58a6ff", "#ff9e57", "#3fb98c", "#e39ac7", "#e3c04c", "#8fd3ff", "#a99cf0", "#b0b0b0"))


@dataclasses.dataclass
class Series:
    name: str
    points: list[tuple[float, float]]
    bound: bool = False  # dashed, in the colour of the axes
    marks: bool = False  # circles instead of a line


@dataclasses.dataclass
class Axis:
    title: str
    ticks: list[tuple[float, str]]  # value and label; the first and the last are the ends of the axis
    log: bool = False

    def share(self, value: float) -> float:
        """Where the value lies between the ends, from 0 to 1."""
        first, last, at = self.ticks[0][0], self.ticks[-1][0], value
        if self.log:
            first, last, at = math.log(first), math.log(last), math.log(at)
        return (at - first) / (last - first)


@dataclasses.dataclass
class Chart:
    title: str
    subtitle: str
    x: Axis
    y: Axis
    series: list[Series]

    def place(self, point: tuple[float, float]) -> tuple[float, float]:
        return (LEFT + self.x.share(point[0]) * (WIDTH - LEFT - RIGHT),
                HEIGHT - BOTTOM - self.y.share(point[1]) * (HEIGHT - TOP - BOTTOM))


@dataclasses.dataclass
class Bar:
    height: float
    label: str


@dataclasses.dataclass
class Group:
    name: str
    bars: dict[str, Bar]  # by series; a series may be missing


@dataclasses.dataclass
class BarChart:
    title: str
    subtitle: str
    x: Axis  # its title alone is drawn
    y: Axis
    series: dict[str, str]  # name and what the legend calls it
    groups: list[Group]


def text(x: float, y: float, words: str, colour: str, anchor: str = "start", size: int = 12, more: str = "") -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" text-anchor="{anchor}"{more}>'
            f"{html.escape(words)}</text>")


def across(y: float, label: str, theme: Theme) -> list[str]:
    """A line of the grid and its value."""
    return [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{theme.faint}"/>',
            text(LEFT - 8, y + 4, label, theme.muted, "end")]


def titles(chart: Chart | BarChart, theme: Theme) -> list[str]:
    bottom = HEIGHT - BOTTOM
    middle = (TOP + bottom) / 2
    return [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}" stroke="{theme.muted}"/>',
            text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, chart.x.title, theme.ink, "middle"),
            text(18, middle, chart.y.title, theme.ink, "middle", more=f' transform="rotate(-90 18 {middle})"')]


def grid(chart: Chart, theme: Theme) -> list[str]:
    bottom = HEIGHT - BOTTOM
    parts = []
    for value, label in chart.y.ticks:
        parts += across(chart.place((chart.x.ticks[0][0], value))[1], label, theme)
    for value, label in chart.x.ticks:
        x = chart.place((value, chart.y.ticks[0][0]))[0]
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 5}" stroke="{theme.muted}"/>')
        parts.append(text(x, bottom + 20, label, theme.muted, "middle"))
    return parts + titles(chart, theme)


def drawn(chart: Chart, series: Series, colour: str) -> str:
    places = [chart.place(point) for point in series.points]
    if series.marks:
        return "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="none" stroke="{colour}" stroke-width="2"/>'
                       for x, y in places)
    dashes = ' stroke-dasharray="6 4"' if series.bound else ""
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2.2" stroke-linejoin="round"{dashes}/>'


def colours(chart: Chart, theme: Theme) -> list[str]:
    """One for each series; marks have that of the line whose name they begin with."""
    chosen: dict[str, str] = {}
    for series in chart.series:
        if series.bound:
            chosen[series.name] = theme.muted
            continue
        owner = next((name for name in chosen if series.marks and series.name.startswith(name)), None)
        used = len({colour for colour in chosen.values() if colour != theme.muted})
        chosen[series.name] = chosen[owner] if owner else theme.lines[used % len(theme.lines)]
    return [chosen[series.name] for series in chart.series]


def lines(chart: Chart, theme: Theme) -> list[str]:
    shown = [(series, colour) for series, colour in zip(chart.series, colours(chart, theme)) if series.points]
    parts = grid(chart, theme) + [drawn(chart, series, colour) for series, colour in shown]
    for row, (series, colour) in enumerate(shown):
        y, x = TOP + 10 + 20 * row, WIDTH - RIGHT + 16
        dashes = ' stroke-dasharray="6 4"' if series.bound else ""
        parts.append(f'<circle cx="{x + 11}" cy="{y}" r="4.5" fill="none" stroke="{colour}" stroke-width="2"/>' if series.marks else
                     f'<line x1="{x}" x2="{x + 22}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2.2"{dashes}/>')
        parts.append(text(x + 30, y + 4, series.name, theme.ink))
    return parts


def bars(chart: BarChart, theme: Theme) -> list[str]:
    bottom = HEIGHT - BOTTOM
    height = bottom - TOP
    parts = []
    for value, label in chart.y.ticks:
        parts += across(bottom - chart.y.share(value) * height, label, theme)
    group_width = (WIDTH - LEFT - RIGHT) / len(chart.groups)
    bar_width = 0.8 * group_width / len(chart.series)
    for row, (name, shown) in enumerate(chart.series.items()):
        colour = theme.lines[row % len(theme.lines)]
        for number, group in enumerate(chart.groups):
            if bar := group.bars.get(name):
                x, tall = LEFT + (number + 0.1) * group_width + row * bar_width, chart.y.share(bar.height) * height
                parts.append(f'<rect x="{x + 1:.1f}" y="{bottom - tall:.1f}" width="{bar_width - 2:.1f}" height="{tall:.1f}" fill="{colour}"/>')
                parts.append(text(x + bar_width / 2, bottom - tall - 5, bar.label, theme.muted, "middle", 10))
        y, x = TOP + 10 + 20 * row, WIDTH - RIGHT + 16
        parts.append(f'<rect x="{x}" y="{y - 6}" width="22" height="12" fill="{colour}"/>')
        parts.append(text(x + 30, y + 4, shown, theme.ink))
    parts += [text(LEFT + (number + 0.5) * group_width, bottom + 20, group.name, theme.muted, "middle")
              for number, group in enumerate(chart.groups)]
    return parts + titles(chart, theme)


def svg(chart: Chart | BarChart, theme: Theme) -> str:
    content = bars(chart, theme) if isinstance(chart, BarChart) else lines(chart, theme)
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
                      f'font-family="system-ui, sans-serif" role="img" aria-label="{html.escape(chart.title)}">',
                      f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{theme.paper}"/>',
                      text(LEFT, 26, chart.title, theme.ink, size=16, more=' font-weight="600"'),
                      text(LEFT, 46, chart.subtitle, theme.muted), *content, "</svg>\n"])


def write(chart: Chart | BarChart, folder: pathlib.Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, theme in (("light", LIGHT), ("dark", DARK)):
        (folder / f"{name}_{suffix}.svg").write_text(svg(chart, theme), encoding="utf-8")


def bytes_label(number: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:g} {unit}"
        number /= 1024
    return f"{number:g} GiB"
