"""A tolerance report as one page that needs nothing else."""

import base64
import html
import io
from collections.abc import Callable, Iterable
from typing import Any

from .._pictures.table import Table, shown


_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1 { font-size: 1.6rem } h2 { font-size: 1.1rem; margin-top: 2rem }
.table { overflow-x: auto; max-height: 40rem } table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .15rem .7rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap }
th { position: sticky; top: 0; background: #f4f4f4 } th:first-child, td:first-child { text-align: left }
.pictures { display: flex; flex-wrap: wrap; gap: 1rem } img { max-width: 32rem; width: 100% } pre { font-size: 13px }
"""


def page(title: str, subject: str, tables: Iterable[Table], pictures: Iterable[tuple[str, Callable]]) -> str:
    """The page as HTML: the subject as text, then pictures, each a name and a function that draws into given axes, then
    tables."""
    rows = "".join(map(_table, tables))
    images = "".join(f'<img alt="{html.escape(name)}" src="{_encoded(draw)}">' for name, draw in pictures)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{html.escape(title)}</h1>"
        f"<pre>{html.escape(subject)}</pre>"
        f'<h2>Pictures</h2><div class="pictures">{images}</div>{rows}</body></html>'
    )


def _table(table: Table) -> str:
    cells = lambda tag, row: "".join(f"<{tag}>{html.escape(shown(x))}</{tag}>" for x in row)
    rows = "".join(f"<tr>{cells('td', row)}</tr>" for row in table.rows)
    head = f"<tr>{cells('th', table.columns)}</tr>"
    return f'<h2>{html.escape(table.title)}</h2><div class="table"><table>{head}{rows}</table></div>'


def _encoded(draw: Callable[[Any], Any]) -> str:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    draw(figure.subplots())
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110)
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()
