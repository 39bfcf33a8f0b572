"""Rows of names and numbers, to print or to take elsewhere."""

import csv
import io
from typing import Any, NamedTuple

import numpy as np


class Table(NamedTuple):
    """Rows of names and numbers. `print` aligns them."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple]

    def __str__(self) -> str:
        cells = [list(self.columns)] + [[shown(x) for x in row] for row in self.rows]
        widths = [max(len(row[k]) for row in cells) for k in range(len(self.columns))]
        words = [bool(self.rows) and all(isinstance(row[k], str) for row in self.rows) for k in range(len(widths))]
        left = [True, *words[1:]]
        lines = [
            "  ".join(x.ljust(w) if text else x.rjust(w) for x, w, text in zip(row, widths, left)) for row in cells
        ]
        return "\n".join([self.title, "-" * len(self.title), *(line.rstrip() for line in lines)])

    def to_pandas(self) -> Any:
        import pandas

        return pandas.DataFrame(self.rows, columns=list(self.columns))

    def to_csv(self) -> str:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.columns, *self.rows])
        return out.getvalue()


def shown(x: Any) -> str:
    """A cell of a table."""
    if x is None or (isinstance(x, float) and np.isnan(x)):
        return ""
    return f"{x:.8g}" if isinstance(x, float) else str(x)
