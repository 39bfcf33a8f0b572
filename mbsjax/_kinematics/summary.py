"""A mechanism in words, which is what it is printed as."""

from .._model.joint.contact import Contact
from .._model.mechanism import Mechanism
from .._model.printing import printed
from .._programs.precision import is_concrete
from .._programs.reprs import has_numbers, short
from .mobility import mobility


@printed.register(Mechanism)
def summary(mech: Mechanism) -> str:
    """Bodies, joints, loops and freedom of a mechanism, readable."""
    graph = mech.topology
    kind = "Planar" if mech.planar else "Spatial"
    moving = [b for b in mech.links[1:]]
    loops = (*graph.chords, *mech.contacts)
    counts = [(moving, "body on ground", "bodies on ground"), (mech.joints, "joint", "joints")]
    counts += [(mech.contacts, "contact", "contacts")] * bool(mech.contacts) + [(loops, "loop", "loops")]
    numbers = [f"{len(x)} {one if len(x) == 1 else many}" for x, one, many in counts]
    lines = [f"{kind} mechanism: {', '.join(numbers)}"]
    lines.append(f"  bodies   {', '.join(moving)}")
    for i, joint in enumerate(mech.joints):
        pair = joint.pair.kind
        names = ", ".join(joint.pair.coordinates)
        closes = "  closes a loop" if i in graph.chords else ""
        label = "joints" if i == 0 else ""
        lines.append(f"  {label:<9}{joint.name}: {pair} {joint.body_a} -> {joint.body_b} ({names}){closes}")
    for i, contact in enumerate(mech.contacts):
        label = "contacts" if i == 0 else ""
        ends = f"{contact.body_a} -> {contact.body_b}"
        if isinstance(contact, Contact):
            ends = f"{contact.body_a}.{contact.profile_a} -> {contact.body_b}.{contact.profile_b}"
        counts = " x ".join(str(len(kinds)) for kinds in mech.element_kinds(contact))
        state = "active: q1, q2" if contact.active else "open: q1, q2, q3"
        lines.append(f"  {label:<9}{contact.name}: {ends} ({state}), {counts} elements")
    for i, gauge in enumerate(mech.gauges):
        held = "" if gauge.value is None else f" held at {_number(gauge.value)}"
        label = "gauges" if i == 0 else ""
        between = " -> ".join(gauge.bodies[:2])
        lines.append(f"  {label:<9}{gauge.name}: {gauge.kind} {between}{held}")
    for loop in range(len(graph.chords)):
        label = "loops" if loop == 0 else ""
        lines.append(f"  {label:<9}{' - '.join(graph.loop_links(loop))}")
    for i, contact in enumerate(mech.contacts):
        label = "loops" if not graph.chords and i == 0 else ""
        way = " - ".join(graph.way_round(contact.body_a, contact.body_b))
        lines.append(f"  {label:<9}{way} through contact {contact.name}")
    held = {body for gauge in mech.gauges if gauge.value is not None for body in gauge.bodies}
    held |= {body for contact in mech.contacts for body in (contact.body_a, contact.body_b)}
    free = [body for body in graph.open_branches if body not in held]
    if free:
        lines.append(f"  open     {', '.join(free)} (on no loop)")
    return "\n".join(lines + _freedom(mech))


def _freedom(mech: Mechanism) -> list[str]:
    if not is_concrete(mech):
        return ["  degrees of freedom: not counted while dimensions are traced"]
    if not has_numbers(mech.gravity) or mech.gravity.ndim > 1:
        return ["  degrees of freedom: not counted for a batch, only for one of it"]
    try:
        found = mobility(mech)
    except ValueError as error:
        return [f"  degrees of freedom: not known: {error}"]
    active = [c.name for c in mech.contacts if c.active]
    contacts = f", with {', '.join(active)} active" if active else ", with all contacts open" * bool(mech.contacts)
    lines = [f"  degrees of freedom: {found.freedom} by rank, {found.counted} by counting{contacts}"]
    if found.redundant:
        lines.append(f"  redundant equations: {', '.join(found.redundant)}")
    if found.isolated:
        lines.append(f"  the estimated position is singular: the rank is lower there by {found.isolated}")
    lines.append(f"  independent coordinates, at the estimate: {', '.join(found.independent) or 'none'}")
    return lines


def _number(x) -> str:
    return short(x) if x.ndim else f"{float(x):.6g}" if is_concrete(x) else "(traced)"
