"""Events in the page: in words, and with their impulses."""

import numpy as np

from ..._events.log import Event, Log
from ..._model.joint.clearance import Clearance
from ..._model.joint.contact import Contact
from ..._model.mechanism import Mechanism
from .keyframes import Keyframes


_SAID = {
    "impact": "{b} hits {a}",
    "closed": "{b} comes to {a}",
    "released": "{b} leaves {a}",
    "shifted": "{b} goes over to {a}",
    "deleted": "no further contact beyond {a}",
    "jammed": "{b} meets {a}, and nothing can give way",
    "sticks": "sticks",
    "slips": "slips",
    "reverses": "slides back",
    "switched": "switches",
    "triggered": "passes zero",
    "bifurcation": "passes a bifurcation",
}


def events(frames: Keyframes) -> list[dict]:
    """All events of a motion, with their frames."""
    log, found = frames.motions[0].events, []
    count = 0
    for event, frame in frames.events:
        impulses = []
        if event.kind != "bifurcation":
            meets = isinstance(log, Log) and event.kind in ("impact", "closed", "jammed")
            impulses = _impulses(log, count) if meets else []
            count += 1
        text = f"t = {event.t:.9g}: passed a bifurcation" if event.kind == "bifurcation" else str(event)
        found.append(
            {"t": event.t, "kind": event.kind, "name": event.contact, "text": text}
            | {"words": words(event, frames.mech), "impulses": impulses, "frame": frame}
        )
    return found


def _impulses(log: Log, i: int) -> list[list]:
    """Contacts with an impulse: which one, the impulse along its normal, and along the contact."""
    normal, along = np.asarray(log.impulse[i]), np.asarray(log.friction[i])
    return [[k, float(normal[k]), float(along[k])] for k in np.flatnonzero((normal != 0) | (along != 0)).tolist()]


def words(event: Event, mech: Mechanism) -> str:
    """What happens, in words: `"C23: follower hits line 2 of cam"`."""
    name = f"{event.contact}: " if event.contact else ""
    gave = f"; {event.gave_way} gives way" if event.gave_way else ""
    if event.before is None:
        return f"{name}{_SAID[event.kind]}{gave}"
    contact = mech.contact(event.contact)
    if event.kind == "transition":
        ways = [(_element(mech, contact, side, old), _element(mech, contact, side, new))
                for side, (old, new) in enumerate(zip(event.before, event.after)) if old != new]  # fmt: skip
        return f"{name}{', '.join(f'{old} to {new}' for old, new in ways)}{gave}"
    place = f"{_element(mech, contact, 0, event.after[0])} of {contact.body_a}"
    return f"{name}{_SAID[event.kind].format(a=place, b=contact.body_b)}{gave}"


def _element(mech: Mechanism, contact: Contact | Clearance, side: int, element: tuple[int, str]) -> str:
    """An element of a profile: its name, or what it is, and its number along the chain."""
    number, kind = element
    if isinstance(contact, Clearance):
        return f"{kind} {number}"
    return mech.profiles(contact)[side].labels[number]
