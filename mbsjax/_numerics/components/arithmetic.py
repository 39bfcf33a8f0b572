"""Operations on numbers: which there are, what they give where all is known, and where they can be left out."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from .entries import Block, known


REDUCTIONS: dict[str, Any] = {
    "reduce_sum": lax.add_p,
    "reduce_prod": lax.mul_p,
    "reduce_max": lax.max_p,
    "reduce_min": lax.min_p,
    "reduce_and": lax.and_p,
    "reduce_or": lax.or_p,
}

ELEMENTWISE = set(
    "add add_any sub mul div neg abs sign floor ceil round is_finite max min sqrt rsqrt cbrt square integer_pow pow "
    "exp exp2 log log1p expm1 sin cos tan asin acos atan atan2 sinh cosh tanh eq ne lt le gt ge and or not xor "
    "select_n clamp convert_element_type rem nextafter".split()
)

FOLDS: dict[str, Callable] = {
    "add": lambda p, a, b: a + b,
    "add_any": lambda p, a, b: a + b,
    "sub": lambda p, a, b: a - b,
    "mul": lambda p, a, b: a * b,
    "neg": lambda p, a: -a,
    "abs": lambda p, a: abs(a),
    "max": lambda p, a, b: np.maximum(a, b),
    "min": lambda p, a, b: np.minimum(a, b),
    "sqrt": lambda p, a: np.sqrt(a),
    "sin": lambda p, a: np.sin(a),
    "cos": lambda p, a: np.cos(a),
    "square": lambda p, a: a * a,
    "integer_pow": lambda p, a: a ** p["y"] if np.issubdtype(a.dtype, np.floating) else int(a) ** p["y"],
    "eq": lambda p, a, b: a == b,
    "ne": lambda p, a, b: a != b,
    "lt": lambda p, a, b: a < b,
    "le": lambda p, a, b: a <= b,
    "gt": lambda p, a, b: a > b,
    "ge": lambda p, a, b: a >= b,
    "and": lambda p, a, b: a & b,
    "or": lambda p, a, b: a | b,
    "not": lambda p, a: ~a,
    "select_n": lambda p, which, *of: of[int(which)],
    "convert_element_type": lambda p, a: a,
}


def simplified(name: str, p: dict, xs: tuple, dtype: Any) -> Any:
    """What an operation is without it: a number; ("neg", x); or None, where it is needed."""
    is_ = lambda x, value: known(x) and x == value
    a, b = xs[0], xs[-1]
    if name in ("add", "add_any"):
        return b if is_(a, 0) else a if is_(b, 0) else None
    if name == "sub":
        return a if is_(b, 0) else ("neg", b) if is_(a, 0) else None
    if name == "mul":
        for x, y in ((a, b), (b, a)):
            if is_(x, 0):
                return np.zeros((), dtype)[()]
            if is_(x, 1):
                return y
            if is_(x, -1):
                return ("neg", y)
    elif name == "div":
        return a if is_(b, 1) or is_(a, 0) else None
    elif name == "neg" and not isinstance(a.op, (Block, int)) and a.op[0].name == "neg":
        return a.args[0]
    elif name == "select_n":
        if known(a):
            return xs[1 + int(a)]
        if all(x is xs[1] for x in xs[2:]) or (known(xs[1]) and all(is_(x, xs[1]) for x in xs[2:])):
            return xs[1]
    elif name in ("and", "or") and np.issubdtype(dtype, np.bool_):
        for x, y in ((a, b), (b, a)):
            if known(x):
                return y if bool(x) == (name == "and") else x
    elif name == "convert_element_type" and a.dtype == dtype:
        return a
    return None
