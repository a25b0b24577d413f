#pragma once

namespace nearfield::preload {

// From now on sched_yield asks `give_way` first: whether it has waited, so that no more has to be done.
void serve_yields(bool (*give_way)());

}  // namespace nearfield::preload
