"""Numbers and tables of a tolerance report's page, written as `page/format.js` writes them."""

import base64
import html
import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._pictures.table import Table, shown


MINUS, NONE = "\u2212", "\u2013"


def escaped(x: Any) -> str:
    """Text for the page."""
    return html.escape(str(x))


def number(x: Any) -> str:
    """Five significant digits."""
    x = float(x)
    if not np.isfinite(x):
        return NONE if np.isnan(x) else "∞" if x > 0 else f"{MINUS}∞"
    size = abs(float(f"{x:.5g}"))
    if size == 0 or (abs(size - abs(x)) <= 1e-12 * size and 1e-4 <= size < 1e6):  # as it was given, not computed
        return f"{x:.5g}".replace("-", MINUS) if size < 1e5 else f"{x:.0f}".replace("-", MINUS)
    if size < 1e-4 or size >= 1e6:
        text = re.sub(r"e([+-])0*(\d+)", lambda e: f"e{e[1].strip('+')}{e[2]}", f"{x:.4e}")
    else:
        text = f"{x:.{max(4 - int(np.floor(np.log10(size))), 0)}f}"
    return text.replace("-", MINUS)


def percent(x: float) -> str:
    """A yield, with so many digits that its rejects are told by two."""
    if np.isnan(x):
        return NONE
    rest = min(x, 1 - x)
    digits = int(np.clip(np.ceil(-np.log10(100 * rest)) + 1, 2, 10)) if rest > 0 else 2
    return f"{100 * x:.{digits}f} %"


_KINDS: dict[str, tuple[Callable[[float], str], float]] = {
    "number": (number, 1.0),
    "yield": (percent, 100.0),
    "part": (lambda x: f"{100 * x:.1f} %".replace("-", MINUS), 100.0),
    "ppm": (lambda x: number(1e6 * x), 1e6),
}


def cell(x: Any, live: str = "", kind: str = "number", tag: str = "td") -> str:
    """A number with all its digits in its title. With `live`, where the page finds it among its results."""
    write, factor = _KINDS[kind]
    follows = f' data-live="{live}" data-as="{kind}"' if live else ""
    return f'<{tag}{follows} title="{factor * float(x)!r}">{write(float(x))}</{tag}>'


def metered(x: float, live: str) -> str:
    """A part, with a bar as long."""
    wide = min(max(100 * x, 0.0), 100.0)
    meter = f'<span class="meter"><i data-bar="{live}" style="width:{wide:.1f}%"></i></span>'
    return f'<td class="part">{meter}{cell(x, live, "part", "span")}</td>'


def named(name: str, units: Mapping[str, str]) -> str:
    """A name, with its unit if that is given."""
    unit = f' <span class="unit">[{escaped(units[name])}]</span>' if name in units else ""
    return f'<span class="name">{escaped(name)}</span>{unit}'


def rows_of(head: Sequence[str], rows: Sequence[str], more: str = "") -> str:
    """A table; columns of text have titles that begin with `<`."""
    titles = "".join(f'<th class="left">{x[1:]}</th>' if x.startswith("<") else f"<th>{x}</th>" for x in head)
    return (
        f'<div class="wide"><table{more}><thead><tr>{titles}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def table_of(table: Table) -> str:
    """A table of the report as it is."""
    each = lambda x: cell(x) if isinstance(x, float) else f"<td>{escaped(shown(x))}</td>"
    rows = [f"<tr>{''.join(map(each, row))}</tr>" for row in table.rows]
    return rows_of([escaped(x) for x in table.columns], rows)


def encoded(draw: Callable[[Any], Any]) -> str:
    """A picture of matplotlib, as the source of an image."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    draw(figure.subplots())
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110)
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()
