"""Rocker angle of a four-bar where its crank stands at 100 degrees, and its slope in the length of the coupler."""

import math

from pylinkage.actuators import Crank
from pylinkage.components import Ground
from pylinkage.dyads import RRRDyad
from pylinkage.simulation import Linkage


def rocker(coupler):
    a, d = Ground(0.0, 0.0, name="A"), Ground(3.5, 0.0, name="D")
    crank = Crank(anchor=a, radius=1.0, angular_velocity=math.tau / 360, name="crank")
    tip = RRRDyad(anchor1=crank.output, anchor2=d, distance1=coupler, distance2=2.5, name="rocker")
    turn = list(Linkage([a, d, crank, tip], name="four-bar").step(iterations=360))
    x, y = turn[99][-1]  # after 100 steps of one degree
    return math.atan2(y, x - 3.5)


h = 1e-5
print(rocker(3.0), (rocker(3.0 + h) - rocker(3.0 - h)) / (2 * h))
