// Blocks that know what is in them, of the lengths that the heap serves.
#pragma once
#include <malloc.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

class Block {
 public:
  explicit Block(unsigned char with, std::size_t bytes = 96 << 10) : bytes_(bytes), with_(with) {
    at_ = static_cast<unsigned char*>(std::malloc(bytes));
    std::memset(at_, with_, bytes_);
  }
  ~Block() {
    check();
    std::free(at_);
  }
  Block(const Block&) = delete;
  void check() const {
    if (malloc_usable_size(at_) < bytes_) fail("its length is not known");
    for (std::size_t i = 0; i < bytes_; i += 512)
      if (at_[i] != with_) fail("its contents are not what was written");
  }
  void resize(std::size_t bytes) {
    check();
    at_ = static_cast<unsigned char*>(std::realloc(at_, bytes));
    if (bytes > bytes_) std::memset(at_ + bytes_, with_, bytes - bytes_);
    bytes_ = bytes;
    check();
  }

 private:
  void fail(const char* what) const {
    std::fprintf(stderr, "block %d: %s\n", with_, what);
    std::_Exit(1);
  }
  std::size_t bytes_;
  unsigned char* at_;
  unsigned char with_;
};

Block& early_block();
Block& grown_block();
Block& block_of_thread();
