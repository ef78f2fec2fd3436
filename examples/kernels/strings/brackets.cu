// Whether brackets of three kinds match, with a stack of two bits a bracket in one register.
extern "C" __global__ void brackets(const char *rows, int width, int *depth)
{
    const char *s = rows + threadIdx.x * width;
    unsigned long long stack = 0;
    int size = 0, deepest = 0;
    for (int i = 0; i < width && s[i]; i++) {
        int kind = 0;
        bool close = false;
        switch (s[i]) {
        case ')':
            close = true;
        case '(':
            kind = 1;
            break;
        case ']':
            close = true;
        case '[':
            kind = 2;
            break;
        case '}':
            close = true;
        case '{':
            kind = 3;
            break;
        default:
            continue;
        }
        if (!close) {
            stack = stack << 2 | kind;
            deepest = max(deepest, ++size);
        } else if (size == 0 || (stack & 3) != kind) {
            size = -1;
            break;
        } else {
            stack >>= 2;
            size--;
        }
    }
    depth[threadIdx.x] = size == 0 ? deepest : -1;
}
