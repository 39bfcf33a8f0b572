"""Says that a program is traced and compiled, where somebody waits for it."""

import contextlib
import contextvars
import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any


_PATIENCE = 2.0  # seconds, after which somebody wonders
_LOADING = 5.0  # seconds: what takes longer than that from the end of lowering is compiled, not found among the kept
_ALL = 3.0  # how long it takes to have a program, in parts of how long it takes to trace and lower it
_LOWERED, _COMPILED = (f"/jax/core/compile/{x}_duration" for x in ("jaxpr_to_mlir_module", "backend_compile"))
_here = threading.local()
_told_by: list[Callable[[str], None]] = []
_shown: list[Any] = []  # the line in a notebook


class _Watch:
    """Tells how long it has taken so far, from when a function is traced to when its program has run."""

    def __init__(self):
        self.over, self.thread, self.began, self.subject = threading.Event(), None, 0.0, ""
        self.lowered: float | None = None  # when the program was that is compiled, or looked for, now

    def begin(self, subject: str) -> None:
        self.subject = subject
        if self.thread is None:
            _listen()
            self.began = time.perf_counter()
            where = contextvars.copy_context()  # in which a notebook knows the cell that runs
            self.thread = threading.Thread(target=where.run, args=(self._tell,), daemon=True)
            self.thread.start()

    def _tell(self) -> None:
        if not _is_overwritten():
            if not self.over.wait(_LOADING):
                tell(f"mbsjax: compiling {self.subject}, {self._about()}; {_kept()}")
            return
        told, wait = False, _PATIENCE
        while not self.over.wait(wait):
            now, lowered = time.perf_counter(), self.lowered
            compiles = lowered is not None and now - lowered > _LOADING
            what, more = ("compiling", f"; {_kept()}") if compiles else ("working on", "")
            tell(f"{what} {self.subject} ... {now - self.began:.0f} s{more}")
            told, wait = True, 1.0
        if told:
            tell("")

    def _about(self) -> str:
        """How long it may take."""
        about = 0.0 if self.lowered is None else _ALL * (self.lowered - self.began)
        return f"about {about:.0f} s" if about > _LOADING else "up to a minute where there is much of it"

    def end(self) -> None:
        self.over.set()
        if self.thread is not None:
            self.thread.join()


@functools.cache
def _listen() -> None:
    """Has JAX tell what it does, from now on."""
    import jax.monitoring

    jax.monitoring.register_event_duration_secs_listener(_heard)


def _heard(event: str, duration_secs: float, **_: Any) -> None:
    """JAX has lowered a program in this thread, which it compiles or finds among the kept ones now, or has it."""
    watch = getattr(_here, "watch", None)
    if watch is not None and event in (_LOWERED, _COMPILED):
        watch.lowered = time.perf_counter() if event == _LOWERED else None


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Waiting within is explained, if a function is traced: see `traced`."""
    if getattr(_here, "watch", None) is not None:
        yield
        return
    watch = _here.watch = _Watch()
    try:
        yield
    finally:
        _here.watch = None
        watch.end()


def traced(subject: str) -> None:
    """A function is being traced now; `subject` is what it is about, "kinematics" or "dynamics"."""
    watch = getattr(_here, "watch", None)
    if watch is not None:
        watch.begin(subject)


@contextlib.contextmanager
def told_by(f: Callable[[str], None]) -> Iterator[None]:
    """What is said within is said by this function; an empty text when it is over."""
    _told_by.append(f)
    try:
        yield
    finally:
        _told_by.remove(f)


def tell(text: str) -> None:
    """Says it, on a terminal or in a notebook in a line that is written over; an empty text when it is over. In a file
    it is a line of its own."""
    if _told_by:
        _told_by[-1](text)
    elif _in_notebook():
        _show(text)
    elif sys.stderr is not None:
        sys.stderr.write(f"\r\x1b[K{text}" if sys.stderr.isatty() else f"{text}\n")
        sys.stderr.flush()


def _is_overwritten() -> bool:
    """Whether a line that is said can be written over; else one is enough."""
    return bool(_told_by) or _in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def progressed(text: str) -> None:
    """Says how far it has come, where somebody listens."""
    if _told_by:
        _told_by[-1](text)


def _in_notebook() -> bool:
    """Whether this runs in the kernel of a notebook."""
    there = sys.modules.get("IPython")
    return there is not None and getattr(there.get_ipython(), "kernel", None) is not None


def _show(text: str) -> None:
    """Shows it under the cell that runs; at the end nothing is left of it, also where the notebook is saved."""
    import IPython.display

    content = {"text/plain": text} if text else {}
    if not _shown:
        _shown.append(IPython.display.display(content, raw=True, display_id=True))
    else:
        _shown[0].update(content, raw=True)
    if not text:
        _shown.clear()


def _kept() -> str:
    import jax

    from .kept import folder

    config: Any = jax.config
    theirs = config.jax_compilation_cache_dir if config.jax_enable_compilation_cache else None
    if not (where := folder() or theirs):
        return "not kept for the next run: see mbsjax.keep_programs"
    return f"kept in {where}, the next run loads it"
