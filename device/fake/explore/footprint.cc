#include "h2d/device/fake/explore/footprint.h"

#include <algorithm>

namespace h2d {

void Footprint::Add(uint64_t object, Touch touch) {
  const auto same = [&](const Item& item) { return item.object == object && item.touch == touch; };
  if (std::none_of(items_.begin(), items_.end(), same)) items_.push_back({object, touch});
}

void Footprint::Join(const Footprint& other) {
  everything_ = everything_ || other.everything_;
  for (const Item& item : other.items_) Add(item.object, item.touch);
}

Footprint::Relation Footprint::To(const Footprint& later) const {
  if (everything_ || later.everything_) return Relation::kRace;
  Relation relation = Relation::kNone;
  for (const Item& mine : items_) {
    for (const Item& theirs : later.items_) {
      if (mine.object != theirs.object) continue;
      if (mine.touch == Touch::kRead && theirs.touch == Touch::kRead) continue;
      // A lock cannot come before the unlock that it waited for.
      if (mine.touch != Touch::kUnlock) return Relation::kRace;
      relation = Relation::kOrdered;
    }
  }
  return relation;
}

}  // namespace h2d
