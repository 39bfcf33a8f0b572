"""The belt and the disc of `benchmarks.friction` in MuJoCo and in Exudyn."""

import importlib
import time
from typing import NamedTuple

import numpy as np


G = 9.81
SAMPLE = 1e-3  # how often positions and speeds are looked at


class Belt(NamedTuple):
    """A box on a belt, held by a spring."""

    m: float = 1.0
    k: float = 100.0
    sliding: float = 0.25
    static: float = 0.4
    V: float = 0.1
    end: float = 4.0


class Disc(NamedTuple):
    """A disc with backspin on a floor."""

    m: float = 1.0
    R: float = 0.2
    v: float = 3.0
    w: float = 10.0
    mu: float = 0.2
    end: float = 0.9


class Path(NamedTuple):
    """What a program saw, at equal intervals, and how long it took."""

    t: np.ndarray
    x: np.ndarray
    v: np.ndarray
    took: float


def period(belt: Belt, path: Path) -> float:
    """The mean of four periods, between moments at which the box goes back through the place where sliding friction
    and spring balance; cubic between samples."""
    place = belt.sliding * belt.m * G / belt.k
    before = np.flatnonzero((path.x[:-1] > place) & (path.x[1:] <= place))
    found = []
    for i in before[:5].tolist():
        h = path.t[i + 1] - path.t[i]
        x, y, a, b = path.x[i] - place, path.x[i + 1] - place, path.v[i] * h, path.v[i + 1] * h
        roots = np.roots([2 * x - 2 * y + a + b, -3 * x + 3 * y - 2 * a - b, a, x])
        real = roots.real[np.abs(roots.imag) < 1e-9]
        found.append(path.t[i] + h * real[np.argmin(np.abs(real - 0.5))])
    return (found[4] - found[0]) / 4 if len(found) == 5 else np.nan


def rolling(path: Path) -> float:
    """When the sliding speed `v` is zero: on the straight line through two samples, in the last tenth of the sliding.
    That is kinder than to look for the moment itself, which the programs pass gradually."""
    i = int(np.flatnonzero(path.v > 0.02 * path.v[0])[-1])
    j = i - 50
    return float(path.t[i] + path.v[i] * (path.t[i] - path.t[j]) / (path.v[j] - path.v[i]))


# ---------------------------------------- MuJoCo


def _mujoco(h: float, impratio: float, bodies: str, more: str = "", softness: float = 0.0):
    """Elliptic cones, Newton's method to the end; settled before it is set in motion."""
    mujoco = importlib.import_module("mujoco")
    stiff = f'solref="{max(2 * h, softness)} 1" solimp="0.9999 0.9999 0.001"'
    pair = f'<contact><pair geom1="floor" geom2="rim" condim="3" {stiff}/></contact>'
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><compiler angle="radian" autolimits="true"/>
    <option timestep="{h}" integrator="implicitfast" cone="elliptic" impratio="{impratio}" solver="Newton"
      iterations="100" tolerance="1e-14" ls_iterations="100" ls_tolerance="1e-8" gravity="0 0 -{G}"/>
    <worldbody>{bodies}</worldbody>{more or pair}</mujoco>""")
    data = mujoco.MjData(model)
    if not more:
        mujoco.mj_step(model, data, nstep=round(max(0.2, 2000 * h) / h))
    data.time = 0.0
    return mujoco, model, data


def _mujoco_tendon(h: float, joints: dict[str, float]) -> str:
    """A tendon whose length is that sum of coordinates, with dry friction of a given force."""
    parts = "".join(f'<joint joint="{name}" coef="{x}"/>' for name, x in joints.items())
    stiff = f'solreffriction="{2 * h} 1" solimpfriction="0.9999 0.9999 0.001"'
    return f'<tendon><fixed frictionloss="1" {stiff}>{parts}</fixed></tendon>'


def mujoco_disc(disc: Disc, h: float, impratio: float, softness: float = 0.0) -> Path:
    """In contact with a plane, with a time constant of `softness`, or two steps. With `impratio` 0 it has the friction
    of a tendon on x + R angle instead, of mu m g."""
    J, contact = disc.m * disc.R**2 / 2, impratio > 0
    geom = f'<geom name="rim" size="{disc.R}"/>' if contact else ""
    up = '<joint type="slide" axis="0 0 1"/>' if contact else ""
    bodies = f"""<geom name="floor" type="plane" size="9 9 1"/><body pos="0 0 {disc.R}">
      <joint name="x" type="slide" axis="1 0 0"/>{up}<joint name="a" type="hinge" axis="0 -1 0"/>
      <inertial pos="0 0 0" mass="{disc.m}" diaginertia="{J} {J} {J}"/>{geom}</body>"""
    more = "" if contact else _mujoco_tendon(h, {"x": 1.0, "a": disc.R})
    mujoco, model, data = _mujoco(h, impratio or 1.0, bodies, more, softness)
    if contact:
        model.pair_friction[0, :2] = disc.mu
    else:
        model.tendon_frictionloss[0] = disc.mu * disc.m * G
    speeds = data.qvel[:: data.qvel.size - 1]  # of x and of the angle
    speeds[:] = [disc.v, disc.w]
    each, n = round(SAMPLE / h), round(disc.end / SAMPLE)
    state = np.zeros((n + 1, 2))
    state[0] = speeds
    start = time.perf_counter()
    for i in range(n):
        mujoco.mj_step(model, data, nstep=each)
        state[i + 1] = speeds
    took = time.perf_counter() - start
    return Path(np.arange(n + 1) * SAMPLE, state[:, 0], state @ [1.0, disc.R], took)


def mujoco_belt(belt: Belt, h: float, impratio: float, slow: float) -> Path:
    """It has one coefficient, which is set before each step: the static one while the box slides more slowly than
    `slow` times the belt's speed."""
    contact = impratio > 0
    floor, rim, up = "", "", ""
    if contact:
        floor, rim = '<geom name="floor" type="box" size="9 1 1" pos="0 0 -1"/>', '<geom name="rim" size="0.1"/>'
        up = '<joint type="slide" axis="0 0 1"/>'
    bodies = f"""<body><joint name="belt" type="slide" axis="1 0 0"/>
      <inertial pos="0 0 0" mass="1e9" diaginertia="1 1 1"/>{floor}</body>
      <body pos="0 0 0.1"><joint name="box" type="slide" axis="1 0 0" stiffness="{belt.k}"/>{up}
      <inertial pos="0 0 0" mass="{belt.m}" diaginertia="1 1 1"/>{rim}</body>"""
    more = "" if contact else _mujoco_tendon(h, {"box": 1.0, "belt": -1.0})
    mujoco, model, data = _mujoco(h, impratio or 1.0, bodies, more)
    data.qpos[:2] = 0.0
    data.qvel[:2] = belt.V
    each, n = round(SAMPLE / h), round(belt.end / SAMPLE)
    state = np.zeros((n + 1, 2))
    state[0] = data.qpos[1], data.qvel[1]
    speeds, step, slow = data.qvel, mujoco.mj_step, slow * belt.V
    friction, load = (model.pair_friction[0, :2], 1.0) if contact else (model.tendon_frictionloss, belt.m * G)
    static, sliding = belt.static * load, belt.sliding * load
    start = time.perf_counter()
    for i in range(n):
        for _ in range(each):
            friction[:] = static if abs(speeds[1] - speeds[0]) < slow else sliding
            step(model, data)
        state[i + 1] = data.qpos[1], data.qvel[1]
    took = time.perf_counter() - start
    return Path(np.arange(n + 1) * SAMPLE, state[:, 0], state[:, 1], took)


# ---------------------------------------- Exudyn


class _Exudyn:
    """A system of a few coordinates, and how it is run."""

    def __init__(self):
        self.exu, self.items = (importlib.import_module(name) for name in ("exudyn", "exudyn.itemInterface"))
        self.system = self.exu.SystemContainer().AddSystem()
        self.ground = self.system.AddObject(self.items.ObjectGround())
        self.fixed = self.coordinate(self.system.AddNode(self.items.NodePointGround()), 0)

    def coordinate(self, node, number: int):
        return self.system.AddMarker(self.items.MarkerNodeCoordinate(nodeNumber=node, coordinate=number))

    def mass(self, mass: float, speed: float):
        """A mass on a line: its node, and the marker of its coordinate."""
        given = {"referenceCoordinates": [0.0], "initialCoordinates": [0.0], "initialCoordinates_t": [speed]}
        node = self.system.AddNode(self.items.NodeGenericODE2(numberOfODE2Coordinates=1, **given))
        self.system.AddObject(self.items.ObjectMass1D(mass=mass, nodeNumber=node))
        return node, self.coordinate(node, 0)

    def bristles(self, markers: list, sliding: float, static: float, stiffness: float, begins: float, **more) -> None:
        """Dry friction between two coordinates; at first it sticks, or slides with the force `begins`."""
        data = self.items.NodeGenericData(numberOfDataCoordinates=3, initialCoordinates=[begins, 0.0, 0.0])
        law = {"dynamicFrictionForce": sliding, "staticFrictionOffsetForce": static - sliding,
               "stickingStiffness": stiffness, "stickingDamping": 2 * np.sqrt(stiffness),
               "exponentialDecayStatic": 1e-6}  # fmt: skip
        node = self.system.AddNode(data)
        connector = self.items.ObjectConnectorCoordinateSpringDamperExt
        self.system.AddObject(connector(markerNumbers=markers, nodeNumber=node, **law, **more))

    def run(self, nodes: list, end: float, h: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Coordinates and speeds of some nodes at the samples."""
        kinds = self.exu.OutputVariableType
        sensors = [
            self.system.AddSensor(self.items.SensorNode(nodeNumber=n, outputVariableType=k, storeInternal=True))
            for k in (kinds.Coordinates, kinds.Coordinates_t)
            for n in nodes
        ]
        self.system.Assemble()
        settings = self.exu.SimulationSettings()
        settings.timeIntegration.numberOfSteps = round(end / h)
        settings.timeIntegration.endTime = end
        settings.timeIntegration.adaptiveStep = True
        settings.timeIntegration.newton.useModifiedNewton = False
        settings.solution.file.write = False
        settings.solution.sensors.writePeriod = SAMPLE
        start = time.perf_counter()
        self.system.SolveDynamic(settings)
        took = time.perf_counter() - start
        found = [np.asarray(self.system.GetSensorStoredData(s)) for s in sensors]
        q, v = (np.concatenate([x[:, 1:] for x in part], 1) for part in (found[: len(nodes)], found[len(nodes) :]))
        return found[0][:, 0], q, v, took


def exudyn_belt(belt: Belt, h: float, stiffness: float) -> Path:
    """Friction of bristles between the box and a belt that is too heavy to be slowed."""
    model = _Exudyn()
    _, band = model.mass(1e9, belt.V)
    node, box = model.mass(belt.m, belt.V)
    spring = model.items.ObjectConnectorCoordinateSpringDamper
    model.system.AddObject(spring(markerNumbers=[model.fixed, box], stiffness=belt.k))
    load = belt.m * G
    model.bristles([band, box], belt.sliding * load, belt.static * load, stiffness, 0.0)
    t, q, v, took = model.run([node], belt.end, h)
    return Path(t, q[:, 0], v[:, 0], took)


def exudyn_disc_bristles(disc: Disc, h: float, stiffness: float) -> Path:
    """Friction of bristles on x + R angle; what the disc presses with is given."""
    model = _Exudyn()
    center, x = model.mass(disc.m, disc.v)
    wheel, angle = model.mass(disc.m * disc.R**2 / 2, disc.w)
    force = disc.mu * disc.m * G
    model.bristles([angle, x], force, force, stiffness, force, factor0=-disc.R)
    t, _, v, took = model.run([center, wheel], disc.end, h)
    return Path(t, v[:, 0], v[:, 0] + disc.R * v[:, 1], took)


def exudyn_disc(disc: Disc, h: float, zone: float) -> Path:
    """Its disc that rolls and slips on a plane, pressed on by a stiff spring, friction linear up to a speed `zone`."""
    model = _Exudyn()
    items, system, stiffness = model.items, model.system, 1e6
    J = disc.m * disc.R**2 / 2
    place = {"referenceCoordinates": [0.0, disc.R - disc.m * G / stiffness, 0.0]}
    node = system.AddNode(items.NodeRigidBody2D(**place, initialVelocities=[disc.v, 0.0, disc.w]))
    body = system.AddObject(items.ObjectRigidBody2D(mass=disc.m, inertia=J, nodeNumber=node))
    middle, floor = (system.AddMarker(items.MarkerBodyRigid(bodyNumber=b)) for b in (body, model.ground))
    system.AddLoad(items.Force(markerNumber=middle, loadVector=[0.0, -disc.m * G, 0.0]))
    data = system.AddNode(items.NodeGenericData(numberOfDataCoordinates=3, initialCoordinates=[0.0, 0.0, 0.0]))
    law = {"contactStiffness": stiffness, "contactDamping": 2 * np.sqrt(stiffness * disc.m),
           "dryFriction": [disc.mu, disc.mu], "dryFrictionProportionalZone": zone,
           "useLinearProportionalZone": True}  # fmt: skip
    rolls = items.ObjectConnectorRollingDiscPenalty
    wheel = {"discRadius": disc.R, "discAxis": [0.0, 0.0, 1.0], "planeNormal": [0.0, 1.0, 0.0]}
    system.AddObject(rolls(markerNumbers=[floor, middle], nodeNumber=data, **wheel, **law))
    t, _, v, took = model.run([node], disc.end, h)
    return Path(t, v[:, 0], v[:, 0] + disc.R * v[:, 2], took)
