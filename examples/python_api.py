"""qgpu from Python, cell by cell, as in a notebook: `python examples/python_api.py [BACKEND]`.

The back end is `engine` unless another is named; `vector` needs no checkpoint.
"""

import sys

import numpy as np

import qgpu.runtime

BACKEND = sys.argv[1] if len(sys.argv) > 1 else "engine"

# %% A kernel is a file or a text; what it is compiled for is a machine, here the one that is built in.
SOURCE = """
extern "C" __global__ void saxpy(int a, const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

extern "C" __global__ void row_sums(const int *matrix, int *sums, int width) {
    extern __shared__ int parts[];
    int mine = 0;
    for (int i = threadIdx.x; i < width; i += blockDim.x) mine += matrix[blockIdx.x * width + i];
    parts[threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
        int sum = 0;
        for (int t = 0; t < blockDim.x; t++) sum += parts[t];
        sums[blockIdx.x] = sum;
    }
}
"""
saxpy = qgpu.runtime.compile(SOURCE, kernel="saxpy", backend=BACKEND)

# %% A launch is kernel[grid, block](arguments): results are in the arrays that were given.
x, y = np.arange(6, dtype=np.int32), np.full(6, 100, np.int32)
outcome = saxpy[2, 4](3, x, y, len(x))
print(y)
print(f"{outcome.tokens} tokens")

# %% Dynamic shared memory is the third size, in bytes; an array may have any shape.
row_sums = qgpu.runtime.compile(SOURCE, kernel="row_sums", backend=BACKEND)
matrix, sums = np.arange(12, dtype=np.int32).reshape(3, 4), np.zeros(3, np.int32)
row_sums[3, 2, 2 * 4](matrix, sums, matrix.shape[1])
print(sums, "numpy:", matrix.sum(axis=1))

# %% What the kernel is, and what it takes of the machine.
print(saxpy.report)
print(str(saxpy.ir).splitlines()[0])

# %% A wrong argument says what to give instead.
try:
    saxpy[1, 6](3, x.astype(np.float64), y, 6)
except qgpu.runtime.ArgumentError as error:
    print(error)

# %% A fault has the place in the source; the arrays are as they were.
try:
    saxpy[1, 8](3, x, y, 8)
except qgpu.runtime.FaultError as error:
    print(error.diagnostic.line, error.diagnostic.message)

# %% So has an error of the source.
try:
    qgpu.runtime.compile(SOURCE.replace("mine = 0;", "mine = 0"))
except qgpu.runtime.DiagnosticError as error:
    print(error)
