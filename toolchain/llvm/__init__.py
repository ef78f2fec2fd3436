"""The LLVM IR front end: .ll and .bc for nvptx64, as clang and numba write them, to SIMT IR."""
