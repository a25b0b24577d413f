// An Around for every function that the shim offers, but those of the tools interface.
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string>

#include "engine/settings/settings.hpp"
#include "mpi/shim/collectives/carry.hpp"
#include "mpi/shim/functions.hpp"
#include "mpi/shim/recording/recording.hpp"

namespace nearfield::mpi::recording {
namespace {

bool begins(std::string_view name, std::initializer_list<const char*> with) {
  for (const char* each : with)
    if (name.starts_with(each)) return true;
  return false;
}

// By its name; of what is a collective the engine's table knows.
Kind kind_of(std::string_view name, const Places& places) {
  if (begins(name, {"Comm_", "Intercomm_", "Cart_", "Graph_", "Dist_graph_"})) return Kind::communicator;
  if (begins(name, {"File_"})) return Kind::file;
  if (begins(name, {"Win_"}) || places.window >= 0) return Kind::window;
  if (begins(name, {"Wait", "Test", "Request_", "Start", "Cancel", "Pready", "Parrived"})) return Kind::completion;
  if (begins(name, {"Mrecv", "Imrecv"}) || places.partner >= 0) return Kind::message;
  std::string plain;
  for (const char c : name) plain += char(std::tolower(c));
  for (const char* ending : {"_c", "_init"})
    if (plain.ends_with(ending)) plain.resize(plain.size() - std::strlen(ending));
  for (std::size_t c = 0; c < collectives::operation_count; ++c) {
    const std::string_view operation = collectives::name(collectives::Collective(c));
    if (plain == operation || (plain.starts_with('i') && plain.substr(1) == operation))
      return operation.starts_with("neighbor") ? Kind::neighbors : Kind::collective;
  }
  return Kind::other;
}

template <auto number, class Signature>
void* placed(const char* name, const char* parameters, void* function) {
  using Form = Around<number, Signature>;
  static const std::string full =  // never destroyed before the last call is written
      std::string(*name == 'X' ? "MPI" : "MPI_") + name;
  const Places places = places_in(name, parameters);
  Form::inner = reinterpret_cast<decltype(Form::inner)>(function);
  Form::function = {full.c_str(), kind_of(name, places), places};
  return reinterpret_cast<void*>(&Form::call);
}

const char* asked_for(const SettingText& setting) {
  const char* const text = std::getenv(setting.variable);
  return text && *text ? text : nullptr;
}

}  // namespace

const char* name(Kind kind) {
  static constexpr const char* names[] = {"collective", "neighbors",    "message", "completion",
                                          "window",     "communicator", "file",    "other"};
  static_assert(sizeof names / sizeof *names == std::size_t(Kind::count));
  return names[std::size_t(kind)];
}

bool wanted() {
  static const bool asked = asked_for(early::record) || asked_for(early::trace);
  return asked;
}

void* around(const char* name, void* function) {
  if (!std::strncmp(name, "T_", 2)) return function;
  using Number = mpi::Function;
#define TEXT(...) #__VA_ARGS__
#define EXPANDED(...) TEXT(__VA_ARGS__)
#define AROUND(row, number, types) \
  if (!std::strcmp(name, #row)) return placed<Number::number, int types>(#row, EXPANDED(types), function);
#define FUNCTION(row, types) AROUND(row, row, types)
#define OF_HANDLES(result, row, types)
#include "mpi/each_function.def"
#define F(row, types) AROUND(row, Blocking_##row, types)
#define L(row, types) AROUND(row##_c, Blocking_##row##_c, types)
#include "mpi/shim/signatures.def"
#undef F
#undef L
  return function;
}

}  // namespace nearfield::mpi::recording
