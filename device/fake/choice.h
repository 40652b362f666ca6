// Choices as data: everything that the simulated device decides by itself is asked here.
//
// A real device may read the source of a copy early or late, complete two streams in either order,
// answer a query late. The fake asks a `ChoiceSource` which of the legal behaviours happens. A
// source answers from a hash of a seed, from bytes, from a script, or always 0. The answer 0 is the
// kindest behaviour at every site, and an absent choice is 0: so shrinking choices towards nothing
// shrinks a failure towards the behaviour that people expect.
//
// A choice belongs to the operation that asks for it (`FakeDevice::BeginOperation`), not to a
// position in one long stream of random numbers: removing an operation from a plan moves no other
// operation's choices.
#ifndef H2D_DEVICE_FAKE_CHOICE_H_
#define H2D_DEVICE_FAKE_CHOICE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace h2d {

// What is being decided. Each site is an adversary that `FakeOptions::adversaries` switches.
enum class ChoiceSite : uint8_t {
  kSourceRead,     // when a pinned source is read: at the call, at the start, at the end, torn
  kTornChunk,      // when one chunk of a torn source is read: at the call, at the start, at the
                   // end; so chunks are read in any order
  kPageable,       // a pageable source: captured at the call, the call blocks (from 4 MiB on in the
                   // other order, as measured), read as late as a pinned one
  kLatency,        // how long an operation takes: as measured, nothing, 8 times, 64 times
  kBatchOrder,     // which member of a batch completes next
  kSeenLate,       // a query answers "pending" although the work is complete
  kWaitAnswer,     // which of several complete events a wait answers
  kEnqueueBlocks,  // the call returns at once, or when its stream has carried out the operation
  kAllocation,     // an allocation takes as long as measured, or 20 ms
  kTask,           // which host task runs next (0: the one that runs now)
  kFree,           // a trim waits for the whole device, as measured, or for nothing
  kStuck,          // after an enqueue the stream goes on, or completes nothing until `Release`
  kConfidential,   // asked once, for `kDeviceOperation`: the machine is as
                   // `FakeOptions::confidential_computing` says, or pinned copies are synchronous
};
inline constexpr uint32_t kChoiceSites = 13;

// The operation that choices of the device as a whole belong to.
inline constexpr uint64_t kDeviceOperation = ~uint64_t{0};

std::string_view ToString(ChoiceSite site) noexcept;

// A set of sites, e.g. `ChoiceSites::All().Without(ChoiceSite::kSeenLate)`.
class ChoiceSites {
 public:
  static constexpr ChoiceSites All() noexcept { return ChoiceSites((1U << kChoiceSites) - 1); }
  // All but stuck streams: what is enqueued completes in the end.
  static constexpr ChoiceSites Live() noexcept { return All().Without(ChoiceSite::kStuck); }
  static constexpr ChoiceSites None() noexcept { return ChoiceSites(0); }
  constexpr ChoiceSites With(ChoiceSite site) const noexcept {
    return ChoiceSites(bits_ | 1U << static_cast<uint32_t>(site));
  }
  constexpr ChoiceSites Without(ChoiceSite site) const noexcept {
    return ChoiceSites(bits_ & ~(1U << static_cast<uint32_t>(site)));
  }
  constexpr bool contains(ChoiceSite site) const noexcept {
    return (bits_ >> static_cast<uint32_t>(site) & 1U) != 0;
  }

 private:
  explicit constexpr ChoiceSites(uint32_t bits) noexcept : bits_(bits) {}
  uint32_t bits_;
};

// One question: the `repeat`-th time (from 0) that `operation` asks at `site`.
struct ChoicePoint {
  uint64_t operation = 0;
  ChoiceSite site = ChoiceSite::kSourceRead;
  uint32_t repeat = 0;

  friend constexpr auto operator<=>(const ChoicePoint&, const ChoicePoint&) noexcept = default;
};

// Thread-compatible: the fake asks under its own lock, tasks ask one at a time. One source serves
// one run; for another run of the same choices make another source.
//
// Memory: how often each operation has asked is remembered for the last `kRemembered` operations
// that asked; one that comes back after so many others counts from 0 again.
class ChoiceSource {
 public:
  virtual ~ChoiceSource() = default;

  static constexpr size_t kRemembered = 32;

  // An answer in [0, n); 0 when `n` is 0 or 1 (and then nothing is drawn).
  uint32_t Choose(uint64_t operation, ChoiceSite site, uint32_t n);

  // Told before each question at `kTask`, and also where there is nothing to ask: the answer `i`
  // lets task `tasks[i]` run on. For sources that follow tasks and not numbers.
  virtual void OnTasks(std::span<const uint32_t> tasks) { static_cast<void>(tasks); }

 private:
  // An answer that `Choose` takes modulo `n`.
  virtual uint32_t Draw(const ChoicePoint& point, uint32_t n) = 0;

  struct Asked {
    uint64_t operation = 0;
    std::array<uint32_t, kChoiceSites> times{};
  };
  Asked& AskedBy(uint64_t operation);

  std::vector<Asked> asked_;  // the operation that asked last is the first
};

// Always the kindest behaviour.
class KindestChoices final : public ChoiceSource {
 private:
  uint32_t Draw(const ChoicePoint&, uint32_t) override { return 0; }
};

// From a hash of a seed and the point: stateless, the same on every machine. Each seed also draws
// for each site how often it is unkind (never, one in eight, one in two, always): runs that use few
// adversaries hard find what runs that use all of them mildly do not.
class HashChoices final : public ChoiceSource {
 public:
  explicit HashChoices(uint64_t seed) noexcept : seed_(seed) {}

 private:
  uint32_t Draw(const ChoicePoint& point, uint32_t n) override;

  uint64_t seed_;
};

// From bytes, as plans carry them: the choices of operation k are the bytes of `by_operation[k]`,
// one byte each in the order asked; 0 when they run out.
class ByteChoices final : public ChoiceSource {
 public:
  explicit ByteChoices(std::vector<std::vector<uint8_t>> by_operation);

 private:
  uint32_t Draw(const ChoicePoint& point, uint32_t n) override;

  std::vector<std::vector<uint8_t>> by_operation_;
  std::vector<size_t> cursors_;
};

// From a table: what a recording was, with some of it changed or removed. 0 where it says nothing.
class ScriptedChoices final : public ChoiceSource {
 public:
  explicit ScriptedChoices(std::map<ChoicePoint, uint32_t> answers)
      : answers_(std::move(answers)) {}

 private:
  uint32_t Draw(const ChoicePoint& point, uint32_t n) override;

  std::map<ChoicePoint, uint32_t> answers_;
};

// Asks another source and remembers what it answered.
class RecordingChoices final : public ChoiceSource {
 public:
  struct Choice {
    ChoicePoint point;
    uint32_t n = 0;
    uint32_t answer = 0;
  };

  explicit RecordingChoices(std::shared_ptr<ChoiceSource> source) : source_(std::move(source)) {}

  void OnTasks(std::span<const uint32_t> tasks) override { source_->OnTasks(tasks); }

  const std::vector<Choice>& choices() const noexcept { return choices_; }
  // All answers that are not the kindest, for `ScriptedChoices`.
  std::map<ChoicePoint, uint32_t> Script() const;

 private:
  uint32_t Draw(const ChoicePoint& point, uint32_t n) override;

  std::shared_ptr<ChoiceSource> source_;
  std::vector<Choice> choices_;
};

// Mixes 64 bits so that each depends on each: the one hash of the fake, equal on every machine.
constexpr uint64_t MixBits(uint64_t x) noexcept {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  x ^= x >> 33;
  return x;
}

}  // namespace h2d

#endif  // H2D_DEVICE_FAKE_CHOICE_H_
