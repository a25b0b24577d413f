#include "mpi/shim/recording/table.hpp"

#include <sys/mman.h>

#include <mutex>
#include <new>
#include <utility>

#include "mpi/shim/communicators/communicator.hpp"

namespace nearfield::mpi::recording {

namespace {

// State of this thread. `table` is nullptr before its first call, and if there was no memory for it (`refused`).
struct ThreadRecord {
  ~ThreadRecord();
  Thread* table = nullptr;
  bool refused = false;
  std::uint64_t waited = 0;
};
const PerThread<ThreadRecord> own;
constinit std::mutex adding;
constinit Thread* free_tables = nullptr;  // of threads that have ended; under the lock

ThreadRecord::~ThreadRecord() {
  if (!table) return;
  const std::lock_guard lock(adding);
  table->next_free = std::exchange(free_tables, table);
}

[[gnu::noinline]] Thread* table_of_thread() {
  if (own->refused) return nullptr;
  const std::lock_guard lock(adding);
  Thread* table = free_tables;
  if (table) {
    free_tables = table->next_free;
  } else {
    void* const memory =
        mmap(nullptr, sizeof(Thread), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      own->refused = true;
      return nullptr;
    }
    table = static_cast<Thread*>(memory);  // all members begin as zero
    Thread* const before = threads.load(std::memory_order_relaxed);
    table->next = before;
    table->number = before ? before->number + 1 : 0;
    threads.store(table, std::memory_order_release);  // SYNC: thread-tables
  }
  own->table = table;
  return table;
}

std::vector<int> members_of(MPI_Comm communicator, decltype(host.Comm_group) group_of) {
  MPI_Group group;
  if (group_of(communicator, &group) != MPI_SUCCESS) return {};
  std::vector<int> members = ranks_in_world(group);
  host.Group_free(&group);
  return members;
}

KnownCommunicator* know(MPI_Comm communicator, std::uint64_t context, bool agreed) {
  const std::lock_guard lock(adding);
  for (KnownCommunicator* one = known.load(std::memory_order_relaxed); one; one = one->next)
    if (one->context == context) return one;
  auto* const one = new KnownCommunicator{};  // never destroyed
  one->context = context;
  one->agreed = agreed;
  one->first = -1;
  one->next = known.load(std::memory_order_relaxed);
  char text[MPI_MAX_OBJECT_NAME + 1] = {};
  int length = 0;
  if (host.Comm_get_name(communicator, text, &length) == MPI_SUCCESS) one->name = text;
  host.Comm_rank(communicator, &one->rank);
  host.Comm_size(communicator, &one->size);
  int inter = 0;
  one->inter = host.Comm_test_inter(communicator, &inter) == MPI_SUCCESS && inter;
  std::vector<int> members = members_of(communicator, host.Comm_group), remote;
  if (one->inter) remote = members_of(communicator, host.Comm_remote_group);
  if (!members.empty()) one->first = members.front();
  one->partners = one->size;
  if (one->inter && host.Comm_remote_size(communicator, &one->partners) != MPI_SUCCESS) one->partners = 0;
  one->sent = std::make_unique<SentTo[]>(std::size_t(one->partners));
  if (one->rank == 0) one->members = std::move(members), one->remote = std::move(remote);
  known.store(one, std::memory_order_relaxed);
  return one;
}

// Returns the place of calls with that function, call site, communicator and size class: a pointer to their first row,
// which is nullptr before the first call. Rows of other algorithms follow the first (CallSiteRow::further).
CallSiteRow** find_place(Thread& table, Function function, const void* site, std::uint64_t context,
                         std::uint32_t size) {
  std::uint64_t hash =
      (std::uint64_t(site) ^ std::uint64_t(size) << 52 ^ context) * 0x9e3779b97f4a7c15u ^ std::uint64_t(function) << 8;
  hash ^= hash >> 32;
  for (std::size_t i = hash;; ++i) {
    CallSiteRow*& row = table.places[i % places_of_a_thread];
    if (!row || (row->function.load(std::memory_order_relaxed) == function && row->site == site &&
                 row->context == context && row->size_class == size)) [[likely]]
      return &row;
  }
}

// pre: the table has fewer than rows_of_a_thread rows.
CallSiteRow& add_row(Thread& table, Function function, const void* site, MPI_Comm communicator, std::uint64_t context,
                     bool agreed, std::uint32_t size, const char* algorithm) {
  CallSiteRow& row = table.rows[table.used++];
  row.site = site;
  row.context = context;
  row.algorithm = algorithm;
  row.size_class = size;
  row.communicator = context ? know(communicator, context, agreed) : nullptr;
  row.function.store(function, std::memory_order_release);  // SYNC: row-function
  return row;
}

// Reading the clock costs as much as a short call, so only the first short calls of a place are timed, and then one in
// sixteen. The time of Nearfield's waits is always known, since these read the clock anyway. That of waits in the host
// is not, so a long one in a timed call counts sixteen times.
bool is_timed(Function function, const CallSiteRow* row, std::uint64_t bytes) {
  constexpr std::uint64_t first = 32, one_in = 16, short_bytes = 4096;
  if (!row || all_timed || bytes > short_bytes || traits_of(function).kind > FunctionKind::completion) return true;
  const std::uint64_t calls = row->place_calls.value();
  return calls < first || calls % one_in == 0;
}

// For communicators without a context: combined with the handle it replaces the context.
constexpr std::uint64_t of_host = std::uint64_t{1} << 63;

}  // namespace

CallTimer::CallTimer(Function function, const void* site, const std::uint64_t* words)
    : function_(function),
      site_(site),
      bytes_(bytes_in(traits_of(function), words)),
      partner_(partner_in(traits_of(function), words)),
      communicator_(communicator_in(traits_of(function), words)),
      context_(0),
      before_(*last_algorithm) {
  const MPI_Comm communicator = communicator_;
  if (communicator != host.comm_null) {
    const Communicator* const state = communicator_of(communicator);
    agreed_ = state && state->context;
    if (state) context_ = agreed_ ? state->context : of_host ^ std::uint64_t(communicator);
  }
  inside->recorded = true;
  own->waited = 0;
  waiting::waited = &own->waited;
  *last_algorithm = nullptr;
  *went_to_host = false;
  Thread* const table = own->table ? own->table : table_of_thread();
  if (table) place_ = find_place(*table, function, site, context_, size_class(bytes_));
  if (is_timed(function, place_ ? *place_ : nullptr, bytes_)) start_ = processor::ticks();
}

void CallTimer::end() {
  const std::uint64_t now = start_ ? processor::ticks() : 0;
  const FunctionKind kind = traits_of(function_).kind;
  const char* algorithm = nullptr;
  if (*went_to_host) algorithm = by_host;
  else if (kind == FunctionKind::collective || kind == FunctionKind::neighbors) algorithm = *last_algorithm;
  if (!*last_algorithm) *last_algorithm = before_;
  waiting::waited = nullptr;
  inside->recorded = false;
  if (!active.load(std::memory_order_relaxed)) return;
  if (!place_) {
    calls_unkept.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  Thread* const table = own->table;
  CallSiteRow* row = *place_;
  if (row) row->place_calls.add(1);
  while (row && row->algorithm != algorithm) row = row->further;
  if (!row) [[unlikely]] {
    if (table->used == rows_of_a_thread) return table->rows_lost.add(1);
    row = &add_row(*table, function_, site_, communicator_, context_, agreed_, size_class(bytes_), algorithm);
    if (*place_) row->further = std::exchange((*place_)->further, row);
    else *place_ = row;
  }
  row->calls.add(1);
  row->bytes.add(bytes_);
  if (traits_of(function_).sends.partner >= 0 && row->communicator &&
      unsigned(partner_) < unsigned(row->communicator->partners)) {
    SentTo& to = row->communicator->sent[std::size_t(partner_)];
    to.messages.fetch_add(1, std::memory_order_relaxed);
    to.bytes.fetch_add(bytes_, std::memory_order_relaxed);
  }
  if (own->waited) row->waited.add(own->waited);
  if (!start_) return;
  row->timed.add(1);
  row->ticks.add(now - start_);
  row->waited_timed.add(own->waited);
  row->longest.raise(now - start_);
  if (tracing) [[unlikely]] {
    Event& event = table->ring[table->events.value() % events_of_a_thread];
    const bool counts = kind == FunctionKind::collective && row->communicator;
    event = {.start = start_,
             .end = now,
             .bytes = bytes_,
             .waited = own->waited,
             .row = std::uint32_t(row - table->rows),
             .number = counts ? row->communicator->collectives.fetch_add(1, std::memory_order_relaxed) : 0,
             .partner = partner_};
    table->events.add(1);
  }
  if (now > next_save.load(std::memory_order_relaxed)) [[unlikely]]
    save_so_far(now);
}

}  // namespace nearfield::mpi::recording
