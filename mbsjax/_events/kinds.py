"""The kinds of events."""

EVENTS = (
    "closed", "transition", "shifted", "released", "deleted", "jammed", "impact", "switched", "triggered", "sticks",
    "slips", "reverses",
)  # fmt: skip
"""What happens to a contact: it closes; it goes on to a neighboring element (G_T); it goes over to
elements elsewhere, which it met; it is released, since it would have to pull; it is deleted, since it is geometrically
impossible; it closes, and nothing can give way; in dynamics, the bodies meet and part again. A force is switched, a
trigger passes zero. A pair with friction sticks, or slips again, or begins to slide the other way."""


def number(kind: str) -> int:
    """The number of a kind in `EVENTS`, by which records tell it."""
    return EVENTS.index(kind)
