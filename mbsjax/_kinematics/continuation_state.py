"""What is carried from correction to correction while a driven mechanism is followed, and what is found."""

from typing import Any, NamedTuple

from jaxtyping import Array

from .._events.guards import GuardTable
from .._events.locator import Bracket
from .._events.places import Places
from .drive import Problem
from .mode import Mode
from .system import Rotations


class EventRow(NamedTuple):
    """An event: its time, its position, the modes before and after, and what happened. Rows that are not filled have an
    infinite time."""

    t: Array
    q: Array
    guard: Array  # -1 where none told of it
    before: Mode
    after: Mode
    kind: Array
    contact: Array
    gave_way: Array


class Path(NamedTuple):
    """What was found."""

    q: Array  # at every output time
    alive: Array  # whether it was reached
    crossed_at: Array
    mode: Mode | None
    count: Array  # how many events there were before it
    last: Array  # the last position,
    mode_last: Mode | None
    stopped_at: Array  # when and
    why: Array  # why it was the last, as a code of the result
    events: EventRow | None  # stacked on a first axis


class Run(NamedTuple):
    """What stays the same along a motion."""

    problem: Problem
    ts: Array
    span: Array
    least: Array  # two times nearer than this are the same
    converged: Any  # the size of a correction after which no other is needed
    per_size: Array
    max_steps: int
    max_events: int
    table: GuardTable
    finest: Array
    around: tuple[Array, Array]


class Watch(NamedTuple):
    """What is known of the contacts."""

    mode: Mode
    g: Array  # the guards at the last accepted position,
    rate: Array  # and their rates,
    near: Places  # and where each contact might close,
    apart: Array  # and the gaps of the pairs of elements that are apart
    clear: Array  # for how long no two bodies can come through each other unseen
    armed: Array  # which have been clear of their surface since their contact last changed
    bracket: Bracket  # of an event; it begins at the last accepted position
    tries: Array
    fallen: Array
    jammed: Array
    count: Array  # of the events
    made: Array  # whether one has just happened,
    row: EventRow  # and what there is to record of it


class State(NamedTuple):
    t: Array  # the last accepted time,
    q: Array  # position
    v: Array  # velocity
    J: Array  # and Jacobian;
    back: Array  # the step that led there: its time,
    moved: Array  # its displacement,
    v_back: Array  # and the velocity before it;
    h: Array  # the step being tried,
    d: Array  # its displacement so far,
    y: Array  # where that leads,
    rotations: Rotations  # with its cosines and sines,
    last: Array  # the size of the last correction
    k: Array  # and how many there were;
    count: Array  # of all corrections since the last output
    crossed_at: Array  # when the Jacobian last changed its sign
    fresh: Array  # whether no position was corrected yet, or none since the mode changed
    stuck: Array
    watch: Watch | None  # without contacts, nothing


class Output(NamedTuple):
    q: Array
    alive: Array
    crossed_at: Array
    mode: Mode | None
    count: Array
