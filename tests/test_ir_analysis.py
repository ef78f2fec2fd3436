"""Analyses on graphs drawn by hand, and on random ones against the definitions, tried path by path."""

import os
import random
import subprocess
import sys
from collections.abc import Iterable, Mapping

import pytest

from qgpu.ir import BasicBlock, Function, Instruction, parse_function
from qgpu.ir.analysis.cfg import control_flow, reachable_blocks, reverse_postorder
from qgpu.ir.analysis.dominators import DominatorTree, dominance_frontiers
from qgpu.ir.analysis.graph import directed_graph, dominator_tree, nodes_reaching, postorder
from qgpu.ir.analysis.graph import strongly_connected_components as components_of
from qgpu.ir.analysis.liveness import Liveness
from qgpu.ir.analysis.loops import LoopInfo
from qgpu.ir.analysis.postdominators import PostDominatorTree
from qgpu.ir.analysis.uniformity import Uniformity


def shape(edges: str) -> Function:
    """A function of empty blocks with the given successors: `a: b c; b: d; ...`; without any it returns."""
    text = ["kernel @shape(%c: i1) {"]
    for line in edges.split(";"):
        name, _, targets = line.partition(":")
        names = targets.split()
        branch = {0: "ret", 1: f"br {targets}", 2: f"condbr %c, {', '.join(names)}"}[len(names)]
        text.append(f"{name.strip()}:\n  {branch}")
    return parse_function("\n".join([*text, "}"]))


DIAMOND = "a: b c; b: d; c: d; d:"
NESTED = "a: h; h: i x; i: i2 l; i2: i; l: h; x:"
BREAKS = "a: h; h: b x; b: y c; c: h x; x: y; y:"
IRREDUCIBLE = "a: b c; b: c; c: b d; d:"
ENDLESS = "a: b c; b: b2; b2: b; c:"
TWO_ENDS = "a: b c; b:; c: d e; d: e; e:"


def idoms(function: Function) -> dict[str, str | None]:
    tree = DominatorTree(function)
    found = {block.name: tree.idom(block) for block in reachable_blocks(function)}
    return {name: block.name if block else None for name, block in found.items()}


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        (DIAMOND, "a- ba ca da"),
        (NESTED, "a- ha ih i2i li xh"),
        (BREAKS, "a- ha bh cb xh yh"),
        (IRREDUCIBLE, "a- ba ca dc"),
        (TWO_ENDS, "a- ba ca dc ec"),
    ],
)
def test_immediate_dominators(edges: str, expected: str) -> None:
    pairs = {entry[:-1]: None if entry[-1] == "-" else entry[-1] for entry in expected.split()}
    assert idoms(shape(edges)) == pairs


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        (DIAMOND, {"a": "d", "b": "d", "c": "d", "d": None}),
        (NESTED, {"a": "h", "h": "x", "i": "l", "i2": "i", "l": "h", "x": None}),
        (BREAKS, {"a": "h", "h": "y", "b": "y", "c": "y", "x": "y", "y": None}),
        (ENDLESS, {"a": None, "b": "b2", "b2": None, "c": None}),
        (TWO_ENDS, {"a": None, "b": None, "c": "e", "d": "e", "e": None}),
    ],
)
def test_immediate_post_dominators(edges: str, expected: dict[str, str | None]) -> None:
    function = shape(edges)
    tree = PostDominatorTree(function)
    found = {block.name: tree.ipdom(block) for block in function.blocks}
    assert {name: block.name if block else None for name, block in found.items()} == expected


def test_dominance_is_transitive_and_post_dominance_its_mirror() -> None:
    function = shape(DIAMOND)
    a, b, c, d = function.blocks
    tree, post = DominatorTree(function), PostDominatorTree(function)
    assert tree.dominates(a, d) and tree.dominates(b, b) and not tree.dominates(b, d)
    assert not tree.strictly_dominates(b, b)
    assert post.post_dominates(d, a) and not post.post_dominates(b, a)
    assert tree.children(a) == [block for block in tree.order if block in (b, c, d)]


def test_control_dependence_names_the_blocks_a_branch_decides() -> None:
    function = shape("a: b e; b: c d; c: d; d: e; e:")
    post = PostDominatorTree(function)
    decided = post.control_dependences(function.block("a"))
    assert {s.name: [b.name for b in blocks] for s, blocks in decided.items()} == {"b": ["b", "d"], "e": []}


def test_dominance_frontiers() -> None:
    function = shape(NESTED)
    frontiers = {
        block.name: [f.name for f in found] for block, found in dominance_frontiers(function).items()
    }
    assert frontiers == {"a": [], "h": ["h"], "i": ["h", "i"], "i2": ["i"], "l": ["h"], "x": []}


def test_reverse_postorder_has_only_back_edges_backwards() -> None:
    function = shape(BREAKS)
    order = reverse_postorder(function)
    number = {block: index for index, block in enumerate(order)}
    backward = [(a.name, b.name) for a in order for b in a.successors if number[b] <= number[a]]
    assert backward == [("c", "h")]
    assert reachable_blocks(shape("a: b; b:; island: b")) != shape("a: b; b:; island: b").blocks


def test_loops_nest() -> None:
    function = shape(NESTED)
    info = LoopInfo(function)
    outer, inner = info.loops
    assert (outer.header.name, inner.header.name) == ("h", "i")
    assert inner.parent is outer and outer.children == [inner] and info.top_level == [outer]
    assert [block.name for block in inner.blocks] == ["i", "i2"]
    assert {block.name for block in outer.blocks} == {"h", "i", "i2", "l"}
    assert [(a.name, b.name) for a, b in inner.exit_edges] == [("i", "l")]
    assert info.depth(function.block("i2")) == 2 and info.depth(function.block("x")) == 0
    preheader = outer.preheader(function.predecessors())
    assert preheader is function.block("a") and inner.preheader(function.predecessors()) is None


def test_a_loop_with_breaks_has_several_exits() -> None:
    function = shape(BREAKS)
    [loop] = LoopInfo(function).loops
    assert sorted((a.name, b.name) for a, b in loop.exit_edges) == [("b", "y"), ("c", "x"), ("h", "x")]
    assert {block.name for block in loop.exit_blocks} == {"x", "y"}
    assert [block.name for block in loop.latches] == ["c"]


def test_a_cycle_with_two_entries_is_no_loop_but_irreducible() -> None:
    info = LoopInfo(shape(IRREDUCIBLE))
    assert info.loops == []
    assert {block.name for block in info.irreducible} == {"b", "c"}
    assert LoopInfo(shape(NESTED)).irreducible == []


Graph = Mapping[int, list[int]]


def random_graph(seed: int) -> Graph:
    chance = random.Random(seed)
    size = chance.randint(2, 14)
    return {node: chance.sample(range(size), k=min(size, chance.randint(0, 3))) for node in range(size)}


def reach(edges: Graph, start: Iterable[int], without: Iterable[int] = ()) -> set[int]:
    """The nodes on paths from some nodes that avoid others."""
    found: set[int] = set()
    waiting = set(start).difference(without)
    while waiting:
        found |= waiting
        waiting = {other for node in waiting for other in edges[node]}.difference(found, without)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_a_node_dominates_those_that_cannot_be_reached_without_it(seed: int) -> None:
    edges = random_graph(seed)
    tree = dominator_tree(directed_graph(edges), 0)
    reached = reach(edges, [0])
    assert set(tree.preorder) == reached
    for a in reached:
        dominated = reached - reach(edges, [0], without=[a])
        assert {b for b in reached if tree.is_ancestor(a, b)} == dominated
        parent = tree.parents[a]
        assert parent is None if a == 0 else tree.is_ancestor(parent, a) and parent != a


@pytest.mark.parametrize("seed", range(60))
def test_components_are_the_nodes_that_reach_each_other(seed: int) -> None:
    edges = random_graph(seed)
    paths = {node: reach(edges, [node]) for node in edges}
    expected = [[other for other in edges if other in paths[node] and node in paths[other]] for node in edges]
    assert components_of(list(edges), edges.__getitem__) == [
        component for node, component in zip(edges, expected, strict=True) if component[0] == node
    ]
    for node in edges:
        assert nodes_reaching(directed_graph(edges), node) == {n for n in edges if node in paths[n]}


@pytest.mark.parametrize("seed", range(60))
def test_a_node_comes_in_postorder_after_what_only_it_leads_to(seed: int) -> None:
    edges = random_graph(seed)
    order = postorder(directed_graph(edges), 0)
    assert sorted(order) == sorted(reach(edges, [0])) and order[-1] == 0
    for node in order:
        for other in edges[node]:
            assert order.index(other) <= order.index(node) or node in reach(edges, [other])


def random_shape(seed: int) -> Function:
    """A random graph as a function; the entry has an edge of its own, so that nothing leads back to it."""
    edges = {node: following[:2] for node, following in random_graph(seed).items()}
    return shape("; ".join(["entry: b0", *(f"b{n}: {' '.join(f'b{m}' for m in edges[n])}" for n in edges)]))


def numbered(function: Function) -> dict[int, list[int]]:
    number = {block: index for index, block in enumerate(function.blocks)}
    return {number[block]: [number[other] for other in block.successors] for block in function.blocks}


def can_always_end(seed: int) -> bool:
    edges = numbered(random_shape(seed))
    return all(any(not edges[end] for end in reach(edges, [node])) for node in reach(edges, [0]))


@pytest.mark.parametrize("seed", list(filter(can_always_end, range(80))))
def test_a_block_post_dominates_those_that_cannot_end_without_it(seed: int) -> None:
    function = random_shape(seed)
    edges = numbered(function)
    reached = reach(edges, [0])
    endings = {node for node in reached if not edges[node]}
    tree = PostDominatorTree(function)
    for a in reached:
        avoiding = {b for b in reached if endings & reach(edges, [b], without=[a])}
        found = {b for b in reached if tree.post_dominates(function.blocks[a], function.blocks[b])}
        assert found == reached - avoiding


@pytest.mark.parametrize("seed", range(60))
def test_a_loop_holds_the_blocks_between_its_header_and_its_latches(seed: int) -> None:
    function = random_shape(seed)
    edges = numbered(function)
    reached = reach(edges, [0])
    number = {block: index for index, block in enumerate(function.blocks)}
    expected: dict[int, set[int]] = {}
    for latch in reached:
        for header in edges[latch]:
            if latch == header or latch not in reach(edges, [0], without=[header]):
                between = {n for n in reached if n != header and latch in reach(edges, [n], without=[header])}
                expected.setdefault(header, set()).update({header} | between)
    info = LoopInfo(function)
    assert {number[loop.header]: {number[block] for block in loop.blocks} for loop in info.loops} == expected


def test_the_graph_is_built_anew_only_when_blocks_or_edges_change() -> None:
    function = shape("a: b c; b: d; c: d; d:")
    known = control_flow(function)
    function.block("b").insert(0, Instruction("barrier"))
    assert control_flow(function) is known
    assert DominatorTree(function).idom(function.block("d")) is function.block("a")

    def retarget(block: BasicBlock, old: str, new: str) -> None:
        block.terminator.replace_successor(function.block(old), function.block(new))

    retarget(function.block("c"), "d", "b")
    assert control_flow(function) is not known
    assert DominatorTree(function).idom(function.block("d")) is function.block("b")
    function.blocks[1:3] = function.blocks[2:0:-1]
    assert reachable_blocks(function) == function.blocks


def test_orders_are_the_same_in_every_run() -> None:
    code = (
        "from test_ir_analysis import *\n"
        "for seed in range(8):\n"
        "    function = random_shape(seed)\n"
        "    info, post = LoopInfo(function), PostDominatorTree(function)\n"
        "    print([b.name for b in reverse_postorder(function)], info.loops, info.irreducible)\n"
        "    print([l.blocks for l in info.loops], [post.ipdom(b) for b in reachable_blocks(function)])\n"
    )
    here = os.path.dirname(__file__)
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([here, *sys.path]), "PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout != b""


def test_networkx_is_not_imported_before_the_first_graph() -> None:
    code = "import sys, qgpu.ir, qgpu.ir.passes, qgpu.ir.analysis.loops\nprint('networkx' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert (run.stdout, run.stderr) == ("False\n", "")


LIVE = """
kernel @live(%p: ptr<global>, %n: i32) {
entry:
  %t = sreg tid.x : i32
  %c = icmp slt %t, %n : i1
  br loop
loop:
  %i = phi [i32 0, entry], [%i1, loop] : i32
  %s = phi [%t, entry], [%s1, loop] : i32
  %s1 = add %s, %i : i32
  %i1 = add %i, i32 1 : i32
  %more = icmp slt %i1, %n : i1
  condbr %more, loop, done
done:
  %q = select %c, %s1, %t : i32
  store i32 %p, %q
  ret
}
"""


def names(values: list) -> list[str]:
    return [value.name for value in values]


def test_live_ranges_over_a_loop() -> None:
    function = parse_function(LIVE)
    live = Liveness(function)
    entry, loop, done = function.blocks
    assert names(live.live_in(entry)) == ["p", "n"]
    assert names(live.live_out(entry)) == ["p", "n", "t", "c"]
    assert names(live.live_in(loop)) == ["p", "n", "t", "c"]
    assert names(live.live_out(loop)) == ["p", "n", "t", "c", "s1", "i1"]
    assert names(live.live_in(done)) == ["p", "t", "c", "s1"]
    assert live.live_out(done) == []


def test_a_guarded_set_does_not_end_a_live_range_above_it() -> None:
    function = parse_function("""
    kernel @f(%p: ptr<global>, %c: i1) attributes {linearised: true} {
    entry:
      %s = slot : slot<i32>
      set %s, i32 1
      br then
    then [%c]:
      set %s, i32 2
      br join
    join:
      set %s, i32 3
      br done
    done:
      %g = get %s : i32
      store i32 %p, %g
      ret
    }""")
    live = Liveness(function)
    assert names(live.live_in(function.block("then"))) == ["p", "c"]
    function.block("join").guard = function.block("then").guard
    live = Liveness(function)
    assert names(live.live_in(function.block("then"))) == ["p", "c", "s"]
    assert names(live.live_in(function.entry)) == ["p", "c"]


UNIFORM = """
kernel @uniform(%p: ptr<global>, %n: i32) {
entry:
  %t = sreg tid.x : i32
  %b = sreg ctaid.x : i32
  %all = load i32 %p : i32
  %q = ptradd %p, %t {scale: 4, disp: 0, signed: true} : ptr<global>
  %own = load i32 %q : i32
  %cu = icmp slt %b, %n : i1
  %cd = icmp slt %t, %n : i1
  condbr %cu, u1, join1
u1:
  br join1
join1:
  %same = phi [i32 1, entry], [i32 2, u1] : i32
  condbr %cd, d1, join2
d1:
  %inside = add %same, i32 1 : i32
  condbr %cu, d2, d3
d2:
  br d3
d3:
  %still = phi [i32 5, d1], [%inside, d2] : i32
  br join2
join2:
  %mixed = phi [i32 1, join1], [%still, d3] : i32
  %equal = phi [%n, join1], [%n, d3] : i32
  br loop
loop:
  %i = phi [i32 0, join2], [%i1, loop] : i32
  %i1 = add %i, i32 1 : i32
  %leave = icmp eq %i1, %own : i1
  condbr %leave, done, loop
done:
  %last = add %i1, i32 0 : i32
  %old = atomicrmw add %p, i32 1 : i32
  ret
}
"""


def test_uniform_and_divergent_values() -> None:
    function = parse_function(UNIFORM)
    found = Uniformity(function)
    divergent = {i.name for i in function.instructions if i.name and not found.is_uniform(i)}
    assert divergent == {"t", "q", "own", "cd", "mixed", "leave", "last", "old"}
    assert [block.name for block in found.divergent_branches] == ["join1", "loop"]


def test_a_value_is_uniform_in_a_loop_that_lanes_leave_apart_but_not_after_it() -> None:
    function = parse_function(UNIFORM)
    found = Uniformity(function)
    [loop] = found.loops.loops
    assert found.is_divergent_loop(loop)
    counter = next(i for i in function.instructions if i.name == "i1")
    assert found.is_uniform(counter)
    assert found.is_uniform_at(counter, function.block("loop"))
    assert not found.is_uniform_at(counter, function.block("done"))


def test_a_divergent_branch_that_comes_together_in_a_loop_leaves_the_loop_uniform() -> None:
    function = parse_function("""
    kernel @f(%n: i32) {
    entry:
      %t = sreg tid.x : i32
      %c = icmp slt %t, %n : i1
      br loop
    loop:
      %i = phi [i32 0, entry], [%i1, next] : i32
      condbr %c, then, next
    then:
      br next
    next:
      %i1 = add %i, i32 1 : i32
      %m = icmp slt %i1, %n : i1
      condbr %m, loop, done
    done:
      %after = add %i1, i32 0 : i32
      ret
    }""")
    found = Uniformity(function)
    assert not found.is_divergent_loop(found.loops.loops[0])
    assert all(found.is_uniform(i) for i in function.instructions if i.name in ("i", "i1", "m", "after"))


def test_slots_say_themselves_whether_they_are_uniform() -> None:
    function = parse_function("""
    kernel @f(%p: ptr<global>) attributes {linearised: true} {
      array @x: local, 4 bytes, align 4
    entry:
      %u = slot {uniform: true} : slot<i32>
      %d = slot : slot<i32>
      set %u, i32 1
      set %d, i32 1
      %a = get %u : i32
      %b = get %d : i32
      %l = addrof @x : ptr<local>
      ret
    }""")
    found = Uniformity(function)
    assert [i.name for i in function.instructions if not found.is_uniform(i)] == ["b", "l"]


ONE_WARP = """
kernel @f(%p: ptr<global>, %n: i32) attributes {max_threads: 32} {
entry:
  %t = sreg tid.x : i32
  %b = sreg ntid.x : i32
  %l = sreg laneid : i32
  %inside = icmp ult %t, %b : i1
  %small = icmp slt %t, i32 32 : i1
  %never = icmp ugt %l, i32 40 : i1
  %warp = lshr %t, i32 5 : i32
  %odd = trunc %t : i1
  %votes = ballot %odd, i32 -1 : i32
  %mine = ballot %odd, %t : i32
  %sum = redux add %t, i32 -1 : i32
  %all = barrier_reduce and %odd : i32
  %half = icmp slt %t, i32 16 : i1
  %q = addrof @table : ptr<const>
  %word = load i32 %q : i32
  %old = cmpxchg %p, %n, %n : i32
  ret
}
"""


def test_what_all_threads_of_one_warp_have_in_common() -> None:
    text = ONE_WARP.replace("entry:", '  array @table: const, 4 bytes, align 4, data "07"\nentry:')
    known = {"b", "inside", "small", "never", "warp", "all", "word", "q"}
    for warp_size, more in ((0, set()), (32, {"votes", "sum"}), (16, set())):
        function = parse_function(text)
        uniformity = Uniformity(function, warp_size=warp_size)
        names = {i.name for i in function.instructions if i.name and uniformity.is_uniform(i)}
        assert names == known | more
