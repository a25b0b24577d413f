// A library whose objects are made before any other library's: blocks of the heap come and go in every order of
// construction and destruction (order.cpp).
#include "tests/heap/order.hpp"

namespace {

struct Made {
  Block early = Block(1);
  Block grown = Block(2);
  ~Made() { grown.check(); }
};
Made made;
thread_local Block of_thread(3);

}  // namespace

[[gnu::visibility("default")]] Block& early_block() { return made.early; }
[[gnu::visibility("default")]] Block& grown_block() { return made.grown; }
[[gnu::visibility("default")]] Block& block_of_thread() { return of_thread; }
