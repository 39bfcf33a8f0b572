"""The whole of a tolerance analysis, one step after the other."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._programs.called import beforehand
from .design_points import form
from .evaluate import CHUNK, prepare_samples
from .reliability import reliability
from .report import TARGET, Report
from .sample import monte_carlo
from .sampler import sampler
from .study import Study
from .summary import group_names
from .taylor import SecondOrder, expanded, first_order
from .trial import POOR, trial
from .worst_case import worst_case


FEW = 512
"""How many samples are drawn where none were asked for and derivatives do not do."""


class Step(NamedTuple):
    """One step of an analysis: what it finds, from the report so far, by the fields of the next one."""

    name: str
    found: Callable[[Report], dict[str, Any]]


def tolerance(
    study: Study,
    *,
    samples: int = 0,
    seed: int = 0,
    method: str = "sobol",
    chunk: int = CHUNK,
    second: bool = True,
    worst: bool | str = "limited",
    progress: bool = False,
    target: float = TARGET,
    units: Mapping[str, str] | None = None,
    rare: int = 0,
) -> Report:
    """The whole of a tolerance analysis: sensitivities, worst case, RSS and contributions; moments of second order; the
    design point of every limit; and, with `samples`, what sampling says. Where none are asked for, and a measure with
    limits has a kink at its mean or is not described by second order for another reason, a few hundred are drawn.

    **Arguments:**

    - `study`: what varies and what is measured.
    - `samples`, `seed`, `method`, `chunk`, `progress`: as for [`mbsjax.monte_carlo`][].
    - `second`: whether to expand to second order, and to look for the design points; or to stop at slopes.
    - `worst`: whether to look for the exact worst case; `"limited"` searches inside the tolerances for measures that
        have limits, and looks at corners for the others.
    - `target`: what every measure with limits is to reach: a Cpk, or, if it is below 1, a yield.
    - `units`: of dimensions and measures, by name, to be shown in the page.
    - `rare`: with so many samples, [`mbsjax.reliability`][] tells how likely each limit is broken, however rarely.

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
        >>> mbs.tolerance(gap, target=0.97).believed["gap"].method, mbs.tolerance(gap, target=0.97).summary[0].verdict
        ('second order', 'pass')
    """
    asked = steps(study, samples, seed, method, chunk, second=second, worst=worst, progress=progress, rare=rare)
    report = slopes(study, seed=seed, target=target, units=units)
    for step in asked:
        report = dataclasses.replace(report, **step.found(report))
    return report


def slopes(study: Study, *, seed: int, target: float, units: Mapping[str, str] | None) -> Report:
    """The first step: a report of slopes alone."""
    named = group_names(study) + list(study.names) + list(study.labels)
    for name in dict(units or {}):
        if name not in named:
            raise ValueError(f"`units` names {name!r}, which is neither a dimension nor a measure")
    if not target > 0:
        raise ValueError(f"the target must be a Cpk, or a yield below 1, got {target!r}")
    shown = tuple(dict(units or {}).items())
    return Report(study, first_order(study), None, None, [], None, int(seed), float(target), shown, tried=trial(study))


def steps(
    study: Study,
    samples: int,
    seed: int,
    method: str = "sobol",
    chunk: int = CHUNK,
    *,
    second: bool,
    worst: bool | str,
    progress: bool,
    rare: int,
) -> list[Step]:
    """The steps after the first, as far as they are asked for. Their largest program is made from now on."""
    if samples > 0:
        plan = lambda: sampler(method, samples, len(study.names), seed)
        beforehand(lambda: prepare_samples(study, plan(), min(chunk, samples)))
    limited = _limited(study)
    drawn = lambda n: monte_carlo(study, n, seed=seed, method=method, chunk=min(chunk, n), progress=progress)

    def bent(report: Report) -> dict[str, Any]:
        """Second order; and where it does not do and no samples are asked for, a few."""
        assert report.tried is not None
        order = expanded(report.first, report.tried)
        poor = any(_poor(study, order, name) for name in limited)
        return {"second": order} | ({"sample": drawn(FEW)} if poor and not samples else {})

    found = []
    if second:
        found.append(Step("second order", bent))
    if worst:
        inside = limited if worst == "limited" else study.labels
        found.append(Step("worst case", lambda _: {"worst": worst_case(study, chunk=chunk, inside=inside)}))
    if second and limited and not rare:
        found.append(Step("most likely rejects", lambda _: {"points": form(study, starts=3, max_steps=30)}))
    if samples:
        found.append(Step(f"{samples} samples", lambda _: {"sample": drawn(samples)}))
    if rare:
        found.append(Step("rare rejects", lambda _: _rare(study, rare, seed, chunk)))
    return found


def _poor(study: Study, order: SecondOrder, name: str) -> bool:
    """Whether second order does not describe a measure, at any place that has limits."""
    at = study.slices[name]
    there = np.isfinite(np.asarray(study.lower)[at]) | np.isfinite(np.asarray(study.upper)[at])
    return not np.all(np.where(there, order.misfit[at], 0.0) <= POOR)


def _limited(study: Study) -> tuple[str, ...]:
    """The measures that have limits."""
    there = np.isfinite(np.asarray(study.lower)) | np.isfinite(np.asarray(study.upper))
    return tuple(name for name, at in study.slices.items() if np.any(there[at]))


def _rare(study: Study, n: int, seed: int, chunk: int) -> dict[str, Any]:
    found = reliability(study, n, seed=seed, chunk=chunk)
    points = [p for x in found.limits for p in x.points if p.value in study.columns]
    return {"rare": found, "points": points + ([] if found.no_value is None else list(found.no_value.points))}
