#include "tests/engine/model/operations.hpp"

namespace nearfield::testing {
namespace {

using context::CollectiveContext;

constexpr unsigned most_operations = 2 * context::Slots::entries + 8;

class Player {
 public:
  Player(Members& members, int me, const Operate& operate)
      : members_(members), process_(members.process(me)), team_(&members.team(me)), me_(me) {
    for (unsigned i = 0; i < most_operations; ++i) {
      operations_[i].operate = &operate;
      operations_[i].me = me;
      operations_[i].number = i;
    }
  }

  void play(std::string_view script) {
    while (!script.empty()) {
      const char what = script[0];
      script.remove_prefix(1);
      unsigned n = 0;
      for (; !script.empty() && script[0] != ' '; script.remove_prefix(1)) n = n * 10 + unsigned(script[0] - '0');
      if (!script.empty()) script.remove_prefix(1);
      step(what, n);
    }
  }

 private:
  struct Operation final : context::Task {
    void run(CollectiveContext& context) override {
      context.calls.enter(1);
      (*operate)(context, me, ++times* most_operations + number);
      context.calls.leave();
    }
    const Operate* operate = nullptr;
    int me = 0;
    std::uint64_t number = 0, times = 0;
  };

  void step(char what, unsigned n) {
    Operation& operation = operations_[n];
    auto done = [&] { return operation.complete() || (process_.runner().poll(), operation.complete()); };
    switch (what) {
      case 'i': return team_->contexts().issue(operation);
      case 'p': return plan(n);
      case 's': return queue_[n]->issue(operation);
      case 'w':
        while (!operation.complete())
          if (!process_.progress().poll()) processor::pause();
        return complete(operation);
      case 'm':
        if (!done()) members_.messenger(me_).wait_until(done, [](int) { return false; }, nullptr, "waiting");
        return complete(operation);
      case 'b': return operation.run(team_->context());
      default: require(false, "no such step");
    }
  }
  static void complete(const Operation& operation) { require(!operation.error(), "an operation has failed"); }
  // All members have to get the same.
  void plan(unsigned n) {
    queue_[n] = team_->contexts().reserve();
    require(queue_[n], "no context could be reserved");
    const unsigned number = queue_[n]->context.number();
    context::CollectiveContext& first = team_->context();
    const std::uint64_t seq = first.slots.next();
    put(first.slots.reserve(seq), number);
    first.slots.publish(seq, sizeof seq);
    first.slots.meet(seq);
    for (int r = 0; r < first.size(); ++r)
      require(get(first.slots.at(r, seq)) == number, "another context is reserved");
  }

  Members& members_;
  team::Process& process_;
  team::Team* const team_;
  const int me_;
  Operation operations_[most_operations];
  context::TaskQueue* queue_[most_operations] = {};
};

}  // namespace

Explored explore_play(Members& members, const Play& play, const Options& options) {
  const int count = members.count();
  auto script = [](const std::vector<std::string_view>& all, int i) { return all.size() == 1 ? all[0] : all[i]; };
  std::vector<std::unique_ptr<Player>> players;
  return explore(
      count,
      [&] {
        players.clear();
        members.renew();
        for (int i = 0; i < count; ++i) players.push_back(std::make_unique<Player>(members, i, play.operate));
        if (!play.before.empty()) {
          members.only_look(true);
          run_in_turn(count, [&](int i) { players[std::size_t(i)]->play(script(play.before, i)); });
          members.only_look(false);
        }
        return [&](int i) { players[std::size_t(i)]->play(script(play.scripts, i)); };
      },
      options);
}

// ---------------------------------------------------------------- bodies

void by_slots(CollectiveContext& context, int me, std::uint64_t number) {
  const std::uint64_t seq = context.slots.next();
  put(context.slots.reserve(seq), given(me, number));
  context.slots.publish(seq, sizeof seq);
  context.slots.meet(seq);
  for (int r = 0; r < context.size(); ++r)
    require(get(context.slots.at(r, seq)) == given(r, number), "a slot of another operation");
}

void by_root(CollectiveContext& context, int me, std::uint64_t number, int root) {
  const std::uint64_t seq = context.slots.next();
  if (root == me) {
    put(context.slots.reserve(seq), given(root, number));
    context.slots.publish(seq, sizeof seq);
  } else {
    require(get(context.slots.wait(root, seq)) == given(root, number), "a slot of another operation");
  }
  context.slots.consume(seq);
}

}  // namespace nearfield::testing
