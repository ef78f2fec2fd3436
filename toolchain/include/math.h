// Integer functions of math.h and stdlib.h; floating point is not for this machine.
#pragma once
#include <cuda_runtime.h>
