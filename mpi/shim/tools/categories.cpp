// MPI_T_category_: our category "nearfield" holds all our variables and lies in no other. Contents of the host's
// categories are translated to the program's indices. Events are the host's.
#include <cstring>

#include "mpi/shim/tools/interface.hpp"

namespace nearfield::mpi {
namespace tools {
namespace {

constexpr const char own_name[] = "nearfield",
                     own_description[] = "Nearfield, which makes MPI fast inside a node: its settings and statistics";

// Kinds of members of a host's category.
enum class Held : std::uint8_t { controls, performances, categories };

// Returns their number; -1: unknown.
int held_by(int hosts_category, Held what) {
  int of[3] = {};
  const int code =
      at_host(host.T_category_get_info, hosts_category, static_cast<char*>(nullptr), static_cast<int*>(nullptr),
              static_cast<char*>(nullptr), static_cast<int*>(nullptr), &of[0], &of[1], &of[2]);
  return code == MPI_SUCCESS ? of[std::size_t(what)] : -1;
}

// MPI_T_category_get_cvars, _get_pvars and _get_categories; `known`: `indices` are.
int list(int category, int length, int* to, Held what, Appended& indices, int known, int (*host_call)(int, int, int*)) {
  if (known != MPI_SUCCESS) return known;
  if (const int code = know_categories(); code != MPI_SUCCESS) return code;
  if (categories().is_ours(category)) {
    if (length < 0 || (length > 0 && !to)) return MPI_T_ERR_INVALID;
    const int own = what == Held::categories ? 0 : indices.ours();
    for (int i = 0; i < std::min(own, length); ++i) to[i] = indices.of_own(i);
    return MPI_SUCCESS;
  }
  const int hosts = categories().to_host(category), there = std::min(held_by(hosts, what), length);
  const int code = at_host(host_call, hosts, length, to);
  if (code == MPI_SUCCESS && to)
    for (int i = 0; i < there; ++i) to[i] = indices.from_host(to[i]);
  return code;
}

}  // namespace
}  // namespace tools

using namespace tools;

int T_category_get_num(int* number) { return tools::number(categories(), host.T_category_get_num, number); }

int T_category_get_info(int index, char* name, int* name_length, char* about, int* about_length, int* controls_in_it,
                        int* performances_in_it, int* categories_in_it) {
  return answer([&]() -> int {
    if (const int code = know_categories(); code != MPI_SUCCESS) return code;
    if (!categories().is_ours(index))
      return at_host(host.T_category_get_info, categories().to_host(index), name, name_length, about, about_length,
                     controls_in_it, performances_in_it, categories_in_it);
    give_text(own_name, name, name_length);
    give_text(own_description, about, about_length);
    give(controls_in_it, controls().ours());
    give(performances_in_it, performances().ours());
    give(categories_in_it, 0);
    return MPI_SUCCESS;
  });
}

int T_category_get_index(const char* name, int* index) {
  return answer([&]() -> int {
    if (const int code = know_categories(); code != MPI_SUCCESS) return code;
    if (!name || !index) return at_host(host.T_category_get_index, name, index);
    if (!std::strcmp(name, own_name)) {
      *index = categories().of_own(0);
      return MPI_SUCCESS;
    }
    const int code = at_host(host.T_category_get_index, name, index);
    if (code == MPI_SUCCESS) *index = categories().from_host(*index);
    return code;
  });
}

int T_category_get_cvars(int category, int length, int* indices) {
  return answer([&] {
    return list(category, length, indices, Held::controls, controls(), know_controls(), host.T_category_get_cvars);
  });
}

int T_category_get_pvars(int category, int length, int* indices) {
  return answer([&] {
    return list(category, length, indices, Held::performances, performances(), know_performances(),
                host.T_category_get_pvars);
  });
}

int T_category_get_categories(int category, int length, int* indices) {
  return answer([&] {
    return list(category, length, indices, Held::categories, categories(), know_categories(),
                host.T_category_get_categories);
  });
}

// A host without events has none in its categories either.
int T_category_get_num_events(int category, int* number) {
  return answer([&]() -> int {
    if (const int code = know_categories(); code != MPI_SUCCESS) return code;
    const bool ours = categories().is_ours(category);
    if (!ours && host.T_category_get_num_events)
      return host.T_category_get_num_events(categories().to_host(category), number);
    if (!ours && held_by(categories().to_host(category), Held::controls) < 0) return MPI_T_ERR_INVALID_INDEX;
    give(number, 0);
    return MPI_SUCCESS;
  });
}

int T_category_get_events(int category, int length, int* indices) {
  return answer([&]() -> int {
    if (const int code = know_categories(); code != MPI_SUCCESS) return code;
    const bool ours = categories().is_ours(category);
    if (!ours && host.T_category_get_events)
      return host.T_category_get_events(categories().to_host(category), length, indices);
    return ours || held_by(categories().to_host(category), Held::controls) >= 0 ? MPI_SUCCESS : MPI_T_ERR_INVALID_INDEX;
  });
}

}  // namespace nearfield::mpi
