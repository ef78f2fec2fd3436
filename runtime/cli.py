"""`qgpu`, the command: its subcommands."""

from __future__ import annotations

import click

from qgpu.backends.machine.assembly import program_text
from qgpu.runtime.bench_command import bench_command
from qgpu.runtime.chat_command import ask_command, chat_command
from qgpu.runtime.check_text_command import check_text_command
from qgpu.runtime.conformance_command import conformance_command
from qgpu.runtime.coverage_command import coverage_command
from qgpu.runtime.eval_command import eval_command
from qgpu.runtime.programs import open_program
from qgpu.runtime.prove_command import prove_command
from qgpu.runtime.refusing import refusing
from qgpu.runtime.run_command import run_command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run kernels on a language model that was compiled to execute them."""


main.add_command(ask_command)
main.add_command(bench_command)
main.add_command(chat_command)
main.add_command(check_text_command)
main.add_command(conformance_command)
main.add_command(coverage_command)
main.add_command(eval_command)
main.add_command(prove_command)
main.add_command(run_command)


@main.command("objdump")
@click.argument("file")
def objdump_command(file: str) -> None:
    """Print the machine code of a program, one line a block."""
    with refusing():
        click.echo(program_text(open_program(file)), nl=False)
