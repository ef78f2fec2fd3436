// assert, unless NDEBUG is defined; it may be included several times.
#include <cuda_runtime.h>
#ifdef NDEBUG
#undef assert
#define assert(condition) ((void)0)
#endif
