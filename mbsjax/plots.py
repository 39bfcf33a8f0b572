"""Pictures of mechanisms, motions and cams, one call each, ready to be printed.

All take `axes` to draw in (several as a sequence) and return those that were drawn in; without, a new figure is made,
which belongs to the caller: `plots.save(axes, "picture.pdf")`. Settings of matplotlib stay as they are. Where a
mechanism has units, they stand at the axes. Bodies, forces and events have the colors that they have in the viewer.
"""

from ._pictures.cam import cam as cam, pressure_angle as pressure_angle, svaj as svaj
from ._pictures.forces import efforts as efforts
from ._pictures.mechanism import ghosts as ghosts, mechanism as mechanism, path as path
from ._pictures.motion import bands as bands, contacts as contacts, curves as curves, switching as switching
from ._pictures.saving import save as save
