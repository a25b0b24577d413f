// The globals of programs that have no such object of their own: the linker takes this file of the library if they do
// not define globals().
#include "engine/base/globals.hpp"

namespace nearfield {

Globals& globals() noexcept {
  static constinit Globals all;
  return all;
}

}  // namespace nearfield
