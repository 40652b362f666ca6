// What stands behind a `StepWriter`.
#ifndef H2D_STAGER_INTERNAL_STEP_STATE_H_
#define H2D_STAGER_INTERNAL_STEP_STATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "h2d/device/device_ptr.h"
#include "h2d/device/error.h"
#include "h2d/stager/internal/copy_order.h"
#include "h2d/stager/internal/host_bytes.h"
#include "h2d/stager/internal/mirror_registry.h"
#include "h2d/stager/internal/stager_core.h"
#include "h2d/stager/internal/step_image.h"
#include "h2d/stager/step_layout.h"
#include "h2d/stager/step_writer_options.h"

namespace h2d::internal {

// One slab: its image, its order, its place among the live mirrors. Not thread-safe.
class StepState {
 public:
  // Errors: the slab is null or unaligned, or overlaps a live mirror; the host lacks the memory.
  static Expected<std::unique_ptr<StepState>> Create(std::shared_ptr<StagerCore> core,
                                                     const StepLayout& layout, DevicePtr slab,
                                                     const StepWriterOptions& options);
  ~StepState();
  StepState(const StepState&) = delete;
  StepState& operator=(const StepState&) = delete;

  StagerCore& core() const noexcept { return *core_; }
  const StepLayout& layout() const noexcept { return layout_; }
  DevicePtr slab() const noexcept { return slab_; }
  uint64_t layout_id() const noexcept { return layout_id_; }
  StepImage& image() noexcept { return image_; }
  const StepImage& image() const noexcept { return image_; }
  CopyOrder& order() noexcept { return order_; }

  // Room for the largest field, to be edited before it is compared. Who takes it gives it back;
  // meanwhile another taker gets room of its own. Errors: the host lacks the memory.
  Expected<HostBytes> TakeScratch();
  void GiveScratch(HostBytes scratch) noexcept { scratch_ = std::move(scratch); }

  // The spans that must travel, after what other paths overwrote was forgotten.
  std::span<const ByteSpan> SpansToSend();

  // Whether the slab holds, or will be sent, all of a field as it was last written here.
  bool Knows(uint32_t field);

 private:
  void ForgetIfOverwritten();

  StepState(std::shared_ptr<StagerCore> core, const StepLayout& layout, DevicePtr slab,
            const StepWriterOptions& options, StepImage image);

  const std::shared_ptr<StagerCore> core_;
  const std::shared_ptr<MirrorRegistry> registry_;
  const StepLayout layout_;
  const uint64_t layout_id_;  // of `layout_`, asked for by every write
  const DevicePtr slab_;
  const StepWriterOptions options_;
  bool registered_ = false;
  ForgetCount forgets_{0};
  uint64_t forgets_seen_ = 0;
  StepImage image_;
  HostBytes scratch_;  // null while it is taken
  CopyOrder order_;
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_STEP_STATE_H_
