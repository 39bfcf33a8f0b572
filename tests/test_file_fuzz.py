"""Readers of files under fire: whatever the text, there is an answer or a clean error, soon and in little memory.

`MBSJAX_FUZZ=20` runs twenty times as many examples.
"""

import importlib.resources
import os
import re
import resource

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import mbsjax as mbs
from mbsjax._files.formula import FUNCTIONS, parse, value

from .test_step import Writer, stadium


TIMES = int(os.environ.get("MBSJAX_FUZZ", "1"))
EXAMPLES = {
    f.name: f.read_text(encoding="utf-8")
    for f in (importlib.resources.files("mbsjax") / "examples").iterdir()
    if f.name.endswith(".toml")
}
TOKEN = re.compile(r"[\w.]+|\"[^\"\n]*\"|[^\w\s]|\n")
WORDS = sorted({t for text in EXAMPLES.values() for t in TOKEN.findall(text)})
NASTY = [
    "nan", "inf", "-inf", "1e308", "-1", "0", "1e-320", "9" * 30, "true", "[]", "{}", '""', "[[[[1]]]]", '"1/0"', '"t"',
    '"__import__"', "1979-05-27", '"' + "(" * 50 + '"', "\x00", "é", "ground", '"ground"', '"a.b"', '"sqrt(-1)"',
]  # fmt: skip


def often(n: int):
    return settings(
        max_examples=n * TIMES, deadline=None, database=None, derandomize=TIMES == 1,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


@st.composite
def mutated(draw, texts, words):
    """One of the texts, some of its words deleted, repeated, exchanged or put elsewhere."""
    tokens = re.split(r"(\s+|[\[\]{}=,])", draw(st.sampled_from(texts)))
    for _ in range(draw(st.integers(1, 4))):
        i = draw(st.integers(0, len(tokens) - 1))
        kind = draw(st.sampled_from(["delete", "repeat", "word", "nasty", "swap", "letter"]))
        if kind == "delete":
            del tokens[i]
        elif kind == "repeat":
            tokens.insert(i, tokens[i])
        elif kind == "word":
            tokens[i] = draw(st.sampled_from(words))
        elif kind == "nasty":
            tokens[i] = draw(st.sampled_from(NASTY))
        elif kind == "swap":
            j = draw(st.integers(0, len(tokens) - 1))
            tokens[i], tokens[j] = tokens[j], tokens[i]
        else:
            tokens[i] = draw(st.text(max_size=3))
        tokens = tokens or [""]
    return "".join(tokens)


@pytest.fixture(autouse=True)
def little_memory():
    """No reader takes more than 2 GiB on top."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2 << 20


@pytest.mark.long
@often(120)
@given(mutated(list(EXAMPLES.values()), WORDS))
def test_mutated_model_files(text):
    try:
        model = mbs.loads(text)
        assert isinstance(model.check(), list)
    except mbs.FileError as error:
        assert str(error).startswith("model") and len(str(error)) < 2000


@often(200)
@given(st.one_of(st.text(max_size=200), st.binary(max_size=200).map(lambda b: b.decode("latin-1"))))
def test_any_text_as_a_model_file(text):
    try:
        mbs.loads(text).check()
    except mbs.FileError:
        pass


@often(500)
@given(
    st.lists(st.sampled_from([*FUNCTIONS, *"+-*/^()[],.`0123456789", "**", "a", "row", "pi", " ", "1e9"]), max_size=30)
)
def test_any_formula(tokens):
    known = {"a": np.float64(2.0), "row": np.arange(3.0)}
    try:
        tree = parse("".join(tokens))
        found = value(tree, known.__getitem__)
    except (ValueError, KeyError):
        return
    assert np.asarray(found).dtype == float


@often(60)
@given(mutated(["x,y\n0,0\n1,0\n1,1\n0,1\n", "# points\n\n0;0\n1,0,0\n2,2\n"], [*WORDS[:50], "1e400", "nan", "0"]))
def test_mutated_tables_of_points(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "points.csv"
    path.write_text(text, encoding="utf-8")
    try:
        mbs.from_table(path)
    except ValueError:
        pass


@often(40)
@given(st.data())
def test_mutated_drawings(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "drawing.dxf"
    if not hasattr(test_mutated_drawings, "text"):
        square = [(0.0, 0.0), (4.0, 0.0), (4.0, 3.0), (0.0, 3.0)]
        mbs.polygon(square, (1.0, 0.0, 0.5, 0.2)).to_dxf(path)
        whole = path.read_text(encoding="utf-8")
        test_mutated_drawings.text = whole, whole.index("ENTITIES")
    whole, start = test_mutated_drawings.text
    entities = data.draw(mutated([whole[start:]], ["1e400", "nan", "LINE", "ARC", "0", "10", "40", "-1"]))
    path.write_text(whole[:start] + entities, encoding="utf-8", errors="replace")
    try:
        mbs.read_dxf(path)
    except ValueError:
        pass


SVG = """<svg width="40mm" viewBox="0 0 40 30" xmlns="http://www.w3.org/2000/svg">
<g id="part" transform="translate( 1 , 2 ) rotate( 30 )">
<path id="rim" d="M 0 0 H 4 A 1 1 0 0 0 4 -2 Q 3 -3 2 -2 C 1 -1 1 -3 0 -2 Z"/> </g>
<circle id="bore" cx="9" cy="1" r="0.5"/> <rect x="10" y="0" width="3" height="2" rx="0.5"/>
<polygon points="20 0 , 24 0 , 22 3"/> <ellipse cx="30" cy="5" rx="2" ry="1"/> </svg>
"""


@often(120)
@given(
    mutated(
        [SVG], ["1e400", "nan", "A", "Z", "m", "-1", "0", "1e-300", '<use href="#rim"/>', 'd="', "scale(0)", "</g>"]
    ),
    st.sampled_from([{}, {"id": "rim"}, {"id": "part", "unit": "mm"}, {"index": 0}, {"hole": True, "closed": True}]),
)
def test_mutated_vector_drawings(tmp_path_factory, text, options):
    path = tmp_path_factory.getbasetemp() / "drawing.svg"
    path.write_text(text, encoding="utf-8", errors="replace")
    told_of(path, mbs.read_svg, options)


def step_text() -> str:
    """A stadium with a bore."""
    file = Writer()
    file.face(stadium(file), [file.circle((2.0, 0.0), 0.5, (2.5, 0.0), (2.5, 0.0))], name="top")
    return file.text()


@often(120)
@given(
    mutated([step_text()], ["1e400", "#10", "#30", "*", "$", ".F.", "LINE(''", "()", "''", "0.", "-1.", ";", "#9999"]),
    st.sampled_from(
        [{}, {"face": "top", "index": 0}, {"index": 1, "hole": True}, {"face": 0, "unit": "m", "index": 0}]
    ),
)
def test_mutated_step_files(tmp_path_factory, text, options):
    path = tmp_path_factory.getbasetemp() / "plate.step"
    path.write_text(text, encoding="utf-8", errors="replace")
    told_of(path, mbs.read_step, options)


def told_of(path, read, options):
    """A profile of finite numbers, or an error that begins with the name of the file."""
    try:
        found = read(path, **options)
    except ValueError as error:
        assert str(error).startswith(str(path)) and len(str(error)) < 2000
    else:
        assert np.isfinite(found.points()).all()
