// The worker of `nearfield bench`: host and Nearfield in one run, interleaved.
//
// Usage: worker OPS SIZES BUFFERS SECONDS [ALGORITHM [floor]]      (lists separated by commas)
//        worker OP SIZES tune SECONDS ALGORITHMS                   (`nearfield tune`: each forced, Nearfield only)
//
// The same processes call the same collective of one communicator, which is switched between host and Nearfield by
// MPI_Comm_set_info, in blocks of some milliseconds in the order A B B A. On machines whose virtual CPUs move, absolute
// times change by factors within seconds; so the time of a cache line between the first two ranks is probed before and
// after each block ("near" below 120 ns one way, else "far"), and blocks during which it changed are dropped. A block's
// time is the slowest rank's; medians and quartiles are over blocks.
//
// Each mode has the buffers that a program would have: Nearfield's come from malloc, hence from the shared heap where
// that is loaded, the plain host's from where the C library takes large blocks, anonymous pages. (On the heap's huge
// pages a host that copies by process_vm_readv is up to 2.4 times faster than its users know it.)
//
// With "floor" blocks of bare code (floor.hpp) take their turns as well.
//
// Buffers: warm, the same again; modified, what a rank sends is rewritten before each call; used, what it gets is read
// as well (the time of writing and reading is measured alone and subtracted); cold, places all over 128 MiB a rank,
// none used again before all others were.
//
// Before a cell is measured, both must have given the same result, byte for byte, on data that differ by place.
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/floor.hpp"
#include "bench/operations.hpp"
#include "bench/own_work.hpp"

namespace {

using namespace bench;

bool pinned;
std::atomic<std::uint64_t>* probe_words;
enum Mode { plain, nearfield, bare };
constexpr const char* mode_names[] = {"plain", "nearfield", "floor"};

int local(const char* const* names, int fallback) {
  for (; *names; ++names)
    if (const char* text = std::getenv(*names)) return std::atoi(text);
  return fallback;
}

// One rank per CPU where they fit, before MPI starts, so that every library sees it.
void pin() {
  constexpr const char* rank_names[] = {"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK", nullptr};
  constexpr const char* size_names[] = {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_SIZE", nullptr};
  const int me = local(rank_names, 0), all = local(size_names, 1);
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) || all > CPU_COUNT(&allowed)) return;
  for (int cpu = 0, k = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || k++ != me) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pinned = sched_setaffinity(0, sizeof one, &one) == 0;
  }
}

// Memory that all ranks share; nullptr on all of them where one cannot map it. Not a window of MPI: a program without
// windows shall be measured.
void* share(std::size_t bytes) {
  long where[2] = {getpid(), rank == 0 ? memfd_create("bench", 0) : -1};
  if (rank == 0 && ftruncate(int(where[1]), long(bytes))) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Bcast(where, 2, MPI_LONG, 0, MPI_COMM_WORLD);
  const std::string path = "/proc/" + std::to_string(where[0]) + "/fd/" + std::to_string(where[1]);
  const int fd = open(path.c_str(), O_RDWR);
  void* const at = fd < 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  int good = at != MAP_FAILED, all_good = 0;
  MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  if (fd >= 0) close(fd);
  if (rank == 0) close(int(where[1]));
  return all_good ? at : nullptr;
}

// Nanoseconds of a cache line one way between ranks 0 and 1; 0 where it cannot be told.
double line_time() {
  if (!pinned || size < 2) return 0;
  double result = 0;
  if (rank < 2) {
    constexpr int trips = 200;
    static std::uint64_t round = 0;
    const double start = MPI_Wtime();
    for (int i = 0; i < trips; ++i) {
      ++round;
      if (rank == 0) probe_words[0].store(round, std::memory_order_release);  // pairs with rank 1's load
      while (probe_words[rank == 0 ? 16 : 0].load(std::memory_order_acquire) != round) __builtin_ia32_pause();
      if (rank == 1) probe_words[16].store(round, std::memory_order_release);  // pairs with rank 0's load
    }
    result = (MPI_Wtime() - start) * 1e9 / trips / 2;
  }
  MPI_Bcast(&result, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return result;
}

const char* state_of(double nanoseconds) { return nanoseconds == 0 ? "any" : nanoseconds < 120 ? "near" : "far"; }

void hint(const char* key, const char* value) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, key, value);
  MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
}

struct Block {
  Mode mode;
  std::string state;
  double microseconds;
};

struct Cell {
  std::string op, buffers;
  std::size_t bytes;
};

// Within a block all traffic goes through the communicator in its present mode: ranks that wait in a plain host burn
// whole time slices, which must not be charged to Nearfield.
double slowest(double mine) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, comm);
  return all;
}

// Values that differ by place and rank, and whose sums are exact.
void fill(double* where, std::size_t bytes, MPI_Datatype type) {
  auto put = [&](auto* to, std::size_t modulus) {
    for (std::size_t i = 0; i < bytes / sizeof *to; ++i)
      to[i] = std::remove_reference_t<decltype(*to)>((i * 31 + (i >> 8) * 7 + std::size_t(rank) * 17) % modulus);
  };
  if (type == MPI_DOUBLE) put(where, 1009);
  else if (type == MPI_INT) put(reinterpret_cast<int*>(where), 1009);
  else put(reinterpret_cast<unsigned char*>(where), 251);
}

double run_floor(const std::function<void()>& call, long iterations) {
  MPI_Barrier(comm);
  const double start = MPI_Wtime();
  for (long i = 0; i < iterations; ++i) call();
  return slowest((MPI_Wtime() - start) / double(iterations) * 1e6);
}

double run_block(const Cell& cell, const Operation& call, Buffers& buffers, long iterations) {
  MPI_Barrier(comm);
  const OwnWork own(cell.op, cell.bytes, cell.buffers);
  const double start = MPI_Wtime();
  if (own.any()) {
    for (long i = 0; i < iterations; ++i) {
      own.before(buffers, i);
      call(buffers.send.data(), buffers.recv.data());
      own.after(buffers);
    }
  } else if (cell.buffers == "cold") {
    for (long i = 0; i < iterations; ++i) {
      const std::size_t place = buffers.step();
      call(buffers.send.data() + place, buffers.recv.data() + place);
    }
  } else {
    for (long i = 0; i < iterations; ++i) call(buffers.send.data(), buffers.recv.data());
  }
  double elapsed = MPI_Wtime() - start;
  if (own.any()) {
    const double again = MPI_Wtime();
    for (long i = 0; i < iterations; ++i) {
      own.before(buffers, i);
      own.after(buffers);
    }
    elapsed -= MPI_Wtime() - again;
  }
  return slowest(elapsed / double(iterations) * 1e6);
}

void print_rows(const Cell& cell, std::vector<Block>& blocks, const long* iterations, const char* algorithm) {
  std::map<std::pair<std::string, Mode>, std::vector<double>> groups;
  for (const Block& block : blocks) groups[{block.state, block.mode}].push_back(block.microseconds);
  for (auto& [group, times] : groups) {
    std::sort(times.begin(), times.end());
    auto quantile = [&, &t = times](double q) { return t[std::size_t(q * double(t.size() - 1) + 0.5)]; };
    std::printf(
        "{\"op\": \"%s\", \"bytes\": %zu, \"ranks\": %d, \"mode\": \"%s\", \"algorithm\": \"%s\", \"buffers\": \"%s\", "
        "\"state\": \"%s\", \"median\": %.4f, \"lower\": %.4f, \"upper\": %.4f, \"iterations\": %ld}\n",
        cell.op.c_str(), cell.bytes, size, mode_names[group.second],
        group.second == nearfield ? algorithm
        : group.second == plain   ? "host"
                                  : "floor",
        cell.buffers.c_str(), group.first.c_str(), quantile(0.5), quantile(0.25), quantile(0.75),
        iterations[group.second] * long(times.size()));
  }
  std::fflush(stdout);
}

void measure(const Cell& cell, double seconds, bool loaded, bool with_floor) {
  const bool reduction = cell.op.find("reduce") != std::string::npos;
  const MPI_Datatype type = reduction ? (cell.bytes % 8 ? MPI_INT : MPI_DOUBLE) : MPI_BYTE;
  const int count = int(reduction ? cell.bytes / (cell.bytes % 8 ? 4 : 8) : cell.bytes);
  const Operation call = operation(cell.op, count, type);
  if (reduction && cell.bytes % 4) {
    if (rank == 0) std::fprintf(stderr, "%s: %zu bytes are no whole number of elements\n", cell.op.c_str(), cell.bytes);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  // Every rank has as much as all send to one; derived types touch more memory than they have data.
  const std::size_t blocks_in_all = point_to_point(cell.op) ? (cell.op.starts_with("ddt-") ? 4 : 1) : std::size_t(size);
  const std::size_t longest = std::max<std::size_t>(cell.bytes * blocks_in_all, 64);
  const bool cold = cell.buffers == "cold";
  Buffers of_mode[2] = {{longest, cold, true}, {longest, cold, false}};
  for (Buffers& buffers : of_mode)
    for (std::size_t place = 0; place < buffers.places; ++place)
      fill(buffers.send.data() + place * buffers.stride, longest, type);

  // Both must give the same result; also warms up, and tells how long a call takes.
  // Ranks that share CPUs start a block time slices apart: longer blocks there.
  const double block_us = pinned ? 3000 : 30000;
  double each[3] = {0, 0, 0};
  std::vector<double> results[2];
  const char* algorithm = "host";
  const auto last = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "nearfield_last_algorithm"));
  const int modes = loaded ? 2 : 1;
  for (int mode = 0; mode < modes; ++mode) {
    hint("nearfield", mode ? "on" : "off");
    Buffers& buffers = of_mode[mode];
    std::vector<double> send(buffers.stride), &result = results[mode];
    result.resize(buffers.stride);
    fill(send.data(), longest, type);
    call(send.data(), result.data());
    if (cell.op == "bcast") result = send;
    long n = 1;
    for (;; n *= 4) {
      each[mode] = run_block(cell, call, buffers, n);
      if (each[mode] * double(n) > block_us / 2 || n >= 4096) break;  // both are equal on all ranks
    }
    // Once more, lest one interruption make all blocks too short.
    if (pinned) each[mode] = std::min(each[mode], run_block(cell, call, buffers, n));
  }
  int same = modes == 1 || !std::memcmp(results[0].data(), results[1].data(), longest), all_same = 0;
  MPI_Allreduce(&same, &all_same, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  if (!all_same) {
    if (rank == 0) std::fprintf(stderr, "%s of %zu bytes: host and Nearfield differ\n", cell.op.c_str(), cell.bytes);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }

  const std::size_t shared_bytes = bench::Floor::bytes(size, longest);
  void* const shared = with_floor ? share(shared_bytes) : nullptr;
  std::optional<bench::Floor> floor;
  std::function<void()> bare_call;
  if (shared) {
    floor.emplace(static_cast<std::byte*>(shared), rank, size, longest, !pinned);
    bare_call = floor->operation(cell.op, cell.bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    for (long n = 1; bare_call; n *= 4) {
      each[bare] = run_floor(bare_call, n);
      if (each[bare] * double(n) > block_us / 2 || n >= 4096) break;
    }
  }

  // Blocks of the same length in time.
  long iterations[3];
  for (int mode = 0; mode < 3; ++mode) iterations[mode] = std::max(1L, long(block_us / std::max(each[mode], 0.01)));
  MPI_Bcast(iterations, 3, MPI_LONG, 0, MPI_COMM_WORLD);
  const std::vector<Mode> turns =
      !loaded      ? std::vector<Mode>{plain, plain}
      : !bare_call ? std::vector<Mode>{plain, nearfield, nearfield, plain}
                   : std::vector<Mode>{plain, nearfield, bare};  // none next to itself, none twice next to one
  std::vector<Block> blocks;
  const double start = MPI_Wtime();
  for (int turn = 0;; ++turn) {
    const Mode mode = turns[std::size_t(turn) % turns.size()];
    hint("nearfield", mode == plain ? "off" : "on");
    const double before = line_time();
    const double us = (mode == bare ? run_floor(bare_call, iterations[bare])
                                    : run_block(cell, call, of_mode[mode], iterations[mode])) /
                      messages_in_a_call(cell.op);
    const double after = line_time();
    if (!std::strcmp(state_of(before), state_of(after))) blocks.push_back({mode, state_of(before), us});
    const int last_turn = int(turns.size()) - 1;
    int go = MPI_Wtime() - start < seconds || turn < last_turn;
    MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!go && turn % (last_turn + 1) == last_turn) break;
  }
  if (modes == 2 && last) {  // what it is now, after trials
    hint("nearfield", "on");
    call(of_mode[nearfield].send.data(), of_mode[nearfield].recv.data());
    algorithm = point_to_point(cell.op) ? "messages" : last();
  }
  if (rank == 0) print_rows(cell, blocks, iterations, algorithm);
  if (shared) munmap(shared, shared_bytes);
}

// Every algorithm that `names` has for the operation, forced in turn; a row each, with the median over blocks. Those
// that do not apply, or cannot reach the buffers, give none. "auto": what trials choose, on a communicator of its own,
// measured once they should have ended.
void tune(const Cell& cell, const std::vector<std::string>& names, double seconds) {
  const auto last = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "nearfield_last_algorithm"));
  if (!last) MPI_Abort(MPI_COMM_WORLD, 2);
  const bool reduction = cell.op.find("reduce") != std::string::npos;
  const MPI_Datatype type = reduction ? MPI_DOUBLE : MPI_BYTE;
  const Operation call = operation(cell.op, int(reduction ? cell.bytes / 8 : cell.bytes), type);
  const std::size_t longest = std::max<std::size_t>(cell.bytes * std::size_t(size), 64);
  Buffers buffers(longest, false, false);
  fill(buffers.send.data(), longest, type);
  const double block_us = pinned ? 1000 : 10000;
  struct Candidate {
    std::string name;
    long iterations;
    std::vector<double> times;
  };
  std::vector<Candidate> candidates;
  const MPI_Comm forced = comm;
  MPI_Comm chosen;
  MPI_Comm_dup(forced, &chosen);
  auto force = [&](const std::string& name) {
    comm = name == "auto" ? chosen : forced;
    if (name != "auto") hint("nearfield_algorithm", (cell.op + ":" + name).c_str());
  };
  for (const auto& name : names) {
    force(name);
    call(buffers.send.data(), buffers.recv.data());
    int runs = name == "auto" || last() == name, all_run = 0;
    MPI_Allreduce(&runs, &all_run, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (!all_run) continue;
    double us = 0;
    long n = 1;
    for (; (us = run_block(cell, call, buffers, n)) * double(n) < block_us / 2 && n < 4096; n *= 4) {
    }
    if (name == "auto") run_block(cell, call, buffers, us > 1000 ? 1000 : 5000);
    candidates.push_back({name, std::max(1L, long(block_us / std::max(us, 0.01))), {}});
  }
  const double start = MPI_Wtime();
  for (int go = 1; go;) {
    for (auto& candidate : candidates) {
      force(candidate.name);
      candidate.times.push_back(run_block(cell, call, buffers, candidate.iterations));
    }
    go = MPI_Wtime() - start < seconds;
    MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  for (auto& [name, iterations, times] : candidates) {
    force(name);
    call(buffers.send.data(), buffers.recv.data());
    std::sort(times.begin(), times.end());
    if (rank == 0)
      std::printf(
          "{\"op\": \"%s\", \"bytes\": %zu, \"ranks\": %d, \"algorithm\": \"%s\", \"ran\": \"%s\", \"median\": %.4f}\n",
          cell.op.c_str(), cell.bytes, size, name.c_str(), last(), times[times.size() / 2]);
  }
  comm = forced;
  MPI_Comm_free(&chosen);
  if (rank == 0) std::printf("{\"op\": \"%s\", \"bytes\": %zu, \"done\": true}\n", cell.op.c_str(), cell.bytes);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: %s OPS SIZES BUFFERS SECONDS [ALGORITHM [floor]] | OP SIZES tune SECONDS ALGORITHMS\n",
                 argv[0]);
    return 2;
  }
  pin();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  // The control traffic goes through the world, which stays with the host.
  MPI_Info off;
  MPI_Info_create(&off);
  MPI_Info_set(off, "nearfield", "off");
  MPI_Comm_set_info(MPI_COMM_WORLD, off);
  MPI_Info_free(&off);
  const bool tuning = argc > 5 && !std::strcmp(argv[3], "tune");
  if (argc > 5 && *argv[5] && !tuning) hint("nearfield_algorithm", argv[5]);
  if (!(probe_words = static_cast<std::atomic<std::uint64_t>*>(share(4096)))) pinned = false;  // no probing then
  const bool with_floor = argc > 6 && !std::strcmp(argv[6], "floor");
  const bool loaded = dlsym(RTLD_DEFAULT, "nearfield_version") != nullptr;
  for (const auto& op : split(argv[1])) {
    for (const auto& bytes : split(argv[2])) {
      if (op == "barrier" && bytes != split(argv[2]).front()) continue;
      if (tuning) {
        tune({op, "warm", std::strtoull(bytes.c_str(), nullptr, 10)}, split(argv[5]), std::atof(argv[4]));
        continue;
      }
      for (const auto& buffers : split(argv[3])) {
        if (op == "barrier" && buffers != "warm") continue;
        measure({op, buffers, op == "barrier" ? 0 : std::strtoull(bytes.c_str(), nullptr, 10)}, std::atof(argv[4]),
                loaded, with_floor);
      }
    }
  }
  MPI_Comm_free(&comm);
  MPI_Finalize();
}
