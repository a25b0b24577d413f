// Switches a thread from one stack to another.
#pragma once

extern "C" {
// Saves the callee-saved registers on the present stack, stores the stack pointer to *save and continues where `to` was
// saved. pre: `to` was saved here or prepared by nearfield_prepare_stack, and no thread uses its stack. The
// floating-point environment stays the thread's.
[[gnu::visibility("hidden")]] void nearfield_switch_stack(void** save, void* to);
// Returns `to` for a fresh stack: the first switch to it calls body(argument), which must not return.
// pre: `top` is the end of the stack, aligned to 16 bytes.
[[gnu::visibility("hidden")]] void* nearfield_prepare_stack(void* top, void (*body)(void*), void* argument);
}
