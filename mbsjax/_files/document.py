"""The text of a model file as tables, with the numbers of its parameters."""

import pathlib
from collections.abc import Mapping
from typing import Any

from .build import Builder
from .grammar import KEYS
from .lines import line_numbers
from .names import names_of
from .read import is_formula, parameters
from .tables import read_system
from .text import read_tables


class Document:
    """The tables of a model file, where they stand in it, and its parameters."""

    def __init__(self, text: str, source: str):
        self.source, self.text = source, text
        self.document = read_tables(text, source)
        self.lines = line_numbers(text)
        bare = Builder(source, self.lines, {})  # knows no parameters yet
        bare.only(self.document, KEYS, ())
        self.title = bare.text(self.document.get("title", pathlib.Path(source).stem), ("title",))
        self.system = read_system(bare, self.document)
        self.parameters = self._numbers(None)

    def _numbers(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        reader = Builder(self.source, self.lines, {}, units=self.system)
        return parameters(reader, self.document.get("parameters", {}), dict(given or {}))

    @property
    def nominal(self) -> dict[str, Any]:
        """The parameters that are numbers, not formulas: those that may vary."""
        given = self.document.get("parameters", {})
        return {name: x for name, x in self.parameters.items() if not is_formula(given[name])}

    def reader(self, given: Mapping[str, Any] | None = None) -> Builder:
        """A reader of its tables, with these numbers for some of its parameters."""
        return Builder(self.source, self.lines, self._numbers(given), names_of(self.document), units=self.system)
