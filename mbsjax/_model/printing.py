"""What objects of the model are printed as. Classes do not import what prints them: it is registered for them."""

import functools
from typing import Any


@functools.singledispatch
def printed(x: Any) -> str:
    """The text of `print(x)`. Fuller texts are registered for a class with `printed.register`."""
    return f"<{type(x).__name__}>"
