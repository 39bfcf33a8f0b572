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
from .belief import NO_LIMITS, Belief, RejectEstimate
from .design_points import DesignPoint
from .reliability import Reliability
from .report_data import Contents
from .report_drawing import drawn
from .report_page import page
from .sample import Sample
from .study import Study
from .summary import Found, Summary, gathered, order_yields, ranking, summary, survivors
from .taylor import FirstOrder, SecondOrder
from .trial import Trial
from .worst_case import WorstCase


TARGET = 1.33
"""The Cpk that a measure is to have, unless told otherwise."""


class Report(eqx.Module):
    """What [`mbsjax.tolerance`][] found. `print` shows its tables, the summary first; `report["contributors of phi"]`
    is one of them.

    - `study`, `first`, `second`, `worst`, `points`, `sample`, `rare`: the parts it is made of; None where not asked
        for.
    - `believed`: of each measure, the yield by the method to believe, and why, a [`mbsjax.Belief`][].
    - `to_csv(folder)`, `to_json(path)`: the tables. `to_html(path)`: one page, in which tolerances, mean shifts and
        limits can be changed.
    - `pareto`, `histogram`, `bands`, `contributions`, `convergence`, `scatter`: pictures; they take axes and give them
        back.
    """

    study: Study
    first: FirstOrder
    second: SecondOrder | None
    worst: WorstCase | None
    points: list[DesignPoint]
    sample: Sample | None
    seed: int = eqx.field(static=True, default=0)
    target: float = eqx.field(static=True, default=TARGET)
    units: tuple[tuple[str, str], ...] = eqx.field(static=True, default=())
    rare: Reliability | None = None
    tried: Trial | None = None

    @property
    def tables(self) -> list[Table]:
        single = [name for name, at in self.study.slices.items() if isinstance(at, int)]
        rows = [name for name in self.study.slices if name not in single]
        found = self._found
        lines = summary(found, self.target)
        tables = [self._summary(lines), self._ranking(found)]
        tables += [self._methods(lines)] if self._judged(lines) else []
        tables += [self._measures(found, single)] if single else []
        tables += [self._contributors(name) for name in single]
        tables += [self._stroke(name) for name in rows]
        if self.rare is not None and self.rare.limits:
            tables.append(_rare_table(self.rare))
        if self.points:
            tables.append(self._design_points())
        if self.sample is not None:
            tables += [self._classes(), *self._sequences()]
        return tables

    @property
    def slope_tables(self) -> list[Table]:
        """Those of `tables` that tell which dimensions matter."""
        named = ("ranking", "contributors of ", "along the stroke: ")
        return [table for table in self.tables if table.title.startswith(named)]

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

    @property
    def summary(self) -> list[Summary]:
        """Each measure in a line."""
        return summary(self._found, self.target)

    @property
    def believed(self) -> dict[str, Belief]:
        return {line.measure: line.belief for line in self.summary}

    @property
    def _found(self) -> Found:
        estimates = {} if self.rare is None else {x: _estimate(self.rare, x) for x in self.study.labels}
        known = {k: v for k, v in estimates.items() if v}
        return gathered(self.study, self.first, self.second, self.tried, self.sample, known)

    @staticmethod
    def _judged(lines: list[Summary]) -> bool:
        """Whether there is more to say of a yield than that no measure has limits."""
        return any(x.verdict or x.belief.why != NO_LIMITS for x in lines)

    def _summary(self, lines: list[Summary]) -> Table:
        if not self._judged(lines):
            rows = [(x.measure, x.contributor, 100 * x.part) for x in lines]
            return Table("summary", ("measure", "main contributor", "% of variance"), rows)
        lower, upper = np.asarray(self.study.lower), np.asarray(self.study.upper)
        rows = [
            (
                x.measure, float(lower[x.at]), float(upper[x.at]), x.belief.good, x.belief.error, x.belief.method,
                x.cpk, x.cpk_of, x.verdict or "no limits", x.contributor, 100 * x.part,
            )
            for x in lines
        ]  # fmt: skip
        columns = ("measure", "lower limit", "upper limit", "yield", "+-", "by", "Cpk", "Cpk of", "verdict")
        return Table("summary", (*columns, "main contributor", "% of variance"), rows)

    def _ranking(self, found: Found) -> Table:
        rows = [(x.name, 100 * x.largest, x.measure, *(100 * p for p in x.parts)) for x in ranking(found)]
        columns = ("dimension", "largest % of variance", "of", *(f"% of {name}" for name in self.study.labels))
        return Table("ranking", columns, rows)

    def _methods(self, lines: list[Summary]) -> Table:
        rows = [
            (x.measure, x.belief.method or "none", x.belief.good, x.belief.error, x.belief.why)
            for x in lines
        ]  # fmt: skip
        return Table("which method to believe", ("measure", "method", "yield", "standard error", "why"), rows)

    def _measures(self, what: Found, names: list[str]) -> Table:
        """One column for each measure, one row for each number about it."""
        at = [self.study.slices[name] for name in names]
        first, second, worst = self.first, self.second, self.worst
        rows: list[tuple] = []

        def row(label: str, x: Any, factor: float = 1.0) -> None:
            rows.append((label, *(float(v) * factor for v in np.asarray(x)[at])))

        limited = bool(np.isfinite([self.study.lower, self.study.upper])[:, at].any())
        row("nominal", self.study.at_nominal.values)
        if limited:
            row("lower limit", self.study.lower)
            row("upper limit", self.study.upper)
        row("worst case, linear, lower", first.middle - first.worst_case)
        row("worst case, linear, upper", first.middle + first.worst_case)
        if worst is not None:
            row("worst case, exact, lower", worst.lower)
            row("worst case, exact, upper", worst.upper)
            rows.append(("  how the lower one is known", *(worst.basis_lower[k] for k in at)))
            rows.append(("  how the upper one is known", *(worst.basis_upper[k] for k in at)))
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
            if kind == "second order" and second is not None:
                row("second order: misfit at a handful of samples, % of sigma", second.misfit, 100.0)
            if tally is not None:
                row("sampled: least", tally.least)
                row("sampled: largest", tally.largest)
            if not limited:
                continue
            p, only = "Cp", ""
            if self.sample is not None and tally is not None:
                p, only = "Pp", " of survivors" if any(survivors(self.sample, k) for k in at) else ""
            row(f"{kind}: {p}{only}", able.cp)
            row(f"{kind}: {p}k{only}", able.cpk)
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
                rows.append(("  its error", *(_order_error(what, name, kind) for name in names)))
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
                *(() if shift is None else (float(shift[i]),)), *self._units_of(name, self.study.names[i]),
            )
            for i in np.argsort(-part, kind="stable")
        ]  # fmt: skip
        columns = ("contributor", "nominal", "lower", "upper", "sigma", "sensitivity", "% of variance", "worst case +-")
        more = (() if shift is None else ("mean shift",)) + (("unit", "of sensitivity") if self.units else ())
        return Table(f"contributors of {name}", columns + more, rows)

    def _units_of(self, measure: str, contributor: str) -> tuple[str, ...]:
        """The unit of a dimension, and that of its sensitivity; nothing where no units were said."""
        known = dict(self.units)
        of, its = known.get(measure, ""), known.get(contributor.partition("[")[0], "")
        ratio = "" if not (of and its) else "1" if of == its else f"{of}/{f'({its})' if '/' in its else its}"
        return (its, ratio) if known else ()

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
            (
                f"{p.value} {p.side}".strip(),
                p.limit,
                p.beta,
                1e6 * p.probability,
                *map(float, p.dimensions),
                str(p.converged),
            )
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

    def to_html(self, path: Any, *, title: str = "Tolerance report", mechanism: bool = True) -> pathlib.Path:
        """Writes one page, which needs nothing else: a summary, a ranking of all dimensions, and all tables. In it,
        tolerances, mean shifts, standard deviations and limits can be changed: what first and second order say follows
        at once, by the exact derivatives that are in the page. Changes can be saved as tables of a model file.

        `mechanism` is whether to show the mechanism, with sliders that move it by its derivatives: these take a
        program of their own, and the study must be of a motion or a position.
        """
        path = pathlib.Path(path)
        drawing = drawn(self.study) if mechanism else None
        shown = Contents(
            title, self._found, self.worst, self.tables, self.summary, self._pictures(), drawing, self.seed,
            self.target, dict(self.units),
        )  # fmt: skip
        path.write_text(page(shown), encoding="utf-8")
        return path

    def _pictures(self) -> list[tuple[str, str, Callable[[Any], Any]]]:
        """Pictures that the page does not draw itself: the measure, a name, and what draws it into given axes."""
        found: list[tuple[str, str, Callable[[Any], Any]]] = []
        for name, at in self.study.slices.items():
            draws = [self.bands, self.contributions] if isinstance(at, slice) else []
            if self.sample is not None and not isinstance(at, slice):
                draws += [self.scatter, self.convergence]
            found += [
                (name, f"{draw.__name__} of {name}", lambda axes, draw=draw, name=name: draw(name, axes=axes))
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


def _order_error(found: Found, name: str, kind: str) -> float:
    """How far the yield of a measure by an order may be off; NaN without limits."""
    at = found.study.slices[name]
    limited = np.isfinite([found.study.lower[at], found.study.upper[at]]).any()
    return order_yields(found, name)[list(found.able).index(kind)].error if limited else np.nan


def _estimate(rare: Reliability, name: str) -> RejectEstimate | None:
    """Rejects of a measure at both limits together, and of what has no value."""
    mine = [x for x in rare.limits if x.value == name]
    if not mine:
        return None
    found = rare.rejects[name]
    return RejectEstimate(float(found.probability), float(found.error), all(bool(x.trusted) for x in mine))


def _rare_table(rare: Reliability) -> Table:
    rows: list[tuple] = [
        (
            f"{x.value} {x.side}".strip(), 1e6 * x.probability, 1e6 * x.error, x.method, "yes" if x.trusted else "NO",
            len([p for p in x.points if p.converged]), 1e6 * x.form, 1e6 * x.breitung, 1e6 * x.hohenbichler, x.why,
        )
        for x in (*rare.limits, *([] if rare.no_value is None else [rare.no_value]))
    ]  # fmt: skip
    any_of_them = (1e6 * rare.reject.probability, 1e6 * rare.reject.error, "", "yes" if rare.trusted else "NO")
    rows.append(("any of them", *any_of_them, "", np.nan, np.nan, np.nan, ""))
    columns = (
        "limit",
        "ppm",
        "standard error",
        "by",
        "trusted",
        "design points",
        "FORM",
        "SORM",
        "SORM corrected",
        "why",
    )
    return Table("rare rejects", columns, rows)
