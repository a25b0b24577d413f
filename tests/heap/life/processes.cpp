// Steps with processes: children of every kind, threads, signals, limits.
#include <pthread.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <time.h>

#include <string>

#include "tests/heap/life/life.hpp"

extern char** environ;

namespace life {
namespace {

// ---------------------------------------------------------------- children

void child(Draw& draw) {
  Block& block = some(draw);
  const std::uint64_t contents = draw.next();
  const bool grandchild = draw.one_in(3), frees = draw.one_in(3);
  in_child(some_fork(draw), [&] {
    say("child sees %016lx", sum_of_all());
    if (!block.altered) fill(block.at, block.size, contents);
    void* const more = std::malloc(100'000);
    fill(static_cast<byte*>(more), 100'000, contents);
    if (frees && !block.of_mpi) release(block);  // a child calls no MPI
    if (grandchild) in_child(fork, [&] { say("grandchild sees %016lx", sum_of_all()); });
    say("child has %016lx", sum_of_all());
  });
  say("%016lx", sum(block));
}

// Children that live on for some steps, and then say what they see: what was there at the fork.
struct Kid {
  pid_t pid;
  int go;
} kids[3];

void child_that_stays(Draw& draw) {
  Kid& kid = kids[draw.below(3)];
  const auto how = some_fork(draw);
  if (kid.pid) return;
  int pipe_[2];
  (void)!pipe2(pipe_, O_CLOEXEC);
  const pid_t made = how();
  if (made == 0) {
    char c;
    const auto got = read(pipe_[0], &c, 1);
    say("child that has stayed: %d %016lx", int(got), sum_of_all());
    if (c) in_child(fork, [&] { say("grandchild %016lx", sum_of_all()); });
    _exit(0);
  }
  close(pipe_[0]);
  kid = {made, pipe_[1]};
}

void ask(Kid& kid, char c) {
  if (!kid.pid) return;
  int status = -1;
  (void)!write(kid.go, &c, 1);
  const pid_t ended = waitpid(kid.pid, &status, 0);
  say("%d status %x", ended == kid.pid, unsigned(status));
  close(kid.go);
  kid = {};
}

void child_is_asked(Draw& draw) {
  Kid& kid = kids[draw.below(3)];
  ask(kid, char(draw.below(2)));
}

void many_forks(Draw& draw) {  // each with a new block before it
  const std::size_t forks = 1 + draw.below(draw.one_in(8) ? 80 : 10);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < forks; ++i) {
    const Block& block = fresh(draw, draw.below(2));
    if (const pid_t pid = fork(); pid == 0) {
      _exit(int(sum(block) % 251));
    } else {
      int status = 0;
      waitpid(pid, &status, 0);
      seen = seen * 31 + unsigned(status);
    }
  }
  say("%zu: %lx", forks, seen);
}

void child_without_copy(Draw& draw) {  // vfork: what it writes is its parent's
  Block& block = some(draw);
  if (block.altered) return;
  byte* volatile at = block.at;
  const pid_t pid = vfork();
  if (pid == 0) {
    *at = byte(77);
    if (life_of.step % 2) execl("/bin/true", "true", nullptr);
    _exit(5);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  say("%x %016lx", unsigned(status), sum(block));
}

void spawned(Draw& draw) {
  const Block& block = some(draw);
  const std::size_t how = draw.below(3);
  if (how == 0) {
    const char* const arguments[] = {"sh", "-c", "exit 9", nullptr};
    pid_t pid = 0;
    int status = 0;
    const int code = posix_spawn(&pid, "/bin/sh", nullptr, nullptr, const_cast<char**>(arguments), environ);
    waitpid(pid, &status, 0);
    say("%d %x", code, unsigned(status));
  } else if (how == 1) {
    say("%x", unsigned(std::system("exit 3")));
  } else {
    std::FILE* const shell = popen("cat > /dev/null; exit 4", "w");
    const std::size_t bytes = block.altered ? 0 : block.size;
    say("%d", std::fwrite(block.at, 1, bytes, shell) == bytes);
    say("%x", unsigned(pclose(shell)));
  }
  say("%016lx", sum(block));
}

// A few steps in a new program.
void again(Draw& draw) {
  if (life_of.size > 1) return;
  const std::string seed = std::to_string(draw.below(1 << 30));
  const char* arguments[40] = {life_of.arguments[0], seed.c_str(), "0", "4", life_of.arguments[4], "again"};
  for (int i = 5, n = 6; life_of.arguments[i] && n < 39; ++i) arguments[n++] = life_of.arguments[i];
  in_child(fork, [&] { execv(arguments[0], const_cast<char**>(arguments)); });
}

// ---------------------------------------------------------------- threads

// A thread's own blocks; what it found wrong.
int churn(std::uint64_t seed, int rounds) {
  Draw draw(seed);
  byte* own[4] = {};
  std::size_t size[4] = {};
  int wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    const std::size_t k = draw.below(4), wanted = 1 + draw.below(200'000);
    if (own[k]) wrong += own[k][0] != byte(k) || own[k][size[k] - 1] != byte(k);
    if (draw.below(2)) own[k] = static_cast<byte*>(std::realloc(own[k], wanted));
    else std::free(own[k]), own[k] = static_cast<byte*>(std::malloc(wanted));
    if (!own[k]) return wrong + 1000;
    size[k] = wanted, own[k][0] = own[k][size[k] - 1] = byte(k);
  }
  for (byte* each : own) std::free(each);
  return wrong;
}

void* churning(void* seed) { return reinterpret_cast<void*>(std::intptr_t(churn(std::uint64_t(seed), 150))); }

void threads(Draw& draw) {
  pthread_t made[3];
  for (pthread_t& thread : made) pthread_create(&thread, nullptr, churning, reinterpret_cast<void*>(draw.next() >> 1));
  for (std::size_t forks = draw.below(4); forks > 0; --forks)
    in_child(fork, [&] { say("child sees %016lx, %d wrong", sum_of_all(), churn(forks, 20)); });
  for (pthread_t thread : made) {
    void* wrong = nullptr;
    pthread_join(thread, &wrong);
    say("%ld wrong", std::intptr_t(wrong));
  }
}

// A thread that forks, on a stack that is a block of ours.
void* forking(void*) {
  volatile char on_stack[1000];
  for (std::size_t i = 0; i < sizeof on_stack; ++i) on_stack[i] = char(i);
  in_child(fork, [&] {
    for (std::size_t i = 0; i < sizeof on_stack; ++i) on_stack[i] = 1;
    say("child sees %016lx", sum_of_all());
  });
  int wrong = 0;
  for (std::size_t i = 0; i < sizeof on_stack; ++i) wrong += on_stack[i] != char(i);
  return reinterpret_cast<void*>(std::intptr_t(wrong));
}

void own_stack(Draw& draw) {
  const std::size_t bytes = draw.below(2) ? 256 * kib : mib;
  void *const stack = std::aligned_alloc(page, bytes), *wrong = nullptr;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, bytes);
  pthread_t thread;
  const int code = pthread_create(&thread, &attributes, forking, nullptr);
  if (!code) pthread_join(thread, &wrong);
  say("%d, %ld wrong", code, std::intptr_t(wrong));
  pthread_attr_destroy(&attributes);
  std::free(stack);
}

// ---------------------------------------------------------------- signals

// Whatever the program is in, a handler may call _Fork.
volatile sig_atomic_t alarms_left, bad_children;
constexpr itimerspec soon = {{0, 0}, {0, 700'000}};
timer_t timer;  // of this thread, since others of the process have calls of their own to interrupt
void on_alarm(int) {
  const int before = errno;
  const pid_t pid = _Fork();
  if (pid == 0) _exit(6);
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || status != 6 << 8) bad_children = bad_children + 1;
  alarms_left = alarms_left - 1;
  if (alarms_left > 0) timer_settime(timer, 0, &soon, nullptr);
  errno = before;
}

void alarms_while_allocating(Draw& draw) {
  struct sigaction action {
  }, before{};
  action.sa_handler = on_alarm, action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, &before);
  alarms_left = 8;
  bad_children = 0;
  sigevent to{};
  to.sigev_notify = SIGEV_THREAD_ID, to.sigev_signo = SIGALRM, to._sigev_un._tid = gettid();
  timer_create(CLOCK_MONOTONIC, &to, &timer);
  timer_settime(timer, 0, &soon, nullptr);
  const int wrong = churn(draw.next(), 300);
  timer_delete(timer);
  sigaction(SIGALRM, &before, nullptr);
  say("%d wrong, %d children bad, %016lx", wrong, int(bad_children), sum_of_all());
}

// On a stack that is a block; raised in no call, so that the handler may do anything.
void on_raised(int) {
  void* const more = std::malloc(200'000);
  fill(static_cast<byte*>(more), 200'000, 3);
  in_child(fork, [&] { say("child of a handler sees %016lx", sum_of_all()); });
  std::free(more);
}

void raised(Draw& draw) {
  stack_t stack{}, old{};
  stack.ss_size = 128 * kib, stack.ss_sp = std::malloc(stack.ss_size);
  if (draw.below(2)) sigaltstack(&stack, &old);
  struct sigaction action {
  }, before{};
  action.sa_handler = on_raised, action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR2, &action, &before);
  raise(SIGUSR2);
  sigaction(SIGUSR2, &before, nullptr);
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
  std::free(stack.ss_sp);
  say("%016lx", sum_of_all());
}

// ---------------------------------------------------------------- limits

rlim_t address_space() {
  char text[100] = {};
  const int fd = open("/proc/self/statm", O_RDONLY);
  (void)!read(fd, text, sizeof text - 1);
  close(fd);
  return rlim_t(std::atoll(text)) * page;
}

void limit(int resource, rlim_t value) {
  rlimit now{};
  getrlimit(resource, &now);
  now.rlim_cur = value < now.rlim_max ? value : now.rlim_max;
  setrlimit(resource, &now);
}

// Until another step lifts it: what the program has is far below each of them.
void address_limit(Draw& draw) {
  const std::size_t gib = 4u << draw.below(5) * 2;
  limit(RLIMIT_AS, gib > 64 ? RLIM_INFINITY : rlim_t(gib) << 30);
  void* const more = std::malloc(8 * mib);
  say("%zu GiB: %d", gib, more != nullptr);
  fill(static_cast<byte*>(more), 8 * mib, 1);
  std::free(more);
}

// What is left ends, as it has to, and the program is told so.
void little_is_left(Draw& draw) {
  const std::size_t each = 20 * mib, left = 256 * mib;
  const bool in_steps = draw.below(2);
  in_child(fork, [&] {
    limit(RLIMIT_AS, address_space() + left);
    void* last = nullptr;
    std::size_t count = 0;
    errno = 0;
    for (void* made; count < 30 && (made = in_steps ? std::calloc(1, each) : std::malloc(each)); ++count) last = made;
    fill(static_cast<byte*>(last), each, 1);
    say("%d, errno %d", count > 8 && count < 14, errno);
    limit(RLIMIT_AS, RLIM_INFINITY);
    std::free(last);
    say("%d", (last = std::malloc(each)) != nullptr);
  });
}

void few_descriptors(Draw& draw) {
  const int next = dup(0);
  close(next);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  limit(RLIMIT_NOFILE, rlim_t(next) + draw.below(2));
  const Block& block = fresh(draw, true);
  in_child(fork, [&] { say("child sees %016lx", sum_of_all()); });
  const Block& other = fresh(draw, true);
  say("%d %d", block.at != nullptr, other.at != nullptr);
  const int got = dup(0);
  say("%d", life_of.size > 1 ? 0 : told(got));
  if (got >= 0) close(got);
  setrlimit(RLIMIT_NOFILE, &before);
}

void short_files(Draw& draw) {
  limit(RLIMIT_FSIZE, 4 * mib);
  auto* const made = static_cast<byte*>(std::malloc(12 * mib));
  fill(made, made ? 12 * mib : 0, draw.next());
  in_child(fork, [&] { say("child sees %016lx", sum(made, 12 * mib)); });
  limit(RLIMIT_FSIZE, RLIM_INFINITY);
  say("%d %016lx", made != nullptr, sum(made, made ? 12 * mib : 0));
  std::free(made);
}

constexpr Step steps[] = {
    {"child", 10, child},
    {"child_that_stays", 6, child_that_stays},
    {"child_is_asked", 8, child_is_asked},
    {"many_forks", 2, many_forks},
    {"vfork", 3, child_without_copy},
    {"spawned", 2, spawned},
    {"again", 1, again},
    {"threads", 3, threads},
    {"own_stack", 2, own_stack},
    {"alarms", 2, alarms_while_allocating},
    {"raised", 3, raised},
    {"address_limit", 3, address_limit},
    {"little_is_left", 2, little_is_left},
    {"few_descriptors", 2, few_descriptors},
    {"short_files", 2, short_files},
};

}  // namespace

void add_processes(const Step*& begin, const Step*& end) { begin = std::begin(steps), end = std::end(steps); }

void end_processes() {
  for (Kid& kid : kids) ask(kid, 0);
  for (const int resource : {RLIMIT_AS, RLIMIT_FSIZE}) limit(resource, RLIM_INFINITY);
}

}  // namespace life
