// One copy of a batch: values for a destination of their own.
#ifndef H2D_STAGER_BATCH_COPY_H_
#define H2D_STAGER_BATCH_COPY_H_

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

#include "h2d/device/device_ptr.h"
#include "h2d/device/element.h"
#include "h2d/stager/h2d_mirror.h"
#include "h2d/stager/image.h"

namespace h2d {

// What `PinnedStager::CopyBatch` takes a list of: the arguments of one `PinnedStager::Copy`. A view
// of values and mirror, which live until the batch was copied.
class BatchCopy {
 public:
  // The largest element, in bytes: the padding value is kept here.
  static constexpr size_t kMaxElementBytes = 32;

  template <HostRange R>
  static BatchCopy To(const Destination& destination, const R& values,
                      const std::optional<ElementOf<R>>& pad = std::nullopt) noexcept {
    return Make(destination, nullptr, values, pad);
  }
  template <HostRange R>
  static BatchCopy To(H2DMirror& mirror, const R& values,
                      const std::optional<ElementOf<R>>& pad = std::nullopt) noexcept {
    return Make({}, &mirror, values, pad);
  }

 private:
  friend class PinnedStager;

  BatchCopy() = default;

  template <HostRange R>
  static BatchCopy Make(const Destination& destination, H2DMirror* mirror, const R& values,
                        const std::optional<ElementOf<R>>& pad) noexcept {
    BatchCopy copy;
    copy.destination_ = destination;
    copy.mirror_ = mirror;
    copy.image_ = internal::HostImage::Of(values, std::optional<ElementOf<R>>());
    static_assert(sizeof(ElementOf<R>) <= kMaxElementBytes,
                  "The elements of a batch have at most BatchCopy::kMaxElementBytes bytes.");
    copy.padded_ = pad.has_value();
    if (pad) std::memcpy(copy.pad_.data(), &*pad, sizeof(ElementOf<R>));
    return copy;
  }

  internal::HostImage image() const noexcept {
    internal::HostImage image = image_;
    if (padded_) image.pad = pad_.data();
    return image;
  }

  Destination destination_;
  H2DMirror* mirror_ = nullptr;  // instead of `destination_`
  internal::HostImage image_;
  bool padded_ = false;
  std::array<std::byte, kMaxElementBytes> pad_{};
};

}  // namespace h2d

#endif  // H2D_STAGER_BATCH_COPY_H_
