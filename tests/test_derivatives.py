"""Forward = reverse = central differences, for positions, velocities, accelerations; jit = eager; vmap = one by one."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from mbsjax._kinematics.drive import lock_up, problem
from tests.mechanisms import bodies, slider_crank, spatial_slider_crank, turn


TS = jnp.array([0.0, 0.13, 0.37])


def planar_four_bar(p):
    """Every length and every frame of a four-bar is a leaf of p."""
    frame = lambda row: mbs.at(*row)
    return mbs.Mechanism(
        bodies("crank", "coupler", "follower"),
        [
            mbs.Revolute("A", "ground", "crank", frame(p[0]), frame(p[1])),
            mbs.Revolute("B", "crank", "coupler", frame(p[2]), frame(p[3])),
            mbs.Revolute("C", "coupler", "follower", frame(p[4]), frame(p[5])),
            mbs.Revolute("D", "ground", "follower", frame(p[6]), frame(p[7])),
        ],
    )


FOUR_BAR = jnp.array(
    [[0.1, 0.0, 0.2], [0, 0.1, 0], [2, 0, 0.1], [0, 0, -0.2], [4, 0.1, 0], [3, 0, 0.3], [4, -1, 0], [0, 0, 0.1]], float
)


def readings(build, drive_of, body, point):
    """p -> position, velocity and acceleration of a point, and the driven joint's partner, in one vector."""

    def read(p):
        motion = mbs.kinematics(build(p), {"A": drive_of(p)}, TS, throw=False)
        track = motion.point(body, point)
        return jnp.concatenate([jnp.ravel(x) for x in (track.q, track.v, track.a)])

    return jax.jit(read), jax.jit(jax.jacfwd(read)), jax.jit(jax.jacrev(read))


def central(f, p, h):
    """Central differences of fourth order."""
    flat = np.array(p).ravel()
    columns = []
    for i in range(flat.size):
        at = lambda x, i=i: np.array(
            f(jnp.asarray(np.where(np.arange(flat.size) == i, flat + x, flat).reshape(p.shape)))
        )
        columns.append((8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h))
    return np.stack(columns, -1).reshape(-1, *p.shape)


@pytest.mark.long
def test_point_velocity_and_acceleration_in_all_lengths_and_frames():
    p = FOUR_BAR
    value, forward, reverse = readings(planar_four_bar, lambda p: mbs.constant_speed(2.0, 0.9), "coupler", (1.0, 0.7))
    F, R, C = forward(p), reverse(p), central(value, p, 1e-3)
    scale = np.maximum(1, np.abs(C))
    np.testing.assert_allclose(F / scale, R / scale, atol=1e-12)
    np.testing.assert_allclose(F / scale, C / scale, atol=1e-7)


def spatial_from(p):
    """The spatial slider-crank with all its 4x4 frames moved by small poses, and its rod and eye lengths."""
    mech = spatial_slider_crank(0.3)

    def nudge(X, w):
        R = mbs.frames.quaternion_matrix(mbs.frames.quaternion_exp(w[:3]))
        return mbs.frames.compose(X, mbs.frames.pose(R, w[3:]))

    joints = []
    for i, joint in enumerate(mech.joints):
        frames = [nudge(f, p[2 * i + k]) for k, f in enumerate((joint.frame_a, joint.frame_b))]
        joints.append(mbs.Joint(joint.name, joint.body_a, joint.body_b, joint.pair, *frames, start=joint.start))
    return mbs.Mechanism(mech.bodies, joints, mech.gauges)


SPATIAL = jnp.asarray(np.random.default_rng(1).normal(size=(8, 6)) * 1e-2)


@pytest.mark.long
def test_spatial_point_velocity_and_acceleration_in_all_frames():
    """In reverse mode alone: in space, one of the two programs takes minutes to compile."""
    value, _, reverse = readings(spatial_from, lambda p: mbs.constant_speed(2.0, 1.5), "rod", (0.05, 0.02, 0.01))
    np.testing.assert_allclose(reverse(SPATIAL), central(value, SPATIAL, 1e-3), atol=1e-7)


@pytest.mark.long
def test_hessian_of_an_assembled_position():
    """Second derivatives of a triangle's angle in its sides, against the law of cosines."""

    def angle(sides):
        a, b, c = sides
        triangle = mbs.Mechanism(
            bodies("left", "right"),
            [
                mbs.Revolute("A", "ground", "left", start=1.0),
                mbs.Revolute("B", "ground", "right", (c, 0.0), start=2.0),
                mbs.Revolute("C", "left", "right", (a, 0.0), (b, 0.0), start=1.0),
            ],
        )
        return mbs.assemble(triangle)["A"]

    def law_of_cosines(sides):
        a, b, c = sides
        return jnp.arccos((a**2 + c**2 - b**2) / (2 * a * c))

    sides = jnp.array([3.1, 3.9, 5.2])
    for derivative in (jax.grad, jax.hessian, lambda f: jax.jacfwd(jax.jacfwd(f)), lambda f: jax.jacrev(jax.jacrev(f))):
        np.testing.assert_allclose(derivative(angle)(sides), derivative(law_of_cosines)(sides), atol=1e-11)


@pytest.mark.long
def test_hessian_of_a_motion_against_differences_of_its_gradient():
    def angle(p):
        motion = mbs.kinematics(planar_four_bar(FOUR_BAR.at[2, 0].set(p[0]).at[4, 0].set(p[1])), DRIVE, TS, throw=False)
        return motion["D"].q[1]

    p, h = jnp.array([2.0, 4.0]), 1e-4
    gradient = jax.jit(jax.grad(angle))
    differences = np.stack([(gradient(p + h * e) - gradient(p - h * e)) / (2 * h) for e in np.eye(2)])
    np.testing.assert_allclose(jax.jit(jax.hessian(angle))(p), differences, rtol=1e-6)


DRIVE = {"A": mbs.constant_speed(2.0, 0.9)}


@pytest.mark.long
def test_drivers_and_times_are_differentiable_too():
    """d/d(speed), d/d(start) and d/dt of a slider-crank, against its closed form; a lambda may close over them."""

    def travel(w, start, t):
        mech = mbs.Mechanism(
            bodies("crank", "coupler", "slider"),
            [
                mbs.Revolute("A", "ground", "crank"),
                mbs.Revolute("B", "crank", "coupler", (2.0, 0.0)),
                mbs.Revolute("C", "coupler", "slider", (3.5, 0.0)),
                mbs.Prismatic("D", "ground", "slider", start=5.0),
            ],
        )
        motion = mbs.kinematics(mech, {"A": lambda s: start + w * s + 0.1 * s**2}, jnp.stack([t, t + 0.1]), throw=False)
        return motion["D"].q[1]

    def closed_form(w, start, t):
        angle = start + w * (t + 0.1) + 0.1 * (t + 0.1) ** 2
        return 2 * jnp.cos(angle) + jnp.sqrt(3.5**2 - 4 * jnp.sin(angle) ** 2)

    at = (1.3, 0.4, 0.2)
    assert float(travel(*at)) == pytest.approx(float(closed_form(*at)), abs=1e-12)
    for mode in (jax.jacfwd, jax.jacrev):
        found = jax.jit(mode(travel, argnums=(0, 1, 2)))(*at)
        np.testing.assert_allclose(found, jax.grad(closed_form, argnums=(0, 1, 2))(*at), atol=1e-12)


def test_lanes_equal_single_runs_and_jit_equals_eager():
    def read(p):
        motion = mbs.kinematics(planar_four_bar(p), DRIVE, TS, throw=False)
        return motion.q, motion.v, motion.a, motion.stopped_at

    variants = FOUR_BAR + 0.02 * jax.random.normal(jax.random.key(0), (5, *FOUR_BAR.shape))
    single = [read(p) for p in variants]
    for i, many in enumerate(jax.jit(jax.vmap(read))(variants)):
        np.testing.assert_allclose(many, np.stack([s[i] for s in single]), atol=1e-12)


@pytest.mark.long
def test_lanes_may_lock_while_others_run_on():
    def read(rod):
        motion = mbs.kinematics(
            slider_crank(2.0, rod), {"A": turn(1.0)}, jnp.linspace(0, 6.0, 25), estimate={"P": 5.0}, throw=False
        )
        return motion["P"].q, motion.stopped_at

    rods = jnp.array([1.9, 2.1, 1.0])
    travel, stopped = jax.jit(jax.vmap(read))(rods)
    np.testing.assert_allclose(stopped, [np.arcsin(0.95), np.inf, np.arcsin(0.5)], atol=1e-8)
    for row, rod, stop in zip(travel, rods, stopped, strict=True):
        t = np.linspace(0, 6.0, 25)
        with np.errstate(invalid="ignore"):
            expected = 2 * np.cos(t) + np.sqrt(rod**2 - 4 * np.sin(t) ** 2)
        np.testing.assert_allclose(row[t < stop], expected[t < stop], atol=1e-11)
        assert np.isnan(row[t > stop]).all()
    slope = jax.jit(jax.grad(lambda r: read(r)[1]))(1.9)
    assert float(slope) == pytest.approx(0.5 / np.sqrt(1 - 0.95**2), rel=1e-8)


def test_where_and_when_a_crank_locks_has_exact_slopes():
    """A crank longer than its rod, and a position 1e-5 short of where the rod stands upright."""

    def exact(x):
        angle = jnp.arcsin(x["rod"] / x["crank"])
        place = jnp.stack([angle, -jnp.pi / 2 - angle, jnp.pi / 2, x["crank"] * jnp.cos(angle)])
        return place, angle / x["speed"]

    def locked(x):
        mech = slider_crank(x["crank"], x["rod"])
        return lock_up(problem(mech, {"A": turn(x["speed"])}), jnp.asarray(short), jnp.asarray(angle / x["speed"]))

    x = {name: jnp.asarray(value) for name, value in {"crank": 1.2, "rod": 1.0, "speed": 3.0}.items()}
    angle = float(exact(x)[0][0]) - 1e-10
    rod = -np.arcsin(1.2 * np.sin(angle))
    short = [angle, rod - angle, -rod, 1.2 * np.cos(angle) + np.cos(rod)]
    assert 1e-6 < abs(rod + np.pi / 2) < 1e-4
    wanted = jax.jacfwd(exact)(x)
    for mode in (jax.jacfwd, jax.jacrev):
        jax.tree_util.tree_map(
            lambda y, z: np.testing.assert_allclose(y, z, rtol=0, atol=2e-8), jax.jit(mode(locked))(x), wanted
        )


def bead_on_an_arm():
    """Two bodies; with the bead's speed given, that of the arm follows from their inertia."""
    arm = mbs.Body("arm", mass=2.0, center=(0.4, 0.1), inertia=0.3)
    bead = mbs.Body("bead", mass=1.0, center=(0.1, 0.3), inertia=0.2)
    joints = [mbs.Revolute("A", "ground", "arm"), mbs.Prismatic("B", "arm", "bead", (0.5, 0.2), start=0.7)]
    return mbs.Mechanism([arm, bead], joints, gravity=(0.0, -9.81))


@pytest.mark.parametrize("name", ["mass", "center", "inertia"])
def test_what_is_looked_at_does_not_hinder_the_derivative_in_one_array_alone(name):
    """One array of a body is traced, all else is known: what a state raises and warns of is looked at, whether it
    depends on that or not. The speed of least energy of the arm of a bead, against differences."""
    mech, way = bead_on_an_arm(), 1e-3
    moved = lambda x: eqx.tree_at(lambda m: [getattr(b, name) for b in m.bodies], mech, [
        getattr(b, name) + x * k for k, b in enumerate(mech.bodies, 1)])  # fmt: skip
    speed = lambda x: mbs.state(moved(x), velocities={"B": 1.3}).v[0]
    found = jax.jvp(speed, (0.0,), (1.0,))[1]
    y = [float(speed(way * k)) for k in (-2, -1, 1, 2)]
    np.testing.assert_allclose(found, (y[0] - 8 * y[1] + 8 * y[2] - y[3]) / (12 * way), atol=1e-9)
    assert abs(found) > 0.1


def test_what_fails_is_told_under_derivatives_too():
    """In the sentences of a plain call, where values can be seen; where they cannot, by an error at run time."""
    bob = mbs.Body("bob", mass=1.0)

    def held(length):
        far = mbs.Distance("far", "ground", "bob", (0.0, 0.0), (1.0, 0.0), value=length)
        return mbs.state(mbs.Mechanism([bob], [mbs.Revolute("O", "ground", "bob")], [far])).q[0]

    with pytest.raises(ValueError, match="cannot be assembled with these dimensions.*gauge 'far' stays open by"):
        jax.jvp(held, (3.0,), (1.0,))
    with pytest.raises(Exception, match="could not be closed"):
        jax.jit(held)(3.0).block_until_ready()
    negative = lambda m: mbs.Body("bob", mass=m).mass
    with pytest.raises(ValueError, match="mass of body 'bob' must not be negative, got -2"):
        jax.jvp(negative, (-2.0,), (1.0,))
