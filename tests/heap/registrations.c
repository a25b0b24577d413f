/* Stands in for libraries that register memory with devices: all registrations succeed. */
#include <stddef.h>

int registrations;

int cudaHostRegister(void* at, size_t bytes, unsigned flags) { return (void)at, (void)bytes, (void)flags, ++registrations, 0; }
int cudaHostUnregister(void* at) { return (void)at, --registrations, 0; }
void* ibv_reg_mr(void* domain, void* at, size_t bytes, int access) {
  return (void)domain, (void)at, (void)bytes, (void)access, ++registrations, &registrations;
}
int ibv_dereg_mr(void* region) { return (void)region, --registrations, 0; }
