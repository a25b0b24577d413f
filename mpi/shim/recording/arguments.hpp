// What a call says of itself, found in the text of its parameters (mpi/functions.def) when the shim is compiled: its
// communicator, its partner, and the bytes that its rank gives (of Scatter and Scatterv: gets), of a block where the
// operation has one for each rank. Of receives that is the room they offer. Neighbours' lists count as nothing.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

#include "mpi/shim/host.hpp"

namespace nearfield::mpi::recording {

// A row's name and parameters as a template argument: "Send (const void*, int, MPI_Datatype, int, int, MPI_Comm)".
template <std::size_t size>
struct RowText {
  char text[size];
  constexpr RowText(const char (&literal)[size]) {  // NOLINT(google-explicit-constructor): a literal becomes one
    for (std::size_t i = 0; i < size; ++i) text[i] = literal[i];
  }
  constexpr std::string_view name() const {
    const std::string_view all(text, size - 1);
    return all.substr(0, all.find_first_of(" ("));
  }
  constexpr std::string_view parameters() const {
    std::string_view all(text, size - 1);
    all.remove_prefix(all.find('(') + 1);
    return all.substr(0, all.rfind(')'));
  }
};

// Places of parameters; -1: there is none.
struct Side {
  int buffer = -1, count = -1, type = -1;
  bool varying = false;  // lists of counts, and perhaps of types
  bool typed = false;
};
struct Places {
  int communicator = -1, window = -1, partner = -1;
  Side first, last;  // of what is moved; the same where there is one
};

namespace detail {
enum class Word : std::uint8_t { other, buffer, number, numbers, type, types, communicator, window };

constexpr Word word(std::string_view parameter) {
  const bool list = parameter.find('*') != parameter.npos;
  const auto has = [&](std::string_view part) { return parameter.find(part) != parameter.npos; };
  if (has("void*")) return Word::buffer;
  if (has("MPI_Datatype")) return list ? Word::types : Word::type;
  if (has("MPI_Comm")) return list ? Word::other : Word::communicator;
  if (has("MPI_Win")) return list ? Word::other : Word::window;
  if (has("MPI_Count") || has("MPI_Aint") || parameter.starts_with("int") || parameter.starts_with("const int"))
    return list ? Word::numbers : Word::number;
  return Word::other;
}
}  // namespace detail

constexpr Places places_in(std::string_view parameters) {
  using detail::Word;
  std::array<Word, 16> words{};
  int count = 0;
  while (!parameters.empty()) {
    const auto end = std::min(parameters.find(','), parameters.size());
    std::string_view one = parameters.substr(0, end);
    while (one.starts_with(' ')) one.remove_prefix(1);
    words[std::size_t(count++)] = detail::word(one);
    parameters.remove_prefix(std::min(end + 1, parameters.size()));
  }
  const auto at = [&](int i) { return i >= 0 && i < count ? words[std::size_t(i)] : Word::other; };
  Places places;
  int sides = 0;
  for (int i = 0; i < count; ++i) {
    if (at(i) == Word::communicator && places.communicator < 0) places.communicator = i;
    if (at(i) == Word::window && places.window < 0) places.window = i;
    if (at(i) != Word::type && at(i) != Word::types) continue;
    Side side{
        .buffer = i, .count = -1, .type = i, .varying = at(i - 1) == Word::numbers, .typed = at(i) == Word::types};
    if (side.varying) side.count = at(i - 2) == Word::numbers ? i - 2 : i - 1;
    else if (at(i - 1) == Word::number) side.count = i - 1;
    while (side.buffer >= 0 && at(side.buffer) != Word::buffer) --side.buffer;
    while (at(side.buffer - 1) == Word::buffer) --side.buffer;  // of reductions what is given comes first
    if (sides++ == 0) places.first = side;
    places.last = side;
    if (at(i + 1) == Word::number && at(i + 2) == Word::number && places.partner < 0) places.partner = i + 1;
  }
  if (places.partner < 0 && at(0) == Word::number && at(1) == Word::number && at(2) == Word::communicator)
    places.partner = 0;  // of probes
  return places;
}

std::uint64_t bytes_of(std::int64_t count, MPI_Datatype type);
// How many ranks lists have an entry for, and which is ours; 0 where that is not known.
struct Extent {
  int rank = 0, size = 0;
};
// `local`: also of an intercommunicator those of our own group, as reductions have it; else whom it connects us with.
Extent extent_of(MPI_Comm communicator, bool local);

template <RowText row, class... Arguments>
struct Reader {
  static constexpr Places places = places_in(row.parameters());
  static constexpr bool neighbors = row.name().find("eighbor") != std::string_view::npos;
  static constexpr bool reduces = row.name().find("educe") != std::string_view::npos;
  static constexpr bool scatters = row.name().find("catter") == 1 || row.name().find("scatter") == 1;
  using All = std::tuple<const Arguments&...>;

  static MPI_Comm communicator(const All& all) {
    if constexpr (places.communicator >= 0) return std::get<places.communicator>(all);
    else return host.comm_null;
  }
  static int partner(const All& all) {
    if constexpr (places.partner >= 0) return std::get<places.partner>(all);
    else return -1;
  }
  template <Side side>
  static std::uint64_t bytes_at(const All& all, bool own_alone) {
    if constexpr (side.type < 0) return 0;
    else if constexpr (side.varying) {
      if constexpr (neighbors || places.communicator < 0) return 0;
      else {
        const Extent ranks = extent_of(communicator(all), reduces);
        const auto* const counts = std::get<side.count>(all);
        std::uint64_t sum = 0;
        if (!counts) return 0;
        for (int i = own_alone ? ranks.rank : 0; i < (own_alone ? ranks.rank + 1 : ranks.size); ++i)
          if constexpr (side.typed) sum += bytes_of(counts[i], std::get<side.type>(all)[i]);
          else sum += bytes_of(counts[i], std::get<side.type>(all));
        return sum;
      }
    } else if constexpr (side.typed) return 0;
    else if constexpr (side.count < 0) return bytes_of(1, std::get<side.type>(all));
    else return bytes_of(std::int64_t(std::get<side.count>(all)), std::get<side.type>(all));
  }
  static std::uint64_t bytes(const All& all) {
    constexpr Side mine = scatters ? places.last : places.first, other = scatters ? places.first : places.last;
    if constexpr (mine.type >= 0 && mine.buffer >= 0 && mine.type != other.type) {
      const void* const buffer = std::get<mine.buffer>(all);
      if (buffer == MPI_IN_PLACE) return scatters && other.varying ? 0 : bytes_at<other>(all, true);
    }
    return bytes_at<mine>(all, false);
  }
};

}  // namespace nearfield::mpi::recording
