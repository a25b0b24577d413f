// MPI_T_cvar_: settings, which are read once per process and never written.
#include <algorithm>
#include <cstring>

#include "engine/base/made.hpp"
#include "mpi/shim/tools/handles.hpp"
#include "mpi/shim/tools/interface.hpp"
#include "mpi/shim/tools/variables.hpp"

namespace nearfield::mpi {
namespace tools {

struct Control {
  const SettingRow* setting = nullptr;
  std::size_t characters = 0;  // size of the buffer of MPI_T_cvar_read, for a string
};

struct ControlHandles : Handles<MPI_T_cvar_handle, Control> {};

namespace {

ControlHandles& handles() { return made<ControlHandles>(); }

// Returns the type that a variable's value is passed as: names and texts as strings, switches as 0 or 1.
MPI_Datatype type_of(const SettingValue& value) {
  if (std::holds_alternative<bool>(value)) return MPI_INT;
  if (std::holds_alternative<std::uint64_t>(value)) return MPI_UNSIGNED_LONG_LONG;
  if (std::holds_alternative<double>(value)) return MPI_DOUBLE;
  return MPI_CHAR;
}

void put(const SettingValue& value, std::size_t characters, void* buffer) {
  if (const auto* const text = std::get_if<std::string>(&value)) {
    int length = int(characters);
    give_text(*text, static_cast<char*>(buffer), &length);
  } else if (const auto* const on = std::get_if<bool>(&value)) {
    *static_cast<int*>(buffer) = *on;
  } else if (const auto* const bytes = std::get_if<std::uint64_t>(&value)) {
    *static_cast<unsigned long long*>(buffer) = *bytes;
  } else {
    *static_cast<double*>(buffer) = std::get<double>(value);
  }
}

}  // namespace

void forget_handles_of_controls() {
  handles().release_of([](const Control&) { return true; });
}

}  // namespace tools

using namespace tools;

int T_cvar_get_num(int* number) { return tools::number(controls(), host.T_cvar_get_num, number); }

int T_cvar_get_info(int index, char* name, int* name_length, int* verbosity, MPI_Datatype* type, MPI_T_enum* kinds,
                    char* about, int* about_length, int* bind, int* scope) {
  return answer([&]() -> int {
    if (const int code = know_controls(); code != MPI_SUCCESS) return code;
    if (!controls().is_ours(index))
      return at_host(host.T_cvar_get_info, controls().to_host(index), name, name_length, verbosity, type, kinds, about,
                     about_length, bind, scope);
    const SettingRow& setting = control_variables()[std::size_t(controls().own(index))];
    give_text(setting.variable, name, name_length);
    give_text(description(setting), about, about_length);
    give(verbosity, MPI_T_VERBOSITY_USER_BASIC);
    give(type, type_of(value_of(setting, Settings())));
    give(kinds, MPI_T_ENUM_NULL);
    give(bind, MPI_T_BIND_NO_OBJECT);
    give(scope, MPI_T_SCOPE_READONLY);
    return MPI_SUCCESS;
  });
}

int T_cvar_get_index(const char* name, int* index) {
  return answer([&]() -> int {
    if (const int code = know_controls(); code != MPI_SUCCESS) return code;
    if (!name || !index) return at_host(host.T_cvar_get_index, name, index);
    const auto settings = control_variables();
    const auto found =
        std::ranges::find_if(settings, [&](const SettingRow& setting) { return !std::strcmp(name, setting.variable); });
    if (found != settings.end()) {
      *index = controls().of_own(int(found - settings.begin()));
      return MPI_SUCCESS;
    }
    const int code = at_host(host.T_cvar_get_index, name, index);
    if (code == MPI_SUCCESS) *index = controls().from_host(*index);
    return code;
  });
}

int T_cvar_handle_alloc(int index, void* object, MPI_T_cvar_handle* handle, int* count) {
  return answer([&]() -> int {
    if (const int code = know_controls(); code != MPI_SUCCESS) return code;
    if (!controls().is_ours(index))
      return at_host(host.T_cvar_handle_alloc, controls().to_host(index), object, handle, count);
    if (!handle || !count) return MPI_T_ERR_INVALID;
    const SettingRow& setting = control_variables()[std::size_t(controls().own(index))];
    const SettingValue now = in_force(setting);
    std::size_t characters = 0;
    if (const auto* const text = std::get_if<std::string>(&now))
      characters = std::max(text->size() + 1, std::size_t{256});
    *handle = handles().make({&setting, characters});
    *count = int(std::max(characters, std::size_t{1}));
    return MPI_SUCCESS;
  });
}

int T_cvar_handle_free(MPI_T_cvar_handle* handle) {
  return answer([&]() -> int {
    const Whose whose = handle ? handles().find(*handle).whose : Whose::hosts;
    if (whose == Whose::hosts) return at_host(host.T_cvar_handle_free, handle);
    if (whose == Whose::freed) return no_handle();
    handles().release(*handle);
    *handle = MPI_T_CVAR_HANDLE_NULL;
    return MPI_SUCCESS;
  });
}

int T_cvar_read(MPI_T_cvar_handle handle, void* buffer) {
  return answer([&]() -> int {
    const auto [whose, control] = handles().find(handle);
    if (whose == Whose::hosts) return at_host(host.T_cvar_read, handle, buffer);
    if (whose == Whose::freed) return no_handle();
    if (!buffer) return MPI_T_ERR_INVALID;
    put(in_force(*control.setting), control.characters, buffer);
    return MPI_SUCCESS;
  });
}

int T_cvar_write(MPI_T_cvar_handle handle, const void* buffer) {
  return answer([&]() -> int {
    const Whose whose = handles().find(handle).whose;
    if (whose == Whose::hosts) return at_host(host.T_cvar_write, handle, buffer);
    return whose == Whose::freed ? no_handle() : MPI_T_ERR_CVAR_SET_NEVER;
  });
}

}  // namespace nearfield::mpi
