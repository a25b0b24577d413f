// Vectors with gaps (Call::gaps), which a member copies to or from straight where a row can; only it knows of them.
//
// Rows of copies through buffers of ours do it themselves, or are wrapped in `dense`. Of rows between user buffers
// peers read what run() (table.cpp) has gathered.
#pragma once
#include "engine/collectives/pieces/rounds.hpp"

namespace nearfield::collectives {

inline bool gives(const CollectiveContext& context, const Call& call) {
  return operation(call.collective).gives.has(context.rank(), call.root);
}

// What we give, into the room for it.
inline void gather_gaps(const CollectiveContext& context, const Call& call) {
  if (call.gaps && gives(context, call)) layout::gather(const_cast<void*>(call.send), *call.gaps, 0, call.bytes);
}
// What we have got, out of it.
inline void scatter_gaps(const CollectiveContext& context, const Call& call) {
  if (call.gaps && !gives(context, call)) layout::scatter(*call.gaps, 0, call.recv, call.bytes);
}

// A row that knows contiguous memory alone.
template <void (*row)(CollectiveContext&, const Call&)>
void dense(CollectiveContext& context, const Call& call) {
  gather_gaps(context, call);
  row(context, call);
  scatter_gaps(context, call);
}

// Bytes [at, at + bytes) of what we get, from contiguous memory.
template <class Store>
void land(const Call& call, std::size_t at, const void* from, std::size_t bytes, Store store) {
  if (call.gaps) layout::scatter(*call.gaps, at, from, bytes);
  else put(static_cast<std::byte*>(call.recv) + at, from, bytes, store);
}

}  // namespace nearfield::collectives
