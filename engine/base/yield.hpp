// Yields by the system call, since libnearfield.so replaces the function sched_yield for hosts
// (mpi/preload/yielding.cpp).
#pragma once
#include <sys/syscall.h>
#include <unistd.h>

namespace nearfield {

inline void yield() { syscall(SYS_sched_yield); }

}  // namespace nearfield
