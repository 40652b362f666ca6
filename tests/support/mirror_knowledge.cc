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

std::string MirrorKnowledge::Judge(std::span<const uint8_t> image, size_t element_bytes,
                                   uint64_t min_trim_bytes, const CopyOutcome& outcome) const {
  const Span span = DifferenceFrom(image);
  const bool equal = span.first == span.end;
  const bool skipped = outcome.kind == CopyOutcome::Kind::kSkipped;
  if (skipped && !equal && !may_be_more_) {
    return "a copy was skipped although its destination is not known to hold the values (I4)";
  }
  if (!skipped && equal && !may_be_less_) {
    return "a copy travelled although its destination is known to hold the values";
  }
  if (skipped || equal || may_be_more_) return {};
  if (outcome.bytes_sent < span.end - span.first) {
    return "a copy sent " + std::to_string(outcome.bytes_sent) + " B although " +
           std::to_string(span.end - span.first) + " B differ or are unknown (I4)";
  }
  if (may_be_less_ || !span.all_known) return {};
  const size_t first = span.first / element_bytes * element_bytes;
  const size_t end = (span.end + element_bytes - 1) / element_bytes * element_bytes;
  const bool worth = image.size() - (end - first) >= min_trim_bytes;
  const uint64_t due = worth ? end - first : image.size();
  if (outcome.bytes_sent != due) {
    return "a copy sent " + std::to_string(outcome.bytes_sent) + " B of " +
           std::to_string(image.size()) + " B where " + std::to_string(due) + " B were due";
  }
  return {};
}

}  // namespace h2d::testing
