"""Where in a TOML file its tables and keys stand."""

import re


_ONE = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_WORD, _KEY = re.compile(_ONE), re.compile(rf"\s*({_ONE}(?:\s*\.\s*{_ONE})*)")

Path = tuple[str, ...]


def line_numbers(text: str) -> dict[Path, int]:
    """The line of every table and of every key that begins a line, of a text that is known to be TOML.

    !!! Example

        >>> line_numbers("[joints.A]\\ntype = 'revolute'")
        {('joints',): 1, ('joints', 'A'): 1, ('joints', 'A', 'type'): 2}
    """
    found: dict[Path, int] = {}
    table: Path = ()
    for number, line in _statements(text):
        bare = line.strip()
        if bare.startswith("["):
            table = _words(bare.strip("[] \t"))
            keys = table
        else:
            key = _KEY.match(line)
            keys = table + _words(key[1]) if key else table
        for k in range(1, len(keys) + 1):
            found.setdefault(keys[:k], number)
    return found


def line_of(lines: dict[Path, int], path: Path) -> int | None:
    """The line of a key, or of the nearest one around it."""
    for k in range(len(path), 0, -1):
        if path[:k] in lines:
            return lines[path[:k]]
    return None


def _words(dotted: str) -> Path:
    return tuple(w[1:-1] if w[0] in "\"'" else w for w in _WORD.findall(dotted))


def _statements(text: str) -> list[tuple[int, str]]:
    """The lines at which a statement begins: not those inside of brackets or of texts over several lines."""
    found, depth, quote, number, start, begun = [], 0, "", 1, 0, True
    i = 0
    while i <= len(text):
        three, one = text[i : i + 3], text[i : i + 1]
        if one in ("\n", ""):
            if begun:
                line = text[start:i].strip()
                if line and not line.startswith("#"):
                    found.append((number, text[start:i]))
            number += 1
            start = i + 1
            begun = depth == 0 and quote == ""
            i += 1
        elif quote:
            if text.startswith(quote, i):
                i, quote = i + len(quote), ""
            else:
                i += 2 if one == "\\" and quote[0] == '"' and text[i + 1 : i + 2] != "\n" else 1
        elif three in ('"""', "'''"):
            quote, i = three, i + 3
        elif one in "\"'":
            quote, i = one, i + 1
        elif one == "#":
            end = text.find("\n", i)
            i = len(text) if end < 0 else end
        else:
            depth += (one in "[{") - (one in "]}")
            i += 1
    return found
