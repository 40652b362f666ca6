#include "h2d/device/fake/internal/detector.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "h2d/device/fake/internal/address_sanitizer.h"

namespace h2d::fake_internal {

using AccessRecord = h2d::fake_internal::Access;

namespace {

constexpr uint32_t kNone = ~uint32_t{0};  // no lane gets there
constexpr size_t kFewWatched = 4;
constexpr uint32_t kTimesOfFunction = 256;

}  // namespace

LaneIndex Detector::AddLane(std::string name, uint32_t time) {
  const auto lane = static_cast<LaneIndex>(lanes_.size());
  names_.lanes.push_back(std::move(name));
  lanes_.emplace_back().clock.Set(lane, time);
  oldest_watched_.push_back(kNone);
  return lane;
}

// A host lane's first action is under way from the start; a stream has none yet.
LaneIndex Detector::AddHostLane(std::string name) { return AddLane(std::move(name), 1); }
LaneIndex Detector::AddStreamLane(std::string name) { return AddLane(std::move(name), 0); }

void Detector::Tick(LaneIndex lane) {
  Clock& clock = lanes_[lane].clock;
  clock.Set(lane, clock.at(lane) + 1);
}

void Detector::Acquire(LaneIndex lane, const Clock& clock, const OperationInfo& now) {
  if (!options_.enabled) return;
  lanes_[lane].clock.Join(clock);
  Observe(clock, now);
}

void Detector::Observe(const Clock& clock, const OperationInfo& now) {
  const auto lanes = static_cast<LaneIndex>(std::min(clock.lanes(), lanes_.size()));
  for (LaneIndex lane = 0; lane < lanes; ++lane) {
    while (oldest_watched_[lane] <= clock.at(lane)) {
      Compare(*lanes_[lane].watched.front(), now);
      ForgetOldest(lane);
    }
  }
}

Epoch Detector::BeginIssue(LaneIndex host, LaneIndex stream) {
  Clock& clock = lanes_[stream].clock;
  if (options_.enabled) clock.Join(lanes_[host].clock);
  return {stream, clock.at(stream) + 1};
}

void Detector::EndIssue(LaneIndex host, Epoch epoch) {
  lanes_[epoch.lane].clock.Set(epoch.lane, epoch.time);
  if (options_.enabled) Tick(host);
}

Epoch Detector::QueueFunction(Epoch first) {
  return functions_.emplace_back(Epoch{first.lane, first.time + kTimesOfFunction - 1});
}

void Detector::FunctionEnded(Epoch end) {
  std::erase_if(functions_, [end](Epoch function) {
    return function.lane == end.lane && function.time == end.time;
  });
}

void Detector::Access(Shadow& shadow, const AccessRef& access, const MemoryRef& memory, bool writes,
                      Order order) {
  order.functions = functions_;
  judged_ = memory;
  const uint64_t end = memory.offset + memory.bytes;
  if (writes) {
    shadow.Write(memory.offset, end, access, order, *this);
  } else {
    shadow.Read(memory.offset, end, access, order, *this);
  }
}

bool Detector::ReleaseBlock(PinnedBlock& block, const AccessRef& access, const Order& order) {
  // Nothing is compared after this: the memory's next owner writes as he likes.
  for (const AccessRef& read : block.watched) {
    Compare(*read, access->op);
    Forget(*read);
  }
  block.watched.clear();
  releasing_ = true;
  conflict_ = false;
  Access(block.shadow, access, block.Ref(block.data.get(), block.bytes), true, order);
  releasing_ = false;
  return !conflict_;
}

void Detector::Watch(PinnedBlock* block, const AccessRef& access, const std::byte* from,
                     uint64_t bytes) {
  access->from = from;
  access->block = block;
  access->expected.resize(bytes);
  CopyPoisoned(access->expected.data(), from, bytes);
  if (options_.poison_sources) PoisonBytes(from, bytes);
  watched_bytes_ += bytes + sizeof(AccessRecord);
  if (block->watched.size() == block->watched.capacity()) {
    std::erase_if(block->watched, [](const AccessRef& read) { return read->expected.empty(); });
    block->watched.reserve(std::max(kFewWatched, 2 * block->watched.size()));
  }
  block->watched.push_back(access);
  const LaneIndex lane = access->epoch.lane;
  auto& watched = lanes_[lane].watched;
  // In the order of the copies, of which some are watched from their start on only.
  auto place = watched.end();
  while (place != watched.begin() && (*std::prev(place))->epoch.time > access->epoch.time) --place;
  watched.insert(place, access);
  oldest_watched_[lane] = watched.front()->epoch.time;
  while (watched_bytes_ > kMaxWatchedBytes && watched.size() > 1) ForgetOldest(lane);
}

void Detector::ForgetOldest(LaneIndex lane) {
  auto& watched = lanes_[lane].watched;
  Forget(*watched.front());
  watched.pop_front();
  oldest_watched_[lane] = watched.empty() ? kNone : watched.front()->epoch.time;
}

void Detector::Forget(AccessRecord& access) {
  if (access.expected.empty()) return;
  const size_t bytes = access.expected.size();
  watched_bytes_ -= bytes + sizeof(AccessRecord);
  access.expected = {};
  if (!kAddressSanitizer || !options_.poison_sources) return;
  UnpoisonBytes(access.from, bytes);
  for (const AccessRef& other : access.block->watched) {  // of the same bytes, or in part
    if (other->from < access.from + bytes && access.from < other->from + other->expected.size()) {
      PoisonBytes(other->from, other->expected.size());
    }
  }
}

void Detector::Compare(AccessRecord& access, const OperationInfo& now) {
  if (access.expected.empty() || access.reported) return;
  const uint64_t bytes = access.expected.size();
  if (EqualPoisoned(access.expected.data(), access.from, bytes)) return;
  std::vector<std::byte> present(bytes);
  CopyPoisoned(present.data(), access.from, bytes);
  uint64_t first = 0;
  while (access.expected[first] == present[first]) ++first;
  uint64_t last = bytes;
  while (access.expected[last - 1] == present[last - 1]) --last;
  access.reported = true;
  MemoryRef changed = access.op.source;
  changed.offset += first;
  changed.bytes = last - first;
  Report(HazardKind::kUnannouncedWrite, &access.op, &now,
         "the bytes differ from those at the call of " + Describe(access.op, names_) +
             ", seen during " + Describe(now, names_) +
             "; no write was announced, and the host had not observed the copy's completion",
         changed);
}

std::string Detector::MissingEdge(HazardKind kind, const AccessRecord& known,
                                  const AccessRecord& fresh) const {
  const std::string& known_lane = names_.lanes[known.epoch.lane];
  const std::string& fresh_lane = names_.lanes[fresh.epoch.lane];
  const std::string first = Describe(known.op, names_);
  const std::string second = Describe(fresh.op, names_);
  if (kind != HazardKind::kUnorderedAccess && known.source_read) {
    return fresh_lane + " has not observed that " + first +
           " is complete: no query or wait of an event recorded on " + known_lane +
           " after it succeeded before " + second;
  }
  if (fresh.op.kind == OpKind::kFreeDevice) {
    return "nothing orders the call of " + first + " by " + names_.lanes[known.op.caller] +
           " before " + second + " by " + fresh_lane;
  }
  if (known.by_host) {
    return "nothing orders " + first + " by " + known_lane + " before " + second + " by " +
           fresh_lane + ": no lock or atomic leads from one to the other";
  }
  const bool in_function =
      known.op.kind == OpKind::kHostRead || known.op.kind == OpKind::kHostWrite;
  if (fresh.by_host) {
    return fresh_lane + " has not observed that " + first +
           (in_function ? " by a host function on " + known_lane : "") + " is complete";
  }
  if (known.epoch.lane == fresh.epoch.lane) {
    return "the copies of one batch are unordered among themselves";
  }
  return fresh_lane + " does not wait for an event recorded on " + known_lane + " after " + first;
}

// Copies whose reads were forgotten for a later one's will find these bytes changed, too: by the
// write that is reported now, not by one that nobody announced.
void Detector::MarkReported(PinnedBlock& block, uint64_t begin, uint64_t end) {
  const std::byte* const first = block.data.get() + begin;
  const std::byte* const last = block.data.get() + end;
  for (const AccessRef& read : block.watched) {
    if (read->from < last && first < read->from + read->expected.size()) read->reported = true;
  }
}

void Detector::OnConflict(const AccessRef& known, const AccessRef& fresh, bool fresh_writes,
                          bool known_writes, uint64_t begin, uint64_t end) {
  HazardKind kind = HazardKind::kUnorderedAccess;
  conflict_ = true;
  if (releasing_) {
    kind = HazardKind::kReleaseOfSourceInFlight;
  } else if ((known->source_read && fresh_writes) || (fresh->source_read && known_writes)) {
    kind = HazardKind::kWriteToSourceInFlight;
  }
  known->reported = true;
  fresh->reported = true;
  if (fresh_writes && known->block != nullptr) MarkReported(*known->block, begin, end);
  MemoryRef memory = judged_;
  memory.offset = begin;
  memory.bytes = end - begin;
  Report(kind, &known->op, &fresh->op, MissingEdge(kind, *known, *fresh), memory, known_writes,
         fresh_writes);
}

void Detector::Report(HazardKind kind, const OperationInfo* first, const OperationInfo* second,
                      std::string missing, const MemoryRef& memory, bool first_writes,
                      bool second_writes) {
  if (!options_.enabled) return;
  const auto number = [](const OperationInfo* op) { return op == nullptr ? 0 : op->number + 1; };
  if (hazards_.size() >= options_.max_hazards) {  // from here on they are only counted
    ++count_;
    return;
  }
  if (!seen_.emplace(kind, number(first), number(second)).second) return;
  ++count_;
  const auto side = [&](const OperationInfo* op, bool writes) {
    HazardAccess access;
    if (op == nullptr) return access;
    access.lane = names_.lanes[op->lane];
    access.operation = Describe(*op, names_);
    access.number = op->number;
    access.memory = names_.Of(memory);
    access.offset = memory.offset;
    access.bytes = memory.bytes;
    access.writes = writes;
    access.time = op->time;
    return access;
  };
  hazards_.push_back(
      {kind, side(first, first_writes), side(second, second_writes), std::move(missing)});
}

void Detector::Clear() {
  hazards_.clear();
  seen_.clear();
  count_ = 0;
}

}  // namespace h2d::fake_internal
