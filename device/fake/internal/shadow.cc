#include "h2d/device/fake/internal/shadow.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace h2d::fake_internal {

void Shadow::SplitAt(uint64_t at) {
  auto it = segments_.upper_bound(at);
  if (it == segments_.begin()) return;
  --it;
  if (it->first == at || it->second.end <= at) return;
  Segment upper = it->second;
  it->second.end = at;
  segments_.emplace_hint(std::next(it), at, std::move(upper));
}

Shadow::Map::iterator Shadow::FirstInside(uint64_t begin, uint64_t end) {
  auto it = segments_.find(begin);
  if (it != segments_.end() && it->second.end == end) return it;  // the usual case: the same slot
  SplitAt(begin);
  SplitAt(end);
  return segments_.lower_bound(begin);
}

void Shadow::AddRead(Segment& segment, const AccessRef& access, const Order& order) {
  std::erase_if(segment.reads, [&](const AccessRef& known) {
    return order.host_function.time == 0 && order.Before(*known) &&
           !order.FunctionBetween(*known, *access);
  });
  segment.reads.push_back(access);
}

void Shadow::Read(uint64_t begin, uint64_t end, const AccessRef& access, const Order& order,
                  ConflictSink& sink) {
  uint64_t next = begin;  // the first byte of the range that no segment was seen for
  for (auto it = FirstInside(begin, end); it != segments_.end() && it->first < end; ++it) {
    if (it->first > next)
      segments_.emplace_hint(it, next, Segment{it->first, nullptr, {access}, nullptr});
    Segment& segment = it->second;
    next = segment.end;
    if (segment.write != nullptr && segment.write != access && !order.Before(*segment.write)) {
      sink.OnConflict(segment.write, access, false, true, it->first, segment.end);
    }
    if (segment.host_write != nullptr && !order.Before(*segment.host_write)) {
      sink.OnConflict(segment.host_write, access, false, true, it->first, segment.end);
    }
    AddRead(segment, access, order);
  }
  if (next < end) segments_.emplace(next, Segment{end, nullptr, {access}, nullptr});
}

void Shadow::Write(uint64_t begin, uint64_t end, const AccessRef& access, const Order& order,
                   ConflictSink& sink) {
  const auto first = FirstInside(begin, end);
  auto it = first;
  bool after_host = false;
  for (; it != segments_.end() && it->first < end; ++it) {
    const Segment& segment = it->second;
    for (const AccessRef& known : segment.reads) {
      if (known != access && !order.Before(*known)) {
        sink.OnConflict(known, access, true, false, it->first, segment.end);
      }
    }
    if (segment.write != nullptr && segment.write != access && !order.Before(*segment.write)) {
      sink.OnConflict(segment.write, access, true, true, it->first, segment.end);
    }
    after_host = after_host || segment.LastHostWrite() != nullptr;
  }
  if (after_host && !access->by_host) return WriteEach(first, begin, end, access);
  if (first != it && first->first == begin) {  // reuse the first one's node for the whole range
    segments_.erase(std::next(first), it);
    first->second.end = end;
    first->second.write = access;
    first->second.reads.clear();
    first->second.host_write = nullptr;
    return;
  }
  it = segments_.erase(first, it);
  segments_.emplace_hint(it, begin, Segment{end, access, {}, nullptr});
}

// A write by a host function, which hides no earlier write of a host lane.
void Shadow::WriteEach(Map::iterator first, uint64_t begin, uint64_t end, const AccessRef& access) {
  uint64_t next = begin;
  for (auto it = first; it != segments_.end() && it->first < end; ++it) {
    if (it->first > next) segments_.emplace_hint(it, next, Segment{it->first, access, {}, nullptr});
    Segment& segment = it->second;
    segment.host_write = segment.LastHostWrite();
    segment.write = access;
    segment.reads.clear();
    next = segment.end;
  }
  if (next < end) segments_.emplace(next, Segment{end, access, {}, nullptr});
}

}  // namespace h2d::fake_internal
