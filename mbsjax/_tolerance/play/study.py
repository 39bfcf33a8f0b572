"""Tolerance studies of mechanisms whose joints have play."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._kinematics.displaced import loose_joints, moved, play_counts, where_it_lies
from ..._kinematics.motion import Motion
from ..._model.mechanism import Mechanism
from ..._model.play import RULES
from ..._programs.names import unknown
from ..._programs.trees import as_function, frozen
from ..distribution.base import AbstractDistribution
from ..parameters import leaf_number, picks
from ..study import Study
from .anywhere import anywhere
from .directions import chosen
from .loaded import check_loaded, loads_along, pressed
from .readings import Readings
from .worst import Searches, extreme, search, searches


def play_study(
    model: Callable,
    nominal: Any,
    tolerances: Mapping[str, Any],
    measures: Mapping[str, Callable],
    *,
    rules: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    along: Mapping[str, Any] | None = None,
    **options: Any,
) -> Study:
    """A tolerance study of a driven motion whose joints have play, each by its own rule.

    - `"random"`: where the pin lies is drawn anew for each mechanism, uniformly over its play, and is the same along
        the stroke. It is a contributor, `"B.play[0]"` and so on, beside the dimensions.
    - `"loaded"`: the pin lies where forces and gravity press it, at each position: see [`mbsjax.loaded_play`][]. It
        follows from the dimensions, the forces and the size of the play, with all their derivatives.
    - `"worst"`: the pin lies where it does most, at each position and for each measure: see [`mbsjax.worst_play`][].
        Then each measure `y` becomes two, `"y least"` with its lower limit and `"y most"` with its upper one.

    Rules may be mixed. Pins that are drawn come first, then those that are loaded, with the worst ones in the middle;
    then the worst places are sought with all others where they are. Sizes of plays may have tolerances: they are
    numbers of the mechanism like others.

    **Arguments:**

    - `model`, `nominal`, `tolerances`, `measures`, `limits`, `along`: as for [`mbsjax.Study`][]. The model gives a
        [`mbsjax.Motion`][], perhaps with other things in a tuple or dict. Measures are told a [`mbsjax.Displaced`][]
        instead, which reads like it.
    - `rules`: by name of the joint, one of the rules, if it is not the one of its [`mbsjax.Play`][]; or a distribution
        of where it lies, such as `mbs.Position(2.0, kind="rim")`, in units of the play's size.
    - `options`: further ones of [`mbsjax.Study`][].

    **Returns:** a [`mbsjax.Study`][], for [`mbsjax.tolerance`][] and all that it calls.

    !!! Example

        >>> import mbsjax as mbs
        >>> def model(p):
        ...     crank = mbs.Mechanism([mbs.Body("crank"), mbs.Body("arm")],
        ...                           [mbs.Revolute("A", "ground", "crank"),
        ...                            mbs.Revolute("B", "crank", "arm", (p["length"], 0.0), play=p["play"])])
        ...     return mbs.kinematics(crank, {"A": 0.0, "B": 0.0}, jnp.zeros(1), throw=False)
        >>> study = mbs.play_study(model, {"length": 2.0, "play": 0.1}, {"length": 0.05, "play": 0.02},
        ...                        {"x": lambda m: m.point("arm").q[0, 0]}, limits={"x": (1.8, 2.3)})
        >>> study
        Study of 2 dimensions and 2 measures
          length  2    Normal(+-0.05, mean 0, sigma 0.0166667)
          play    0.1  Normal(+-0.02, mean 0, sigma 0.00666667)
          x least = 1.9 at nominal, limits 1.8 to inf
          x most = 2.1 at nominal, limits -inf to 2.3
        >>> mbs.first_order(study).slopes.round(9).tolist()
        [[1.0, -1.0], [1.0, 1.0]]
    """
    model, reading = as_function(model), Readings(measures)
    outcome = model(nominal)
    motion = only_motion(outcome)
    by_rule = sorted_rules(motion.mech, dict(rules or {}))
    check_rules(motion, by_rule)
    every = {name: _behind(name, x, nominal) for name, x in tolerances.items()}
    for name, distribution in by_rule["random"].items():
        every[f"{name}.play"] = (lambda tree, name=name: tree[1][name], distribution)
    places = {name: jnp.zeros(play_counts(motion.mech)[name]) for name in by_rule["random"]}
    if by_rule["worst"]:
        limits, along = _of_sides(limits, along, reading.names)
    loose = Loose(model, reading, motion, outcome, by_rule)
    values = {label: _Value(label) for label in loose.labels}
    return Study(loose, (nominal, places), every, values, limits=limits, along=along, **options)


class _Values(NamedTuple):
    """What a study of play looks at: the measures, and the motion for what became of it."""

    values: dict[str, Array]
    motion: Motion


class _Value(eqx.Module):
    label: str = eqx.field(static=True)

    def __call__(self, found: _Values) -> Array:
        return found.values[self.label]


class Within(eqx.Module):
    """The measures of an outcome in which the motion is another one."""

    reading: Readings
    others: tuple
    structure: Any = eqx.field(static=True)

    def __init__(self, reading: Readings, outcome: Any):
        leaves, self.structure = jax.tree_util.tree_flatten(outcome, is_leaf=_is_motion)
        self.reading, self.others = reading, tuple(None if _is_motion(x) else x for x in leaves)

    def __call__(self, motion: Any) -> Float[Array, " values"]:
        leaves = [motion if x is None else x for x in self.others]
        return self.reading(jax.tree_util.tree_unflatten(self.structure, leaves))


class Loose(eqx.Module):
    """A model of joints with play as a function of its dimensions, and of where those joints lie that are drawn."""

    model: Callable
    reading: Readings
    lanes: Searches | None
    sizes: tuple[int, ...] = eqx.field(static=True)
    loaded: tuple[str, ...] = eqx.field(static=True)
    worst: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, model: Callable, reading: Readings, motion: Motion, outcome: Any, rules: dict[str, Any]):
        self.model, self.reading = model, reading
        self.loaded, self.worst = tuple(rules["loaded"]), tuple(rules["worst"])
        self.sizes, self.lanes = reading.sizes(outcome), None
        if self.worst:
            self.lanes = searches(motion, Within(reading, outcome), self.sizes)

    @property
    def labels(self) -> list[str]:
        sides = ("least", "most") if self.worst else ()
        return [f"{name} {side}" for name in self.reading.names for side in sides] or list(self.reading.names)

    def __call__(self, given: tuple[Any, dict[str, Array]]) -> _Values:
        outcome = self.model(given[0])
        motion = only_motion(outcome)
        values, lies = Within(self.reading, outcome), self.lies(motion, given[1])
        if self.lanes is None:
            found = moved(motion, lies)
            motion = eqx.tree_at(lambda m: m.result, motion, found.result)
            return _Values(self.reading.split(values(found), self.sizes), motion)
        mask = chosen(motion.mech, self.worst)
        every = search(motion, frozen(values), lies, mask, self.lanes)
        fixed = lambda x: jnp.where(jnp.asarray(mask), x, lies)  # those that are loaded have derivatives
        each = jax.vmap(lambda x: values(moved(motion, fixed(x))))(every)
        sides = [self.reading.split(extreme(each, self.lanes, k), self.sizes) for k in (0, 1)]
        return _Values({f"{n} {s}": x[n] for n in self.reading.names for s, x in zip(("least", "most"), sides)}, motion)

    def lies(self, motion: Motion, drawn: dict[str, Array]) -> Float[Array, "times n"]:
        """Where joints lie that are drawn, or loaded; the others where the model has them."""
        lies = where_it_lies(motion)
        for name, x in drawn.items():
            lies = jnp.where(jnp.asarray(chosen(motion.mech, [name])), _spread(motion.mech, name, x), lies)
        return pressed(motion, lies, chosen(motion.mech, self.loaded)) if self.loaded else lies


def _spread(mech: Mechanism, name: str, x: Array) -> Float[Array, " n"]:
    """The numbers of one joint at their places among all, zeros elsewhere."""
    return jnp.concatenate([x if other == name else jnp.zeros(n) for other, n in play_counts(mech).items()])


def _is_motion(x: Any) -> bool:
    return isinstance(x, Motion)


def only_motion(outcome: Any) -> Motion:
    """The motion in what a model gives."""
    found = [x for x in jax.tree_util.tree_leaves(outcome, is_leaf=_is_motion) if _is_motion(x)]
    if len(found) != 1:
        raise ValueError(f"a study of play needs a model that gives one motion, of mbsjax.kinematics; got {len(found)}")
    return found[0]


def sorted_rules(mech: Mechanism, given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The joints of each rule, by name; those that are drawn with their distributions."""
    joints = {joint.name: joint for joint in loose_joints(mech)}
    if not joints:
        raise ValueError("no joint of this mechanism has play: give one to a joint, as in Revolute(..., play=0.02)")
    found: dict[str, dict[str, Any]] = {rule: {} for rule in RULES}
    for name in given:
        if name not in joints:
            raise ValueError(f"`rules` name {unknown('joint with play', name, list(joints))}")
    for name, joint in joints.items():
        assert joint.play is not None
        rule = given.get(name, joint.play.rule)
        if isinstance(rule, AbstractDistribution):
            found["random"][name] = rule
        elif rule == "random":
            found["random"][name] = anywhere(joint)
        elif rule in RULES:
            found[rule][name] = None
        else:
            known = ", ".join(map(repr, RULES))
            raise ValueError(f"the rule of joint {name!r} must be one of {known}, or a distribution, got {rule!r}")
    return found


def check_rules(motion: Motion, rules: dict[str, dict[str, Any]]) -> None:
    """Raises where nothing presses a joint that is to be loaded."""
    if not rules["loaded"]:
        return
    mask = chosen(motion.mech, tuple(rules["loaded"]))
    check_loaded(motion.mech, mask)
    felt = np.asarray(loads_along(motion, mask)) != 0
    for name in rules["loaded"]:
        if not felt[:, np.array(chosen(motion.mech, [name]))].any():
            raise ValueError(
                f"nothing presses joint {name!r}: it needs forces or gravity, or a rule other than 'loaded'"
            )


def _behind(name: str, given: Any, nominal: Any) -> tuple[Callable, Any]:
    """A tolerance of a dimension that has become one of two parts of what varies."""
    if picks(given):
        return (lambda tree: given[0](tree[0])), given[1]
    leaf = leaf_number(name, nominal, given)
    return (lambda tree: jax.tree_util.tree_leaves(tree[0])[leaf]), given


def _of_sides(limits: Any, along: Any, names: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Limits and places of the least and the most of each measure."""
    limits, along = dict(limits or {}), dict(along or {})
    for what, given in (("`limits`", limits), ("`along`", along)):
        for name in given:
            if name not in names:
                raise ValueError(f"{what} names {name!r}, which is not a measure; these are {', '.join(names)}")
    found = {}
    for name, pair in limits.items():
        if not (isinstance(pair, (tuple, list, np.ndarray)) and len(pair) == 2):
            raise ValueError(f"the limits of {name!r} must be a pair (lower, upper), got {pair!r}")
        found |= {f"{name} least": (pair[0], None), f"{name} most": (None, pair[1])}
    return found, {f"{name} {side}": x for name, x in along.items() for side in ("least", "most")}
