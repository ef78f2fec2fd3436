// Threads that fetch their work from a counter until it is used up; jobs differ in size.
extern "C" __global__ void work_queue(const unsigned *jobs, int n, unsigned *results, int *next)
{
    while (true) {
        int job = atomicAdd(next, 1);
        if (job >= n) {
            atomicSub(next, 1);
            break;
        }
        unsigned x = jobs[job], steps = 0;
        while (x > 1) {
            x = x % 3 == 0 ? x / 3 : x - 1;
            steps++;
        }
        results[job] = steps;
    }
}
