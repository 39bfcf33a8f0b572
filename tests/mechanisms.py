"""Mechanisms that several tests share. Builders take dimensions and give a `Mechanism`."""

import jax
import jax.numpy as jnp
import numpy as np

import mbsjax as mbs


def bodies(*names: str) -> list[mbs.Body]:
    return [mbs.Body(name) for name in names]


def slider_crank(crank=2.0, rod=3.5, **options) -> mbs.Mechanism:
    """Haug 5.2, model 1."""
    return mbs.Mechanism(
        bodies("crank", "rod", "slider"),
        [
            mbs.Revolute("A", "ground", "crank"),
            mbs.Revolute("B", "crank", "rod", (crank, 0.0), (-rod / 2, 0.0)),
            mbs.Revolute("C", "rod", "slider", (rod / 2, 0.0)),
            mbs.Prismatic("P", "ground", "slider"),
        ],
        **options,
    )


def two_body_slider_crank(crank=2.0, rod=3.5) -> mbs.Mechanism:
    """Haug 5.2, model 2: the rod is a distance."""
    return mbs.Mechanism(
        bodies("crank", "slider"),
        [mbs.Revolute("A", "ground", "crank"), mbs.Prismatic("P", "ground", "slider")],
        [mbs.Distance("rod", "crank", "slider", (crank, 0.0), (0.0, 0.0), value=rod)],
    )


def four_bar(crank=2.0, coupler=4.0, follower=3.0, pivot=(4.0, -1.0), **options) -> mbs.Mechanism:
    """Haug 5.3, model 1, with body frames at the first pivot of each link."""
    return mbs.Mechanism(
        bodies("crank", "coupler", "follower"),
        [
            mbs.Revolute("A", "ground", "crank"),
            mbs.Revolute("B", "crank", "coupler", (crank, 0.0)),
            mbs.Revolute("C", "coupler", "follower", (coupler, 0.0), (follower, 0.0)),
            mbs.Revolute("D", "ground", "follower", pivot),
        ],
        **options,
    )


def two_body_four_bar(crank=2.0, coupler=4.0, follower=3.0, pivot=(4.0, -1.0)) -> mbs.Mechanism:
    """Haug 5.3, model 2: the follower is a distance."""
    return mbs.Mechanism(
        bodies("crank", "coupler"),
        [mbs.Revolute("A", "ground", "crank"), mbs.Revolute("B", "crank", "coupler", (crank, 0.0))],
        [mbs.Distance("follower", "coupler", "ground", (coupler, 0.0), pivot, value=follower)],
    )


def gear_slider() -> mbs.Mechanism:
    """Haug 5.5."""
    mesh = mbs.at(0.0, 0.0, jnp.arctan2(0.4, 0.3))
    return mbs.Mechanism(
        bodies("gear_2", "gear_3", "gear_4", "link", "slider"),
        [
            mbs.Revolute("A", "ground", "gear_2"),
            mbs.Revolute("B", "gear_4", "link", (0.0, 0.0), (0.0, 0.8)),
            mbs.Revolute("C", "ground", "link", (0.6, -0.4)),
            mbs.Prismatic("F", "ground", "slider", (0.0, 0.2)),
            mbs.Gear("mesh_23", "gear_2", "gear_3", radii=(0.2, 0.1)),
            mbs.Gear("mesh_34", "gear_3", "gear_4", mesh, mesh, radii=(0.1, 0.4)),
        ],
        [
            mbs.Distance("centers_23", "gear_2", "gear_3", value=0.3),
            mbs.Distance("centers_34", "gear_3", "gear_4", value=0.5),
            mbs.Distance("rod", "gear_4", "slider", (0.2, 0.2), (0.0, 0.0), value=0.8),
        ],
    )


def spatial_slider_crank(rod=0.3) -> mbs.Mechanism:
    """Haug 10.2."""
    triad = mbs.frames.from_points
    return mbs.Mechanism(
        bodies("crank", "rod", "slider"),
        [
            mbs.Revolute(
                "A",
                "ground",
                "crank",
                triad((0, 0.1, 0.12), (1, 0.1, 0.12), (0, 0.1, 1.12)),
                triad((0, 0, 0), (1, 0, 0), (0, 0, 1)),
            ),
            mbs.Spherical("B", "crank", "rod", (0.0, 0.08, 0.0), jnp.array([-rod / 2, 0.0 * rod, 0.0 * rod])),
            mbs.RevoluteCylindrical(
                "C",
                "rod",
                "slider",
                mbs.frames.from_axis(jnp.array([rod / 2, 0.0 * rod, 0.0 * rod]), (0, 1, 0), (1, 0, 0)),
                triad((0.2, 0, 0), (1.2, 0, 0), (0.2, 1, 0)),
            ),
            mbs.Prismatic(
                "P",
                "ground",
                "slider",
                triad((0.2, 0, 0), (1.2, 0, 0), (0.2, 1, 0)),
                triad((0, 0, 0), (1, 0, 0), (0, 1, 0)),
            ),
        ],
        [mbs.Distance("eye", "rod", "slider", jnp.array([rod / 2, 0.0 * rod, 0.0 * rod]), (1.0, 0.0, 0.0), value=1.0)],
    )


def air_compressor() -> mbs.Mechanism:
    """Haug 10.4: a rotor, a canted disk that a slot keeps from turning, and six pistons; their rods are distances."""
    triad, cant = mbs.frames.from_points, np.pi / 6
    hinge = triad((0, -0.5, 0), (0, np.cos(cant) - 0.5, -np.sin(cant)), (1, -0.5, 0))
    own = triad((0, 0, 0), (0, 1, 0), (1, 0, 0))
    balls = 0.2 * np.array([(np.sin(a), 0.0, np.cos(a)) for a in np.arange(6) * np.pi / 3])
    names = [f"piston_{i + 1}" for i in range(6)]
    guides = [
        mbs.Prismatic(f"guide_{i + 1}", "ground", names[i], ball - (0, 1, 0), axis=(0, 1, 0))
        for i, ball in enumerate(balls)
    ]
    rods = [mbs.Distance(f"rod_{i + 1}", "disk", names[i], ball, (0, 0, 0), value=0.5) for i, ball in enumerate(balls)]
    slot = mbs.Offset("slot", "ground", "disk", (0, 0, 0), (0, 0, 0.1), axis=(1, 0, 0), value=0.0)
    return mbs.Mechanism(
        bodies("rotor", "disk", *names),
        [mbs.Revolute("A", "ground", "rotor", own, own), mbs.Revolute("B", "rotor", "disk", hinge, own), *guides],
        [*rods, slot],
    )


def ladder(n: int, rocker=2.0, coupler=3.0, body=lambda name, long: mbs.Body(name), **options) -> mbs.Mechanism:
    """n four-bars in a row: the rocker of each is the crank of the next. Parallelograms, so that any number turns."""
    links = [body("rocker0", rocker)]
    joints = [mbs.Revolute("A0", "ground", "rocker0", start=1.0)]
    for i in range(1, n + 1):
        links += [body(f"coupler{i}", coupler), body(f"rocker{i}", rocker)]
        joints += [
            mbs.Revolute(f"A{i}", "ground", f"rocker{i}", (coupler * i, 0.0), start=1.0),
            mbs.Revolute(f"B{i}", f"rocker{i - 1}", f"coupler{i}", (rocker, 0.0), start=-1.0),
            mbs.Revolute(f"C{i}", f"coupler{i}", f"rocker{i}", (coupler, 0.0), (rocker, 0.0), start=1.0),
        ]
    return mbs.Mechanism(links, joints, **options)


def heavy_ladder(n: int) -> tuple[mbs.Mechanism, mbs.State]:
    """The N-four-bar of the IFToMM benchmark: unit rods of 1 kg, upright, tips at 1 m/s."""
    rod = lambda name, long: mbs.Body(name, mass=1.0, center=(long / 2, 0.0), inertia=long**2 / 12)
    mech = ladder(n, 1.0, 1.0, rod, gravity=(0.0, -9.81))
    sides = jnp.array([-1.0 if name.startswith("B") else 1.0 for name in mech.coordinates])
    return mech, mbs.State(sides * jnp.pi / 2, -sides, jnp.zeros(()))


def turn(speed=2 * jnp.pi, start=0.0):
    return mbs.constant_speed(speed, start)


def run(mech: mbs.Mechanism, drive, ts, **options) -> mbs.Motion:
    """A driven motion whose loops and gauges are closed at every output time that it reached."""
    motion = mbs.kinematics(mech, drive, ts, **options)
    reached = np.asarray(motion.ts < motion.stopped_at)
    assert reached.any() and float(motion.residual[reached].max()) <= 1e-11
    assert np.isnan(motion.q[~reached]).all()
    return motion


def rates(f, ts):
    """A closed form and its first two derivatives at each time."""
    return tuple(np.asarray(jax.vmap(g)(jnp.asarray(ts))) for g in (f, jax.grad(f), jax.grad(jax.grad(f))))


def same_motion(track, expected, tol=1e-9):
    """Position, velocity and acceleration, each to `tol` of its largest value."""
    for actual, wanted in zip(track, expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=0, atol=tol * np.max(np.abs(wanted)))
