#include "engine/hang_report/report.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "engine/hang_report/sites.hpp"

namespace nearfield::hang_report {
namespace {

// A process whose call has changed within that many seconds is not stuck.
constexpr double moving = 0.1;

std::string number(std::int64_t n) { return std::to_string(n); }

std::string seconds(double s) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", s);
  return text;
}

// "rank 3", "ranks 0-2, 5"
std::string ranks(std::vector<int> all) {
  std::ranges::sort(all);
  std::string text = all.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0, end; i < all.size(); i = end) {
    for (end = i + 1; end < all.size() && all[end] == all[end - 1] + 1;) ++end;
    if (end - i == 2) --end;
    text += (i ? ", " : "") + number(all[i]) + (end - i > 1 ? "-" + number(all[end - 1]) : "");
  }
  return text;
}

class Reporter {
 public:
  Reporter(const std::vector<ProcessSeen>& all, std::uint64_t now, const char* (*name)(unsigned))
      : all_(all), now_(now), name_(name) {}

  std::vector<std::string> lines() {
    attend();
    diagnose();
    find_circles();
    return std::move(lines_);
  }

 private:
  const ProcessSeen* member(int m) const {
    return m >= 0 && std::size_t(m) < all_.size() ? &all_[std::size_t(m)] : nullptr;
  }

  // ---- words
  // Large-count forms are the same function to MPI.
  std::string function(unsigned f) const {
    std::string text = f ? name_(f) : "MPI";
    if (text.ends_with("_c")) text.resize(text.size() - 2);
    return text;
  }
  static std::string communicator(const Item& item) {
    std::string text = item.communicator;
    if (text == "MPI_COMM_WORLD" || text == "MPI_COMM_SELF") return text;
    if (text.empty()) {
      char id[16];
      std::snprintf(id, sizeof id, "%04x", unsigned(item.context & 0xffff));
      text = item.context ? std::string("communicator ") + id : "a communicator";
    }
    return item.size ? text + " of " + number(item.size) + " ranks" : text;
  }
  std::string partner(const Item& item) const {
    if (item.member == Item::any || (item.member == Item::none && item.peer == Item::any)) return "any rank";
    if (const ProcessSeen* const a = member(item.member)) return "rank " + number(a->rank);
    if (item.peer == Item::none) return "";
    return "rank " + number(item.peer) + (std::string_view(item.communicator) == "MPI_COMM_WORLD" ? "" : " of it");
  }
  static std::string root(const Item& item) {
    return item.root == Item::itself ? "MPI_ROOT" : item.root == Item::no_root ? "MPI_PROC_NULL" : number(item.root);
  }
  std::string arguments(const Item& item) const {
    std::string text;
    if (item.bytes != Item::unknown) text += " of " + number(std::int64_t(item.bytes)) + " bytes";
    if (const std::string whom = partner(item); !whom.empty())
      text += (item.kind == AwaitedKind::send ? " to " : " from ") + whom;
    if (item.tag != Item::none) text += item.tag == Item::any ? ", any tag" : ", tag " + number(item.tag);
    if (item.root != Item::none) text += ", root " + root(item);
    if (item.context || item.size || *item.communicator) text += (text.empty() ? " on " : ", on ") + communicator(item);
    return text;
  }
  std::string call(const ThreadSeen& f) const {
    std::string text = function(function_of(f.call));
    if (!f.known) return text;
    const CallState& w = f.what;
    if (w.items && w.item[0].function == function_of(f.call)) {
      text += arguments(w.item[0]);
      for (unsigned i = 1; i < w.items; ++i)
        text +=
            std::string(w.item[i].kind == AwaitedKind::send ? " and a send" : " and a receive") + arguments(w.item[i]);
      return text;
    }
    for (unsigned i = 0; i < w.items; ++i)
      text += (i ? "; " : " for ") + function(w.item[i].function) + arguments(w.item[i]);
    if (w.pending > w.items && w.items) text += "; and " + number(w.pending - w.items) + " more";
    return text;
  }
  double since(const ThreadSeen& f) const {
    const double known = f.known && f.what.since ? double(now_ - f.what.since) * 1e-9 : 0;
    return std::max(known, f.unchanged);
  }
  // Returns the thread that says most: one that waits rather than one that does not.
  static const ThreadSeen* foremost(const ProcessSeen& a) {
    const ThreadSeen* best = nullptr;
    auto weight = [](const ThreadSeen& f) { return inside(f.call) ? (f.known ? (f.what.in_host ? 2 : 3) : 1) : 0; };
    for (const ThreadSeen& f : a.threads)
      if (!best || weight(f) > weight(*best)) best = &f;
    return best;
  }
  static bool waits(const ThreadSeen* f) { return f && inside(f->call) && f->known && !f->what.in_host; }
  static bool awaits(const ThreadSeen& f, int whom) {
    const std::size_t listed = std::min<std::size_t>(f.what.awaited, most_awaited);
    return std::find(f.what.awaited_member, f.what.awaited_member + listed, whom) != f.what.awaited_member + listed;
  }
  // Describes the threads that do not wait: they may still do what others wait for.
  static std::string others(const ProcessSeen& a) {
    const auto active = std::ranges::count_if(a.threads, [](const ThreadSeen& f) { return !waits(&f); });
    std::string text;
    if (active == 1) text = ", while another thread of it does not wait";
    if (active > 1) text = ", while " + number(active) + " other threads of it do not wait";
    if (a.unseen > 0) text += ", " + number(a.unseen) + (a.unseen == 1 ? " thread is" : " threads are") + " not seen";
    return text;
  }
  std::string state(const ProcessSeen& a) const {
    if (a.state == ProcessSeen::State::dead) return "has ended";
    const ThreadSeen* const f = foremost(a);
    if (a.state == ProcessSeen::State::left) return "has called MPI_Finalize";
    if (!f) return "has not called MPI yet";
    if (!f->known && f->unchanged < moving) return "goes on calling MPI, lastly " + function(function_of(f->call));
    if (!inside(f->call))
      return "is outside of MPI, last in " + function(function_of(f->call)) +
             (a.unseen > 0 ? ", and has threads that are not seen" : "");
    if (f->what.in_host && f->known) return "is in the host's part of " + call(*f);
    if (f->known) return "waits in " + call(*f) + others(a);
    return "is in " + call(*f);
  }

  // Lists the calls that processes are in.
  void attend() {
    struct Group {
      std::vector<int> who;
      std::vector<int> contended;  // members whose CPUs others want
      double longest = 0;
      std::string first;
    };
    std::vector<std::pair<std::string, Group>> groups;
    for (const ProcessSeen& a : all_) {
      const ThreadSeen* const f = foremost(a);
      std::string key = state(a), where;
      if (f && f->known && *f->what.object) where += ", called at " + site_text(f->what);
      if (f && f->known && *f->what.script) where += std::string(", ") + f->what.script;
      key += where;
      auto at = std::ranges::find(groups, key, &std::pair<std::string, Group>::first);
      if (at == groups.end()) at = groups.insert(at, {key, {}});
      Group& group = at->second;
      group.who.push_back(a.rank);
      if (waits(f) && f->what.contention) group.contended.push_back(a.rank);
      if (f && a.state == ProcessSeen::State::here) group.longest = std::max(group.longest, since(*f));
      if (group.who.size() == 1 && a.process) group.first = " (process " + number(a.process) + ")";
    }
    for (const auto& [text, group] : groups) {
      std::string line = "  " + ranks(group.who) + (group.who.size() == 1 ? group.first : "") + " ";
      // "waits in", "is in": of several "wait in", "are in".
      std::string words = text;
      if (group.who.size() > 1) {
        for (const auto& [one, many] : {std::pair{"waits ", "wait "}, std::pair{"is ", "are "},
                                        std::pair{"has ", "have "}, std::pair{"goes ", "go "}})
          if (words.starts_with(one)) {
            words = many + words.substr(std::string_view(one).size());
            break;
          }
      }
      line += words;
      if (group.contended == group.who)
        line += group.who.size() == 1 ? ", its CPUs wanted by others" : ", their CPUs wanted by others";
      else if (!group.contended.empty()) line += ", the CPUs of " + ranks(group.contended) + " wanted by others";
      if (group.longest >= 0.05) line += " (" + seconds(group.longest) + ")";
      lines_.push_back(line);
    }
  }

  // Adds a conclusion, once.
  void say(std::string text) {
    if (said_.insert(text).second) lines_.push_back("  => " + std::move(text));
  }

  static const Item* collective_on(const ThreadSeen& f, std::uint64_t context) {
    for (unsigned i = 0; i < f.what.items; ++i)
      if (f.what.item[i].kind == AwaitedKind::collective && f.what.item[i].context == context) return &f.what.item[i];
    return nullptr;
  }
  // Of a combined send and receive the receive is preferred, since most sends end before it.
  static const Item* about(const ThreadSeen& f, int whom) {
    const Item* found = nullptr;
    for (unsigned i = 0; i < f.what.items; ++i) {
      const Item& item = f.what.item[i];
      if (item.member != whom && item.member != Item::any) continue;
      if (!found || (found->kind == AwaitedKind::send && item.kind != AwaitedKind::send && own(f, *found)))
        found = &item;
    }
    return found || !f.what.items ? found : &f.what.item[0];
  }
  // True if the call waits for an operation that it has begun itself, not for a request.
  static bool own(const ThreadSeen& f, const Item& item) { return item.function == function_of(f.call); }
  bool fit(const Item& a, const Item& b) const {
    return function(a.function) == function(b.function) && a.root == b.root && (a.bytes == b.bytes || !sized(a, b));
  }
  static bool sized(const Item& a, const Item& b) {
    return a.alike && b.alike && a.bytes != Item::unknown && b.bytes != Item::unknown;
  }

  // Reports a difference between two calls of collectives on one communicator that wait for each other. Returns whether
  // they differ.
  bool compare(const ProcessSeen& a, const Item& mine, const ProcessSeen& b, const Item& theirs) {
    const bool ordered = a.rank < b.rank;
    const ProcessSeen &low = ordered ? a : b, &high = ordered ? b : a;
    const Item &first = ordered ? mine : theirs, &second = ordered ? theirs : mine;
    const std::string on = " on " + communicator(first);
    const auto each = [&](const std::string& one, const std::string& other) {
      say("mismatch" + on + ": rank " + number(low.rank) + " calls " + one + ", rank " + number(high.rank) + " " +
          other);
      return true;
    };
    const std::string name = function(first.function);
    if (const std::string other = function(second.function); name != other) return each(name, other);
    if (first.root != second.root) return each(name + " with root " + root(first), "with root " + root(second));
    if (first.bytes != second.bytes && sized(first, second))
      return each(name + " of " + number(std::int64_t(first.bytes)) + " bytes",
                  "of " + number(std::int64_t(second.bytes)));
    return false;
  }

  // Describes a message that has come to `f` from member `m`, and that nothing receives.
  static std::string lost(const ThreadSeen& f, int m, const Item& wanted) {
    if (!f.known || !f.what.lost || f.what.lost_member != m) return "";
    return "; a message with tag " + number(f.what.lost_tag) + " has come from it" +
           (wanted.context && wanted.context != f.what.lost_context ? " on another communicator" : "") +
           ", which nothing receives";
  }

  void diagnose() {
    // (what is awaited, state of the awaited rank) -> (ranks that wait, ranks that are awaited)
    std::map<std::pair<std::string, std::string>, std::pair<std::set<int>, std::set<int>>> reasons;
    for (std::size_t m = 0; m < all_.size(); ++m) {
      const ProcessSeen& a = all_[m];
      const ThreadSeen* const f = foremost(a);
      if (a.state != ProcessSeen::State::here || !waits(f)) continue;
      for (unsigned i = 0; i < std::min<std::size_t>(f->what.awaited, most_awaited); ++i) {
        const int w = f->what.awaited_member[i];
        const ProcessSeen* const b = member(w);
        if (!b || b == &a) continue;
        const ThreadSeen* const g = foremost(*b);
        const bool it_waits = b->state == ProcessSeen::State::here && waits(g);
        const Item* const item = about(*f, w);
        std::string what = "in " + function(function_of(f->call)), more;
        if (item && item->kind == AwaitedKind::collective) {
          if (it_waits && item->context)
            if (const Item* const other = collective_on(*g, item->context)) {
              // A rank that waits for us is in the same call of the sequence; others may be one ahead or behind.
              const bool met = awaits(*g, int(m)) && own(*f, *item) == own(*g, *other);
              if (met && compare(a, *item, *b, *other)) continue;
              // Both are in the same call and wait for another rank.
              if (fit(*item, *other) && !circular(int(m), w)) continue;
            }
          what = "in " + function(item->function) + " on " + communicator(*item);
        } else if (item && item->kind == AwaitedKind::send) {
          what = "in " + function(function_of(f->call)) + " until its message" + arguments(*item) + " is received";
          if (g) more = lost(*g, int(m), *item).empty() ? "" : ", and receives nothing of it";
        } else if (item && item->kind != AwaitedKind::none) {
          what = "in " + function(function_of(f->call)) + " for a message" + arguments(*item);
          more = lost(*f, w, *item);
        }
        auto& [waiting, missing] = reasons[{what, state(*b) + more}];
        waiting.insert(a.rank);
        missing.insert(b->rank);
      }
    }
    for (const auto& [reason, who] : reasons) {
      const auto& [waiting, missing] = who;
      say(ranks({waiting.begin(), waiting.end()}) + (waiting.size() == 1 ? " waits " : " wait ") + reason.first + "; " +
          ranks({missing.begin(), missing.end()}) + (missing.size() == 1 ? " " : ", each, ") + reason.second);
    }
  }

  // Returns the one process that all threads of process `m` wait for; -1: there is none.
  int sole(int m) const {
    const ProcessSeen* const a = member(m);
    if (!a || a->state != ProcessSeen::State::here || a->threads.empty() || a->unseen > 0) return -1;
    const int whom = a->threads[0].what.awaited_member[0];
    for (const ThreadSeen& f : a->threads)
      if (!waits(&f) || f.what.awaited != 1 || f.what.awaited_member[0] != whom) return -1;
    return whom;
  }
  bool circular(int m, int w) const { return sole(m) == w && sole(w) == m; }

  // Compares the calls along a cycle: in collectives of one communicator not each of them can be ahead of the next.
  void compare_all(const std::vector<int>& path) {
    const Item& first = foremost(*member(path[0]))->what.item[0];
    for (const int p : path) {
      const ThreadSeen& f = *foremost(*member(p));
      const Item& item = f.what.item[0];
      if (!f.what.items || item.kind != AwaitedKind::collective || !own(f, item) || item.context != first.context)
        return;
    }
    for (std::size_t i = 0; i < path.size() && first.context; ++i) {
      const ProcessSeen &a = *member(path[i]), &b = *member(path[(i + 1) % path.size()]);
      compare(a, foremost(a)->what.item[0], b, foremost(b)->what.item[0]);
    }
  }

  // Finds cycles of ranks, each of which waits for the next alone.
  void find_circles() {
    std::set<int> seen;
    for (int start = 0; start < int(all_.size()); ++start) {
      std::vector<int> path;
      int m = start;
      while (m >= 0 && std::ranges::find(path, m) == path.end()) path.push_back(m), m = sole(m);
      if (m < 0 || m != start || path.size() < 2 || seen.contains(start)) continue;
      std::vector<int> who;
      for (const int p : path) seen.insert(p), who.push_back(member(p)->rank);
      compare_all(path);
      say("deadlock: " + ranks(who) + " wait for each other");
    }
  }

  const std::vector<ProcessSeen>& all_;
  const std::uint64_t now_;
  const char* (*const name_)(unsigned);
  std::vector<std::string> lines_;
  std::set<std::string> said_;
};

}  // namespace

std::vector<std::string> report(const std::vector<ProcessSeen>& all, std::uint64_t now, const char* (*name)(unsigned)) {
  return Reporter(all, now, name).lines();
}

}  // namespace nearfield::hang_report
