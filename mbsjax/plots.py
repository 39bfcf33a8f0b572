"""Pictures of mechanisms, motions and cams, one call each, ready to be printed.

All take `axes` to draw in (several as a sequence) and return those that were drawn in; without, a new figure is made,
which belongs to the caller: `axes.figure.savefig("picture.svg")`. Settings of matplotlib stay as they are.
"""

from ._plots_cam import cam as cam, pressure_angle as pressure_angle, svaj as svaj
from ._plots_motion import bands as bands, contacts as contacts, curves as curves, switching as switching
from ._plots_scene import ghosts as ghosts, mechanism as mechanism, path as path
