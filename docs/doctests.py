"""Docstrings for the web pages: doctests become blocks of code. (An extension of griffe, named in `mkdocs.yml`.)"""

import griffe


class Doctests(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Text with its doctests, up to the blank line after each, in fences.

    >>> print(fenced("An example:\\n\\n    >>> 1 + 1\\n    2"))
    An example:
    <BLANKLINE>
        ```pycon
        >>> 1 + 1
        2
        ```
    """
    lines, margin = [], None
    for line in text.splitlines():
        if margin is None and line.lstrip().startswith(">>>"):
            margin = line[: len(line) - len(line.lstrip())]
            lines.append(f"{margin}```pycon")
        elif margin is not None and not line.strip():
            lines.append(f"{margin}```")
            margin = None
        lines.append(line)
    return "\n".join(lines if margin is None else [*lines, f"{margin}```"])
