// Levenshtein distances of one word to many, a word a thread, with one row of the table in a local array.
#define MAX_LENGTH 15

extern "C" __global__ void edit_distance(const char *words, int stride, const char *query, int length,
                                         int *distances)
{
    const char *word = words + (blockIdx.x * blockDim.x + threadIdx.x) * stride;
    int row[MAX_LENGTH + 1];
    for (int j = 0; j <= length; j++)
        row[j] = j;
    for (int i = 0; i < stride && word[i]; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 1; j <= length; j++) {
            int above = row[j];
            int cost = word[i] == query[j - 1] ? 0 : 1;
            row[j] = min(min(row[j], row[j - 1]) + 1, diagonal + cost);
            diagonal = above;
        }
    }
    distances[blockIdx.x * blockDim.x + threadIdx.x] = row[length];
}
