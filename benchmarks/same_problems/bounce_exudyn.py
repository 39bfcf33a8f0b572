"""Height of a ball a second after it fell from a height of 1 and bounced without loss, and its slope in that height.

A contact is a stiff spring on the coordinate of the ball; the argument is the step.
"""

import sys

import exudyn as exu
import exudyn.itemInterface as eii


H = float(sys.argv[1])


def after_a_second(height):
    system = exu.SystemContainer().AddSystem()
    floor = system.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=system.AddNode(eii.NodePointGround()), coordinate=0))
    place = {"referenceCoordinates": [0.0], "initialCoordinates": [height], "initialCoordinates_t": [0.0]}
    node = system.AddNode(eii.NodeGenericODE2(numberOfODE2Coordinates=1, **place))
    system.AddObject(eii.ObjectMass1D(mass=1.0, nodeNumber=node))
    ball = system.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=node, coordinate=0))
    system.AddLoad(eii.LoadCoordinate(markerNumber=ball, load=-9.81))
    gap = system.AddNode(eii.NodeGenericData(numberOfDataCoordinates=1, initialCoordinates=[height]))
    contact = eii.ObjectContactCoordinate(markerNumbers=[floor, ball], nodeNumber=gap, contactStiffness=0.1 / H**2)
    system.AddObject(contact)
    system.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps = round(1.0 / H)
    settings.timeIntegration.endTime = 1.0
    settings.timeIntegration.generalizedAlpha.spectralRadius = 1.0
    settings.solution.file.write = False
    system.SolveDynamic(settings)
    return float(system.GetNodeOutput(node, exu.OutputVariableType.Coordinates))


h = 1e-3
print(after_a_second(1.0), (after_a_second(1.0 + h) - after_a_second(1.0 - h)) / (2 * h))
