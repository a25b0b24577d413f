// Vectors with gaps (Call::gaps). A row copies to or from such a vector directly where it can; other members do not
// know of its gaps.
//
// Rows that copy through our buffers handle gaps themselves, or are wrapped in `dense`. For rows between user buffers
// run() (table.cpp) gathers the vector, so that peers can read it.
#pragma once
#include "engine/collectives/pieces/rounds.hpp"

namespace nearfield::collectives {

inline bool gives(const CollectiveContext& context, const Call& call) {
  return operation(call.collective).gives.has(context.rank(), call.root);
}

// Gathers the vector that we give into `send`.
inline void gather_gaps(const CollectiveContext& context, const Call& call) {
  if (call.gaps && gives(context, call)) layout::gather(const_cast<void*>(call.send), *call.gaps, 0, call.bytes);
}
// Scatters the vector that we have got from `recv`.
inline void scatter_gaps(const CollectiveContext& context, const Call& call) {
  if (call.gaps && !gives(context, call)) layout::scatter(*call.gaps, 0, call.recv, call.bytes);
}

// Wraps a row that needs contiguous memory.
template <void (*row)(CollectiveContext&, const Call&)>
void dense(CollectiveContext& context, const Call& call) {
  gather_gaps(context, call);
  row(context, call);
  scatter_gaps(context, call);
}

// Stores bytes [at, at + bytes) of the vector that we get, from contiguous memory.
template <class Store>
void land(const Call& call, std::size_t at, const void* from, std::size_t bytes, Store store) {
  if (call.gaps) layout::scatter(*call.gaps, at, from, bytes);
  else put(static_cast<std::byte*>(call.recv) + at, from, bytes, store);
}

}  // namespace nearfield::collectives
