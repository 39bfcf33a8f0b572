"""Operations that move entries without computing: by name of the primitive, where each entry of the result is from."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from .entries import Entries, entries, known


MOST_CHOICES = 16  # places that a number may choose from, one by one


def _broadcast(p: dict, x: Entries, *_: Entries) -> Entries:
    shape = [1] * len(p["shape"])
    for axis, n in zip(p["broadcast_dimensions"], x.shape):
        shape[axis] = n
    return np.broadcast_to(x.reshape(shape), p["shape"])


def _split(p: dict, x: Entries) -> list[Entries]:
    return np.split(x, np.cumsum(p["sizes"])[:-1], p["axis"])


def _padded(p: dict, x: Entries, value: Entries) -> Entries | None:
    if any(low < 0 or high < 0 or inner for low, high, inner in p["padding_config"]):
        return None
    return np.pad(x, [each[:2] for each in p["padding_config"]], constant_values=value[()])


def _iota(p: dict) -> Entries:
    shape = [n if axis == p["dimension"] else 1 for axis, n in enumerate(p["shape"])]
    row = np.arange(p["shape"][p["dimension"]]).astype(p["dtype"])
    return np.broadcast_to(entries(row.shape, row).reshape(shape), p["shape"])


def _sliced(p: dict, x: Entries) -> Entries:
    steps = p["strides"] or [1] * x.ndim
    return x[tuple(slice(*each) for each in zip(p["start_indices"], p["limit_indices"], steps))]


def _scattered(p: dict, x: Entries, indices: Entries, updates: Entries) -> Entries | None:
    d = p["dimension_numbers"]
    if p["update_jaxpr"] is not None or d.operand_batching_dims or not all(map(known, indices.flat)):
        return None
    found = x.copy()
    where = [a for a in range(updates.ndim) if a not in d.update_window_dims]
    window = [a for a in range(x.ndim) if a not in d.inserted_window_dims]
    for each in np.ndindex(*updates.shape):
        place = [0] * x.ndim
        for axis, i in zip(d.scatter_dims_to_operand_dims, indices[tuple(each[a] for a in where)]):
            place[axis] = int(i)
        for axis, a in zip(window, d.update_window_dims):
            place[axis] += each[a]
        if any(not 0 <= i < n for i, n in zip(place, x.shape)):
            return None
        found[tuple(place)] = updates[each]
    return found


MOVES: dict[str, Callable] = {
    "broadcast_in_dim": _broadcast,
    "concatenate": lambda p, *xs: np.concatenate(xs, p["dimension"]),
    "copy": lambda p, x: x,
    "copy_p": lambda p, x: x,
    "expand_dims": lambda p, x: np.expand_dims(x, p["dimensions"]),
    "iota": _iota,
    "pad": _padded,
    "reshape": lambda p, x: x.reshape(p["new_sizes"]) if p.get("dimensions") is None else None,
    "rev": lambda p, x: np.flip(x, p["dimensions"]),
    "scatter": _scattered,
    "slice": _sliced,
    "split": _split,
    "squeeze": lambda p, x: x.squeeze(tuple(p["dimensions"])),
    "stop_gradient": lambda p, x: x,
    "stack": lambda p, *xs: np.stack(xs, p["axis"]),
    "transpose": lambda p, x: x.transpose(p["permutation"]),
}


def places_of(name: str, p: dict, xs: list[Entries], shape: tuple[int, ...]) -> list[tuple] | None:
    """For each entry of the result the place that it comes from, where at most one index is not known, and that one
    chooses from a few; None where this is not so."""
    x, limits = xs[0], np.subtract(xs[0].shape, p["slice_sizes"])

    def start(axis: Any, index: Any) -> Any:
        """Where a slice begins along an axis."""
        if known(index):
            return int(np.clip(int(index), 0, limits[axis]))
        return index

    if name == "dynamic_slice":
        begins = [start(axis, i[()]) for axis, i in enumerate(xs[1:])]
        found = [list(zip(begins, each)) for each in np.ndindex(*shape)]
    else:
        if p["mode"] == lax.GatherScatterMode.FILL_OR_DROP and not all(map(known, xs[1].flat)):
            return None
        d = p["dimension_numbers"]
        where = [a for a in range(len(shape)) if a not in d.offset_dims]
        window = [a for a in range(x.ndim) if a not in (*d.collapsed_slice_dims, *d.operand_batching_dims)]
        found = []
        for each in np.ndindex(*shape):
            batch = tuple(each[a] for a in where)
            begins, offsets = [0] * x.ndim, [0] * x.ndim
            for axis, i in zip(d.start_index_map, xs[1][batch]):
                if known(i) and p["mode"] == lax.GatherScatterMode.FILL_OR_DROP and not 0 <= i <= limits[axis]:
                    return None
                begins[axis] = start(axis, i)
            for axis, a in zip(d.operand_batching_dims, d.start_indices_batching_dims):
                begins[axis] = batch[a]
            for axis, a in zip(window, d.offset_dims):
                offsets[axis] = each[a]
            found.append(list(zip(begins, offsets)))
    places = []
    for each in found:
        place = tuple(b + o if isinstance(b, int) else b for b, o in each)
        unknown = [axis for axis, i in enumerate(place) if not isinstance(i, int)]
        if len(unknown) > 1 or any(x.shape[axis] > MOST_CHOICES or p["slice_sizes"][axis] != 1 for axis in unknown):
            return None
        places.append(place)
    return places
