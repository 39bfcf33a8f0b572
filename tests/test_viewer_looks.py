"""What bodies look like in the page: meshes from STL and glTF files."""

import base64
import json
import struct

import numpy as np
import pytest

import mbsjax as mbs
from mbsjax._pictures.viewer.meshes import indexed, read_mesh, thinned
from tests.viewing import content, numbers


CORNERS = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def stl_text() -> bytes:
    facets = ("".join(f"vertex {x} {y} {z}\n" for x, y, z in CORNERS[face]) for face in FACES)
    return ("solid t\n" + "".join(f"facet normal 0 0 0\nouter loop\n{f}endloop\nendfacet\n" for f in facets)).encode()


def stl_binary() -> bytes:
    rows = (np.concatenate([np.zeros(3), CORNERS[face].ravel()]).astype("<f4").tobytes() + b"\0\0" for face in FACES)
    return bytes(80) + struct.pack("<I", len(FACES)) + b"".join(rows)


def gltf(uri: str | None) -> tuple[dict, bytes]:
    """The same, turned back by a quarter about z and shifted, in a node that turns and shifts it into place."""
    back = (CORNERS - [5.0, 0.0, 0.0]) @ np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    data = back.astype("<f4").tobytes() + FACES.astype("<u2").tobytes()
    half = float(np.sqrt(0.5))
    scene = {
        "nodes": [{"children": [1], "translation": [5.0, 0.0, 0.0]}, {"mesh": 0, "rotation": [0.0, 0.0, half, half]}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3"},
            {"bufferView": 1, "componentType": 5123, "count": 12, "type": "SCALAR"},
        ],
        "bufferViews": [{"buffer": 0, "byteLength": 48}, {"buffer": 0, "byteOffset": 48, "byteLength": 24}],
        "buffers": [{"byteLength": 72} if uri is None else {"byteLength": 72, "uri": uri}],
    }
    return scene, data


def glb() -> bytes:
    scene, data = gltf(None)
    text = json.dumps(scene).encode()
    text += b" " * (-len(text) % 4)
    parts = struct.pack("<I", len(text)) + b"JSON" + text + struct.pack("<I", len(data)) + b"BIN\0" + data
    return b"glTF" + struct.pack("<II", 2, 12 + len(parts)) + parts


def embedded() -> bytes:
    _, data = gltf(None)
    uri = "data:application/octet-stream;base64," + base64.b64encode(data).decode()
    return json.dumps(gltf(uri)[0]).encode()


@pytest.mark.parametrize(
    "name, data",
    [("text.stl", stl_text()), ("binary.STL", stl_binary()), ("a.glb", glb()), ("a.gltf", embedded())],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_files_of_all_kinds_have_the_same_triangles(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    np.testing.assert_allclose(read_mesh(tmp_path / name), CORNERS[FACES], atol=1e-6)


def test_fine_meshes_are_made_coarser():
    n = 120
    u, v = np.meshgrid(np.linspace(0, np.pi, n + 1), np.linspace(0, 2 * np.pi, 2 * n + 1), indexing="ij")
    ball = np.stack([np.sin(u) * np.cos(v), np.sin(u) * np.sin(v), np.cos(u)], -1)
    a, b, c, d = ball[:-1, :-1], ball[1:, :-1], ball[1:, 1:], ball[:-1, 1:]
    triangles = np.concatenate([np.stack([a, b, c], 2), np.stack([a, c, d], 2)]).reshape(-1, 3, 3)
    points, faces = thinned(*indexed(triangles), 3000)
    assert 0.6 * 3000 < len(faces) <= 3000  # each grid has 0.64 times the squares of the one before
    edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    assert np.all(np.unique(edges, axis=0, return_counts=True)[1] % 2 == 0)  # still closed
    p, q, r = (points[faces[:, k]] for k in range(3))
    volume = np.sum(p * np.cross(q, r)) / 6
    assert volume == pytest.approx(4 * np.pi / 3, rel=0.01)
    same, kept = thinned(CORNERS, FACES, 3000)
    assert same is CORNERS and kept is FACES


@pytest.fixture(scope="module")
def lever() -> mbs.Mechanism:
    return mbs.Mechanism(
        [mbs.Body("lever")], [mbs.Revolute("A", "ground", "lever", (0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0))]
    )


def test_looks_are_in_the_page_and_are_shaded(lever, tmp_path, visit):
    (tmp_path / "a.stl").write_bytes(stl_binary())
    viewer = mbs.view(lever, looks={"lever": tmp_path / "a.stl"})
    look = content(viewer)["looks"]["lever"]
    points = np.stack([numbers(x) for x in look["points"]], 1)
    faces = numbers(look["faces"]).astype(int).reshape(-1, 3)
    np.testing.assert_allclose(points[faces], CORNERS[FACES], rtol=0, atol=np.ptp(CORNERS) / 65534)  # 16 bits
    page = visit(viewer)
    at = page.evaluate("mbsjax.project('lever', [0.34, 0.66, 1])")  # within the large face, and off its edges
    read = """([x, y]) => { const c = document.getElementById("stage"), k = c.width / c.clientWidth;
        return [...c.getContext("2d").getImageData(Math.round(x * k), Math.round(y * k), 1, 1).data] }"""
    assert page.evaluate(read, at)[3] == 255
    assert page.evaluate(read, [5, 200])[3] == 0  # beside it there is nothing


def test_bad_looks_are_named(lever, tmp_path):
    files = {"short.stl": stl_binary()[:-7], "x.obj": b"", "empty.stl": b"solid t", "cut.glb": glb()[:-30]}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    for name, complaint in {
        "short.stl": "neither a binary STL of the length that it tells nor one of text",
        "x.obj": "must be a file .stl, .glb or .gltf",
        "empty.stl": "has no triangles",
        "cut.glb": "cannot be read: ",
        "none.stl": "is not a file",
    }.items():
        with pytest.raises(ValueError, match=f"the look '.*{name}' .*{complaint}"):
            mbs.view(lever, looks={"lever": tmp_path / name})
    with pytest.raises(ValueError, match="looks names an unknown body 'leaver'; did you mean 'lever'"):
        mbs.view(lever, looks={"leaver": "a.stl"})
    flat = mbs.Mechanism([mbs.Body("arm")], [mbs.Revolute("A", "ground", "arm")])
    with pytest.raises(ValueError, match="`looks` are for mechanisms in space"):
        mbs.view(flat, looks={"arm": "a.stl"})
