// A ticket lock between thread blocks: updates of three words that belong together, in the order of the
// tickets.
struct TicketLock {
    unsigned next, serving;
};

__device__ unsigned acquire(TicketLock *lock)
{
    unsigned ticket = atomicAdd(&lock->next, 1u);
    while (atomicAdd(&lock->serving, 0u) != ticket)
        ;
    __threadfence();
    return ticket;
}

__device__ void release(TicketLock *lock)
{
    __threadfence();
    atomicAdd(&lock->serving, 1u);
}

extern "C" __global__ void ticket_lock(TicketLock *lock, volatile int *account, const int *deposits)
{
    if (threadIdx.x != 0)
        return;
    acquire(lock);
    int amount = deposits[blockIdx.x];
    account[0] = account[0] + amount;
    account[1] = account[1] + 1;
    if (amount > account[2])
        account[2] = amount;
    release(lock);
}
