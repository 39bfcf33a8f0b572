"""Who waits for a program is told so: on a terminal, in a notebook, or by what a command says."""

import io
import sys
import threading
import types

import jax
import jax.monitoring
import pytest

from mbsjax._programs import waiting


LOWERED, COMPILED = waiting._LOWERED, waiting._COMPILED


class Clock:
    """Time that goes on only where somebody waits; all waits but the last few are over at once."""

    def __init__(self, waits):
        self.now, self.left = 0.0, waits

    def perf_counter(self):
        return self.now

    def event(self):
        over = threading.Event()

        def wait(seconds):
            if self.left == 0:
                return over.wait(10.0)
            self.now, self.left = self.now + seconds, self.left - 1
            return False

        return types.SimpleNamespace(wait=wait, set=over.set)


@pytest.fixture
def after(monkeypatch):
    """Waits for a program that is compiled until it has been told of some times."""
    monkeypatch.setattr(waiting, "_kept", lambda: "kept")
    monkeypatch.setattr(waiting, "_LOADING", 1.5)

    def run(times, *subjects, events=(LOWERED,)):
        clock, told = Clock(times), threading.Semaphore(0)
        monkeypatch.setattr(waiting, "time", clock)
        fake = types.SimpleNamespace(Event=clock.event, Thread=threading.Thread)
        monkeypatch.setattr(waiting, "threading", fake)
        say = waiting.tell
        monkeypatch.setattr(waiting, "tell", lambda text: (say(text), told.release()))
        with waiting.explained():
            for event in events:
                waiting._heard(event, 0.1, fun_name="f")
            for subject in subjects:
                waiting.traced(subject)
            for _ in range(times):
                assert told.acquire(timeout=10.0)
        monkeypatch.setattr(waiting, "tell", say)

    return run


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_one_line_that_is_written_over(after, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    after(3, "dynamics")
    lines = sys.stderr.getvalue().split("\r\x1b[K")
    assert lines == ["", *(f"compiling dynamics ... {n} s; kept" for n in (2, 3, 4)), ""]


def test_nothing_is_said_before_somebody_wonders(after, monkeypatch):
    for stderr in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stderr)
        after(0, "dynamics")
        after(0)
        assert stderr.getvalue() == ""


def test_a_file_gets_one_line(after, monkeypatch):
    for events in ((), (LOWERED,)):  # lowered at once: that says nothing
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        after(1, "dynamics", events=events)
        assert sys.stderr.getvalue() == ("mbsjax: compiling dynamics, up to a minute where there is much of it; kept\n")
    watch = waiting._Watch()
    watch.began, watch.lowered = 1.0, 8.0
    assert watch._about() == "about 21 s"


def test_a_notebook_shows_one_output_that_is_empty_in_the_end(after, monkeypatch):
    shown = []

    class Handle:
        def update(self, content, raw):
            shown[-1].append(content)

    def display(content, raw, display_id):
        shown.append([content])
        return Handle()

    kernel = types.ModuleType("IPython")
    kernel.get_ipython = lambda: types.SimpleNamespace(kernel="there")
    kernel.display = types.ModuleType("IPython.display")
    kernel.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", kernel.display)
    monkeypatch.setattr(sys, "stderr", Terminal())
    for _ in range(2):
        after(2, "kinematics")
    lines = [{"text/plain": f"compiling kinematics ... {n} s; kept"} for n in (2, 3)]
    assert shown == [[*lines, {}], [*lines, {}]] and sys.stderr.getvalue() == ""
    kernel.get_ipython = lambda: None  # IPython is there, but no notebook
    after(1, "kinematics")
    assert len(shown) == 2 and "compiling kinematics" in sys.stderr.getvalue()


def test_a_command_says_it_in_its_own_way(after):
    told = []
    with waiting.told_by(told.append):
        after(1, "synthesis")
    assert told == ["compiling synthesis ... 2 s; kept", ""]


def test_what_is_traced_loaded_or_run_is_not_said_to_be_compiled(after):
    told = []
    with waiting.told_by(told.append):
        after(1, "kinematics", events=())
        after(1, "kinematics", events=(LOWERED, COMPILED))
    assert told == 2 * ["working on kinematics ... 2 s", ""]


def test_jax_tells_when_it_lowers_and_when_it_has_compiled():
    heard = []
    jax.monitoring.register_event_duration_secs_listener(lambda event, *_, **__: heard.append(event))
    jax.jit(lambda x: 3 * x + 0.125)(2.0)
    assert [x for x in heard if x in (LOWERED, COMPILED)] == [LOWERED, COMPILED]
