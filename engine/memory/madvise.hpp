// Advice of newer kernels (Linux 5.14 and 6.1) that older headers do not name.
#pragma once
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
