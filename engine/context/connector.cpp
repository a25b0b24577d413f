#include "engine/context/connector.hpp"

namespace nearfield::context {

template <class Words>
void Connector<Words>::wait(int member, std::uint64_t n) {
  waits_.wait_for(member, Words::published(*members_.words[member], n), Words::is_published, Words::value(n));
}

template <class Words>
void Connector<Words>::meet(std::uint64_t n) {
  barrier_.meet([n](auto& block) -> auto& { return Words::published(block, n); }, Words::is_published, Words::value(n));
  have_met(n);
}

template <class Words>
void Connector<Words>::wait_consumed(int member, std::uint64_t n) {
  waits_.wait_for(member, Words::consumed(*members_.words[member]), What::consumed, n);
}

// Members have often consumed more than `wanted`. All of it becomes credits, so that the next calls need not look.
template <class Words>
std::uint64_t Connector<Words>::look(std::uint64_t wanted, bool for_ever) {
  std::uint64_t least = ~std::uint64_t{0}, limit = 0;
  for (int r = 0; r < members_.size; ++r) {
    if (r == members_.rank) continue;
    std::uint64_t seen = 0;
    const auto& theirs = Words::consumed(*members_.words[r]);
    const auto over = [&] {
      seen = theirs.load(std::memory_order_acquire);  // SYNC: consumed
      if (seen >= wanted || for_ever) return seen >= wanted;
      const std::uint64_t now = waiting::nanoseconds();
      if (limit == 0) limit = now + waits_.patience();
      return now > limit;
    };
    waits_.wait(over, [&](int m) { return m == r; }, {std::uint32_t(r + 1), What::consumed, wanted});
    least = std::min(least, seen);
  }
  add_credits(least);
  return least;
}

template class Connector<TickWords>;
template class Connector<RingWords<&ContextControlBlock::lines>>;
template class Connector<RingWords<&ContextControlBlock::slots>>;

}  // namespace nearfield::context
