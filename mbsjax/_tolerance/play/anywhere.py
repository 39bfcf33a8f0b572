"""Where joints lie whose pins may be anywhere in their plays."""

from ..._model.joint.joint import Joint
from ..distribution.ball import Ball
from ..distribution.base import AbstractDistribution
from ..distribution.symmetric import Uniform
from ..distribution.zone import Position


def anywhere(joint: Joint) -> AbstractDistribution:
    """Uniform over the play of a joint, in units of its size: an interval, a disc or a ball; over those of the ends of
    a guide, each by itself."""
    widest = max(joint.pair.play_discs)
    return Uniform(1.0) if widest == 1 else Position(2.0, kind="uniform") if widest == 2 else Ball(1.0)
