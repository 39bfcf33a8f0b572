"""The report of a tolerance study: what it says first, which method it believes, and the page that recomputes."""

import json
import re
import tomllib

import jax.numpy as jnp
import numpy as np
import pytest
import scipy
from click.testing import CliRunner

import mbsjax as mbs
from mbsjax._cli.main import main
from mbsjax._tolerance.belief import Order, RejectEstimate, SampledYield, believe
from mbsjax._tolerance.report_drawing import _radius


HOSTILE = "</script><b onclick=1>&amp; \u2028'\" {{DATA}}"
NOMINAL = {"a": 3.0, "b": 2.0, HOSTILE: 1.0, "play": 0.0, "form": np.array([0.5, 0.4])}
TOLERANCES = {
    "a": mbs.Normal(0.06),
    "b": mbs.Uniform((-0.02, 0.05)),
    HOSTILE: mbs.Normal(0.03, shift=0.004),
    "play": mbs.Rayleigh(0.05),
    "form": mbs.Triangular(0.02),
}
LIMITS = {"area": (4.8, 6.3), "row": (-0.35, 0.42)}


def area(p):
    return p["a"] * p["b"] + 2 * p["a"] ** 2 - 18 + p[HOSTILE] * p["play"] + 3 * p["form"][0] ** 2 - p["form"][1]


def course(p):
    s = jnp.linspace(0.0, 1.0, 5)
    return s * (p["a"] - 3) * (3 + p["b"]) - (p["b"] - 2) * (1 - s) * 4 + p["play"]


def study(tolerances=TOLERANCES, limits=LIMITS) -> mbs.Study:
    measures = {"area": area, "row": course, "free": lambda p: p["b"]}
    correlation = {("a", HOSTILE): 0.4}
    return mbs.Study(lambda p: p, NOMINAL, tolerances, measures, limits=limits, correlation=correlation)


@pytest.fixture(scope="module")
def report() -> mbs.Report:
    return mbs.tolerance(study(), samples=512, worst=False, units={"a": "mm", "area": "mm²"})


FILE = """
title = "Slider-crank"
[parameters]
crank = 3.0
rod = 5.0
[bodies.crank]
[bodies.rod]
[bodies.slider]
[joints]
A = {type = "revolute", body_a = "ground", body_b = "crank"}
B = {type = "revolute", body_a = "crank", body_b = "rod", frame_a = ["crank", 0]}
C = {type = "revolute", body_a = "rod", body_b = "slider", frame_a = ["rod", 0]}
P = {type = "prismatic", body_a = "ground", body_b = "slider", start = 8}
[drive]
A = "t"
[kinematics]
t1 = "pi/2"
outputs = 5
[measures]
travel = "last(P)"
"""
TABLES = """
[tolerances]
crank = 0.02
rod = {type = "uniform", tol = [-0.01, 0.04]}
[limits]
travel = [3.95, 4.05]
"""


@pytest.fixture(scope="module")
def linkage() -> mbs.Report:
    return mbs.tolerance(mbs.loads(FILE + TABLES).study(), worst=False)


@pytest.fixture(scope="module")
def pages(report, linkage, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    plain = report.to_html(folder / "plain.html", title=HOSTILE)
    return {"plain": plain, "linkage": linkage.to_html(folder / "linkage.html", title="Slider-crank")}


@pytest.fixture
def visit(browser, pages):
    """Opens a page, and sees to it that nothing goes wrong in it and nothing else is asked for."""
    complaints, context = [], browser.new_context(viewport={"width": 1200, "height": 900})

    def opened(name: str):
        page, address = context.new_page(), pages[name].as_uri()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        allowed = (address, "data:image/png", "blob:")
        page.on("request", lambda r: None if r.url.startswith(allowed) else complaints.append(r.url))
        page.goto(address)
        assert page.evaluate("'mbsjax' in window")
        return page

    yield opened
    context.close()
    assert complaints == []


def shown(page, path: str) -> float:
    """A number of the page with all its digits, as the pointer shows them."""
    cell = page.locator(f'[data-live="{path}"]').first
    text, kind = cell.get_attribute("title").split(" (was")[0], cell.get_attribute("data-as")
    return float(text.removesuffix(" %")) / {"yield": 100, "part": 100, "ppm": 1e6}.get(kind, 1)


def field(page, group: int, name: str):
    return page.locator(f'input[data-group="{group}"][data-field="{name}"]')


def agrees(page, j: int, at: int, changed: mbs.Study, *, first: bool = True) -> None:
    """That the page shows of a measure what Python finds for a study."""
    close = lambda path, x: np.testing.assert_allclose(shown(page, path), x, rtol=1e-9, atol=1e-12)
    one = mbs.first_order(changed)
    two = mbs.second_order(changed, one)
    if first:
        close(f"measures.{j}.first.mean", one.values[at])
        close(f"measures.{j}.worst_lower", (one.middle - one.worst_case)[at])
        close(f"measures.{j}.worst_upper", (one.middle + one.worst_case)[at])
        close(f"measures.{j}.rss", one.rss[at])
        close(f"measures.{j}.mrss", one.mrss[at])
        for i in range(len(changed.names)):
            close(f"measures.{j}.part.{i}", one.contribution[at, i])
            close(f"measures.{j}.reach.{i}", one.reach[at, i])
    for order, found in {"first": one, "second": two}.items():
        if order == "first" and not first:
            continue
        for key in ("mean", "std", "skewness", "kurtosis")[: 2 if order == "first" else 4]:
            close(f"measures.{j}.{order}.{key}", getattr(found.moments, key)[at])
        for key in ("cp", "cpk", "below", "above", "good"):
            close(f"measures.{j}.{order}.{key}", getattr(found.capability, key)[at])


# ---- what is told first


@pytest.mark.long
def test_the_summary_comes_first(report):
    text = str(report)
    assert text.startswith("summary\n") and text.index("ranking") < text.index("contributors of area")
    line = {x.measure: x for x in report.summary}
    assert line["free"].verdict == "" and not line["free"].belief.method
    assert report.believed["area"] == line["area"].belief
    k, parts = report.study.slices["area"], report.first.contribution
    assert line["area"].contributor == report.study.names[int(np.argmax(parts[k]))]
    rows = report["ranking"].rows
    assert (
        sorted(row[0] for row in rows) == sorted(NOMINAL) and [r[1] for r in rows] == sorted(r[1] for r in rows)[::-1]
    )
    table = report["contributors of area"]
    units = {row[0]: row[-2:] for row in table.rows}
    assert (
        table.columns[-2:] == ("unit", "of sensitivity") and units["a"] == ("mm", "mm²/mm") and units["b"] == ("", "")
    )
    form = next(row for row in rows if row[0] == "form")
    np.testing.assert_allclose(form[3], 100 * parts[k, 4:].sum())  # both numbers of it


def test_of_a_row_the_worst_place_is_told(report):
    at = report.study.slices["row"]
    (line,) = [x for x in report.summary if x.measure == "row"]
    assert line.at == at.start + int(np.argmin(report.second.capability.good[at]))
    assert line.belief.method == "sampled" and "anywhere along the stroke" in line.belief.why


@pytest.mark.parametrize(
    "given, method, why",
    [
        ((0.765, 0.771, SampledYield(0.261, 0.0069, 4096, 0.05)), "sampled", "5 % of the samples have no value"),
        ((0.95, 0.971, SampledYield(0.03, 0.002, 9000)), "second order", "first order, which misses the curvature"),
        ((0.97, 0.971, SampledYield(0.03, 0.002, 9000)), "second order", "and the samples agree"),
        ((0.97, None, SampledYield(0.03, 0.002, 9000)), "first order", "it agrees with the samples"),
        ((0.9, 0.91, SampledYield(0.03, 0.002, 9000, 0, 0.1)), "sampled", "differ from .* by 30 .*; 10 % of them"),
        ((0.97, 0.91, SampledYield(0.03, 0.002, 9000)), "sampled", "second order differs from the samples by 30 "),
        ((1.0, 0.9999, SampledYield(0.0, 1e-3, 1000)), "second order", "0 of 1000 samples are rejected, too few"),
        ((1.0, 0.9, SampledYield(0.0, 1e-3, 1000)), "sampled", "differ"),
        ((1.0, 0.9999, SampledYield(0.0, 1e-3, 1000), RejectEstimate(3e-6, 1e-7)), "reliability", "too rare for 1000"),
        ((1.0, 0.9999, SampledYield(0.0, 1e-3, 1000), RejectEstimate(3e-6, 1e-7, False)), "second order", "too few"),
        ((0.9, 0.9, SampledYield(0.1, 1e-3, 9000), RejectEstimate(0.2, 1e-3)), "second order", "agree"),
        ((0.9, 0.9, SampledYield(0.1, 1e-2, 900), RejectEstimate(0.11, 1e-3)), "reliability", "its error is smaller"),
        ((0.9, 0.9, None, RejectEstimate(0.11, 1e-3)), "reliability", "no samples to check it"),
        ((0.9, 0.9), "second order", "first and second order agree; there are no samples"),
        ((0.9, 0.95), "second order", "first order says 0.9 and misses the curvature"),
        ((0.9,), "first order", "nothing confirms it"),
    ],
)  # fmt: skip
def test_which_method_to_believe(given, method, why):
    found = believe(*given)
    assert found.method == method and re.search(why, found.why)
    rest = dict(zip(("first order", "second order"), given[:2]))
    rest |= {"sampled": 1 - given[2].rejects} if len(given) > 2 and given[2] else {}
    rest |= {"reliability": 1 - given[3].probability} if len(given) > 3 else {}
    assert found.good == rest[method]


def test_no_yield_comes_without_an_error(report, linkage):
    """Of uniform dimensions four moments do not tell all: the error says so, and covers what a million parts have."""
    for found in (report, linkage):
        for line in found.summary:
            assert not line.verdict or 0 < line.belief.error < 0.2
            row = next(row for row in found["summary"].rows if row[0] == line.measure)
            assert found["summary"].columns[4] == "+-" and (row[4] == line.belief.error or not line.verdict)
    rng = np.random.default_rng(0)
    crank, rod = 3 + 0.02 / 3 * rng.normal(size=1_000_000), 5 + rng.uniform(-0.01, 0.04, 1_000_000)
    travel = np.sqrt(rod**2 - crank**2)
    belief = linkage.believed["travel"]
    assert abs(belief.good - np.mean((travel >= 3.95) & (travel <= 4.05))) < belief.error < 0.05


@pytest.mark.parametrize(
    "given, error",
    [
        ((0.9, Order(0.95, 0.004), SampledYield(0.06, 0.006, 900)), 0.01),  # neither is refuted: it reaches both
        ((0.9, Order(0.9399, 0.004), SampledYield(0.06, 0.006, 900)), 0.004),
        ((0.9, Order(0.95, 0.02), SampledYield(0.06, 0.006, 900)), 0.01),
        ((0.9, Order(0.8, 0.001), SampledYield(0.06, 0.006, 900)), 0.006),  # refuted
        ((0.9, Order(0.94, 0.001, 0.5), SampledYield(0.06, 0.006, 900)), 0.006),  # at a kink
        ((0.9, Order(0.94, 0.03)), 0.03),
        ((0.9, 0.9, SampledYield(0.1, 1e-3, 9000), RejectEstimate(0.2, 1e-3)), 0.1),  # both claim to know
        ((0.9, 0.9, SampledYield(0.1, 1e-2, 900), RejectEstimate(0.115, 1e-3)), 0.015),
    ],
)  # fmt: skip
def test_where_methods_differ_the_wider_statement_is_made(given, error):
    assert believe(*given).error == pytest.approx(error)


KINKS = {
    "a fit": lambda p: jnp.abs(p["a"] - p["b"]),
    "the larger": lambda p: jnp.maximum(p["a"], p["b"]) - 1,
    "a maximum over a motion": lambda p: jnp.max((p["a"] - 1) * jnp.sin(jnp.linspace(0.0, 6.0, 25))),
}


@pytest.mark.parametrize("kink", KINKS)
def test_at_a_kink_samples_are_believed_and_drawn(kink):
    """Where the mean lies on a kink there is no second order: it would tell a mean that is off by many sigma."""
    truth = {
        "a fit": lambda a, b: np.abs(a - b),
        "the larger": lambda a, b: np.maximum(a, b),
        "a maximum over a motion": lambda a, b: np.max(np.outer(np.sin(np.linspace(0.0, 6.0, 25)), a), 0),
    }[kink](*0.1 * np.random.default_rng(0).normal(size=(2, 200_000)))
    limit = float(np.quantile(truth, 0.983))
    tolerances = dict.fromkeys("ab", mbs.Normal(sigma=0.1))
    study = mbs.Study(lambda p: p, {"a": 1.0, "b": 1.0}, tolerances, {"y": KINKS[kink]}, limits={"y": (None, limit)})
    found = mbs.tolerance(study, worst=False)
    belief = found.believed["y"]
    assert belief.method == "sampled" and "as at a kink" in belief.why and found.sample.tally.n == 512
    assert abs(belief.good - 0.983) < 3.5 * belief.error < 0.04
    assert dict((row[0], row[1]) for row in found["measures"].rows)[MISFIT] > 50
    with pytest.warns(UserWarning, match="second order does not describe all measures.* 'y' by"):
        assert mbs.second_order(study).misfit[0] > 0.5


MISFIT = "second order: misfit at a handful of samples, % of sigma"


def test_rows_and_measures_without_limits_are_told_as_such():
    assert "anywhere" in believe(0.9, 0.9, SampledYield(0.1, 0.01, 900), along=True).why
    assert believe(0.9, 0.9, along=True).why.endswith("along the whole stroke it is at most that")
    assert believe(1.0, 1.0, SampledYield(0.0, 0.01, 900), limited=False).method == ""
    assert believe(1.0, 1.0, SampledYield(0.1, 0.01, 900, 0.1), limited=False).method == "sampled"
    measures = {"jump": lambda p: p["x"] + jnp.where(p["x"] > 0.05, 5.0, 0.0), "x": lambda p: p["x"]}
    made = mbs.Study(lambda p: p, {"x": 0.0}, {"x": mbs.Normal(sigma=0.1)}, measures)
    jump, x = mbs.tolerance(made, samples=256, second=False, worst=False).summary
    assert jump.belief.why.endswith("believe the samples") and x.belief.why == "it has no limits"


def test_indices_of_survivors_are_called_so(tmp_path):
    tol, limits = {"x": mbs.Normal(sigma=0.1)}, {"root": (0.0, 2.0)}
    measures = {"root": lambda p: jnp.sqrt(p["x"] - 0.85), "x": lambda p: p["x"]}
    halting = mbs.Study(lambda p: p, {"x": 1.0}, tol, measures, limits=limits)
    found = mbs.tolerance(halting, samples=1024, second=False, worst=False, target=1.0)
    root, _ = found.summary
    lost = scipy.special.ndtr(-1.5)
    assert root.belief.method == "sampled" and abs(root.belief.good - (1 - lost)) < 3 * root.belief.error
    assert root.cpk_of == "survivors" and root.verdict == "fail"
    labels = [row[0] for row in found["measures"].rows]
    assert "sampled: Ppk of survivors" in labels and "sampled: Ppk" not in labels
    assert "of survivors" in found.histogram("root").get_title()
    page = found.to_html(tmp_path / "page.html").read_text()
    assert "survivors only" in page and "sampled, survivors" in page


def test_targets_are_a_cpk_or_a_yield():
    limits, tol = {"x": (-0.31, 0.31)}, {"x": mbs.Normal(sigma=0.1)}
    made = mbs.Study(lambda p: p, {"x": 0.0}, tol, {"x": lambda p: p["x"]}, limits=limits)
    good = 2 * scipy.special.ndtr(3.1) - 1
    for target, verdict in {0.99: "pass", good - 1e-6: "pass", good + 1e-6: "fail", 1.33: "fail", 1.0: "pass"}.items():
        kept = mbs.tolerance(made, target=target, worst=False)
        assert kept.summary[0].verdict == verdict
    with pytest.raises(ValueError, match="the target must be a Cpk, or a yield below 1, got 0.0"):
        mbs.tolerance(made, target=0.0)
    with pytest.raises(ValueError, match="`units` names 'y', which is neither"):
        mbs.tolerance(made, units={"y": "mm"})
    rare = mbs.tolerance(made, rare=8192, worst=False)
    assert rare.believed["x"].method == "reliability"
    assert abs(rare.believed["x"].good - good) < 3.5 * rare.believed["x"].error < 5e-4
    table = rare["rare rejects"]
    assert [row[0] for row in table.rows] == ["x lower", "x upper", "any of them"]
    np.testing.assert_allclose([row[6] for row in table.rows[:2]], 1e6 * (1 - good) / 2, rtol=1e-6)  # FORM is exact
    assert [p.side for p in rare.points] == ["lower", "upper"]


# ---- what is in the page


@pytest.mark.long
def test_names_do_no_harm(pages):
    text = pages["plain"].read_text()
    assert text.count("<script") == text.count("</script") == 2 and "<b onclick" not in text
    assert not re.search(r"https?:|\b(src|href)\s*=\s*\"(?!data:)|@import|url\(", text)
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert [g["name"] for g in json.loads(found)["groups"]] == list(NOMINAL)


def test_nothing_is_cut_and_it_fits_a_sheet(visit):
    page = visit("plain")
    assert page.title() == HOSTILE and page.locator("b[onclick]").count() == 0
    heads = [x.split(" [")[0] for x in page.locator("h2").all_inner_texts()]
    first = ["Summary", "Dimensions, the most important first", "Mechanism", "area", "row", "free"]
    assert heads[:6] == first
    cut = """[...document.querySelectorAll("*")].filter((e) => getComputedStyle(e).maxHeight !== "none"
        && e.id !== "stage" && e.scrollHeight > e.clientHeight + 1).length"""
    assert page.evaluate(cut) == 0
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 688, "height": 1000})  # A4 within its margins
    assert page.evaluate("document.documentElement.scrollWidth") <= 700
    assert not page.locator("#save").is_visible() and page.locator(".signatures").is_visible()
    made = page.inner_text(".made")
    assert mbs.__version__ in made and "seed 0" in made and re.search(r"made \d{4}-\d\d-\d\d \d\d:\d\d UTC", made)


# ---- what the page computes


def test_the_normal_distribution_of_the_page(visit):
    x = np.concatenate([np.random.default_rng(0).uniform(-37, 8, 300), [-1.0, 1.0, 0.0, -11.3, np.inf, -np.inf]])
    text = json.dumps([str(v) for v in x]).replace("inf", "Infinity")
    found = visit("plain").evaluate(f"{text}.map((x) => mbsjax.ndtr(Number(x)))")
    np.testing.assert_allclose(found, scipy.special.ndtr(x), rtol=2e-13, atol=0)


def test_before_anything_is_changed_page_and_python_agree(visit, report):
    page = visit("plain")
    assert max(page.evaluate("mbsjax.apart()")) < 1e-9
    agrees(page, 0, 0, report.study)
    assert page.locator(".changed").count() == 0 and not page.locator("#broken").is_visible()


def test_typing_tolerances_changes_everything_to_what_python_computes(visit, report):
    page = visit("plain")
    was = shown(page, "measures.0.first.good"), shown(page, "measures.0.second.good")
    yields = page.inner_text('[data-summary="0"] [data-cell="yield"]')
    field(page, 0, "tolerance").fill("0.045")
    field(page, 4, "tolerance").fill("±0.035")
    changed = study(TOLERANCES | {"a": mbs.Normal(0.045), "form": mbs.Triangular(0.035)})
    agrees(page, 0, 0, changed)
    now = shown(page, "measures.0.first.good"), shown(page, "measures.0.second.good")
    assert abs(now[0] - was[0]) > 1e-3 and abs(now[1] - was[1]) > 1e-3
    assert page.inner_text('[data-summary="0"] [data-cell="yield"]') != yields
    worst = shown(page, "measures.1.second.good")
    at = changed.slices["row"]
    np.testing.assert_allclose(worst, mbs.second_order(changed).capability.good[at].min(), rtol=1e-9)
    assert "2 changes" in page.inner_text("#changes")
    page.click("#reset")
    back = shown(page, "measures.0.first.good"), shown(page, "measures.0.second.good")
    np.testing.assert_allclose(back, was, rtol=1e-12)
    assert page.locator(".changed").count() == 0


def test_shifts_and_sigmas_are_exact_for_a_polynomial_of_second_order(visit, report):
    page = visit("plain")
    field(page, 0, "shift").fill("0.01")
    field(page, 1, "tolerance").fill("-0.03 / +0.05")  # its middle moves
    field(page, 2, "sigma").fill("0,02")
    field(page, 3, "tolerance").fill("0.08")  # from zero on: its mean moves
    tol = TOLERANCES | {"b": mbs.Uniform((-0.03, 0.05)), "play": mbs.Rayleigh(0.08)}
    tol |= {"a": mbs.Normal(0.06, sigma=0.02, shift=0.01), HOSTILE: mbs.Normal(0.03, sigma=0.02, shift=0.004)}
    changed = study(tol)
    agrees(page, 0, 0, changed, first=False)
    assert page.locator("#shifted").is_visible()
    linear = report.first.values[0] + report.first.slopes[0] @ np.asarray(changed.mean - report.study.mean)
    np.testing.assert_allclose(shown(page, "measures.0.first.mean"), linear, rtol=1e-12)


def test_limits_can_be_moved_and_taken_away(visit, report):
    page = visit("plain")
    limit = lambda j, side: page.locator(f'input[data-measure="{j}"][data-field="{side}"]')
    limit(0, "lower").fill("5")
    limit(0, "upper").fill("")
    limit(2, "upper").fill("2.03")  # a measure that had none
    agrees(page, 0, 0, study(limits={"area": (5.0, None)}))
    good = float(mbs.first_order(study(limits={"free": (None, 2.03)})).capability.good[-1])
    np.testing.assert_allclose(shown(page, "measures.2.first.good"), good, rtol=1e-9)
    assert page.inner_text('[data-summary="2"] [data-cell="verdict"]').lower() == "fail"


def test_what_makes_no_sense_is_marked_and_changes_nothing(visit):
    page = visit("plain")
    was = shown(page, "measures.0.second.good")
    for name, text in {"tolerance": "0.2 / 0.1", "sigma": "-1", "shift": "much"}.items():
        field(page, 0, name).fill(text)
        assert "wrong" in field(page, 0, name).get_attribute("class")
    page.locator('input[data-measure="0"][data-field="lower"]').fill("7")  # above the upper one
    assert shown(page, "measures.0.second.good") == was and "nothing" in page.inner_text("#changes")
    page.locator("h1").click()
    assert page.locator("input.wrong").count() == 0 and field(page, 0, "tolerance").input_value() == "±0.06"


def test_what_ifs_are_saved_as_tables_of_a_model_file(visit):
    page = visit("linkage")
    field(page, 0, "tolerance").fill("0.03")
    field(page, 0, "shift").fill("0.005")
    field(page, 1, "tolerance").fill("-0.02 / 0.05")
    page.locator('input[data-measure="0"][data-field="upper"]').fill("")
    with page.expect_download() as saved:
        page.click("#save")
    text = saved.value.path().read_text()
    tables = tomllib.loads(text)
    assert tables["limits"] == {"travel": [3.95, np.inf]} and set(tables["tolerances"]) == {"crank", "rod"}
    made = mbs.loads(FILE + text).study()
    crank, rod = made.distributions
    assert isinstance(rod, mbs.Uniform) and isinstance(crank, mbs.Normal)
    told = page.evaluate("mbsjax.state().groups")
    for d, x in zip((crank, rod), told):
        found = [float(v) for v in (d.spread.lower, d.spread.upper, d.mean, d.std)]
        np.testing.assert_allclose(found, [x["lower"], x["upper"], x["mean"], x["std"]], rtol=1e-12, atol=1e-15)
    assert float(crank.mean) == 0.005 and float(crank.std) == pytest.approx(0.01)


def test_odd_names_are_saved_too(visit):
    page = visit("plain")
    tables = tomllib.loads(page.evaluate("mbsjax.toml()"))
    assert list(tables["tolerances"]) == list(NOMINAL)
    assert tables["tolerances"]["a"] == 0.06 and tables["tolerances"]["b"] == {"type": "uniform", "tol": [-0.02, 0.05]}
    assert tables["tolerances"][HOSTILE]["shift"] == pytest.approx(0.004)
    assert tables["limits"] == {name: list(pair) for name, pair in LIMITS.items()}


@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_zones_are_changed_and_saved(visit, pages, tmp_path, kind):
    """Positions in circles: live at first order, and at second where their coordinates are normal."""

    def plate(hole, size=0.1):
        nominal = {"hole": jnp.array([3.0, 4.0]), "size": 2.0, "rim": jnp.zeros(3)}
        zones = {"hole": hole, "size": size, "rim": mbs.ProfileZone(0.06, correlation=1)}
        far = lambda p: jnp.hypot(*p["hole"]) - p["size"] * 1.1 + p["rim"].sum()
        return mbs.Study(lambda p: p, nominal, zones, {"far": far}, limits={"far": (2.5, 3.0)})

    made = mbs.tolerance(plate(mbs.Position(0.2, kind=kind)), worst=False)
    pages["zones"] = made.to_html(tmp_path / "zones.html", mechanism=False)
    page = visit("zones")
    assert max(page.evaluate("mbsjax.apart()")) < 1e-9
    field(page, 0, "tolerance").fill("0.15")
    field(page, 0, "shift").fill("0.1")  # in which direction?
    assert page.locator("input.wrong").count() == 1
    one = mbs.first_order(plate(mbs.Position(0.3, kind=kind)))
    for path, x in {
        "worst_lower": one.middle - one.worst_case, "first.std": one.std, "first.good": one.capability.good,
        "reach.1": one.reach[:, 1], "part.0": one.contribution[:, 0],
    }.items():  # fmt: skip
        np.testing.assert_allclose(shown(page, f"measures.0.{path}"), x[0], rtol=1e-9)
    if kind == "normal":
        two = mbs.second_order(plate(mbs.Position(0.3)), one)
        np.testing.assert_allclose(shown(page, "measures.0.second.good"), two.capability.good[0], rtol=1e-9)
    told = tomllib.loads(page.evaluate("mbsjax.toml()"))["tolerances"]
    assert told["hole"] == {"type": "position", "tol": 0.3, "kind": kind, "feature": "hole"}
    assert told["rim"] == {"type": "profile_zone", "tol": 0.06, "kind": "normal", "correlation": 1.0, "closed": True}


# ---- the mechanism


def test_sliders_move_the_mechanism_by_its_derivatives(visit):
    page = visit("linkage")
    t, (r, L) = np.linspace(0, np.pi / 2, 5), (3.0, 5.0 + 0.015)  # of the rod, the mean is not the nominal length
    root = np.sqrt(L**2 - (r * np.sin(t)) ** 2)
    slope = np.stack([np.cos(t) - r * np.sin(t) ** 2 / root, L / root])  # of the slider's travel
    angle = np.stack([-np.sin(t) / root, r * np.sin(t) / (L * root)])  # of the rod's angle
    for row in range(5):
        base, moved = (
            page.evaluate(f"[2, 3].map((b) => mbsjax.pose({row}, b, {d}))") for d in ("null", "[0.01, -0.02]")
        )
        delta = np.array([0.01, -0.02])
        np.testing.assert_allclose(base[1][0], r * np.cos(t[row]) + root[row], rtol=1e-9)
        np.testing.assert_allclose(moved[1][0] - base[1][0], delta @ slope[:, row], atol=1e-10)
        np.testing.assert_allclose(moved[0][2] - base[0][2], delta @ angle[:, row], atol=1e-10)
    drawn = page.inner_html("#stage")
    slider = page.locator('[data-slider="0"]')
    slider.fill("1")
    assert page.locator("#stage .nominal").count() == 1 and page.inner_html("#stage") != drawn
    once = page.inner_html("#stage .changed")
    page.select_option("#exaggeration", "10")
    assert page.inner_html("#stage .changed") != once
    at_end = page.evaluate("mbsjax.predicted()[0]")
    x = 3.0 + 0.02
    change = np.sqrt(L**2 - x**2) - np.sqrt(L**2 - r**2)  # without linearizing: the next term is 8 times the last
    np.testing.assert_allclose(at_end["first"] - np.sqrt(L**2 - r**2), -r / np.sqrt(L**2 - r**2) * 0.02, rtol=1e-9)
    np.testing.assert_allclose(at_end["second"] - np.sqrt(L**2 - r**2), change, rtol=1e-4)
    page.click("#level")
    assert page.inner_html("#stage") == drawn


def test_dimensions_are_named_where_they_are(visit, pages):
    (found,) = re.findall(r'id="data">(.*?)</script>', pages["linkage"].read_text(), re.S)
    named = json.loads(found)["drawing"]["named"]
    for name, body, length in (("crank", 1, 3.0), ("rod", 2, 5.015)):
        (line,) = named[name]
        assert line["body"] == body
        np.testing.assert_allclose(line["ends"], [[0, 0], [length, 0]], atol=1e-12)
    assert visit("linkage").locator("#stage .names text").all_text_contents() == ["crank", "rod"]


def test_without_a_mechanism_the_page_says_so(visit):
    page = visit("plain")
    assert "there is nothing to draw" in page.inner_text("#mechanism") and page.locator("#stage").count() == 0


# ---- model files


def test_units_and_what_ifs_of_a_model_file(tmp_path):
    model, path = mbs.loads(FILE + TABLES + '[units]\ncrank = "mm"\ntravel = "mm"\n'), tmp_path / "what_if.toml"
    assert model.units == {"crank": "mm", "travel": "mm"} and "2 units" in model.check()
    path.write_text("[tolerances]\ncrank = 0.5\n")
    other = model.what_if(path)
    assert other.document["tolerances"] == {"crank": 0.5} and other.document["limits"] == model.document["limits"]
    assert model.document["tolerances"]["crank"] == 0.02
    path.write_text("[tolerances]\nrodd = 0.5\n")
    with pytest.raises(mbs.FileError, match="tolerances.rodd: there is an unknown parameter"):
        model.what_if(path).check()
    path.write_text("[bodies.crank]\n")
    with pytest.raises(mbs.FileError, match="'bodies' has no meaning here"):
        model.what_if(path)
    with pytest.raises(mbs.FileError, match="units.rodd: the key 'rodd' has no meaning here; did you mean 'rod'"):
        mbs.loads(FILE + TABLES + '[units]\nrodd = "mm"\n').check()


def test_a_radius_is_named_from_its_center():
    turn = np.linspace(0.3, 2.0, 12)
    rim = np.stack([np.cos(turn), np.sin(turn)], 1)
    points = np.concatenate([[4.0, -3.0] + 2 * rim, [[0.0, 0.0], [5.0, -5.0]]])
    moves = np.concatenate([rim, np.zeros((2, 2))])
    center, end = _radius(points, moves)
    np.testing.assert_allclose(center, [4.0, -3.0], atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(end - center), 2.0)


def test_without_limits_nothing_is_said_of_them(tmp_path):
    made = mbs.Study(lambda p: p, {"x": 2.0}, {"x": 0.3}, {"y": lambda p: 4 * p["x"], "z": lambda p: p["x"] ** 2})
    found = mbs.tolerance(made, second=False, samples=64)
    assert found["summary"].columns == ("measure", "main contributor", "% of variance")
    assert found["summary"].rows == [("y", "x", 100.0), ("z", "x", 100.0)]
    labels = " ".join(row[0] for row in found["measures"].rows)
    assert not [word for word in ("Cp", "Pp", "ppm", "yield", "limit", "level") if word in labels]
    assert "which method to believe" not in [table.title for table in found.tables]
    page = mbs.tolerance(made, second=False).to_html(tmp_path / "page.html").read_text()
    assert "<td>Sigma</td>" in page and "<td>Skewness</td>" not in page and "<td>Kurtosis</td>" not in page


def test_measures_without_limits_are_looked_at_in_corners_and_searched_if_asked():
    """Of x (1 - x) about 1/2 the largest value, 1/4, lies inside; of x + 7 - x nothing varies."""
    hill, flat = lambda p: p["x"] * (1 - p["x"]), lambda p: p["x"] + 7.0 - p["x"]
    made = mbs.Study(lambda p: p, {"x": 0.45}, {"x": 0.1}, {"hill": hill, "flat": flat})
    looked, searched = mbs.tolerance(made).worst, mbs.tolerance(made, worst=True).worst
    assert looked.basis_upper[0] == "not searched" and searched.basis_upper[0] == "searched"
    assert looked.upper[0] < 0.25 and abs(searched.upper[0] - 0.25) < 1e-14
    assert abs(looked.lower[0] - 0.35 * 0.65) < 1e-14 and looked.lower[0] == searched.lower[0]
    np.testing.assert_allclose([searched.lower[1], searched.upper[1]], 7.0, rtol=1e-15)
    assert mbs.tolerance(made, second=False).points == []


def test_an_interrupted_study_keeps_the_steps_that_are_done(linkage, tmp_path, monkeypatch):
    def impatient(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("mbsjax._tolerance.analysis.worst_case", impatient)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crank.toml").write_text(FILE + TABLES)
    done = CliRunner().invoke(main, ["tolerance", "crank.toml"])
    assert done.exit_code == 130, done.output
    assert "step 2 of 4, second order" in done.output and "most likely rejects" not in done.output
    told = json.loads((tmp_path / "crank_tolerance" / "report.json").read_text())
    # travel = sqrt(rod^2 - crank^2) at the end
    mean = dict(zip(linkage.first.study.names, np.asarray(linkage.first.study.mean).tolist()))
    end = np.sqrt(mean["rod"] ** 2 - mean["crank"] ** 2)
    rows = {row[0]: row[5] for row in told["contributors of travel"]["rows"]}
    np.testing.assert_allclose([rows["crank"], rows["rod"]], [-mean["crank"] / end, mean["rod"] / end], rtol=1e-9)
    assert "mean shift" in told["contributors of travel"]["columns"]
    assert "Slider-crank" in (tmp_path / "crank_tolerance" / "report.html").read_text()
