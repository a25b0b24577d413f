// The worker of `nearfield bench`: host and Nearfield in one run, interleaved.
//
// Usage: worker OPS SIZES BUFFERS SECONDS [ALGORITHM [WORDS]]      (lists separated by commas)
//        worker OP SIZES tune SECONDS ALGORITHMS                   (`nearfield tune`: each forced, Nearfield only)
//        worker network                                            (network.hpp: the host alone, over nodes)
//
// The same processes call the same operation of one communicator, which is switched between host and Nearfield by
// MPI_Comm_set_info, in blocks of some milliseconds in the order A B B A. On machines whose virtual CPUs move, absolute
// times change by factors within seconds; so the time of a cache line between the first two ranks is probed before and
// after each block, stands beside the block's time, and blocks during which it changed by half are dropped. A block's
// time is the slowest rank's.
//
// Words: "floor", blocks of bare code (floor.hpp) take their turns as well; "loop=NAME", the loop of another benchmark
// (standard_loops.hpp) beside those that are named so, of which "own" is this one's; "short=N", loops of N calls from
// the very first one on new communicators instead (loops.hpp); "internode", instead of times the packets and bytes that
// cross between nodes (internode_traffic.hpp), "internode=plain" and "internode=nearfield" of one of both;
// "window=KIND" (window.hpp) and "target=WHOSE" (one_sided.hpp) of what is one-sided.
//
// Buffers: used, what a rank sends is rewritten before each call, and what it gets is read afterwards, as programs do
// (the time that both take alone is subtracted: own_work.hpp); modified, rewritten only; warm, the same again,
// untouched; cold, places all over 128 MiB a rank, none used again before all others were.
//
// Before a cell is measured, all must have given the same result, byte for byte, on data that differ by place.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "bench/internode_traffic.hpp"
#include "bench/loops.hpp"
#include "bench/measuring.hpp"
#include "bench/network.hpp"
#include "bench/standard_loops.hpp"
#include "bench/steady.hpp"
#include "bench/tuning.hpp"

namespace {

using namespace bench;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

void check(const Cell& cell) {
  const bool whole = on_words(cell.op) ? cell.bytes == sizeof(long) : !cell.reduction() || cell.bytes % 4 == 0;
  if (whole) return;
  if (rank == 0) std::fprintf(stderr, "%s: %zu bytes are no whole number of elements\n", cell.op.c_str(), cell.bytes);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

int network() {
  const bool several = NetworkBench().run();
  if (!several && rank == 0) std::fprintf(stderr, "all %d ranks are on one node\n", size);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return several ? 0 : 2;
}

// Each has a communicator of its own, so that trials see its calls alone.
struct Loop {
  const StandardLoop* standard;  // null: our own
  MPI_Comm comm;
};

struct Words {
  bool floor = false, beside = false;
  std::vector<Mode> internode;
  long calls_in_loop = 0;
  std::vector<Loop> loops;
  std::string window = "allocate", target = "own";
};

Words read_words(const std::string& text) {
  Words words;
  for (const auto& word : split(text)) {
    if (word == "floor") words.floor = true;
    if (word == "beside") words.beside = true;
    if (word == "internode" || word == "internode=plain") words.internode.push_back(Mode::plain);
    if (word == "internode" || word == "internode=nearfield") words.internode.push_back(Mode::nearfield);
    if (word.starts_with("window=")) words.window = word.substr(7);
    if (word.starts_with("target=")) words.target = word.substr(7);
    if (word.starts_with("short=")) words.calls_in_loop = std::atol(word.c_str() + 6);
    if (word.starts_with("loop=")) words.loops.push_back({standard_loop(word.substr(5)), comm});
  }
  if (words.loops.empty()) words.loops.push_back({nullptr, comm});
  return words;
}

// An operation of so many bytes: by each loop and on all kinds of buffers that it has.
void measure(const std::string& op, std::size_t bytes, const std::vector<std::string>& buffers, const Words& words,
             double seconds, bool loaded) {
  for (const auto& [loop, its_comm] : words.loops) {
    comm = its_comm;
    for (const auto& kind : loop ? std::vector<std::string>{"warm"} : buffers) {
      const Cell cell{op, kind, bytes, words.window, words.target};
      check(cell);
      if (!words.internode.empty()) measure_internode_traffic(cell, seconds, words.internode);
      else if (words.calls_in_loop) measure_loops(cell, seconds, loaded, words.calls_in_loop);
      else if (loop) measure_as(*loop, cell, seconds, loaded);
      else measure_steady(cell, seconds, loaded, words.floor);
      if (without_size(op) || without_data(op, bytes)) break;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool measures_network = argc == 2 && !std::strcmp(argv[1], "network");
  if (argc < 5 && !measures_network) {
    std::fprintf(
        stderr,
        "usage: %s OPS SIZES BUFFERS SECONDS [ALGORITHM [WORDS]] | OP SIZES tune SECONDS ALGORITHMS | network\n",
        argv[0]);
    return 2;
  }
  find_hosts_own();
  pin();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (measures_network) return network();
  // The control traffic goes through the world, which stays with the host.
  MPI_Info off;
  MPI_Info_create(&off);
  MPI_Info_set(off, "nearfield", "off");
  MPI_Comm_set_info(MPI_COMM_WORLD, off);
  MPI_Info_free(&off);
  const bool tuning = argc > 5 && !std::strcmp(argv[3], "tune");
  if (argc > 5 && *argv[5] && !tuning) hint("nearfield_algorithm", argv[5]);
  MPI_Allreduce(MPI_IN_PLACE, &pinned, 1, MPI_CXX_BOOL, MPI_LAND, MPI_COMM_WORLD);  // nodes may be of unequal size
  if (!(probe_words = static_cast<std::atomic<std::uint64_t>*>(share(4096)))) pinned = false;  // no probing then
  Words words = read_words(argc > 6 ? argv[6] : "");
  for (std::size_t i = 1; i < words.loops.size(); ++i) {
    MPI_Comm_dup(words.loops[0].comm, &comm);
    if (*argv[5]) hint("nearfield_algorithm", argv[5]);
    words.loops[i].comm = comm;
  }
  if (words.beside) pinned = false;  // a line's time tells nothing of the machine where others take the CPUs
  const bool loaded = dlsym(RTLD_DEFAULT, "nearfield_version") != nullptr;
  const double seconds = std::atof(argv[4]);
  for (const auto& op : split(argv[1])) {
    for (const auto& word : split(argv[2])) {
      const std::size_t bytes = without_size(op) ? 0 : std::strtoull(word.c_str(), nullptr, 10);
      if (tuning) {
        const Cell cell{op, "used", bytes};
        check(cell);
        tune(cell, split(argv[5]), seconds);
      } else {
        measure(op, bytes, split(argv[3]), words, seconds, loaded);
      }
      if (without_size(op)) break;
    }
  }
  for (Loop& loop : words.loops) MPI_Comm_free(&loop.comm);
  MPI_Finalize();
}
