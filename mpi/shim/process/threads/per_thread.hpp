// Thread-local variables, in a block of memory that is allocated when the thread first uses one of them.
//
// Thread-local variables of a library that is loaded late use a small reserve of the C library, which plugins need as
// well. So ours take one pointer of it, which leads to the block.
//
// A block is freed when its thread ends, after the destructors of the program's own thread-local variables; a later
// call makes another one. The first thread's lasts as long as the process, for handlers of exit(). A child of fork()
// keeps the block of the thread that has forked.
#pragma once
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace nearfield::mpi {

namespace threads {

// Offsets in the block of the variables that every call needs. They are constants, which saves a load.
namespace at {
inline constexpr std::size_t calls = 0, inside = 704, last_algorithm = 768, went_to_host = 776, reported = 784,
                             poll_backoff = 800, communicators = 832, windows = 1024, layouts = 1216, others = 1344;
inline constexpr std::size_t anywhere = ~std::size_t{0};
}  // namespace at

// One variable; all are constructed while the library is loaded, before there are blocks.
class Variable {
 public:
  Variable(const Variable&) = delete;

 protected:
  // `offset`: at::anywhere, or one of the fixed ones.
  Variable(std::size_t bytes, std::size_t alignment, std::size_t offset);
  ~Variable() = default;  // never destroyed, since threads may outlive it
  std::size_t offset_, end_;

 private:
  friend std::byte* make_block();
  friend void end_block(void*);
  virtual void construct(std::byte* block) const = 0;
  virtual void destroy(std::byte* block) const = 0;
  Variable* next_;
};

// This thread's block; nullptr before its first use.
inline constinit thread_local std::byte* block = nullptr;
std::byte* make_block();

}  // namespace threads

// Variables must have namespace scope.
template <class T, std::size_t place = threads::at::anywhere>
class PerThread final : public threads::Variable {
 public:
  explicit PerThread(const T& initial = {})
    requires std::is_copy_constructible_v<T>
      : Variable(sizeof(T), alignof(T), place), initial_(initial) {}
  explicit PerThread()
    requires(!std::is_copy_constructible_v<T>)
      : Variable(sizeof(T), alignof(T), place) {}

  T& operator*() const {
    std::byte* at = threads::block;
    if (!at) [[unlikely]]
      at = threads::make_block();
    return *std::launder(reinterpret_cast<T*>(at + (place == threads::at::anywhere ? offset_ : place)));
  }
  T* operator->() const { return &**this; }

 private:
  struct Nothing {};
  void construct(std::byte* block) const override {
    if constexpr (std::is_copy_constructible_v<T>) new (block + offset_) T(initial_);
    else new (block + offset_) T();
  }
  void destroy(std::byte* block) const override { std::launder(reinterpret_cast<T*>(block + offset_))->~T(); }
  [[no_unique_address]] const std::conditional_t<std::is_copy_constructible_v<T>, T, Nothing> initial_{};
};

}  // namespace nearfield::mpi
