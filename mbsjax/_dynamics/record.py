"""What a simulation records of its steps, for its outputs and its replay."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from .bouncing import Fall
from .impact import Impulses
from .instant import Frame
from .mode import Mode
from .plant import Plant


class Speeds(NamedTuple):
    """How fast a mechanism moves."""

    v: Array  # velocities,
    kinetic: Array  # their energy,
    rates: Array  # and the rates of the gaps


def speeds_of(frame: Frame, v: Array, rates: Array) -> Speeds:
    """How fast it moves with these velocities, and these rates of the gaps."""
    return Speeds(v, jnp.sum(v * jnp.sum(frame.M * v[None], 1), 0) / 2, rates)


def at_rest(plant: Plant, t: Array) -> Speeds:
    """All speeds zero."""
    return Speeds(*(jnp.zeros((*n, *t.shape)) for n in ((len(plant.names[0]),), (), (len(plant.laws),))))


class RecordedStep(NamedTuple):
    """A step: where it begins, and what ended it."""

    t: Array
    q: Array
    p: Array
    mode: Mode
    speeds: Speeds
    t_end: Array
    p_end: Array  # the momenta, and
    before: Speeds  # how fast it moved, before what ended it
    impulse: Impulses
    guard: Array  # -1 where none ended it
    kind: Array
    contact: Array
    struck: Array
    elastic: Array
    slid: Array
    settle: Array  # how long the bouncing still lasts that this event sums up,
    fall: Fall  # which comes from this


def begun(tangents: bool, t: Array, q: Array, p: Array, mode: Mode, speeds: Speeds) -> RecordedStep:
    """A step that has not been made yet; `tangents` tells whether contacts have friction."""
    none, no, zero = jnp.zeros(t.shape, int), jnp.zeros(mode.active.shape, bool), jnp.zeros_like(t)
    nothing = jnp.zeros_like(speeds.rates)
    along = nothing if tangents else nothing[:0]
    impulse = Impulses(nothing, along)
    return RecordedStep(
        t, q, p, mode, speeds, t, p, speeds, impulse, none, none, none, no, no, along, zero, Fall(zero, zero)
    )


class Recording(NamedTuple):
    """What the event loop recorded: all steps, or those that outputs and events are read from."""

    steps: RecordedStep  # stacked on a first axis; from number `count` on they mean nothing
    count: Array
    taken: Array  # how many steps there were
    last: RecordedStep  # the final state
    code: Array  # of the result
    rejected: Array
    events: Array
    paradox: Any  # with friction: the last pair whose force could not be found, and its determinant


def blank(plant: Plant, t: Array, q: Array, p: Array, mode: Mode, max_steps: int) -> Recording:
    """A recording that is laid out as those of simulations that begin so."""
    last, none = begun(plant.tangents, t, q, p, mode, at_rest(plant, t)), jnp.zeros(t.shape, int)
    steps = jax.tree_util.tree_map(lambda x: jnp.zeros((max_steps, *x.shape), x.dtype), last)
    paradox = None if plant.friction is None else (none, jnp.zeros_like(t))
    return Recording(steps, none, none, last, none, none, none, paradox)
