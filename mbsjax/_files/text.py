"""The text of a model file, and its tables."""

import os
import tomllib
from typing import Any

from .errors import FileError


LARGEST = 1 << 20  # bytes of a file


def read_text(path: Any) -> str:
    """The text of a file."""
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        problem = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror or str(error)
        raise FileError(problem, name) from None
    if len(content) > LARGEST:
        raise FileError(f"a model file must not be larger than {LARGEST} bytes", name)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise FileError("it is not a text in UTF-8", name, line) from None


def read_tables(text: str, source: str) -> dict[str, Any]:
    """The tables of a text, which must be TOML."""
    if len(text.encode("utf-8", "replace")) > LARGEST:
        raise FileError(f"a model file must not be larger than {LARGEST} bytes", source)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem, _, place = str(error).partition(" (at line ")
        line = place.split(",")[0]
        raise FileError(problem, source, int(line) if line.isdigit() else None) from error
    except (ValueError, RecursionError) as error:
        raise FileError(f"it cannot be read: {type(error).__name__} {str(error)[:80]}".strip(), source) from None
