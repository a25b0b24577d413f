// Protocols that copy a message once, from array to array, in blocks that both sides claim (transfers.hpp).
//
// A new one is a row here and a state in blocks.hpp.
//
// Threads: everything here needs the messenger's lock, except `copy`.
#pragma once
#include <cstdint>

#include "engine/messages/counts.hpp"
#include "engine/messages/request.hpp"

namespace nearfield::messages {

struct Protocols;

struct SingleCopy {
  const char* name;
  State state;  // what the receiver answers
  std::uint64_t Counts::*count;
  // Receiver: whether this way can move the message, as far as this side knows. May throw std::bad_alloc.
  bool (*fits)(Protocols&, Request&);
  // Sender: whether it can copy blocks, too. May throw std::bad_alloc.
  bool (*helps)(Protocols&, Request&);
  // Copies a block; the sender begins at the back. False: it failed.
  bool (*copy)(Protocols&, Request&, std::uint64_t position, std::uint64_t bytes, bool from_back);
};

// pre: the state is that of a row.
const SingleCopy& single_copy(State state);
// The first row that fits, nullptr: none does. May throw std::bad_alloc.
const SingleCopy* single_copy_for(Protocols& protocols, Request& receive);

}  // namespace nearfield::messages
