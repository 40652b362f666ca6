// Small programs that use a simulated device: what the detector and the judge of interleavings are
// both given.
#ifndef H2D_DEVICE_FAKE_TESTING_SMALL_PROGRAM_H_
#define H2D_DEVICE_FAKE_TESTING_SMALL_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace h2d::testing {

inline constexpr uint32_t kObjects = 2;  // of each kind: streams, events, slots, targets, flags
inline constexpr uint64_t kObjectBytes = 8;
inline constexpr size_t kMaxSteps = 12;

enum class StepKind : uint8_t {
  kFill,      // the host writes a slot
  kHostRead,  // the host reads one
  kCopy,
  kKernel,        // reads or writes a target
  kHostFunction,  // reads or writes a slot
  kGraph,         // launches the program's graph
  kReadBack,      // of a target into a slot
  // What may order the others:
  kRecord,
  kWait,
  kSynchronize,
  kQuery,
  kWaitAny,
  kSynchronizeStream,
  kQueryStream,
  kSynchronizeDevice,
  kStore,
  kLoad,
};
inline constexpr uint32_t kStepKinds = 17;

// Whether a host function also stores into a flag, which hands on what it did until then.
enum class FunctionStores : uint8_t { kNothing, kBeforeItsAccess, kAfterIt };

struct Step {
  StepKind kind = StepKind::kFill;
  uint32_t stream = 0;
  uint32_t event = 0;  // of a wait for any: which one it answers
  uint32_t slot = 0;
  uint32_t target = 0;
  uint32_t flag = 0;
  uint64_t begin = 0;  // bytes of the slot and of the target
  uint64_t end = kObjectBytes;
  bool writes = false;  // a kernel or a host function
  FunctionStores stores = FunctionStores::kNothing;
  bool late = false;  // a query answers that the event is pending
  bool hold = false;  // the stream is held before the step, or released when it was held
};
using Task = std::vector<Step>;
using Run = std::vector<Task>;  // tasks that nothing orders but what they do

enum class StreamsOf : uint8_t { kOrdinary, kBlockingAndLegacy, kOrdinaryAndLegacy };

struct Program {
  StreamsOf streams = StreamsOf::kOrdinary;
  std::vector<Run> runs;  // one after the other, on one device
  uint64_t schedule = 0;  // which interleaving of the tasks is run; 0: one task after the other
  // The graph's nodes, kernels or copies: two of them are on branches of their own.
  std::vector<Step> graph;
  bool nested = false;  // the graph is launched as part of another one

  size_t tasks() const noexcept { return runs.front().size(); }
  size_t steps() const noexcept;
  bool Uses(StepKind kind) const noexcept;
};

std::string Text(const Program& program);

class Random {
 public:
  explicit Random(uint64_t seed) noexcept : state_(seed) {}
  uint64_t Next() noexcept;
  uint32_t Below(uint32_t n) noexcept { return static_cast<uint32_t>(Next() >> 33) % n; }

 private:
  uint64_t state_;
};

// Three lanes and twelve steps at most: one task and two streams, or two tasks and one, or one
// task, one stream and a graph's second branch. Any steps, or patterns that are right by
// themselves, with steps between them.
Program DrawProgram(Random& random);

// Without one of its steps of synchronisation, when it has any.
bool RemoveAnEdge(Program& program, Random& random);

}  // namespace h2d::testing

#endif  // H2D_DEVICE_FAKE_TESTING_SMALL_PROGRAM_H_
