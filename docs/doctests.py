"""Docstrings for the web pages: doctests become blocks of code, a link leads to the source.

(An extension of griffe, named in `mkdocs.yml`.)
"""

import griffe


SOURCE = "https://github.com/mbsjax/mbsjax/blob/main"


class Doctests(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
            if obj.parent is not None and obj.parent.is_module and (obj.is_function or obj.is_class):
                obj.docstring.value += f"\n\n[Source]({SOURCE}/{obj.relative_package_filepath}#L{obj.lineno})"


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
