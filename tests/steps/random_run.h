// What random tests of steps and batches share: a simulated device with faults, a stager, readers.
#ifndef H2D_TESTS_STEPS_RANDOM_RUN_H_
#define H2D_TESTS_STEPS_RANDOM_RUN_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/faulty/faulty_device.h"
#include "h2d/stager/internal/state_mark.h"
#include "h2d/stager/pinned_stager.h"
#include "h2d/tests/support/random_runs.h"

namespace h2d::testing {

using Bytes = std::vector<std::byte>;

// Bytes of device memory and what a reader must see there.
struct Expectation {
  std::string name;
  DevicePtr from;
  Bytes bytes;
};

// One random run; all that it does follows from its seed.
class RandomRun {
 public:
  explicit RandomRun(uint64_t seed);

  // Ends the run. Empty when all was as it should be.
  std::string Verdict();
  std::string Timeline() const { return fake_->Timeline(); }

 protected:
  uint32_t Draw(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  const Stream& DrawStream() { return streams_[Draw(static_cast<uint32_t>(streams_.size()))]; }

  // Makes the next call of one of `kinds` fail, before or after it was made.
  void FailNext(std::initializer_list<CallKind> kinds);

  // `stream` waits for every reader there is: writing before they have read is the caller's fault.
  void AfterReaders(const Stream& stream);
  // `stream` waits for all streams; all streams wait for `stream`.
  void AfterAll(const Stream& stream);
  void BeforeAll(const Stream& stream);

  // A kernel on `stream` must see what is expected.
  void Read(const Stream& stream, std::vector<Expectation> expected);

  // Remembers the first thing that went wrong.
  void Keep(const Expected<void>& result);
  void Fail(std::string why);

  std::mt19937_64 random_;
  std::shared_ptr<FakeDevice> fake_;
  std::shared_ptr<FaultyDevice> faulty_;
  std::vector<Stream> streams_;
  std::unique_ptr<PinnedStager> stager_;

 private:
  void WaitFor(const Stream& stream, const Stream& other);

  std::vector<Event> readers_;
  std::shared_ptr<std::string> mismatch_ = std::make_shared<std::string>();
  std::string error_;
};

// Without the environment a random test of steps or batches makes so many runs.
inline constexpr uint64_t kRunsOfTest = 500;

// Counts state marks while it lives.
class CountMarks {
 public:
  CountMarks();
  ~CountMarks();

  // Fails the calling test for each of `marks` that was not reached; a replay or a sanitizer's few
  // runs cannot be asked for all.
  void Expect(const Seeds& seeds, std::initializer_list<internal::Mark> marks) const;
};

}  // namespace h2d::testing

#endif  // H2D_TESTS_STEPS_RANDOM_RUN_H_
