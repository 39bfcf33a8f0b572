"""Rocker angle of a four-bar where its crank stands at 100 degrees, and its slope in the length of the coupler.

Exudyn's static solver, with the crank's angle prescribed in steps of a degree.
"""

import math

import exudyn as exu
import exudyn.itemInterface as eii


def rocker(coupler):
    system = exu.SystemContainer().AddSystem()
    ground = system.AddObject(eii.ObjectGround())
    # the loop is closed at a crank angle of zero, by the law of cosines
    c = math.acos((2.5**2 + coupler**2 - 2.5**2) / (2 * 2.5 * coupler))
    a = math.acos((2.5**2 + 2.5**2 - coupler**2) / (2 * 2.5 * 2.5))
    angles = {"crank": (1.0, 0.0), "coupler": (coupler, c), "rocker": (2.5, math.pi - a)}
    origins = {"crank": (0.0, 0.0), "coupler": (1.0, 0.0), "rocker": (3.5, 0.0)}
    bodies, nodes = {}, {}
    for name, (_, angle) in angles.items():
        nodes[name] = system.AddNode(eii.NodeRigidBody2D(referenceCoordinates=[*origins[name], angle]))
        bodies[name] = system.AddObject(eii.ObjectRigidBody2D(mass=1.0, inertia=1.0, nodeNumber=nodes[name]))

    def at(body, x):
        return system.AddMarker(eii.MarkerBodyPosition(bodyNumber=body, localPosition=[x, 0.0, 0.0]))

    for one, other in (
        (at(ground, 0.0), at(bodies["crank"], 0.0)),
        (at(bodies["crank"], 1.0), at(bodies["coupler"], 0.0)),
        (at(bodies["coupler"], coupler), at(bodies["rocker"], 2.5)),
        (at(ground, 3.5), at(bodies["rocker"], 0.0)),
    ):
        system.AddObject(eii.RevoluteJoint2D(markerNumbers=[one, other]))
    fixed = system.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=system.AddNode(eii.NodePointGround()), coordinate=0))
    turned = system.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=nodes["crank"], coordinate=2))

    def prescribed(system, t, number, offset):
        return t

    drive = eii.CoordinateConstraint(markerNumbers=[fixed, turned], offsetUserFunction=prescribed)
    system.AddObject(drive)
    kind = exu.OutputVariableType.Coordinates
    sensor = system.AddSensor(eii.SensorNode(nodeNumber=nodes["rocker"], outputVariableType=kind, storeInternal=True))
    system.Assemble()
    settings = exu.SimulationSettings()
    settings.staticSolver.numberOfLoadSteps = 360
    settings.staticSolver.loadStepDuration = math.tau
    settings.staticSolver.adaptiveStep = False
    settings.staticSolver.newton.relativeTolerance = 1e-12
    settings.staticSolver.newton.absoluteTolerance = 1e-12
    settings.solution.file.write = False
    settings.solution.sensors.writePeriod = 0.0
    system.SolveStatic(settings)
    return math.pi - a + system.GetSensorStoredData(sensor)[100, 3]


h = 1e-5
print(rocker(3.0), (rocker(3.0 + h) - rocker(3.0 - h)) / (2 * h))
