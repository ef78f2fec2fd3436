// The seven-point Laplacian of a volume on a three-dimensional grid of blocks.
extern "C" __global__ void laplace_3d(const int *in, int *out, int nx, int ny, int nz)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= nx || y >= ny || z >= nz)
        return;
    int plane = nx * ny;
    int at = z * plane + y * nx + x;
    int sum = -6 * in[at];
    sum += in[x > 0 ? at - 1 : at];
    sum += in[x < nx - 1 ? at + 1 : at];
    sum += in[y > 0 ? at - nx : at];
    sum += in[y < ny - 1 ? at + nx : at];
    sum += in[z > 0 ? at - plane : at];
    sum += in[z < nz - 1 ? at + plane : at];
    out[at] = sum;
}
