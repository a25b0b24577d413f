#include "engine/creation/calibrating.hpp"

#include <ctime>
#include <new>

namespace nearfield::creation {
namespace {
constexpr double implausible = 5000;  // ns of a line: a longer time means that a process has lost its CPU
}  // namespace

bool Calibrating::is_wanted(int size) const {
  return size > 1 && process_.settings().calibrate && !process_.has_calibrated() && !process_.policy().oversubscribed;
}

Calibrating::~Calibrating() {
  if (!offset_) return;
  process_.copy_buffers().put_back(offset_, bytes_);
  process_.copy_buffers().rest();  // a program that sends nothing needs no copy buffers
}

// All of the copy buffers, so that each has rested when it is filled again. Nothing where there is no memory.
std::span<std::byte> Calibrating::take_memory() {
  memory::CopyBuffers& buffers = process_.copy_buffers();
  bytes_ = buffers.span() / Calibration::piece * Calibration::piece;
  if (bytes_ >= 2 * Calibration::piece) offset_ = buffers.take(bytes_);
  if (!offset_) return {};
  return {process_.segment().base() + offset_, bytes_};
}

PairCosts Calibrating::run(int rank, ControlBlock& control, std::byte* base) try {
  if (!control.wanted || process_.policy().oversubscribed) return {};
  Calibration pair(control.words, base);
  if (rank == 1) {
    pair.second();
    return {};
  }
  process_.begin_calibration();
  const double hour = double(std::time(nullptr) / 3600);
  auto found = pair.first([&](double line) {
    const bool known = line >= implausible || !to_be_measured(process_.machine(), line, hour);
    return known ? std::span<std::byte>() : take_memory();
  });
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
