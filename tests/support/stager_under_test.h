// What the plan runner drives: the real stager, or a deliberately wrong one.
#ifndef H2D_TESTS_SUPPORT_STAGER_UNDER_TEST_H_
#define H2D_TESTS_SUPPORT_STAGER_UNDER_TEST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "h2d/device/device.h"
#include "h2d/stager/copy_outcome.h"
#include "h2d/stager/image.h"
#include "h2d/stager/stager_options.h"
#include "h2d/stager/stager_stats.h"
#include "h2d/stager/step_layout.h"
#include "h2d/stager/step_writer.h"
#include "h2d/stager/step_writer_options.h"

namespace h2d::testing {

using internal::HostImage;

// A held slot; dropped when destroyed.
class LeaseUnderTest {
 public:
  virtual ~LeaseUnderTest() = default;
  virtual std::span<std::byte> bytes() const = 0;  // empty once submitted
  virtual Expected<CopyOutcome> Submit(const Destination& destination, const Stream& stream) = 0;
  virtual Expected<CopyOutcome> SubmitMirrored(size_t mirror, const Stream& stream) = 0;
};

// One copy of a batch: through a mirror, or to a destination.
struct BatchEntryUnderTest {
  std::optional<size_t> mirror = {};
  Destination destination = {};
  HostImage image = {};
};

// A stager and its mirrors, which are known by small numbers. Thread-safe as the stager is; making
// and dropping mirrors excludes other calls on the same mirror.
class StagerUnderTest {
 public:
  virtual ~StagerUnderTest() = default;

  virtual Expected<CopyOutcome> Copy(const Destination& destination, const HostImage& image,
                                     const Stream& stream, bool wait) = 0;
  virtual Expected<CopyOutcome> CopyMirrored(size_t mirror, const HostImage& image,
                                             const Stream& stream, bool wait) = 0;
  // Null when no slot was free and the caller did not wait.
  virtual Expected<std::unique_ptr<LeaseUnderTest>> Acquire(uint64_t bytes, bool wait) = 0;

  virtual Expected<void> NewMirror(size_t mirror, const Destination& destination) = 0;
  virtual void DropMirror(size_t mirror) = 0;
  virtual Expected<bool> Matches(size_t mirror, const HostImage& image) = 0;
  virtual Expected<void> Record(size_t mirror, const HostImage& image, const Stream& stream) = 0;
  virtual void Invalidate(size_t mirror) = 0;
  virtual Expected<void> Rebind(size_t mirror, const Destination& destination) = 0;

  // Whether it has steps and batches; without them no operation of theirs is made.
  virtual bool has_steps() const { return false; }
  virtual Expected<StepWriter> NewStepWriter(const StepLayout&, DevicePtr,
                                             const StepWriterOptions&) {
    return FailedPrecondition("This stager has no steps.");
  }
  virtual Expected<CopyOutcome> CopyBatch(std::span<const BatchEntryUnderTest>, const Stream&,
                                          bool /*wait*/) {
    return FailedPrecondition("This stager has no batches.");
  }

  // Nothing when this stager keeps none; then nothing that needs them is checked.
  virtual std::optional<StagerStats> stats() const = 0;
};

// Makes the stager that a plan is run on. `mirrors` is how many it will have.
using StagerFactory = std::function<Expected<std::unique_ptr<StagerUnderTest>>(
    std::shared_ptr<Device>, const StagerOptions&, size_t mirrors)>;

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_STAGER_UNDER_TEST_H_
