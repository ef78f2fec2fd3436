"""How many blocks a pattern takes: a block over lanes costs a pass a lane, a scalar one two."""

import pytest

from codegen_runs import after, words
from qgpu.backends.machine.block import Block
from qgpu.backends.machine.description import DEFAULT
from qgpu.backends.machine.program import Kernel
from qgpu.ir import verify
from qgpu.ir.parser import parse_function
from qgpu.toolchain.codegen import generate_kernel

PARAMETERS = "%a: ptr<global>, %b: ptr<global>, %c: ptr<global>, %n: i32"


def kernel(body: str, entry: str = "") -> Kernel:
    """A kernel of a linearised function: `%t` is the thread, `%pa`, `%pb`, `%pc` point to its elements."""
    pointers = "\n".join(
        f"  %p{name} = ptradd %{name}, %t {{scale: 4, disp: 0, signed: true}} : ptr<global>" for name in "abc"
    )
    text = (
        f"kernel @test({PARAMETERS}) attributes {{linearised: true}} {{\nentry:\n{entry}\n"
        f"  %t = sreg tid.x : i32\n{pointers}\n{body}\n}}\n"
    )
    function = parse_function(text)
    verify(function)
    return generate_kernel(function, DEFAULT)


def counts(made: Kernel) -> tuple[int, int]:
    """Blocks over lanes and scalar blocks of the kernel's own code, without grid loop and preloads."""
    loop = next(i for i, block in enumerate(made.blocks) if block.next_exit and block.scalar)
    own = made.blocks[:loop]
    return sum(not block.scalar for block in own), sum(block.scalar for block in own)


def only(made: Kernel) -> Block:
    assert counts(made) == (1, 0)
    return made.blocks[0]


def test_an_addition_takes_a_load_in() -> None:
    made = kernel(
        """
  %x = load i32 %pa : i32
  %y = load i32 %pb : i32
  %z = add %x, %y : i32
  store i32 %pc, %z
  ret"""
    )
    assert counts(made) == (2, 0)


def test_a_store_takes_a_load_and_an_operation_at_its_own_address_in() -> None:
    block = only(
        kernel(
            """
  %x = load i32 %pa : i32
  %y = mul %x, %n : i32
  store i32 %pa, %y
  ret"""
        )
    )
    assert block.m_to_x and block.wr_mem and block.b_to_y


def test_a_write_between_keeps_a_load_where_it_is() -> None:
    made = kernel(
        """
  %x = load i32 %pa : i32
  store i32 %a, %t
  store i32 %pc, %x
  ret"""
    )
    assert counts(made) == (3, 0)


def test_a_write_to_another_buffer_keeps_no_load_where_it_is() -> None:
    made = kernel(
        """
  %x = load i32 %pa : i32
  store i32 %pb, i32 7
  store i32 %pc, %x
  ret"""
    )
    assert counts(made) == (2, 0)


def test_a_sum_of_two_loads_is_one_block() -> None:
    made = kernel(
        """
  %x = load i32 %pa : i32
  %y = load i32 %pb : i32
  %z = sub %y, %x : i32
  %i = and %z, i32 3 : i32
  %q = ptradd %c, %i {scale: 4, disp: 0, signed: true} : ptr<global>
  store i32 %q, %z
  ret"""
    )
    assert counts(made) == (3, 0)
    assert made.blocks[0].m_to_x and made.blocks[0].m2_to_z and made.blocks[0].i_to_k


def test_a_store_takes_two_loads_of_which_one_is_its_own() -> None:
    block = only(
        kernel(
            """
  %x = load i32 %pa : i32
  %y = load i32 %pc : i32
  %z = mul %x, %n : i32
  %w = add %z, %y : i32
  store i32 %pc, %w
  ret"""
        )
    )
    assert block.m_to_x and block.m2_to_z and block.wr_mem2 and block.check and block.check2


def test_a_sum_of_all_threads_takes_a_load_in() -> None:
    block = only(
        kernel(
            """
  %x = load i32 %pa : i32
  %y = mul %x, %n : i32
  %old = atomicrmw add %c, %y : i32
  ret"""
        )
    )
    assert block.m_to_x and block.m2_to_z and block.wr_mem2 and not block.i_to_k


def test_a_store_takes_no_load_of_its_own_buffer_at_another_address() -> None:
    """A lane would find what those before it have stored."""
    made = kernel(
        """
  %i = add %t, i32 1 : i32
  %q = ptradd %a, %i {scale: 4, disp: 0, signed: true} : ptr<global>
  %x = load i32 %q : i32
  store i32 %pa, %x
  ret"""
    )
    assert counts(made) == (2, 0)
    data = list(range(10, 16))
    (got, *_) = after(made, [words(*data), bytes(4), bytes(4), 0], (5, 1, 1), machine=DEFAULT)
    assert got == [*data[1:], data[-1]]


def test_a_sum_goes_on_in_its_register() -> None:
    made = kernel(
        """
  set %s, i32 0
  set %v, i32 0
  br loop
loop:
  %k = get %v : i32
  %sum = get %s : i32
  %p = ptradd %pa, %k {scale: 4, disp: 0, signed: true} : ptr<global>
  %q = ptradd %pb, %k {scale: 4, disp: 0, signed: true} : ptr<global>
  %x = load i32 %p : i32
  %y = load i32 %q : i32
  %z = mul %x, %y : i32
  %more = add %z, %sum : i32
  %next = add %k, i32 1 : i32
  set %s, %more
  set %v, %next
  %again = icmp slt %next, %n : i1
  condbr %again, loop, done
done:
  %r = get %s : i32
  store i32 %pc, %r
  ret""",
        entry="  %s = slot : slot<i32>\n  %v = slot : slot<i32>",
    )
    assert [block.dest for block in made.blocks if block.dest_to_z] == [0]
    data = [words(*range(8)), words(*range(10, 18)), bytes(16), 3]
    (_, _, got) = after(made, data, (4, 1, 1), machine=DEFAULT)
    assert got == [sum((t + k) * (10 + t + k) for k in range(3)) for t in range(4)]


def test_a_product_goes_into_a_sum() -> None:
    made = kernel(
        """
  %x = mul %t, %n : i32
  %y = add %x, i32 3 : i32
  store i32 %pc, %y
  ret"""
    )
    assert counts(made) == (1, 0)
    assert made.blocks[0].op == "mad" and made.blocks[0].imm == 3


def test_two_constants_take_a_register_that_the_host_writes() -> None:
    made = kernel(
        """
  %x = mul %t, i32 1664525 : i32
  %y = add %x, i32 1013904223 : i32
  store i32 %pc, %y
  ret"""
    )
    assert counts(made) == (1, 0)
    assert any(preload.name.startswith("const:") for preload in made.preloads)


def test_logic_of_three_is_one_block() -> None:
    made = kernel(
        """
  %x = and %t, %n : i32
  %y = xor %x, i32 5 : i32
  store i32 %pc, %y
  ret"""
    )
    assert counts(made) == (1, 0)
    assert made.blocks[0].op == "lop3"


def test_uniform_values_take_scalar_blocks() -> None:
    made = kernel(
        """
  %x = smax %n, i32 5 : i32
  %y = mul %x, %n : i32
  %z = add %y, %t : i32
  store i32 %pa, %z
  store i32 %pc, %y
  ret"""
    )
    assert counts(made) == (2, 2)


def test_a_uniform_store_is_done_once() -> None:
    assert counts(kernel("  store i32 %a, %n\n  ret")) == (0, 1)


def test_a_constant_index_is_a_displacement() -> None:
    made = kernel(
        """
  %i = add %t, i32 3 : i32
  %p = ptradd %a, %i {scale: 4, disp: 4, signed: true} : ptr<global>
  store i32 %p, %t
  ret"""
    )
    assert only(made).imm == 16


def test_an_index_of_two_parts_is_added_up_by_the_address_unit() -> None:
    made = kernel(
        """
  %m = and %n, i32 255 : i32
  %i = add %t, %m : i32
  %p = ptradd %a, %i {scale: 4, disp: 0, signed: true} : ptr<global>
  %x = load i32 %p : i32
  store i32 %pc, %x
  ret"""
    )
    assert counts(made) == (2, 1)


def test_a_comparison_is_the_guard_and_the_branch() -> None:
    made = kernel(
        """
  %p = icmp slt %t, %n : i1
  brany %p, then, done
then [%p]:
  store i32 %pc, %t
  br done
done:
  ret"""
    )
    assert counts(made) == (2, 0)
    first, second = made.blocks[:2]
    assert first.wr_pred and first.fall and not first.branch_any
    assert second.guard_true == 1 | 1 << first.dest_pred
    assert made.flat == ((0, made.flat[0][1]),) and made.flat[0][1].wr_bound


def test_a_load_is_compared_in_one_block() -> None:
    made = kernel(
        """
  %x = load i8 %pa {ext: sign} : i32
  %p = icmp sgt %x, i32 0 : i1
  brany %p, then, done
then [%p]:
  store i32 %pc, %t
  br done
done:
  ret"""
    )
    assert counts(made) == (2, 0)
    assert made.blocks[0].m_sub_to_x and made.blocks[0].m_signed


def test_both_sides_of_a_condition_guard_for_nothing() -> None:
    made = kernel(
        """
  %p = icmp eq %t, %n : i1
  br then
then [%p]:
  store i32 %pa, %t
  br else
else [!%p]:
  store i32 %pb, %t
  br done
done:
  ret"""
    )
    assert counts(made) == (3, 0)
    assert made.blocks[1].guard_true & ~1 == made.blocks[2].guard_false


def test_and_of_two_comparisons_is_one_under_the_other() -> None:
    made = kernel(
        """
  %p = icmp slt %t, %n : i1
  %q = icmp sgt %t, i32 2 : i1
  %r = and %p, %q : i1
  brany %r, then, done
then [%r]:
  store i32 %pc, %t
  br done
done:
  ret"""
    )
    assert counts(made) == (3, 0)


def test_not_of_or_is_and_of_the_opposites() -> None:
    made = kernel(
        """
  %p = icmp sge %t, %n : i1
  %q = icmp sle %t, i32 2 : i1
  %r = or %p, %q : i1
  %s = not %r : i1
  brany %s, then, done
then [!%r]:
  store i32 %pc, %t
  br done
done:
  ret"""
    )
    assert counts(made) == (3, 0)


def test_a_test_for_zero_is_free() -> None:
    made = kernel(
        """
  %x = and %t, %n : i32
  %p = icmp ne %x, i32 0 : i1
  brany %p, then, done
then [%p]:
  store i32 %pc, %t
  br done
done:
  ret"""
    )
    assert counts(made) == (2, 0)


def test_a_block_tests_or_writes_a_register() -> None:
    made = kernel(
        """
  %x = and %t, %n : i32
  %p = icmp ne %x, i32 0 : i1
  brany %p, then, done
then [%p]:
  store i32 %pc, %x
  br done
done:
  ret"""
    )
    assert counts(made) == (3, 0)
    assert not any(block.wr_pred and (block.wr_reg or block.wr_mem) for block in made.blocks)


def test_a_loop_counts_in_place() -> None:
    made = kernel(
        """
  set %s, i32 0
  set %v, i32 0
  br loop
loop:
  %i = get %v : i32
  %x = get %s : i32
  %y = add %x, %t : i32
  %j = add %i, i32 1 : i32
  %p = icmp slt %j, %n : i1
  set %s, %y
  set %v, %j
  condbr %p, loop, done
done:
  %z = get %s : i32
  store i32 %pc, %z
  ret""",
        "  %s = slot : slot<i32>\n  %v = slot {uniform: true} : slot<i32>",
    )
    assert counts(made) == (3, 3)
    assert made.registers == 2


def test_slots_that_cross_are_exchanged_by_way_of_a_third_register() -> None:
    made = kernel(
        """
  set %s, %t
  set %v, i32 1
  br loop
loop:
  %x = get %s : i32
  %y = get %v : i32
  set %s, %y
  set %v, %x
  %p = icmp slt %x, %n : i1
  brany %p, loop, done
done:
  %z = get %s : i32
  store i32 %pc, %z
  ret""",
        "  %s = slot : slot<i32>\n  %v = slot : slot<i32>",
    )
    assert counts(made) == (7, 0)


def test_a_selection_changes_one_of_its_values_in_place() -> None:
    made = kernel(
        """
  set %s, %t
  br loop
loop:
  %x = get %s : i32
  %p = icmp sgt %x, %n : i1
  %y = sub %x, %n : i32
  %z = select %p, %y, %x : i32
  set %s, %z
  brany %p, loop, done
done:
  %w = get %s : i32
  store i32 %pc, %w
  ret""",
        "  %s = slot : slot<i32>",
    )
    assert counts(made) == (5, 0)
    assert made.registers == 2


def test_slots_of_both_sides_are_one_register_without_copies() -> None:
    made = kernel(
        """
  %p = icmp slt %t, %n : i1
  brany %p, then, else
then [%p]:
  %x = mul %t, i32 3 : i32
  set %s, %x
  br else
else [!%p]:
  %y = add %t, i32 5 : i32
  set %s, %y
  br done
done:
  %z = get %s : i32
  store i32 %pc, %z
  ret""",
        "  %s = slot : slot<i32>",
    )
    assert counts(made) == (4, 0)


def test_an_induction_pointer_moves_once_a_thread_block() -> None:
    made = kernel(
        """
  set %s, %pa
  set %v, i32 0
  br loop
loop:
  %i = get %v : i32
  %p = get %s : ptr<global>
  store i32 %p, %t
  %q = ptradd %p, %n {scale: 4, disp: 0, signed: true} : ptr<global>
  %j = add %i, i32 1 : i32
  %r = icmp slt %j, %n : i1
  set %s, %q
  set %v, %j
  condbr %r, loop, done
done:
  ret""",
        "  %s = slot : slot<ptr<global>>\n  %v = slot {uniform: true} : slot<i32>",
    )
    assert counts(made) == (1, 5)


def test_the_grid_loop_ends_a_launch_of_one_block_in_two_tokens() -> None:
    made = kernel("  store i32 %pc, %t\n  ret")
    last = made.blocks[1]
    assert last.scalar and last.next_exit and last.branch_any and last.taken == 0
    assert {preload.name for preload in made.preloads} == {"tid.x", "nctaid.total"}


def test_every_block_of_the_source_has_its_line() -> None:
    text = (
        "kernel @test(%a: ptr<global>) attributes {linearised: true} {\nentry:\n"
        '  store i32 %a, i32 1  !loc "k.cu":7:3\n  ret\n}\n'
    )
    made = generate_kernel(parse_function(text), DEFAULT)
    assert (made.lines[0].file, made.lines[0].line, made.lines[0].column) == ("k.cu", 7, 3)


def test_a_condition_of_the_guard_lies_in_a_slot_that_the_block_sets() -> None:
    """Two slots are set to one condition: each of them holds a condition of the guard."""
    text = """kernel @test(%a: ptr<global>, %b: ptr<global>) attributes {linearised: true} {
entry:
  %t = sreg tid.x : i32
  %active = slot : slot<i1>
  %s = slot : slot<i1>
  %e = slot : slot<i32>
  %pa = ptradd %a, %t {scale: 4, disp: 0, signed: true} : ptr<global>
  %pb = ptradd %b, %t {scale: 4, disp: 0, signed: true} : ptr<global>
  %x = load i32 %pa : i32
  %y = load i32 %pb : i32
  set %e, %y
  %in = icmp slt %t, i32 6 : i1
  set %active, %in
  br test
test:
  %c = icmp eq %x, i32 3 : i1
  set %s, %c
  br exits
exits [%active, !%c]:
  %g = get %e : i32
  %d = icmp eq %g, i32 0 : i1
  set %s, %d
  set %active, %d
  br first
first [%active]:
  store i32 %pa, i32 100
  br second
second [%s]:
  store i32 %pb, i32 200
  br done
done:
  ret
}
"""
    made = parse_function(text)
    verify(made)
    x, y = [3, 3, 0, 0, 3, 0, 3, 0], [0, 1, 0, 1, 1, 0, 1, 0]
    code = generate_kernel(made, DEFAULT)
    got = after(code, [words(*x), words(*y)], (8, 1, 1), machine=DEFAULT)
    active = [t < 6 if x[t] == 3 else t < 6 and y[t] == 0 for t in range(8)]
    chosen = [x[t] == 3 if t >= 6 or x[t] == 3 else y[t] == 0 for t in range(8)]
    assert got[0] == [100 if on else x[t] for t, on in enumerate(active)]
    assert got[1] == [200 if on else y[t] for t, on in enumerate(chosen)]


@pytest.mark.parametrize("op", ["and", "or"])
def test_a_condition_that_selects_is_not_overwritten_by_what_is_made_of_it(op: str) -> None:
    made = kernel(
        f"""
  %x = load i32 %pa : i32
  %y = load i32 %pb : i32
  %zero = icmp eq %x, i32 0 : i1
  %few = icmp ult %y, i32 5 : i1
  %both = {op} %zero, %few : i1
  %number = zext %both : i32
  %scaled = mul %number, i32 32 : i32
  store i32 %pa, %scaled
  %small = icmp ult %y, i32 9 : i1
  %odd = icmp ugt %x, i32 1 : i1
  %chosen = select %zero, %small, %odd : i1
  store i32 %pc, i32 0
  brany %chosen, then, done
then [%chosen]:
  store i32 %pc, i32 1
  br done
done:
  ret"""
    )
    pairs = [(x, y) for x in (0, 1, 2) for y in (3, 7, 12)]
    a, b = (words(*column) for column in zip(*pairs, strict=True))
    first, _, last = after(made, [a, b, bytes(36), 0], (9, 1, 1), machine=DEFAULT)
    joined = {"and": lambda c, d: c and d, "or": lambda c, d: c or d}[op]
    assert first == [32 * joined(x == 0, y < 5) for x, y in pairs]
    assert last == [int(y < 9 if x == 0 else x > 1) for x, y in pairs]


@pytest.mark.parametrize("op", ["and", "or"])
def test_lanes_stay_in_a_loop_until_its_last_block_whatever_their_condition_is_made_of(op: str) -> None:
    made = kernel(
        f"""
  %x = load i32 %pa : i32
  set %active, true
  set %s, %x
  set %k, i32 0
  br loop
loop [%active]:
  %y = get %s : i32
  %i = get %k : i32
  %large = icmp sgt %y, i32 9 : i1
  %less = sub %y, i32 3 : i32
  %bits = or %less, i32 4 : i32
  %next = add %i, i32 1 : i32
  %few = icmp ult %next, i32 5 : i1
  %near = icmp slt %bits, i32 7 : i1
  %either = {op} %large, %near : i1
  %both = and %few, %either : i1
  set %s, %bits
  set %k, %next
  set %active, %both
  brany %both, loop, done
done:
  %z = get %s : i32
  %rounds = get %k : i32
  store i32 %pb, %z
  store i32 %pc, %rounds
  ret""",
        "  %active = slot : slot<i1>\n  %s = slot : slot<i32>\n  %k = slot : slot<i32>",
    )

    def left(y: int) -> tuple[int, int]:
        rounds, stays = 0, True
        while rounds < 5 and stays:
            rounds, large, y = rounds + 1, y > 9, y - 3 | 4
            stays = large and y < 7 if op == "and" else large or y < 7
        return y, rounds

    start = [-9, 0, 3, 8, 9, 10, 12, 40]
    _, values, rounds = after(made, [words(*start), bytes(32), bytes(32), 0], (8, 1, 1), machine=DEFAULT)
    assert list(zip(values, rounds, strict=True)) == [left(y) for y in start]
