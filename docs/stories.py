"""Notebooks as pages: text, code and what is saved of the outputs; the motion of the landing page as a page to play.
(A hook of mkdocs, named in `mkdocs.yml`.)

The notebook `notebooks/NAME.ipynb` becomes the page `notebooks/NAME.md`, its pictures and viewers files beside it.
"""

import base64
import html
import json
import pathlib
import re

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from mbsjax._pictures.viewer.view import _page


ASSETS = pathlib.Path(__file__).parent / "assets"
FOLDER = pathlib.Path(__file__).parent.parent / "notebooks"
SOURCE = "https://github.com/mbsjax/mbsjax/blob/main/notebooks"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path in sorted(FOLDER.glob("*.ipynb")):
        text, beside = page(nbformat.read(path, as_version=4), path.stem)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        for name, content in beside.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    motion = json.loads((ASSETS / "cam.json").read_text(encoding="utf-8"))
    files.append(File.generated(config, "assets/cam.html", content=_page(motion["title"], motion)))
    return files


def page(notebook: nbformat.NotebookNode, name: str) -> tuple[str, dict[str, bytes]]:
    """A notebook as Markdown, and the files that belong to it."""
    parts, beside = [], {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(re.sub(r"\]\((\w+)\.ipynb\)", r"](\1.md)", cell.source))
            continue
        parts.append(block("python", cell.source))
        for output in cell.outputs:
            data = output.get("data", {})
            kind = next((kind for kind in ("image/png", "text/html") if kind in data), None)
            if kind is None:
                parts.append(block("text", output.get("text") or data["text/plain"]))
                continue
            file = f"{name}/{cell.id}_{len(beside)}{'.png' if kind == 'image/png' else '.html'}"
            if kind == "image/png":
                beside[file] = base64.b64decode(data[kind])
                parts.append(f"![What the cell above draws]({file})")
            else:  # a viewer: a page of its own in a frame
                beside[file] = html.unescape(re.search(r'srcdoc="([^"]*)"', data[kind])[1]).encode()
                parts.append(f'<iframe class="viewer" src="{file}" title="A page to play the motion"></iframe>')
    title, *rest = parts[0].split("\n", 1)
    told = f"*This page is the notebook [{name}.ipynb]({SOURCE}/{name}.ipynb), with what it printed and drew.*"
    return "\n\n".join([title, told, *rest, *parts[1:]]) + "\n", beside


def block(language: str, text: str) -> str:
    """A block of code, in a fence that is longer than any inside."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
