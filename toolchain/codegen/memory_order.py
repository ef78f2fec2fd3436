"""The order of accesses to memory in a region: which earlier ones a new one has to come after.

Reads of a space commute, and so do accesses to different spaces. Of what a draft must follow, only the latest
is named where that follows the rest itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from qgpu.toolchain.codegen.nodes import ANY_SPACE, Node
from qgpu.toolchain.codegen.selection import Draft

_VOLATILE = "volatile"
"""A space that every volatile access writes, since these keep their order."""


@dataclass(eq=False)
class _Space:
    """The drafts that last wrote to a space, and those that have read it since."""

    writers: list[Draft] = field(default_factory=list)
    readers: list[Draft] = field(default_factory=list)


class MemoryOrder:
    """Takes in the drafts of a region in the order of the source."""

    def __init__(self) -> None:
        self._spaces: dict[str, _Space] = {}
        self._unknown = _Space()
        self._epoch = 0
        self._earlier_epoch: list[Draft] = []
        self._this_epoch: list[Draft] = []

    def add(self, draft: Draft, effects: Iterable[Node], epoch: int) -> list[Draft]:
        """The drafts that one with these accesses and traps must follow; `epoch` counts the fences before."""
        if epoch != self._epoch:
            self._epoch = epoch
            self._earlier_epoch = self._this_epoch or self._earlier_epoch
            self._this_epoch = []
            self._spaces, self._unknown = {}, _Space()
        self._this_epoch.append(draft)
        followed = dict.fromkeys(self._earlier_epoch)
        for name, writes in dict.fromkeys(_accesses(effects)):
            followed |= dict.fromkeys(self._access(draft, name, writes))
        followed.pop(draft, None)
        return list(followed)

    def _access(self, draft: Draft, name: str, writes: bool) -> Iterator[Draft]:
        for space in self._touched(name):
            yield from space.writers
            yield from space.readers if writes else ()
            if writes:
                space.writers, space.readers = [draft], []
            else:
                space.readers.append(draft)

    def _touched(self, name: str) -> list[_Space]:
        """The spaces that an access to one touches; a space begins as what unknown ones have seen."""
        if name == ANY_SPACE:
            return [self._unknown, *self._spaces.values()]
        if name not in self._spaces:
            self._spaces[name] = _Space([*self._unknown.writers], [*self._unknown.readers])
        return [self._spaces[name]]


def _accesses(effects: Iterable[Node]) -> Iterator[tuple[str, bool]]:
    """The spaces that nodes touch, and whether they write there; a trap stays where it is among all."""
    for node in effects:
        if node.kind == "trap":
            yield ANY_SPACE, True
        elif node.access:
            yield node.access.space, node.writes_memory
            if node.volatile:
                yield _VOLATILE, True
