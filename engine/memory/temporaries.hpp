// Pool of private buffers, so that calls do not wait for malloc's trimming and page faults.
#pragma once
#include <cstddef>
#include <utility>

namespace nearfield::memory {

class Temporary {
 public:
  // At least `bytes` bytes, 64-byte aligned; data() is nullptr when the system has no memory left. Thread-safe.
  explicit Temporary(std::size_t bytes);
  Temporary(Temporary&& other) noexcept : data_(std::exchange(other.data_, nullptr)), class_(other.class_) {}
  Temporary& operator=(Temporary&&) = delete;
  ~Temporary();
  std::byte* data() const { return data_; }

  // Returns the bytes that the pool keeps for reuse.
  static std::size_t kept();

 private:
  std::byte* data_;
  int class_;
};

}  // namespace nearfield::memory
