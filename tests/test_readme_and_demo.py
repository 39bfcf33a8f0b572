"""What a newcomer tries first works as it is printed."""

import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
import yaml

import mbsjax as mbs


ROOT = pathlib.Path(__file__).parent.parent


def test_example_of_the_readme_prints_what_it_says(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    exec(compile(code, "README.md", "exec"), {})
    printed = [float(x) for x in capsys.readouterr().out.split()]
    np.testing.assert_allclose(printed, [4.0, 1.25], atol=1e-12)  # the 3-4-5 triangle, and 5 / 4


def test_links_of_the_readme_are_absolute_and_lead_to_files():
    text = (ROOT / "README.md").read_text()
    links = re.findall(r"\]\((\S+?)(?:#[\w-]+)?\)", text)
    site, source = "https://mbsjax.github.io/mbsjax/", "https://github.com/mbsjax/mbsjax/"
    raw = "https://raw.githubusercontent.com/mbsjax/mbsjax/main/"
    for link in links:
        if link.startswith(site):
            path = "docs/" + (link.removeprefix(site).removesuffix(".html") or "index") + ".md"
        elif link.startswith(raw):
            path = link.removeprefix(raw)
        else:  # folders and files of the main branch
            path = re.sub(rf"^{source}(?:tree|blob)/main/", "", link)
        assert (ROOT / path).exists(), link
    assert len(links) == text.count("](")


def test_changelog_and_citation_are_of_this_version():
    version, date = re.findall(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M)[0]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert version == cited["version"] == mbs.__version__
    assert date == cited["date-released"]


@pytest.mark.slow
def test_demo_prints_its_tables_and_leaves_its_pages(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mbsjax.demo"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    written = [tmp_path / line.strip() for line in done.stdout.splitlines() if line.startswith("  out/")]
    assert [p.suffix for p in written] == [".html", ".html", ".png", ".png", ".png", ".png"]
    assert all(p.stat().st_size > 10_000 for p in written)
    # the follower is thrown off twice, and meets the cam again each time
    events = [line.split()[-1] for line in done.stdout.splitlines() if re.search(r"(released|impact|closed)$", line)]
    assert events[0] == "released" and events[1] == "impact" and events.count("released") == 2
    # the four-bar by Freudenstein's equation, and the cam by the end of its arc
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r"\s+\d+\s+-?\d+\.\d{6}", line)]
    crank, rocker = np.array([[float(x) for x in row[:2]] for row in rows]).T
    r1, r2, r3, r4 = 1.0, 3.0, 2.5, 3.5
    k = r4 / r1, r4 / r3, (r1**2 + r3**2 + r4**2 - r2**2) / (2 * r1 * r3)
    crank = np.deg2rad(crank)
    freudenstein = k[0] * np.cos(rocker) - k[1] * np.cos(crank) + k[2] - np.cos(crank - rocker)
    assert len(rows) == 7 and np.abs(freudenstein).max() < 1e-5
    event = next(line.split() for line in done.stdout.splitlines() if line.endswith("arc -> point"))
    np.testing.assert_allclose([float(x) for x in event[:2]], [2 * np.arctan2(25.0, 15.0), np.hypot(15, 25)], atol=1e-6)
