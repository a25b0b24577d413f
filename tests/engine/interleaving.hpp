// Explores every interleaving of small processes over a shared state: exhaustive tests of lock-free protocols.
//
// A protocol is a plain struct (no padding holes: it is hashed by its bytes) with
//   enum Step step(int process)     one access to shared memory by that process, or blocked, or finished
//   bool failed                     set by a step that finds something wrong
// Accesses are sequentially consistent: on x86 that holds for flags with one writer and release/acquire pairs, and
// for read-modify-writes; the engine uses nothing else.
#pragma once
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace nearfield::testing {

enum class Step { moved, blocked, finished };

struct Explored {
  std::size_t states = 0;
  bool failed = false, deadlocked = false;
  std::string trace;  // processes in the order of their steps, up to the failure
  bool good() const { return !failed && !deadlocked; }
};

template <class Protocol>
Explored explore(const Protocol& initial, int processes) {
  static_assert(std::is_trivially_copyable_v<Protocol>);
  struct Node {
    Protocol state;
    std::string trace;
  };
  auto bytes = [](const Protocol& state) { return std::string(reinterpret_cast<const char*>(&state), sizeof state); };
  Explored result;
  std::unordered_set<std::string> seen{bytes(initial)};
  std::vector<Node> open{{initial, {}}};
  while (!open.empty()) {
    const Node node = std::move(open.back());
    open.pop_back();
    ++result.states;
    bool moved = false, all_finished = true;
    for (int i = 0; i < processes; ++i) {
      Node next{node.state, node.trace + char('0' + i)};
      const Step step = next.state.step(i);
      all_finished &= step == Step::finished;
      if (step != Step::moved) continue;
      moved = true;
      if (next.state.failed) {
        result.failed = true;
        result.trace = next.trace;
        return result;
      }
      if (seen.insert(bytes(next.state)).second) open.push_back(std::move(next));
    }
    if (!moved && !all_finished) {
      result.deadlocked = true;
      result.trace = node.trace;
      return result;
    }
  }
  return result;
}

}  // namespace nearfield::testing
