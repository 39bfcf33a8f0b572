"""What a function is now: a copy of it and of all that it refers to, and a digest of that copy, made in one walk.

The walk copies what may change: functions, with new cells and new globals; lists, dicts, arrays; objects, as `pickle`
takes them apart. What is met twice is one thing in the copy too. What cannot change is taken as it is: numbers, texts,
JAX arrays, and whatever a library defines, which is known by its name.

Classes and modules of users keep their identity, for objects that come from elsewhere are theirs too. The attributes of
them that the code names are copied; `restored` puts these back while the copy runs, where somebody has changed them.

Traced numbers have no value yet. They are holes in the copy, which a walk through the copy fills.
"""

import builtins
import contextlib
import enum
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax

from .bytecode import Code, code_of
from .copies import DESCRIBING, EXACTLY, SIMPLE, WITH_SUBCLASSES, Unseen, copied
from .digests import digest_of
from .libraries import is_library, label, root


_OUTSIDE = frozenset({"__import__", "compile", "eval", "exec", "globals", "input", "locals", "open"})
_MAKING = frozenset({"__init__", "__new__", "__post_init__", "__check_init__"})
_HOUSEKEEPING = frozenset(  # attributes of a class that decide nothing while a function runs
    "__dict__ __weakref__ __doc__ __module__ __qualname__ __annotations__ __annotate__ __annotate_func__ __slots__ "
    "__firstlineno__ __static_attributes__ __orig_bases__ __parameters__ __type_params__ __abstractmethods__ "
    "__abstractvars__ __abstractclassvars__ __dataclass_fields__ __dataclass_params__ __match_args__ _abc_impl "
    "__subclasshook__ __init_subclass__ __class_getitem__ __repr__ __str__ __del__ __reduce__ __reduce_ex__ "
    "__getstate__ __setstate__ __slotnames__".split()
)
_SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType)
_JITTED: Any = type(jax.jit(lambda: None))
_MOST = 200_000  # things that one function may refer to


class Snapshot(NamedTuple):
    """A copy of a function, and what it is made of.

    - `digest`: equal for functions that do the same; `lasting`: whether that holds between processes of one version of
        Python.
    - `parts`: what the function itself refers to, by name, with its value or a digest of it.
    - `numbers`: to fill the holes with.
    - `names`: of attributes, that its code has.
    - `own`: whether any code in it is not a library's.
    - `holders`: classes and modules of users, with the attributes of them that were copied.
    """

    copy: Any
    digest: bytes
    lasting: bool
    parts: dict[str, str]
    numbers: tuple
    names: frozenset[str]
    own: bool
    holders: dict[Any, dict[str, Any]]


class Beside(NamedTuple):
    """What a function does not refer to, and depends on: the classes of its arguments, and names of attributes that
    those look at who get its result."""

    classes: tuple[type, ...] = ()
    names: frozenset[str] = frozenset()


ALONE = Beside()


def snapshot(
    f: Any, numbers: Iterable[Any] = (), beside: Beside = ALONE, trusted: frozenset[str] = frozenset()
) -> Snapshot:
    """A function as it is now; raises `Unseen` where that cannot be told. `numbers` belong to the holes that it has
    already; packages that are `trusted` are taken for libraries.

    !!! Example

        >>> theirs = {"cfg": types.SimpleNamespace(speed=2.0)}  # the names of a user's module
        >>> f = eval("lambda t: cfg.speed * t", theirs)
        >>> before = snapshot(f)
        >>> theirs["cfg"].speed = 3.0
        >>> after = snapshot(f)
        >>> before.copy(1.0), after.copy(1.0), before.digest == after.digest
        (2.0, 3.0, False)
    """
    walk = _Walk(f, numbers, None, trusted)
    copy = walk.through(f, beside)
    digest, numbers, names = digest_of(walk.tokens), tuple(walk.numbers), frozenset(walk.names)
    return Snapshot(copy, digest, walk.lasting, walk.parts, numbers, names, walk.own, walk.holders)


def fingerprint(x: Any) -> bytes | None:
    """A digest of anything, the same in every process, with all that the classes of users in it can do; None where that
    cannot be told."""
    walk = _Walk(x, (), None, frozenset())
    walk.computed = True  # who will call what is not known: every attribute counts
    try:
        walk.through(x)
    except Unseen:
        return None
    return digest_of(walk.tokens) if walk.lasting and not walk.numbers else None


def filled(copy: Any, numbers: Sequence[Any]) -> Any:
    """A copy of a copy, with numbers in its holes."""
    return _Walk(copy, (), numbers, frozenset()).through(copy)


class _Walk:
    """The walk. `tokens` are what it meets, one after the other: their digest is that of the function."""

    def __init__(self, f: Any, numbers: Iterable[Any], filling: Sequence[Any] | None, trusted: frozenset[str]):
        self.numbers, self.filling, self.trusted = list(numbers), filling, trusted
        self.tokens: list[bytes] = []
        self.parts: dict[str, str] = {}
        self.lasting, self.own = True, False
        self.holders: dict[Any, dict[str, Any]] = {}
        self.copies: dict[int, tuple[int, Any, Any]] = {}  # by identity: a number, the original, its copy
        self.globals: dict[int, tuple[Any, dict[str, Any]]] = {}  # likewise
        self.names: set[str] = set()  # that the code has, of attributes
        self.computed = False  # whether it looks up attributes by names that it computes
        self.made: set[type] = set()  # classes that it may make objects of
        self.path = [label(f)]
        self.packages = [root(getattr(f, "__module__", None))]
        self.first: Any = f  # it is called by position: how its arguments are called does not matter
        while type(self.first) in (types.MethodType, _JITTED):
            self.first = self.first.__wrapped__ if type(self.first) is _JITTED else self.first.__func__

    def through(self, f: Any, beside: Beside = ALONE) -> Any:
        try:
            copy = self.take(f)
            self.names |= beside.names
            for cls in beside.classes:
                self.class_of(cls)
            self._take_attributes()
        except RecursionError:
            raise self.unseen("what it refers to is nested too deeply") from None
        return copy

    def take(self, x: Any) -> Any:
        """The copy of anything."""
        kind = type(x)
        if kind in SIMPLE:
            if kind is str:
                self.names.add(x)
            self.note(kind.__name__, hex(x) if kind is int else repr(x))
            return x
        if isinstance(x, type):
            self.made.update(x.__mro__)
        if id(x) in self.copies:
            number, _, copy = self.copies[id(x)]
            self.note("again", number)
            return copy
        if kind in _EXACTLY:
            return _EXACTLY[kind](self, x)
        for group, taken in _WITH_SUBCLASSES:
            if isinstance(x, group):
                return taken(self, x)
        return copied(self, x)

    def part(self, name: str, x: Any) -> Any:
        """The copy of something that is called so there."""
        start = len(self.tokens)
        self.path.append(name)
        copy = self.take(x)
        self.path.pop()
        if len(self.path) == 1:
            self.parts[name] = repr(x) if type(x) in SIMPLE else f"#{digest_of(self.tokens[start:]).hex()[:16]}"
        return copy

    def note(self, *tokens: Any) -> None:
        self.tokens += [x if isinstance(x, bytes) else str(x).encode("utf8", "surrogatepass") for x in tokens]

    def keep(self, x: Any, copy: Any) -> Any:
        """Remembers the copy of something that has an identity."""
        if len(self.copies) > _MOST:
            raise self.unseen(f"it refers to more than {_MOST} things")
        self.copies[id(x)] = (len(self.copies), x, copy)
        return copy

    def unseen(self, why: str) -> Unseen:
        return Unseen(".".join(self.path[1:]) or self.path[0], why, self.packages[-1])

    # what is known by its name

    def is_library(self, module: Any) -> bool:
        package = root(module)
        return is_library(package) or package in self.trusted

    def named(self, x: Any) -> bool:
        """Whether a library has it under its own name: then this is what it is."""
        module: Any = getattr(x, "__module__", None)
        if not self.is_library(module):
            return False
        name = getattr(x, "__qualname__", None) or getattr(x, "__name__", None)
        there = sys.modules.get(module)
        for part in name.split(".") if isinstance(name, str) else ():
            there = getattr(there, part, None)
        if there is x:
            self.note("library", module, name)
        return there is x

    def _class(self, cls: type) -> type:
        if self.named(cls):
            return cls
        self.keep(cls, cls)
        self.note("class", cls.__qualname__)
        if self.is_library(cls.__module__):
            self.note(cls.__module__)
            return cls
        self.own = True
        if isinstance(cls, enum.EnumMeta):
            members: Any = cls.__members__
            for name, member in members.items():
                self.note(name)
                self.part(name, member.value)
            return cls
        self.holders[cls] = {}
        for base in (*cls.__bases__, type(cls)):
            self.class_of(base)
        return cls

    def class_of(self, cls: type) -> None:
        """The class of an object, of which the code need not make others."""
        if id(cls) in self.copies:
            self.note("again", self.copies[id(cls)][0])
        else:
            self._class(cls)

    def _module(self, module: types.ModuleType) -> types.ModuleType:
        self.note("module", module.__name__)
        if not self.is_library(module.__name__):
            self.own = True
            self.holders[module] = {}
        return self.keep(module, module)

    def _take_attributes(self) -> None:
        """Those of classes and modules that the code names. Their code may name more, so it goes round until there are
        none left."""
        while pending := [
            (holder, name)
            for holder, taken in self.holders.items()
            for name in sorted(vars(holder))
            if name not in taken and self._wanted(holder, name)
        ]:
            for holder, name in pending:
                module = holder.__name__ if isinstance(holder, types.ModuleType) else holder.__module__
                self.packages[1:] = [root(module)]
                self.note("attribute", self.copies[id(holder)][0], name)
                count = len(self.numbers)
                self.holders[holder][name] = self.part(f"{holder.__name__}.{name}", vars(holder)[name])
                if len(self.numbers) > count:  # where it is put back there is nobody to fill it
                    raise Unseen(f"{holder.__name__}.{name}", "a class or a module has a traced number", root(module))
        if self.computed and (modules := [x for x in self.holders if isinstance(x, types.ModuleType)]):
            self.path[1:] = [modules[0].__name__]
            raise self.unseen("attributes are looked up by names that are computed: write `module.name`")

    def _wanted(self, holder: Any, name: str) -> bool:
        private = name.startswith("__") and name.endswith("__")
        if isinstance(holder, types.ModuleType):
            return name in self.names and not private
        if name in _HOUSEKEEPING or isinstance(vars(holder)[name], _SLOTS):
            return False
        if private:  # Python calls these by itself
            return name in self.names or name not in _MAKING or holder in self.made
        return name in self.names or self.computed

    # functions

    def _function(self, f: types.FunctionType) -> Any:
        if self.named(f):
            return f
        code, library = code_of(f.__code__), self.is_library(f.__globals__.get("__name__"))
        self.note("function", code.digest, "" if f is self.first else " ".join(code.arguments))
        if library and not f.__closure__:  # an entry of a table, say
            return f
        if not library:
            self._look_into(f, code)
        fresh = [x for x in f.__closure__ or () if id(x) not in self.copies]
        cells = tuple(self._cell(x) for x in f.__closure__ or ())
        around = f.__globals__ if library else self._new_globals(f.__globals__)
        copy = self.keep(f, types.FunctionType(f.__code__, around, f.__name__, None, cells))
        copy.__qualname__, copy.__module__, copy.__doc__ = f.__qualname__, f.__module__, f.__doc__
        self.packages.append(root(f.__globals__.get("__name__")))
        self._take_defaults(f, copy)
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            self._take_cell(name, cell, any(cell is x for x in fresh))
        if not library:
            self._take_globals(f, code, around)
        for name, x in vars(f).items():
            if name not in DESCRIBING:
                self.note(name)
                setattr(copy, name, self.part(name, x))
        self.note("end")
        self.packages.pop()
        return copy

    def _look_into(self, f: types.FunctionType, code: Code) -> None:
        self.own = True
        self.names |= code.names
        self.computed |= code.computed
        if f is self.first:
            self.parts["its code"] = f"#{code.digest.hex()[:16]}"
        for module in code.imports:
            if not self.is_library(module):
                raise self.unseen(f"{f.__qualname__!r} imports {module!r} while it runs: import it before")

    def _new_globals(self, old: dict[str, Any]) -> dict[str, Any]:
        """For all functions that share theirs."""
        if id(old) not in self.globals:
            about = {name: old[name] for name in ("__name__", "__package__", "__file__", "__spec__") if name in old}
            self.globals[id(old)] = old, {"__builtins__": builtins, **about}
        return self.globals[id(old)][1]

    def _take_globals(self, f: types.FunctionType, code: Code, new: dict[str, Any]) -> None:
        for name in code.read:
            if name in f.__globals__:
                new[name] = self.part(name, f.__globals__[name])
            elif name in _OUTSIDE:
                raise self.unseen(f"{f.__qualname__!r} calls `{name}`, and what that looks at cannot be seen")
            else:
                self.note("builtin", name)

    def _take_defaults(self, f: types.FunctionType, copy: types.FunctionType) -> None:
        values, by_name = f.__defaults__ or (), f.__kwdefaults__ or {}
        self.note(len(values), *sorted(by_name))
        names = f.__code__.co_varnames[: f.__code__.co_argcount][-len(values) :]
        if values:
            copy.__defaults__ = tuple(self.part(name, x) for name, x in zip(names, values, strict=True))
        if by_name:
            copy.__kwdefaults__ = {name: self.part(name, by_name[name]) for name in sorted(by_name)}

    def _cell(self, cell: types.CellType) -> types.CellType:
        """A new cell. It is filled when the function is there that refers to it, for it may hold the function."""
        return self.copies[id(cell)][2] if id(cell) in self.copies else self.keep(cell, types.CellType())

    def _take_cell(self, name: str, cell: types.CellType, fresh: bool) -> None:
        number, _, new = self.copies[id(cell)]
        self.note("cell", number)
        if fresh:
            with contextlib.suppress(ValueError):  # there is nothing in it yet
                content = cell.cell_contents
                new.cell_contents = self.part(name, content)

    def _method(self, x: types.MethodType) -> Any:
        self.note("method")
        f = self.take(x.__func__)
        return self.keep(x, types.MethodType(f, self.take(x.__self__)))

    def _jitted(self, x: Any) -> Any:
        """What was jitted: within a program, it does the same."""
        return x if self.named(x) else self.keep(x, self.take(x.__wrapped__))

    def _unbound(self, x: Any) -> Any:
        self.note(type(x).__name__)
        return self.keep(x, type(x)(self.take(x.__func__)))

    def _property(self, x: property) -> Any:
        self.note("property")
        return self.keep(x, type(x)(*map(self.take, (x.fget, x.fset, x.fdel))))


_EXACTLY: dict[type, Callable] = {
    **EXACTLY,
    types.FunctionType: _Walk._function,
    types.MethodType: _Walk._method,
    _JITTED: _Walk._jitted,
    staticmethod: _Walk._unbound,
    classmethod: _Walk._unbound,
}
_WITH_SUBCLASSES: tuple[tuple[Any, Callable], ...] = (
    *WITH_SUBCLASSES,
    (type, _Walk._class),
    (types.ModuleType, _Walk._module),
    (property, _Walk._property),
)
