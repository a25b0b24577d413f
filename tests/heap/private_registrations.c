/* Stands in for a plugin for InfiniBand: a library that is loaded privately, with a function for registrations in its own scope. */
#include <stddef.h>
#include <stdint.h>

int privately_registered;

void* ibv_reg_mr_iova(void* domain, void* at, size_t bytes, uint64_t iova, int access) {
  return (void)domain, (void)at, (void)bytes, (void)iova, (void)access, ++privately_registered, &privately_registered;
}
void* register_privately(void* at, size_t bytes) { return ibv_reg_mr_iova(NULL, at, bytes, 0, 0); }
