"""What the code of a function does, whatever its lines, its comments and its local variables are called."""

import dis
import functools
import hashlib
import types
from collections.abc import Iterator
from typing import Any, NamedTuple


_LOOKING_UP = frozenset({"getattr", "setattr", "hasattr", "delattr"})
_LOOKING_THROUGH = frozenset({"vars", "dir", "__dict__"})
_CALLING = frozenset({"PRECALL", "CALL"})
_FLAGS = 0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200  # *args, **kwargs, generators and coroutines


class Code(NamedTuple):
    """The code of a function, with those that stand in it.

    - `digest`: of its instructions and constants. It is the same in every process of this version of Python.
    - `arguments`: their names. Who calls by position does not need them.
    - `read`: the global names that it reads.
    - `imports`: the modules that it imports.
    - `names`: of attributes, and texts that may be some.
    - `computed`: whether it looks up attributes whose names are not written in it.
    """

    digest: bytes
    arguments: tuple[str, ...]
    read: tuple[str, ...]
    imports: tuple[str, ...]
    names: frozenset[str]
    computed: bool


@functools.lru_cache(maxsize=4096)
def code_of(code: types.CodeType) -> Code:
    """What there is to know of a code.

    !!! Example

        >>> first, second = (lambda t: (lambda k: k * t)(2.0)), (lambda time: (lambda k: k * time)(2.0))
        >>> code_of(first.__code__).digest == code_of(second.__code__).digest
        True
        >>> code_of((lambda t: (lambda k: k * t)(3.0)).__code__).digest == code_of(first.__code__).digest
        False
    """
    steps = list(dis.get_instructions(code))
    inner = [code_of(x) for x in code.co_consts if isinstance(x, types.CodeType)]
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    together = lambda name: {x for part in inner for x in getattr(part, name)}
    read = {step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return Code(
        hashlib.blake2b("\n".join(_written(code, steps)).encode("utf8", "surrogatepass"), digest_size=16).digest(),
        code.co_varnames[:count],
        tuple(sorted(read | together("read"))),
        tuple(sorted({step.argval for step in steps if step.opname == "IMPORT_NAME"} | together("imports"))),
        frozenset({*code.co_names, *_texts(code.co_consts)} | together("names")),
        _computes_names(steps) or any(part.computed for part in inner),
    )


def _written(code: types.CodeType, steps: list[dis.Instruction]) -> Iterator[str]:
    """The instructions one by one: constants by value, names of globals and attributes as they are, local variables by
    their numbers. A documentation string is no constant that is loaded."""
    yield f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount} {code.co_flags & _FLAGS}"
    yield code.co_exceptiontable.hex()
    number = {step.offset: i for i, step in enumerate(steps)}
    for step in steps:
        argument: Any = step.arg
        if step.opcode in dis.hasconst or step.opname == "KW_NAMES":  # which Python 3.11 does not count among these
            argument = constant(code.co_consts[step.arg])  # pyright: ignore
        elif step.opcode in dis.hasname:
            argument = step.argrepr
        elif step.opcode in dis.hasjrel or step.opcode in dis.hasjabs:
            argument = number.get(step.argval)
        yield f"{step.opname} {argument}"


def constant(x: Any) -> str:
    """A constant of a code, as a text that no other one has."""
    if isinstance(x, types.CodeType):
        known = code_of(x)
        return f"code {known.digest.hex()} {known.arguments}"
    if isinstance(x, tuple):
        return f"tuple ({', '.join(map(constant, x))})"
    if isinstance(x, frozenset):  # its order is another one in each process
        return f"frozenset ({', '.join(sorted(map(constant, x)))})"
    return f"{type(x).__name__} {x!r}"


def _texts(constants: tuple) -> Iterator[str]:
    for x in constants:
        if isinstance(x, str) and x.isidentifier():
            yield x
        elif isinstance(x, tuple):
            yield from _texts(x)


def _computes_names(steps: list[dis.Instruction]) -> bool:
    """Whether attributes are looked up otherwise than as `x.name`, `getattr(x, "name")` and `getattr(x, "name", y)`."""
    for i, step in enumerate(steps):
        if step.argval in _LOOKING_THROUGH:
            return True
        if step.argval in _LOOKING_UP and step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            ops = [s.opname for s in steps[i + 2 :] if s.opname != "LOAD_ATTR"][:3]
            named = ops[:1] == ["LOAD_CONST"] and any(op in _CALLING for op in ops[1:])
            if not named or (ops[1] not in _CALLING and not ops[1].startswith("LOAD_")):
                return True
    return False
