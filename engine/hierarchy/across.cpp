#include "engine/hierarchy/across.hpp"

namespace nearfield::hierarchy {

// Below, one more message costs more than the bytes that it saves.
constexpr std::size_t few_bytes = 4096;

bool Across::at_once() const {
  return hierarchy_->nodes() == 2 || count_ * element_ <= few_bytes || count_ < std::size_t(hierarchy_->nodes());
}

std::size_t Across::share(int node) const { return count_ * std::size_t(node) / std::size_t(hierarchy_->nodes()); }

void Across::begin(const std::byte* mine, std::size_t count, std::byte* result) {
  mine_ = mine;
  result_ = result;
  count_ = count;
  element_ = reducing::size_of(call_->type);
  if (count == 0) return;
  const auto n = std::size_t(hierarchy_->nodes());
  const std::size_t whole = count * element_;
  const bool once = at_once();
  const std::size_t own = once ? whole : (share(hierarchy_->node() + 1) - share(hierarchy_->node())) * element_;
  bytes_.assign(n, own);
  at_.resize(n);
  for (std::size_t i = 0; i < n; ++i) at_[i] = i * own;
  if (!once || gets()) operands_ = Hierarchy::Room(*hierarchy_, n * own);
  const MemberParts operands{operands_.data(), bytes_, at_};
  if (once) {
    const Move move = root_ == all ? Move::allgather : Move::gather;
    return hierarchy_->start(slot_, lane_,
                             {.move = move, .root = root_, .one = mine, .bytes = whole, .into = operands});
  }
  given_.resize(n);
  given_at_.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    given_at_[i] = share(int(i)) * element_;
    given_[i] = share(int(i) + 1) * element_ - given_at_[i];
  }
  const MemberParts shares{const_cast<std::byte*>(mine), given_, given_at_};
  hierarchy_->start(slot_, lane_, {.move = Move::alltoall, .from = shares, .into = operands});
}

void Across::fold(std::size_t count, std::byte* result) {
  std::vector<const void*> ins(at_.size());
  for (std::size_t i = 0; i < ins.size(); ++i) ins[i] = operands_.data() + at_[i];
  void* out = result;
  if (count) call_->fold(&out, 1, ins.data(), ins.size(), count);
}

void Across::middle() {
  if (count_ == 0 || at_once()) return;
  hierarchy_->wait(slot_);
  const std::size_t own = bytes_[0] / element_;
  own_ = Hierarchy::Room(*hierarchy_, bytes_[0]);
  fold(own, own_.data());
  const MemberParts shares{result_, given_, given_at_};
  const Move move = root_ == all ? Move::allgather : Move::gather;
  hierarchy_->start(slot_ + 1, lane_,
                    {.move = move, .root = root_, .one = own_.data(), .bytes = bytes_[0], .into = shares});
}

void Across::end() {
  if (count_ == 0) return;
  const bool once = at_once();
  hierarchy_->wait(once ? slot_ : slot_ + 1);
  if (once && gets()) fold(count_, result_);
}

}  // namespace nearfield::hierarchy
