"""Files as texts: bytes in one of the toolchain's languages."""

from qgpu.toolchain.diagnostics import Source, failure


def decoded(name: str, data: bytes, language: str) -> Source:
    """The text of a file; of bitcode it is what LLVM prints for it.

    Raises DiagnosticError where the bytes are neither text nor bitcode.
    """
    if language in ("ll", "bc"):
        from qgpu.toolchain.llvm.reader import BITCODE, disassemble

        if language == "bc" or data.startswith(BITCODE):
            return disassemble(data, name)
    try:
        return Source(name, data.decode())
    except UnicodeDecodeError as error:
        raise failure(f"not a text file: byte {error.start} is not UTF-8", file=name) from None
