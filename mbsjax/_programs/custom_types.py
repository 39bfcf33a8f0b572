"""Types shared by the whole package. To editors and type checkers they say what is wanted:

- `Number`: one number; an array too, where a mechanism is one of many.
- `Numbers`: a number, an array, or nested rows of them.
- `Law`: a number, or a function that gives it.
- `ByName`, `Laws`: numbers, or such laws, by name.
- `Given[X]`: an X.

When a program runs they let everything pass: `as_float` and the constructors look at what they are given and name the
culprit, which a check by annotations could not.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

from jaxtyping import Array, Float


if TYPE_CHECKING:
    import jax
    import numpy as np

    class _Convertible(Protocol):
        """What NumPy makes an array of, such as a column of a table."""

        def __array__(self, *args: Any, **kwargs: Any) -> Any: ...

    _X = TypeVar("_X")
    Given = Annotated[_X, "checked by the constructor"]
    Number = float | jax.Array | np.ndarray | np.number | np.bool_
    _Row = Sequence[Number]
    Numbers = Number | _Convertible | _Row | Sequence[_Row | Number] | Sequence[Sequence[_Row | Number]]
    Law = Number | Callable[..., Any]
    ByName = Mapping[str, Numbers]
    Laws = Mapping[str, Law]
else:

    class Given:
        def __class_getitem__(cls, what: Any) -> Any:
            return Any

    Number = Numbers = Law = Any
    ByName = Laws = Mapping[str, Any]

Vector3 = Float[Array, "*#batch 3"]
Matrix4 = Float[Array, "*#batch 4 4"]
Twist = Float[Array, "*#batch 6"]
