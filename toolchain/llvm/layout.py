"""Sizes, alignments and offsets of types in memory (the data layout of nvptx64: natural alignment)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from qgpu.toolchain.llvm import ast

POINTER_BYTES = 8
_FLOAT_BYTES = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "fp128": 16}


class Unsized(Exception):
    """A type that has no size: opaque, or none that memory holds."""


@dataclass(frozen=True)
class Layout:
    """The layout of types, given the module's named ones."""

    named: Mapping[str, ast.Type | None]

    def resolved(self, type_: ast.Type) -> ast.Type:
        """The type that a name stands for, or the type itself."""
        while isinstance(type_, ast.Named):
            found = self.named.get(type_.name)
            if found is None:
                raise Unsized(str(type_))
            type_ = found
        return type_

    def align(self, type_: ast.Type) -> int:
        """The alignment in bytes."""
        type_ = self.resolved(type_)
        if isinstance(type_, ast.Struct):
            return 1 if type_.packed else max(map(self.align, type_.fields), default=1)
        if isinstance(type_, ast.Array) and not type_.vector:
            return self.align(type_.element)
        size = self.store_size(type_)
        return min(1 << max(0, size - 1).bit_length(), 16)

    def store_size(self, type_: ast.Type) -> int:
        """The bytes that a store writes."""
        type_ = self.resolved(type_)
        if isinstance(type_, ast.Integer):
            return -(-type_.width // 8)
        if isinstance(type_, ast.Pointer):
            return POINTER_BYTES
        if isinstance(type_, ast.Float):
            return _FLOAT_BYTES.get(type_.name, 16)
        if isinstance(type_, ast.Array):
            return type_.count * (
                self.store_size(type_.element) if type_.vector else self.size(type_.element)
            )
        if isinstance(type_, ast.Struct):
            return self._struct_size(type_)
        raise Unsized(str(type_))

    def size(self, type_: ast.Type) -> int:
        """The bytes from one element of an array of this type to the next."""
        align = self.align(type_)
        return -(-self.store_size(type_) // align) * align

    def _struct_size(self, type_: ast.Struct) -> int:
        end = 0
        for offset, field in self._fields(type_):
            end = offset + self.size(field)
        align = self.align(type_)
        return -(-end // align) * align

    def _fields(self, type_: ast.Struct) -> Iterator[tuple[int, ast.Type]]:
        offset = 0
        for field in type_.fields:
            align = 1 if type_.packed else self.align(field)
            offset = -(-offset // align) * align
            yield offset, field
            offset += self.size(field)

    def members(self, type_: ast.Type) -> list[tuple[int, ast.Type]]:
        """The members of an aggregate or vector: the byte each begins at, and its type; none of another."""
        type_ = self.resolved(type_)
        if isinstance(type_, ast.Struct):
            return list(self._fields(type_))
        if isinstance(type_, ast.Array):
            step = self.store_size(type_.element) if type_.vector else self.size(type_.element)
            return [(index * step, type_.element) for index in range(type_.count)]
        return []

    def is_aggregate(self, type_: ast.Type) -> bool:
        """Whether a value of the type is a tuple of values: a structure, an array or a vector."""
        return isinstance(self.resolved(type_), ast.Struct | ast.Array)

    def leaves(self, type_: ast.Type, at: int = 0) -> Iterator[tuple[int, ast.Type]]:
        """The numbers and pointers in a type, each with the byte it begins at."""
        if not self.is_aggregate(type_):
            yield at, self.resolved(type_)
            return
        for offset, member in self.members(type_):
            yield from self.leaves(member, at + offset)
