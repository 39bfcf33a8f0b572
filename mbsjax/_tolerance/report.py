"""The report of a tolerance study: tables, pictures, and a page to send to a colleague."""

import json
import pathlib
from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np
import scipy

from .._pictures.table import Table
from .._programs.reprs import has_numbers, head
from . import report_plots as plots
from .design_points import DesignPoint, form
from .evaluate import CHUNK
from .report_page import page
from .sample import Sample, monte_carlo
from .study import Study
from .taylor import FirstOrder, SecondOrder, first_order, second_order
from .worst_case import WorstCase, worst_case


class Report(eqx.Module):
    """What [`mbsjax.tolerance`][] found. `print` shows its tables; `report["contributors of phi"]` is one of them.

    - `study`, `first`, `second`, `worst`, `points`, `sample`: the parts it is made of; None where not asked for.
    - `to_csv(folder)`, `to_json(path)`, `to_html(path)`: the tables, or one self-contained page with pictures.
    - `pareto`, `histogram`, `bands`, `contributions`, `convergence`, `scatter`: pictures; they take axes and give them
        back.
    """

    study: Study
    first: FirstOrder
    second: SecondOrder | None
    worst: WorstCase | None
    points: list[DesignPoint]
    sample: Sample | None

    @property
    def tables(self) -> list[Table]:
        single = [name for name, at in self.study.slices.items() if isinstance(at, int)]
        rows = [name for name in self.study.slices if name not in single]
        tables = [self._measures(single)] if single else []
        tables += [self._contributors(name) for name in single]
        tables += [self._stroke(name) for name in rows]
        if self.points:
            tables.append(self._design_points())
        if self.sample is not None:
            tables += [self._classes(), *self._sequences()]
        return tables

    def __getitem__(self, title: str) -> Table:
        found = {table.title: table for table in self.tables}
        if title not in found:
            raise KeyError(f"there is no table {title!r}; there are {', '.join(found)}")
        return found[title]

    def __repr__(self) -> str:
        return head(str(self))

    def __str__(self) -> str:
        if not has_numbers(self.first.values) or self.first.values.ndim > 1:
            return f"Report on a {self.study}"
        return "\n\n".join(map(str, self.tables))

    def _measures(self, names: list[str]) -> Table:
        """One column for each measure, one row for each number about it."""
        at = [self.study.slices[name] for name in names]
        first, second, worst = self.first, self.second, self.worst
        rows: list[tuple] = []

        def row(label: str, x: Any, factor: float = 1.0) -> None:
            rows.append((label, *(float(v) * factor for v in np.asarray(x)[at])))

        row("nominal", self.study.at_nominal.values)
        row("lower limit", self.study.lower)
        row("upper limit", self.study.upper)
        row("worst case, linear, lower", first.middle - first.worst_case)
        row("worst case, linear, upper", first.middle + first.worst_case)
        if worst is not None:
            row("worst case, exact, lower", worst.lower)
            row("worst case, exact, upper", worst.upper)
            if worst.failed:
                rows.append(("corners of the tolerances that fail, %", *[100 * worst.failed] * len(names)))
        row("RSS, lower", first.middle - first.rss)
        row("RSS, upper", first.middle + first.rss)
        row("modified RSS, +-", first.mrss)
        found: dict[str, tuple] = {"first order": (first.moments, first.capability, None)}
        if second is not None:
            found["second order"] = second.moments, second.capability, None
        if self.sample is not None:
            tally = self.sample.tally
            found["sampled"] = tally.moments, tally.capability, tally
        for kind, (moments, able, tally) in found.items():
            errors = None if tally is None else tally.errors
            for k, label in enumerate(("mean", "sigma", "skewness", "kurtosis")):
                if kind == "first order" and k > 1:
                    continue
                row(f"{kind}: {label}", moments[k])
                if errors is not None:
                    row("  its standard error", errors[k])
            if tally is not None:
                row("sampled: least", tally.least)
                row("sampled: largest", tally.largest)
            p = "Pp" if tally is not None else "Cp"
            row(f"{kind}: {p}", able.cp)
            row(f"{kind}: {p}k", able.cpk)
            row(f"{kind}: ppm below", able.below, 1e6)
            row(f"{kind}: ppm above", able.above, 1e6)
            if tally is not None:
                below, above = tally.rate(tally.tails)[1]
                row("  standard error, below", below, 1e6)
                row("  standard error, above", above, 1e6)
                rejects = np.array([tally.rejects[name] for name in names]).T
                rows.append(("sampled: ppm rejected, failures too", *(1e6 * rejects[0]).tolist()))
                rows.append(("  its standard error", *(1e6 * rejects[1]).tolist()))
                rows.append(("sampled: yield", *(1 - rejects[0]).tolist()))
                rows.append(("sampled: sigma level", *(-scipy.special.ndtri(rejects[0])).tolist()))
            else:
                row(f"{kind}: yield", able.good)
                row(f"{kind}: sigma level", able.sigma_level)
        return Table("measures", ("", *names), rows)

    def _contributors(self, name: str) -> Table:
        k = self.study.slices[name]
        low, high = (np.asarray(x) for x in self.study.bounds)
        nominal, std = np.asarray(self.study.nominal), np.asarray(self.study.std)
        part = self.first.contribution[k]
        shift = None if self.second is None else self.second.mean_shift[k]
        rows = [
            (
                self.study.names[i], float(nominal[i]), float(low[i] - nominal[i]), float(high[i] - nominal[i]),
                float(std[i]), float(self.first.slopes[k, i]), 100 * float(part[i]), float(self.first.reach[k, i]),
                *(() if shift is None else (float(shift[i]),)),
            )
            for i in np.argsort(-part, kind="stable")
        ]  # fmt: skip
        columns = ("contributor", "nominal", "lower", "upper", "sigma", "sensitivity", "% of variance", "worst case +-")
        return Table(f"contributors of {name}", columns + (() if shift is None else ("mean shift",)), rows)

    def _stroke(self, name: str) -> Table:
        at, study = self.study.slices[name], self.study
        x = np.asarray(study.along.get(name, np.arange(at.stop - at.start)))
        take = lambda y: np.asarray(y)[at].tolist()
        first = self.first
        columns = {"at": x.tolist(), "nominal": take(study.at_nominal.values), "mean": take(first.values)}
        columns |= {"worst case +-": take(first.worst_case), "RSS +-": take(first.rss), "sigma": take(first.std)}
        if self.worst is not None:
            columns |= {"exact lower": take(self.worst.lower), "exact upper": take(self.worst.upper)}
        if self.sample is not None:
            tally = self.sample.tally
            columns |= {"sampled sigma": take(tally.std)}
            levels = self.sample.quantile(name, [0.00135, 0.5, 0.99865])
            columns |= dict(zip(("0.135 %", "50 %", "99.865 %"), map(np.ndarray.tolist, levels)))
            if np.isfinite(np.asarray(study.lower)[at]).any() or np.isfinite(np.asarray(study.upper)[at]).any():
                columns |= {"out so far": self.sample.passage(name).tolist()}
        return Table(f"along the stroke: {name}", tuple(columns), list(zip(*columns.values())))

    def _design_points(self) -> Table:
        rows = [
            (f"{p.value} {p.side}", p.limit, p.beta, 1e6 * p.probability, *map(float, p.dimensions), str(p.converged))
            for p in self.points
        ]
        columns = ("limit", "value", "beta", "ppm (FORM)", *self.study.names, "converged")
        return Table("most likely rejects", columns, rows)

    def _classes(self) -> Table:
        assert self.sample is not None
        rows: list[tuple] = [(name, 100 * p, 100 * e, i) for name, (p, e, i) in self.sample.tally.kinds.items()]
        rejects, error = self.sample.tally.rejects[""]
        rows.append(("rejected by any limit or failure", 100 * rejects, 100 * error, ""))
        return Table("classes of samples", ("class", "%", "standard error", "example"), rows)

    def _sequences(self) -> list[Table]:
        assert self.sample is not None
        tally = self.sample.tally
        if len(tally.sequences) < 2:
            return []
        nominal = int(self.study.at_nominal.sequence)
        rows = [
            (f"{key:08x}{' (nominal)' if key == nominal else ''}", 100 * count / tally.n, example)
            for key, (count, example) in sorted(tally.sequences.items(), key=lambda x: -x[1][0])[:10]
        ]
        p, error = tally.changed
        rows.append(("other than nominal", 100 * p, f"standard error {100 * error:.3g}"))
        return [Table("contact sequences", ("sequence", "%", "example"), rows)]

    def to_csv(self, folder: Any) -> list[pathlib.Path]:
        """Writes each table into a file of its own, and gives their paths."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for table in self.tables:
            name = "".join(c if c.isalnum() else "_" for c in table.title)
            while folder / f"{name}.csv" in paths:
                name += "_"
            paths.append(folder / f"{name}.csv")
            paths[-1].write_text(table.to_csv())
        return paths

    def to_json(self, path: Any) -> pathlib.Path:
        """Writes all tables; numbers that are not finite become null."""
        plain = lambda x: None if isinstance(x, float) and not np.isfinite(x) else x
        content = {
            t.title: {"columns": list(t.columns), "rows": [list(map(plain, row)) for row in t.rows]}
            for t in self.tables
        }
        path = pathlib.Path(path)
        path.write_text(json.dumps(content, indent=1))
        return path

    def to_html(self, path: Any, *, title: str = "Tolerance report") -> pathlib.Path:
        """Writes one page with all tables and pictures in it; it needs nothing else to be looked at."""
        path = pathlib.Path(path)
        path.write_text(page(title, repr(self.study), self.tables, self._pictures()))
        return path

    def _pictures(self) -> list[tuple[str, Callable[[Any], Any]]]:
        """The pictures of all measures: their names, and what draws them into given axes."""
        found: list[tuple[str, Callable[[Any], Any]]] = []
        for name, at in self.study.slices.items():
            draws = [self.bands, self.contributions] if isinstance(at, slice) else [self.pareto]
            if self.sample is not None and not isinstance(at, slice):
                draws += [self.histogram, self.convergence, self.scatter]
            found += [
                (f"{draw.__name__} of {name}", lambda axes, draw=draw, name=name: draw(name, axes=axes))
                for draw in draws
            ]
        return found

    def pareto(self, measure: str, axes: Any = None) -> Any:
        """Contributions to the variance of a measure, the largest first, and their sum."""
        return plots.pareto(self.study, self.first, measure, axes)

    def histogram(self, measure: str, axes: Any = None) -> Any:
        """The samples of a measure with its limits, and the density of the moments of second order."""
        expansion = self.first if self.second is None else self.second
        return plots.histogram(self.study, expansion, self.sample, measure, axes)

    def bands(self, measure: str, axes: Any = None) -> Any:
        """A measure along its stroke, less its nominal course: worst case, RSS, and quantiles of the samples."""
        return plots.bands(self.study, self.first, self.sample, measure, axes)

    def contributions(self, measure: str, axes: Any = None) -> Any:
        """Which dimension contributes where along the stroke."""
        return plots.contributions(self.study, self.first, measure, axes)

    def convergence(self, measure: str, axes: Any = None) -> Any:
        """The mean of the samples against their number, with its 95 % confidence."""
        return plots.convergence(self.study, self.sample, measure, axes)

    def scatter(self, measure: str, contributor: str | None = None, axes: Any = None) -> Any:
        """Samples of a measure against a contributor, by default the one that contributes most."""
        return plots.scatter(self.study, self.first, self.sample, measure, contributor, axes)


def tolerance(
    study: Study,
    *,
    samples: int = 0,
    seed: int = 0,
    method: str = "sobol",
    chunk: int = CHUNK,
    second: bool = True,
    worst: bool = True,
    progress: bool = False,
) -> Report:
    """The whole of a tolerance analysis: sensitivities, worst case, RSS and contributions; moments of second order; the
    design point of every limit; and, with `samples`, what sampling says.

    **Arguments:**

    - `study`: what varies and what is measured.
    - `samples`, `seed`, `method`, `chunk`, `progress`: as for [`mbsjax.monte_carlo`][].
    - `second`, `worst`: whether to expand to second order, and to look for the exact worst case.

    !!! Example

        >>> import mbsjax as mbs
        >>> gap = mbs.Study(lambda p: p, {"hole": 10.0, "pin": 9.9}, {"hole": 0.09, "pin": 0.12},
        ...                 {"gap": lambda p: p["hole"] - p["pin"]}, limits={"gap": (0.0, None)})
        >>> print(mbs.tolerance(gap)["contributors of gap"])
        contributors of gap
        -------------------
        contributor  nominal  lower  upper  sigma  sensitivity  % of variance  worst case +-  mean shift
        pin              9.9  -0.12   0.12   0.04           -1             64           0.12           0
        hole              10  -0.09   0.09   0.03            1             36           0.09           0
    """
    first = first_order(study)
    return Report(
        study,
        first,
        second_order(study, first) if second else None,
        worst_case(study, chunk=chunk) if worst else None,
        form(study),
        monte_carlo(study, samples, seed=seed, method=method, chunk=chunk, progress=progress) if samples else None,
    )
