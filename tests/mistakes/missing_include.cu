__global__ void k(cooperative_groups::thread_block *a) { }
