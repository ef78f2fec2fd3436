"""Standard headers that NVRTC does not bring: the few that integer kernels include.

Texts by the name they are included under. Sizes are those of CUDA's 64-bit data model (LP64).
"""

_STDINT = """\
#pragma once
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807l - 1)
#define INT64_MAX 9223372036854775807l
#define UINT64_MAX 18446744073709551615ul
"""

_LIMITS = """\
#pragma once
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295u
#define LONG_MIN (-9223372036854775807l - 1)
#define LONG_MAX 9223372036854775807l
#define ULONG_MAX 18446744073709551615ul
#define LLONG_MIN (-9223372036854775807ll - 1)
#define LLONG_MAX 9223372036854775807ll
#define ULLONG_MAX 18446744073709551615ull
"""

_IN_STD = "#pragma once\n#include <stdint.h>\nnamespace std {{\n{}}}\n".format(
    "".join(
        f"using ::{prefix}int{width}_t;\n" for prefix in ("", "u") for width in ("8", "16", "32", "64", "ptr")
    )
)

_BUILT_IN = "#pragma once\n"

HEADERS: dict[str, str] = {
    "stdint.h": _STDINT,
    "cstdint": _IN_STD,
    "limits.h": _LIMITS,
    "climits": "#pragma once\n#include <limits.h>\n",
    "stddef.h": _BUILT_IN,
    "assert.h": _BUILT_IN,
    "cassert": _BUILT_IN,
    "stdio.h": _BUILT_IN,
    "cstdio": _BUILT_IN,
    "cuda_runtime.h": _BUILT_IN,
    "device_launch_parameters.h": _BUILT_IN,
}
