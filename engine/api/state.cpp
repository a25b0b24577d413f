#include "engine/api/state.hpp"

#include <pthread.h>

#include "engine/api/failed.hpp"
#include "engine/base/made.hpp"
#include "engine/choosing/choose.hpp"
#include "engine/choosing/chooser.hpp"
#include "engine/choosing/tuned.hpp"
#include "engine/context/pool.hpp"

namespace nearfield::api {
namespace {

constinit std::atomic<LibraryState*> the_state{nullptr};

// Settings that cannot be honoured are errors, as in MPI programs. Throws Failed.
Settings settings(std::unique_ptr<const choosing::Tuned>& tuned) {
  std::string complaints;
  Settings read = read_settings(complaints);
  if (const std::string wrong = choosing::complain_about(read.algorithm); !wrong.empty())
    complaints += "NEARFIELD_ALGORITHM=" + read.algorithm + ": " + wrong + "\n";
  if (read.choosing == Choosing::file) {
    auto found = choosing::Tuned::read(read.tuned);
    if (found) tuned = std::make_unique<const choosing::Tuned>(std::move(*found));
    else complaints += "NEARFIELD_CHOOSE=file: " + found.error().text + "\n";
  }
  if (!complaints.empty()) throw Failed(NF_INVALID, "a setting is not valid; correct it or unset it. " + complaints);
  if (!read.enabled) throw Failed(NF_UNAVAILABLE, "NEARFIELD=off");
  return read;
}

}  // namespace

LibraryState& state() noexcept { return made(the_state); }

team::Process& process() {
  LibraryState& all = state();
  if (all.process) return *all.process;
  std::unique_ptr<const choosing::Tuned> tuned;
  const Settings read = settings(tuned);
  auto created = team::Process::create(read, *new choosing::TeamServices(std::move(tuned)));
  if (!created) throw Failed(NF_UNAVAILABLE, "no shared memory: " + created.error().text);
  all.process = created->release();
  all.process->runner().keep(context::further);
  pthread_atfork(nullptr, nullptr, [] { state().forked.store(true, std::memory_order_relaxed); });
  return *all.process;
}

void look_around() {
  LibraryState& all = state();
  const auto look = all.look.load(std::memory_order_relaxed);
  if (look && !all.interrupted.load(std::memory_order_relaxed)) {
    int end = 1;
    look(all.look_context.load(std::memory_order_relaxed), &end);
    if (end) all.interrupted.store(true, std::memory_order_relaxed);
  }
  if (all.interrupted.load(std::memory_order_relaxed)) throw Failed(NF_INTERRUPTED, "the program has ended the wait");
}

bool Watch::late() {
  if (++calls_ % 16 != 0) return false;
  const std::uint64_t now = nanoseconds();
  if (started_ == 0) started_ = looked_ = now;
  if (now - looked_ > waiting::between_inspections) {
    looked_ = now;
    look_around();
  }
  return limit_ && now - started_ > limit_;
}

}  // namespace nearfield::api

nearfield::Globals& nearfield::globals() noexcept { return api::state().engine; }
