"""The sections of a tolerance report's page that tell all of one measure."""

from collections.abc import Iterator

import numpy as np

from .report_cells import cell, encoded, escaped, metered, named, rows_of, table_of
from .report_data import Contents, is_along
from .summary import Summary, survivors
from .tally import Tally


def measures(c: Contents) -> Iterator[str]:
    """All of them, in their order."""
    tables = {table.title: table for table in c.tables}
    for j, x in enumerate(c.summary):
        free = "" if x.verdict else " unlimited"
        yield f'<section class="measure{free}" data-section="{j}"><h2>{named(x.measure, c.units)}</h2>'
        if is_along(c, x):
            yield (
                '<p class="note">A measure along a stroke. Numbers are those of the worst place: of the least yield, '
                "or without limits of the largest variation.</p>"
            )
        yield f'<div class="columns"><div>{_statistics(c, x, j)}</div><div data-chart="{j}"></div></div>'
        yield f'<div class="columns"><div><h3>Range</h3>{_ranges(c, x, j)}</div>'
        yield f"<div><h3>Contributors</h3>{_contributors(c, x, j)}</div></div>"
        pictures = [(name, draw) for measure, name, draw in c.pictures if measure == x.measure]
        if pictures:
            images = "".join(f'<img alt="{escaped(name)}" src="{encoded(draw)}">' for name, draw in pictures)
            yield f'<details><summary>Pictures, as analyzed</summary><div class="pictures">{images}</div></details>'
        stroke = tables.get(f"along the stroke: {x.measure}")
        if stroke is not None:
            yield f"<details><summary>All places, as analyzed</summary>{table_of(stroke)}</details>"
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
    orders = {"first": first.moments} if second is None else {"first": first.moments, "second": second.moments}
    rows = []
    for key, (label, kind) in lines.items():
        if key in ("skewness", "kurtosis") and second is None and tally is None:
            continue
        cells = ""
        for order, moments in orders.items():
            given = moments if key in ("mean", "std", "skewness", "kurtosis") else c.found.able[f"{order} order"]
            bent = key in ("skewness", "kurtosis") and order == "first"
            cells += "<td></td>" if bent else cell(getattr(given, key)[k], f"measures.{j}.{order}.{key}", kind)
        if tally is not None:
            cells += _sampled_cells(tally, x, key, kind)
        if some and key in ("cp", "cpk"):
            label = f"{label} (sampled: {label.replace('C', 'P')} of survivors)"
        only = ' class="limits-only"' if key in ("cp", "cpk", "below", "above", "good") else ""
        rows.append(f"<tr{only}><td>{label}</td>{cells}</tr>")
    note = ""
    if tally is not None and some:
        lost = 1 - tally.count[k] / tally.n
        note = (
            f'<p class="note">{100 * lost:.3g} % of the samples have no value. Moments and indices are of the others, '
            "the survivors; the sampled yield counts those without a value as rejects.</p>"
        )
    return rows_of(head, rows) + note


def _sampled_cells(tally: Tally, x: Summary, key: str, kind: str) -> str:
    k = x.at
    if key in ("mean", "std", "skewness", "kurtosis"):
        return cell(getattr(tally.moments, key)[k], "", kind) + cell(getattr(tally.errors, key)[k], "", kind)
    if key in ("below", "above"):
        error = tally.rate(tally.tails)[1][0 if key == "below" else 1][k]
        return cell(getattr(tally.capability, key)[k], "", kind) + cell(error, "", kind)
    if key == "good":
        rejects, error = tally.rejects[x.measure]
        return cell(1 - rejects, "", "yield") + f'<td title="{100 * error!r} %">{100 * error:.2g} %</td>'
    return cell(getattr(tally.capability, key)[k], "", kind) + "<td></td>"


def _ranges(c: Contents, x: Summary, j: int) -> str:
    first, k, nominal = c.found.first, x.at, c.found.study.at_nominal.values
    middle, worst, rss = first.middle[k], first.worst_case[k], first.rss[k]
    line = lambda label, low, high: f"<tr><td>{label}</td>{low}{high}</tr>"
    both = lambda half, name: (
        cell(middle - half, f"measures.{j}.{name}_lower"), cell(middle + half, f"measures.{j}.{name}_upper")
    )  # fmt: skip
    rows = [line("Worst case, linear", *both(worst, "worst"))]
    if c.worst is not None:
        rows.append(line("Worst case, exact, as analyzed", cell(c.worst.lower[k]), cell(c.worst.upper[k])))
    rows.append(line("RSS", *both(rss, "rss")))
    if c.found.sample is not None:
        tally = c.found.sample.tally
        rows.append(line("Sampled, least and largest", cell(tally.least[k]), cell(tally.largest[k])))
    rows.append(f"<tr><td>Worst case ±</td><td></td>{cell(worst, f'measures.{j}.worst')}</tr>")
    rows.append(f"<tr><td>RSS ±</td><td></td>{cell(rss, f'measures.{j}.rss')}</tr>")
    rows.append(f"<tr><td>Modified RSS ±</td><td></td>{cell(first.mrss[k], f'measures.{j}.mrss')}</tr>")
    rows.append(f"<tr><td>Nominal</td><td></td>{cell(np.asarray(nominal)[k])}</tr>")
    failed = ""
    if c.worst is not None and c.worst.failed:
        failed = f'<p class="note">{100 * c.worst.failed:.3g} % of the corners of the tolerances fail.</p>'
    return rows_of(("", "lower", "upper"), rows) + failed


def _contributors(c: Contents, x: Summary, j: int) -> str:
    second, k = c.found.second, x.at
    shift = None if second is None else second.mean_shift[k]
    slopes, part, reach = c.found.first.slopes[k], c.found.contribution[k], c.found.first.reach[k]
    rows = []
    for i in np.argsort(-part, kind="stable"):
        falls = ' class="falls"' if slopes[i] < 0 else ""
        cells = cell(slopes[i], f"measures.{j}.slopes.{i}") + metered(part[i], f"measures.{j}.part.{i}")
        cells += cell(reach[i], f"measures.{j}.reach.{i}")
        cells += "" if shift is None else cell(shift[i], f"measures.{j}.mean_shift.{i}")
        rows.append(f"<tr{falls}><td>{named(c.found.study.names[i], c.units)}</td>{cells}</tr>")
    head = ["Dimension", "Sensitivity", "Part of the variance", "Worst case ±"]
    return rows_of(head + ["Mean shift"] * (shift is not None), rows)
