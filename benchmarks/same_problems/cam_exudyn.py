"""When the flat follower of an eccentric that runs too fast comes back to it, and the slope in the spring's stiffness.

The follower's face is a segment, the eccentric a circle, and the contact a stiff spring. The argument is the step.
"""

import sys

import exudyn as exu
import exudyn.itemInterface as eii
import numpy as np


H = float(sys.argv[1])
K = 1e7  # of the contact


def comes_back(stiffness):
    system = exu.SystemContainer().AddSystem()
    base = system.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=system.AddNode(eii.NodePointGround()), coordinate=0))
    speed = {"referenceCoordinates": [0.0] * 3, "initialVelocities": [0.0, 0.0, 200.0]}
    cam = system.AddNode(eii.NodeRigidBody2D(**speed))
    disc = system.AddObject(eii.ObjectRigidBody2D(mass=1e6, inertia=1e6, nodeNumber=cam))
    follower = system.AddNode(eii.NodeRigidBody2D(referenceCoordinates=[0.0, 0.015, 0.0]))
    body = system.AddObject(eii.ObjectRigidBody2D(mass=0.2, inertia=1.0, nodeNumber=follower))
    for node, coordinate in ((cam, 0), (cam, 1), (follower, 0), (follower, 2)):
        held = system.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=node, coordinate=coordinate))
        system.AddObject(eii.CoordinateConstraint(markerNumbers=[base, held]))
    lift = system.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=follower, coordinate=1))
    spring = {"stiffness": stiffness, "offset": -10.0 / stiffness}
    system.AddObject(eii.CoordinateSpringDamper(markerNumbers=[base, lift], **spring))
    face = system.AddMarker(eii.MarkerBodyRigid(bodyNumber=body))
    center = system.AddMarker(eii.MarkerBodyRigid(bodyNumber=disc, localPosition=[0.0, -0.005, 0.0]))
    data = system.AddNode(eii.NodeGenericData(numberOfDataCoordinates=3, initialCoordinates=[-1.0, 0.0, 0.0]))
    segment = exu.MatrixContainer()
    segment.SetWithDenseMatrix(np.array([[-0.03, 0.0, 0.03, 0.0]]), useDenseMatrix=True)
    law = {"contactStiffness": K / 0.06, "contactDamping": 2 * np.sqrt(0.2 * K) / 0.06}
    system.AddObject(
        eii.ObjectContactCurveCircles(
            markerNumbers=[face, center], nodeNumber=data, circlesRadii=[0.02], segmentsData=segment, **law
        )
    )
    kind = exu.OutputVariableType.Coordinates
    sensors = [
        system.AddSensor(eii.SensorNode(nodeNumber=n, outputVariableType=kind, storeInternal=True))
        for n in (follower, cam)
    ]
    system.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps = round(0.03 / H)
    settings.timeIntegration.endTime = 0.03
    settings.solution.file.write = False
    settings.solution.sensors.writePeriod = H
    system.SolveDynamic(settings)
    (t, _, y, _), (_, _, _, angle) = (system.GetSensorStoredData(s).T for s in sensors)
    gap = y - 0.005 * (1 - np.cos(angle))
    apart = np.flatnonzero(gap > 1e-5)[0]
    i = apart + np.flatnonzero(gap[apart:] <= 0.0)[0]
    return t[i] - (t[i] - t[i - 1]) * gap[i] / (gap[i] - gap[i - 1])


h = 2.0
print(comes_back(2000.0), (comes_back(2000.0 + h) - comes_back(2000.0 - h)) / (2 * h))
