"""Pictures as files, for the screen and for print."""

import pathlib
from typing import Any

import numpy as np

from .._programs.names import unknown


WIDTHS = {"column": 3.5, "page": 7.16}  # in inches, of a two-column page
_FILES = {"svg.fonttype": "none", "pdf.fonttype": 42, "ps.fonttype": 42, "svg.hashsalt": "mbsjax"}  # text stays text
_UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
_PAD = 0.02


def save(picture: Any, path: Any, *, width: Any = None, font: str | None = None, dpi: Any = 200) -> pathlib.Path:
    """Saves a picture without empty margins: as PNG, or for LaTeX as PDF or SVG, in which text stays text. The same
    picture gives the same file.

    **Arguments:**

    - `picture`: axes, an array of them, or a figure; of `mbsjax.plots`, of a report, or your own.
    - `path`: its ending says what to write: `.png`, `.pdf`, `.svg`, or another that matplotlib knows.
    - `width`: of the file, in inches, `"column"` (3.5) or `"page"` (7.16); the height follows, and letters keep their
        size, so that they are those of the text around it. Without, the picture is as large as it was drawn.
    - `font`: a font that is installed; `"STIXGeneral"`, which comes with matplotlib, goes with Times.
    - `dpi`: dots per inch of a PNG.

    **Returns:** the path.

    !!! Example

        >>> import tempfile, mbsjax as mbs
        >>> from mbsjax import plots
        >>> arm = mbs.Mechanism([mbs.Body("arm", points={"E": (2.0, 0.0)})], [mbs.Revolute("O", "ground", "arm")])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = plots.save(plots.mechanism(arm, labels=True), folder + "/arm.svg", width="column")
        ...     print('width="252pt"' in path.read_text(encoding="utf-8"))
        True
    """
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    path, inches = pathlib.Path(path), _inches(width)
    first = picture if isinstance(picture, Figure) else np.ravel(picture)[0]
    figure = getattr(first, "figure", None)
    if figure is None:
        raise ValueError(f"axes or a figure can be saved, got {type(first).__name__}")
    rules: dict[Any, Any] = _FILES | _fonts(font)
    before, texts = figure.get_size_inches().copy(), figure.findobj(Text)
    fonts = [text.get_math_fontfamily() for text in texts]
    with matplotlib.rc_context(rules):
        try:
            for text in texts if font is not None else ():
                text.set_math_fontfamily("stix")
            _begin_anew(figure)
            if inches is not None:
                _widen(figure, inches)
                _begin_anew(figure)
            tight = {} if inches is not None else {"bbox_inches": "tight", "pad_inches": _PAD}
            figure.savefig(path, dpi=dpi, metadata=_UNDATED.get(path.suffix, {}), **tight)
        finally:
            figure.set_size_inches(before)
            for text, was in zip(texts, fonts):
                text.set_math_fontfamily(was)
    return path


def _fonts(font: str | None) -> dict[str, list[str]]:
    if font is None:
        return {}
    from matplotlib.font_manager import fontManager

    known = set(fontManager.get_font_names())
    if font not in known:
        raise ValueError(unknown("font", font, sorted(known)))
    return {"font.sans-serif": [font]}  # which is what pictures are written in


def _inches(width: Any) -> float | None:
    found = WIDTHS.get(width, width) if isinstance(width, str) else width
    if isinstance(found, str) or (found is not None and not 0 < found < np.inf):
        raise ValueError(f"`width` must be in inches, or one of {', '.join(WIDTHS)}, got {width!r}")
    return None if found is None else float(found)


def _begin_anew(figure: Any) -> None:
    """Puts axes where they were before any layout: rounding errors of the next one depend on the last one."""
    for axes in figure.axes:
        place, laid_out = axes.get_subplotspec(), axes.get_in_layout()
        if place is not None and figure.get_layout_engine() is not None:
            axes.set_position(place.get_position(figure))
            axes.set_in_layout(laid_out)


def _widen(figure: Any, width: float) -> None:
    """Another width, and the height that what is drawn then needs."""
    old, height = figure.get_size_inches()
    figure.set_size_inches(width, height * width / old)
    figure.draw_without_rendering()
    figure.set_size_inches(width, figure.get_tightbbox().height + 2 * _PAD)
