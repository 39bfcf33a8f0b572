"""The documentation leaves no public name out, and its examples print what it says."""

import ast
import builtins
import contextlib
import importlib.util
import io
import os
import pathlib
import re
from typing import Any

import pytest
from click.testing import CliRunner

import mbsjax as mbs
from mbsjax._cli.main import main
from mbsjax._files.formula import CONSTANTS, FUNCTIONS
from mbsjax._files.grammar import EQUILIBRIUM, GOALS, KEYS, KINEMATICS, SIMULATE, SOLVERS, SYNTHESIS
from mbsjax._files.words import WORDS
from tests.texts import same


ROOT = pathlib.Path(__file__).parent.parent
DOCS = ROOT / "docs"
_FENCE = re.compile(r"^```(?P<kind>\w+)(?: title=\"(?P<title>[^\"]*)\")?\n(?P<text>.*?)^```$", re.S | re.M)
_SKIPPED = "<!-- not run -->\n"


def _pages() -> list[Any]:
    """The pages with examples; tutorials, but for the first one, are long."""
    pages = [p.relative_to(DOCS).as_posix() for p in sorted(DOCS.rglob("*.md")) if "```python\n" in p.read_text()]
    dear = lambda page: page.startswith("tutorials/") and page != "tutorials/first.md"
    return [pytest.param(page, marks=pytest.mark.long) if dear(page) else page for page in pages]


def _examples(page: str) -> list[tuple[str, str | None]]:
    """The examples of a page, each with what it prints, where the page tells. Files that it shows with a title are
    written to the working folder."""
    text, found = (DOCS / page).read_text(), []
    blocks = list(_FENCE.finditer(text))
    for block, after in zip(blocks, [*blocks[1:], None]):
        if block["title"]:
            pathlib.Path(block["title"]).write_text(block["text"])
        if block["kind"] != "python" or text[: block.start()].endswith(_SKIPPED):
            continue
        told = after is not None and after["kind"] == "text" and not text[block.end() : after.start()].strip()
        found.append((block["text"], after["text"] if after is not None and told else None))
    return found


def test_numbers_are_compared_to_the_digits_told():
    assert same("[1.25 nan] as 'text' 3.0", "[1.2501, nan] as 'text' 3.0")
    assert same("-2.5e-05 7", "-2.49e-05 7") and not same("-2.5e-05 7", "-2.2e-05 7")
    assert not same("1.25", "1.27")
    assert not same("1.25 a", "1.25 b")
    assert not same("1.25", "1.25 1.25")
    assert same("7 +-0.50: 76.5%", "7 +-0.51: 76.5%") and not same("76.5%", "76.5") and not same("7", "8")
    assert same("1.1e-16", "-3e-17", noise=1e-8) and not same("1.1e-16", "-3e-17")


@pytest.mark.parametrize("page", _pages())
def test_examples_print_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for k, (code, told) in enumerate(_examples(page)):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, f"{page}, example {k}", "exec"), names)
        if told is not None:
            assert same(told, out.getvalue()), f"{page}, example {k} prints\n{out.getvalue()}"


def _model_files() -> list[str]:
    texts = [p.read_text() for p in sorted(DOCS.rglob("*.md"))]
    return [block["text"] for text in texts for block in _FENCE.finditer(text) if block["kind"] == "toml"]


def test_model_files_in_the_pages_are_good():
    files = _model_files()
    assert files
    for text in files:
        assert mbs.loads(text).check()


def test_page_of_model_files_leaves_no_key_and_no_type_out():
    text = (DOCS / "model_file.md").read_text()
    words = set(re.findall(r"[\w-]+", " ".join(re.findall(r"`+([^`\n]+)`+", text))))
    types = {kind for group, kinds in WORDS.items() if group not in ("body", "contact", "friction") for kind in kinds}
    keys = {*KEYS, *KINEMATICS, *SIMULATE, *EQUILIBRIUM, *SYNTHESIS, *SOLVERS, *GOALS, *FUNCTIONS, *CONSTANTS}
    assert not (types | keys) - words


def test_page_of_the_command_line_leaves_no_command_and_no_option_out():
    words = set(re.findall(r"`([^`\n]+)`", (DOCS / "command_line.md").read_text()))
    words = {word for words in words for word in words.split()}
    for name, command in main.commands.items():
        assert name in words
        for option in [x for p in (*command.params, *main.params) for x in (*p.opts, *p.secondary_opts)]:
            assert option in words or not option.startswith("-"), f"{option} of {name}"


def test_commands_in_the_pages_are_commands():
    text = "".join(p.read_text() for p in sorted(DOCS.rglob("*.md")))
    given = re.findall(r"^mbsjax ([a-z]+)((?: (?!#)\S+)*)", text, re.M)
    assert len(given) > 5
    for name, rest in given:
        known = {x for p in main.commands[name].params for x in (*p.opts, *p.secondary_opts)}
        assert {x for x in rest.split() if x.startswith("-")} <= known, f"mbsjax {name}{rest}"


def test_check_prints_what_the_tutorial_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _examples("tutorials/files.md")  # writes the file
    told = re.search(
        r"```sh\nmbsjax check (\S+)\n```\n\n```text\n(.*?)```", (DOCS / "tutorials/files.md").read_text(), re.S
    )
    assert told is not None
    done = CliRunner().invoke(main, ["--cache", os.environ["JAX_COMPILATION_CACHE_DIR"], "check", told[1]])
    assert done.exit_code == 0 and done.output.strip() == told[2].strip()


def test_pages_begin_with_a_sentence_and_use_the_usual_terms():
    for page in sorted(DOCS.rglob("*.md")):
        text = re.sub(r"\A---\n.*?^---\n", "", page.read_text(), flags=re.S | re.M)
        begin = re.match(r"\s*# [^\n]+\n\n(.+)", text)
        assert begin is not None and begin[1][0].isupper(), f"{page.name} begins with no sentence below its title"
        prose = re.sub(r"^```.*?^```$|`[^`\n]+`", "", text, flags=re.S | re.M)
        odd = re.findall(r"(?<!of)\s(freedoms?)\b|\b(dates? of|virtual contacts?|rooms|doors)\b", prose)
        assert not odd, f"{page.name} says {odd}"


def _public(module: str = "__init__.pyi") -> set[str]:
    tree = ast.parse((ROOT / "mbsjax" / module).read_text())
    names = {x.asname for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for x in node.names if x.asname}
    return {name for name in names if not name.startswith("_")}


def test_no_public_name_is_missing_from_the_reference():
    listed = [x for p in (DOCS / "api").glob("*.md") for x in re.findall(r"^::: mbsjax\.(\w+)$", p.read_text(), re.M)]
    assert not _public().symmetric_difference(listed), "the names of mbsjax/__init__.pyi and of docs/api differ"
    assert len(listed) == len(set(listed)), "a name stands twice in docs/api"


def test_gallery_shows_every_picture():
    pictures = {p.name for p in (DOCS / "gallery").glob("*.*") if p.suffix in (".svg", ".png")}
    shown = re.findall(r"\]\(gallery/(\S+)\)", (DOCS / "gallery.md").read_text())
    assert sorted(shown) == sorted(pictures)


def test_examples_in_docstrings_become_blocks_of_code():
    spec = importlib.util.spec_from_file_location("doctests", DOCS / "doctests.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = module.fenced(mbs.simulate.__doc__)
    inside = re.findall(r"```pycon\n(.*?)```", text, re.S)
    assert text.count("```") == 2 * len(inside) > 0
    assert sum(part.count(">>> ") for part in inside) == text.count(">>> ")


def test_cheat_sheet_names_what_there_is():
    spans = " ".join(re.findall(r"`([^`\n]+)`", (DOCS / "cheat_sheet.md").read_text()))
    classes = set(re.findall(r"(?<![\w.\"])[A-Z][a-z]\w+", spans))
    called = set(re.findall(r"(?<![\w.])[a-z]\w+(?=\((?:mech|study|task|first_order|profile|model|name)\b)", spans))
    assert {"Revolute", "Contact", "Spring", "Study", "Task"} <= classes and {"simulate", "tolerance"} <= called
    assert not (classes | called) - _public() - set(dir(builtins))
