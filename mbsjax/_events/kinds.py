"""The kinds of events."""

EVENTS = (
    "closed", "transition", "shifted", "released", "deleted", "jammed", "impact", "switched", "triggered", "sticks",
    "slips", "reverses",
)  # fmt: skip
"""The kinds of events, in the order of their numbers.

- `closed`: a contact closes, and stays. Without restitution this is what a hit is.
- `transition`: a contact goes on to the neighboring element (G_T).
- `shifted`: a contact goes over to elements elsewhere, which it met.
- `released`: a contact opens, since it would have to pull.
- `deleted`: a contact opens, since it is geometrically impossible: the profile ends there.
- `jammed`: a contact of a driven motion closes, and nothing can give way.
- `impact`: in simulations, the bodies meet and part again.
- `switched`: a force is switched.
- `triggered`: a trigger passes zero.
- `sticks`, `slips`, `reverses`: a pair with friction begins to stick, or to slip, or to slide the other way.
"""


def number(kind: str) -> int:
    """The number of a kind in `EVENTS`, by which records tell it."""
    return EVENTS.index(kind)
