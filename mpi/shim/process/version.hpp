// The version of this build. A file of its own, so that little is compiled again when it changes.
#pragma once

namespace nearfield::mpi {

const char* version();  // "0.2.0"

}  // namespace nearfield::mpi
