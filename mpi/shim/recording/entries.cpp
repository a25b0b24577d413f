// An Around for every function of the shim, except those of the tools interface.
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string>

#include "engine/settings/settings.hpp"
#include "mpi/shim/collectives/engine/carry.hpp"
#include "mpi/shim/process/functions.hpp"
#include "mpi/shim/recording/recording.hpp"

namespace nearfield::mpi::recording {
namespace {

bool begins(std::string_view name, std::initializer_list<const char*> with) {
  for (const char* each : with)
    if (name.starts_with(each)) return true;
  return false;
}

// Classifies a function by its name and the engine's table of collectives.
FunctionKind kind_of(std::string_view name, const Roles& r) {
  if (begins(name, {"Comm_", "Intercomm_", "Cart_", "Graph_", "Dist_graph_"})) return FunctionKind::communicator;
  if (begins(name, {"File_"})) return FunctionKind::file;
  if (begins(name, {"Win_"}) || r.window >= 0) return FunctionKind::window;
  if (begins(name, {"Wait", "Test", "Request_", "Start", "Cancel", "Pready", "Parrived"}))
    return FunctionKind::completion;
  if (begins(name, {"Mrecv", "Imrecv"}) || r.partner() >= 0) return FunctionKind::message;
  std::string plain;
  for (const char c : name) plain += char(std::tolower(c));
  for (const char* ending : {"_c", "_init"})
    if (plain.ends_with(ending)) plain.resize(plain.size() - std::strlen(ending));
  for (std::size_t c = 0; c < collectives::operation_count; ++c) {
    const std::string_view operation = collectives::name(collectives::Collective(c));
    if (plain == operation || (plain.starts_with('i') && plain.substr(1) == operation))
      return operation.starts_with("neighbor") ? FunctionKind::neighbors : FunctionKind::collective;
  }
  return FunctionKind::other;
}

template <mpi::Function number, class Signature>
void* placed(void* function) {
  using Form = Around<number, Signature>;
  const std::string_view name = function_names[unsigned(number)];
  if (name.starts_with("MPI_T_")) return function;
  Form::inner = reinterpret_cast<decltype(Form::inner)>(function);
  Form::function.kind = kind_of(name.substr(name.find('_') + 1), roles[unsigned(number)]);
  return reinterpret_cast<void*>(&Form::call);
}

const char* asked_for(const SettingText& setting) {
  const char* const text = std::getenv(setting.variable);
  return text && *text ? text : nullptr;
}

}  // namespace

const char* name(FunctionKind kind) {
  static constexpr const char* names[] = {"collective", "neighbors",    "message", "completion",
                                          "window",     "communicator", "file",    "other"};
  static_assert(sizeof names / sizeof *names == std::size_t(FunctionKind::count));
  return names[std::size_t(kind)];
}

bool wanted() {
  static const bool asked = asked_for(early::record) || asked_for(early::trace);
  return asked;
}

void* around(mpi::Function number, void* function) {
  switch (number) {
#define FUNCTION(row, types) \
  case mpi::Function::row: return placed<mpi::Function::row, int types>(function);
#define OF_HANDLES(result, row, types)
#include "mpi/each_function.def"
#define F(row, types) \
  case mpi::Function::row: return placed<mpi::Function::row, int types>(function);
#define L(row, types) \
  case mpi::Function::row##_c: return placed<mpi::Function::row##_c, int types>(function);
#include "mpi/shim/process/signatures.def"
#undef F
#undef L
    default: return function;
  }
}

}  // namespace nearfield::mpi::recording
