#include "mpi/shim/collectives/engine/combining.hpp"

#include <algorithm>

#include "engine/base/out_of_memory.hpp"

namespace nearfield::mpi::combining {

using collectives::Call;
using collectives::Collective;

namespace {

MPI_Count times(MPI_Count count, std::size_t blocks) {
  MPI_Count all = 0;
  return __builtin_mul_overflow(count, blocks, &all) ? -1 : all;
}

bool leaves_out_own(Collective collective) {
  return collectives::operation(collective).combines == collectives::Combines::before_own;
}

std::byte* need(std::optional<memory::Temporary>& temporary, std::size_t bytes) {
  temporary.emplace(bytes);
  if (!temporary->data()) throw OutOfMemory();
  return temporary->data();
}

}  // namespace

Combining::Combining(const Communicator& c, Collective collective, const Operands& given)
    : collective_(collective),
      root_(given.root),
      me_(c.rank),
      size_(c.size),
      ends_(given.ends),
      gets_(collectives::operation(collective).gets.has(c.rank, given.root)),
      count_(std::size_t(given.count)),
      given_(given.send == MPI_IN_PLACE ? given.recv : const_cast<void*>(given.send),
             times(given.count, collectives::operation(collective).gives.each(c.size)), given.type, c.comm),
      result_(gets_ ? given.recv : nullptr,
              !gets_     ? 0
              : parted() ? MPI_Count(part(c.rank).size())
                         : given.count,
              given.type, c.comm),
      fold_(given.type, given.op, c.comm) {
  const bool in_place = given.send == MPI_IN_PLACE;
  right_ = !given_.error() && !result_.error() && !(in_place && !gets_ && root_ >= 0);
  bytes_ = count_ * given_.element();
  // Equal addresses are an error on all ranks of an unrooted call, also on those that get no result.
  if (bytes_ && (gets_ || root_ < 0) && host_rejects_aliases && given.send == given.recv) right_ = false;
}

Call Combining::whole() const {
  Call call{collective_, bytes_};
  call.root = std::max(root_, 0);
  call.count = count_;
  call.parts = ends_;
  return call;
}

collectives::Slice Combining::part(int member) const { return {ends_[member], ends_[member + 1]}; }

int Combining::pad_parts(std::byte* to) {
  for (int r = 0; r < size_; ++r)
    if (const int code = given_.load(to + std::size_t(r) * place_bytes_, part(r).begin, part(r).size());
        code != MPI_SUCCESS)
      return code;
  return MPI_SUCCESS;
}

int Combining::members() const {
  if (way_ == Way::shares || !scans()) return way_ == Way::shares || gets_ ? size_ : 0;
  return me_ + (collective_ == Collective::scan);
}

void Combining::prepare(Way way) {
  const auto p = std::size_t(size_);
  const std::size_t element = given_.element();
  way_ = way;
  std::size_t most = count_;
  mine_ = count_;
  if (shares()) {
    most = (count_ + p - 1) / p;
    const std::size_t first = std::min(count_, most * std::size_t(me_));
    mine_ = std::min(most, count_ - first);
  }
  const bool whole_parts = parted() && !shares();
  if (whole_parts) {
    most = 0;
    for (int r = 0; r < size_; ++r) most = std::max(most, part(r).size());
    mine_ = part(me_).size();
  }
  place_bytes_ = most * element;
  // The last shares and some parts may be shorter than the others; all places have room for the longest.
  const bool padded = (shares() || whole_parts) && most * p != count_;
  const std::size_t padded_bytes = p * place_bytes_;
  if (given_.dense() && !padded) {
    from_ = given_.room();
  } else {
    from_ = need(operands_, padded ? padded_bytes : given_.bytes());
  }
  if (shares() || collective_ != Collective::reduce || gets_) {
    lead_ = shares() && leaves_out_own(collective_) ? place_bytes_ : 0;  // room before the first place
    need(places_, lead_ + padded_bytes);
  }
  if (!shares()) return;
  if (gets_ && !parted() && result_.dense() && !padded) into_ = result_.room();
  else if (gets_ || scans()) into_ = need(gathered_, padded_bytes);
}

void Combining::keep() {
  given_.keep_type();
  result_.keep_type();
  fold_.keep();
  if (ends_) {
    kept_ends_.assign(ends_, ends_ + size_ + 1);
    ends_ = kept_ends_.data();
  }
}

int Combining::load() {
  if (!operands_) return MPI_SUCCESS;
  if (parted() && !shares()) return pad_parts(operands_->data());
  return given_.load(operands_->data(), 0, given_.bytes() / given_.element());
}

Call Combining::exchange() const {
  const bool apart = shares() || parted() || collective_ == Collective::reduce_scatter_block;
  Call call{apart                               ? Collective::alltoall
            : collective_ == Collective::reduce ? Collective::gather
                                                : Collective::allgather,
            place_bytes_};
  if (collective_ == Collective::reduce) call.root = shares() ? 0 : root_;
  call.send = from_;
  call.recv = places_ ? place(0) : nullptr;
  return call;
}

int Combining::fold() {
  const int n = members();
  return n < 2 ? MPI_SUCCESS : fold_.combine(place(0), place_bytes_, n, mine_, shares() && scans());
}

Call Combining::sharing() const {
  Call call{scans()                             ? Collective::alltoall
            : collective_ == Collective::reduce ? Collective::gather
                                                : Collective::allgather,
            place_bytes_};
  if (collective_ == Collective::reduce) call.root = root_;
  // Member r gets what place r holds; of an exclusive scan, the place before.
  call.send = scans() ? place(0) - lead_ : place(size_ - 1);
  call.recv = into_;
  return call;
}

int Combining::store() {
  if (!gets_ || (shares() && !gathered_)) return MPI_SUCCESS;
  if (!parted()) return result_.store(shares() ? into_ : place(members() - 1), 0, count_);
  const std::size_t at = shares() ? part(me_).begin * given_.element() : 0;
  return result_.store(shares() ? into_ + at : place(size_ - 1), 0, part(me_).size());
}

namespace {

// Shares need a second exchange, but leave each member only 1/p of the combining. With an addition of doubles they were
// faster from 16 KiB on with two ranks (a reduce, whose root receives less: from 64 KiB), and from 128 KiB with 4 and 8
// ranks on two CPUs. There a reduce, for which only the root waits, was faster whole at all lengths up to 512 KiB.
Way way_for(const Communicator& c, Collective collective, std::size_t bytes, std::size_t count,
            const std::size_t* ends) {
  const auto p = std::size_t(c.size);
  if (collective == Collective::reduce_scatter) {
    std::size_t longest = 0;
    for (std::size_t r = 0; r < p; ++r) longest = std::max(longest, ends[r + 1] - ends[r]);
    return longest * p <= 2 * count || count < p ? Way::whole : Way::shares;
  }
  const bool rooted = collective == Collective::reduce, oversubscribed = c.team->shape().oversubscribed();
  if (collective == Collective::reduce_scatter_block || count < p || (rooted && oversubscribed) ||
      (leaves_out_own(collective) && p == 2))  // nothing is combined
    return Way::whole;
  constexpr std::size_t of_all = 32 << 10, when_oversubscribed = 128 << 10;
  return bytes >= (oversubscribed ? when_oversubscribed : (rooted ? 4 : 1) * of_all / p) ? Way::shares : Way::whole;
}

}  // namespace

int combine(Communicator& c, Collective collective, const Operands& given, const char* function,
            FunctionRef<int()> host_call) {
  return with_memory(c, function, [&]() -> int {
    const std::uint64_t start = counting() ? waiting::nanoseconds() : 0;
    Combining work(c, collective, given);
    if (!work.right()) return to_host(collective, Reason::argument, host_call);
    const Call whole = work.whole();
    if (whole.bytes == 0) return carry(c, whole, function, host_call);
    if (checks(c)) [[unlikely]]
      if (const int code = check_before_host(c, whole, function); code != MPI_SUCCESS) return code;
    work.prepare(way_for(c, collective, whole.bytes, whole.count, given.ends));
    if (work.load() != MPI_SUCCESS) return give_up(c, function, "the buffer cannot be packed");
    if (const int code = carry(c, work.exchange(), function, host_call, &whole);
        code != MPI_SUCCESS || *last_algorithm == by_host)
      return code;
    const int folded = work.fold();
    if (work.shares()) {
      if (const int code = carry(c, work.sharing(), function, host_call, &whole);
          code != MPI_SUCCESS || *last_algorithm == by_host)
        return code;
    }
    *last_algorithm = "combined";
    if (folded != MPI_SUCCESS) return folded;
    if (const int code = work.store(); code != MPI_SUCCESS) return code;
    if (counting()) [[unlikely]]
      count_call(collective, whole.bytes, start);
    return MPI_SUCCESS;
  });
}

int combine_by_host(Communicator& c, Collective collective, const Operands& given, const char* function,
                    FunctionRef<int()> host_call) {
  return with_memory(c, function, [&]() -> int {
    const bool rooted = collective == Collective::reduce;
    Combining work(c, collective, given);
    if (!work.right() || (rooted && (given.root < 0 || given.root >= c.size)) || work.whole().bytes == 0)
      return to_host(collective, Reason::deferred, host_call);
    work.prepare(Way::whole);
    if (const int code = work.load(); code != MPI_SUCCESS) return give_up(c, function, "the buffer cannot be packed");
    const Call call = work.exchange();
    const int bytes = int(call.bytes);
    const int code = to_host(collective, Reason::deferred, [&] {
      return rooted ? host.Gather(call.send, bytes, host.byte, call.recv, bytes, host.byte, given.root, c.comm)
                    : host.Allgather(call.send, bytes, host.byte, call.recv, bytes, host.byte, c.comm);
    });
    if (code != MPI_SUCCESS) return code;
    const int folded = work.fold();
    return folded == MPI_SUCCESS ? work.store() : folded;
  });
}

}  // namespace nearfield::mpi::combining
