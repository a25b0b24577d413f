/* Boxes of cells from one block to another, by messages where two ranks own them. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mesh.h"

struct spent spent;

double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void spend(double begin, int64_t bytes) {
  spent.mpi += now() - begin;
  spent.calls += 1;
  spent.bytes += bytes;
}

struct transfer transfer(const struct block* senders, int at_from, const struct block* receivers, int at_to,
                         int where) {
  const struct block *from = &senders[at_from], *to = &receivers[at_to];
  struct transfer t = {.from = at_from, .to = at_to};
  int half = size / 2;
  t.kind = to->level > from->level ? FINER : to->level < from->level ? COARSER : SAME;
  for (int axis = 0; axis < 3; ++axis) {
    t.sent[axis] = t.kind == SAME ? size : half;
    t.written[axis] = t.kind == COARSER ? half : size;
    t.first[axis] = t.kind == FINER && to->at[axis] % 2 ? 1 + half : 1;
    t.place[axis] = t.kind == COARSER && from->at[axis] % 2 ? 1 + half : 1;
    if (where < 0 || where / 2 != axis) continue;
    t.sent[axis] = t.written[axis] = 1;
    t.place[axis] = where % 2 ? size + 1 : 0;
    t.first[axis] = where % 2 ? 1 : t.kind == COARSER ? size - 1 : size;
  }
  return t;
}

static int length(const struct transfer* t) { return variables * t->sent[0] * t->sent[1] * t->sent[2]; }

static double mean(const double* c, ptrdiff_t right, ptrdiff_t back) {
  const double *d = c + right, *e = c + back, *f = d + back;
  return 0.125 * (((c[0] + c[1]) + (d[0] + d[1])) + ((e[0] + e[1]) + (f[0] + f[1])));
}

static void pack(const struct transfer* t, const double* restrict cells, double* restrict out) {
  const ptrdiff_t right = side(), back = right * right, all = back * right;
  const int xs = t->sent[0], ys = t->sent[1], zs = t->sent[2], step = t->kind == COARSER ? 2 : 1;
  cells += place(t->first[0], t->first[1], t->first[2]);
  for (int v = 0; v < variables; ++v)
    for (int x = 0; x < xs; ++x)
      for (int y = 0; y < ys; ++y, out += zs) {
        const double* row = cells + v * all + x * step * back + y * step * right;
        if (step == 1 && zs == 1) *out = *row;
        else if (step == 1) memcpy(out, row, (size_t)zs * sizeof *row);
        else
          for (int z = 0; z < zs; ++z) out[z] = mean(row + 2 * z, right, back);
      }
}

static void unpack(const struct transfer* t, const double* restrict in, double* restrict cells) {
  const ptrdiff_t right = side(), back = right * right, all = back * right;
  const int xs = t->written[0], ys = t->written[1], zs = t->written[2], shift = t->kind == FINER;
  cells += place(t->place[0], t->place[1], t->place[2]);
  for (int v = 0; v < variables; ++v)
    for (int x = 0; x < xs; ++x)
      for (int y = 0; y < ys; ++y) {
        double* to = cells + v * all + x * back + y * right;
        const double* row = in + ((v * t->sent[0] + (x >> shift)) * t->sent[1] + (y >> shift)) * t->sent[2];
        if (zs == 1) *to = *row;
        else if (shift)
          for (int z = 0; z < zs; ++z) to[z] = row[z / 2];
        else memcpy(to, row, (size_t)zs * sizeof *row);
      }
}

void exchange(struct transfer* transfers, int count, const struct block* from, struct block* to, int tag) {
  static double* room;
  static MPI_Request* requests; /* receives from the front, sends from the back */
  static int *receiving, requests_for;
  static size_t room_for;
  size_t needed = 0;
  for (int i = 0; i < count; ++i) needed += (size_t)length(&transfers[i]);
  if (needed > room_for) room = realloc(room, (room_for = 2 * needed) * sizeof *room);
  if (count > requests_for) {
    requests_for = 2 * count;
    requests = realloc(requests, (size_t)requests_for * sizeof *requests);
    receiving = realloc(receiving, (size_t)requests_for * sizeof *receiving);
  }
  double *next = room, begin;
  int receives = 0, sends = 0, which;
  for (int i = 0; i < count; ++i) {
    struct transfer* t = &transfers[i];
    const struct block* source = &from[t->from];
    t->cells = next;
    if (!mine(source) || !mine(&to[t->to])) next += length(t);
    if (mine(source)) continue;
    begin = now();
    MPI_Irecv(t->cells, length(t), MPI_DOUBLE, source->owner, tag, MPI_COMM_WORLD, &requests[receives]);
    spend(begin, 0);
    receiving[receives++] = i;
  }
  for (int i = 0; i < count; ++i) {
    const struct transfer* t = &transfers[i];
    const struct block* target = &to[t->to];
    if (mine(target)) continue;
    pack(t, from[t->from].cells, t->cells);
    begin = now();
    MPI_Isend(t->cells, length(t), MPI_DOUBLE, target->owner, tag, MPI_COMM_WORLD, &requests[count - ++sends]);
    spend(begin, length(t) * (int64_t)sizeof(double));
  }
  for (int i = 0; i < count; ++i) {
    struct transfer* t = &transfers[i];
    if (!mine(&from[t->from]) || !mine(&to[t->to])) continue;
    pack(t, from[t->from].cells, next); /* the same for all */
    unpack(t, next, to[t->to].cells);
  }
  for (int i = 0; i < receives; ++i) {
    begin = now();
    MPI_Waitany(receives, requests, &which, MPI_STATUS_IGNORE);
    spend(begin, 0);
    const struct transfer* t = &transfers[receiving[which]];
    unpack(t, t->cells, to[t->to].cells);
  }
  begin = now();
  MPI_Waitall(sends, requests + count - sends, MPI_STATUSES_IGNORE);
  spend(begin, 0);
}
