// The C API as programs see it: the shared library, and processes that share nothing before they join.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/api/groups.hpp"

namespace nearfield {
namespace {

using testing::run_group;

double value(int rank, std::size_t i) { return (rank + 1) * double(i % 1000 + 1); }
double sum(int size, std::size_t i) { return size * (size + 1) / 2.0 * double(i % 1000 + 1); }

class Members : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Numbers, Members, ::testing::Values(1, 2, 3, 8));

// Blocking, or started and waited for.
template <class Call>
bool in_form(bool started, Call call) {
  if (!started) {
    GOOD(call(static_cast<nf_request**>(nullptr)));
    return true;
  }
  nf_request* request = nullptr;
  GOOD(call(&request));
  GOOD(nf_wait(&request, 0, nullptr));
  HOLDS(request == nullptr);
  return true;
}

bool collectives(nf_group* group, int rank, int size, std::size_t n, bool started) {
  const auto p = std::size_t(size);
  std::vector<double> own(n), all(n * p), back(n * p);
  auto fill = [&] {
    for (std::size_t i = 0; i < n; ++i) own[i] = value(rank, i);
    for (std::size_t i = 0; i < n * p; ++i) all[i] = value(rank, i), back[i] = -1;
  };
  fill();
  HOLDS(in_form(
      started, [&](nf_request** r) { return nf_allreduce(group, own.data(), back.data(), n, NF_FLOAT64, NF_SUM, r); }));
  for (std::size_t i = 0; i < n; ++i) HOLDS(back[i] == sum(size, i));
  fill();
  HOLDS(in_form(started,
                [&](nf_request** r) { return nf_allreduce(group, own.data(), own.data(), n, NF_FLOAT64, NF_AVG, r); }));
  for (std::size_t i = 0; i < n; ++i) HOLDS(std::abs(own[i] - sum(size, i) / size) <= 1e-12 * own[i]);
  for (int root = 0; root < size; root += 2) {
    fill();
    HOLDS(in_form(started, [&](nf_request** r) { return nf_broadcast(group, own.data(), n, NF_FLOAT64, root, r); }));
    for (std::size_t i = 0; i < n; ++i) HOLDS(own[i] == value(root, i));
    fill();
    HOLDS(in_form(started, [&](nf_request** r) {
      return nf_reduce(group, own.data(), rank == root ? back.data() : nullptr, n, NF_FLOAT64, NF_SUM, root, r);
    }));
    for (std::size_t i = 0; rank == root && i < n; ++i) HOLDS(back[i] == sum(size, i));
    fill();
    HOLDS(in_form(started, [&](nf_request** r) {
      return nf_gather(group, own.data(), rank == root ? back.data() : nullptr, n, NF_FLOAT64, root, r);
    }));
    for (std::size_t i = 0; rank == root && i < n * p; ++i) HOLDS(back[i] == value(int(i / n), i % n));
    fill();
    HOLDS(in_form(started, [&](nf_request** r) {
      return nf_scatter(group, rank == root ? all.data() : nullptr, own.data(), n, NF_FLOAT64, root, r);
    }));
    for (std::size_t i = 0; i < n; ++i) HOLDS(own[i] == value(root, std::size_t(rank) * n + i));
  }
  fill();
  HOLDS(
      in_form(started, [&](nf_request** r) { return nf_allgather(group, own.data(), back.data(), n, NF_FLOAT64, r); }));
  for (std::size_t i = 0; i < n * p; ++i) HOLDS(back[i] == value(int(i / n), i % n));
  fill();
  HOLDS(in_form(started, [&](nf_request** r) {
    return nf_reduce_scatter(group, all.data(), own.data(), n, NF_FLOAT64, NF_SUM, r);
  }));
  for (std::size_t i = 0; i < n; ++i) HOLDS(own[i] == sum(size, std::size_t(rank) * n + i));
  fill();
  HOLDS(
      in_form(started, [&](nf_request** r) { return nf_alltoall(group, all.data(), back.data(), n, NF_FLOAT64, r); }));
  for (std::size_t i = 0; i < n * p; ++i) HOLDS(back[i] == value(int(i / n), std::size_t(rank) * n + i % n));
  HOLDS(in_form(started, [&](nf_request** r) { return nf_barrier(group, r); }));
  return true;
}

TEST_P(Members, AllCollectivesInBothForms) {
  EXPECT_EQ(run_group(GetParam(),
                      [](nf_group* group, int rank, int size) {
                        if (nf_rank(group) != rank || nf_size(group) != size) return false;
                        for (const std::size_t n : {1, 7, 500, 20'000})
                          for (const bool started : {false, true})
                            if (!collectives(group, rank, size, n, started)) return false;
                        return true;
                      }),
            0);
}

// Lengths that differ from pair to pair, some of them 0.
TEST_P(Members, BlocksOfAnyLengths) {
  EXPECT_EQ(run_group(GetParam(),
                      [](nf_group* group, int rank, int size) -> bool {
                        auto length = [&](int from, int to) {
                          return std::size_t(from * 7001 + to * 130) * ((from + to) % 3 != 2);
                        };
                        for (const bool started : {false, true}) {
                          std::vector<std::size_t> sends, sends_at, receives, receives_at;
                          std::size_t given = 0, got = 0;
                          for (int r = 0; r < size; ++r) {
                            sends_at.push_back(given);
                            receives_at.push_back(got);
                            sends.push_back(length(rank, r));
                            receives.push_back(length(r, rank));
                            given += sends.back();
                            got += receives.back();
                          }
                          std::vector<char> from(given, char(rank + 1)), to(got, 0);
                          HOLDS(in_form(started, [&](nf_request** request) {
                            return nf_alltoallv(group, from.data(), sends.data(), sends_at.data(), to.data(),
                                                receives.data(), receives_at.data(), request);
                          }));
                          for (int r = 0; r < size; ++r)
                            for (std::size_t i = 0; i < receives[std::size_t(r)]; ++i)
                              HOLDS(to[receives_at[std::size_t(r)] + i] == char(r + 1));
                        }
                        return true;
                      }),
            0);
}

TEST(Messages, ByRankFromAnybodyAndToOneself) {
  EXPECT_EQ(
      run_group(3,
                [](nf_group* group, int rank, int size) -> bool {
                  for (const std::size_t bytes :
                       {std::size_t{0}, std::size_t{8}, std::size_t{5000}, std::size_t{300'000}}) {
                    std::vector<char> own(bytes, char(rank + 1)), room(bytes + 1);
                    nf_message message{};
                    nf_request *sending = nullptr, *receiving = nullptr;
                    GOOD(nf_send(group, own.data(), bytes, (rank + 1) % size, 3, &sending));
                    GOOD(nf_receive(group, room.data(), room.size(), (rank + size - 1) % size, 3, nullptr, &receiving));
                    GOOD(nf_wait(&receiving, 0, &message));
                    GOOD(nf_wait(&sending, 0, nullptr));
                    HOLDS(message.bytes == bytes && message.source == (rank + size - 1) % size && message.tag == 3);
                    HOLDS(!bytes || room[bytes - 1] == char(message.source + 1));
                    if (rank) GOOD(nf_send(group, own.data(), bytes, 0, 10 + rank, nullptr));
                    bool seen[3] = {};
                    for (int i = 1; rank == 0 && i < size; ++i) {
                      GOOD(nf_receive(group, room.data(), room.size(), NF_ANY, NF_ANY, &message, nullptr));
                      HOLDS(message.tag == 10 + message.source && !std::exchange(seen[message.source], true));
                    }
                    GOOD(nf_send(group, own.data(), bytes, rank, 1, &sending));
                    GOOD(nf_receive(group, room.data(), room.size(), rank, 1, &message, nullptr));
                    GOOD(nf_wait(&sending, 0, nullptr));
                    HOLDS(message.source == rank);
                    // Nobody runs ahead: a message for the next length must not meet this one's receive.
                    GOOD(nf_barrier(group, nullptr));
                  }
                  return true;
                }),
      0);
}

TEST(Messages, ThatAreTooLongLeaveTheGroupInOrder) {
  EXPECT_EQ(run_group(2,
                      [](nf_group* group, int rank, int) -> bool {
                        char room[16] = {};
                        if (rank) GOOD(nf_send(group, room, 16, 0, 0, nullptr));
                        else HOLDS(nf_receive(group, room, 8, 1, 0, nullptr, nullptr) == NF_TRUNCATED);
                        GOOD(nf_barrier(group, nullptr));
                        return true;
                      }),
            0);
}

// Groups of some of the processes, several at once, and one more of the same.
TEST(Groups, OfSomeProcesses) {
  void* const memory =
      mmap(nullptr, 2 * sizeof(testing::MeetingPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(run_group(4,
                      [&](nf_group* world, int rank, int) -> bool {
                        for (int round = 0; round < 5; ++round) {
                          testing::Member member{static_cast<testing::MeetingPage*>(memory) + rank % 2, rank / 2, 2};
                          nf_group* half = nullptr;
                          GOOD(nf_join(rank / 2, 2, testing::exchange_by_page, &member, &half));
                          nf_request* request = nullptr;
                          std::int32_t in_all = rank, in_half = rank, other = -1;
                          GOOD(nf_allreduce(world, &in_all, &in_all, 1, NF_INT32, NF_SUM, &request));
                          GOOD(nf_allreduce(half, &in_half, &in_half, 1, NF_INT32, NF_SUM, nullptr));
                          GOOD(nf_wait(&request, 0, nullptr));
                          HOLDS(in_all == 6 && in_half == (rank % 2 ? 4 : 2));
                          // The same tag in both.
                          if (rank < 2) {
                            GOOD(nf_send(world, &in_all, 4, rank + 2, 0, nullptr));
                            GOOD(nf_send(half, &in_half, 4, 1, 0, nullptr));
                          } else {
                            GOOD(nf_receive(half, &other, 4, NF_ANY, 0, nullptr, nullptr));
                            HOLDS(other == in_half);
                            GOOD(nf_receive(world, &other, 4, NF_ANY, 0, nullptr, nullptr));
                            HOLDS(other == 6);
                          }
                          GOOD(nf_close(half));
                        }
                        return true;
                      }),
            0);
  munmap(memory, 2 * sizeof(testing::MeetingPage));
}

// Several calls under way, completed in another order; blocking calls in between.
TEST(Requests, OverlapEachOther) {
  EXPECT_EQ(run_group(3,
                      [](nf_group* group, int rank, int size) -> bool {
                        std::mt19937 own{unsigned(rank)};
                        for (int round = 0; round < 30; ++round) {
                          constexpr int many = 7;
                          std::vector<std::vector<float>> data;
                          nf_request* requests[many] = {};
                          for (int k = 0; k < many; ++k) data.emplace_back(std::size_t(1) << (2 * k), float(rank + k));
                          for (int k = 0; k < many; ++k) {
                            auto& d = data[std::size_t(k)];
                            GOOD(nf_allreduce(group, d.data(), d.data(), d.size(), NF_FLOAT32, NF_SUM, &requests[k]));
                            if (k % 3 == 0) GOOD(nf_barrier(group, nullptr));
                          }
                          for (int left = many; left;) {
                            const int k = int(own() % many);
                            if (!requests[k]) continue;
                            int done = 1;
                            if (own() % 2) GOOD(nf_test(&requests[k], own() % 4 ? 0 : 1e-5, &done, nullptr));
                            else GOOD(nf_wait(&requests[k], 0, nullptr));
                            left -= done;
                          }
                          for (int k = 0; k < many; ++k)
                            for (const float f : data[std::size_t(k)])
                              HOLDS(f == float(size * k + size * (size - 1) / 2));
                        }
                        return true;
                      }),
            0);
}

template <class T>
bool every_operator(nf_group* group, int rank, int size, nf_type type) {
  std::vector<T> own(33), got(33);
  const T expected[] = {T(size * (size + 1) / 2), T(0), T(6), T(1), T(size)};
  for (const nf_op op : {NF_SUM, NF_PROD, NF_MIN, NF_MAX}) {
    for (T& x : own) x = T(rank + 1);
    GOOD(nf_allreduce(group, own.data(), got.data(), own.size(), type, op, nullptr));
    for (const T x : got) HOLDS(x == expected[op]);
  }
  return true;
}

TEST(Types, AllOfThem) {
  EXPECT_EQ(run_group(3,
                      [](nf_group* group, int rank, int size) -> bool {
                        HOLDS(every_operator<std::int8_t>(group, rank, size, NF_INT8));
                        HOLDS(every_operator<std::int16_t>(group, rank, size, NF_INT16));
                        HOLDS(every_operator<std::int32_t>(group, rank, size, NF_INT32));
                        HOLDS(every_operator<std::int64_t>(group, rank, size, NF_INT64));
                        HOLDS(every_operator<std::uint8_t>(group, rank, size, NF_UINT8));
                        HOLDS(every_operator<std::uint16_t>(group, rank, size, NF_UINT16));
                        HOLDS(every_operator<std::uint32_t>(group, rank, size, NF_UINT32));
                        HOLDS(every_operator<std::uint64_t>(group, rank, size, NF_UINT64));
                        HOLDS(every_operator<float>(group, rank, size, NF_FLOAT32));
                        HOLDS(every_operator<double>(group, rank, size, NF_FLOAT64));
                        bool truth[2] = {rank == 1, true}, got[2];
                        GOOD(nf_allreduce(group, truth, got, 2, NF_BOOL, NF_SUM, nullptr));
                        HOLDS(got[0] && got[1]);
                        GOOD(nf_allreduce(group, truth, got, 2, NF_BOOL, NF_MIN, nullptr));
                        HOLDS(!got[0] && got[1]);
                        std::uint8_t bits = std::uint8_t(1 << rank);
                        GOOD(nf_allreduce(group, &bits, &bits, 1, NF_BYTE, NF_BOR, nullptr));
                        HOLDS(bits == 7);
                        float complex[2] = {float(rank), 1}, product[2];
                        GOOD(nf_allreduce(group, complex, product, 1, NF_COMPLEX64, NF_AVG, nullptr));
                        HOLDS(product[0] == 1 && product[1] == 1);
                        return true;
                      }),
            0);
}

// 1 + 2^-8 + 2^-8 + 2^-8 is 1 where each step is rounded, and 1 + 2^-6 where the sum is (to even; bfloat16 has 8 bits).
TEST(Types, SixteenBitSumsAreRoundedOnce) {
  EXPECT_EQ(run_group(4,
                      [](nf_group* group, int rank, int) -> bool {
                        for (const std::size_t n : {1, 100, 4000, 200'000}) {
                          std::vector<std::uint16_t> own(n, rank ? 0x3b80 : 0x3f80), got(n);
                          GOOD(nf_allreduce(group, own.data(), got.data(), n, NF_BFLOAT16, NF_SUM, nullptr));
                          for (const std::uint16_t x : got) HOLDS(x == 0x3f82);
                        }
                        return true;
                      }),
            0);
}

TEST(Memory, OfTheLibraryIsReducedInPlace) {
  setenv("NEARFIELD_ALGORITHM", "allreduce:direct", 1);  // where the buffers can be reached
  EXPECT_EQ(run_group(2,
                      [](nf_group* group, int rank, int) -> bool {
                        void* memory = nullptr;
                        constexpr std::size_t n = 300'000;
                        GOOD(nf_alloc(n * sizeof(float), &memory));
                        auto* const data = static_cast<float*>(memory);
                        for (std::size_t i = 0; i < n; ++i) data[i] = float(rank);
                        for (int round = 0; round < 20; ++round) {
                          GOOD(nf_allreduce(group, data, data, n, NF_FLOAT32, NF_MAX, nullptr));
                          HOLDS(std::string(nf_last_algorithm()) == "direct");
                        }
                        for (std::size_t i = 0; i < n; ++i) HOLDS(data[i] == 1);
                        GOOD(nf_free(memory));
                        int on_stack;
                        HOLDS(nf_free(&on_stack) == NF_INVALID);
                        return true;
                      }),
            0);
  unsetenv("NEARFIELD_ALGORITHM");
}

// ---------------------------------------------------------------- errors

TEST(Errors, SayWhatIsAllowed) {
  EXPECT_EQ(run_group(2,
                      [](nf_group* group, int, int) -> bool {
                        float x = 1, y = 0;
                        HOLDS(nf_allreduce(group, &x, &y, 1, NF_FLOAT32, NF_BAND, nullptr) == NF_UNSUPPORTED);
                        HOLDS(std::string(nf_error_text()) == "the bitwise and of float32 is not defined");
                        HOLDS(nf_allreduce(group, &x, &y, 1, NF_INT32, NF_AVG, nullptr) == NF_UNSUPPORTED);
                        HOLDS(nf_allreduce(group, &x, &y, 1, nf_type(99), NF_SUM, nullptr) == NF_INVALID);
                        HOLDS(nf_allreduce(group, &x, &y, 1, NF_INT32, nf_op(-1), nullptr) == NF_INVALID);
                        HOLDS(nf_allreduce(group, nullptr, &y, 1, NF_INT32, NF_SUM, nullptr) == NF_INVALID);
                        HOLDS(nf_broadcast(group, &x, 1, NF_INT32, 2, nullptr) == NF_INVALID);
                        HOLDS(std::string(nf_error_text()) == "the root 2 is not a rank of a group of 2");
                        HOLDS(nf_send(group, &x, 4, 0, -1, nullptr) == NF_INVALID);
                        HOLDS(nf_barrier(nullptr, nullptr) == NF_INVALID);
                        HOLDS(nf_set_timeout(group, -1) == NF_INVALID);
                        GOOD(nf_barrier(group, nullptr));  // nothing of that has been done
                        return true;
                      }),
            0);
  EXPECT_EQ(nf_join(2, 2, testing::exchange_by_page, nullptr, nullptr), NF_INVALID);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Those that have not come are named, in whatever form the call waits; then the group is broken for all.
TEST(Errors, ATimeoutNamesTheMissing) {
  for (const bool started : {false, true})
    EXPECT_EQ(run_group(4,
                        [started](nf_group* group, int rank, int) -> bool {
                          GOOD(nf_set_timeout(group, 0.2));
                          GOOD(nf_barrier(group, nullptr));
                          std::this_thread::sleep_for(std::chrono::milliseconds(rank % 2 ? 600 : 0));
                          const auto start = std::chrono::steady_clock::now();
                          int status;
                          nf_request* request = nullptr;
                          if (started) {
                            status = nf_barrier(group, &request);
                            if (status == NF_OK) status = nf_wait(&request, 0, nullptr);
                          } else {
                            status = nf_barrier(group, nullptr);
                          }
                          const std::string text = nf_error_text();
                          HOLDS(seconds_since(start) < 0.5);
                          if (rank % 2 == 0) HOLDS(status == NF_TIMEOUT || status == NF_BROKEN);
                          // Those who come late find that all have come, or that it is too late.
                          if (rank % 2) HOLDS(status == NF_OK || status == NF_BROKEN);
                          if (status == NF_TIMEOUT && text.find("missing are ranks 1 and 3") == text.npos) {
                            std::fprintf(stderr, "%s\n", text.c_str());
                            return false;
                          }
                          HOLDS(nf_barrier(group, nullptr) == NF_BROKEN);
                          return true;
                        }),
              0);
}

// One member has more or less than the others: every member has an error, if not in that call then in its next one,
// whose text says who has how much; and whoever has none has what it should have.
TEST(Errors, LengthsThatDifferAreNamed) {
  using Call = int (*)(nf_group*, double*, double*, std::size_t, nf_request**);
  const Call calls[] = {[](nf_group* g, double* a, double* b, std::size_t n, nf_request** r) {
                          return nf_allreduce(g, a, b, n, NF_FLOAT64, NF_SUM, r);
                        },
                        [](nf_group* g, double* a, double* b, std::size_t n, nf_request** r) {
                          return nf_reduce(g, a, b, n, NF_FLOAT64, NF_SUM, 0, r);
                        },
                        [](nf_group* g, double* a, double* b, std::size_t n, nf_request** r) {
                          return nf_reduce_scatter(g, a, b, n, NF_FLOAT64, NF_SUM, r);
                        },
                        [](nf_group* g, double* a, double*, std::size_t n, nf_request** r) {
                          return nf_broadcast(g, a, n, NF_FLOAT64, 0, r);
                        },
                        [](nf_group* g, double* a, double* b, std::size_t n, nf_request** r) {
                          return nf_allgather(g, a, b, n, NF_FLOAT64, r);
                        },
                        [](nf_group* g, double* a, double* b, std::size_t n, nf_request** r) {
                          return nf_gather(g, a, b, n, NF_FLOAT64, 0, r);
                        },
                        [](nf_group* g, double* a, double* b, std::size_t n, nf_request** r) {
                          return nf_scatter(g, a, b, n, NF_FLOAT64, 0, r);
                        },
                        [](nf_group* g, double* a, double* b, std::size_t n, nf_request** r) {
                          return nf_alltoall(g, a, b, n, NF_FLOAT64, r);
                        }};
  constexpr std::size_t pairs[][2] = {{5, 6}, {5, 40000}, {0, 5}};
  for (std::size_t c = 0; c < std::size(calls); ++c)
    for (const auto& [shorter, longer] : pairs) {
      if (!shorter && (c == 1 || c == 3 || c == 5 || c == 6)) continue;  // who only gives has left such a call
      for (const bool last_has_more : {false, true})
        for (const bool starts : {false, true})
          EXPECT_EQ(run_group(3,
                              [&](nf_group* group, int rank, int size) -> bool {
                                const std::size_t n = (rank == size - 1) == last_has_more ? longer : shorter;
                                std::vector<double> a(longer * 3, rank), b(longer * 3, -1);
                                nf_request* request = nullptr;
                                int status = calls[c](group, a.data(), b.data(), n, starts ? &request : nullptr);
                                if (status == NF_OK && request) status = nf_wait(&request, 0, nullptr);
                                for (int i = 0; i < 3 && status == NF_OK; ++i) status = nf_barrier(group, nullptr);
                                HOLDS(status == NF_BROKEN);
                                const std::string text = nf_error_text();
                                std::fprintf(stderr, "%s\n", text.c_str());
                                HOLDS(text.find("rank 2") != std::string::npos);
                                HOLDS(text.find(" " + std::to_string(8 * shorter) + " bytes") != std::string::npos);
                                HOLDS(text.find(" " + std::to_string(8 * longer) + " bytes") != std::string::npos);
                                return true;
                              }),
                    0)
              << c << " " << shorter << " " << longer << " " << last_has_more << starts;
    }
}

// Ranks in different calls, of which one is made of messages.
TEST(Errors, ATimeoutDoesNotSayThatAllHaveCome) {
  EXPECT_EQ(run_group(2,
                      [](nf_group* group, int rank, int) -> bool {
                        GOOD(nf_set_timeout(group, 0.3));
                        const std::size_t lengths[] = {8, 8}, places[] = {0, 8};
                        double from[2] = {}, to[2];
                        const int status =
                            rank ? nf_alltoallv(group, from, lengths, places, to, lengths, places, nullptr)
                                 : nf_barrier(group, nullptr);
                        HOLDS(status == NF_TIMEOUT || status == NF_BROKEN);
                        const std::string text = nf_error_text();
                        if (status == NF_TIMEOUT) HOLDS(text.find("do they make the same") != text.npos);
                        return true;
                      }),
            0);
}

TEST(Errors, AReceiveThatNobodyServes) {
  EXPECT_EQ(run_group(2,
                      [](nf_group* group, int rank, int) -> bool {
                        int room = 0;
                        if (rank == 0) {
                          nf_request* request = nullptr;
                          GOOD(nf_receive(group, &room, 4, 1, 5, nullptr, &request));
                          HOLDS(nf_wait(&request, 0.1, nullptr) == NF_TIMEOUT && !request);
                        } else {
                          std::this_thread::sleep_for(std::chrono::milliseconds(300));
                        }
                        return true;
                      }),
            0);
}

TEST(Errors, ADeadMemberIsNamed) {
  for (const bool started : {false, true})
    EXPECT_EQ(run_group(3,
                        [started](nf_group* group, int rank, int) -> bool {
                          GOOD(nf_barrier(group, nullptr));
                          if (rank == 1) kill(getpid(), SIGKILL);
                          nf_request* request = nullptr;
                          float x = 0;
                          int status = nf_allreduce(group, &x, &x, 1, NF_FLOAT32, NF_SUM, started ? &request : nullptr);
                          if (started && status == NF_OK) status = nf_wait(&request, 0, nullptr);
                          HOLDS(status == NF_DIED || status == NF_BROKEN);
                          HOLDS(status != NF_DIED || std::string(nf_error_text()).find("rank 1 ") == 0);
                          HOLDS(nf_barrier(group, nullptr) == NF_BROKEN);
                          return true;
                        }),
              1);
}

TEST(Errors, ALookEndsAWait) {
  EXPECT_EQ(run_group(2,
                      [](nf_group* group, int rank, int) -> bool {
                        static int looks = 0;
                        GOOD(nf_set_look([](void*, int* end) { *end = ++looks == 3; }, nullptr));
                        if (rank == 0) HOLDS(nf_barrier(group, nullptr) == NF_INTERRUPTED && looks == 3);
                        else std::this_thread::sleep_for(std::chrono::milliseconds(500));
                        return true;
                      }),
            0);
}

TEST(Errors, AForkedChildIsNoMember) {
  EXPECT_EQ(run_group(2,
                      [](nf_group* group, int, int) -> bool {
                        const pid_t child = testing::fork_child([&]() -> bool {
                          HOLDS(nf_barrier(group, nullptr) == NF_INVALID);
                          HOLDS(nf_close(group) == NF_INVALID);
                          return true;
                        });
                        HOLDS(testing::end_of(child) == 0);
                        GOOD(nf_barrier(group, nullptr));
                        return true;
                      }),
            0);
}

// Two threads, each with a group of its own, beside each other.
TEST(Threads, UseGroupsOfTheirOwn) {
  void* const memory =
      mmap(nullptr, sizeof(testing::MeetingPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(run_group(2,
                      [&](nf_group* first, int rank, int size) -> bool {
                        testing::Member member{static_cast<testing::MeetingPage*>(memory), rank, size};
                        nf_group* second = nullptr;
                        GOOD(nf_join(rank, size, testing::exchange_by_page, &member, &second));
                        auto reduce = [&](nf_group* group) -> bool {
                          for (int round = 0; round < 300; ++round) {
                            std::vector<std::int64_t> data(std::size_t(round % 7 * 1000 + 1), round + rank);
                            nf_request* request = nullptr;
                            GOOD(nf_allreduce(group, data.data(), data.data(), data.size(), NF_INT64, NF_SUM,
                                              round % 2 ? &request : nullptr));
                            GOOD(nf_wait(&request, 0, nullptr));
                            HOLDS(data.back() == 2 * round + 1);
                          }
                          return true;
                        };
                        bool other = false;
                        std::thread thread([&] { other = reduce(second); });
                        const bool own = reduce(first);
                        thread.join();
                        GOOD(nf_close(second));
                        return own && other;
                      }),
            0);
  munmap(memory, sizeof(testing::MeetingPage));
}

// With NEARFIELD_PROGRESS=thread what has been started goes on while the program computes.
TEST(Threads, OfTheLibraryGoOn) {
  setenv("NEARFIELD_PROGRESS", "thread", 1);
  EXPECT_EQ(run_group(2,
                      [](nf_group* group, int rank, int) -> bool {
                        std::vector<float> data(100'000, float(rank));
                        nf_request* request = nullptr;
                        GOOD(nf_allreduce(group, data.data(), data.data(), data.size(), NF_FLOAT32, NF_SUM, &request));
                        if (rank) std::this_thread::sleep_for(std::chrono::milliseconds(400));  // in no call of ours
                        GOOD(nf_wait(&request, 0.3, nullptr));
                        HOLDS(data.back() == 1);
                        return true;
                      }),
            0);
  unsetenv("NEARFIELD_PROGRESS");
}

}  // namespace
}  // namespace nearfield
