// What every function of the allocator gives for edge values: with the heap's library as its argument this program runs
// itself without and with it and compares what they say, without an argument it says it.
#include <malloc.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr std::size_t page = 4096, threshold = 32 << 10, huge = std::size_t{PTRDIFF_MAX};

// Around lengths that the heap begins with, and around the longest that there are.
constexpr std::size_t offsets[] = {0, 1, 2, 3, 16, 31, 32, 64, 79, 80, 4094, 4095, page, page + 1, 2 * page};
constexpr auto lengths = [] {
  std::array<std::size_t, 8 + 3 * std::size(offsets)> all = {1,        24,      page - 1,      page,
                                                             page + 1, 1 << 17, (1 << 20) + 1, SIZE_MAX / 4 * 3};
  std::size_t at = 8;
  for (const std::size_t offset : offsets)
    for (const std::size_t base : {std::size_t{0}, huge + 2, threshold + 1}) all[at++] = base - offset;
  return all;
}();

std::array<std::size_t, 19 + 63 + 8> alignments() {
  std::array<std::size_t, 19 + 63 + 8> all = {0,  1,   3,    5,    7,        8,    9,        12,           24,      33,
                                              48, 100, 4095, 4097, 3 * page, huge, huge + 2, SIZE_MAX - 1, SIZE_MAX};
  std::size_t at = 19;
  for (int power = 1; power < 64; ++power) all[at++] = std::size_t{1} << power;
  for (const int power : {15, 20, 21, 22, 48, 61, 62, 63}) all[at++] = (std::size_t{1} << power) + 1;
  return all;
}

// What cannot be told apart by the compiler, which knows these functions.
template <class T>
T opaque(T value) {
  asm volatile("" : "+r"(value));
  return value;
}

bool aligned_to(const void* p, std::size_t alignment) {
  return alignment == 0 || (alignment & (alignment - 1)) || reinterpret_cast<std::uintptr_t>(p) % alignment == 0;
}

// Says whether there is a block, whether all of it can be written, and how it is aligned.
void say(const char* function, std::size_t a, std::size_t b, void* p, std::size_t bytes, std::size_t alignment) {
  const int error = errno;
  p = opaque(p);
  std::printf("%s %#zx %#zx: ", function, a, b);
  if (!p) {
    std::printf("nothing, errno %d\n", error);
    return;
  }
  const std::size_t usable = malloc_usable_size(p);
  std::printf("a block, errno %d, %s, %s\n", error, usable >= bytes ? "long enough" : "too short",
              aligned_to(p, alignment) ? "aligned" : "not aligned");
  if (usable >= bytes && bytes < huge) std::memset(p, 1, bytes);
  errno = 77;
  std::free(p);
  if (errno != 77) std::printf("  free sets errno to %d\n", errno);
}

template <class Call>
void every_length(const char* function, std::size_t alignment, Call call) {
  for (const std::size_t bytes : lengths) {
    errno = 77;
    say(function, bytes, 0, call(bytes), bytes, alignment);
  }
}

template <class Call>
void every_alignment(const char* function, Call call) {
  for (const std::size_t alignment : alignments())
    for (const std::size_t bytes : lengths) {
      // Room for what is around it is a matter of how much address space there is.
      if (alignment > (1 << 24) && alignment < (std::size_t{1} << 48)) continue;
      errno = 77;
      say(function, alignment, bytes, call(alignment, bytes), bytes, alignment);
    }
}

void resized(const char* function, void* (*call)(void*, std::size_t)) {
  for (const std::size_t before : {std::size_t{0}, std::size_t{100}, std::size_t{50'000}, std::size_t{3 << 20}})
    for (const std::size_t bytes : lengths) {
      auto* p = before ? static_cast<char*>(std::malloc(before)) : nullptr;
      if (p) std::memset(p, 'x', before);
      errno = 77;
      auto* const moved = static_cast<char*>(opaque(call(opaque(p), bytes)));
      const int error = errno;
      char* const whole = moved ? moved : bytes ? p : nullptr;  // of no bytes it is freed
      const std::size_t kept = moved && bytes < before ? bytes : before;
      bool good = true;
      for (std::size_t i = 0; whole && i < kept; ++i) good &= whole[i] == 'x';
      std::printf("%s %zu %#zx: %s, errno %d, %s\n", function, before, bytes, moved ? "a block" : "nothing", error,
                  good ? "kept" : "lost");
      std::free(whole);
    }
}

void say_all() {
  every_length("malloc", 16, [](std::size_t bytes) { return std::malloc(opaque(bytes)); });
  every_length("valloc", page, [](std::size_t bytes) { return valloc(opaque(bytes)); });
  every_length("pvalloc", page, [](std::size_t bytes) { return pvalloc(opaque(bytes)); });
  for (const std::size_t each : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{16}, huge, SIZE_MAX})
    for (const std::size_t count : lengths) {
      errno = 77;
      std::size_t bytes = 0;
      if (__builtin_mul_overflow(each, count, &bytes)) bytes = SIZE_MAX;
      auto* const p = static_cast<char*>(opaque(std::calloc(opaque(count), opaque(each))));
      for (std::size_t i = 0; p && i < bytes; ++i)
        if (p[i]) std::printf("  not zero\n"), i = bytes;
      say("calloc", count, each, p, bytes, 16);
      errno = 77;
      say("reallocarray", count, each, reallocarray(nullptr, opaque(count), opaque(each)), bytes, 16);
    }
  every_alignment("memalign",
                  [](std::size_t alignment, std::size_t bytes) { return memalign(opaque(alignment), opaque(bytes)); });
  every_alignment("aligned_alloc", [](std::size_t alignment, std::size_t bytes) {
    return std::aligned_alloc(opaque(alignment), opaque(bytes));
  });
  every_alignment("posix_memalign", [](std::size_t alignment, std::size_t bytes) {
    void* p = nullptr;
    const int error = posix_memalign(&p, opaque(alignment), opaque(bytes));
    if (error) std::printf("  returns %d\n", error);
    return p;
  });
  resized("realloc", [](void* p, std::size_t bytes) { return std::realloc(p, opaque(bytes)); });
  resized("reallocarray", [](void* p, std::size_t bytes) { return reallocarray(p, opaque(bytes), 1); });
  std::printf("usable of nothing: %zu\n", malloc_usable_size(nullptr));
  std::free(nullptr);
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* const pipe = popen(command.c_str(), "r");
  char line[4096];
  while (pipe && std::fgets(line, sizeof line, pipe)) text += line;
  if (pipe) text += "it ends with " + std::to_string(pclose(pipe)) + "\n";
  return text;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return say_all(), 0;
  const std::string self = arguments[0];
  const std::string plain = output_of("LD_PRELOAD= " + self),
                    ours = output_of(std::string("LD_PRELOAD=") + arguments[1] + " timeout 60 " + self);
  if (plain == ours && plain.find("pvalloc") != plain.npos) return std::puts("the same"), 0;
  std::size_t said = 0;
  for (std::size_t a = 0, b = 0; said < 40 && (a < plain.size() || b < ours.size());) {
    const std::string one = plain.substr(a, plain.find('\n', a) - a), other = ours.substr(b, ours.find('\n', b) - b);
    if (one != other) std::printf("plain: %s\nours:  %s\n", one.c_str(), other.c_str()), ++said;
    a = std::min(plain.size(), a + one.size() + 1);
    b = std::min(ours.size(), b + other.size() + 1);
  }
  return 1;
}
