"""Statistics of samples, made on the device chunk by chunk, against NumPy on all samples at once."""

import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from mbsjax._tolerance.evaluate import sampled_in_chunks, statistics_of
from mbsjax._tolerance.sampler import sampler
from mbsjax._tolerance.statistics import Scale, scale_of
from mbsjax._tolerance.study import Evaluation
from mbsjax._tolerance.tally import CompensatedSum, Tally


ROW = 5


def measures(p: dict) -> dict:
    """A number with mean 1e8, one that is missing now and then, one without limits, a row that is partly missing."""
    a, b = p["a"], p["b"]
    row = a * jnp.arange(1.0, ROW + 1)
    return {
        "far": 1e8 + a + 0.3 * a**2,
        "gaps": jnp.where(b > 0.25, jnp.nan, jnp.where(b < -0.28, jnp.inf, a * b)),
        "free": b**3 - b,
        "row": jnp.where((jnp.arange(ROW) == 3) & (a > 1.5), jnp.nan, row),
    }


@pytest.fixture(scope="module")
def study():
    return mbs.Study(
        measures, {"a": 0.0, "b": 0.0}, {"a": mbs.Normal(sigma=1.0), "b": mbs.Uniform(0.3)},
        {name: lambda found, name=name: found[name] for name in ("far", "gaps", "free", "row")},
        limits={"far": (1e8 - 0.8, 1e8 + 3.0), "gaps": (None, 0.3), "row": (-6.0, np.linspace(2.0, 8.0, ROW))},
    )  # fmt: skip


@pytest.fixture(scope="module", params=[("random", 200), ("random", 192), ("latin", 200), ("sobol", 200)], ids=str)
def sample(study, request):
    method, chunk = request.param
    return mbs.monte_carlo(study, 1500, method=method, chunk=chunk, seed=3)  # the last chunk is filled in part


def wrong(sample: mbs.Sample) -> np.ndarray:
    x, study = sample.values, sample.study
    return ~((x >= np.asarray(study.lower)) & (x <= np.asarray(study.upper)) & np.isfinite(x))


def group(sample: mbs.Sample) -> np.ndarray:
    return sample.sampler.group(np.arange(len(sample.kind)))


def test_moments_and_extremes(sample):
    x = np.where(np.isfinite(sample.values), sample.values, np.nan).astype(np.longdouble)
    tally, middle = sample.tally, np.nanmean(x, 0)
    z = x - middle
    np.testing.assert_array_equal(tally.count, np.isfinite(x).sum(0))
    np.testing.assert_allclose(tally.mean, middle, rtol=3e-16, atol=1e-14)
    np.testing.assert_allclose(tally.std, np.nanstd(x, 0, ddof=1), rtol=1e-12)
    variance = np.nanmean(z**2, 0)
    np.testing.assert_allclose(tally.moments.skewness, np.nanmean(z**3, 0) / variance**1.5, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(tally.moments.kurtosis, np.nanmean(z**4, 0) / variance**2, rtol=1e-11)
    np.testing.assert_array_equal(tally.least, np.nanmin(x, 0))
    np.testing.assert_array_equal(tally.largest, np.nanmax(x, 0))


def test_sums_and_counts_by_group(sample):
    tally, g = sample.tally, group(sample)
    x, bad = sample.values, wrong(sample)
    there = np.isfinite(x)
    z = np.where(there, (x - tally.scale.origin) / tally.scale.width, 0.0)
    slices = sample.study.slices.values()
    measure = np.stack([bad[:, at].reshape(len(x), -1).any(1) for at in slices], 1)
    for k in range(tally.powers.shape[0]):
        own = g == k
        assert tally.drawn[k] == own.sum()
        for power in range(5):
            sums = np.sum(np.where(there, z**power, 0.0)[own], 0)
            np.testing.assert_allclose(tally.powers[k, power], sums, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(tally.bad[k, :-1], measure[own].sum(0))
        assert tally.bad[k, -1] == measure[own].any(1).sum()
        np.testing.assert_array_equal(tally.tails[k, 0], (there & (x < tally.lower))[own].sum(0))
        np.testing.assert_array_equal(tally.tails[k, 1], (there & (x > tally.upper))[own].sum(0))


def test_histograms_and_quantiles(sample):
    tally = sample.tally
    for k, name in enumerate(sample.study.columns):
        x = sample.values[np.isfinite(sample.values[:, k]), k]
        edges = np.concatenate([[-np.inf], tally.edges[k], [np.inf]])
        expected = np.histogram(x, edges)[0]
        if name == "far":  # a value on an edge may be rounded to either side
            assert np.abs(np.cumsum(tally.bins[k] - expected)).max() <= 1
        else:
            np.testing.assert_array_equal(tally.bins[k], expected)
        p = np.array([0.01, 0.3, 0.5, 0.99])
        bin_ = tally.edges[k, 1] - tally.edges[k, 0]
        exact = np.quantile(x, [np.maximum(p - 1 / len(x), 0), np.minimum(p + 1 / len(x), 1)])
        found = tally.quantile(p)[:, k]
        assert np.all((found > exact[0] - bin_) & (found < exact[1] + bin_))
    assert sample.quantiles([0.2, 0.8])["row"].shape == (2, ROW)
    np.testing.assert_array_equal(sample.quantiles(0.5)["free"], np.median(sample["free"]))


def test_classes_and_their_examples(sample):
    for k, name in enumerate(mbs.CLASSES):
        at = np.flatnonzero(sample.kind == k)
        assert sample.tally.classes[k] == len(at)
        assert sample.tally.examples[k] == (at[0] if len(at) else -1)
        assert (name in sample.tally.kinds) == bool(len(at))
    assert {"as nominal", "no value"} <= set(sample.tally.kinds)


def test_regression_is_least_squares(sample):
    x = sample.dimensions(slice(None)) - np.asarray(sample.study.mean)
    for name in ("far", "gaps", "free"):
        y = sample[name]
        used = np.isfinite(y) & (sample.kind == 0)
        X, y = np.c_[np.ones(used.sum()), x[used]], y[used] - np.mean(y[used])
        slopes, *_ = np.linalg.lstsq(X, y, rcond=None)
        left = y - X @ slopes
        errors = np.sqrt(np.diag(np.linalg.inv(X.T @ X)) * (left @ left) / (len(y) - 3))
        found = sample.regression(name)
        assert found.samples == used.sum()
        np.testing.assert_allclose(found.slopes, slopes[1:], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(found.errors, errors[1:], rtol=1e-10)
        np.testing.assert_allclose(found.explained, 1 - left.var() / y.var(), rtol=1e-12)
    with pytest.raises(ValueError, match="the measure 'row' is a row of numbers"):
        sample.regression("row")
    with pytest.raises(ValueError, match="there is no measure 'height'; there are far, gaps, free, row"):
        sample.regression("height")


def margins(sample: mbs.Sample, name: str) -> np.ndarray:
    study, scale, at = sample.study, sample.tally.scale, sample.study.slices[name]
    x = sample[name].reshape(len(sample.kind), -1)
    lower, upper = np.asarray(study.lower)[at], np.asarray(study.upper)[at]
    away = np.minimum(x - lower, upper - x) if name != "free" else -np.abs(x - scale.origin[at])
    return np.where(np.isfinite(x).all(1), np.min(away / scale.width[at], 1), np.inf)


def test_the_worst_are_those_of_smallest_margin(sample):
    for name in sample.study.labels:
        expected = margins(sample, name)
        order = np.argsort(expected, kind="stable")[:32]
        worst = sample.worst(32, name)
        np.testing.assert_array_equal([entry.number for entry in worst], order)
        np.testing.assert_allclose([entry.margin for entry in worst], expected[order], rtol=1e-12)
        for entry in worst[::8]:
            assert entry.measure == name
            np.testing.assert_array_equal(list(entry.dimensions.values()), sample.dimensions(entry.number)[0])
            for label, value in entry.values.items():
                np.testing.assert_array_equal(value, sample[label][entry.number])
    limited = np.stack([margins(sample, name) for name in ("far", "gaps", "row")])
    order = np.argsort(limited.min(0), kind="stable")[:10]
    every = sample.worst()
    np.testing.assert_array_equal([entry.number for entry in every], order)
    assert [entry.measure for entry in every] == [("far", "gaps", "row")[k] for k in limited[:, order].argmin(0)]
    with pytest.raises(ValueError, match="the 32 worst samples are known, not 33"):
        sample.worst(33)
    with pytest.raises(ValueError, match="there is no measure 'height'"):
        sample.worst(3, "height")


def test_the_yield_converges(study):
    chunk = 200
    sample = mbs.monte_carlo(study, 1500, chunk=chunk, seed=3)
    good, found = ~wrong(sample).any(1), sample.convergence
    np.testing.assert_array_equal(found.n, np.minimum(np.arange(1, 9) * chunk, 1500))
    expected = np.array([good[:n].mean() for n in found.n])
    np.testing.assert_allclose(found.part, expected, rtol=1e-14)
    np.testing.assert_allclose(found.error, np.sqrt(expected * (1 - expected) / found.n), rtol=1e-12)


def test_of_many_chunks_some_points_of_convergence_are_kept(study):
    plan = sampler("random", 8, 2, 0)
    (chunk,) = sampled_in_chunks(study, plan, 8, 8)
    tally = Tally(study, plan, chunk.statistics.scale)
    for _ in range(1501):
        tally.merge(chunk.statistics)
    n = tally.convergence.n
    assert len(n) <= 513 and n[-1] == 8 * 1501 and set(np.diff(n[:-1])) == {8 * 4}


def test_one_chunk_or_many(study):
    one, many = (mbs.monte_carlo(study, 1500, chunk=chunk).tally for chunk in (1500, 60))
    for a, b in zip(one.moments, many.moments):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    for a, b in zip(one.errors, many.errors):
        np.testing.assert_allclose(a, b, rtol=1e-11)
    limited = [0, 1, 3]  # without limits, the origin counts, which is that of the first chunk
    np.testing.assert_array_equal(one.numbers[limited], many.numbers[limited])
    np.testing.assert_array_equal(one.bad, many.bad)


@pytest.mark.parametrize("method", ["random", "sobol"])
def test_read_from_a_store_statistics_have_the_same_bits(study, method):
    plan = sampler(method, 500, 2, 1)
    for chunk in sampled_in_chunks(study, plan, 500, 200):
        stored = Evaluation(chunk.found.values, chunk.found.kind.astype(np.int8), chunk.found.sequence)
        scale = chunk.statistics.scale
        again = statistics_of(study, plan, scale, chunk.number, 200, 500, stored)
        for x, y in zip(chunk.statistics, again):
            np.testing.assert_array_equal(x, y)
        if chunk.number == 0:
            np.testing.assert_array_equal(scale_of(study, stored), scale)


def test_chunks_without_values(study):
    plan = sampler("random", 500, 2, 1)
    for chunk, bare in zip(*(sampled_in_chunks(study, plan, 500, 200, values=v) for v in (True, False)), strict=True):
        assert bare.found is None
        np.testing.assert_array_equal(bare.index, chunk.index)
        np.testing.assert_array_equal(bare.statistics.powers, chunk.statistics.powers)


def test_a_first_chunk_without_values_is_measured_by_the_nominal():
    late = mbs.Study(
        lambda p: p, {"a": 0.0}, {"a": 0.3}, {"y": lambda p: jnp.where(jnp.abs(p["a"]) < 0.1, 5.0 + p["a"], jnp.nan)}
    )  # fmt: skip
    plan = sampler("random", 300, 1, 0)
    x = np.asarray(late.at_nominal.values)
    scale = scale_of(late, Evaluation(np.full((64, 1), np.nan), np.zeros(64, int), np.zeros(64, int)))
    np.testing.assert_array_equal(scale, Scale(x, np.ones(1)))
    tally, values = Tally(late, plan, scale), []
    for chunk in sampled_in_chunks(late, plan, 300, 64, scale=scale):
        tally.merge(chunk.statistics)
        values.append(chunk.found.values)
    values = np.concatenate(values)
    np.testing.assert_allclose(tally.mean, np.nanmean(values), rtol=1e-15)
    np.testing.assert_allclose(tally.std, np.nanstd(values, ddof=1), rtol=1e-12)
    assert tally.kinds["no value"][0] == np.isnan(values).mean()


@pytest.mark.parametrize("distinct", [1, 7, 256, 257, 600])
def test_sequences_however_many(study, distinct):
    n, chunk = 1500, 700
    rng = np.random.default_rng(distinct)
    sequence = rng.choice(rng.integers(0, 2**32, distinct, dtype=np.uint32), n)
    plan, nominal = sampler("random", n, 2, 0), np.asarray(study.at_nominal.values)
    scale = Scale(nominal, np.ones(len(nominal)))
    tally = Tally(study, plan, scale)
    for k in range(3):
        own = sequence[k * chunk : (k + 1) * chunk]
        found = Evaluation(np.tile(nominal, (len(own), 1)), np.zeros(len(own), int), own)
        tally.merge(statistics_of(study, plan, scale, k, chunk, n, found))
    keys, first, count = np.unique(sequence, return_index=True, return_counts=True)
    assert tally.sequences == {int(k): (int(c), int(i)) for k, c, i in zip(keys, count, first)}


def test_compensated_sums_lose_nothing():
    rng = np.random.default_rng(0)
    parts = rng.normal(size=(2000, 3)) * 10.0 ** rng.integers(-8, 8, (2000, 3))
    total = CompensatedSum((3,))
    for part in parts:
        total.add(part)
    exact = parts.astype(np.longdouble).sum(0)
    np.testing.assert_allclose(total.value, exact.astype(float), rtol=4e-16)


def test_a_sample_is_seen_again(study, tmp_path):
    crank = mbs.Mechanism([mbs.Body("crank", points={"E": (1.0, 0.0)})], [mbs.Revolute("A", "ground", "crank")])
    ts = jnp.linspace(0.0, 1.0, 5)
    turning = mbs.Study(
        lambda p: mbs.kinematics(crank, {"A": mbs.constant_speed(p["speed"])}, ts, throw=False),
        {"speed": 1.0}, {"speed": 0.1}, {"end": lambda m: m["A"].q[-1]}, limits={"end": (0.9, 1.1)},
    )  # fmt: skip
    sample = mbs.monte_carlo(turning, 64, chunk=64)
    (worst,) = sample.worst(1)
    assert abs(worst.values["end"] - 1) == np.abs(sample["end"] - 1).max()
    np.testing.assert_allclose(sample.outcome(worst.number)["A"].q[-1], worst.values["end"], rtol=1e-12)
    page = sample.view(worst.number, tmp_path / "pages" / "worst.html")
    assert f"<title>Sample {worst.number}</title>" in page.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="there is no sample 64, but 0 to 63"):
        sample.view(64, tmp_path / "none.html")
    with pytest.raises(ValueError, match="where the model of the study gives a Motion or a Solution"):
        mbs.monte_carlo(study, 60, chunk=60).view(0, tmp_path / "none.html")


def test_a_campaign_tells_what_its_samples_tell(study, tmp_path):
    sample = mbs.monte_carlo(study, 500, chunk=200, seed=1)
    kept = mbs.campaign(study, 500, tmp_path, chunk=200, seed=1, progress=False)
    bare = mbs.campaign(study, 500, chunk=200, seed=1, progress=False)
    for done in (kept, bare):
        assert repr(done.worst(5)) == repr(sample.worst(5))
        np.testing.assert_array_equal(done.regression("free").slopes, sample.regression("free").slopes)
        np.testing.assert_array_equal(done.convergence, sample.convergence)
        assert done.outcome(7)["free"] == sample.outcome(7)["free"]
        for name, found in done.quantiles([0.1, 0.9]).items():
            at = study.slices[name]
            np.testing.assert_array_equal(found, sample.tally.quantile([0.1, 0.9])[:, at])
            assert done.quantile(name, 0.5).shape == np.shape(sample.quantile(name, 0.5))
    parts = list(kept.samples())
    assert [len(part.kind) for part in parts] == [200, 200, 100]
    np.testing.assert_array_equal(np.concatenate([part.values for part in parts]), sample.values)
    np.testing.assert_array_equal(parts[1].dimensions([0, 5]), sample.dimensions([200, 205]))
    np.testing.assert_allclose(parts[2].tally.mean[2], sample["free"][400:].mean(), rtol=1e-12)
    worst = parts[2].worst(1, "free")[0]
    assert parts[2].outcome(worst.number)["free"] == sample["free"][worst.number] == worst.values["free"]
    with pytest.raises(ValueError, match="there is no sample 7, but 400 to 499"):
        parts[2].outcome(7)
    with pytest.raises(ValueError, match="its samples need a store"):
        next(bare.samples())
    with pytest.raises(ValueError, match="there is no measure 'height'"):
        bare.quantile("height", 0.5)
