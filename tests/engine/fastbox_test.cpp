// Records in a ring: their layout, and that old data are never taken for a header.
#include "engine/messages/fastbox.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "engine/messages/publication.hpp"

namespace nearfield::messages {
namespace {

TEST(Record, TakesNoLineMoreThanEnvelopeAndPayloadNeed) {
  for (std::size_t bytes = 0; bytes < 4096; ++bytes) {
    const std::size_t length = record_length(bytes), place = place_of_payload(bytes);
    EXPECT_EQ(length, (record_header + bytes + 63) / 64 * 64) << bytes;
    EXPECT_GE(place, record_header) << bytes;
    EXPECT_LE(place + bytes, length) << bytes;
    EXPECT_TRUE(bytes % 64 || place == 64) << bytes;
    EXPECT_TRUE(bytes > room_beside || place + bytes == 64) << bytes;
  }
}

TEST(Record, HasAllOfItsWord) {
  const std::uint64_t word = record_word(Kind::skip, 0x3ffffff, 0xffffffff);
  EXPECT_EQ(number_of(word), 0xffffffffu);
  EXPECT_EQ(kind_of(word), Kind::skip);
  EXPECT_EQ(bytes_of(word), 0x3ffffffu);
  EXPECT_EQ(bytes_of(word | ahead_of_next), 0x3ffffffu);
  EXPECT_EQ(kind_of(word | ahead_of_next), Kind::skip);
}

// A ring in memory that was used before.
struct Box {
  static constexpr std::uint64_t capacity = 4096;
  alignas(line) std::byte memory[sizeof(Ring) + capacity];
  Ring* const ring = reinterpret_cast<Ring*>(memory);
  FastboxWriter writer;
  FastboxReader reader;
  Box() {
    for (std::uint64_t at = 0; at < sizeof memory; at += 8) {
      const std::uint64_t old = record_word(Kind::eager, 8, 1);
      std::memcpy(memory + at, &old, sizeof old);
    }
    writer = FastboxWriter(ring, capacity);
    reader = FastboxReader(ring, capacity);
  }
  std::uint64_t word_at(std::uint64_t position) const {
    std::uint64_t word;
    std::memcpy(&word, ring->data + position % capacity, sizeof word);
    return word;
  }
};

// What would be headers of one of the next records, wherever a line of the record begins.
std::vector<std::byte> misleading(std::size_t bytes, std::uint32_t number, std::mt19937& random) {
  std::vector<std::byte> payload(bytes);
  for (std::byte& each : payload) each = std::byte(random());
  for (std::size_t at = 64 - place_of_payload(bytes) % 64; at + 8 <= bytes; at += 64) {
    const std::uint64_t word = record_word(Kind::eager, 8, number + std::uint32_t(random() % 70));
    std::memcpy(&payload[at], &word, sizeof word);
  }
  return payload;
}

TEST(Fastbox, OldDataAreNeverTakenForAHeader) {
  std::mt19937 random(7);
  Box box;
  std::deque<std::vector<std::byte>> sent;
  std::uint64_t word;
  int looked_like_headers = 0;
  const auto receive = [&] {
    const Record* const record = box.reader.look(word);
    ASSERT_TRUE(record);
    ASSERT_EQ(bytes_of(word), sent.front().size());
    EXPECT_TRUE(std::ranges::equal(sent.front(), std::span(payload_of(*record, bytes_of(word)), bytes_of(word))));
    box.reader.take(word);
    sent.pop_front();
  };
  std::uint32_t number = 0;  // of the last record
  for (int i = 0; i < 20000; ++i) {
    const std::size_t bytes = random() % 3 ? random() % 100 : random() % largest_payload(Box::capacity);
    Record* record;
    while (!(record = box.writer.reserve(bytes))) ASSERT_NO_FATAL_FAILURE(receive());
    auto payload = misleading(bytes, number + 2, random);
    std::ranges::copy(payload, payload_of(*record, bytes));
    const auto begin = std::uint64_t(reinterpret_cast<std::byte*>(record) - box.ring->data);
    const std::uint64_t old = box.word_at(begin + record_length(bytes));
    box.writer.publish(record, Kind::eager, bytes, random() % 8 ? 0 : ahead_of_next);
    number = number_of(record->word.load());
    looked_like_headers += number_of(old) == number + 1;
    sent.push_back(std::move(payload));
    while (!sent.empty() && random() % 4) ASSERT_NO_FATAL_FAILURE(receive());
    ASSERT_TRUE(!sent.empty() || !box.reader.look(word)) << "after " << i;
  }
  EXPECT_GT(looked_like_headers, 20);
}

// ---------------------------------------------------------------- publication

TEST(Publications, FollowFromLength) {
  const Publications publications(Publishing::automatic, false);
  const bool demotes = processor::can_demote();
  EXPECT_STREQ(publications.of(room_beside).name, "keep");
  const std::size_t four_lines = 4 * 64 - record_header;
  for (const std::size_t bytes : {room_beside + 1, four_lines})
    EXPECT_STREQ(publications.of(bytes).name, demotes ? "demote" : "ahead") << bytes;
  for (const std::size_t bytes : {four_lines + 1, std::size_t{4096}})
    EXPECT_STREQ(publications.of(bytes).name, demotes ? "demote" : "keep") << bytes;
}

TEST(Publications, AreKeptWhereRanksShareCaches) {
  const Publications publications(Publishing::automatic, true);
  for (const std::size_t bytes : {8, 64, 1024, 4096}) EXPECT_STREQ(publications.of(bytes).name, "keep") << bytes;
}

TEST(Publications, AreWhatASettingSays) {
  for (const auto forced : {Publishing::keep, Publishing::ahead, Publishing::demote})
    for (const bool oversubscribed : {false, true}) {
      const Publications publications(forced, oversubscribed);
      const std::string name = messages::publications[int(forced) - 1].name;
      EXPECT_EQ(publications.of(64).name, name);
      EXPECT_EQ(publications.of(4096).name, name);
      EXPECT_STREQ(publications.of(8).name, "keep");
    }
}

}  // namespace
}  // namespace nearfield::messages
