"""Control flow graphs in the DOT language of Graphviz."""

from collections.abc import Iterator

from qgpu.ir import BasicBlock, Function, Module
from qgpu.ir.analysis.postdominators import PostDominatorTree
from qgpu.ir.analysis.uniformity import Uniformity
from qgpu.ir.core.printer import Printer


def graph_text(module: Module) -> str:
    """One digraph for each kernel.

    A node is a block with its instructions, a solid edge a successor (T and F where there are two), a dashed
    one the immediate post-dominator. Blocks that end in a divergent branch are red; a linearised function has
    guards in place of divergent branches.
    """
    return "\n".join(_graph(function) for function in module.functions)


def _graph(function: Function) -> str:
    lines = [
        f"digraph {_quoted(function.name)} {{",
        f"  label={_quoted(f'kernel @{function.name}')};",
        '  node [shape=box, fontname="monospace"];',
        *_nodes(function),
        *_edges(function),
        *_post_dominators(function),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _nodes(function: Function) -> Iterator[str]:
    printer = Printer(function)
    divergent = set() if function.linearised else set(Uniformity(function).divergent_branches)
    for block in function.blocks:
        colour = ", color=red" if block in divergent else ""
        yield f"  {_quoted(block.name)} [label={_left_aligned(printer.block(block))}{colour}];"


def _edges(function: Function) -> Iterator[str]:
    for block in function.blocks:
        labels = ("T", "F") if len(block.successors) == 2 else ("",)
        for successor, label in zip(block.successors, labels, strict=False):
            yield f"  {_edge(block, successor)}{f' [label={label}]' if label else ''};"


def _post_dominators(function: Function) -> Iterator[str]:
    tree = PostDominatorTree(function)
    for block in function.blocks:
        found = tree.ipdom(block) if len(block.successors) > 1 else None
        if found is not None:
            yield f"  {_edge(block, found)} [style=dashed, constraint=false, color=gray];"


def _edge(source: BasicBlock, target: BasicBlock) -> str:
    return f"{_quoted(source.name)} -> {_quoted(target.name)}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _left_aligned(text: str) -> str:
    """A quoted label whose lines start at the left (`\\l` ends such a line)."""
    return _quoted(text)[:-1].replace("\n", "\\l") + '\\l"'
