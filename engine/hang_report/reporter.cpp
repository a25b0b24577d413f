#include "engine/hang_report/reporter.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "engine/base/globals.hpp"
#include "engine/base/log.hpp"
#include "engine/base/made.hpp"
#include "engine/hang_report/sites.hpp"
#include "engine/waiting/wait.hpp"

namespace nearfield::hang_report {
namespace {

constexpr std::uint64_t second = 1'000'000'000;
constexpr std::uint64_t fresh = second / 2;  // for that long the members that a suspended body waits for count
constexpr double pauses = 10;                // least time between reports, in multiples of `stall`

}  // namespace

HangReporter::HangReporter(std::vector<NodeProcess> members, double stall, Language language,
                           const waiting::Contention& contention)
    : members_(std::move(members)),
      stall_(stall),
      language_(language),
      contention_(contention),
      watched_(members_.size() * posts) {}

int HangReporter::member_of(const reach::Peer* peer) const {
  for (std::size_t m = 0; m < members_.size(); ++m)
    if (members_[m].peer == peer) return int(m);
  return -1;
}

void HangReporter::body_waits(const Awaited& awaited) {
  const std::lock_guard lock(mutex_);
  of_bodies_ = awaited;
  bodies_waited_ = waiting::nanoseconds();
}

void HangReporter::waits(std::uint64_t elapsed, const Awaited& awaited) {
  if (waiting::own_thread) return;
  const std::uint64_t now = waiting::nanoseconds(), begun = now - elapsed;
  CallBoard& first = *members_[0].board;
  const bool by_time = stall_ > 0 && double(elapsed) >= stall_ / 2 * double(second);
  CallState state;
  CallPost* const post =
      language_.fill_in(state, by_time || first.asked.load(std::memory_order_relaxed) + second > now);
  if (!state.call) return;
  state.since = begun;
  state.in_host = 0;
  state.contention = contention_.any_since(begun);
  {
    const std::lock_guard lock(mutex_);
    const Awaited& whom = !awaited.count && bodies_waited_ + fresh > now ? of_bodies_ : awaited;
    state.awaited = whom.count;
    std::memcpy(state.awaited_member, whom.member, sizeof state.awaited_member);
  }
  if (post) post->publish(state);
  if (!by_time) return;
  watch(now);
  if (double(elapsed) < stall_ * double(second)) return;
  std::uint64_t last = first.called.load(std::memory_order_relaxed);
  // Limits the reports of programs that wait for long all the time.
  if (last >= begun || (last && double(now - last) < stall_ * pauses * double(second))) return;
  if (!first.called.compare_exchange_strong(last, now, std::memory_order_relaxed)) return;
  char why[64];
  std::snprintf(why, sizeof why, "a wait has lasted %.0f s", double(elapsed) * 1e-9);
  call(why, post ? nullptr : &state);
}

// Notes at what time each call of each process was first seen.
void HangReporter::watch(std::uint64_t now) {
  const std::lock_guard lock(mutex_);
  for (std::size_t m = 0; m < members_.size(); ++m)
    for (unsigned p = 0; p < posts; ++p) {
      const std::uint64_t seen = members_[m].board->post[p].call.load(std::memory_order_relaxed);
      Watched& w = watched_[m * posts + p];
      if (w.call != seen || !w.since) w = {seen, now};
    }
}

std::vector<ProcessSeen> HangReporter::processes_seen(std::uint64_t now) {
  watch(now);
  std::vector<ProcessSeen> all(members_.size());
  for (std::size_t m = 0; m < all.size(); ++m) {
    ProcessSeen& a = all[m];
    const auto& [peer, header, shared] = members_[m];
    const CallBoard& board = *shared;
    a.rank = board.rank.load(std::memory_order_relaxed) - 1;
    a.process = peer ? peer->pid : getpid();
    a.unseen = board.unseen.load(std::memory_order_relaxed);
    if (peer && peer->gone()) a.state = peer->left() ? ProcessSeen::State::left : ProcessSeen::State::dead;
    else if (header->left.load(std::memory_order_acquire)) a.state = ProcessSeen::State::left;  // SYNC: left
    for (unsigned p = 0; p < posts; ++p) {
      ThreadSeen f;
      f.call = board.post[p].call.load(std::memory_order_relaxed);
      if (!f.call) continue;
      const std::lock_guard lock(mutex_);
      const Watched& w = watched_[m * posts + p];
      f.unchanged = w.call == f.call ? double(now - w.since) * 1e-9 : 0;
      f.known = inside(f.call) && board.post[p].read(f.what, f.call);
      a.threads.push_back(f);
    }
  }
  return all;
}

void HangReporter::call(const char* why, const CallState* unseen) try {
  const std::uint64_t now = waiting::nanoseconds();
  std::vector<ProcessSeen> all = processes_seen(now);
  const auto me = std::size_t(member_of(nullptr));
  if (unseen) {
    ProcessSeen& own = all[me];
    own.threads.push_back({.call = unseen->call, .known = true, .what = *unseen});
    --own.unseen;
  }
  log_line(LogLevel::error, "hang report of %zu ranks on this node, by rank %d: %s", all.size(), all[me].rank, why);
  for (const std::string& line : report(all, now, language_.name)) log_line(LogLevel::error, "%s", line.c_str());
  for (const std::string& line : source_lines(all)) log_line(LogLevel::error, "%s", line.c_str());
} catch (const std::bad_alloc&) {
  log_line(LogLevel::error, "hang report: out of memory");
}

// ---------------------------------------------------------------- by a signal

namespace {

void ask(int) {
  const int before = errno;
  globals().reports_asked.load(std::memory_order_relaxed)->wake();
  errno = before;
}

int signal_named(const std::string& text) {
  const std::string name = text.starts_with("SIG") ? text.substr(3) : text;
  if (name == "USR1") return SIGUSR1;
  if (name == "USR2") return SIGUSR2;
  if (name == "QUIT") return SIGQUIT;
  if (name == "WINCH") return SIGWINCH;
  const int n = std::atoi(name.c_str());
  for (const int never : {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
    if (n == never) return 0;
  return n > 0 && n < NSIG ? n : 0;
}

}  // namespace

Result<void> HangReporter::listen(const std::string& signal) {
  const int number = signal_named(signal);
  if (!number) return Error{"it is not a signal for programs: write USR1, USR2, QUIT, WINCH or a number"};
  struct sigaction present {};
  if (sigaction(number, nullptr, &present)) return Error{std::strerror(errno)};
  if ((present.sa_flags & SA_SIGINFO) || present.sa_handler != SIG_DFL)
    return Error{"the program uses that signal itself"};
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread must not take signals of the program
  try {
    waiting::WakeWord& asked_for = made(globals().reports_asked);
    std::thread([this, &asked_for] {
      for (std::uint32_t answered = 0;;) {
        std::uint32_t asked;
        while ((asked = asked_for.seen()) == answered) asked_for.nap(answered, 3600 * second);
        answered = asked;
        const std::uint64_t begun = waiting::nanoseconds();
        CallBoard& first = *members_[0].board;
        // Launchers pass a signal on to all ranks, but one of them reports.
        std::uint64_t last = first.called.load(std::memory_order_relaxed);
        if (last + 2 * second > begun || !first.called.compare_exchange_strong(last, begun, std::memory_order_relaxed))
          continue;
        first.asked.store(begun, std::memory_order_relaxed);
        for (int i = 0; i < 5; ++i) usleep(50'000), watch(waiting::nanoseconds());
        call("asked by a signal");
      }
    }).detach();
  } catch (const std::system_error& error) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return Error{error.what()};
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  struct sigaction ours {};
  ours.sa_handler = ask;
  ours.sa_flags = SA_RESTART;
  sigaction(number, &ours, nullptr);
  return {};
}

}  // namespace nearfield::hang_report
