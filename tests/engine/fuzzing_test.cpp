// Texts that people write: settings, overrides, machine files, tuned files. Valid ones are changed at random; whatever
// comes of it is understood or complained about, and what was understood can be used. And records as a stray store of
// another process leaves them: whoever reads one names that process. Bounded, the same in every run.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "engine/choosing/choose.hpp"
#include "engine/choosing/tuned.hpp"
#include "engine/messages/fastbox_room.hpp"
#include "engine/messages/messenger.hpp"
#include "engine/reach/mappers.hpp"
#include "engine/settings/settings.hpp"
#include "tests/engine/team.hpp"

namespace nearfield {
namespace {

class Changing {
 public:
  explicit Changing(unsigned seed) : random_(seed) {}
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }

  // Some changes of a valid text: pieces of it and words of the grammar, put in, put elsewhere, or left out.
  std::string change(std::string text, const std::vector<std::string>& words) {
    for (std::size_t n = below(5); n > 0; --n) {
      const std::size_t at = below(text.size() + 1);
      const std::size_t length = std::min(below(8), text.size() - at);
      switch (below(5)) {
        case 0: text.erase(at, length); break;
        case 1: text.insert(at, text.substr(below(text.size() + 1), below(12))); break;
        case 2: text.insert(at, 1, char(below(255) + 1)); break;
        case 3: text.replace(at, length, words[below(words.size())]); break;
        default: text.insert(at, words[below(words.size())]); break;
      }
    }
    return text;
  }

 private:
  std::mt19937 random_;
};

const std::vector<std::string> numbers{
    "0",   "-1", "1",  "1e309", "nan", "inf", "-0.0", "1e30", "0x10", "99999999999999999999",
    "0.5", "=",  "\n", "\"",    "[",   "]"};

team::Shape shape_of(const Machine& machine, int size) {
  team::Shape shape = team::shape_for(size, machine);
  return shape;
}

// Every call has an algorithm, whatever the machine and the override.
void choose_all(const Machine& machine, const std::string& text) {
  for (const int size : {2, 5, 32}) {
    const team::Shape shape = shape_of(machine, size);
    for (std::size_t c = 0; c < collectives::collective_count; ++c)
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{4096}, std::size_t{1} << 22}) {
        collectives::Call call{};
        call.collective = collectives::Collective(c);
        call.bytes = bytes;
        const choosing::Chosen chosen = choosing::choose(shape, text, call);
        for (const auto* row : chosen.promising) ASSERT_TRUE(row->applies(shape, call));
        ASSERT_TRUE(!chosen.best || chosen.best->applies(shape, call));
      }
  }
}

TEST(Fuzzing, Settings) {
  Changing changing(1);
  const std::vector<std::string> words{"on", "off", "^", "cma", "xpmem", ",", ";", ":", "all", "mapped", "auto", "1"};
  for (int round = 0; round < 300; ++round) {
    for (const SettingRow& row : settings_table()) {
      const std::string seed = *row.fallback ? row.fallback : words[changing.below(words.size())];
      setenv(row.variable, changing.change(seed, round % 2 ? words : numbers).c_str(), 1);
    }
    unsetenv("NEARFIELD_MACHINE");
    unsetenv("NEARFIELD_LOG_FILE");  // files of any name
    std::string complaints;
    const Settings settings = read_settings(complaints);
    EXPECT_GE(settings.stall_seconds, 0);
  }
  for (const SettingRow& row : settings_table()) unsetenv(row.variable);
  std::string complaints;
  read_settings(complaints);
  EXPECT_EQ(complaints, "");
}

TEST(Fuzzing, Overrides) {
  Changing changing(2);
  std::vector<std::string> words{":", ";", ",", "^", " ", "::", "^^"};
  for (std::size_t c = 0; c < collectives::collective_count; ++c) {
    words.emplace_back(collectives::name(collectives::Collective(c)));
    for (const auto& row : collectives::algorithms(collectives::Collective(c))) words.emplace_back(row.name);
  }
  int understood = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::string text = changing.change("allreduce:partitioned,slots;alltoall:^slots;bcast:pipeline", words);
    if (!choosing::complain_about(text).empty()) continue;
    ++understood;
    if (understood < 100) choose_all({}, text);
  }
  EXPECT_GT(understood, 100);
}

class Files : public ::testing::Test {
 protected:
  void TearDown() override { unlink(path_.c_str()); }
  void write(const std::string& text) { std::ofstream(path_) << text; }
  const std::string path_ = ::testing::TempDir() + "nearfield-fuzzing-" + std::to_string(getpid()) + ".toml";
};

TEST_F(Files, Machines) {
  Changing changing(3);
  const std::string seed = describe(Machine{});
  std::vector<std::string> words = numbers;
  for (const MachineField& field : machine_fields()) words.push_back(std::string(field.name) + " = ");
  int understood = 0;
  for (int round = 0; round < 1500; ++round) {
    write(changing.change(seed, words));
    auto machine = read_machine(path_);
    if (!machine) {
      EXPECT_FALSE(machine.error().text.empty());
      continue;
    }
    if (++understood < 200) choose_all(*machine, "");
  }
  EXPECT_GT(understood, 100);
}

TEST_F(Files, Tuned) {
  Changing changing(4);
  const std::string seed =
      "[[cell]]\nop = \"allreduce\"\nranks = 8\nbytes = 1024\nalgorithm = \"slots\"\nstaged = \"slots\"\n";
  std::vector<std::string> words = numbers;
  for (const char* word : {"[[cell]]", "op = ", "ranks = ", "bytes = ", "\"alltoall\"", "{", "}", "true"})
    words.emplace_back(word);
  for (int round = 0; round < 2000; ++round) {
    write(changing.change(seed, words));
    auto tuned = choosing::Tuned::read(path_);
    if (!tuned) continue;
    std::uint8_t rows[collectives::collective_count][64][2] = {};
    for (const int size : {1, 2, 8, 1 << 20}) tuned->fill_in(size, rows);
    for (std::size_t c = 0; c < collectives::collective_count; ++c)
      for (const auto& row : rows[c])
        for (const std::uint8_t each : row) EXPECT_LE(each, collectives::algorithms(collectives::Collective(c)).size());
  }
}

using messages::Cell;
using messages::Kind;
using messages::Messenger;
using messages::Record;

// A record whose length or note leads nowhere, for a cell.
void damage(Cell& cell, Changing& changing) {
  constexpr Kind with_note[] = {Kind::rendezvous, Kind::fastbox};
  std::uint64_t note[3] = {~changing.below(1ul << 62), changing.below(~0ul), changing.below(2)};
  std::size_t bytes = 24;
  Kind kind = with_note[changing.below(2)];
  switch (changing.below(4)) {
    case 0: kind = Kind::eager, bytes = messages::cell_payload + 1 + changing.below(60'000'000); break;
    case 1: kind = Kind(changing.below(2) ? 0 : 6 + changing.below(10)), bytes = changing.below(100); break;
    case 2: bytes = kind == Kind::fastbox ? 16 : 8; break;
    default: bytes = kind == Kind::fastbox ? 16 : 24; break;
  }
  std::memcpy(messages::payload_of(cell.record, bytes < 100 ? bytes : 0), note, sizeof note);
  cell.record.envelope = {5, 1, 0};
  cell.record.word.store(messages::record_word(kind, bytes), std::memory_order_relaxed);
}

// The last record of rank 1's ring for rank 0 says that it is longer than the ring.
bool damage_ring(Messenger& m, std::uint64_t context) {
  Record* last = nullptr;
  for (std::size_t at = 64; at < std::size_t{8} << 20; at += 64) {
    auto& record = *reinterpret_cast<Record*>(m.base(1) + at);
    if (record.envelope.context == context && messages::number_of(record.word.load(std::memory_order_relaxed)) &&
        (!last || record.word.load(std::memory_order_relaxed) > last->word.load(std::memory_order_relaxed)))
      last = &record;
  }
  if (!last) return false;
  const std::uint64_t word = last->word.load(std::memory_order_relaxed);
  auto& next = *reinterpret_cast<Record*>(reinterpret_cast<std::byte*>(last) +
                                          messages::record_length(messages::bytes_of(word)));
  next.word.store(messages::record_word(Kind::eager, 50'000'000, messages::number_of(word) + 1),
                  std::memory_order_release);
  return true;
}

TEST(Fuzzing, RecordsOfOthers) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const auto body = [&](team::Process& process, testing::PageBootstrap& bootstrap, int rank, int size) {
      auto team = creation::create_team(process, rank, size, bootstrap);
      auto messenger = Messenger::create(**team, bootstrap, false);
      Messenger& m = **messenger;
      constexpr std::uint64_t context = 0x7265636f7264;
      std::uint64_t word = 0, mailbox[2];
      const auto mine = std::uint64_t(reinterpret_cast<std::byte*>(&m.wake_word()) - m.base(rank)) -
                        offsetof(messages::MessageMailbox, wake_word);
      bootstrap.allgather(&mine, mailbox, sizeof mine);
      const bool ring = seed % 5 == 0;
      messages::Request r;
      r.member = 1 - rank;
      r.data = {reinterpret_cast<std::byte*>(&word), sizeof word, {}};
      for (int i = 0; ring && i < 8; ++i) {
        r.is_send = rank == 1;
        r.envelope = {context, 1, 0};
        m.start(r);
        m.wait(r);
      }
      bool good = true;
      if (rank == 1) {
        Changing changing(seed);
        auto& box = *reinterpret_cast<messages::MessageMailbox*>(m.base(0) + mailbox[0]);
        Cell& cell = reinterpret_cast<messages::MessageMailbox*>(m.base(1) + mailbox[1])->cell[messages::cells - 1];
        damage(cell, changing);
        const auto at = [&](messages::Reference of) -> Cell& {
          return *reinterpret_cast<Cell*>(m.base(int(of >> 48) - 1) + (of & 0xffff'ffff'ffff));
        };
        if (ring) good = damage_ring(m, context);
        else
          messages::enqueue(
              box, std::uint64_t{2} << 48 | std::uint64_t(reinterpret_cast<std::byte*>(&cell) - m.base(1)), at);
      }
      bootstrap.meet();
      if (rank == 0) {
        r.is_send = false;
        r.envelope = {context, 1, 0};
        m.start(r);
        try {
          m.wait(r);
          good = false;
        } catch (const team::Died& error) {
          m.abandon(r);
          good =
              std::string(error.what())
                  .find("(rank 1 of those on this node) has written data that are not a message") != std::string::npos;
        }
      }
      bootstrap.meet();
      return good;
    };
    EXPECT_EQ(testing::run_processes(2, 20, body), 0) << seed;
  }
}

}  // namespace
}  // namespace nearfield
