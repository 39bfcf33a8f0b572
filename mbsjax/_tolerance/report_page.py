"""A tolerance report as one page that needs nothing else: its words and numbers; the files in `page/` make it live."""

import base64
import datetime
import importlib.resources
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._pictures.table import Table, shown
from .report_data import contents, embedded, escaped
from .report_drawing import Drawing
from .summary import Found, Summary, ranking, survivors
from .worst_case import WorstCase


# In the order in which they stand in the page: what one does when the page opens may need what stands before it.
_SCRIPTS = ("normal", "capability", "format", "study", "toml", "charts", "mechanism", "controls")
_MOST = 6  # measures that have a column each in the ranking
_ELSEWHERE = ("summary", "ranking", "which method to believe", "measures", "contributors of ", "along the stroke: ")


class Contents(NamedTuple):
    """What a page is made of."""

    title: str
    found: Found
    worst: WorstCase | None
    tables: Sequence[Table]
    summary: Sequence[Summary]
    pictures: Sequence[tuple[str, str, Callable]]
    drawing: Drawing | None
    seed: int
    target: float
    units: Mapping[str, str]


def page(c: Contents) -> str:
    """The page as HTML."""
    body = "\n".join([*_head(c), *_summary(c), *_dimensions(c), *_mechanism(c), *_measures(c), *_more(c), *_foot(c)])
    files = importlib.resources.files("mbsjax._tolerance").joinpath("page")
    read = lambda name: files.joinpath(name).read_text(encoding="utf-8")
    data = contents(c.found, c.summary, c.drawing, c.target, c.units)
    filling = {
        "TITLE": escaped(c.title), "STYLE": read("style.css").strip(), "BODY": body, "DATA": embedded(data),
        "SCRIPT": "\n".join(read(f"{name}.js") for name in _SCRIPTS).strip(),
    }  # fmt: skip
    return re.sub("{{(TITLE|STYLE|BODY|DATA|SCRIPT)}}", lambda found: filling[found[1]], read("index.html"))


# -- numbers, as `format.js` writes them ---------------------------------------------------------------------------------


def number(x: Any) -> str:
    """Five significant digits."""
    x = float(x)
    if not np.isfinite(x):
        return "–" if np.isnan(x) else "∞" if x > 0 else "−∞"
    rounded = float(f"{x:.5g}")
    small = rounded != 0 and (abs(rounded) < 1e-4 or abs(rounded) >= 1e6)
    text = re.sub(r"e([+-])0*(\d+)", lambda e: f"e{e[1].strip('+')}{e[2]}", f"{rounded:.5g}") if small else f"{rounded:.10g}"
    return text.replace("-", "−")


def percent(x: float) -> str:
    """A yield, with so many digits that its rejects are told by two."""
    if np.isnan(x):
        return "–"
    rest = min(x, 1 - x)
    digits = int(np.clip(np.ceil(-np.log10(100 * rest)) + 1, 2, 10)) if rest > 0 else 2
    return f"{100 * x:.{digits}f} %"


_KINDS: dict[str, tuple[Callable[[float], str], float]] = {
    "number": (number, 1.0),
    "yield": (percent, 100.0),
    "part": (lambda x: f"{100 * x:.1f} %".replace("-", "−"), 100.0),
    "ppm": (lambda x: number(1e6 * x), 1e6),
}


def _cell(x: Any, live: str = "", kind: str = "number", tag: str = "td") -> str:
    """A number with all its digits in its title. With `live`, where the page finds it among its results."""
    write, factor = _KINDS[kind]
    follows = f' data-live="{live}" data-as="{kind}"' if live else ""
    return f'<{tag}{follows} title="{factor * float(x)!r}">{write(float(x))}</{tag}>'


def _part(x: float, live: str) -> str:
    wide = min(max(100 * x, 0.0), 100.0)
    meter = f'<span class="meter"><i data-bar="{live}" style="width:{wide:.1f}%"></i></span>'
    return f'<td class="part">{meter}{_cell(x, live, "part", "span")}</td>'


def _named(name: str, units: Mapping[str, str]) -> str:
    unit = f' <span class="unit">[{escaped(units[name])}]</span>' if name in units else ""
    return f'<span class="name">{escaped(name)}</span>{unit}'


def _rows(head: Sequence[str], rows: Sequence[str], more: str = "") -> str:
    titles = "".join(f"<th>{x}</th>" for x in head)
    return f'<div class="wide"><table{more}><thead><tr>{titles}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


# -- its sections --------------------------------------------------------------------------------------------------------


def _head(c: Contents) -> Iterator[str]:
    from .. import __version__

    now = datetime.datetime.now(datetime.UTC)
    sample = c.found.sample
    drawn = "no samples" if sample is None else f"{sample.tally.n} samples, seed {c.seed}"
    count = f"{len(c.found.study.names)} dimensions, {len(c.found.study.labels)} measures"
    goal = f"a yield of {percent(c.target)}" if c.target < 1 else f"a Cpk of {number(c.target)}"
    yield f"<header><h1>{escaped(c.title)}</h1>"
    told = (f"mbsjax {__version__}", f"made {now:%Y-%m-%d %H:%M} UTC", drawn, count, f"target: {goal}")
    yield f'<p class="made">{"".join(f"<span>{escaped(x)}</span>" for x in told)}</p></header>'
    yield (
        '<div class="bar-of"><span id="changes" role="status">nothing is changed</span>'
        '<button id="reset" disabled>Reset</button><button id="save">Save what-if as TOML</button>'
        '<button id="print">Print</button></div>'
        '<p class="warning" id="broken" hidden></p>'
        '<p class="warning" id="shifted" hidden>Means are moved: what the page says of that is a prediction from the '
        "derivatives at the means as analyzed, linear at first order and quadratic at second. Run the study again to "
        "confirm it.</p>"
    )


def _summary(c: Contents) -> Iterator[str]:
    yield "<section><h2>Summary</h2>"
    rows = []
    for j, x in enumerate(c.summary):
        limits = "".join(_limit(c, x, j, side) for side in ("lower", "upper"))
        error = f" ± {100 * x.belief.error:.2g}" if np.isfinite(x.belief.error) else ""
        of = {"survivors": "survivors only", "samples": "Ppk"}.get(x.cpk_of, "")
        word = x.verdict or "no limits"
        rows.append(
            f'<tr class="told" data-summary="{j}"><td>{_named(x.measure, c.units)}</td>{limits}'
            f'<td><span data-cell="yield" title="{100 * x.belief.good!r} %">{percent(x.belief.good)}</span>'
            f'<small data-cell="error">{error}</small></td>'
            f'<td class="left" data-cell="method">{x.belief.method or "–"}</td>'
            f'<td><span data-cell="cpk" title="{x.cpk!r}">{number(x.cpk)}</span><small data-cell="of">{of}</small></td>'
            f'<td class="verdict {word.replace(" ", "-")}" data-cell="verdict">{word}</td>'
            f'<td class="left"><span data-cell="contributor">{escaped(x.contributor)}</span> '
            f'<small data-cell="part">{100 * x.part:.1f} %</small></td></tr>'
        )
        place = f" At the worst place, value {x.at - _start(c, x.measure)} along the stroke." if _along(c, x) else ""
        why = f"{x.belief.method}: {x.belief.why}" if x.belief.method else x.belief.why
        rows.append(f'<tr class="reason"><td colspan="8" class="why">{escaped(_sentence(why))}{place}</td></tr>')
    head = ("Measure", "Lower limit", "Upper limit", "Yield", '<span class="left">by</span>', "Cpk", "Verdict")
    yield _rows((*head, '<span class="left">Main contributor</span>'), rows, ' class="full"')
    if c.found.sample is not None:
        rejects, error = c.found.sample.tally.rejects[""]
        yield (
            f'<p class="note">Of {c.found.sample.tally.n} samples, {percent(1 - rejects)} ± {100 * error:.2g} keep all '
            "limits and fail nowhere, as analyzed.</p>"
        )
    yield "</section>"


def _along(c: Contents, x: Summary) -> bool:
    return not isinstance(c.found.study.slices[x.measure], int)


def _start(c: Contents, name: str) -> int:
    at = c.found.study.slices[name]
    return at if isinstance(at, int) else at.start


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _limit(c: Contents, x: Summary, j: int, side: str) -> str:
    every = np.asarray(getattr(c.found.study, side))[c.found.study.slices[x.measure]].reshape(-1)
    if not np.all(every == every[0]):
        return "<td>varies</td>"
    value = f"{every[0]:.12g}" if np.isfinite(every[0]) else ""
    label = escaped(f"{side} limit of {x.measure}")
    return (
        f'<td><input type="text" inputmode="decimal" data-measure="{j}" data-field="{side}" value="{value}" '
        f'placeholder="none" aria-label="{label}" disabled></td>'
    )


def _dimensions(c: Contents) -> Iterator[str]:
    study, names = c.found.study, c.found.study.labels
    yield '<section><h2>Dimensions, the most important first</h2><p class="screen">'
    yield (
        "Ranked by the largest part that each has in the variance of any measure. Tolerances (±0.05, or -0.02 / +0.05), "
        "shifts of the mean and standard deviations can be changed here, limits above: all numbers follow. A standard "
        'deviation follows its tolerance unless it is typed in. <button id="sort">Sort by rank</button></p>'
    )
    columns = list(enumerate(names)) if 1 < len(names) <= _MOST else []
    ranks = ranking(c.found)
    starts = np.cumsum((0, *study.counts))[:-1].tolist()
    groups = {name: g for g, name in enumerate(_group_order(c))}
    rows = []
    for place, x in enumerate(ranks, 1):
        g = groups[x.name]
        nominal = np.asarray(study.nominal)[starts[g] : starts[g] + study.counts[g]]
        size = _cell(nominal[0]) if len(nominal) == 1 else f"<td>{len(nominal)} numbers</td>"
        parts = "".join(_cell(x.parts[j], f"groups.{g}.parts.{j}", "part") for j, _ in columns)
        inputs = "".join(_input(study, g, x.name, field) for field in ("tolerance", "shift", "sigma"))
        kind = escaped(type(study.distributions[g]).__name__.lower())
        rows.append(
            f'<tr data-line="{g}"><td><span data-live="groups.{g}.rank" data-as="text">{place}</span></td>'
            f'<td class="left">{_named(x.name, c.units)}</td>{size}{inputs}<td class="left">{kind}</td>'
            f"{_part(x.largest, f'groups.{g}.largest')}"
            f'<td class="left"><span data-live="groups.{g}.of" data-as="text">{escaped(x.measure)}</span></td>{parts}</tr>'
        )
    left = lambda text: f'<span class="left">{text}</span>'
    head = ["", left("Dimension"), "Nominal", "Tolerance", "Mean shift", "Sigma", left("Spread"), "Largest part", left("of")]
    yield _rows(head + [f"of {escaped(name)}" for _, name in columns], rows, ' class="full" id="dimensions"')
    yield "</section>"


def _group_order(c: Contents) -> list[str]:
    from .summary import group_names

    return group_names(c.found.study)


def _input(study: Any, g: int, name: str, field: str) -> str:
    d = study.distributions[g]
    lower, upper = float(d.spread.lower), float(d.spread.upper)
    signed = lambda x: f"{x:+.12g}" if x > 0 else f"{x:.12g}"
    value = {
        "tolerance": f"±{upper:.12g}" if lower == -upper else f"{signed(lower)} / {signed(upper)}",
        "shift": "0",
        "sigma": f"{float(d.std):.12g}",
    }[field]
    label = escaped(f"{field} of {name}")
    return (
        f'<td><input type="text" class="{field}" data-group="{g}" data-field="{field}" value="{value}" '
        f'aria-label="{label}" disabled></td>'
    )


def _mechanism(c: Contents) -> Iterator[str]:
    yield '<section id="mechanism"><h2>Mechanism</h2>'
    if c.drawing is None:
        yield (
            '<p class="note">The study is not of a motion or a position of a mechanism, or was asked not to show it: there '
            "is nothing to draw.</p></section>"
        )
        return
    study, rows = c.found.study, len(c.drawing.moving.t)
    hidden = " hidden" if rows == 1 else ""
    factors = "".join(f'<option value="{k}">× {k}</option>' for k in (1, 10, 100, 1000))
    yield (
        '<div class="columns"><div class="stage"><svg id="stage" role="img" aria-label="the mechanism"></svg>'
        f'<div class="tools"><label{hidden}>position <input type="range" id="position" min="0" max="{rows - 1}" step="1" '
        'value="0" style="width:12rem"></label><span id="time"></span>'
        f'<label>exaggerated <select id="exaggeration">{factors}</select></label>'
        '<label><input type="checkbox" id="show-names" checked> dimensions</label></div></div><div class="sliders">'
        '<p class="note">Each dimension from limit to limit of its tolerance. The mechanism moves as its exact derivatives '
        "say, at first order; dashed, where it is at the mean dimensions.</p>"
    )
    for i, name in enumerate(study.names):
        yield (
            f'<label class="slider"><span>{escaped(name)}</span><input type="range" data-slider="{i}" min="-1" max="1" '
            'step="0.01" value="0"><output>0</output></label>'
        )
    yield '<div class="tools"><button id="level">All to their means</button></div>'
    second = c.found.second is not None
    lines = [
        f"<tr><td>{_named(x.measure, c.units)}</td>"
        f'<td data-predicted="{j}.first">{number(c.found.first.values[x.at])}</td>'
        + (f'<td data-predicted="{j}.second">{number(c.found.first.values[x.at])}</td>' if second else "")
        + "</tr>"
        for j, x in enumerate(c.summary)
    ]
    head = ("Measure of this part", "first order", *(("second order",) if second else ()))
    yield _rows(head, lines) + "</div></div>"
    from .report_drawing import dimension_lines

    unseen = [name for i, name in enumerate(study.names) if not dimension_lines(c.drawing, i)]
    if unseen:
        yield f'<p class="note">Not to be seen in the picture: {escaped(", ".join(unseen))}.</p>'
    yield "</section>"


def _measures(c: Contents) -> Iterator[str]:
    tables = {table.title: table for table in c.tables}
    for j, x in enumerate(c.summary):
        yield f'<section class="measure"><h2>{_named(x.measure, c.units)}</h2>'
        if _along(c, x):
            yield (
                '<p class="note">A measure along a stroke. Numbers are those of the worst place: of the least yield, or '
                "without limits of the largest variation.</p>"
            )
        yield f'<div class="columns"><div>{_statistics(c, x, j)}</div><div data-chart="{j}"></div></div>'
        yield '<div class="columns">'
        yield f"<div><h3>Range</h3>{_ranges(c, x, j)}</div><div><h3>Contributors</h3>{_contributors(c, x, j)}</div></div>"
        pictures = [(name, draw) for measure, name, draw in c.pictures if measure == x.measure]
        if pictures:
            images = "".join(f'<img alt="{escaped(name)}" src="{_encoded(draw)}">' for name, draw in pictures)
            yield f'<details><summary>Pictures, as analyzed</summary><div class="pictures">{images}</div></details>'
        stroke = tables.get(f"along the stroke: {x.measure}")
        if stroke is not None:
            yield f"<details><summary>All places, as analyzed</summary>{_table(stroke)}</details>"
        yield "</section>"


def _statistics(c: Contents, x: Summary, j: int) -> str:
    first, second, sample, k = c.found.first, c.found.second, c.found.sample, x.at
    head, some = ["", "first order"] + ["second order"] * (second is not None), False
    tally = None if sample is None else sample.tally
    if sample is not None:
        some = survivors(sample, k)
        head += ["sampled, survivors" if some else "sampled", "standard error"]
    lines: dict[str, tuple[str, str]] = {
        "mean": ("Mean", "number"), "std": ("Sigma", "number"), "skewness": ("Skewness", "number"),
        "kurtosis": ("Kurtosis", "number"), "cp": ("Cp", "number"), "cpk": ("Cpk", "number"),
        "below": ("ppm below", "ppm"), "above": ("ppm above", "ppm"), "good": ("Yield", "yield"),
    }  # fmt: skip
    orders = {"first": first} if second is None else {"first": first, "second": second}
    rows = []
    for key, (label, kind) in lines.items():
        cells = ""
        for order, expansion in orders.items():
            given = expansion.moments if key in ("mean", "std", "skewness", "kurtosis") else expansion.capability
            bent = key in ("skewness", "kurtosis") and order == "first"
            cells += "<td></td>" if bent else _cell(getattr(given, key)[k], f"measures.{j}.{order}.{key}", kind)
        if tally is not None:
            cells += _sampled_cells(tally, x, key, kind)
        if some and key in ("cp", "cpk"):
            label = f"{label} (sampled: {label.replace('C', 'P')} of survivors)"
        rows.append(f"<tr><td>{label}</td>{cells}</tr>")
    note = ""
    if tally is not None and some:
        lost = 1 - tally.count[k] / tally.n
        note = (
            f'<p class="note">{100 * lost:.3g} % of the samples have no value. Moments and indices are of the others, the '
            "survivors; the sampled yield counts those without a value as rejects.</p>"
        )
    return _rows(head, rows) + note


def _sampled_cells(tally: Any, x: Summary, key: str, kind: str) -> str:
    k = x.at
    if key in ("mean", "std", "skewness", "kurtosis"):
        return _cell(getattr(tally.moments, key)[k], "", kind) + _cell(getattr(tally.errors, key)[k], "", kind)
    if key in ("below", "above"):
        error = tally.rate(tally.tails)[1][0 if key == "below" else 1][k]
        return _cell(getattr(tally.capability, key)[k], "", kind) + _cell(error, "", kind)
    if key == "good":
        rejects, error = tally.rejects[x.measure]
        return _cell(1 - rejects, "", "yield") + f'<td title="{100 * error!r} %">{100 * error:.2g} %</td>'
    return _cell(getattr(tally.capability, key)[k], "", kind) + "<td></td>"


def _ranges(c: Contents, x: Summary, j: int) -> str:
    first, k, nominal = c.found.first, x.at, c.found.study.at_nominal.values
    middle, worst, rss = first.middle[k], first.worst_case[k], first.rss[k]
    line = lambda label, low, high: f"<tr><td>{label}</td>{low}{high}</tr>"
    both = lambda half, name: (
        _cell(middle - half, f"measures.{j}.{name}_lower"), _cell(middle + half, f"measures.{j}.{name}_upper")
    )  # fmt: skip
    rows = [line("Worst case, linear", *both(worst, "worst"))]
    if c.worst is not None:
        rows.append(line("Worst case, exact, as analyzed", _cell(c.worst.lower[k]), _cell(c.worst.upper[k])))
    rows.append(line("RSS", *both(rss, "rss")))
    if c.found.sample is not None:
        tally = c.found.sample.tally
        rows.append(line("Sampled, least and largest", _cell(tally.least[k]), _cell(tally.largest[k])))
    rows.append(f"<tr><td>Worst case ±</td><td></td>{_cell(worst, f'measures.{j}.worst')}</tr>")
    rows.append(f"<tr><td>RSS ±</td><td></td>{_cell(rss, f'measures.{j}.rss')}</tr>")
    rows.append(f"<tr><td>Modified RSS ±</td><td></td>{_cell(first.mrss[k], f'measures.{j}.mrss')}</tr>")
    rows.append(f"<tr><td>Nominal</td><td></td>{_cell(np.asarray(nominal)[k])}</tr>")
    failed = ""
    if c.worst is not None and c.worst.failed:
        failed = f'<p class="note">{100 * c.worst.failed:.3g} % of the corners of the tolerances fail.</p>'
    return _rows(("", "lower", "upper"), rows) + failed


def _contributors(c: Contents, x: Summary, j: int) -> str:
    first, second, k = c.found.first, c.found.second, x.at
    shift = None if second is None else second.mean_shift[k]
    rows = []
    for i in np.argsort(-first.contribution[k], kind="stable"):
        falls = ' class="falls"' if first.slopes[k, i] < 0 else ""
        cells = _cell(first.slopes[k, i], f"measures.{j}.slopes.{i}")
        cells += _part(first.contribution[k, i], f"measures.{j}.part.{i}")
        cells += _cell(first.reach[k, i], f"measures.{j}.reach.{i}")
        cells += "" if shift is None else _cell(shift[i], f"measures.{j}.mean_shift.{i}")
        rows.append(f"<tr{falls}><td>{escaped(c.found.study.names[i])}</td>{cells}</tr>")
    head = ["Dimension", "Sensitivity", "Part of the variance", "Worst case ±"]
    return _rows(head + ["Mean shift"] * (shift is not None), rows)


def _more(c: Contents) -> Iterator[str]:
    """All other tables that the report has."""
    others = [table for table in c.tables if not table.title.startswith(_ELSEWHERE)]
    if others:
        yield '<section><h2>Further tables, as analyzed</h2>'
        yield from (f"<h3>{escaped(table.title.capitalize())}</h3>{_table(table)}" for table in others)
        yield "</section>"


def _foot(c: Contents) -> Iterator[str]:
    yield (
        '<section><h2>How the numbers are found</h2><p class="note">First order: the study linearized at its mean '
        "dimensions by exact derivatives, through loops, contacts and events; its yield takes the measure for normal. "
        "Second order: with curvatures; its yield is from four moments. RSS and worst case add the tolerances as they are "
        "drawn. Sampled: every sample is an analysis of its own, and counts; one without a value is a reject. Only first "
        "and second order follow what is changed in this page. All digits of a number show where the pointer rests on "
        "it.</p></section>"
        '<div class="signatures"><div>Prepared, date</div><div>Checked, date</div><div>Approved, date</div></div>'
    )


def _table(table: Table) -> str:
    cell = lambda x: _cell(x) if isinstance(x, float) else f"<td>{escaped(shown(x))}</td>"
    rows = [f"<tr>{''.join(map(cell, row))}</tr>" for row in table.rows]
    return _rows([escaped(x) for x in table.columns], rows)


def _encoded(draw: Callable[[Any], Any]) -> str:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    draw(figure.subplots())
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110)
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()
