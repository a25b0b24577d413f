#include "tests/engine/model/explore.hpp"
#include "tests/engine/model/atomic_ref.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#undef syscall
#undef clock_gettime

extern "C" void nearfield_switch(void** from, void* to);
asm(R"(
  .text
  .type nearfield_switch, @function
nearfield_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size nearfield_switch, . - nearfield_switch
)");

namespace nearfield::testing {
namespace {

constexpr int most = 4;
constexpr std::size_t stack_bytes = 512 << 10;
constexpr int most_naps = 8;
constexpr int no_step = 1 << 20;

using RemoteBuffer = std::uint64_t;

struct Mapping {
  const std::byte* base;
  std::size_t bytes;
  int segment;
};
std::vector<Mapping> mappings;

RemoteBuffer place_of(const void* word) {
  const auto* at = static_cast<const std::byte*>(word);
  for (const Mapping& m : mappings)
    if (at >= m.base && at < m.base + m.bytes) return std::uint64_t(m.segment + 1) << 48 | std::uint64_t(at - m.base);
  return RemoteBuffer(at);
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 31) * 0x94d049bb133111ebu;
  return x ^ x >> 29;
}

std::uint64_t read(const void* word, unsigned size) {
  std::uint64_t value = 0;
  std::memcpy(&value, word, size);
  return value;
}

struct Stored {
  void* word;
  RemoteBuffer place;
  unsigned size;
  std::uint64_t value;
};
struct Looked {
  const void* word;
  RemoteBuffer place;
  unsigned size;
  std::uint64_t value;
};
// From which value of each word on a process may read: how many stores came before it.
class View {
 public:
  std::uint32_t of(RemoteBuffer place) const {
    const auto at = find(place);
    return at != known_.end() && at->first == place ? at->second : 0;
  }
  void set(RemoteBuffer place, std::uint32_t since) {
    auto at = find(place);
    if (at == known_.end() || at->first != place) at = known_.insert(at, {place, 0});
    hash_ += term(place, since) - term(place, at->second);
    at->second = since;
  }
  void learn(const View& other) {
    if (known_.empty()) return void(*this = other);
    for (const auto& [place, since] : other.known_)
      if (since > of(place)) set(place, since);
  }
  bool empty() const { return known_.empty(); }
  void clear() { *this = {}; }
  // Kept at every change: states are told apart at every step.
  std::uint64_t hash() const { return hash_; }

 private:
  using Known = std::vector<std::pair<RemoteBuffer, std::uint32_t>>;  // in the order of places
  static std::uint64_t term(RemoteBuffer place, std::uint32_t since) { return since ? mix(place, since) : 0; }
  static bool before(const Known::value_type& known, RemoteBuffer place) { return known.first < place; }
  Known::iterator find(RemoteBuffer place) { return std::lower_bound(known_.begin(), known_.end(), place, before); }
  Known::const_iterator find(RemoteBuffer place) const {
    return std::lower_bound(known_.begin(), known_.end(), place, before);
  }
  Known known_;
  std::uint64_t hash_ = 0;
};
// A value of a word, and what an acquire load of it learns.
struct Value {
  std::uint64_t value;
  View carried;
};
// The values of a word that some process may still read: the last one is number `dropped + values.size() - 1`.
struct History {
  std::uint32_t dropped = 0;
  std::vector<Value> values;
  std::uint32_t last() const { return dropped + std::uint32_t(values.size()) - 1; }
};

enum class Doing : std::uint8_t { stepping, updating, fencing_all, pausing, sleeping, finished };

struct Process {
  void* stack = nullptr;
  void* context = nullptr;
  Doing doing = Doing::stepping;  // what it wants to do next
  std::vector<Stored> buffer;
  std::vector<Looked> looked;  // since its last pause
  bool stored = false;         // since its last pause
  std::uint64_t seen = 0, seen_at_pause = 0;
  RemoteBuffer pending = 0;  // what it will load in its next step
  RemoteBuffer bed = 0;      // the futex it sleeps on
  bool woken = false;
  unsigned undrained = 0;  // whose buffers have not been empty since it began a barrier: a bit each
  // In the language's memory.
  View view;
  bool consistent = false;  // whether the load that it is about to do is sequentially consistent
  unsigned age = 0;         // of the value that it returns: 0 the last one
};

// Which processes load and store a word, in all runs so far. What no other process stores is loaded, and what no other
// process loads is handed out, without a choice; when one does so after all, exploring begins anew.
struct Use {
  std::uint8_t loaded = 0, stored = 0;
  bool taken_for_private = false;
};

struct Choice {
  std::uint8_t taken, of;
};

// States that have been seen: a table of their hashes, half of it empty at least.
class Seen {
 public:
  // Whether it is new.
  bool add(std::uint64_t state) {
    if (2 * ++count_ > table_.size()) grow();
    return put(state ? state : 1);
  }
  void clear() { *this = {}; }

 private:
  bool put(std::uint64_t state) {
    std::size_t at = state & (table_.size() - 1);
    for (; table_[at]; at = (at + 1) & (table_.size() - 1))
      if (table_[at] == state) return --count_, false;
    table_[at] = state;
    return true;
  }
  void grow() {
    const std::vector<std::uint64_t> before = std::exchange(table_, std::vector<std::uint64_t>(2 * table_.size()));
    for (const std::uint64_t state : before)
      if (state) put(state);
  }
  std::vector<std::uint64_t> table_ = std::vector<std::uint64_t>(1024);
  std::size_t count_ = 0;
};

struct Explorer {
  Explorer(const Options& chosen, Explored& told, int processes) : options(chosen), result(told), count(processes) {}
  const Options& options;
  Explored& result;
  int count;
  const std::function<void(int)>* body = nullptr;
  std::array<Process, most> process{};
  void* context = nullptr;
  int running = -1;  // the process whose fiber runs
  bool exploring = false, given_up = false;
  std::uint64_t memory = 0;  // hash of what has changed
  int naps = 0, preemptions = 0, last = -1;
  std::vector<Choice> path;
  Seen seen;
  std::vector<int> steps;
  std::unordered_map<RemoteBuffer, Use> uses;
  bool misjudged = false;
  std::map<RemoteBuffer, History> history;
  View consistent;  // the last sequentially consistent stores
  View fenced;      // what fences knew

  bool of_language() const { return options.memory == Memory::language; }
  History& history_of(void* word, RemoteBuffer place, unsigned size) {
    History& h = history[place];
    if (h.values.empty()) h.values.push_back({read(word, size), {}});
    return h;
  }
  // The oldest value that process p may read is so many stores old.
  unsigned oldest(const Process& p) const {
    const auto found = history.find(p.pending);
    if (found == history.end()) return 0;
    std::uint32_t since = found->second.dropped;
    since = std::max(since, p.view.of(p.pending));
    if (p.consistent) since = std::max(since, consistent.of(p.pending));
    return found->second.last() - since;
  }
  bool releases(std::memory_order order) const {
    return !options.mutation.no_release && order != std::memory_order_relaxed && order != std::memory_order_acquire &&
           order != std::memory_order_consume;
  }
  bool acquires(std::memory_order order) const {
    return !options.mutation.no_acquire && order != std::memory_order_relaxed && order != std::memory_order_release;
  }
  void store_value(Process& p, void* word, RemoteBuffer place, unsigned size, std::uint64_t value,
                   std::memory_order order, const View* continued) {
    History& h = history_of(word, place, size);
    Value fresh{value, continued ? *continued : View{}};
    p.view.set(place, h.last() + 1);
    if (releases(order)) fresh.carried.learn(p.view);
    h.values.push_back(std::move(fresh));
    if (order == std::memory_order_seq_cst) consistent.set(place, h.last());
    write(word, place, size, value);
    // What nobody can read any more. Who has never looked may read all.
    std::uint32_t needed = h.last();
    for (int i = 0; i < count; ++i) needed = std::min(needed, process[i].view.of(place));
    for (; h.dropped < needed; ++h.dropped) h.values.erase(h.values.begin());
  }
  std::uint64_t load_value(Process& p, RemoteBuffer place, std::memory_order order) {
    History& h = history[place];
    const std::uint32_t which = h.last() - p.age;
    const Value& found = h.values[which - h.dropped];
    p.view.set(place, which);
    if (acquires(order)) p.view.learn(found.carried);
    return found.value;
  }

  void give_way(Doing doing) {
    process[running].doing = doing;
    nearfield_switch(&process[running].context, context);
  }
  void resume(int i) {
    running = i;
    nearfield_switch(&context, process[i].context);
    running = -1;
  }
  std::string describe_steps() const {
    std::string text;
    for (const int choice : steps) {
      text += choice >= most ? " -" : choice < 0 ? " z" : " ";
      text += std::to_string(choice < 0 ? -1 - choice : choice % most);
    }
    return text;
  }
  void fail(const std::string& what) {
    result.failed = true;
    result.trace = what + ":" + describe_steps();
    given_up = true;
  }
  void write(void* word, RemoteBuffer place, unsigned size, std::uint64_t value) {
    memory ^= mix(mix(place, read(word, size)), 1) ^ mix(mix(place, value), 1);
    std::memcpy(word, &value, size);
  }
  void use(RemoteBuffer place, bool stores) {
    Use& u = uses[place];
    auto& by = stores ? u.stored : u.loaded;
    const auto me = std::uint8_t(1u << running);
    if (by & me) return;
    misjudged |= u.taken_for_private || (of_language() && stores && by);  // its stores have an order after all
    by |= me;
  }
  bool alone(RemoteBuffer place, int i, bool stores) {
    const auto found = uses.find(place);
    if (found == uses.end()) return false;
    Use& u = found->second;
    const unsigned others = stores ? u.loaded | u.stored : u.stored;
    if (others & ~(1u << i)) return false;
    return u.taken_for_private = true;
  }
  // A step that concerns nobody else, or no_step.
  int find_private() {
    for (int i = 0; i < count; ++i) {
      const Process& p = process[i];
      if (p.doing == Doing::stepping && p.pending && alone(p.pending, i, false)) return i;
      if (!p.buffer.empty() && alone(p.buffer.front().place, i, true)) return i + most;
    }
    return no_step;
  }
  void note(Process& p, Access kind, RemoteBuffer place, std::uint64_t value) {
    p.seen = mix(p.seen, mix(place * 8 + std::uint64_t(kind), value));
  }

  // ---------------------------------------------------------------- what fibers ask for
  std::uint64_t access(Access kind, void* word, unsigned size, std::uint64_t value, std::uint64_t expected,
                       std::memory_order order) {
    Process& p = process[running];
    const RemoteBuffer place = place_of(word);
    if (kind == Access::store) {
      if (options.mutation.no_zeros && value == 0) return 0;
      use(place, true);
      note(p, kind, place, value);
      p.stored = true;
      if (of_language()) {
        // What others store too has an order, which is theirs to choose as well.
        if (order == std::memory_order_seq_cst || uses[place].stored & ~(1u << running)) give_way(Doing::updating);
        store_value(p, word, place, size, value, order, nullptr);
        if (options.pause_after_stores) give_way(Doing::stepping);
        return 0;
      }
      if (!options.store_buffers) {
        give_way(Doing::stepping);
        note(p, kind, place, value);
        write(word, place, size, value);
        return 0;
      }
      p.buffer.push_back({word, place, size, value});
      if (order == std::memory_order_seq_cst) {
        give_way(Doing::updating);
        note(p, kind, place, value);  // it waits no more, though it may be about to wait for the same again
      } else if (options.pause_after_stores) {
        give_way(Doing::stepping);
      }
      return 0;
    }
    if (kind == Access::load) {
      for (std::size_t i = p.buffer.size(); i-- > 0;)
        if (p.buffer[i].place == place) return p.buffer[i].value;
      use(place, false);
      p.pending = place;
      p.consistent = order == std::memory_order_seq_cst;
      p.age = 0;
      if (of_language()) history_of(word, place, size);
      give_way(Doing::stepping);
      p.pending = 0;
      const std::uint64_t was = of_language() ? load_value(p, place, order) : read(word, size);
      note(p, kind, place, was);
      p.looked.push_back({word, place, size, was});
      return was;
    }
    use(place, true);
    use(place, false);
    give_way(Doing::updating);
    const std::uint64_t was = read(word, size);
    const std::uint64_t mask = size == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << size * 8) - 1;
    p.stored = true;
    note(p, kind, place, was);
    p.looked.push_back({word, place, size, was});
    if (options.mutation.split_updates) {
      give_way(Doing::stepping);
      note(p, Access::store, place, 0);
    }
    const bool stores = kind != Access::compare || was == expected || options.mutation.blind_compares;
    const std::uint64_t becomes = kind == Access::add ? (was + value) & mask : value;
    if (of_language()) {
      p.age = 0;
      history_of(word, place, size);
      load_value(p, place, order);
      const View continued = history[place].values.back().carried;
      if (stores) store_value(p, word, place, size, becomes, order, &continued);
    } else if (stores) {
      write(word, place, size, becomes);
    }
    return kind == Access::compare && options.mutation.blind_compares ? expected : was;
  }

  void fence() {
    Process& p = process[running];
    give_way(Doing::updating);
    fenced.learn(p.view);
    p.view = fenced;
    note(p, Access::load, 3, 0);
  }
  // Every process passes a fence at some moment while this one is in it.
  void fence_all() {
    Process& p = process[running];
    give_way(Doing::updating);
    if (options.mutation.no_barriers) return;
    for (int i = 0; i < count; ++i) p.undrained |= unsigned(!process[i].buffer.empty()) << i;
    give_way(Doing::fencing_all);
    for (int i = 0; i < count; ++i) fenced.learn(process[i].view);
    for (int i = 0; i < count; ++i) process[i].view = fenced;
    note(p, Access::load, 2, 0);
  }

  void pause() {
    Process& p = process[running];
    // As if it had not looked in this round. What it saw in the first one stays: without its last look, states were
    // taken for others, and a reader that is waited for in vain was not found.
    if (!p.stored && p.seen_at_pause) p.seen = p.seen_at_pause;
    else p.seen_at_pause = p.seen;
    p.stored = false;
    // One word more than once: what was seen last.
    for (std::size_t i = 0; i < p.looked.size(); ++i)
      for (std::size_t j = i + 1; j < p.looked.size(); ++j)
        if (p.looked[i].place == p.looked[j].place) {
          p.looked[i].value = p.looked[j].value;
          p.looked.erase(p.looked.begin() + long(j--));
        }
    give_way(Doing::pausing);
    p.looked.clear();
  }

  void sleep(void* word, std::uint32_t expected) {
    Process& p = process[running];
    give_way(Doing::updating);  // the kernel takes a lock before it looks
    const std::uint32_t now = std::uint32_t(read(word, 4));
    note(p, Access::load, place_of(word), now);
    if (now != expected) return;
    p.bed = place_of(word);
    p.woken = false;
    give_way(Doing::sleeping);
    p.bed = 0;
    note(p, Access::load, 1, p.woken);
  }
  void wake(void* word) {
    give_way(Doing::updating);
    note(process[running], Access::store, 1, 0);
    if (options.mutation.no_wakes) return;
    for (int i = 0; i < count; ++i)
      if (process[i].doing == Doing::sleeping && process[i].bed == place_of(word)) process[i].woken = true;
  }

  // ---------------------------------------------------------------- choices
  // A step of process i: i; its oldest stores handed out, or a step with an older value: i + most * (1 + which); the
  // end of its nap: -1 - i.
  bool can_step(int i) const {
    const Process& p = process[i];
    switch (p.doing) {
      case Doing::stepping: return true;
      case Doing::updating: return p.buffer.empty();
      case Doing::fencing_all: return p.undrained == 0;
      case Doing::pausing:
        return std::ranges::any_of(p.looked, [](const Looked& l) { return read(l.word, l.size) != l.value; });
      case Doing::sleeping: return p.woken;
      default: return false;
    }
  }
  void list_choices(std::vector<int>& choices) const {
    choices.clear();
    for (int k = 0; k < count; ++k) {
      const int i = (std::max(last, 0) + k) % count;
      const bool preempts = last >= 0 && i != last && can_step(last);
      if (can_step(i) && (!preempts || options.preemptions < 0 || preemptions < options.preemptions))
        choices.push_back(i);
      else continue;
      if (of_language() && process[i].doing == Doing::stepping && process[i].pending)
        for (unsigned age = 1; age <= oldest(process[i]); ++age) choices.push_back(i + most * int(age));
    }
    for (int i = 0; i < count; ++i) {
      const auto& buffer = process[i].buffer;
      for (std::size_t n = 0; n < buffer.size() && (n == 0 || options.mutation.unordered); ++n) {
        const bool overtakes = std::any_of(buffer.begin(), buffer.begin() + long(n),
                                           [&](const Stored& s) { return s.place == buffer[n].place; });
        if (!overtakes) choices.push_back(i + most * int(1 + n));
      }
    }
    if (!choices.empty()) return;
    for (int i = 0; i < count; ++i)
      if (process[i].doing == Doing::sleeping) choices.push_back(-1 - i);
  }
  std::uint64_t state() const {
    std::uint64_t hash = mix(memory, std::uint64_t(naps));
    if (options.preemptions >= 0) hash = mix(hash, std::uint64_t(preemptions * most + last + 1));
    for (int i = 0; i < count; ++i) {
      const Process& p = process[i];
      hash = mix(mix(hash, mix(p.seen, p.pending)), (std::uint64_t(p.doing) * 2 + p.woken) << most | p.undrained);
      if (p.doing == Doing::pausing)
        for (const Looked& l : p.looked) hash = mix(hash, mix(l.place, l.value));
      for (const Stored& s : p.buffer) hash = mix(hash, mix(s.place, s.value) + 1);
      if (of_language()) hash = mix(mix(hash, p.view.hash()), p.consistent);
    }
    if (!of_language()) return hash;
    hash = mix(mix(hash, consistent.hash()), fenced.hash());
    for (const auto& [place, h] : history) {
      if (h.values.size() < 2 && h.values.front().carried.empty()) continue;
      hash = mix(hash, mix(place, h.dropped));
      for (const Value& v : h.values) hash = mix(hash, mix(v.value, v.carried.hash()));
    }
    return hash;
  }
  void take(int choice) {
    steps.push_back(choice);
    if (choice >= most && of_language()) {
      process[choice % most].age = unsigned(choice / most);
      last = choice % most;
      return resume(last);
    }
    if (choice >= most) {
      Process& p = process[choice % most];
      const auto which = p.buffer.begin() + (choice / most - 1);
      const Stored s = *which;
      p.buffer.erase(which);
      write(s.word, s.place, s.size, s.value);
      if (p.buffer.empty())
        for (int i = 0; i < count; ++i) process[i].undrained &= ~(1u << choice % most);
      return;
    }
    if (choice < 0) {
      if (++naps > most_naps) return fail("a process sleeps for ever");
      result.naps = std::max(result.naps, naps);
      return resume(-1 - choice);
    }
    if (last >= 0 && choice != last && can_step(last)) ++preemptions;
    last = choice;
    resume(choice);
  }

  // ---------------------------------------------------------------- one run
  [[noreturn]] void live(int i);
  void start(int i);
  void run(const std::function<void(int)>& of) {
    body = &of;
    given_up = false;
    memory = 0;
    history.clear();
    consistent.clear();
    fenced.clear();
    naps = preemptions = 0;
    last = -1;
    steps.clear();
    exploring = true;
    for (int i = 0; i < count; ++i) start(i);
    for (int i = 0; i < count && !given_up; ++i) resume(i);
    std::vector<int> choices;
    for (std::size_t depth = 0; !given_up && !misjudged; ++depth) {
      for (int step = find_private(); step != no_step && !given_up && !misjudged; step = find_private()) take(step);
      if (given_up || misjudged) break;
      list_choices(choices);
      if (choices.empty()) {
        if (depth >= path.size() && seen.add(state())) ++result.states;
        if (!std::all_of(process.begin(), process.begin() + count,
                         [](const Process& p) { return p.doing == Doing::finished; })) {
          result.deadlocked = true;
          result.trace = "deadlock:" + describe_steps();
        }
        break;
      }
      if (depth >= path.size()) {
        if (!seen.add(state())) break;
        ++result.states;
        path.push_back({0, std::uint8_t(choices.size())});
      }
      take(choices[path[depth].taken]);
    }
    exploring = false;
    ++result.runs;
  }
  bool next_path() {
    if (std::exchange(misjudged, false)) {
      for (auto& [place, u] : uses) u.taken_for_private = false;
      path.clear();
      seen.clear();
      result = {};
      return true;
    }
    while (!path.empty() && path.back().taken + 1 == path.back().of) path.pop_back();
    if (path.empty()) return false;
    ++path.back().taken;
    return true;
  }
};

Explorer* explorer = nullptr;

void begin_life() { explorer->live(explorer->running); }

void Explorer::live(int i) {
  try {
    (*body)(i);
  } catch (const std::exception& e) {
    fail(e.what());
  }
  for (;;) give_way(Doing::finished);
}

void Explorer::start(int i) {
  Process& p = process[i];
  static std::array<void*, most> stacks{};
  if (!stacks[i])
    stacks[i] = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  p = Process{};
  p.stack = stacks[i];
  auto** top = reinterpret_cast<void**>(static_cast<std::byte*>(p.stack) + stack_bytes);
  *--top = nullptr;  // where it would return to
  *--top = reinterpret_cast<void*>(&begin_life);
  for (int k = 0; k < 6; ++k) *--top = nullptr;
  p.context = top;
}

bool in_fiber() { return explorer && explorer->exploring && explorer->running >= 0; }

}  // namespace

std::uint64_t access(Access kind, void* word, unsigned size, std::uint64_t value, std::uint64_t expected,
                     std::memory_order order) {
  if (in_fiber()) return explorer->access(kind, word, size, value, expected, order);
  const std::uint64_t was = read(word, size);
  if (kind == Access::add) value += was;
  if (kind != Access::load && (kind != Access::compare || was == expected)) std::memcpy(word, &value, size);
  return was;
}

void pause_process() {
  if (in_fiber()) explorer->pause();
  else let_others_run();
}

void fence_process() {
  if (in_fiber()) explorer->fence();
}

int read_clock(clockid_t clock, timespec* time) {
  if (!in_fiber()) return ::clock_gettime(clock, time);
  *time = {1, 0};
  return 0;
}

long system_call(long number, std::initializer_list<long> arguments) {
  long argument[6] = {};
  std::ranges::copy(arguments, argument);
  if (number == SYS_sched_yield) {
    pause_process();
    return 0;
  }
  if (number == SYS_membarrier) {
    if (in_fiber() && argument[0] == MEMBARRIER_CMD_GLOBAL_EXPEDITED) explorer->fence_all();
    return 0;
  }
  if (number != SYS_futex || !in_fiber())
    return ::syscall(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
  auto* const word = reinterpret_cast<void*>(argument[0]);
  if ((argument[1] & FUTEX_CMD_MASK) == FUTEX_WAIT) explorer->sleep(word, std::uint32_t(argument[2]));
  else explorer->wake(word);
  return 0;
}

Explored explore(int count, const std::function<std::function<void(int)>()>& begin, const Options& options) {
  Explored result;
  Explorer here(options, result, count);
  do {
    explorer = nullptr;
    const std::function<void(int)> body = begin();
    explorer = &here;
    here.run(body);
  } while ((result.good() || here.misjudged) && here.next_path());
  explorer = nullptr;
  record(count, options, result);
  return result;
}

void require(bool holds, const char* what) {
  if (holds) return;
  explorer->fail(what);
  explorer->give_way(Doing::finished);
}

void know_mapping(const void* base, std::size_t bytes, int segment) {
  mappings.push_back({static_cast<const std::byte*>(base), bytes, segment});
}

void forget_mappings() { mappings.clear(); }

void run_in_turn(int count, const std::function<void(int)>& body) {
  const Options options;
  Explored result;
  Explorer here(options, result, count);
  Explorer* const before = std::exchange(explorer, &here);
  here.body = &body;
  for (int i = 0; i < count; ++i) here.start(i);
  for (bool alive = true; alive;) {
    alive = false;
    for (int i = 0; i < count; ++i) {
      if (here.process[i].doing == Doing::finished) continue;
      alive = true;
      here.resume(i);
    }
  }
  explorer = before;
  if (!result.good()) throw std::runtime_error("before exploring: " + result.trace);
}

void let_others_run() {
  if (explorer && explorer->running >= 0) explorer->give_way(Doing::stepping);
}

}  // namespace nearfield::testing
