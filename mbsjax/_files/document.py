"""The text of a model file as tables, with the numbers of its parameters."""

import pathlib
import tomllib
from collections.abc import Mapping
from typing import Any

from .lines import line_numbers
from .read import FileError, Reader, parameters
from .tables import KEYS


LARGEST = 1 << 20  # bytes of a file


class Document:
    """The tables of a model file, where they stand in it, and its parameters."""

    def __init__(self, text: str, source: str):
        self.source, self.text = source, text
        if len(text.encode("utf-8", "replace")) > LARGEST:
            raise FileError(f"a model file must not be larger than {LARGEST} bytes", source)
        try:
            self.document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            problem, _, place = str(error).partition(" (at line ")
            line = place.split(",")[0]
            raise FileError(problem, source, int(line) if line.isdigit() else None) from error
        except (ValueError, RecursionError) as error:
            raise FileError(f"it cannot be read: {type(error).__name__} {str(error)[:80]}".strip(), source) from None
        self.lines = line_numbers(text)
        bare = Reader(source, self.lines, {})  # knows no parameters yet
        bare.only(self.document, KEYS, ())
        self.title = bare.text(self.document.get("title", pathlib.Path(source).stem), ("title",))
        self.parameters = self._numbers(None)

    def _numbers(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        return parameters(self.source, self.lines, self.document.get("parameters", {}), dict(given or {}))

    @property
    def nominal(self) -> dict[str, Any]:
        """The parameters that are numbers, not formulas: those that may vary."""
        given = self.document.get("parameters", {})
        return {name: x for name, x in self.parameters.items() if not isinstance(given[name], str)}

    def reader(self, given: Mapping[str, Any] | None = None) -> Reader:
        """A reader of its tables, with these numbers for some of its parameters."""
        return Reader(self.source, self.lines, self._numbers(given))

    def section(
        self, name: str, known: tuple[str, ...], given: Mapping[str, Any] | None = None
    ) -> tuple[Reader, dict[str, Any]]:
        """A table, which may have these keys, and a reader for it."""
        reader = self.reader(given)
        table = reader.table(self.document.get(name, {}), (name,))
        reader.only(table, known, (name,))
        return reader, table
