// Tells our sched_yield which threads are in the host, and what such a thread does instead of yielding (yielding.cpp).
#pragma once

namespace nearfield::preload {

// From now on sched_yield of a thread that is in the host calls `yield_in_host` first, and does nothing more if that
// returns true.
void serve_yields(bool (*yield_in_host)());
// Returns the calling thread's flag that it is in the host. The shim sets it.
bool* in_host();

}  // namespace nearfield::preload
