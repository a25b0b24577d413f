// A program under the shared heap whose library allocates in a constructor that runs before the heap's own, if it has
// one: no block may be forgotten. Its argument says how it ends: return, exit, quick (quick_exit), thread.
#include "tests/heap/order.hpp"

#include <dlfcn.h>

#include <new>
#include <string_view>
#include <thread>

namespace {

Block of_program(4);
alignas(Block) unsigned char room[sizeof(Block)];
Block& at_exit = *new (room) Block(5);

struct Aligned {
  Aligned() : at(std::aligned_alloc(1 << 16, 1 << 18)) { std::memset(at, 6, 1 << 18); }
  ~Aligned() { std::free(at); }
  void* at;
} aligned;

}  // namespace

int main(int count, char** arguments) {
  const std::string_view how = count > 1 ? arguments[1] : "return";
  early_block().check();
  grown_block().resize(1 << 20);
  grown_block().resize(40 << 10);
  std::thread([] { block_of_thread().resize(1 << 19); }).join();
  block_of_thread().check();
  of_program.resize(200 << 10);
  // Once more by dlopen: destroyed and constructed while the program runs.
  if (count > 2) {
    for (int i = 0; i < 3; ++i) {
      void* const library = dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL);
      if (!library) return std::puts(dlerror()), 1;
      dlclose(library);
    }
  }
  std::atexit([] { at_exit.~Block(); });
  std::at_quick_exit([] { at_exit.check(); });
  std::puts("good");
  std::fflush(nullptr);
  if (how == "quick") std::quick_exit(0);
  if (how == "exit") std::exit(0);
  return 0;
}
