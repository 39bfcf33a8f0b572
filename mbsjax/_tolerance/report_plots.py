"""Pictures of a tolerance study."""

from typing import Any

import numpy as np
import scipy

from .._pictures.style import canvas, plain as _plain
from .sample import Sample
from .study import Study
from .taylor import FirstOrder, SecondOrder


def _axes(axes: Any) -> Any:
    return canvas(axes, size=(6.4, 4.0))[0]


def _at(study: Study, measure: str, row: bool) -> Any:
    slices = study.slices
    if measure not in slices:
        raise ValueError(f"there is no measure {measure!r}; there are {', '.join(slices)}")
    at = slices[measure]
    if isinstance(at, slice) != row:
        raise ValueError(
            f"the measure {measure!r} is {'one number' if row else 'a row of numbers'}, not what this shows"
        )
    return at


def _empty(axes: Any, x: np.ndarray, measure: str) -> bool:
    if len(x) == 0:
        axes.set(title=f"{_plain(measure)}: no sample has a value")
    return len(x) == 0


def _sampled(sample: Sample | None) -> Sample:
    if sample is None:
        raise ValueError("this picture needs samples: call `tolerance` with `samples`")
    return sample


def pareto(study: Study, first: FirstOrder, measure: str, axes: Any = None) -> Any:
    axes, k = _axes(axes), _at(study, measure, False)
    part = 100 * first.contribution[k]
    order = np.argsort(-part, kind="stable")[:15]
    colors = ["tab:blue" if first.slopes[k, i] >= 0 else "tab:red" for i in order]
    axes.bar(range(len(order)), part[order], color=colors)
    axes.plot(range(len(order)), np.cumsum(part[order]), "o-", color="0.3", ms=3)
    axes.set_xticks(range(len(order)), [_plain(study.names[i]) for i in order], rotation=30, ha="right")
    axes.set(ylabel="% of variance", title=f"{_plain(measure)}: contributions (blue: grows with it, red: falls)")
    return axes


def histogram(
    study: Study, expansion: FirstOrder | SecondOrder, sample: Sample | None, measure: str, axes: Any = None
) -> Any:
    axes, k = _axes(axes), _at(study, measure, False)
    sample = _sampled(sample)
    x = sample.values[:, k]
    x = x[np.isfinite(x)]
    if _empty(axes, x, measure):
        return axes
    lower, upper = float(study.lower[k]), float(study.upper[k])
    edges = np.linspace(x.min(), x.max(), 81) if np.ptp(x) > 0 else 10
    _, edges, bars = axes.hist(x, edges, color="tab:green", alpha=0.8)
    for bar in bars.patches:
        if bar.get_x() < lower or bar.get_x() + bar.get_width() > upper:
            bar.set_facecolor("tab:red")
    moments = expansion.moments
    mean, std = float(moments.mean[k]), float(moments.std[k])
    if std > 0 and np.ptp(x) > 0:
        density = len(x) * np.diff(scipy.special.ndtr((edges - mean) / std))
        axes.plot((edges[1:] + edges[:-1]) / 2, density, color="k", lw=1, label="normal, by derivatives")
    for limit in (lower, upper):
        if np.isfinite(limit):
            axes.axvline(limit, color="tab:red", ls="--", lw=1)
    axes.axvline(float(study.at_nominal.values[k]), color="0.4", lw=1, label="nominal")
    able, only = sample.tally.capability, " of survivors" if len(x) < len(sample.values) else ""
    axes.set(xlabel=_plain(measure), ylabel="samples", title=f"{len(x)} samples, Ppk{only} {able.cpk[k]:.3g}")
    axes.legend(fontsize=8)
    return axes


def bands(study: Study, first: FirstOrder, sample: Sample | None, measure: str, axes: Any = None) -> Any:
    axes, at = _axes(axes), _at(study, measure, True)
    nominal = np.asarray(study.at_nominal.values)[at]
    x = np.asarray(study.along.get(measure, np.arange(len(nominal))))
    middle = first.middle[at] - nominal
    for half, color, label in ((first.worst_case[at], "0.9", "worst case"), (first.rss[at], "0.75", "RSS")):
        axes.fill_between(x, middle - half, middle + half, color=color, label=label)
    if sample is not None:
        levels = sample.quantile(measure, [0.00135, 0.5, 0.99865]) - nominal
        for level, style in zip(levels, ("--", "-", "--")):
            axes.plot(x, level, style, color="tab:blue", lw=1)
        axes.plot([], [], "--", color="tab:blue", label="0.135, 50, 99.865 % of the samples")
    for limit in (study.lower, study.upper):
        limit = np.asarray(limit)[at]
        if np.isfinite(limit).any():
            axes.plot(x, limit - nominal, color="tab:red", lw=1)
    axes.set(ylabel=f"{_plain(measure)} less nominal", xlabel="along the stroke", title=f"{_plain(measure)}: bands")
    axes.legend(fontsize=8)
    return axes


def contributions(study: Study, first: FirstOrder, measure: str, axes: Any = None) -> Any:
    axes, at = _axes(axes), _at(study, measure, True)
    parts = first.slopes[at] * np.asarray(study.std)
    x = np.asarray(study.along.get(measure, np.arange(len(parts))))
    order = np.argsort(-(parts**2).sum(0), kind="stable")[:8]
    axes.stackplot(x, (parts[:, order] ** 2).T, labels=[_plain(study.names[i]) for i in order])
    axes.set(ylabel="variance", xlabel="along the stroke", title=f"{_plain(measure)}: contributions")
    axes.legend(fontsize=8)
    return axes


def convergence(study: Study, sample: Sample | None, measure: str, axes: Any = None) -> Any:
    axes, k = _axes(axes), _at(study, measure, False)
    x = _sampled(sample).values[:, k]
    x = x[np.isfinite(x)]
    if _empty(axes, x, measure):
        return axes
    n = np.unique(np.geomspace(min(32, len(x)), len(x), 60).astype(int))
    total, square = np.cumsum(x - x[0]), np.cumsum((x - x[0]) ** 2)
    mean = total[n - 1] / n
    error = 1.96 * np.sqrt(np.maximum(square[n - 1] / n - mean**2, 0.0) / n)
    axes.fill_between(n, x[0] + mean - error, x[0] + mean + error, color="0.85", label="95 %, if independent")
    axes.plot(n, x[0] + mean, color="tab:blue", label="mean")
    axes.set(
        xscale="log", xlabel="samples", ylabel=_plain(measure), title=f"{_plain(measure)}: convergence of the mean"
    )
    axes.legend(fontsize=8)
    return axes


def scatter(
    study: Study,
    first: FirstOrder,
    sample: Sample | None,
    measure: str,
    contributor: str | None = None,
    axes: Any = None,
) -> Any:
    axes, k = _axes(axes), _at(study, measure, False)
    sample, names = _sampled(sample), study.names
    if contributor is not None and contributor not in names:
        raise ValueError(f"there is no contributor {contributor!r}; there are {', '.join(names)}")
    i = int(np.argmax(first.contribution[k])) if contributor is None else names.index(contributor)
    shown = np.arange(min(2000, len(sample.values)))
    x, y = sample.dimensions(shown)[:, i], sample.values[shown, k]
    changed = sample.kind[shown] > 0
    axes.plot(x[~changed], y[~changed], ".", ms=3, color="tab:blue", label="as nominal")
    if changed.any():
        axes.plot(x[changed], y[changed], ".", ms=4, color="tab:red", label="another class")
    mean = float(study.mean[i])
    ends = np.array([x.min(), x.max()])
    axes.plot(ends, first.values[k] + first.slopes[k, i] * (ends - mean), color="k", lw=1, label="slope")
    axes.set(xlabel=_plain(names[i]), ylabel=_plain(measure), title=f"{_plain(measure)} against {_plain(names[i])}")
    axes.legend(fontsize=8)
    return axes
