"""`qgpuc --emit-weights --prove`: nothing is written that is not proved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from qgpu.toolchain.diagnostics import failure

if TYPE_CHECKING:
    from qgpu.backends.prover.certify import Found


def proved_content(found: Found) -> dict[str, Any]:
    """The content of the certificate of what is proved, which stderr is told; what is not, a line each.

    Raises:
        DiagnosticError: something is not proved, or differs from the machine's circuit.
    """
    if found.holds:
        click.echo(f"qgpuc: proved: {found.proof.dtype}, sha256 {found.proof.sha256}", err=True)
        return found.content()
    for problem in found.problems:
        click.echo(f"qgpuc: error: {problem}", err=True)
    count = len(found.problems)
    rows = "1 row is" if count == 1 else f"{count} rows are"
    note = "without --prove it is written; qgpu prove takes it then"
    raise failure(f"nothing is written: {rows} not proved, or not the machine's", note)
