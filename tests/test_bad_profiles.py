"""Bad profiles and contacts get an error that names the culprit."""

import numpy as np
import pytest

import mbsjax as mbs


def lines(*points, closed=True, **kw):
    """A chain of lines through points."""
    ends = points[1:] + points[:1] if closed else points[1:]
    return mbs.Profile.chain([mbs.Line(a, b) for a, b in zip(points, ends)], closed=closed, **kw)


def chain(*elements, **kw):
    return mbs.Profile.chain(elements, **kw)


DISC = mbs.Profile.chain([mbs.Circle((0.0, 0.0), 1.0)])
SQUARE = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))


def cam_and_follower(*contacts):
    """A disc and a follower above it, with contacts."""
    return mbs.Mechanism(
        [mbs.Body("cam", profiles={"rim": lines(*SQUARE)}), mbs.Body("follower", profiles={"roller": DISC})],
        [mbs.Revolute("R", "ground", "cam"), mbs.Prismatic("P", "ground", "follower", axis=(0.0, 1.0)), *contacts],
    )


def contact(a="cam.rim", b="follower.roller", **kw):
    return mbs.Contact("C", a, b, **kw)


CULPRITS = {
    "ends that do not meet": (
        lambda: chain(mbs.Line((0, 0), (1, 0)), mbs.Arc((0.0, 0.0), 1.25, 0.0, 1.0), closed=False),
        r"element 0 \(line\) ends at \(1, 0\).*element 1 \(arc\) begins at \(1.25, .*\), 0.25 away",
    ),
    "last end that does not meet the first": (
        lambda: chain(mbs.Line((0, 0), (1, 0)), mbs.Line((1, 0), (0, 2)), mbs.Line((0, 2), (0, 0.5))),
        r"element 2 \(line\) ends at \(.*, 0.5\), and element 0 \(line\) begins at \(0, 0\), 0.5 away",
    ),
    "no element": (lambda: chain(), "at least one element"),
    "something that is no element": (lambda: chain(mbs.Line((0, 0), (1, 0)), (1.0, 0.0)), "element 1 of a profile"),
    "line without length": (lambda: mbs.Line((1, 2), (1, 2)), r"line from \[1.0, 2.0\] to itself"),
    "arc without turn": (lambda: mbs.Arc((0, 0), 1.0, 0.0, 0.0), "turn of an arc must be positive, got 0"),
    "arc from a point to itself": (lambda: mbs.Arc.between((1, 0), (1, 0), (0, 0)), "turn of an arc.*got 0"),
    "arc by radius from a point to itself": (lambda: mbs.Arc.between((1, 0), (1, 0), radius=2.0), "arc"),
    "polynomial without length": (lambda: mbs.Polynomial((1.0,), (0,), 0.5, 0.5), "angle 0.5 to itself"),
    "curve without length": (
        lambda: chain(mbs.Curve(lambda s: (0 * s, 0 * s)), mbs.Line((0, 0), (1, 0)), closed=False),
        r"element 0 \(curve\) of a profile has no length",
    ),
    "line without extent beside others": (
        lambda: chain(mbs.Line((0, 0), (1, 0)), mbs.Line((1, 0), (1 + 1e-15, 0)), closed=False),
        r"element 1 \(line\) of a profile has no length",
    ),
    "arc that turns too far": (lambda: mbs.Arc((0, 0), 1.0, 0.0, 7.0), "more than a full turn, got 7"),
    "radius of zero": (lambda: mbs.Circle((0, 0), 0.0), "radius of a circle must be positive, got 0"),
    "negative radius": (lambda: mbs.Arc((0, 0), -2.0, 0.0, 1.0), "radius of an arc must be positive, got -2"),
    "radius of two numbers": (lambda: mbs.Circle((0, 0), (1.0, 2.0)), "radius of a circle must be one number"),
    "arc whose ends are not equally far": (
        lambda: mbs.Arc.between((1, 0), (0, 1.5), (0, 0)),
        r"arc about \[0.0, 0.0\] are 1 and 1.5 from its center",
    ),
    "arc whose radius is another": (
        lambda: mbs.Arc.between((2, 0), (0, 2), (0, 0), radius=3.0),
        "2 and 2 from its center, and its radius is 3",
    ),
    "arc whose radius is too small": (
        lambda: mbs.Arc.between((-1, 0), (1, 0), radius=0.75),
        r"no arc of radius 0.75 runs from \[-1.0, 0.0\] to \[1.0, 0.0\], which are 2 apart",
    ),
    "arc without center or radius": (lambda: mbs.Arc.between((1, 0), (0, 1)), "its center or its radius"),
    "boundary that crosses itself": (
        lambda: lines((0.0, 0.0), (2.0, 0.0), (0.0, 1.0), (2.0, 1.0)),
        r"crosses itself near \(1, 0.5\): element 1 \(line\) and element 3 \(line\)",
    ),
    "open chain that crosses itself": (
        lambda: lines((0.0, 0.0), (2.0, 0.0), (2.0, 1.0), (1.0, 1.0), (1.0, -1.0), closed=False),
        r"crosses itself near \(1, 0\): element 0 \(line\) and element 3 \(line\)",
    ),
    "clockwise": (lambda: lines(*SQUARE[::-1]), "runs clockwise.*hole=True"),
    "clockwise spline": (lambda: chain(mbs.Spline.through(SQUARE[::-1])), "runs clockwise"),
    "counter-clockwise hole": (lambda: lines(*SQUARE, hole=True), "hole must run clockwise"),
    "convex circle as a hole": (lambda: chain(mbs.Circle((0, 0), 1.0), hole=True), "hole must run clockwise"),
    "circle in a chain": (
        lambda: chain(mbs.Line((0, 0), (1, 0)), mbs.Circle((0, 0), 1.0)),
        "element 1 of a profile is closed in itself",
    ),
    "too few junctions": (lambda: lines(*SQUARE, smooth=(True, False)), "4 junctions, got 2"),
    "frame of a profile": (lambda: chain(mbs.Circle((0, 0), 1.0), frame=(1.0, 2.0)), "frame of a profile"),
    "spline with repeated points": (
        lambda: mbs.Spline.through([(0, 0), (1, 0), (1, 0), (0, 1)]),
        "point 1 of a spline coincides with the next one",
    ),
    "closed spline that repeats its first point": (
        lambda: mbs.Spline.through([*SQUARE, SQUARE[0]]),
        "point 4 of a spline.*does not repeat its first point",
    ),
    "spline of few points": (lambda: mbs.Spline.through(SQUARE[:3]), r"at least 4 points.*\(3, 2\)"),
    "control points in space": (lambda: mbs.Spline(np.zeros((5, 3))), r"control points in the plane.*\(5, 3\)"),
    "orders that do not match": (lambda: mbs.Polynomial((1.0, 2.0), (0,), 0.0, 1.0), r"one order.*\(0,\)"),
    "negative order": (lambda: mbs.Polynomial((1.0,), (-1,), 0.0, 1.0), "order of a polynomial must be at least 0"),
    "scale of zero": (lambda: mbs.Polynomial((1.0, 1.0), (0, 1), 0.0, 1.0, scale=0.0), "scale of a polynomial"),
    "point in space": (lambda: mbs.Line((0, 0, 0), (1, 0)), "start of a line must be a pair"),
    "non-finite end": (lambda: mbs.Line((0, 0), (np.nan, 0)), "end of a line must be finite"),
    "non-finite radius": (lambda: mbs.Circle((0, 0), np.inf), "radius of a circle must be finite"),
    "non-finite position": (lambda: mbs.Point((np.nan, 0)), "position of a point must be finite"),
    "normal of zero length": (lambda: mbs.Point((0, 0), normal=(0, 0)), "normal of a point"),
    "knife edge that turns backwards": (lambda: mbs.Point((0, 0), turn=-1.0), "turn of a point must be positive"),
    "non-finite coefficient": (lambda: mbs.Polynomial((np.inf,), (0,), 0, 1), "coefficients of a polynomial.*finite"),
    "non-finite control point": (lambda: mbs.Spline(np.full((5, 2), np.nan)), "control points of a spline.*finite"),
    "non-finite curve": (lambda: chain(mbs.Curve(lambda s: (s, s / 0.0)), closed=False), r"element 0 \(curve\)"),
    "text for a number": (lambda: mbs.Circle((0, 0), "wide"), "radius of a circle.*'wide'"),
    "profile that is none": (lambda: mbs.Body("cam", profiles={"rim": SQUARE}), "'rim' of body 'cam'"),
    "name of a profile with a dot": (lambda: mbs.Body("cam", profiles={"a.b": DISC}), "'a.b'"),
    "unknown profile": (lambda: cam_and_follower(contact("cam.rin")), "'C'.*body 'cam'.*'rin'.*'rim'"),
    "profile of a body without any": (
        lambda: cam_and_follower(contact("ground.rim")),
        "'C'.*body 'ground'.*'rim'",
    ),
    "unknown body": (lambda: cam_and_follower(contact(b="folower.roller")), "'C'.*'folower'.*'follower'"),
    "duplicate contact": (lambda: cam_and_follower(contact(), contact()), "'C'"),
    "name of a joint given to a contact": (
        lambda: cam_and_follower(mbs.Contact("R", "cam.rim", "follower.roller")),
        "'R'",
    ),
    "elements out of range": (
        lambda: cam_and_follower(contact(elements_a=(3, 8))),
        r"elements_a of contact 'C' must be numbers.*from 0 to 7.*\(3, 8\)",
    ),
    "negative element": (
        lambda: cam_and_follower(contact(elements_b=(-1, 0))),
        r"elements_b of contact 'C' must be numbers.*from 0 to 0.*\(-1, 0\)",
    ),
    "no elements": (lambda: cam_and_follower(contact(elements_a=())), r"elements_a of contact 'C'.*\(\)"),
    "contact of a body with itself": (lambda: contact("cam.rim", "cam.hub"), "'C'.*'cam' with itself"),
    "address without a dot": (lambda: contact("cam"), "'C'.*'body.profile', got 'cam'"),
    "address without a profile": (lambda: contact("cam."), "'C'.*got 'cam.'"),
    "place on a profile that is no number": (lambda: DISC("top"), "coordinate of a profile"),
}


@pytest.mark.parametrize("make, message", CULPRITS.values(), ids=CULPRITS)
def test_construction_names_the_culprit(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: contact(hold="glue"), "hold.*'glue'"),
        (lambda: mbs.Polynomial((1.0,), (0.5,), 0.0, 1.0), r"orders.*\(0.5,\)"),
        (lambda: contact(3), "profile_a.*3|got 3"),
        (lambda: cam_and_follower(contact(elements_a=(1.5, 2))), r"elements_a.*\(1.5, 2\)"),
    ],
)
def test_what_the_types_forbid(make, message):
    """Under a type checker, as in these tests, these do not reach the library's own errors."""
    with pytest.raises((ValueError, TypeError), match=f"(?s){message}"):
        make()


def test_what_looks_odd_and_is_right():
    """None of these may be taken for a mistake."""
    lines(*SQUARE[::-1], hole=True)
    chain(mbs.Circle((0, 0), 1.0, concave=True))
    chain(mbs.Point((0, 0)), closed=False)
    chain(mbs.Arc.between((-1, 0), (1, 0), radius=1.0), closed=False)
    # ends that miss each other by rounding
    third = 1 / 3
    lines((0.0, 0.0), (0.1 + 0.2, 0.0), (third * 3, third))
    chain(mbs.Line((0, 0), (0.3, 0)), mbs.Line((0.1 + 0.2, 0), (0, 1)), mbs.Line((0, 1), (0, 0)))
