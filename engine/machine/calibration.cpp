#include "engine/machine/calibration.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/base/clock.hpp"
#include "engine/processor/processor.h"

namespace nearfield::machine {
namespace {

constexpr int batches = 7, in_batch = 40, rounds = 15;
constexpr std::size_t piece = Calibration::piece;

double median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// ns per byte
template <class Work>
double timed(Work work) {
  const std::uint64_t start = nanoseconds();
  work();
  processor::await_all();
  return double(nanoseconds() - start) / double(piece);
}

void write(std::byte* to, int value) {
  std::memset(to, value, 256);
  for (std::size_t at = 256; at < piece; at += 256) copying::copy(to + at, to, 256, copying::Store::vector);
}

// A multiple of the kinds, so that each room is filled again by the kind that it was filled by before.
std::size_t rooms_in_a_lap(std::size_t bytes) {
  constexpr std::size_t kinds = copying::handover_kinds.size();
  return bytes / piece / kinds * kinds;
}

}  // namespace

bool Calibration::wait(int whom, std::uint64_t value) {
  for (unsigned looks = 1; words_.turn[whom][0].load(std::memory_order_acquire) < value; ++looks) {  // SYNC: turn
    processor::pause();
    if (looks % 64 == 0 && nanoseconds() > until_) return false;
  }
  return true;
}

bool Calibration::step(int me) {
  if (me == 1 && steps_ == 0) return wait(0, ++steps_);
  words_.turn[me][0].store(me == 0 ? ++steps_ : steps_++, std::memory_order_release);  // SYNC: turn
  return wait(1 - me, steps_);
}

std::optional<PairCosts> Calibration::first(const std::function<std::span<std::byte>(double line)>& memory) {
  PairCosts found;
  until_ = nanoseconds() + patience_of_line;
  if (!step(0)) return {};
  std::vector<double> times;
  for (int batch = 0; batch < batches; ++batch) {
    const std::uint64_t start = nanoseconds();
    for (int i = 0; i < in_batch; ++i)
      if (!step(0)) return {};
    times.push_back(double(nanoseconds() - start) / (2 * in_batch));
  }
  found.line = median(times);
  const std::span<std::byte> shared = memory(found.line);
  words_.offset = shared.empty() ? 0 : std::uint64_t(shared.data() - base_);
  words_.bytes = shared.size();
  until_ = nanoseconds() + patience_of_line;
  if (!step(0)) return {};
  if (shared.empty()) return found;

  until_ = nanoseconds() + patience;
  std::byte* const array = shared.data();  // later one of the rooms
  const auto own = std::make_unique<std::byte[]>(piece);
  auto some = [&](auto work) {
    times.clear();
    for (int i = 0; i < rounds; ++i) times.push_back(timed([&] { work(i); }));
    return median(times);
  };
  const double alone = some([&](int i) { write(array, i); });
  found.own = some([&](int) { copying::copy(own.get(), array, piece, copying::Store::vector); });
  times.clear();
  for (int i = 0; i < rounds; ++i) {
    times.push_back(timed([&] { write(array, i); }));
    if (!step(0)) return {};
  }
  found.left = std::max(0.0, median(times) - alone);
  std::vector<double> fills[copying::handover_kinds.size()];
  const std::size_t lap = rooms_in_a_lap(shared.size());
  for (std::size_t i = 0; i < 2 * lap; ++i) {
    const std::size_t kind = i % copying::handover_kinds.size();
    const double time = timed(
        [&] { copying::copy(shared.data() + i % lap * piece, own.get(), piece, copying::handover_kinds[kind].fill); });
    if (i >= lap) fills[kind].push_back(time);
    if (!step(0)) return {};
  }
  if (!step(0)) return {};
  found.copy = words_.copy;
  for (std::size_t k = 0; k < copying::handover_kinds.size(); ++k) {
    const double fill = median(fills[k]), empty = words_.empty[k];
    if (fill > 0 && (k == 0 || fill + empty < found.fill + found.empty))
      found.fill = fill, found.empty = empty, found.kind = double(k);
  }
  return found;
}

bool Calibration::second() {
  until_ = nanoseconds() + patience_of_line;
  if (!step(1)) return false;
  for (int i = 0; i < batches * in_batch; ++i)
    if (!step(1)) return false;
  until_ = nanoseconds() + patience;  // the first takes memory
  if (!step(1)) return false;
  if (words_.bytes == 0) return end();

  until_ = nanoseconds() + patience;
  const std::span<std::byte> shared(base_ + words_.offset, words_.bytes);
  std::byte* const array = shared.data();
  const auto own = std::make_unique<std::byte[]>(piece);
  std::memset(own.get(), 0, piece);
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    if (!step(1)) return false;
    times.push_back(timed([&] { copying::copy(own.get(), array, piece); }));
  }
  words_.copy = median(times);
  std::vector<double> empties[copying::handover_kinds.size()];
  const std::size_t lap = rooms_in_a_lap(shared.size());
  for (std::size_t i = 0; i < 2 * lap; ++i) {
    if (!step(1)) return false;
    const std::size_t kind = i % copying::handover_kinds.size();
    const double time = timed(
        [&] { copying::copy(own.get(), shared.data() + i % lap * piece, piece, copying::handover_kinds[kind].drain); });
    if (i >= lap) empties[kind].push_back(time);
  }
  for (std::size_t k = 0; k < copying::handover_kinds.size(); ++k) words_.empty[k] = median(empties[k]);
  return step(1) && end();
}

// Completes the first's last wait; the turn does not come back.
bool Calibration::end() {
  words_.turn[1][0].store(steps_, std::memory_order_release);  // SYNC: turn
  return true;
}

}  // namespace nearfield::machine
