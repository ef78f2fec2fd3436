"""What is live after tiles were taken out is what it is where they never were."""

from collections.abc import Sequence

import pytest

from qgpu.backends.machine.description import LARGE
from qgpu.ir.passes.linearize import Linearize
from qgpu.toolchain.codegen import allocate, generate_kernel
from qgpu.toolchain.codegen.liveness import Liveness
from qgpu.toolchain.codegen.registers import Register
from qgpu.toolchain.codegen.tiles import Tile
from random_kernels import random_kernel


class Compared(Liveness):
    """Liveness that is found from the start again where it is brought up to date."""

    updates = 0

    def update(self, tiles: Sequence[Tile], changed: set[Register]) -> None:
        super().update(tiles, changed)
        Compared.updates += 1
        anew = Liveness(tiles)
        for tile in tiles:
            assert self.after[tile].keys() == anew.after[tile].keys()
            assert set(self.reached(tile)) == set(anew.reached(tile))


def test_liveness_is_brought_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocate, "Liveness", Compared)
    for seed in range(300, 360):
        function = random_kernel(seed, 4)
        Linearize().run(function)
        generate_kernel(function, LARGE)
    assert Compared.updates
