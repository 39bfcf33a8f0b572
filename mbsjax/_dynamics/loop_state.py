"""What the event loop carries from attempt to attempt."""

from typing import Any, NamedTuple

import diffrax
from jaxtyping import Array

from .._events.guards import GuardTable
from .._events.locator import Bracket
from .._events.places import Places
from .impact import RestRule
from .instant import Instant
from .mode import Mode
from .plant import Plant
from .record import Speeds
from .reset import Bounces
from .step_size import Reach


class Options(NamedTuple):
    """How to integrate."""

    solver: diffrax.AbstractSolver
    max_steps: int
    max_events: int
    watching: bool  # whether there is anything to watch
    meter: Any  # a diffrax progress meter
    tangential: bool  # whether a sliding contact without a solution is stopped by an impact


class Run(NamedTuple):
    """What stays the same along a run."""

    plant: Plant
    options: Options
    table: GuardTable
    t_end: Array
    span: Array
    rtol: Array
    atol: Array
    rest: RestRule
    units: Array  # what one unit of q and p weighs
    least: Array  # two times nearer than this are the same
    reach: Reach | None  # without contacts, nothing


class State(NamedTuple):
    t: Array
    q: Array
    p: Array
    speeds: Speeds
    f: Array  # the rates of q and p
    mode: Mode
    there: tuple[Places, Array]  # where each contact might close, and the gap there
    apart: Array  # the gaps of the pairs of elements that are apart
    g: Array  # the guards
    armed: Array  # which of them have left their surface
    exempt: Array  # contacts that have changed at this very time
    fresh: Array  # nothing is known but t, q, p and the mode
    h: Array  # the step to try,
    h_free: Array  # and the one to try after an event
    bracket: Bracket
    bounces: Bounces
    tries: Array  # attempts since the last step,
    cut: Array  # and whether one led an unarmed guard through its surface
    steps: Array
    rows: Array  # how many of them are recorded,
    led: Array  # and whether the last one ended with an event
    rejected: Array
    events: Array
    code: Array
    done: Array
    paradox: Any  # with friction: the last pair whose force could not be found, and its determinant


class Trial(NamedTuple):
    """A step that is tried."""

    h: Array
    t: Array  # where it ends
    now: Instant
    speeds: Speeds
    g_mid: Array
    apart_mid: Array
    g: Array
    places: Places
    there: tuple[Places, Array]
    apart: Array
    keep: Array  # whether its error is small enough,
    h_next: Array  # and how long the next one may be
    sound: Array
    solved: Array  # whether the forces of friction could be found
    off: Array  # how far the constraints are off
