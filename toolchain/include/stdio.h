// printf, which device code has without a declaration.
#pragma once
#include <cuda_runtime.h>
#include <stddef.h>
