#include "engine/messages/channels.hpp"

#include <algorithm>
#include <bit>

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
      publications_(mailboxes.process().settings().publishing, mailboxes.process().policy().oversubscribed),
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

// pre: the cell's envelope and payload are written.
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
    log_line(LogLevel::info, "no memory for another fastbox, so this pair of ranks keeps using the queue: %s",
             offset.error().text.c_str());
    to.without_ring = true;
    return false;
  }
  ++counts_.fastboxes;
  to.ring = FastboxWriter(&mailboxes_.at<Ring>(mailboxes_.me(), *offset), ring_bytes_);
  const std::uint64_t where[2] = {*offset, ring_bytes_};
  std::memcpy(payload_of(cell->record, sizeof where), where, sizeof where);
  send_cell(member, *cell, Kind::fastbox, sizeof where);
  return true;
}

bool Channels::has_sound_note(int member, std::uint64_t word, const Record& record, bool in_ring) {
  const std::size_t bytes = bytes_of(word);
  std::uint64_t words[3] = {};
  std::memcpy(words, payload_of(record, bytes), std::min(bytes, sizeof words));
  const auto lies_in = [&](int whose, std::uint64_t offset, std::size_t length) {
    return offset % 64 == 0 && mailboxes_.reaches(whose, offset, length);
  };
  bool sound = false;
  switch (kind_of(word)) {
    case Kind::rendezvous: {
      const Note note = std::bit_cast<Note>(words);
      const bool carried = bytes == sizeof note + note.bytes;
      sound = bytes >= sizeof note && (carried || bytes == sizeof note) && (note.transfer || note.first) &&
              !(carried && note.first) && (!note.transfer || lies_in(member, note.transfer, sizeof(Transfer))) &&
              (!note.first || lies_in(note.first & of_receiver ? mailboxes_.me() : member, note.first & ~of_receiver,
                                      sizeof(CopyBuffer)));
      break;
    }
    case Kind::withdraw: sound = bytes == sizeof *words && *words && lies_in(member, *words, sizeof(Transfer)); break;
    case Kind::fastbox:
      sound = !in_ring && bytes == 2 * sizeof *words && std::has_single_bit(words[1]) && words[1] <= all_fastboxes &&
              lies_in(member, words[0], bytes_of_fastbox(words[1]));
      break;
    default: break;
  }
  if (!sound) mailboxes_.condemn(member);
  return sound;
}

void Channels::look_for_damage() {
  for (std::size_t member = 0; member < from_.size(); ++member)
    if (from_[member].ring && from_[member].ring.damaged()) mailboxes_.condemn(int(member));
}

void Channels::open_ring(int member, const Cell& cell) {
  std::uint64_t where[2];
  std::memcpy(where, payload_of(cell.record, sizeof where), sizeof where);
  from(member) = {FastboxReader(&mailboxes_.at<Ring>(member, where[0]), where[1]), polls_};
  talking_.push_back(member);
}

// The reader polls the first line of the record: each of its looks takes the line from the writer, whose next store to
// it waits until it is back. So that line is written last, and at one go.
static void write_dense(Record& record, const Envelope& envelope, const std::byte* from, std::size_t bytes) {
  std::byte* const to = payload_of(record, bytes);
  const std::size_t beside = 64 - place_of_payload(bytes);
  if (bytes > beside) copying::copy(to + beside, from + beside, bytes - beside);
  copying::copy(to, from, beside);
  record.envelope = envelope;
}

static void write_record(Record& record, const Envelope& envelope, std::span<const std::byte> note,
                         const layout::Data& data) {
  if (note.empty() && data.dense()) return write_dense(record, envelope, data.address, data.bytes);
  std::byte* const to = payload_of(record, note.size() + data.bytes);
  if (data.bytes) layout::gather(to + note.size(), data, 0, data.bytes);
  if (!note.empty()) std::memcpy(to, note.data(), note.size());
  record.envelope = envelope;
}

template <class Write>
void Channels::write_to_ring(To& to, Record& record, Kind kind, std::size_t payload, Write write) {
  const Publication& publication = publications_.of(payload);
  write(record);
  to.ring.publish(&record, kind, payload, publication.marks());
  if (publication.demotes)
    for (std::size_t at = 0; at < record_length(payload); at += 64)
      processor::demote(reinterpret_cast<std::byte*>(&record) + at);
  ++counts_.fastbox;
}

bool Channels::push_short(int member, Envelope envelope, const std::byte* from, std::size_t bytes) {
  To& to = to_[std::size_t(member)];
  Record* const record = to.ring ? to.ring.reserve(bytes) : nullptr;
  if (!record) return false;
  write_to_ring(to, *record, Kind::eager, bytes, [&](Record& each) { write_dense(each, envelope, from, bytes); });
  mailboxes_.wake(member);
  return true;
}

bool Channels::push(int member, Kind kind, const Envelope& envelope, std::span<const std::byte> note,
                    const layout::Data& data) {
  To& to = to_[std::size_t(member)];
  const std::size_t payload = note.size() + data.bytes;
  // If the ring cannot be made now the caller tries again, by the queue if there is no memory for a ring.
  if (!to.ring && wants_ring(to, payload) && !make_ring(member)) return false;
  if (to.ring) {
    Record* const record = to.ring.reserve(payload);
    if (!record) return false;
    write_to_ring(to, *record, kind, payload, [&](Record& each) { write_record(each, envelope, note, data); });
  } else {
    Cell* const cell = free_cell();
    if (!cell) return false;
    write_record(cell->record, envelope, note, data);
    send_cell(member, *cell, kind, payload);
    ++counts_.cells;
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
