#include "tests/engine/model/members.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <stdexcept>

#include "engine/creation/create.hpp"

// The linker puts these in place of the kernel's (--wrap): a run's memory is there from the first run on, and renew()
// gives it its zeros. The kernel's took two thirds of the models' time.
extern "C" {
int __wrap_fallocate(int, int, long, long);                // NOLINT(bugprone-reserved-identifier): the linker's name
int __wrap_madvise(void*, std::size_t, int);               // NOLINT(bugprone-reserved-identifier)
int __wrap_fallocate(int, int, long, long) { return 0; }   // NOLINT(bugprone-reserved-identifier)
int __wrap_madvise(void*, std::size_t, int) { return 0; }  // NOLINT(bugprone-reserved-identifier)

// Stacks of bodies are those of earlier runs: the kernel's took 30 of 55 seconds of the models of contexts.
void* __real_mmap(void*, std::size_t, int, int, int, long);  // NOLINT(bugprone-reserved-identifier)
int __real_munmap(void*, std::size_t);                       // NOLINT(bugprone-reserved-identifier)
void* __wrap_mmap(void*, std::size_t, int, int, int, long);  // NOLINT(bugprone-reserved-identifier)
int __wrap_munmap(void*, std::size_t);                       // NOLINT(bugprone-reserved-identifier)
}

namespace {
struct Stacks {
  std::vector<void*> used, idle;
};
Stacks& stacks() {
  static Stacks all;
  return all;
}
}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier)
void* __wrap_mmap(void* at, std::size_t bytes, int protection, int flags, int file, long offset) {
  if (!(flags & MAP_STACK)) return __real_mmap(at, bytes, protection, flags, file, offset);
  auto& [used, idle] = stacks();  // all of one length (engine/fibers/fiber.cpp)
  if (idle.empty()) idle.push_back(__real_mmap(at, bytes, protection, flags, file, offset));
  used.push_back(idle.back());
  idle.pop_back();
  return used.back();
}
int __wrap_munmap(void* at, std::size_t bytes) {
  auto& [used, idle] = stacks();
  const auto found = std::ranges::find(used, at);
  if (found == used.end()) return __real_munmap(at, bytes);
  idle.push_back(at);
  used.erase(found);
  return 0;
}
// NOLINTEND(bugprone-reserved-identifier)

namespace nearfield::testing {
namespace {

class Together : public team::Bootstrap {
 public:
  struct Shared {
    std::vector<std::vector<std::byte>> data;
    int arrived = 0;
  };
  Together(Shared& shared, int rank, int size) : shared_(shared), rank_(rank), size_(size) {
    shared.data.resize(std::size_t(size));
  }
  bool allgather(const void* mine, void* all, std::size_t bytes) override {
    const auto* from = static_cast<const std::byte*>(mine);
    shared_.data[std::size_t(rank_)].assign(from, from + bytes);
    meet();
    for (int r = 0; r < size_; ++r)
      std::memcpy(static_cast<std::byte*>(all) + std::size_t(r) * bytes, shared_.data[std::size_t(r)].data(), bytes);
    meet();
    return true;
  }
  std::uint32_t all_and(std::uint32_t bits) override {
    std::vector<std::uint32_t> all(std::size_t(size_), 0);
    allgather(&bits, all.data(), sizeof bits);
    for (const std::uint32_t each : all) bits &= each;
    return bits;
  }
  void idle() override { let_others_run(); }

 private:
  void meet() {
    target_ += size_;
    for (++shared_.arrived; shared_.arrived < target_;) let_others_run();
  }
  Shared& shared_;
  const int rank_, size_;
  int target_ = 0;
};

}  // namespace

Members::Members(Setup setup)
    : setup_(setup), held_locks_(std::make_unique<windows::HeldLocks[]>(std::size_t(setup.count))) {
  Settings settings;
  settings.meeting = setup.meeting;
  settings.protocol = setup.protocol;
  settings.choosing = Choosing::model;  // trials ask the clock
  settings.machine.span = 256 << 10;    // every run begins with fresh copy buffers
  for (int i = 0; i < setup.count; ++i) {
    auto process = team::Process::create(settings);
    if (!process) throw std::runtime_error(process.error().text);
    process_.push_back(std::move(*process));
  }
  renew();
  for (int i = 0; i < setup.count; ++i)
    for (int r = 0; r < setup.count; ++r) {
      const std::byte* const base = team(i).segment_of(r);
      know_mapping(base, process(r).segment().size(), r);
    }
}

Members::~Members() {
  messenger_.clear();
  window_.clear();
  team_.clear();
  forget_mappings();
}

void Members::renew() {
  std::size_t reserved = 0;
  for (auto& process : process_) reserved = std::max(reserved, process->arena().reserved());
  messenger_.clear();
  window_.clear();
  team_.clear();
  // All have closed them by now. In memory that begins anew that would never be seen, and there would be more each
  // time.
  for (auto& process : process_) {
    std::destroy_at(&process->closing());
    std::construct_at(&process->closing());
  }
  const std::size_t count = std::size_t(setup_.count);
  for (int i = 0; i < setup_.count; ++i) held_locks(i) = 0;
  for (auto& process : process_) {
    process->policy().contention = nullptr;  // by the clock
    process->policy().oversubscribed = process->policy().sleep_at_once = process->policy().may_sleep = false;
    process->drop_copy_buffers();
    // A run that was cut short has left bodies in the middle, and sleepers.
    process->header().asleep_on.store(0);
    std::destroy_at(&process->runner());
    std::construct_at(&process->runner(), process->segment(), process->header().asleep_on);
  }
  for (auto& process : process_) {
    // An older value must not be the right one of a run before.
    std::memset(process->segment().base() + 4096, 0, reserved);
    // Messengers, and windows that are not closed, do not give back what they share; so the arena begins anew as well.
    if (setup_.messages || setup_.window_bytes) {
      std::destroy_at(&process->arena());
      std::construct_at(&process->arena(), process->segment(), 4096);
    }
  }
  team_.resize(count);
  messenger_.resize(count);
  window_.resize(count);
  Together::Shared shared;
  std::string error;
  run_in_turn(setup_.count, [&](int i) {
    Together bootstrap(shared, i, setup_.count);
    auto made = creation::create_team(process(i), i, setup_.count, bootstrap);
    if (!made) return void(error = made.error().text);
    team_[std::size_t(i)] = std::move(*made);
    if (setup_.window_bytes) {
      const std::uint64_t bytes = setup_.window_bytes;
      std::byte* const base = process(i).segment().base() + *process(i).arena().allocate_zeroed(bytes, 4096);
      window_[std::size_t(i)] = windows::Window::create(std::move(team_[std::size_t(i)]), held_locks(i),
                                                        windows::Window::Lies::in_segment, {base, bytes, 1}, {}, error);
    }
    if (!setup_.messages) return;
    auto messenger = messages::Messenger::create(team(i), bootstrap, false);
    if (!messenger) return void(error = messenger.error().text);
    messenger_[std::size_t(i)] = std::move(*messenger);
  });
  if (!error.empty()) throw std::runtime_error(error);
  only_look(false);
}

void Members::only_look(bool only) {
  for (auto& process : process_) {
    team::Process& each = *process;
    each.policy().contention = nullptr;
    each.policy().may_sleep = !only;
    each.policy().oversubscribed = each.policy().sleep_at_once = !only && setup_.sleeps;
    if (!setup_.sleeps) continue;
    each.policy().patience.yields = 0;  // of waits that do not sleep at once: messages'
    each.policy().patience.awake = 0;
  }
}

}  // namespace nearfield::testing
