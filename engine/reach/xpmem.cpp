#include "engine/reach/peers.hpp"

namespace nearfield::reach {
namespace {
Result<std::uint64_t> open(Peers&) { return Error{"not there yet"}; }
}  // namespace
constinit const Way xpmem_way = {
    .name = "xpmem",
    .part_of = nullptr,
    .about = "",
    .costs = {},
    .standing = false,
    .open = open,
    .meet = nullptr,
    .place = nullptr,
    .offer = nullptr,
    .descriptor = nullptr,
    .take = nullptr,
    .attach = nullptr,
    .read = nullptr,
    .write = nullptr,
    .part = nullptr,
    .close = nullptr,
};
}  // namespace nearfield::reach
