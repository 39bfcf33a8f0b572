"""What holds just after events and just before them."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._dynamics.solution import Solution
from ..._events.log import Event
from ..._kinematics.motion import Motion


def told(what: Any) -> list[Event]:
    """The events of a motion or a simulation."""
    if isinstance(what, Solution):
        return what.events.list(what.mech, what.triggers)
    return [] if what.events is None else what.events.list(what.mech)


def at_events(what: Any, said: list[Event], alive: np.ndarray) -> list[Any]:
    """Motions whose rows are the states after all events, then those before them. Each has as many rows as `what`, of
    which those in `alive` are there: so one program reads them all."""
    ts, count, n = np.asarray(what.ts), len(said), len(what.ts)
    times, rows, log = np.array([event.t for event in said]), np.flatnonzero(alive), what.events
    if not count:
        return []
    place = np.searchsorted(ts[rows], times)
    near = rows[np.minimum(place, len(rows) - 1)], rows[np.maximum(place - 1, 0)]  # the outputs after and before it
    elements = _elements(log, near[0], np.stack([what.mode.places.e1, what.mode.places.e2], -1))
    modes = jax.tree_util.tree_map(lambda x: np.asarray(x)[np.concatenate(near)], what.mode)
    places = modes.places._replace(e1=elements[..., 0], e2=elements[..., 1])
    modes = modes._replace(places=places)
    if isinstance(what, Solution):
        modes = modes._replace(**_between(what, said, *near))
    both = lambda after, before: np.concatenate([after[:count], before[:count]])
    states = {"ts": both(log.t, log.t), "q": both(log.q, log.q), "v": both(log.v_after, log.v_before)}
    if isinstance(what, Motion):
        states |= {"a": both(log.a_after, log.a_before)}
    found = []
    for start in range(0, 2 * count, n):
        some = np.resize(np.arange(start, min(start + n, 2 * count)), n)
        state, mode = _taken((states, modes), some)
        if isinstance(what, Motion):
            found.append(dataclasses.replace(what, **state, mode=mode))
        else:
            from ..._dynamics.outputs import at_states  # here, as most do without diffrax

            forces = at_states(what.plant, state["ts"], state["q"], state["v"], mode)
            found.append(dataclasses.replace(what, **(forces | state), held=mode))
    return found


def _taken(tree: Any, rows: np.ndarray) -> Any:
    return jax.tree_util.tree_map(lambda x: jnp.asarray(x[rows]), tree)


def _elements(log: Any, after: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The elements of all contacts after each event, from those at the outputs: back from the next output to the first
    event before it, then on from event to event. Then those before each event."""
    contact, old, new = (np.asarray(x) for x in (log.contact, log.before, log.after))
    of_contact = contact < rows.shape[1]  # not of a force or a trigger
    found = rows[after]
    for row in np.unique(after):
        events, now = np.flatnonzero(after == row), rows[row].copy()
        for i in events[::-1]:
            if of_contact[i]:
                now[contact[i]] = old[i]
        for i in events:
            if of_contact[i]:
                now[contact[i]] = new[i]
            found[i] = now
    mine, before = np.flatnonzero(of_contact[: len(after)]), found.copy()
    before[mine, contact[mine]] = old[mine]
    return np.concatenate([found, before])


def _between(what: Solution, said: list[Event], after: np.ndarray, before: np.ndarray) -> dict[str, np.ndarray]:
    """The parts of the modes after all events, then before them, that are known from event to event: on from the
    output before an event, up to that after it."""
    log, names = what.events, [] if what.plant.friction is None else what.plant.friction.names
    first = len(what.sources()) - what.held.signs.shape[1]  # of the switches
    parts = ("active", "approach", "signs", "slide")
    at = lambda row: {part: np.array(getattr(what.held, part)[row]) for part in parts}
    sides: list[list[dict]] = [[], []]
    for i, event in enumerate(said):
        if i == 0 or after[i] != after[i - 1]:
            now = at(before[i])
        sides[1].append(now)
        k, following = int(log.contact[i]), at(after[i])
        if (i + 1 == len(said) or after[i + 1] != after[i]) and what.ts[after[i]] >= event.t:
            now = following
        else:
            now = {part: x.copy() for part, x in now.items()}
            if event.kind == "closed":
                now["approach"][k] = abs(log.speed[i, 0])
            elif event.kind in ("switched", "triggered"):
                now["signs"][k - first] *= -1
            elif event.kind in ("sticks", "slips", "reverses"):
                pair = names.index(event.contact)
                on = following["slide"][pair] or 1.0
                now["slide"][pair] = {"sticks": 0.0, "slips": on, "reverses": -now["slide"][pair]}[event.kind]
        now["active"] = np.asarray(log.active[i])
        sides[0].append(now)
    return {part: np.stack([now[part] for now in [*sides[0], *sides[1]]]) for part in parts}
