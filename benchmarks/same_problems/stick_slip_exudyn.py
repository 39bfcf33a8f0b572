"""Period of a box that a spring holds on a moving belt, and its slope in the speed of the belt.

Dry friction is that of bristles between belt and box, of a force given by hand. A period is that between two passages
of the place where spring and sliding friction balance. The argument is the step.
"""

import sys

import exudyn as exu
import exudyn.itemInterface as eii
import numpy as np


H, LOAD = float(sys.argv[1]), 9.81


def period(speed):
    system = exu.SystemContainer().AddSystem()
    base = system.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=system.AddNode(eii.NodePointGround()), coordinate=0))
    nodes, places = [], []
    for mass in (1e9, 1.0):
        start = {"referenceCoordinates": [0.0], "initialCoordinates": [0.0], "initialCoordinates_t": [speed]}
        nodes.append(system.AddNode(eii.NodeGenericODE2(numberOfODE2Coordinates=1, **start)))
        system.AddObject(eii.ObjectMass1D(mass=mass, nodeNumber=nodes[-1]))
        places.append(system.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=nodes[-1], coordinate=0)))
    system.AddObject(eii.CoordinateSpringDamper(markerNumbers=[base, places[1]], stiffness=100.0))
    data = system.AddNode(eii.NodeGenericData(numberOfDataCoordinates=3, initialCoordinates=[0.0] * 3))
    law = {
        "dynamicFrictionForce": 0.25 * LOAD,
        "staticFrictionOffsetForce": 0.15 * LOAD,
        "stickingStiffness": 1e6,
        "stickingDamping": 2e3,
        "exponentialDecayStatic": 1e-6,
    }
    system.AddObject(eii.ObjectConnectorCoordinateSpringDamperExt(markerNumbers=places, nodeNumber=data, **law))
    kind = exu.OutputVariableType.Coordinates
    sensor = system.AddSensor(eii.SensorNode(nodeNumber=nodes[1], outputVariableType=kind, storeInternal=True))
    system.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps = round(4.0 / H)
    settings.timeIntegration.endTime = 4.0
    settings.timeIntegration.newton.useModifiedNewton = False
    settings.solution.file.write = False
    settings.solution.sensors.writePeriod = H
    system.SolveDynamic(settings)
    t, x = system.GetSensorStoredData(sensor).T
    place = 0.25 * LOAD / 100.0
    i = np.flatnonzero((x[:-1] > place) & (x[1:] <= place))
    passed = t[i] + (t[i + 1] - t[i]) * (place - x[i]) / (x[i + 1] - x[i])
    return (passed[4] - passed[0]) / 4


h = 1e-4
print(period(0.1), (period(0.1 + h) - period(0.1 - h)) / (2 * h))
