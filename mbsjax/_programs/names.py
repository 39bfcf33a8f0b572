"""What is said of a name that nothing has."""

import difflib
from collections.abc import Sequence


def unknown(what: str, name: str, known: Sequence[str]) -> str:
    """That a name is not known, and what was probably meant.

    !!! Example

        >>> unknown("body", "crnk", ["crank", "rod"])
        "an unknown body 'crnk'; did you mean 'crank'?"
    """
    near = difflib.get_close_matches(str(name), [k for k in known if abs(len(k) - len(str(name))) <= 2], 1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(map(repr, known)) or 'none'}"
    return f"an unknown {what} {name!r}{hint}"
