// A CallWrapper for every function that the shim offers, except those of the tools interface.
#include <cstdlib>

#include "engine/settings/settings.hpp"
#include "mpi/shim/process/functions.hpp"
#include "mpi/shim/recording/recording.hpp"

namespace nearfield::mpi::recording {
namespace {

template <Function number, class Signature>
void* placed(void* function) {
  using Form = CallWrapper<number, Signature>;
  if (traits_of(number).kind == FunctionKind::tools) return function;
  recorded[unsigned(number)] = function;
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
  static_assert(std::size(names) == std::size_t(FunctionKind::tools));
  return names[std::size_t(kind)];
}

bool wanted() {
  static const bool asked = asked_for(early::record) || asked_for(early::trace);
  return asked;
}

void* around(Function number, void* function) {
  switch (number) {
#define OURS(name, result, parameters, ...) \
  case Function::name: return placed<Function::name, result parameters>(function);
#define HANDLE(...)
#define BLOCKING(...) OURS(__VA_ARGS__)
#include "mpi/functions.def"
    default: return function;
  }
}

}  // namespace nearfield::mpi::recording
