// Tells GoogleTest's report what was explored, for scripts/proofs.py.
#include <gtest/gtest.h>

#include <string>

#include "tests/engine/model/explore.hpp"

namespace nearfield::testing {
namespace {

std::string names_of(const Mutation& mutation) {
  std::string names;
  auto add = [&](bool set, const char* name) {
    if (set) names += (names.empty() ? "" : ",") + std::string(name);
  };
  add(mutation.split_updates, "split_updates");
  add(mutation.blind_compares, "blind_compares");
  add(mutation.unordered, "unordered");
  add(mutation.no_wakes, "no_wakes");
  add(mutation.no_zeros, "no_zeros");
  add(mutation.no_release, "no_release");
  add(mutation.no_acquire, "no_acquire");
  add(mutation.no_barriers, "no_barriers");
  return names.empty() ? "none" : names;
}

const char* name_of(const Options& options) {
  if (options.memory == Memory::language) return "language";
  return options.store_buffers ? "x86" : "in_order";
}

}  // namespace

void record(int count, const Options& options, const Explored& explored) {
  static int number = 0;
  std::string text = "members=" + std::to_string(count) + " memory=" + name_of(options) +
                     " preemptions=" + (options.preemptions < 0 ? "any" : std::to_string(options.preemptions)) +
                     " mutation=" + names_of(options.mutation) + " states=" + std::to_string(explored.states) +
                     " runs=" + std::to_string(explored.runs) + " naps=" + std::to_string(explored.naps);
  // What was wrong; the steps to it follow a colon.
  if (!explored.good()) text += " found=" + explored.trace.substr(0, explored.trace.rfind(':'));
  ::testing::Test::RecordProperty("explored " + std::to_string(number++), text);
}

}  // namespace nearfield::testing
