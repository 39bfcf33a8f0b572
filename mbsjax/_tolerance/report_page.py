"""A tolerance report as one page that needs nothing else: its words and numbers; the files in `page/` make it live."""

import datetime
import importlib.resources
import re
from collections.abc import Iterator

import numpy as np

from .._programs.version import VERSION
from .report_cells import NONE, cell, escaped, metered, named, number, percent, rows_of, table_of
from .report_data import Contents, contents, embedded, first_value, is_along
from .report_drawing import dimension_lines
from .report_measures import measures
from .study import Study
from .summary import Summary, group_names, ranking


# In the order in which they stand in the page: what one does when the page opens may need what stands before it.
_SCRIPTS = ("normal", "capability", "format", "study", "toml", "charts", "mechanism", "controls")
_MOST = 6  # measures that have a column each in the ranking
_ELSEWHERE = ("summary", "ranking", "which method to believe", "measures", "contributors of ", "along the stroke: ")


def page(c: Contents) -> str:
    """The page as HTML."""
    body = "\n".join([*_head(c), *_summary(c), *_dimensions(c), *_mechanism(c), *measures(c), *_more(c), *_foot(c)])
    files = importlib.resources.files("mbsjax._tolerance").joinpath("page")
    read = lambda name: files.joinpath(name).read_text(encoding="utf-8")
    data = contents(c)
    filling = {
        "TITLE": escaped(c.title), "STYLE": read("style.css").strip(), "BODY": body, "DATA": embedded(data),
        "SCRIPT": "\n".join(read(f"{name}.js") for name in _SCRIPTS).strip(),
    }  # fmt: skip
    return re.sub("{{(TITLE|STYLE|BODY|DATA|SCRIPT)}}", lambda found: filling[found[1]], read("index.html"))


def _head(c: Contents) -> Iterator[str]:
    now = datetime.datetime.now(datetime.UTC)
    sample = c.found.sample
    drawn = "no samples" if sample is None else f"{sample.tally.n} samples, seed {c.seed}"
    several = lambda n, what: f"{n} {what}{'s' * (n != 1)}"
    count = f"{several(len(c.found.study.names), 'dimension')}, {several(len(c.found.study.labels), 'measure')}"
    goal = f"a yield of {percent(c.target)}" if c.target < 1 else f"a Cpk of {c.target:.4g}"
    yield f"<header><h1>{escaped(c.title)}</h1>"
    told = (
        f"mbsjax {VERSION}",
        f"made {now:%Y-%m-%d %H:%M} UTC",
        drawn,
        count,
        f"target: {goal}",
    )
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
            f'<tr class="told" data-summary="{j}"><td>{named(x.measure, c.units)}</td>{limits}'
            f'<td><span data-cell="yield" title="{100 * x.belief.good!r} %">{percent(x.belief.good)}</span>'
            f'<small data-cell="error">{error}</small></td>'
            f'<td class="left" data-cell="method">{x.belief.method or NONE}</td>'
            f'<td><span data-cell="cpk" title="{x.cpk!r}">{number(x.cpk)}</span><small data-cell="of">{of}</small></td>'
            f'<td class="left verdict {word.replace(" ", "-")}" data-cell="verdict">{word}</td>'
            f'<td class="left"><span data-cell="contributor">{escaped(x.contributor)}</span> '
            f'<small data-cell="part">{100 * x.part:.1f} %</small></td></tr>'
        )
        place = (
            f" At the worst place, value {x.at - first_value(c, x.measure)} along the stroke." if is_along(c, x) else ""
        )
        why = f"{x.belief.method}: {x.belief.why}" if x.belief.method else x.belief.why
        rows.append(f'<tr class="reason"><td colspan="8" class="why">{escaped(_sentence(why))}{place}</td></tr>')
    head = ("Measure", "Lower limit", "Upper limit", "Yield", "<by", "Cpk", "<Verdict", "<Main contributor")
    yield rows_of(head, rows, ' class="full"')
    if c.found.sample is not None:
        rejects, error = c.found.sample.tally.rejects[""]
        yield (
            f'<p class="note">Of {c.found.sample.tally.n} samples, {percent(1 - rejects)} ± {100 * error:.2g} keep all '
            "limits and fail nowhere, as analyzed.</p>"
        )
    yield "</section>"


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
        "Ranked by the largest part that each has in the variance of any measure. Tolerances (±0.05, or -0.02 / +0.05) "
        "and shifts of means and standard deviations can be changed here, limits above: all numbers follow. A standard "
        'deviation follows its tolerance unless it is typed in. <button id="sort">Sort by rank</button></p>'
    )
    columns = list(enumerate(names)) if 1 < len(names) <= _MOST else []
    ranks = ranking(c.found)
    starts = np.cumsum((0, *study.counts))[:-1].tolist()
    groups = {name: g for g, name in enumerate(group_names(study))}
    rows = []
    for place, x in enumerate(ranks, 1):
        g = groups[x.name]
        nominal = np.asarray(study.nominal)[starts[g] : starts[g] + study.counts[g]]
        size = (
            f'<td title="{float(nominal[0])!r}">{nominal[0]:.7g}</td>'
            if len(nominal) == 1
            else f"<td>{len(nominal)} numbers</td>"
        )
        parts = "".join(cell(x.parts[j], f"groups.{g}.parts.{j}", "part") for j, _ in columns)
        inputs = "".join(_input(study, g, x.name, field) for field in ("tolerance", "shift", "sigma"))
        kind = escaped(type(study.distributions[g]).__name__.lower())
        rows.append(
            f'<tr data-line="{g}"><td><span data-live="groups.{g}.rank" data-as="text">{place}</span></td>'
            f'<td class="left">{named(x.name, c.units)} <small>{kind}</small></td>{size}{inputs}'
            f"{metered(x.largest, f'groups.{g}.largest')}"
            f'<td class="left"><span data-live="groups.{g}.of" data-as="text">{escaped(x.measure)}</span></td>'
            f"{parts}</tr>"
        )
    head = ["", "<Dimension", "Nominal", "Tolerance", "Mean shift", "Sigma", "Largest part", "<of"]
    yield rows_of(head + [f"of {escaped(name)}" for _, name in columns], rows, ' class="full" id="dimensions"')
    yield "</section>"


def _input(study: Study, g: int, name: str, field: str) -> str:
    d = study.distributions[g]
    lower, upper = float(d.spread.lower), float(d.spread.upper)
    signed = lambda x: f"{x:+.12g}" if x > 0 else f"{x:.12g}"
    value = {
        "tolerance": f"±{upper:.12g}" if lower == -upper else f"{signed(lower)} / {signed(upper)}",
        "shift": "0",
        "sigma": f"{float(d.std):.5g}",
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
            '<p class="note">The study is not of a motion or a position of a mechanism, or it was not to be shown: '
            "there is nothing to draw.</p></section>"
        )
        return
    study, rows = c.found.study, len(c.drawing.moving.t)
    hidden = " hidden" if rows == 1 else ""
    factors = "".join(f'<option value="{k}">\u00d7 {k}</option>' for k in (1, 10, 100, 1000))
    yield (
        '<div class="columns"><div class="stage"><svg id="stage" role="img" aria-label="the mechanism"></svg>'
        f'<div class="tools"><label{hidden}>position <input type="range" id="position" min="0" max="{rows - 1}" '
        'step="1" value="0" style="width:12rem"></label><span id="time"></span>'
        f'<label>exaggerated <select id="exaggeration">{factors}</select></label>'
        '<label><input type="checkbox" id="show-names" checked> dimensions</label></div></div>'
        '<div class="sliders screen"><p class="note">Each dimension from limit to limit of its tolerance. The '
        "mechanism moves as its exact derivatives say, at first order; dashed, where it is at the mean dimensions.</p>"
    )
    for i, name in enumerate(study.names):
        yield (
            f'<label class="slider"><span>{escaped(name)}</span><input type="range" data-slider="{i}" min="-1" max="1" '
            'step="0.01" value="0"><output>0</output></label>'
        )
    yield '<div class="tools"><button id="level">All to their means</button></div>'
    second = c.found.second is not None
    lines = [
        f"<tr><td>{named(x.measure, c.units)}</td>"
        f'<td data-predicted="{j}.first">{number(c.found.first.values[x.at])}</td>'
        + (f'<td data-predicted="{j}.second">{number(c.found.first.values[x.at])}</td>' if second else "")
        + "</tr>"
        for j, x in enumerate(c.summary)
    ]
    head = ("Measure of this part", "first order", *(("second order",) if second else ()))
    yield rows_of(head, lines) + "</div></div>"
    unseen = [name for i, name in enumerate(study.names) if not dimension_lines(c.drawing, i)]
    if unseen:
        yield f'<p class="note">Not to be seen in the picture: {escaped(", ".join(unseen))}.</p>'
    yield "</section>"


def _more(c: Contents) -> Iterator[str]:
    """All other tables that the report has."""
    others = [table for table in c.tables if not table.title.startswith(_ELSEWHERE)]
    if others:
        yield "<section><h2>Further tables, as analyzed</h2>"
        yield from (f"<h3>{escaped(table.title.capitalize())}</h3>{table_of(table)}" for table in others)
        yield "</section>"


def _foot(c: Contents) -> Iterator[str]:
    yield (
        '<section><h2>How the numbers are found</h2><p class="note">First order: the study linearized at its mean '
        "dimensions by exact derivatives, through loops, contacts and events; its yield takes the measure for normal. "
        "Second order: with curvatures; its yield is from four moments. RSS and worst case add up the tolerances. "
        "Sampled: every sample is an analysis of its own, and counts; one without a value is a reject. Only first and "
        "second order follow what is changed in this page. All digits of a number show where the pointer rests on it."
        "</p></section>"
        '<div class="signatures"><div>Prepared, date</div><div>Checked, date</div><div>Approved, date</div></div>'
    )
