// Returns whether Valgrind runs this process; its bookkeeping of large mappings takes minutes. Uses Valgrind's client
// requests: instructions that do nothing unless it translates them.
#pragma once
#include <cstdint>

namespace nearfield::processor {

inline bool is_instrumented() {
  const std::uint64_t request[6] = {0x1001};  // does it run on Valgrind?
#if defined(__x86_64__)
  std::uint64_t answer = 0;
  asm volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
               : "+d"(answer)
               : "a"(request)
               : "cc", "memory");
#elif defined(__aarch64__)
  register std::uint64_t answer asm("x3") = 0;
  register const std::uint64_t* asked asm("x4") = request;
  asm volatile("ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; ror x12, x12, #61; orr x10, x10, x10"
               : "+r"(answer)
               : "r"(asked)
               : "cc", "memory");
#endif
  return answer != 0;
}

}  // namespace nearfield::processor
