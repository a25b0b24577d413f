// MPI_Accumulate and the calls like it. They combine elements of one predefined type, even where derived types describe
// them. The origin's data are gathered if they are not dense, and combined with the target piece by piece.
#pragma once
#include <bit>

#include "engine/base/out_of_memory.hpp"
#include "engine/memory/temporaries.hpp"
#include "mpi/shim/handles/devices.hpp"
#include "mpi/shim/process/at_host.hpp"
#include "mpi/shim/process/errors_returned.hpp"
#include "mpi/shim/rma/target.hpp"

namespace nearfield::mpi {

// `count` elements of `type` at `buffer`, described as elements of one predefined type, including gaps inside of them.
struct TypedElements {
  layout::Data data;
  const TypeInfo* basic = nullptr;  // nullptr: there are several types
  std::uint32_t bytes = 1;          // of one element, with its gaps
  std::shared_ptr<const TypeLayout> keep;
  bool good = true;  // false: arguments that the host must judge

  TypedElements(const void* buffer, MPI_Count count, MPI_Datatype type) {
    auto* const address = static_cast<std::byte*>(const_cast<void*>(buffer));
    basic = find_type(type);
    good = count >= 0;
    if (!good) return;
    if (basic) {
      bytes = bytes_of(*basic);
      data = {address, std::uint64_t(count) * bytes, {}};
      good = address || data.bytes == 0;
      return;
    }
    keep = find_layout(type);
    good = keep != nullptr;
    if (!good || !keep->described) return;
    basic = keep->basic;
    if (!basic) return;
    bytes = bytes_of(*basic);
    if (keep->with_gaps) keep = keep->with_gaps;
    data = {address, std::uint64_t(count) * keep->size, keep->view};
  }
  static std::uint32_t bytes_of(const TypeInfo& type) {
    return type.dense || type.type == reducing::Type::none ? type.bytes : std::uint32_t(reducing::size_of(type.type));
  }
};

inline bool is_no_op(MPI_Op op) {
  static const MPI_Op no_op = MPI_NO_OP;
  return op == no_op;
}

inline void combine_by_host(const windows::Window::Operation& operation, const std::byte* from, std::byte* at,
                            std::uint64_t count) {
  constexpr std::uint64_t most = 1 << 20;  // elements: what an int counts on every host
  const auto type = (MPI_Datatype)operation.context[0];
  const auto op = (MPI_Op)operation.context[1];
  for (std::uint64_t i = 0; i < count; i += most)
    if (host.Reduce_local(from + i * operation.bytes, at + i * operation.bytes, int(std::min(most, count - i)), type,
                          op) != MPI_SUCCESS)
      throw team::Broken("the host's MPI_Reduce_local failed");
}

// Returns whether the host defines the operator on the type: hosts define more than MPI demands, and differ in that.
inline bool host_combines(MPI_Op op, const TypeInfo& type) {
  const ErrorHandlerGuard guard;
  std::vector<std::max_align_t> zeros(2 * (type.bytes / sizeof(std::max_align_t) + 1));
  return host.Reduce_local(zeros.data(), zeros.data() + zeros.size() / 2, 1, type.handle, op) == MPI_SUCCESS;
}

// Describes the operation on elements of that type. False: the operator is not predefined, or not defined on the type.
inline bool describe_slowly(windows::Window::Operation& operation, MPI_Op op, const TypeInfo& type) {
  static const MPI_Op replace = MPI_REPLACE;
  static const MPI_Datatype character = MPI_CHAR;
  constexpr reducing::Type as_number = std::is_signed_v<char> ? reducing::Type::i8 : reducing::Type::u8;
  operation = {};
  operation.type = type.handle == character ? as_number : type.type;
  operation.bytes = TypedElements::bytes_of(type);
  if (const auto known = find_op(op)) {
    operation.op = *known;
    operation.fold = reducing::fold(*known, operation.type);
    if (operation.fold) return true;
    if (!type.dense || !host_combines(op, type)) return false;
    operation.call = combine_by_host;
    operation.context[0] = (std::uint64_t)type.handle;
    operation.context[1] = (std::uint64_t)op;
    return true;
  }
  operation.replaces = op == replace;
  return operation.replaces || is_no_op(op);
}

// Cache of each thread's last result, since programs repeat operations. Predefined handles are never reused.
struct LastDescribed {
  MPI_Op op;
  const TypeInfo* type;
  windows::Window::Operation operation;
};
inline const PerThread<LastDescribed> last_described;

inline const windows::Window::Operation* describe(MPI_Op op, const TypeInfo& type) {
  LastDescribed& last = *last_described;
  if (last.op == op && last.type == &type) [[likely]]
    return &last.operation;
  last.type = nullptr;
  if (!describe_slowly(last.operation, op, type)) return nullptr;
  last.op = op;
  last.type = &type;
  return &last.operation;
}

// Data in dense ordinary memory: the program's, or a copy, which scatter() stores in the program's memory.
class Gathered {
 public:
  Gathered(const layout::Data& data, bool filled)
      : data_(data), device_(devices::possible() && devices::is_device(data)) {
    if (data.dense() && !device_) return;
    copy_.emplace(data.bytes);
    if (!copy_->data()) throw OutOfMemory();
    if (!filled) return;
    if (!device_) layout::gather(copy_->data(), data, 0, data.bytes);
    else if (!devices::gather(copy_->data(), data, 0, data.bytes))
      throw team::Broken("a copy to or from a device failed");
  }
  std::byte* at() const { return copy_ ? copy_->data() : data_.address; }
  void scatter() const {
    if (!copy_) return;
    if (!device_) layout::scatter(data_, 0, copy_->data(), data_.bytes);
    else if (!devices::scatter(data_, 0, copy_->data(), data_.bytes))
      throw team::Broken("a copy to or from a device failed");
  }

 private:
  layout::Data data_;
  bool device_;
  std::optional<memory::Temporary> copy_;
};

// combine() if device memory is possible: copies all data to ordinary memory at once.
inline void combine_by_devices(windows::Window& window, int rank, const layout::Data& target, const layout::Data& given,
                               const layout::Data* wanted, const windows::Window::Operation& operation) {
  const Gathered from(given, true), fetched(wanted ? *wanted : layout::Data{}, false);
  window.accumulate(rank, target, 0, target.bytes, from.at(), wanted ? fetched.at() : nullptr, operation);
  if (wanted) fetched.scatter();
}

// Combines `given` with the target and fetches the old values to `wanted`; either may be nullptr. Data that are not
// dense are copied through buffers on the stack.
inline void combine(windows::Window& window, int rank, const layout::Data& target, const layout::Data* given,
                    const layout::Data* wanted, const windows::Window::Operation& operation) {
  if (devices::possible()) [[unlikely]]
    return combine_by_devices(window, rank, target, given ? *given : layout::Data{}, wanted, operation);
  const bool gathers = given && !given->dense(), scatters = wanted && !wanted->dense();
  if (!gathers && !scatters)
    return window.accumulate(rank, target, 0, target.bytes, given ? given->address : nullptr,
                             wanted ? wanted->address : nullptr, operation);
  alignas(64) std::byte in[4096], out[4096];
  const std::uint64_t most = sizeof in / operation.bytes * operation.bytes;
  for (std::uint64_t done = 0; done < target.bytes;) {
    const std::uint64_t n = std::min(most, target.bytes - done);
    if (gathers) layout::gather(in, *given, done, n);
    std::byte* const fetched = scatters ? out : wanted ? wanted->address + done : nullptr;
    window.accumulate(rank, target, done, n,
                      gathers ? in
                      : given ? given->address + done
                              : nullptr,
                      fetched, operation);
    if (scatters) layout::scatter(*wanted, done, out, n);
    done += n;
  }
}

struct Fetching {
  void* buffer = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type{};
};

// All cases but the quick one. `fetching`: where the old values go; nullptr for MPI_Accumulate.
template <class HostCall>
[[gnu::noinline]] int accumulate_slowly(OneSided* state, const char* function, const void* origin, MPI_Count count,
                                        MPI_Datatype type, const Fetching* fetching, int rank, MPI_Aint displacement,
                                        MPI_Count target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win,
                                        HostCall host_call) {
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  windows::Window& window = *state->window;
  if (unsigned(rank) >= unsigned(window.size())) return host_call();
  const windows::Memory& memory = window.memory(rank);
  return on_window(win, function, [&]() -> int {
    const TypedElements target(address_of(memory, displacement), target_count, target_type);
    if (target_count < 0 || (!target.good && memory.bytes)) return host_call();
    if (!target.basic) {
      if (target.data.bytes == 0 && target.keep && target.keep->size == 0) return MPI_SUCCESS;
      return raise_on(win, function, "the target's type is not made of one predefined type", MPI_ERR_TYPE);
    }
    const windows::Window::Operation* const operation = describe(op, *target.basic);
    // If there are no elements, any predefined operator is valid.
    if (!operation && (target.data.bytes || !find_op(op)))
      return raise_on(win, function, "the operator is not predefined, or not defined on the type", MPI_ERR_OP);
    const bool gives = !is_no_op(op);
    if (!gives && !fetching)
      return raise_on(win, function, "MPI_NO_OP is allowed only in calls that fetch", MPI_ERR_OP);
    if (!window.accessible(rank)) return raise_no_epoch(win, function);
    if (!lies_in(memory, displacement, target.data)) return raise_range(win, function, displacement);
    const TypedElements given(gives ? origin : nullptr, gives ? count : 0, gives ? type : host.byte);
    const TypedElements wanted(fetching ? fetching->buffer : nullptr, fetching ? fetching->count : 0,
                               fetching ? fetching->type : host.byte);
    if (fetching && fetching->count < 0) return raise_on(win, function, "a negative count", MPI_ERR_COUNT);
    if (!given.good || !wanted.good) return host_call();
    const std::uint32_t each = target.bytes;
    const auto fits = [&](const TypedElements& ours) {
      const bool empty = ours.good && ours.data.bytes == 0 && (!ours.keep || ours.keep->described);
      return ours.data.bytes == target.data.bytes && (empty || (ours.basic && ours.bytes == each));
    };
    if ((gives && !fits(given)) || (fetching && !fits(wanted)))
      return raise_on(win, function, "the types do not match", MPI_ERR_TYPE);
    if (target.data.bytes == 0) return MPI_SUCCESS;
    count_one_sided(one_sided_counts.accumulates, target.data.bytes);
    combine(window, rank, target.data, gives ? &given.data : nullptr, fetching ? &wanted.data : nullptr, *operation);
    return MPI_SUCCESS;
  });
}

template <class HostCall>
int combine_elements(const char* function, const void* origin, MPI_Count count, MPI_Datatype type,
                     const Fetching* fetching, int rank, MPI_Aint displacement, MPI_Count target_count,
                     MPI_Datatype target_type, MPI_Op op, MPI_Win win, HostCall host_call) {
  OneSided* const state = one_sided(win);
  if (!state) return host_call();
  windows::Window& window = *state->window;
  const Quick quick(window, origin, count, type, rank, displacement, target_count, target_type);
  const windows::Window::Operation* operation = nullptr;
  if (!quick.at || (!fetching && is_no_op(op)) ||
      (fetching && (fetching->count != count || fetching->type != type || !fetching->buffer)) ||
      !(operation = describe(op, *quick.type)))
    return accumulate_slowly(state, function, origin, count, type, fetching, rank, displacement, target_count,
                             target_type, op, win, host_call);
  count_one_sided(one_sided_counts.accumulates, quick.bytes);
  return on_window(win, function, [&] {
    window.accumulate(rank, quick.at, static_cast<const std::byte*>(origin),
                      fetching ? static_cast<std::byte*>(fetching->buffer) : nullptr, std::uint64_t(count), *operation);
    return MPI_SUCCESS;
  });
}

// `request`: the last argument of MPI_Raccumulate and MPI_Rget_accumulate.
template <Function number, class N, class... Request>
static int accumulate(const void* origin, N count, MPI_Datatype type, int rank, MPI_Aint displacement, N target_count,
                      MPI_Datatype target_type, MPI_Op op, MPI_Win win, Request... request) {
  return at_once(
      win,
      [&]() -> int {
        return combine_elements(name_of(number), origin, count, type, nullptr, rank, displacement, target_count,
                                target_type, op, win, [&]() -> int {
                                  return at_host<number>(origin, count, type, rank, displacement, target_count,
                                                         target_type, op, win, request...);
                                });
      },
      request...);
}

template <Function number, class N, class... Request>
static int get_accumulate(const void* origin, N count, MPI_Datatype type, void* result, N result_count,
                          MPI_Datatype result_type, int rank, MPI_Aint displacement, N target_count,
                          MPI_Datatype target_type, MPI_Op op, MPI_Win win, Request... request) {
  const Fetching fetching{result, result_count, result_type};
  return at_once(
      win,
      [&]() -> int {
        return combine_elements(name_of(number), origin, count, type, &fetching, rank, displacement, target_count,
                                target_type, op, win, [&]() -> int {
                                  return at_host<number>(origin, count, type, result, result_count, result_type, rank,
                                                         displacement, target_count, target_type, op, win, request...);
                                });
      },
      request...);
}

template <Function number>
static int fetch_and_op(const void* origin, void* result, MPI_Datatype type, int rank, MPI_Aint displacement, MPI_Op op,
                        MPI_Win win) {
  const Fetching fetching{result, 1, type};
  return combine_elements(name_of(number), origin, 1, type, &fetching, rank, displacement, 1, type, op, win,
                          [&]() -> int { return at_host<number>(origin, result, type, rank, displacement, op, win); });
}

// Returns whether MPI_Compare_and_swap accepts the type: integers, logical types and bytes.
inline bool compares(const TypeInfo& info) {
  return (reducing::associative(info.type) || info.type == reducing::Type::character) && info.dense &&
         std::has_single_bit(info.bytes) && info.bytes <= 8;
}

template <Function number>
static int compare_and_swap(const void* origin, const void* compare, void* result, MPI_Datatype type, int rank,
                            MPI_Aint at, MPI_Win win) {
  constexpr const char* function = name_of(number);
  OneSided* const state = one_sided(win);
  const TypeInfo* const info = state ? find_type(type) : nullptr;
  if (state && rank == MPI_PROC_NULL) return MPI_SUCCESS;
  if (!info || !compares(*info) || !origin || !compare || !result || unsigned(rank) >= unsigned(state->window->size()))
    return at_host<number>(origin, compare, result, type, rank, at, win);
  windows::Window& window = *state->window;
  const windows::Memory& memory = window.memory(rank);
  const layout::Data target{address_of(memory, at), info->bytes, {}};
  if (!window.accessible(rank)) return raise_no_epoch(win, function);
  if (!lies_in(memory, at, target)) return raise_range(win, function, at);
  count_one_sided(one_sided_counts.accumulates, info->bytes);
  return on_window(win, function, [&] {
    const auto swap = [&](const void* value, const void* expected, void* fetched) {
      window.compare_and_swap(rank, target.address, static_cast<const std::byte*>(expected),
                              static_cast<const std::byte*>(value), static_cast<std::byte*>(fetched), info->bytes);
    };
    if (!devices::possible()) [[likely]] {
      swap(origin, compare, result);
      return MPI_SUCCESS;
    }
    const auto ours = [&](const void* buffer) {
      return layout::Data{static_cast<std::byte*>(const_cast<void*>(buffer)), info->bytes, {}};
    };
    const Gathered value(ours(origin), true), expected(ours(compare), true), fetched(ours(result), false);
    swap(value.at(), expected.at(), fetched.at());
    fetched.scatter();
    return MPI_SUCCESS;
  });
}

}  // namespace nearfield::mpi
