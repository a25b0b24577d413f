#include "engine/creation/calibrating.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <new>

namespace nearfield::creation {
namespace {
constexpr std::size_t words_bytes = (sizeof(Calibration::ControlBlock) + 4095) / 4096 * 4096;
constexpr double implausible = 5000;  // ns of a line: a longer time means that a process has lost its CPU
}  // namespace

std::size_t Calibrating::bytes() { return words_bytes + Calibration::array_bytes; }

Calibrating::Calibrating(team::Process& process, int rank, int size) noexcept : process_(process) {
  if (rank != 0 || size < 2 || !process.settings().calibrate || process.has_calibrated()) return;
  try {
    memory::CopyBuffers& span = process.copy_buffers();
    auto words = process.arena().allocate_apart(bytes(), 4096, memory::Component::control);
    if (!words) return;
    std::memset(process.segment().base() + *words, 0, words_bytes + Calibration::array_bytes);
    new (process.segment().base() + *words) Calibration::ControlBlock{};
    const std::size_t wanted = span.span() / Calibration::array_bytes * Calibration::array_bytes;
    const std::size_t rooms = span.take(wanted);
    if (rooms) area_ = {*words, rooms, wanted};
    else process.arena().free(*words);
  } catch (const std::bad_alloc&) {  // without copy buffers nothing is measured
  }
}

Calibrating::~Calibrating() {
  if (!area_.words) return;
  process_.copy_buffers().put_back(area_.rooms, area_.room_bytes);
  process_.copy_buffers().rest();  // a program that sends nothing needs no copy buffers
  process_.arena().free(area_.words);
}

PairCosts Calibrating::run(int rank, const Area& area, std::byte* base) try {
  if (!area.words || process_.policy().oversubscribed) return {};
  Calibration pair{*reinterpret_cast<Calibration::ControlBlock*>(base + area.words),
                   base + area.words + words_bytes,
                   {base + area.rooms, area.room_bytes}};
  if (rank == 1) {
    pair.second();
    return {};
  }
  process_.begin_calibration();
  const double hour = double(std::time(nullptr) / 3600);
  auto found =
      pair.first([&](double line) { return line < implausible && to_be_measured(process_.machine(), line, hour); });
  if (!found || found->line >= implausible) return {};
  // The figures of siblings, which share private caches, say nothing about other cores. Virtual CPUs may be siblings
  // for a while only, and choices that are right for siblings take three times as long for others.
  const bool siblings = found->fill > 0 && found->left < found->own;
  found->hour = hour;
  if (found->fill > 0 && !siblings) process_.learn(*found);
  const PairCosts* const known = known_pair(process_.machine(), found->line);
  return known ? *known : siblings ? process_.machine().near_pair : *found;
} catch (const std::bad_alloc&) {
  return {};
}

}  // namespace nearfield::creation
