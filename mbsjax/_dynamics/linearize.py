"""Linear equations of small motions about a state."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._events.closure import is_closed
from .._events.results import RESULTS
from .._kinematics.drive import problem as make_problem
from .._model.mechanism import Mechanism
from .._programs.batch import single
from .._programs.custom_types import Laws
from .._programs.precision import visible
from .._programs.reprs import by_fields
from .._programs.trees import once
from .build import plant as make_plant
from .equilibrium import Equilibrium
from .mode import Mode
from .plant import Plant
from .state import State, active_contacts, check_size, first_mode


_INDEPENDENT = 1e-9  # of the largest singular value: equations whose is smaller follow from the others


class Linearization(eqx.Module):
    """Small motions about a state: x' = A x, where x holds displacements z along the directions `Z` and their rates.

    - `A`: the matrix.
    - `Z`: the directions, in the degrees of freedom of the mechanism (columns).
    - `eigenvalues`: of A; for vibrations about a stable rest they are imaginary.
    - `frequencies`: the natural frequencies, in radians per time, smallest first: the imaginary parts of the
        eigenvalues. What creeps back without swinging has none.
    """

    A: Float[Array, "n n"]
    Z: Float[Array, "nv k"]

    @property
    def eigenvalues(self) -> Array:
        return jnp.linalg.eigvals(self.A)

    @property
    def frequencies(self) -> Float[Array, " f"]:
        if (seen := visible(w := jnp.imag(self.eigenvalues))) is None:
            raise ValueError("how many natural frequencies there are depends on values: read them outside jit and vmap")
        values = np.asarray(seen[0])
        order = np.argsort(values)
        return w[order[values[order] > 1e-9 * np.abs(values).max(initial=0.0)]]

    __repr__ = by_fields


def linearize(
    what: Mechanism | Equilibrium, state0: State | None = None, *, drive: Laws | None = None
) -> Linearization:
    """The linear equations of small motions about a state of a mechanism, with the contacts that are `active` held; or
    about an [`mbsjax.Equilibrium`][], with the contacts that are closed there, and all that is fixed or driven. Without
    friction, which has no small motions at rest. All that is left to move must have mass. Joints with
    play are held where they lie in it; for the motions within it, take [`mbsjax.loosened`][]`(mech)`. It looks
    at values, to count the degrees of freedom that are left: not under `jit` or `vmap`. It can be differentiated, and
    so can its eigenvalues and frequencies, where none of them occurs twice.

    !!! Example

        >>> import mbsjax as mbs
        >>> pendulum = mbs.Mechanism([mbs.Body("bob", mass=1.0, center=(0.0, -2.5))],
        ...                          [mbs.Revolute("O", "ground", "bob")], gravity=(0.0, -10.0))
        >>> mbs.linearize(pendulum, mbs.state(pendulum)).A.round(9).tolist()
        [[0.0, 1.0], [-4.0, 0.0]]
        >>> mbs.linearize(mbs.equilibrium(pendulum)).frequencies.round(9).tolist()
        [2.0]
    """
    if isinstance(what, Equilibrium):
        if state0 is not None or drive is not None:
            raise ValueError("an Equilibrium has its own state and drivers: give nothing else")
        single(what, "small motions can be told")
        if (seen := visible(what.result)) is not None and bool(seen[0] != RESULTS.successful):
            raise ValueError(f"there is no equilibrium to linearize about: {RESULTS[what.result]}")
        mech, plant, state0, active = what.mech, what.plant, what.state, what.active
    elif state0 is None:
        raise ValueError("give a state of the mechanism to linearize about, or an Equilibrium")
    else:
        mech, active = what, active_contacts(what)
        check_size(mech, state0, "where joints have play, give mbsjax.loosened(mech), or a state of its equilibrium")
        plant = make_plant(mech, make_problem(mech, dict(drive or {})))
    plant = dataclasses.replace(plant, friction=None)
    if (seen := visible(mech, plant, state0, active)) is None:
        raise ValueError(
            "`linearize` looks at values, to count the degrees of freedom that are left: it cannot be called under "
            "jit or vmap"
        )
    mode, Z = _small_motions(*seen)
    return Linearization(*_linear(plant, jnp.asarray(Z), state0, mode))


def _small_motions(mech: Mechanism, plant: Plant, state0: State, active: Any) -> tuple[Mode, np.ndarray]:
    """The contacts that are held, and the directions that they and all other constraints leave."""
    mode = first_mode(plant, tuple(map(bool, active)), state0.q)
    C, M, residual = _rows(plant, state0.q, state0.t, mode)
    if not bool(is_closed(residual)):
        raise ValueError(
            f"the positions of the state are off the constraints by {float(jnp.max(jnp.abs(residual))):.3g} (in "
            "radians, or parts of the mechanism's size): make the state with mbsjax.state(mech, ..., drive=...)"
        )
    C, M = map(np.asarray, (C, M))
    _, s, V = np.linalg.svd(C, full_matrices=True)
    Z = V[int(np.sum(s > _INDEPENDENT * max(s.max(initial=0.0), 1e-300))) :].T
    w = np.linalg.eigvalsh(Z.T @ M @ Z)
    if (w <= 1e-14 * w.max(initial=0.0)).any():
        light = [repr(body.name) for body in mech.bodies if not float(body.mass) > 0]
        raise ValueError(f"something is left to move that has no mass: give mass to {', '.join(light) or 'all bodies'}")
    return mode, Z


@once
def _rows(plant: Plant, q: Array, t: Array, mode: Mode) -> tuple[Array, Array, Array]:
    """The rows of the constraints and the mass matrix, in the freedoms that are not driven; and their residuals."""
    frame, u = plant.frame(q, t, mode), plant.problem.unknown
    C = frame.C[:, u] * plant.columns[None] / plant.row_sizes[:, None]
    return C, frame.M[u][:, u] * plant.columns[:, None] * plant.columns[None], frame.residual / plant.row_sizes


@once
def _linear(plant: Plant, Z: Array, state0: State, mode: Mode) -> tuple[Array, Array]:
    t, n, nd = state0.t, Z.shape[1], len(plant.problem.columns)
    spread = lambda y: plant.spread(y * plant.columns, jnp.zeros(nd))
    if mode.signs.shape[0]:
        frame = plant.frame(state0.q, t, mode)
        mode = mode.sided(plant.switches(t, frame.q, state0.v, frame))
    # The directions turn with the constraints where these are differentiated, and are measured by what they were.
    ways, (C, *_) = Z, _rows(plant, state0.q, t, mode)
    if C.shape[0]:
        Z = ways - jnp.linalg.pinv(C, rtol=_INDEPENDENT) @ (C @ ways)

    def accelerations(x: Array) -> Array:
        q = plant.problem.system.retract(state0.q, spread(Z @ x[:n]))
        for _ in range(2):
            q = plant.project(q, t, mode)
        frame = plant.frame(q, t, mode)
        v = state0.v + spread(Z @ x[n:])
        now = plant.instant(t, q, plant.momentum(frame, v), mode)
        return ways.T @ (now.a[plant.problem.unknown] / plant.columns)

    rows = jax.jacfwd(accelerations)(jnp.zeros(2 * n))
    top = jnp.concatenate([jnp.zeros((n, n)), jnp.eye(n)], 1)
    return jnp.concatenate([top, rows]), jax.vmap(spread, 1, 1)(Z)
