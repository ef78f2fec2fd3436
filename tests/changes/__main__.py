"""`python -m changes`: random changes of one weight, and which of those that show in a token are found.

    python -m changes --changes 1000 --seed 1 --machine small --results changes.jsonl

Run it in the folder `tests` with `examples` on PYTHONPATH. A change of a live weight is drawn by tensor, then
by weight, then by kind; a tenth as many changes of norm vectors and of weights that nothing uses are counted
apart. Each changed checkpoint runs on the engine until a token is not the reference's, is compared with the
machine's circuit, and, with --prove and where a token is wrong, is proved from the changed layer on. What is
known already is taken from the file of results, and what is new added to it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import track
from safetensors.numpy import load_file

from changes.launches import STREAMS, sequences
from changes.report import Result, print_report
from changes.running import Ran, Runner
from changes.weights import LIVE, NORM, UNUSED, Change, Weights
from qgpu.backends.machine.description import DescriptionError, MachineDescription, load_description
from qgpu.backends.prover.equivalence.check import Equivalence
from qgpu.backends.prover.equivalence.meant import Meant
from qgpu.backends.prover.program import program_conditions
from qgpu.backends.transformer.emit import lay_out
from qgpu.backends.transformer.processor import build_processor
from qgpu.runtime.checkpoints import CheckpointError, built_checkpoint

APART = 10
"""Of changes of norm vectors, and of unused weights, there is one for so many of live weights."""


@click.command(context_settings={"show_default": True})
@click.option("--changes", "number", default=1000, type=click.IntRange(1), help="Changes of live weights.")
@click.option("--seed", default=1, type=int)
@click.option("--machine", default="small", metavar="NAME|FILE")
@click.option("--streams", default=STREAMS, type=click.IntRange(1), help="Random streams that are run.")
@click.option("--prove", "proves", is_flag=True, help="Prove those that show in a token as well: hours.")
@click.option("--results", type=click.Path(path_type=Path), help="File of results, a line each.")
def main(number: int, seed: int, machine: str, streams: int, proves: bool, results: Path | None) -> None:
    """Change weights at random, and count what shows and what is found."""
    try:
        described = load_description(machine)
        experiment = Experiment(described, built_checkpoint(described), streams)
    except (CheckpointError, DescriptionError) as error:
        raise click.ClickException(str(error)) from error
    known = read_results(results)
    console = Console(stderr=True)
    planned = list(experiment.plan(number, seed))
    done: list[Result] = []
    for change in track(planned, "changes", console=console):
        result = known.get(str(change))
        if result is None:
            result = experiment.result(change)
            add_result(results, result)
        if proves and result.shows and result.unproved is None:
            result = experiment.proved(result)
            add_result(results, result)
        done.append(result)
    print_report(Console(width=None if sys.stdout.isatty() else 110), done)


class Experiment:
    """Changes of one checkpoint."""

    def __init__(self, machine: MachineDescription, folder: Path, streams: int) -> None:
        """Prepare: run the checkpoint as it is.

        Raises:
            ValueError: it gives a wrong token, or is not the machine's circuit.
        """
        self._tensors = load_file(folder / "model.safetensors")
        self._config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self._layout = lay_out(build_processor(machine), machine.model)
        self._machine = machine
        self._equivalence = Equivalence(Meant(self._layout, self._config["dtype"]), Wide(self._tensors))
        self._part = {n: p for p in self._equivalence.parts for n in self._equivalence.tensors_of(p)}
        self._weights = Weights(self._tensors)
        self._prover = None
        for part in self._equivalence.parts:
            if found := self._equivalence.differences(part, Wide(self._tensors)):
                raise ValueError(f"the checkpoint as it is: {found[0]}")
        self._runner = Runner(self._tensors, self._config, sequences(machine, streams))

    def plan(self, number: int, seed: int) -> Iterator[Change]:
        """The changes: of live weights, then of others. More changes begin with the same ones."""
        for group, count in ((LIVE, number), (NORM, number // APART), (UNUSED, number // APART)):
            for index in range(count):
                name = (LIVE, NORM, UNUSED).index(group)
                yield self._weights.draw(np.random.default_rng((seed, name, index)), group)

    def result(self, change: Change) -> Result:
        """Run a change, and compare it with the circuit."""
        changed = self._changed(change)
        ran: Ran = self._runner.run(changed)
        part, wide = self._part[change.tensor], Wide({**self._tensors, **changed})
        differences = self._equivalence.differences(part, wide)
        return Result(change, ran.wrong, ran.error, [str(found) for found in differences[:3]])

    def proved(self, result: Result) -> Result:
        """Prove a change, which the result then has."""
        from changes.proving import Prover

        if self._prover is None:
            conditions = program_conditions(self._machine, self._layout)
            self._prover = Prover(self._tensors, self._config, conditions)
        row = self._prover.new_row(self._changed(result.change))
        return replace(result, unproved=[] if row is None else [row])

    def _changed(self, change: Change) -> dict[str, np.ndarray]:
        return {change.tensor: change.of(self._tensors[change.tensor])}


class Wide:
    """Tensors as float64."""

    def __init__(self, tensors: dict[str, np.ndarray]) -> None:
        self._tensors = tensors

    def __getitem__(self, name: str) -> np.ndarray:
        return self._tensors[name].astype(np.float64)


def read_results(path: Path | None) -> dict[str, Result]:
    """The results of a file, by change; of several of one change, the last."""
    if path is None or not path.exists():
        return {}
    found = [Result.from_json(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    return {str(result.change): result for result in found}


def add_result(path: Path | None, result: Result) -> None:
    """Add a result to a file."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result.to_json()) + "\n")


if __name__ == "__main__":
    main()
