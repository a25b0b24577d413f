// The worker of `nearfield bench`: host and Nearfield in one run, interleaved.
//
// Usage: worker OPS SIZES BUFFERS SECONDS [ALGORITHM [WORDS]]      (lists separated by commas)
//        worker OP SIZES tune SECONDS ALGORITHMS                   (`nearfield tune`: each forced, Nearfield only)
//        worker network                                            (network.hpp: the host alone, over nodes)
//
// The same processes call the same operation of one communicator, which is switched between host and Nearfield by
// MPI_Comm_set_info, in blocks of some milliseconds in the order A B B A. On machines whose virtual CPUs move, absolute
// times change by factors within seconds; so the time of a cache line between the first two ranks is probed before and
// after each block ("near" below 120 ns one way, else "far"), and blocks during which it changed are dropped. A block's
// time is the slowest rank's; medians and quartiles are over blocks.
//
// Words: "floor", blocks of bare code (floor.hpp) take their turns as well; "loop=N", loops of N calls from the very
// first one on new communicators instead (loops.hpp); "crossing", instead of times the packets and bytes that cross
// between nodes (any_source.hpp), "crossing=plain" and "crossing=nearfield" of one of both; "window=KIND" (window.hpp)
// and "target=WHOSE" (one_sided.hpp) of what is one-sided.
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

#include "bench/crossing.hpp"
#include "bench/loops.hpp"
#include "bench/measuring.hpp"
#include "bench/network.hpp"
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
  bool with_floor = false;
  std::vector<Mode> crossing;
  long calls_in_loop = 0;
  std::string window = "allocate", target = "own";
  for (const auto& word : split(argc > 6 ? argv[6] : "")) {
    if (word == "floor") with_floor = true;
    if (word == "beside") pinned = false;  // a line's time tells nothing of the machine where others take the CPUs
    if (word == "crossing" || word == "crossing=plain") crossing.push_back(Mode::plain);
    if (word == "crossing" || word == "crossing=nearfield") crossing.push_back(Mode::nearfield);
    if (word.starts_with("window=")) window = word.substr(7);
    if (word.starts_with("target=")) target = word.substr(7);
    if (word.starts_with("loop=")) calls_in_loop = std::atol(word.c_str() + 5);
  }
  const bool loaded = dlsym(RTLD_DEFAULT, "nearfield_version") != nullptr;
  const double seconds = std::atof(argv[4]);
  for (const auto& op : split(argv[1])) {
    for (const auto& word : split(argv[2])) {
      const std::size_t bytes = without_size(op) ? 0 : std::strtoull(word.c_str(), nullptr, 10);
      for (const auto& buffers : tuning ? std::vector<std::string>{"used"} : split(argv[3])) {
        const Cell cell{op, buffers, bytes, window, target};
        check(cell);
        if (tuning) tune(cell, split(argv[5]), seconds);
        else if (!crossing.empty()) measure_crossing(cell, seconds, crossing);
        else if (calls_in_loop) measure_loops(cell, seconds, loaded, calls_in_loop);
        else measure_steady(cell, seconds, loaded, with_floor);
        if (without_size(op) || without_data(op, bytes)) break;
      }
      if (without_size(op)) break;
    }
  }
  MPI_Comm_free(&comm);
  MPI_Finalize();
}
