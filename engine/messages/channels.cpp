#include "engine/messages/channels.hpp"

#include "engine/base/log.hpp"
#include "engine/messages/fastbox_room.hpp"

namespace nearfield::messages {
namespace {

constexpr std::uint32_t talkative = 4;  // messages of a pair before it gets a ring

}  // namespace

Channels::Channels(Mailboxes& mailboxes, Counts& counts)
    : mailboxes_(mailboxes),
      counts_(counts),
      protocol_(mailboxes.process().settings().protocol),
      ring_bytes_(fastbox_bytes(mailboxes.count())),
      longest_eager_(protocol_ == Protocol::queue ? cell_payload
                                                  : std::min<std::uint64_t>(mailboxes.process().settings().eager_bytes,
                                                                            largest_payload(ring_bytes_))),
      to_(std::size_t(mailboxes.count())),
      from_(std::size_t(mailboxes.count())) {
  const int members = mailboxes.count();
  talking_.reserve(from_.size());
  silent_.reserve(from_.size());
  for (int behind = most_fastboxes; behind < members; ++behind)
    to_[std::size_t((mailboxes.me() + behind) % members)].without_ring = true;
}

Cell* Channels::free_cell() {
  for (unsigned i = 0; i < cells; ++i) {
    Cell& cell = mailboxes_.own().cell[next_cell_ = (next_cell_ + 1) % cells];
    if (cell.busy.load(std::memory_order_acquire) == 0) return &cell;  // SYNC: cell-busy
  }
  return nullptr;
}

// The cell's payload is written.
void Channels::send_cell(int member, Cell& cell, Kind kind, std::size_t payload) {
  cell.record.word.store(record_word(kind, payload), std::memory_order_relaxed);  // published by the queue
  cell.busy.store(1, std::memory_order_relaxed);
  enqueue(mailboxes_.of(member), std::uint64_t(mailboxes_.me() + 1) << 48 | mailboxes_.offset_of(&cell),
          [this](Reference r) -> Cell& { return mailboxes_.cell_at(r); });
}

bool Channels::wants_ring(To& to, std::size_t payload) const {
  if (protocol_ == Protocol::queue || to.without_ring) return false;
  return protocol_ == Protocol::fastbox || ++to.talked > talkative || payload > cell_payload;
}

bool Channels::make_ring(int member) {
  Cell* const cell = free_cell();
  if (!cell) return false;
  team::Process& process = mailboxes_.process();
  To& to = to_[std::size_t(member)];
  const auto offset = process.arena().allocate(bytes_of_fastbox(ring_bytes_), line, memory::Component::fastboxes);
  if (!offset) {
    log_line(LogLevel::info, "no room for a fastbox, a pair goes on with the queue: %s", offset.error().text.c_str());
    to.without_ring = true;
    return false;
  }
  ++counts_.fastboxes;
  to.ring = FastboxWriter(&mailboxes_.at<Ring>(mailboxes_.me(), *offset), ring_bytes_);
  const std::uint64_t where[2] = {*offset, ring_bytes_};
  std::memcpy(cell->record.payload, where, sizeof where);
  send_cell(member, *cell, Kind::fastbox, sizeof where);
  return true;
}

void Channels::open_ring(int member, const Cell& cell) {
  std::uint64_t where[2];
  std::memcpy(where, cell.record.payload, sizeof where);
  from(member) = {FastboxReader(&mailboxes_.at<Ring>(member, where[0]), where[1]), polls_};
  talking_.push_back(member);
}

bool Channels::push(int member, Kind kind, const Envelope& envelope, std::span<const std::byte> note,
                    const layout::Data& data) {
  To& to = to_[std::size_t(member)];
  const std::size_t payload = note.size() + data.bytes;
  // Without a ring it is tried again, by the queue where there is no memory.
  if (!to.ring && wants_ring(to, payload) && !make_ring(member)) return false;
  Record* record;
  Cell* cell = nullptr;
  if (to.ring) {
    record = to.ring.reserve(payload);
    if (!record) return false;
  } else {
    cell = free_cell();
    if (!cell) return false;
    record = &cell->record;
  }
  record->envelope = envelope;
  if (!note.empty()) std::memcpy(record->payload, note.data(), note.size());
  if (data.bytes) layout::gather(record->payload + note.size(), data, 0, data.bytes);
  if (cell) {
    send_cell(member, *cell, kind, payload);
    ++counts_.cells;
  } else {
    to.ring.publish(record, kind, payload);
    ++counts_.fastbox;
  }
  mailboxes_.wake(member);
  return true;
}

void Channels::review_silent() {
  for (std::size_t i = 0; i < talking_.size(); ++i) {
    const int member = talking_[i];
    if (polls_ - from(member).came < quiet_polls) continue;
    silent_.push_back(member);
    talking_[i--] = talking_.back();
    talking_.pop_back();
  }
}

}  // namespace nearfield::messages
