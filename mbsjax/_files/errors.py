"""What is wrong with a model file, and where."""

from .lines import Path


class FileError(ValueError):
    """What is wrong with a model file, and where: its `line`, and the `path` of the key."""

    __module__ = "mbsjax"

    def __init__(self, problem: str, source: str, line: int | None = None, path: Path = ()):
        self.problem, self.source, self.line, self.path = problem, source, line, path
        place = [source] + [f"line {line}"] * (line is not None) + [".".join(path)] * bool(path)
        super().__init__(f"{', '.join(place)}: {problem}")


class Consequence(FileError):
    """What follows from a mistake elsewhere, and is not told beside it."""
