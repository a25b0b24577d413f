// NEARFIELD_CHECK: compares the calls of all members.
#include <cstring>

#include "engine/collectives/pieces/rounds.hpp"

namespace nearfield::collectives {
namespace {

struct CallRecord {
  Collective collective;
  reducing::Op op;
  reducing::Type type;
  std::uint8_t host;
  std::int32_t root;
  std::uint64_t bytes;
  std::uint64_t parts;  // hash of where they begin; 0: equal parts
  bool operator==(const CallRecord&) const = default;
};

std::string describe(const CallRecord& c) {
  const Operation& op = operation(c.collective);
  std::string text = std::string(op.name) + "(" + std::to_string(c.bytes) + " bytes";
  if (op.reduces() && !c.host) text += std::string(", ") + reducing::name(c.type) + ", " + reducing::name(c.op);
  if (op.rooted()) text += ", root " + std::to_string(c.root);
  return text + ")";
}

// FNV-1a, by words.
std::uint64_t sum_of_parts(const Call& call, int size) {
  if (!call.parts) return 0;
  std::uint64_t sum = 0xcbf29ce484222325;
  for (int r = 0; r <= size; ++r) sum = (sum ^ call.parts[r]) * 0x100000001b3;
  return sum | 1;
}

}  // namespace

std::string describe_call(std::uint64_t packed) {
  if (!packed) return "in a collective made of messages, or in none";
  const auto collective = Collective((packed >> 56) - 1);
  return std::string("in ") + name(collective) + " of " + std::to_string(packed & packed_length) + " bytes";
}

void compare_calls(CollectiveContext& context, const Call& call) {
  CallRecord mine{};
  std::memset(static_cast<void*>(&mine), 0, sizeof mine);
  mine.collective = call.collective;
  mine.op = call.fold ? call.op : reducing::Op::sum;
  mine.type = call.fold ? call.type : reducing::Type::none;
  mine.host = call.fold ? 0 : 1;
  mine.root = call.root;
  mine.bytes = call.bytes;
  mine.parts = sum_of_parts(call, context.size());
  const std::uint64_t seq = context.slots.allgather(&mine, sizeof mine);
  const auto first = context.slots.get<CallRecord>(0, seq);
  for (int r = 1; r < context.size(); ++r) {
    const auto other = context.slots.get<CallRecord>(r, seq);
    if (other == first) continue;
    // All ranks fail with the same text.
    const bool by_parts_alone = describe(first) == describe(other) && first.parts != other.parts;
    throw team::Broken("rank 0 calls " + describe(first) + " but rank " + std::to_string(r) + " calls " +
                       describe(other) + (by_parts_alone ? ", with other lengths for single ranks," : "") +
                       " on the same communicator of " + std::to_string(context.size()) + " ranks");
  }
}

}  // namespace nearfield::collectives
