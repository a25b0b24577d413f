// Steps with other ranks: blocks that have gone through all that are sent, received into, combined and reached by
// peers.
#include "tests/heap/life/life.hpp"

#ifndef WITH_MPI
namespace life {
void add_messages(const Step*&, const Step*&) {}
void free_of_mpi(void*) {}
}  // namespace life
#else
#include <mpi.h>

namespace life {

void free_of_mpi(void* at) { MPI_Free_mem(at); }

namespace {

MPI_Comm world = MPI_COMM_WORLD;

void of_mpi(Draw& draw) {
  Block& block = fresh(draw, false);
  const std::size_t size = block.size;
  release(block);
  void* at = nullptr;
  MPI_Alloc_mem(MPI_Aint(size), MPI_INFO_NULL, &at);
  block = {static_cast<byte*>(at), size, false, true};
  fill(block, draw);
}

// In a ring, from one block into another; what is beyond the message stays.
void talk(Draw& draw) {
  Block &sent = some(draw), &got = some(draw);
  if (&sent == &got) return;
  const int length = int(sent.size < got.size ? sent.size : got.size);
  const int to = (life_of.rank + 1) % life_of.size, from = (life_of.rank + life_of.size - 1) % life_of.size;
  const std::size_t how = draw.below(4), forks = draw.below(3);
  MPI_Request requests[2];
  MPI_Status status;
  if (how == 0) {
    MPI_Sendrecv(sent.at, length, MPI_BYTE, to, 1, got.at, length, MPI_BYTE, from, 1, world, &status);
  } else if (how == 1 && life_of.rank % 2) {
    MPI_Recv(got.at, length, MPI_BYTE, from, 1, world, &status);
    MPI_Send(sent.at, length, MPI_BYTE, to, 1, world);
  } else if (how == 1 && life_of.size % 2 == 0) {
    MPI_Send(sent.at, length, MPI_BYTE, to, 1, world);
    MPI_Recv(got.at, length, MPI_BYTE, from, 1, world, &status);
  } else {
    MPI_Irecv(got.at, length, MPI_BYTE, from, 1, world, &requests[0]);
    MPI_Isend(sent.at, length, MPI_BYTE, to, 1, world, &requests[1]);
    for (std::size_t i = 0; i < forks; ++i) in_child(fork, [&] { sum(sent); });
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  say("%d bytes: sent %016lx, got %016lx", length, sum(sent), sum(got));
}

void combined(Draw& draw) {
  Block &given = some(draw), &result = some(draw);
  const int length = int((given.size < result.size ? given.size : result.size) / 8);
  const bool in_place = &given == &result || draw.below(2);
  MPI_Allreduce(in_place ? MPI_IN_PLACE : given.at, result.at, length, MPI_UINT64_T, MPI_SUM, world);
  say("%d words: %016lx of %016lx", length, sum(result), sum(given));
}

void spread(Draw& draw) {
  Block& block = some(draw);
  MPI_Bcast(block.at, int(block.size), MPI_BYTE, int(draw.below(std::size_t(life_of.size))), world);
  say("%016lx", sum(block));
}

void window(Draw& draw) {
  Block& block = some(draw);
  const std::size_t bytes = block.size / 2;
  MPI_Win made;
  MPI_Win_create(block.at, MPI_Aint(block.size), 1, MPI_INFO_NULL, world, &made);
  const int to = (life_of.rank + 1) % life_of.size;
  MPI_Win_fence(0, made);
  MPI_Put(block.at, int(bytes), MPI_BYTE, to, MPI_Aint(block.size - bytes), int(bytes), MPI_BYTE, made);
  if (draw.below(3) == 0) in_child(fork, [&] { fill(block.at, block.size, 9); });
  MPI_Win_fence(0, made);
  MPI_Win_free(&made);
  say("%016lx", sum(block));
}

constexpr Step steps[] = {
    {"of_mpi", 6, of_mpi}, {"talk", 40, talk}, {"combined", 12, combined}, {"spread", 8, spread}, {"window", 3, window},
};

}  // namespace

void add_messages(const Step*& begin, const Step*& end) { begin = std::begin(steps), end = std::end(steps); }

}  // namespace life

void begin_mpi(int& argc, char**& argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &life::life_of.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &life::life_of.size);
}
void end_mpi() { MPI_Finalize(); }
#endif
