// A part of cuda_runtime.h under a name of its own.
#pragma once
#include <cuda_runtime.h>
