// Records in a ring: their layout, and that old data are never taken for a header.
#include "engine/messages/fastbox.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <random>
#include <span>
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
  EXPECT_EQ(bytes_of(word | sampled_record | ahead_of_next), 0x3ffffffu);
  EXPECT_EQ(kind_of(word | sampled_record | ahead_of_next), Kind::skip);
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
    box.writer.publish(record, Kind::eager, bytes, random() % 8 ? 0 : sampled_record);
    number = number_of(record->word.load());
    looked_like_headers += number_of(old) == number + 1;
    sent.push_back(std::move(payload));
    while (!sent.empty() && random() % 4) ASSERT_NO_FATAL_FAILURE(receive());
    ASSERT_TRUE(!sent.empty() || !box.reader.look(word)) << "after " << i;
  }
  EXPECT_GT(looked_like_headers, 20);
}

TEST(Fastbox, TellsHowLongASampleTookIfItWasAwaited) {
  Box box;
  std::uint64_t word;
  for (std::uint64_t i = 1; i < 5; ++i) {
    Record* const record = box.writer.reserve(100);
    if (i > 1) box.writer.begin_sample();
    box.writer.publish(record, Kind::eager, 100, i > 1 ? sampled_record : 0);
    ASSERT_TRUE(box.reader.look(word));
    if (i == 4) box.ring->sampled_at.store(processor::ticks() + 1000000);  // another processor's clock
    box.reader.take(word, i != 2);
    EXPECT_EQ(box.writer.record_sample() >> 32, i - 1);
    EXPECT_EQ((box.writer.record_sample() & 0xffffffff) == not_drained, i == 2 || i == 4) << i;
  }
  EXPECT_EQ(box.writer.sample(), 0u);
}

// ---------------------------------------------------------------- publication

// The kind that most of 20000 records end with, where one takes so many ticks by kind, 0: it was not awaited. The
// receiver does as the record before has said. `samples`: how many there were.
int settled(PublicationTrials& trials, Box& box, std::size_t bytes,
            const std::array<unsigned, std::size(publications)>& ticks, int* samples = nullptr) {
  int taken[std::size(publications)] = {};
  bool ahead = false;
  for (int i = 0; i < 20000; ++i) {
    const PublicationStep step = trials.next(bytes, box.writer);
    const bool sample = step.marks & sampled_record;
    if (sample) {
      EXPECT_EQ(ahead, publications[step.kind].ahead);
    }
    ahead = step.marks & ahead_of_next;
    taken[step.kind] += i >= 19000;
    if (!sample) continue;
    if (samples) ++*samples;
    const std::uint64_t number = (box.ring->record_sample.load() >> 32) + 1;
    box.ring->record_sample.store(number << 32 | (ticks[step.kind] ? ticks[step.kind] : not_drained));
  }
  return int(std::max_element(std::begin(taken), std::end(taken)) - std::begin(taken));
}

TEST(Publication, TakesWhatCostsLeastAndFollowsAChange) {
  Box box;
  PublicationTrials trials(5);
  EXPECT_EQ(settled(trials, box, 128, {400, 350, 500, 300, 390}), 3);
  EXPECT_EQ(settled(trials, box, 100, {400, 350, 500, 300, 390}), 3);
  EXPECT_EQ(settled(trials, box, 1024, {1400, 1395, 1390, 1390, 1390}), 0);
  EXPECT_EQ(settled(trials, box, 512, {1400, 1395, 1200, 1390, 1390}), 2);
  EXPECT_EQ(settled(trials, box, 128, {400, 300, 500, 900, 900}), 1);
}

TEST(Publication, TriesNoKindThatTheProcessorLacks) {
  Box box;
  PublicationTrials trials(2);
  EXPECT_EQ(settled(trials, box, 256, {400, 300, 1, 1, 1}), 1);
}

TEST(Publication, AsksSeldomWhereNothingIsAwaited) {
  Box box;
  PublicationTrials trials(5);
  int samples = 0;
  EXPECT_EQ(settled(trials, box, 2000, {}, &samples), 0);
  EXPECT_LT(samples, 20);
}

TEST(Publication, WaitsForNoAnswer) {
  Box box;
  PublicationTrials trials(4);
  int samples = 0;
  for (int i = 0; i < 1000; ++i) samples += (trials.next(128, box.writer).marks & sampled_record) != 0;
  EXPECT_EQ(samples, 1);
}

}  // namespace
}  // namespace nearfield::messages
