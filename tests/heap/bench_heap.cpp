// What the shared heap costs or saves a program that does not communicate. Run it plain and with libnearfield-heap.so
// preloaded; prints one line per case, microseconds.
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) * 1e6 + double(t.tv_nsec) * 1e-3;
}

template <class Body>
double median_time(int rounds, Body body) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const double start = now();
    body();
    times.push_back(now() - start);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void touch(char* p, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 4096) static_cast<volatile char*>(p)[i] = 1;
}

double resident_mib() {
  long total = 0, resident = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  if (!file || std::fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
  if (file) std::fclose(file);
  return double(resident) * 4096 / (1 << 20);
}

}  // namespace

int main() {
  for (const std::size_t bytes : {64u << 10, 1u << 20, 4u << 20, 16u << 20, 64u << 20}) {
    const double once = median_time(bytes > (4 << 20) ? 30 : 200, [&] {
      char* const p = static_cast<char*>(std::malloc(bytes));
      touch(p, bytes);
      std::free(p);
    });
    std::printf("allocate, touch, free %6zu KiB  %10.2f\n", bytes >> 10, once);
  }
  const double pair = median_time(1000, [] {
    for (int i = 0; i < 100; ++i) {
      void* volatile p = std::malloc(64 << 10);
      std::free(p);
    }
  });
  std::printf("malloc and free of 64 KiB        %10.3f\n", pair / 100);
  const double grow = median_time(20, [] {
    char* p = nullptr;
    for (std::size_t bytes = 4096; bytes < 16 << 20; bytes = bytes * 9 / 8) {
      p = static_cast<char*>(std::realloc(p, bytes));
      p[bytes - 1] = 1;
    }
    std::free(p);
  });
  std::printf("realloc from 4 KiB to 16 MiB     %10.2f\n", grow);
  constexpr std::size_t n = (256u << 20) / 8 / 3;
  const double before = resident_mib();
  auto* const a = static_cast<double*>(std::malloc(n * 8));
  auto* const b = static_cast<double*>(std::malloc(n * 8));
  auto* const c = static_cast<double*>(std::malloc(n * 8));
  const double first = median_time(1, [&] {
    for (std::size_t i = 0; i < n; ++i) a[i] = 1, b[i] = 2, c[i] = 3;
  });
  const double triad = median_time(9, [&] {
    for (std::size_t i = 0; i < n; ++i) a[i] = b[i] + 3 * c[i];
  });
  std::printf("first touch of 256 MiB           %10.0f\ntriad on 256 MiB                 %10.0f\n", first, triad);
  std::printf("resident for 256 MiB             %10.1f MiB\n", resident_mib() - before);
  std::size_t gib = std::size_t{1} << 30;
  char* const big = static_cast<char*>(std::malloc(gib));
  std::memset(big, 1, gib);
  const double forking = median_time(5, [&] {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
  });
  std::printf("fork with 1 GiB, wait            %10.0f\n", forking);
  const double again = median_time(1, [&] { touch(big, gib); });
  std::printf("touching the 1 GiB afterwards    %10.0f\n", again);
}
