"""Classes and modules, put back for a while to what they were."""

import contextlib
import threading
import types
from collections.abc import Iterator
from typing import Any


_ABSENT = object()
in_use = threading.Event()  # whether there are functions whose classes or modules may have to be put back
_present: dict[tuple[int, str], list] = {}  # what attributes are now that are put back to what they were, and how often


@contextlib.contextmanager
def restored(holders: dict[Any, dict[str, Any]]) -> Iterator[None]:
    """Classes and modules within as they were."""
    before = []
    for holder, attributes in holders.items():
        for name, x in attributes.items():
            now = vars(holder).get(name, _ABSENT)
            _present.setdefault((id(holder), name), [now, 0])[1] += 1
            before.append((holder, name, now))
            _set(holder, name, x)
    try:
        yield
    finally:
        for holder, name, x in reversed(before):
            present = _present[id(holder), name]
            present[1] -= 1
            # where threads overlap, the last one leaves what the first one met
            _set(holder, name, x if present[1] else _present.pop((id(holder), name))[0])


def _set(holder: Any, name: str, x: Any) -> None:
    if isinstance(holder, types.ModuleType):
        vars(holder).pop(name, None) if x is _ABSENT else vars(holder).update({name: x})
    elif x is not _ABSENT:
        type.__setattr__(holder, name, x)
    elif name in vars(holder):
        type.__delattr__(holder, name)
