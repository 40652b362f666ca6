#include "h2d/tests/support/region_model.h"

#include <algorithm>
#include <utility>

namespace h2d::testing {
namespace {

Bytes Applied(Bytes image, const WriteEffect& effect) {
  std::copy(effect.bytes.begin(), effect.bytes.end(),
            image.begin() + static_cast<std::ptrdiff_t>(effect.offset));
  return image;
}

}  // namespace

RegionModel::RegionModel(Bytes initial) : images_{std::move(initial)} {}

size_t RegionModel::Begin() {
  if (open_ == 0) Settle();
  ++open_;
  calls_.push_back({.begin = ++clock_});
  return calls_.size() - 1;
}

void RegionModel::End(size_t call, std::optional<WriteEffect> effect) {
  calls_[call].end = ++clock_;
  calls_[call].effect = std::move(effect);
  --open_;
}

void RegionModel::Write(WriteEffect effect) { End(Begin(), std::move(effect)); }

const std::set<Bytes>& RegionModel::Images() {
  Settle();
  return images_;
}

void RegionModel::Settle() {
  std::erase_if(calls_, [](const Call& call) { return !call.effect.has_value(); });
  if (calls_.empty()) return;
  std::set<Bytes> settled;
  std::set<std::pair<uint32_t, Bytes>> seen;
  for (const Bytes& image : images_) Enumerate(image, 0, seen, settled);
  images_ = std::move(settled);
  calls_.clear();
}

// All orders in which no call comes before one that had returned when it began.
void RegionModel::Enumerate(const Bytes& image, uint32_t taken,
                            std::set<std::pair<uint32_t, Bytes>>& seen,
                            std::set<Bytes>& out) const {
  if (!seen.emplace(taken, image).second) return;
  if (taken == (1U << calls_.size()) - 1) {
    out.insert(image);
    return;
  }
  for (size_t next = 0; next < calls_.size(); ++next) {
    if ((taken >> next & 1U) != 0) continue;
    const auto blocks = [&](size_t other) {
      return other != next && (taken >> other & 1U) == 0 && calls_[other].end < calls_[next].begin;
    };
    bool blocked = false;
    for (size_t other = 0; other < calls_.size(); ++other) blocked = blocked || blocks(other);
    if (blocked) continue;
    const uint32_t with = taken | 1U << next;
    Enumerate(Applied(image, *calls_[next].effect), with, seen, out);
    if (calls_[next].effect->maybe) Enumerate(image, with, seen, out);
  }
}

std::string HexBytes(const Bytes& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace h2d::testing
