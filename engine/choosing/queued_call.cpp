#include "engine/choosing/queued_call.hpp"

#include <algorithm>
#include <cstring>

#include "engine/collectives/pieces/gaps.hpp"

namespace nearfield::choosing {

using collectives::Algorithm;
using collectives::Call;
using collectives::Collective;

namespace {
constexpr Algorithm by_pieces{"slots", {}, nullptr, nullptr, nullptr, "by pieces"};
}

// Pieces of each block that slots hold.
const Algorithm* run_by_pieces(context::CollectiveContext& context, const Call& call) {
  collectives::gather_gaps(context, call);
  const collectives::Operation& operation = collectives::operation(call.collective);
  const int p = context.size(), me = context.rank();
  const std::size_t most_blocks = std::max(operation.gives.each(p), operation.gets.each(p));
  const std::size_t element = operation.reduces() ? call.bytes / call.count : 1;
  const std::size_t most = context::slot_payload / most_blocks / element * element;
  const auto* const from = static_cast<const std::byte*>(call.send);
  auto* const to = static_cast<std::byte*>(call.recv);
  const bool stays = operation.in_place == collectives::InPlace::own_block_of_send && from &&
                     to == from + operation.in_place_at(me, call.bytes);
  const std::size_t given = operation.gives.blocks(me, p, call.root);
  const std::size_t got = stays ? 0 : operation.gets.blocks(me, p, call.root);
  // Of a member's part of a vector: each piece of the whole goes to all, who keep what is theirs of it.
  const bool parted = operation.gets.amount == collectives::Amount::part;
  const collectives::Slice mine = parted ? collectives::part_of(call, p, me) : collectives::Slice{};
  Call piece = call;
  if (parted) piece.collective = Collective::allreduce;
  piece.parts = nullptr;
  auto by_slots = [&](const Algorithm& row) {
    const std::string_view name = row.name;
    return (name == "slots" || name == "below") && row.applies(context.shape(), piece);
  };
  piece.bytes = most;
  const auto rows = collectives::algorithms(piece.collective);
  const auto row = std::ranges::find_if(rows, by_slots);
  if (most == 0 || row == rows.end()) throw team::Broken("a member has no room for copy buffers");
  std::byte send[context::slot_payload], recv[context::slot_payload];
  for (std::size_t at = 0; at < call.bytes; at += most) {
    piece.bytes = std::min(most, call.bytes - at);
    piece.count = piece.bytes / element;
    piece.send = send;
    piece.recv = recv;
    for (std::size_t b = 0; b < given; ++b)
      std::memcpy(send + b * piece.bytes, from + b * call.bytes + at, piece.bytes);
    row->run(context, piece);
    if (parted) {
      const std::size_t begin = std::max(mine.begin * element, at),
                        end = std::min(mine.end * element, at + piece.bytes);
      if (begin < end) std::memcpy(to + begin - mine.begin * element, recv + begin - at, end - begin);
      continue;
    }
    for (std::size_t b = 0; b < got; ++b) std::memcpy(to + b * call.bytes + at, recv + b * piece.bytes, piece.bytes);
  }
  collectives::scatter_gaps(context, call);
  return &by_pieces;
}

void make_choosers(FurtherChoosers& choosers, const team::Team& team) {
  for (auto& chooser : choosers) {
    if (chooser) continue;
    auto made = std::make_unique<Chooser>();
    made->serve(team, false);
    chooser = std::move(made);
  }
}

void QueuedCall::keep_parts(int members) {
  if (!call_.parts) return;
  parts_.assign(call_.parts, call_.parts + members + 1);
  call_.parts = parts_.data();
}

void QueuedCall::run(context::CollectiveContext& context) {
  if (context.team().plan().check) collectives::compare_calls(context, call_);
  if (!call_.does_anything()) return;
  context.calls.enter_collective(collectives::pack(call_));
  run_anyhow(context, call_, [&] {
    if (choosers_) return (*choosers_)[context.number() - 1]->perform(context, call_);
    return planned_.row ? planned_.run(context, call_, skips_) : nullptr;
  });
}

}  // namespace nearfield::choosing
