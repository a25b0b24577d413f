// Going from one stack to another within a thread.
#pragma once

extern "C" {
// Saves what a call keeps on the present stack, stores the stack pointer to *save and goes on where `to` was saved.
// pre: `to` was saved here, and its stack is in use by nobody; or was prepared by nearfield_prepare_stack.
// The floating-point environment stays the thread's.
[[gnu::visibility("hidden")]] void nearfield_switch_stack(void** save, void* to);
// What `to` is for a stack that nothing has run on: the first switch to it calls body(argument), which must not return.
// pre: `top` is the end of the stack, aligned to 16 bytes.
[[gnu::visibility("hidden")]] void* nearfield_prepare_stack(void* top, void (*body)(void*), void* argument);
}
