"""Looks of bodies in space: triangles from STL and glTF files."""

import base64
import json
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._model.mechanism import Mechanism
from ..._programs.names import unknown
from .packing import packed


_MOST = 3000  # triangles of a body in the page
_LARGEST = 200_000_000  # bytes of a file
_COMPONENTS = {5120: "i1", 5121: "u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}


def looks_of(mech: Mechanism, looks: Mapping[str, Any]) -> dict[str, dict]:
    """The meshes of bodies, by name, as the page takes them."""
    for body in looks:
        if body not in mech.links:
            raise ValueError(f"looks names {unknown('body', body, mech.links)}")
    if looks and mech.planar:
        raise ValueError("`looks` are for mechanisms in space: a planar one is drawn by its profiles")
    found = {}
    for body, path in looks.items():
        points, faces = thinned(*indexed(read_mesh(path)), _MOST)
        found[body] = {"points": [packed(x, np.uint16) for x in points.T], "faces": packed(faces.reshape(-1))}
    return found


def read_mesh(path: Any) -> np.ndarray:
    """The triangles of an STL, GLB or glTF file: `(n, 3, 3)`."""
    path = pathlib.Path(path)
    readers = {".stl": _stl, ".glb": _glb, ".gltf": _gltf}
    if path.suffix.lower() not in readers:
        raise ValueError(f"the look {str(path)!r} must be a file .stl, .glb or .gltf")
    if not path.is_file():
        raise ValueError(f"the look {str(path)!r} is not a file")
    if path.stat().st_size > _LARGEST:
        raise ValueError(f"the look {str(path)!r} is larger than {_LARGEST // 1_000_000} MB: simplify it first")
    try:
        triangles = readers[path.suffix.lower()](path)
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise ValueError(f"the look {str(path)!r} cannot be read: {error}") from error
    if len(triangles) == 0 or not np.isfinite(triangles).all():
        raise ValueError(f"the look {str(path)!r} has no triangles, or some that are not finite")
    return triangles


def _stl(path: pathlib.Path) -> np.ndarray:
    data = path.read_bytes()
    count = int.from_bytes(data[80:84], "little")
    if len(data) == 84 + 50 * count:
        rows = np.frombuffer(data, np.dtype([("floats", "<f4", 12), ("rest", "<u2")]), count, 84)
        return rows["floats"][:, 3:].reshape(-1, 3, 3).astype(float)
    corners = re.findall(rb"vertex\s+(\S+)\s+(\S+)\s+(\S+)", data)
    if not data.lstrip().startswith(b"solid") or len(corners) % 3:
        raise ValueError("it is neither a binary STL of the length that it tells nor one of text")
    return np.array(corners, float).reshape(-1, 3, 3)


def _glb(path: pathlib.Path) -> np.ndarray:
    data = path.read_bytes()
    if data[:4] != b"glTF":
        raise ValueError("it does not begin with glTF")
    chunks, at = [], 12
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        chunks.append(data[at + 8 : at + 8 + size])
        at += 8 + size
    return _scene(json.loads(chunks[0]), chunks[1:2] or [b""])


def _gltf(path: pathlib.Path) -> np.ndarray:
    scene, buffers = json.loads(path.read_text(encoding="utf-8")), []
    for buffer in scene.get("buffers", []):
        told, _, text = buffer["uri"].partition("base64,")
        buffers.append(base64.b64decode(text) if text else (path.parent / told).read_bytes())
    return _scene(scene, buffers)


def _scene(scene: dict, buffers: list[bytes]) -> np.ndarray:
    """The triangles of all nodes of a glTF scene."""
    nodes, found = scene.get("nodes", []), []

    def visit(number: int, X: np.ndarray) -> None:
        node = nodes[number]
        X = X @ _placement(node)
        if "mesh" in node:
            for part in scene["meshes"][node["mesh"]]["primitives"]:
                if part.get("mode", 4) != 4:
                    raise ValueError("it has lines, points or strips: triangles only are read")
                points = _accessor(scene, buffers, part["attributes"]["POSITION"]).astype(float)
                points = points @ X[:3, :3].T + X[:3, 3]
                given = part.get("indices")
                order = np.arange(len(points)) if given is None else _accessor(scene, buffers, given).reshape(-1)
                found.append(points[order].reshape(-1, 3, 3))
        for child in node.get("children", []):
            visit(child, X)

    children = {child for node in nodes for child in node.get("children", [])}
    for root in set(range(len(nodes))) - children:
        visit(root, np.eye(4))
    return np.concatenate(found) if found else np.zeros((0, 3, 3))


def _placement(node: dict) -> np.ndarray:
    if "matrix" in node:
        return np.array(node["matrix"], float).reshape(4, 4).T
    x, y, z, w = node.get("rotation", (0.0, 0.0, 0.0, 1.0))
    X = np.eye(4)
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    X[:3, :3] = R * np.array(node.get("scale", (1.0, 1.0, 1.0)))
    X[:3, 3] = node.get("translation", (0.0, 0.0, 0.0))
    return X


def _accessor(scene: dict, buffers: list[bytes], number: int) -> np.ndarray:
    told = scene["accessors"][number]
    if "bufferView" not in told or "sparse" in told:
        raise ValueError("it is compressed or sparse: save it without")
    where = scene["bufferViews"][told["bufferView"]]
    kind = np.dtype(_COMPONENTS[told["componentType"]])
    columns = {"SCALAR": 1, "VEC3": 3}[told["type"]]
    begin = where.get("byteOffset", 0) + told.get("byteOffset", 0)
    step = where.get("byteStride", kind.itemsize * columns)
    shape, buffer = (told["count"], columns), buffers[where["buffer"]]
    return np.ndarray(shape, kind, buffer, begin, (step, kind.itemsize))  # checks that it lies within the buffer


def indexed(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points, and which three of them each triangle has."""
    points, faces = np.unique(triangles.reshape(-1, 3), axis=0, return_inverse=True)
    return points, faces.reshape(-1, 3)


def thinned(points: np.ndarray, faces: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At most so many triangles: points that share a cell of a grid become one, of an ever coarser grid."""
    low, size, cells = points.min(0), max(float(np.ptp(points, axis=0).max()), 1e-300), 96.0
    while len(faces) > most:
        _, cell = np.unique(np.floor((points - low) / size * cells), axis=0, return_inverse=True)
        cell = cell.reshape(-1)
        count = np.bincount(cell)
        points = np.stack([np.bincount(cell, x) / count for x in points.T], 1)
        faces = cell[faces]
        faces = faces[(faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])]
        cells *= 0.8
    return points, faces
