"""Run changed tensors on sequences up to the first wrong token, in a process of their own."""

from __future__ import annotations

import hashlib
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from changes.launches import Followed
from qgpu.backends.engine import form as forms
from qgpu.backends.engine.sequence import TokenSequence
from qgpu.backends.engine.tree import Tree

PATIENCE = 120.0
"""Seconds after which the engine is given up with a changed checkpoint."""

BY_COLUMN = ("down_proj.weight", "out_proj.weight")

Tensors = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Ran:
    """What came of changed tensors.

    Attributes:
        wrong: the sequence and the number of the first token that is not the reference's; None if all are.
        error: why the engine did not go on, empty if it did.
    """

    wrong: tuple[str, int] | None = None
    error: str = ""

    @property
    def changes_a_token(self) -> bool:
        """Whether not all of the right tokens came."""
        return self.wrong is not None or bool(self.error)


class Runner:
    """Runs the engine on sequences with changed tensors.

    A form is made anew each time, but for the trees of rows that are as they were.
    """

    def __init__(self, tensors: Tensors, config: dict[str, Any], sequences: Sequence[Followed]) -> None:
        """Take float32 tensors, and run them as they are.

        Raises:
            ValueError: a token is not the reference's already.
        """
        # What is read by columns lies by columns.
        self._tensors = {n: np.asfortranarray(t) if n.endswith(BY_COLUMN) else t for n, t in tensors.items()}
        self._config, self._sequences = config, sequences
        self._trees: dict[bytes, Tree] = {}
        before = self._run({})
        if before.changes_a_token:
            raise ValueError(f"the checkpoint as it is: {before}")

    def run(self, changed: Tensors) -> Ran:
        """Run with some tensors in the place of others."""
        context = multiprocessing.get_context("fork")
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=self._send, args=(changed, sender))
        process.start()
        sender.close()
        try:
            if not receiver.poll(PATIENCE):
                return Ran(error=f"no end after {PATIENCE:g} seconds")
            return receiver.recv()
        except EOFError:
            process.join()
            return Ran(error=f"the engine ends with status {process.exitcode}")
        finally:
            process.kill()
            process.join()
            receiver.close()

    def _send(self, changed: Tensors, sender: Any) -> None:
        sender.send(self._run(changed))

    def _run(self, changed: Tensors) -> Ran:
        try:
            with self._known_trees():
                form = forms.build_form({**self._tensors, **changed}, self._config)  # pyright: ignore
        except forms.ModelError as error:
            return Ran(error=str(error))
        sequence = TokenSequence(form)
        for followed in self._sequences:
            at = first_wrong(sequence, followed)
            if at is not None:
                return Ran((followed.name, at))
        return Ran()

    @contextmanager
    def _known_trees(self) -> Iterator[None]:
        build = forms.build_tree
        forms.build_tree = self._tree_by(build)
        try:
            yield
        finally:
            forms.build_tree = build

    def _tree_by(self, build: Callable[..., Tree]) -> Callable[..., Tree]:
        def tree(*arrays: np.ndarray) -> Tree:
            digest = hashlib.sha256()
            for array in arrays:
                digest.update(
                    str((array.shape, array.dtype)).encode() + np.ascontiguousarray(array).tobytes()
                )
            key = digest.digest()
            if key not in self._trees:
                self._trees[key] = build(*arrays)
            return self._trees[key]

        return tree


def first_wrong(sequence: TokenSequence, followed: Followed) -> int | None:
    """The number of the first token of a sequence after which the engine says something else, or None."""
    sequence.begin()
    tokens, expected = followed.tokens.tolist(), followed.expected.tolist()
    first = 0
    for number in np.flatnonzero(followed.expected >= 0).tolist():
        if sequence.feed(tokens[first : number + 1]) != expected[number]:
            return number
        first = number + 1
    return None
