"""The graph of a mechanism (thesis 2.2.2): links are vertices, joints are lines. Plain NumPy, static."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from .._programs.reprs import by_fields


@dataclass(frozen=True)
class Topology:
    """Spanning tree, chords and loops of a connected graph, rooted at the first link.

    Made by [`mbsjax.topology`][].
    """

    links: tuple[str, ...]
    joints: tuple[tuple[str, str, str], ...]  # name, preceding link, following link

    __repr__ = by_fields

    @cached_property
    def ends(self) -> np.ndarray:
        """The numbers of the two links of each joint."""
        number = {link: i for i, link in enumerate(self.links)}
        return np.array([[number[a], number[b]] for _, a, b in self.joints], dtype=int).reshape(-1, 2)

    @cached_property
    def incidence(self) -> np.ndarray:
        """Gamma (2.2.2-1): -1 where a joint leaves a link, +1 where it arrives."""
        gamma = np.zeros((len(self.links), len(self.joints)), dtype=int)
        columns = np.arange(len(self.joints))
        gamma[self.ends[:, 0], columns] = -1
        gamma[self.ends[:, 1], columns] = 1
        return gamma

    @cached_property
    def generations(self) -> tuple[tuple[tuple[int, int, int], ...], ...]:
        """Generations of the tree (2.2.2.3), each a row of (joint, parent link, child link)."""
        reached, front, generations = {0}, [0], []
        while front:
            generation = []
            for parent in front:
                for joint, (a, b) in enumerate(self.ends):
                    child = int(b) if a == parent else int(a) if b == parent else None
                    if child is not None and child not in reached:
                        reached.add(child)
                        generation.append((joint, parent, child))
            front = [child for _, _, child in generation]
            if generation:
                generations.append(tuple(generation))
        return tuple(generations)

    @cached_property
    def tree(self) -> tuple[int, ...]:
        """The joints of the spanning tree, in the order of the search."""
        return tuple(joint for generation in self.generations for joint, _, _ in generation)

    @cached_property
    def chords(self) -> tuple[int, ...]:
        """The joints left over: each closes one independent loop."""
        return tuple(j for j in range(len(self.joints)) if j not in self.tree)

    @cached_property
    def unreached(self) -> tuple[str, ...]:
        """Links that no chain of joints connects with the root."""
        reached = {child for generation in self.generations for _, _, child in generation}
        return tuple(link for i, link in enumerate(self.links) if i and i not in reached)

    @cached_property
    def paths(self) -> np.ndarray:
        """For each link, the signed joints on the way to it from the root."""
        paths = np.zeros((len(self.links), len(self.joints)), dtype=int)
        for generation in self.generations:
            for joint, parent, child in generation:
                paths[child] = paths[parent]
                paths[child, joint] = 1 if self.ends[joint, 1] == child else -1
        return paths

    @cached_property
    def loops(self) -> np.ndarray:
        """Pi (2.2.2-16): one row a chord, -1 at the chord, the way round through the tree beside it."""
        chords = list(self.chords)
        pi = self.paths[self.ends[chords, 1]] - self.paths[self.ends[chords, 0]]
        pi[np.arange(len(chords)), chords] = -1
        return pi

    def loop_links(self, loop: int) -> tuple[str, ...]:
        """The links of a loop in order, from where it leaves the tree's trunk, to its start again."""
        a, b = self.ends[self.chords[loop]]
        return self.way_round(self.links[a], self.links[b])

    def way_round(self, a: str, b: str) -> tuple[str, ...]:
        """The links of the loop that a joint between two links would close."""
        up, down = self._ancestry(self.links.index(a)), self._ancestry(self.links.index(b))
        while len(up) > 1 and len(down) > 1 and up[1] == down[1]:
            up, down = up[1:], down[1:]
        return tuple(self.links[i] for i in (*up, *reversed(down)))

    def _ancestry(self, link: int) -> list[int]:
        """The links from the root to this one."""
        parent = {child: p for generation in self.generations for _, p, child in generation}
        chain = [link]
        while chain[-1] != 0:
            chain.append(parent[chain[-1]])
        return chain[::-1]

    @cached_property
    def open_branches(self) -> tuple[str, ...]:
        """Links that lie on no loop."""
        touched = np.any(self.loops != 0, 0)
        on_loop = {int(i) for j in np.flatnonzero(touched) for i in self.ends[j]}
        return tuple(link for i, link in enumerate(self.links) if i and i not in on_loop)


@lru_cache(maxsize=512)
def _topology(links: tuple[str, ...], joints: tuple[tuple[str, str, str], ...]) -> Topology:
    return Topology(links, joints)


def topology(links: Sequence[str], joints: Sequence[tuple[str, str, str]]) -> Topology:
    """The topology of a graph: `links` with the fixed one first, `joints` as (name, from, to).

    !!! Example

        >>> graph = topology(["1", "2", "3"], [("R12", "1", "2"), ("R13", "1", "3"), ("C23", "2", "3")])
        >>> graph.loops.tolist()
        [[-1, 1, -1]]
        >>> graph.loop_links(0)
        ('1', '2', '3', '1')
    """
    return _topology(tuple(links), tuple(joints))
