#include "mpi/shim/recording/arguments.hpp"

#include <algorithm>
#include <array>

#include "mpi/shim/calls/calling.hpp"
#include "mpi/shim/communicators/communicator.hpp"
#include "mpi/shim/handles/types.hpp"

namespace nearfield::mpi::recording {
namespace {

enum class Parameter : std::uint8_t { other, buffer, number, numbers, wide_numbers, type, types, communicator, window };

Parameter parameter_of(std::string_view type) {
  const bool list = type.find('*') != type.npos;
  const auto has = [&](std::string_view part) { return type.find(part) != type.npos; };
  if (has("void*")) return Parameter::buffer;
  if (has("MPI_Datatype")) return list ? Parameter::types : Parameter::type;
  if (has("MPI_Comm")) return list ? Parameter::other : Parameter::communicator;
  if (has("MPI_Win")) return list ? Parameter::other : Parameter::window;
  if (has("MPI_Count") || has("MPI_Aint")) return list ? Parameter::wide_numbers : Parameter::number;
  if (type.starts_with("int") || type.starts_with("const int")) return list ? Parameter::numbers : Parameter::number;
  return Parameter::other;
}

bool is_list(Parameter parameter) { return parameter == Parameter::numbers || parameter == Parameter::wide_numbers; }

std::uint64_t bytes_of(std::int64_t count, MPI_Datatype type) {
  if (count <= 0 || type == host.type_null) return 0;
  if (const TypeInfo* const info = find_type(type)) return std::uint64_t(count) * info->bytes;
  MPI_Count bytes = 0;
  if (host.Type_size_x(type, &bytes) != MPI_SUCCESS || bytes < 0) return 0;
  return std::uint64_t(count) * std::uint64_t(bytes);
}

// How many ranks lists have an entry for, and which is ours; 0 where that is not known.
struct Extent {
  int rank = 0, size = 0;
};
// `local`: also of an intercommunicator those of our own group, as reductions have it; else whom it connects us with.
Extent extent_of(MPI_Comm communicator, bool local) {
  if (communicator == host.comm_null) return {};
  const Communicator* const state = communicator_of(communicator);
  if (!state) return {};
  Extent ranks{state->rank, state->size};
  if (local && state->inter && host.Comm_size(communicator, &ranks.size) != MPI_SUCCESS) return {};
  return ranks;
}

template <class T>
T argument(const std::uint64_t* words, int at) {
  return calls::from_word<T>(words[at]);
}

std::uint64_t bytes_of_list(const Places& places, const Side& side, const std::uint64_t* words, bool own_alone) {
  if (places.neighbors || places.communicator < 0 || !words[side.count]) return 0;
  const Extent ranks = extent_of(communicator_in(places, words), places.reduces);
  std::uint64_t sum = 0;
  for (int i = own_alone ? ranks.rank : 0; i < (own_alone ? ranks.rank + 1 : ranks.size); ++i) {
    const std::int64_t count =
        side.wide ? argument<const MPI_Count*>(words, side.count)[i] : argument<const int*>(words, side.count)[i];
    sum += bytes_of(count, side.typed ? argument<const MPI_Datatype*>(words, side.type)[i]
                                      : argument<MPI_Datatype>(words, side.type));
  }
  return sum;
}

std::uint64_t bytes_at(const Places& places, const Side& side, const std::uint64_t* words, bool own_alone) {
  if (side.type < 0) return 0;
  if (side.varying) return bytes_of_list(places, side, words, own_alone);
  if (side.typed) return 0;
  const std::int64_t count = side.count < 0 ? 1 : std::int64_t(words[side.count]);
  return bytes_of(count, argument<MPI_Datatype>(words, side.type));
}

}  // namespace

Places places_in(std::string_view name, std::string_view parameters) {
  parameters = parameters.substr(1, parameters.rfind(')') - 1);
  std::array<Parameter, 16> all{};
  int count = 0;
  while (!parameters.empty()) {
    const auto end = std::min(parameters.find(','), parameters.size());
    std::string_view one = parameters.substr(0, end);
    while (one.starts_with(' ')) one.remove_prefix(1);
    all[std::size_t(count++)] = parameter_of(one);
    parameters.remove_prefix(std::min(end + 1, parameters.size()));
  }
  const auto at = [&](int i) { return i >= 0 && i < count ? all[std::size_t(i)] : Parameter::other; };
  Places places;
  places.neighbors = name.find("eighbor") != name.npos;
  places.reduces = name.find("educe") != name.npos;
  places.scatters = name.find("catter") == 1 || name.find("scatter") == 1;
  int sides = 0;
  for (int i = 0; i < count; ++i) {
    if (at(i) == Parameter::communicator && places.communicator < 0) places.communicator = i;
    if (at(i) == Parameter::window && places.window < 0) places.window = i;
    if (at(i) != Parameter::type && at(i) != Parameter::types) continue;
    Side side{.buffer = i, .type = i, .varying = is_list(at(i - 1)), .typed = at(i) == Parameter::types};
    if (side.varying) side.count = is_list(at(i - 2)) ? i - 2 : i - 1;
    else if (at(i - 1) == Parameter::number) side.count = i - 1;
    side.wide = side.varying && at(side.count) == Parameter::wide_numbers;
    while (side.buffer >= 0 && at(side.buffer) != Parameter::buffer) --side.buffer;
    while (at(side.buffer - 1) == Parameter::buffer) --side.buffer;  // of reductions what is given comes first
    if (sides++ == 0) places.first = side;
    places.last = side;
    if (at(i + 1) == Parameter::number && at(i + 2) == Parameter::number && places.partner < 0) places.partner = i + 1;
  }
  if (places.partner < 0 && at(0) == Parameter::number && at(1) == Parameter::number &&
      at(2) == Parameter::communicator)
    places.partner = 0;  // of probes
  return places;
}

MPI_Comm communicator_in(const Places& places, const std::uint64_t* words) {
  return places.communicator < 0 ? host.comm_null : argument<MPI_Comm>(words, places.communicator);
}

int partner_in(const Places& places, const std::uint64_t* words) {
  return places.partner < 0 ? -1 : int(words[places.partner]);
}

std::uint64_t bytes_in(const Places& places, const std::uint64_t* words) {
  const Side &mine = places.scatters ? places.last : places.first,
             &other = places.scatters ? places.first : places.last;
  if (mine.type >= 0 && mine.buffer >= 0 && mine.type != other.type &&
      argument<const void*>(words, mine.buffer) == MPI_IN_PLACE)
    return places.scatters && other.varying ? 0 : bytes_at(places, other, words, true);
  return bytes_at(places, mine, words, false);
}

}  // namespace nearfield::mpi::recording
