"""The site as it is read: it builds without a warning, fetches nothing, its links lead somewhere, and its search works
from disk."""

import html.parser
import os
import pathlib
import re
import subprocess
import sys
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from tests.test_docs import DOCS, ROOT, _public


PUBLISHED = "https://mbsjax.github.io/mbsjax/"
REPOSITORY = "https://github.com/mbsjax/mbsjax/"
IN_REPOSITORY = re.compile(
    r"https://(?:github\.com/mbsjax/mbsjax/(?:blob|tree|raw)|raw\.githubusercontent\.com/mbsjax/mbsjax)/main/"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Page(html.parser.HTMLParser):
    """The places of a page that a link may lead to, its links, and what is loaded when it is read."""

    def __init__(self, text: str):
        super().__init__()
        self.places, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.places.add(given.get("id"))
        self.places.add(given.get("name") if tag == "a" else None)
        if "href" in given and given.get("rel") != "canonical":
            (self.loaded if tag == "link" else self.links).append(given["href"])
        if "src" in given:
            self.loaded.append(given["src"])


@pytest.fixture(scope="module")
def pages(site):
    return {p.relative_to(site).as_posix(): Page(p.read_text()) for p in sorted(site.rglob("*.html"))}


def _headings(path: pathlib.Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page in Markdown."""
    titles = re.findall(r"^#+ +(.*?) *$", re.sub(r"^```.*?^```", "", path.read_text(), flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def _fault_in_repository(path: pathlib.Path, anchor: str) -> str | None:
    """What is wrong with a link to a file of the repository."""
    if not path.exists():
        return "no such file"
    line = re.fullmatch(r"L(\d+)", anchor)
    if line:
        return None if int(line[1]) <= len(path.read_text().splitlines()) else "no such line"
    return None if not anchor or anchor in _headings(path) else "no such heading"


def _fault(site: pathlib.Path, pages: dict, here: str, link: str) -> str | None:
    """What is wrong with a link of a page of the site, or of a page at any other address."""
    link = urljoin(here, link)
    address, anchor = link.partition("#")[0], unquote(urlsplit(link).fragment)
    if IN_REPOSITORY.match(address):
        return _fault_in_repository(ROOT / unquote(IN_REPOSITORY.sub("", address)), anchor)
    if address.startswith(REPOSITORY):
        known = address.removeprefix(REPOSITORY).partition("/")[0] in ("", "issues", "discussions", "releases")
        return None if known else "no such part of the repository"
    if not (address + "/").startswith(PUBLISHED):
        return None  # elsewhere
    name = unquote(address.removeprefix(PUBLISHED.rstrip("/")).lstrip("/")) or "index.html"
    if name not in pages:
        return None if (site / name).is_file() else "no such page"
    begins = re.fullmatch(r"t=[\d.]+", anchor) and "slider" in pages[name].places  # a viewer that begins at a time
    return None if not anchor or begins or anchor in pages[name].places else "no such place in the page"


def test_pages_build_without_a_warning_and_fetch_nothing(pages):
    assert len(pages) >= len(list(DOCS.rglob("*.md"))) + len(list((ROOT / "notebooks").glob("*.ipynb")))
    fetched = [(name, x) for name, page in pages.items() for x in page.loaded if x.startswith(("http", "//"))]
    assert not fetched


def test_links_of_the_site_lead_somewhere(site, pages):
    found = [(name, x) for name, page in pages.items() for x in page.links + page.loaded]
    faults = {(n, x): _fault(site, pages, PUBLISHED + n, x) for n, x in found if not x.startswith("data:")}
    assert not {link: fault for link, fault in faults.items() if fault}


def test_links_of_the_repository_lead_somewhere(site, pages):
    faults = {}
    for path in [*ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md", ROOT / "pyproject.toml"]:
        text = path.read_text()
        inside = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.S | re.M) if path.suffix == ".md" else ""
        relative = re.findall(r"\]\(<?([^)\s>]+)", inside) + re.findall(r'(?:src|href)="([^"]+)"', inside)
        here = f"{REPOSITORY}blob/main/{path.relative_to(ROOT).as_posix()}"
        for link in [*relative, *re.findall(r'https://[^\s)"<>\]`]+', text)]:
            faults[path.name, link] = _fault(site, pages, here, link)
    assert not {link: fault for link, fault in faults.items() if fault}


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ("index.html#install", None),
        ("nothing.html", "no such page"),
        ("index.html#nothing", "no such place in the page"),
        ("index.html#t=5.3", "no such place in the page"),
        (f"{PUBLISHED}theory/nothing.html", "no such page"),
        (f"{REPOSITORY}blob/main/nothing.py", "no such file"),
        (f"{REPOSITORY}blob/main/conftest.py#L100000", "no such line"),
        (f"{REPOSITORY}blob/main/CONTRIBUTING.md#nothing", "no such heading"),
        (f"{REPOSITORY}blob/main/CONTRIBUTING.md#how-to-add", None),
        (f"{REPOSITORY}nothing", "no such part of the repository"),
    ],
)
def test_links_that_lead_nowhere_are_found(site, pages, link, fault):
    assert _fault(site, pages, PUBLISHED, link) == fault


def test_every_public_name_has_a_place_with_words(site):
    text = "".join(p.read_text() for p in (site / "api").glob("*.html"))
    for name in _public() | {f"plots.{name}" for name in _public("plots.py")}:
        heading = re.search(rf'id="mbsjax\.{re.escape(name)}"(.*?)(?=<h[234] |\Z)', text, re.S)
        assert heading is not None, name
        words = re.sub(r"<[^>]+>", " ", heading[1].split('class="doc doc-contents', 1)[-1])
        assert len(words.split()) > 3, f"{name} has no description"


def test_signatures_have_types_and_a_link_to_the_source(site):
    text = (site / "api" / "dynamics.html").read_text()
    told = re.search(r'id="mbsjax\.simulate"(.*?)(?=<h2 )', text, re.S)
    assert told is not None
    words = " ".join(re.sub(r"<[^>]+>", "", told[1]).split())
    given = "mech: Mechanism, state0: State | Callable[[], State] | None, t1: Number, *, ts: Numbers | None = None,"
    assert given in words
    assert 'href="mechanism.html#mbsjax.Mechanism"' in told[1]
    source = re.search(r'href="https://github\.com/mbsjax/mbsjax/blob/main/([^"#]+)#L(\d+)">Source', told[1])
    assert source is not None
    assert (ROOT / source[1]).read_text().splitlines()[int(source[2]) - 1].startswith("def simulate(")
    assert "Float[Array, '*batch times']" in re.sub(r"<[^>]+>", "", text).replace("&#39;", "'")


def test_search_works_from_disk(site, browser):
    page = browser.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto((site / "tutorials" / "first.html").as_uri())
    page.locator("input.md-search__input").click()
    page.keyboard.type("LankaraniNikravesh")
    page.wait_for_selector(".md-search-result__item a")
    links = [link.get_attribute("href") for link in page.locator(".md-search-result__item a").all()]
    page.close()
    assert (site / "api" / "dynamics.html").as_uri() + "#mbsjax.LankaraniNikravesh" in links
    assert all(url.startswith(("file:", "data:", "about:")) for url in requests)


def test_notebooks_show_their_pictures(site, pages):
    name = "notebooks/getting_started.html"
    shown = [site / "notebooks" / x for x in pages[name].loaded if x.endswith(".png") and "getting_started/" in x]
    assert shown and all(path.read_bytes().startswith(b"\x89PNG") for path in shown)
    text = (site / name).read_text()
    assert "standard deviation: " in text and "from the slopes" in text
