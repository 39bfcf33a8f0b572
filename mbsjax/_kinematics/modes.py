"""How contacts change: the mode at the start, the switching functions, and what follows when one of them changes sign
(thesis 2.5)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._numerics.groups import lanewise
from .._numerics.linalg import echelon, least_squares
from .contacts import Mode
from .drive import Problem


EVENTS = ("closed", "transition", "shifted", "released", "deleted", "jammed", "impact", "switched", "triggered")
"""What happens to a contact: it closes; it goes on to a neighbouring element (G_T); it goes over to
elements elsewhere, which it met; it is released, since it would have to pull; it is deleted, since it is geometrically
impossible; it closes, and nothing can give way; in dynamics, the bodies meet and part again. A force is switched, a
trigger passes zero."""
_NAMES = {name: i for i, name in enumerate(EVENTS)}

GUARDS = 6  # for each contact: interference, the two ends of the element on each profile, pulling
_SURE = 1e-7  # the least influence by which a contact can move a coordinate, or another contact


def at_rest(problem: Problem, contacts: tuple[int, ...]) -> Mode:
    """A mode with these contacts active and no coordinate resting, to assemble a mechanism in."""
    n, c = len(contacts), len(problem.system.layout.holds)
    nothing, none, middle = np.zeros(n), np.zeros(c, int), np.full(c, 0.5)
    owner = np.array(contacts, dtype=int)
    mode = (np.zeros(n, int), owner, nothing, nothing, np.ones(()), none, none, middle, middle, np.ones(c))
    return Mode(*map(jnp.asarray, mode))


def start_mode(problem: Problem, q: Array, t: Array, n: int, active: tuple[int, ...]) -> tuple[Mode, Bool[Array, ""]]:
    """The mode of a mechanism with n freedoms beyond its drivers, and whether the active contacts can be active
    together. Coordinates of the tree rest, as many as are independent."""
    _, J, _ = problem.with_mode(None).linearise(q, t)
    plan, unknown = problem.system.layout, problem.unknown
    of_tree = np.isin(plan.owner[unknown], plan.topology.tree) & (np.array(plan.slots)[unknown] >= 0)
    wanted = np.isin(unknown, plan.moves)
    # what cannot rest is made dependent first, what contacts are to move last
    split = echelon(J * np.where(of_tree, np.where(wanted, 0.01, 1.0), 100.0))
    places = jnp.nonzero(~split.dependent & of_tree, size=n, fill_value=0)[0]
    rests = jnp.asarray(unknown)[places]
    c = len(problem.system.layout.holds)
    free, held = jnp.full(n, -1), q[jnp.asarray(plan.slots)[rests]]
    elements = at_rest(problem, ())
    mode = elements._replace(rests=rests, owner=free, held=held, drift=jnp.zeros(n), push=jnp.ones(c))
    found = problem.with_mode(mode).on_closest_pairs(q).mode
    assert found is not None
    mode, fits = found, jnp.ones((), bool)
    for k in active:
        now = problem.with_mode(mode)
        row, able, sign = _take(now, _influence(now, q, t), _slopes(now, q)[k], jnp.asarray(k), exchange=False)
        mode = mode._replace(owner=mode.owner.at[row].set(k), push=mode.push.at[k].set(sign))
        fits &= able
    return mode, fits


def _slopes(problem: Problem, q: Array) -> Float[Array, "c nv"]:
    assert problem.mode is not None
    system, X = problem.system, problem.system.poses(q)
    return system.gap_jacobian(system.contact_wrenches(system.planes(X), problem.mode)[0], system.twists(q, X))


def _influence(problem: Problem, q: Array, t: Array) -> Float[Array, "nv n"]:
    """How all freedoms move when a resting coordinate does, or the gap of the contact that took it opens."""
    _, J, _ = problem.linearise(q, t)
    assert problem.mode is not None
    n = problem.mode.owner.shape[0]
    return jax.vmap(problem.spread, 1, 1)(least_squares(J)(jnp.eye(J.shape[0])[:, J.shape[0] - n :]))


def _take(
    problem: Problem, D: Float[Array, "nv n"], slope: Float[Array, " nv"], k: Int[Array, ""], exchange: bool
) -> tuple[Array, Array, Array]:
    """Which coordinate contact k takes when it closes: its own if that rests, else the resting one that its gap depends
    on most; if there is none, it takes over that of a contact which opens when it does. Also whether there is any, and
    the sign of the slope."""
    mode = problem.mode
    assert mode is not None
    gain = slope @ D / problem.system.size
    rest = mode.owner < 0
    its_own = mode.rests == jnp.asarray(problem.system.layout.moves)[k]
    score = jnp.where(rest, jnp.where(its_own, 1e6, 1e3) * jnp.abs(gain), jnp.where(exchange, gain, 0.0))
    row = jnp.argmax(score)
    sign = jnp.sign(gain[row]) * jnp.sign(D[mode.rests[row], row])
    return row, score[row] > _SURE, sign


def watch(
    problem: Problem,
    q: Float[Array, "nq *lanes"],
    v: Float[Array, "nv *lanes"],
    span: Array,
    *apart: Float[Array, "c pairs *lanes"],
) -> tuple[Float[Array, "c 6 *lanes"], Mode, tuple[Array, ...], Float[Array, "c pairs *lanes"]]:
    """The switching functions, positive as long as nothing happens; the mode with the contacts where they are; the
    elements, with places on them, that an event of the first kind would be on; and which pairs of elements are apart,
    where `apart` are those that were at the last position, if that is known.

    Of a virtual contact: the gap (G_I). Of an active one: the gap to the nearest elements elsewhere; how far its
    places are from the ends of their elements (G_T); and, if it can only push, how fast it does.
    """
    system, mode = problem.system, problem.mode
    assert mode is not None
    far = system.size
    P, active = system.planes(system.poses(q)), mode.active
    here = system.common_normals(P, (mode.e1, mode.e2, mode.s1, mode.s2))
    where = (mode.e1, mode.e2, here.s1, here.s2)
    near, ends, places, there, outside = system.proximity(P, where, active, *apart)
    near = jnp.where(near < far, near, far)
    speed = jnp.take_along_axis(v / system.column_sizes(), mode.rests, 0) * span
    numbers = np.arange(len(system.layout.holds)).reshape(-1, *(1,) * mode.owner.ndim)
    mine = jnp.sum(jnp.where(mode.owner[None] == numbers, speed[None], 0.0), 1) * mode.push
    pushes = np.array([hold == "push" for hold in system.layout.holds]).reshape(-1, *(1,) * (mode.owner.ndim - 1))
    pull = jnp.where(active & pushes, mine, 1.0)
    values = jnp.concatenate([(near / system.size)[:, None], ends, pull[:, None]], 1)
    return values, mode._replace(**dict(zip(("e1", "e2", "s1", "s2"), places))), there, outside


class Change(NamedTuple):
    """What an event did."""

    mode: Mode
    kind: Int[Array, "*lanes"]  # a number of EVENTS
    contact: Int[Array, "*lanes"]
    gave_way: Int[Array, "*lanes"]  # the contact that opened because of it; -1 if none did


def change(
    problem: Problem,
    near: tuple[Array, ...],
    q: Array,
    t: Array,
    v: Array,
    guard: Int[Array, ""],
    lost: Bool[Array, ""],
    fall: Array,
) -> Change:
    """The mode after a guard has reached zero, or, `lost`, after the active contacts could not be followed further.
    `near` is what `watch` found elsewhere; `fall` is the speed of a body that drops."""
    mode, system = problem.mode, problem.system
    assert mode is not None
    n, c = mode.owner.shape[0], len(system.layout.holds)
    if n == 0:  # everything is driven: nothing can give way
        return Change(mode, jnp.asarray(_NAMES["jammed"]), guard // GUARDS, jnp.asarray(-1))
    D = _influence(problem, q, t)
    along = D[mode.rests, jnp.arange(n)]  # how a coordinate moves when the contact that took it opens
    loose = -v[mode.rests] * jnp.sign(along)  # how fast that contact would open if the coordinate rested
    blame = jnp.where((mode.owner >= 0) & (loose >= 0), jnp.abs(along), -1.0)
    k = jnp.where(lost, mode.owner[jnp.argmax(blame)], guard // GUARDS)
    can_lose = jnp.any(blame >= 0)
    w = jnp.where(lost, -1, guard % GUARDS)
    row = jnp.argmax(mode.owner == k)
    active = jnp.any(mode.owner == k)

    # where it would be next
    P = system.planes(system.poses(q))
    further, there = system.next_elements(P, (mode.e1, mode.e2, mode.s1, mode.s2), w)
    there = there[k]

    def placed(where: tuple[Array, ...]) -> Mode:
        old = (mode.e1, mode.e2, mode.s1, mode.s2)
        e1, e2, s1, s2 = (x.at[k].set(y[k]) for x, y in zip(old, where))
        return mode._replace(e1=e1, e2=e2, s1=s1, s2=s2)

    met = placed(near)
    slope = _slopes(problem.with_mode(met), q)[k]
    took, able, sign = _take(problem, D, slope, k, exchange=True)
    closes, shifts = (w == 0) & ~active, (w == 0) & active
    follows = slope @ D[:, row] > _SURE * system.size  # the old place opens when the new one is kept
    goes_on = (w >= 1) & (w <= 4) & there
    deleted = ((w >= 1) & (w <= 4) & ~there) | (lost & can_lose)
    released = w == 5
    opens = deleted | released
    jams = (closes & ~able) | (shifts & ~follows) | (lost & ~can_lose)

    owner = jnp.where(closes, mode.owner.at[took].set(k), jnp.where(opens, mode.owner.at[row].set(-1), mode.owner))
    gave_way = jnp.where(closes & ~jams, mode.owner[took], -1)
    here = system.resting(q, mode)
    presses = jnp.asarray([hold == "press" for hold in system.layout.holds])[k]
    drops = deleted & presses
    lands = closes & (mode.drift[took] != 0)
    columns = system.column_sizes()[mode.rests]
    drift = jnp.zeros(n).at[row].set(jnp.where(drops, -jnp.sign(along[row]) * fall * columns[row], 0.0))
    keep = lambda a, b, choose: jax.tree_util.tree_map(lambda x, y: jnp.where(choose, x, y), a, b)
    after = keep(met, mode, closes | shifts)._replace(
        owner=owner,
        held=jnp.where(opens & (jnp.arange(n) == row), here, mode.held),
        drift=jnp.where(lands | drops, drift, mode.drift),
        clock=jnp.where(lands, 1.0, jnp.where(drops, 0.0, mode.clock)),
        push=jnp.where(closes, mode.push.at[k].set(sign), mode.push),
    )
    on = placed(further)
    chosen = keep(on, keep(after, mode, closes | shifts | opens), goes_on)
    kind = jnp.select(
        [jams, closes, goes_on, shifts, released],
        [_NAMES[x] for x in ("jammed", "closed", "transition", "shifted", "released")],
        _NAMES["deleted"],
    )
    return Change(keep(mode, chosen, jams), kind, jnp.clip(k, 0, c - 1), gave_way)


def changes(problem: Problem, near: tuple[Array, ...], lanes: int, *args: Array) -> Change:
    """`change`, along lanes."""
    return lanewise(change, lanes)(problem, near, *args)
