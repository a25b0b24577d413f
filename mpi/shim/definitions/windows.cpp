// Made by scripts/functions.py from mpi/functions.toml and the standard's machine-readable form: functions, each
// with the class that serves it (in the headers below).
// clang-format off
#include "mpi/shim/rma/moving.hpp"
#include "mpi/shim/rma/accumulating.hpp"

namespace nearfield::mpi {

// MPI_Put
int Put(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
    int target_count, MPI_Datatype target_datatype, MPI_Win win) {
  return move<Function::Put, AccessDirection::put>(origin_addr, origin_count, origin_datatype, target_rank,
      target_disp, target_count, target_datatype, win);
}

// MPI_Put_c
int Put_c(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
    MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win) {
  return move<Function::Put_c, AccessDirection::put>(origin_addr, origin_count, origin_datatype, target_rank,
      target_disp, target_count, target_datatype, win);
}

// MPI_Get
int Get(void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
    int target_count, MPI_Datatype target_datatype, MPI_Win win) {
  return move<Function::Get, AccessDirection::get>(origin_addr, origin_count, origin_datatype, target_rank,
      target_disp, target_count, target_datatype, win);
}

// MPI_Get_c
int Get_c(void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
    MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win) {
  return move<Function::Get_c, AccessDirection::get>(origin_addr, origin_count, origin_datatype, target_rank,
      target_disp, target_count, target_datatype, win);
}

// MPI_Accumulate
int Accumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
    MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win) {
  return accumulate<Function::Accumulate>(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
      target_count, target_datatype, op, win);
}

// MPI_Accumulate_c
int Accumulate_c(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
    MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win) {
  return accumulate<Function::Accumulate_c>(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
      target_count, target_datatype, op, win);
}

// MPI_Get_accumulate
int Get_accumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, void* result_addr,
    int result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp, int target_count,
    MPI_Datatype target_datatype, MPI_Op op, MPI_Win win) {
  return get_accumulate<Function::Get_accumulate>(origin_addr, origin_count, origin_datatype, result_addr,
      result_count, result_datatype, target_rank, target_disp, target_count, target_datatype, op, win);
}

// MPI_Get_accumulate_c
int Get_accumulate_c(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, void* result_addr,
    MPI_Count result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
    MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win) {
  return get_accumulate<Function::Get_accumulate_c>(origin_addr, origin_count, origin_datatype, result_addr,
      result_count, result_datatype, target_rank, target_disp, target_count, target_datatype, op, win);
}

// MPI_Fetch_and_op
int Fetch_and_op(const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank,
    MPI_Aint target_disp, MPI_Op op, MPI_Win win) {
  return fetch_and_op<Function::Fetch_and_op>(origin_addr, result_addr, datatype, target_rank, target_disp, op, win);
}

// MPI_Compare_and_swap
int Compare_and_swap(const void* origin_addr, const void* compare_addr, void* result_addr, MPI_Datatype datatype,
    int target_rank, MPI_Aint target_disp, MPI_Win win) {
  return compare_and_swap<Function::Compare_and_swap>(origin_addr, compare_addr, result_addr, datatype, target_rank,
      target_disp, win);
}

// MPI_Rput
int Rput(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
    MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request* request) {
  return move<Function::Rput, AccessDirection::put>(origin_addr, origin_count, origin_datatype, target_rank,
      target_disp, target_count, target_datatype, win, request);
}

// MPI_Rput_c
int Rput_c(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
    MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request* request) {
  return move<Function::Rput_c, AccessDirection::put>(origin_addr, origin_count, origin_datatype, target_rank,
      target_disp, target_count, target_datatype, win, request);
}

// MPI_Rget
int Rget(void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
    int target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request* request) {
  return move<Function::Rget, AccessDirection::get>(origin_addr, origin_count, origin_datatype, target_rank,
      target_disp, target_count, target_datatype, win, request);
}

// MPI_Rget_c
int Rget_c(void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
    MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request* request) {
  return move<Function::Rget_c, AccessDirection::get>(origin_addr, origin_count, origin_datatype, target_rank,
      target_disp, target_count, target_datatype, win, request);
}

// MPI_Raccumulate
int Raccumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
    MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
    MPI_Request* request) {
  return accumulate<Function::Raccumulate>(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
      target_count, target_datatype, op, win, request);
}

// MPI_Raccumulate_c
int Raccumulate_c(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
    MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
    MPI_Request* request) {
  return accumulate<Function::Raccumulate_c>(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
      target_count, target_datatype, op, win, request);
}

// MPI_Rget_accumulate
int Rget_accumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, void* result_addr,
    int result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp, int target_count,
    MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request* request) {
  return get_accumulate<Function::Rget_accumulate>(origin_addr, origin_count, origin_datatype, result_addr,
      result_count, result_datatype, target_rank, target_disp, target_count, target_datatype, op, win, request);
}

// MPI_Rget_accumulate_c
int Rget_accumulate_c(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, void* result_addr,
    MPI_Count result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
    MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request* request) {
  return get_accumulate<Function::Rget_accumulate_c>(origin_addr, origin_count, origin_datatype, result_addr,
      result_count, result_datatype, target_rank, target_disp, target_count, target_datatype, op, win, request);
}

}  // namespace nearfield::mpi
