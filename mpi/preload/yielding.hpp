// How sched_yield is told whom to serve, and by what (yielding.cpp).
#pragma once

namespace nearfield::preload {

// From now on sched_yield asks `yield_in_host` first, by threads that are in the host: whether it has waited, so that
// no more has to be done.
void serve_yields(bool (*yield_in_host)());
// Of the calling thread, for whoever knows: whether it is in the host.
bool* in_host();

}  // namespace nearfield::preload
