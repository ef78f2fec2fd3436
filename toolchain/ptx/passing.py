"""Parameter memory to registers: what kernels and calls pass, taken apart into the pieces that are accessed.

Memory that a call passes is cut into its smallest pieces, a register each: a store writes the pieces it
covers, a load puts its value together from them. A kernel's parameter is one register where it is a number
or a pointer; of a structure or array each part that is loaded is one. Memory whose address is used as a
number becomes an array of the thread's own.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from qgpu.ir import Location
from qgpu.toolchain.diagnostics import DiagnosticError
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.cfg import Block, Site
from qgpu.toolchain.ptx.names import Passed, Register, Scope, is_structure, type_width
from qgpu.toolchain.ptx.places import Places
from qgpu.toolchain.ptx.rule import names_of

ARGUMENT, PARTS = "argument", "parts"

_WRITES_NOTHING = ("st", "red", "bar", "barrier", "membar", "fence", "prefetch")
_WIDEST = 8


@dataclass(frozen=True, eq=False)
class Component:
    """A part of a kernel's parameter that is an argument of the function: bytes from `offset` on."""

    parameter: ast.Parameter
    offset: int
    register: Register

    @property
    def name(self) -> str:
        """The parameter's name; of a structure also the part's offset."""
        return f"{self.parameter.name}.{self.offset}" if is_structure(self.parameter) else self.parameter.name


@dataclass(frozen=True)
class _Place:
    """An address in parameter memory."""

    memory: Passed
    offset: int


@dataclass
class _Cut:
    """Memory in registers: its pieces by offset, each with its size in bytes."""

    scope: Scope
    pieces: dict[int, tuple[int, ast.Name]] = field(default_factory=dict)


def pass_in_registers(blocks: list[Block], parameters: list[Passed], places: Places) -> tuple[Component, ...]:
    """Replace accesses to parameter memory, in place; the arguments that the function has, in order.

    Raises DiagnosticError where an access lies outside of its parameter or across others.
    """
    return _Passing(blocks, parameters, places).run()


class _Passing:
    def __init__(self, blocks: list[Block], parameters: list[Passed], places: Places) -> None:
        self._blocks = blocks
        self._parameters = parameters
        self._places = places
        self._sites = [site for block in blocks for site in block.sites]
        self._aliases: dict[Register, _Place] = {}
        self._accesses: dict[Passed, dict[tuple[int, int], Site]] = {}
        self._cuts: dict[Passed, _Cut] = {}

    def run(self) -> tuple[Component, ...]:
        self._find_aliases()
        self._find_arrays()
        for site in self._sites:
            place = self._accessed(site)
            if place is not None:
                self._note(site, place)
        components = [part for passed in self._parameters for part in self._components(passed)]
        for memory, accesses in self._accesses.items():
            if memory not in self._cuts:
                self._cuts[memory] = _smallest(memory, accesses)
        for block in self._blocks:
            block.sites = [new for site in block.sites for new in self._rewritten(site)]
        self._blocks[0].sites[:0] = self._prologue(components)
        return tuple(components)

    # ------------------------------------------------------------- addresses

    def _find_aliases(self) -> None:
        """Registers that hold an address in parameter memory and nothing else."""
        counts: dict[Register, int] = {}
        for site in self._sites:
            for register in _written(site):
                counts[register] = counts.get(register, 0) + 1
        for site in self._sites:
            place = self._address(site)
            written = list(_written(site)) if place is not None else []
            if place is not None and len(written) == 1 and counts[written[0]] == 1:
                self._aliases[written[0]] = place

    def _address(self, site: Site) -> _Place | None:
        """The parameter memory whose address an instruction computes."""
        instruction = site.instruction
        if instruction.opcode == "mov" and len(instruction.operands) == 2:
            return self._place(instruction.operands[1], site)
        if instruction.opcode == "cvta" and "param" in instruction.modifiers:
            return self._place(instruction.operands[1], site)
        if instruction.opcode == "add" and len(instruction.operands) == 3:
            place, offset = self._place(instruction.operands[1], site), instruction.operands[2]
            if place is not None and isinstance(offset, ast.Integer):
                return _Place(place.memory, place.offset + offset.value)
        return None

    def _place(self, operand: ast.Operand, site: Site) -> _Place | None:
        """Where an operand points into parameter memory."""
        base = operand.base if isinstance(operand, ast.Offset | ast.Memory) else operand
        offset = operand.offset if isinstance(operand, ast.Offset | ast.Memory) else 0
        if not isinstance(base, ast.Name):
            return None
        passed = site.scope.passed(base.text)
        if passed is not None:
            return _Place(passed, offset)
        register = site.scope.register(base.text)
        known = self._aliases.get(register) if register is not None else None
        return _Place(known.memory, known.offset + offset) if known is not None else None

    def _find_arrays(self) -> None:
        """Memory whose address does anything else than to be accessed at a constant offset."""
        for site in self._sites:
            if self._accessed(site) is not None or self._defines_alias(site):
                continue
            for operand in site.instruction.operands:
                for name in names_of(operand):
                    place = self._place(name, site)
                    if place is not None and place.memory.array is None:
                        place.memory.array = _array(place.memory, site.instruction.position)

    def _defines_alias(self, site: Site) -> bool:
        return any(register in self._aliases for register in _written(site))

    def _accessed(self, site: Site) -> _Place | None:
        """Where an instruction loads from or stores to parameter memory in registers."""
        memory, _ = _access(site.instruction)
        place = self._place(memory, site) if memory is not None else None
        return place if place is not None and place.memory.array is None else None

    # ---------------------------------------------------------------- pieces

    def _note(self, site: Site, place: _Place) -> None:
        """Remember what an access touches."""
        instruction = site.instruction
        _, value = _access(instruction)
        size = max(1, type_width(instruction.modifiers[-1]) // 8)
        for index in range(len(_elements(value))):
            offset = place.offset + index * size
            if offset < 0 or offset + size > place.memory.size:
                message = (
                    f"the access lies outside of '{place.memory.name}', which has {place.memory.size} bytes"
                )
                raise self._error(message, site)
            if offset % size or size > _WIDEST:
                raise self._error(
                    f"an access of {size} bytes at byte {offset} of '{place.memory.name}'", site
                )
            self._accesses.setdefault(place.memory, {}).setdefault((offset, size), site)

    def _error(self, message: str, site: Site) -> DiagnosticError:
        return self._places.error(message, site.instruction.position, site.location)

    def _components(self, passed: Passed) -> Iterator[Component]:
        """The arguments for a kernel's parameter, which are its pieces."""
        parameter = passed.kernel
        assert parameter is not None
        if not is_structure(parameter):
            ranges = [(0, passed.size)]
        elif passed.array is not None:
            ranges = list(_tiles(passed.size, passed.align))
        else:
            ranges = _largest(self._accesses.get(passed, {}))
        cut = self._cuts[passed] = _Cut(Scope())
        for offset, size in ranges:
            name = f"({passed.name}+{offset})"
            type_ = f"b{8 * size}" if is_structure(parameter) else parameter.type
            register = Register(name, type_)
            cut.scope.meanings[name] = register
            cut.pieces[offset] = size, ast.Name(name, position=parameter.position)
            yield Component(parameter, offset, register)

    def _prologue(self, components: list[Component]) -> Iterator[Site]:
        """Set the registers of arguments that are read, and fill the arrays that parameters lie in."""
        for component in components:
            passed = next(p for p in self._parameters if p.kernel is component.parameter)
            if passed not in self._accesses and passed.array is None:
                continue
            cut = self._cuts[passed]
            size, name = cut.pieces[component.offset]
            place, location = (
                component.parameter.position,
                self._places.location(None, component.parameter.position),
            )
            yield _site(ARGUMENT, (), (name,), place, cut.scope, location)
            if passed.array is not None:
                scope = Scope(cut.scope, {passed.name: passed.array})
                memory = ast.Memory(ast.Name(passed.name, position=place), component.offset, position=place)
                yield _site("st", ("local", f"b{8 * size}"), (memory, name), place, scope, location)

    # ------------------------------------------------------------- rewriting

    def _rewritten(self, site: Site) -> Iterator[Site]:
        place = self._accessed(site)
        if place is not None:
            yield from self._in_registers(site, place)
        elif not self._dropped(site):
            self._check_known(site)
            yield _in_array(site)

    def _check_known(self, site: Site) -> None:
        """Refuse an access to parameter memory whose name stands for nothing."""
        memory, _ = _access(site.instruction)
        spaces = {part.partition("::")[0] for part in site.instruction.modifiers}
        if memory is None or "param" not in spaces or not isinstance(memory.base, ast.Name):
            return
        if site.scope.lookup(memory.base.text) is None:
            message = f"'{memory.base}' is not a parameter of this kernel"
            raise self._places.error(message, memory.position, site.location)

    def _dropped(self, site: Site) -> bool:
        """Whether an instruction computes an address that has no use left."""
        place = self._address(site)
        return place is not None and place.memory.array is None

    def _in_registers(self, site: Site, place: _Place) -> Iterator[Site]:
        instruction = site.instruction
        _, value = _access(instruction)
        size = max(1, type_width(instruction.modifiers[-1]) // 8)
        for index, element in enumerate(_elements(value)):
            yield self._part(site, _Place(place.memory, place.offset + index * size), size, element)

    def _part(self, site: Site, place: _Place, size: int, value: ast.Operand) -> Site:
        """The access to one value: of the pieces under it, or of a part of the piece over it."""
        instruction, cut = site.instruction, self._cuts[place.memory]
        start = max(offset for offset in cut.pieces if offset <= place.offset)
        names = tuple(
            name for offset, (_, name) in cut.pieces.items() if start <= offset < place.offset + size
        )
        pieces = ast.Vector(names, position=instruction.position)
        inside = ast.Integer(place.offset - start, position=instruction.position)
        scope = Scope(site.scope, dict(cut.scope.meanings))
        modifiers = (PARTS, instruction.modifiers[-1])
        operands = (value, pieces, inside) if instruction.opcode == "ld" else (pieces, value)
        return _site(instruction.opcode, modifiers, operands, instruction.position, scope, site.location)


def _site(
    opcode: str,
    modifiers: tuple[str, ...],
    operands: tuple[ast.Operand, ...],
    position: ast.Position,
    scope: Scope,
    location: Location,
) -> Site:
    return Site(ast.Instruction(opcode, modifiers, operands, None, position=position), scope, location)


def _access(instruction: ast.Instruction) -> tuple[ast.Memory | None, ast.Operand]:
    """The address and the value of a load or store of parameter or generic memory."""
    operands = instruction.operands
    if instruction.opcode not in ("ld", "st") or len(operands) != 2 or PARTS in instruction.modifiers:
        return None, ast.Group(())
    memory, value = operands if instruction.opcode == "st" else operands[::-1]
    spaces = {"global", "shared", "local", "const"} & {
        part.partition("::")[0] for part in instruction.modifiers
    }
    return (memory, value) if isinstance(memory, ast.Memory) and not spaces else (None, value)


def _written(site: Site) -> Iterator[Register]:
    """The registers that an instruction may write."""
    instruction = site.instruction
    if instruction.opcode in _WRITES_NOTHING or not instruction.operands:
        return
    for name in names_of(instruction.operands[0]):
        register = site.scope.register(name.text)
        if register is not None:
            yield register


def _elements(value: ast.Operand) -> tuple[ast.Operand, ...]:
    return value.elements if isinstance(value, ast.Vector) else (value,)


def _in_array(site: Site) -> Site:
    """An instruction on parameter memory that lies in an array, which is local memory."""
    instruction = site.instruction
    if instruction.opcode not in ("ld", "st", "cvta"):
        return site
    modifiers = tuple(
        "local" if part.partition("::")[0] == "param" else part for part in instruction.modifiers
    )
    if modifiers == instruction.modifiers:
        return site
    return Site(replace(instruction, modifiers=modifiers), site.scope, site.location)


def _array(memory: Passed, position: ast.Position) -> ast.Variable:
    return ast.Variable("local", "b8", memory.name, (memory.size,), memory.align, position=position)


def _tiles(size: int, align: int) -> Iterator[tuple[int, int]]:
    """Pieces that cover some bytes: as wide as their alignment, and smaller ones at the end."""
    offset, width = 0, min(align, _WIDEST)
    while offset < size:
        while offset + width > size:
            width //= 2
        yield offset, width
        offset += width


def _largest(accesses: dict[tuple[int, int], Site]) -> list[tuple[int, int]]:
    """The accesses that lie in no other, in order."""
    result: list[tuple[int, int]] = []
    for offset, size in sorted(accesses, key=lambda access: (access[0], -access[1])):
        if not result or offset >= sum(result[-1]):
            result.append((offset, size))
    return result


def _smallest(memory: Passed, accesses: dict[tuple[int, int], Site]) -> _Cut:
    """The pieces between all places where an access begins or ends.

    Accesses are aligned and their sizes powers of two, so one lies in another or apart from it.
    """
    ranges = set(accesses)
    pieces: list[tuple[int, int]] = []
    waiting = _largest(accesses)[::-1]
    while waiting:
        offset, size = waiting.pop()
        inner = any(offset <= other and other + n <= offset + size and n < size for other, n in ranges)
        if inner:
            half = size // 2
            waiting += [(offset + half, half), (offset, half)]
        else:
            pieces.append((offset, size))
    cut = _Cut(Scope())
    for offset, size in pieces:
        name = f"({memory.name}+{offset})"
        cut.scope.meanings[name] = Register(name, f"b{8 * size}")
        cut.pieces[offset] = size, ast.Name(name, position=next(iter(accesses.values())).instruction.position)
    return cut
