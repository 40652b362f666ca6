#include "h2d/tests/support/mirror_knowledge.h"

#include <algorithm>

namespace h2d::testing {

void MirrorKnowledge::Forget() {
  std::fill(known_.begin(), known_.end(), kUnknown);
  may_be_less_ = may_be_more_ = false;
}

void MirrorKnowledge::Learn(std::span<const uint8_t> image) {
  std::copy(image.begin(), image.end(), known_.begin());
  if (image.size() == known_.size()) may_be_less_ = may_be_more_ = false;
}

void MirrorKnowledge::ForgetRange(size_t first, size_t count) {
  std::fill_n(known_.begin() + static_cast<std::ptrdiff_t>(first), count, kUnknown);
  may_be_less_ = true;
}

MirrorKnowledge::Span MirrorKnowledge::DifferenceFrom(std::span<const uint8_t> image) const {
  Span span{.first = image.size(), .end = 0};
  for (size_t i = 0; i < image.size(); ++i) {
    span.all_known = span.all_known && known_[i] != kUnknown;
    if (known_[i] == image[i]) continue;
    span.first = std::min(span.first, i);
    span.end = i + 1;
  }
  if (span.end == 0) span.first = 0;
  return span;
}

std::optional<bool> MirrorKnowledge::Matches(std::span<const uint8_t> image) const {
  const Span span = DifferenceFrom(image);
  const bool equal = span.first == span.end;
  if (equal ? may_be_less_ : may_be_more_) return std::nullopt;
  return equal;
}

MirrorKnowledge::Bounds MirrorKnowledge::BytesDue(std::span<const uint8_t> image,
                                                  size_t element_bytes,
                                                  uint64_t min_trim_bytes) const {
  const Span span = DifferenceFrom(image);
  const bool equal = span.first == span.end;
  Bounds due{.least = may_be_more_ ? 0 : span.end - span.first, .most = image.size()};
  if (may_be_less_ || may_be_more_ || !span.all_known) return due;
  if (equal) return {};
  const size_t first = span.first / element_bytes * element_bytes;
  const size_t end = (span.end + element_bytes - 1) / element_bytes * element_bytes;
  const bool worth = image.size() - (end - first) >= min_trim_bytes;
  due.least = due.most = worth ? end - first : image.size();
  return due;
}

}  // namespace h2d::testing
