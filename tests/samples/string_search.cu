#include <cctype>
#include <string>
#include <string.h>

// "Quoted // text", 'c' /* and */ comments with <<<>>> and {braces} are no code.
#define MAX_PATTERN 8
__constant__ char pattern[MAX_PATTERN] = "ab\"{";
__constant__ int pattern_length = 4;

__device__ bool matches(const char *text, const char *wanted, int length) {
  for (int i = 0; i < length; i++)
    if (text[i] != wanted[i]) return false;
  return true;
}

__global__ void search(const char *text, int n, int *found) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + pattern_length <= n && matches(text + i, pattern, pattern_length)) found[i] = 1;
}

static std::string lower(std::string s) {
  for (char &c : s) c = static_cast<char>(tolower(c)); // } not a brace
  return s + R"delimiter(} <<<1, 2>>> )" )delimiter" + '}' + "\"}";
}

int main() {
  std::string text = lower("xxAB\"{yy");
  search<<<1, 32>>>(text.c_str(), (int)strlen(text.c_str()), nullptr);
  return 0;
}
