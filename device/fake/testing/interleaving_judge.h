// A judge that knows no clocks: it enumerates what may happen.
//
// It is told what was issued, by whom and in which order, and what queries, waits and loads
// answered; from that it says what may happen next in each state, and walks all states that can be
// reached. Two conflicting accesses that may both happen next in one of them are a race: some
// interleaving makes them adjacent in either order. A use of an event that may happen before its
// record call, or after the next one, is an unordered record.
#ifndef H2D_DEVICE_FAKE_TESTING_INTERLEAVING_JUDGE_H_
#define H2D_DEVICE_FAKE_TESTING_INTERLEAVING_JUDGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "h2d/device/fake/testing/small_program.h"

namespace h2d::testing {

// What happened, in order: what the judge is told besides the program.
struct Happened {
  const Step* step = nullptr;  // null: the run ended, and all of its tasks were joined
  uint32_t task = 0;
  // A query: 1 for complete; a wait for any: its index; a store, also of a host function: its
  // number, from 1; a load: that of the store that it saw.
  uint32_t answer = 0;
};

struct Race {
  uint32_t memory;  // the slots, then the targets
  uint64_t begin;
  uint64_t end;
  std::string lane;
  std::string other_lane;
};

std::string MemoryName(uint32_t memory);  // "slot 0", "target 1"
std::string StreamName(StreamsOf streams, uint32_t stream);

class InterleavingJudge {
 public:
  // At most this many things that happen: calls, and what streams do.
  static constexpr size_t kMaxNodes = 64;
  static size_t NodesOf(const Program& program);

  InterleavingJudge(const Program& program, const std::vector<Happened>& happened);

  const std::vector<Race>& races() const noexcept { return races_; }
  bool IsRacy(uint32_t memory) const noexcept { return racy_[memory]; }
  bool HasUnorderedRecord(uint32_t event) const noexcept { return unordered_[event]; }
  bool FoundSomething() const noexcept;

 private:
  static constexpr int kNone = -1;
  using Lane = uint32_t;  // two tasks, two streams, the graph's second branch
  static constexpr Lane kFirstStream = 2;
  static constexpr Lane kBranch = 4;

  struct Access {
    uint32_t memory;
    uint64_t begin;
    uint64_t end;
    bool writes;
    bool by_function = false;  // a host function
    bool early = false;        // the first chance to read a source, before the copy's turn comes
  };
  struct Node {
    uint64_t needs = 0;  // what must have happened before it can
    Lane lane = 0;
    std::vector<Access> accesses;
    uint64_t conflicts = 0;
    uint64_t raced = 0;  // those of them that may happen next when this may
    // A use of an event.
    int record_call = kNone;  // that it sees
    uint32_t event = 0;
    bool early = false;  // found to be possible before it
    // The record that this waits for, unless the use by `user` may be early: that orders nothing.
    int record = kNone;
    int user = kNone;
    uint64_t uses = 0;  // of the event that this call records, since its last record
  };

  static uint64_t Bit(int node) noexcept { return node == kNone ? 0 : uint64_t{1} << node; }
  Node& At(int node) { return nodes_[static_cast<size_t>(node)]; }
  int AddNode(Lane lane, uint64_t needs);
  int Call(uint32_t task, uint64_t needs = 0);
  int Work(uint32_t stream, int call);
  void Add(const Happened& what);
  void AddAccess(const Happened& what, int call);
  void AddFunction(const Happened& what, int call);
  void AddStore(uint32_t number, int node);
  void AddSynchronisation(const Happened& what, int call);
  void AddWaitAny(const Happened& what, int call);
  void AddGraph(const Step& step, int call);
  void AddCopy(const Step& copy, Lane lane, int call, int work);
  void AddReadBack(const Step& step, uint32_t task, int call);
  void Use(int call, uint32_t event);
  void WaitForRecord(int node, int user, uint32_t event);
  void EndRun();

  void FindConflicts();
  bool WalkAgain();  // whether more uses were found to be early
  uint64_t Needs(const Node& node) const;
  uint64_t Next(uint64_t state, const std::vector<uint64_t>& needs) const;
  void LookAt(Node& node, uint64_t state, uint64_t next);
  void FoundRaces(Node& node, uint64_t next);
  static bool Conflict(const Access& a, const Access& b) noexcept;
  std::string LaneName(Lane lane) const;

  const Program& program_;
  std::vector<Node> nodes_;
  std::array<int, kObjects> last_call_{kNone, kNone};
  std::array<int, kObjects> last_work_{kNone, kNone};
  std::array<int, kObjects> record_call_{kNone, kNone};
  std::array<int, kObjects> record_{kNone, kNone};
  std::array<uint64_t, kObjects> uses_{};  // of each event, since its last record
  std::vector<int> stores_;                // by number, from 1
  int last_launch_ = kNone;
  bool more_early_ = false;
  std::vector<Race> races_;
  std::array<bool, 2 * kObjects> racy_{};
  std::array<bool, kObjects> unordered_{};
};

}  // namespace h2d::testing

#endif  // H2D_DEVICE_FAKE_TESTING_INTERLEAVING_JUDGE_H_
