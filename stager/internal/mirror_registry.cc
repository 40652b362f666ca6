#include "h2d/stager/internal/mirror_registry.h"

#include <cstdio>
#include <string>

#include "h2d/stager/internal/state_mark.h"

namespace h2d::internal {
namespace {

std::string Hex(uint64_t address) {
  char text[19];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

// Never destroyed: stagers with static storage duration use it until the process ends (I9).
struct Registries {
  Mutex mutex;
  std::map<uint64_t, std::weak_ptr<MirrorRegistry>> by_space;
};
Registries& AllRegistries() {
  static auto* const all = new Registries;
  return *all;
}

}  // namespace

std::shared_ptr<MirrorRegistry> MirrorRegistry::Of(uint64_t memory_space) {
  Registries& all = AllRegistries();
  MutexLock lock(all.mutex);
  std::erase_if(all.by_space, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<MirrorRegistry>& known = all.by_space[memory_space];
  std::shared_ptr<MirrorRegistry> registry = known.lock();
  if (registry == nullptr) {
    registry = std::make_shared<MirrorRegistry>();
    known = registry;
  }
  return registry;
}

MirrorRegistry::Entries::iterator MirrorRegistry::FirstOverlap(uint64_t begin, uint64_t end) {
  auto entry = entries_.upper_bound(begin);
  if (entry != entries_.begin() && std::prev(entry)->second.end > begin) return std::prev(entry);
  return entry != entries_.end() && entry->first < end ? entry : entries_.end();
}

Expected<void> MirrorRegistry::AddLocked(DevicePtr begin, uint64_t bytes, ForgetCount* forgets) {
  const uint64_t end = begin.address() + bytes;
  const auto overlap = FirstOverlap(begin.address(), end);
  if (overlap != entries_.end()) {
    return InvalidArgument("The destination " + Hex(begin.address()) + " to " + Hex(end) +
                           " overlaps that of a live mirror, " + Hex(overlap->first) + " to " +
                           Hex(overlap->second.end) + "; mirrors are disjoint in their bytes.");
  }
  entries_.emplace(begin.address(), Entry{end, forgets});
  live_.FetchAdd(1);
  return {};
}

Expected<void> MirrorRegistry::Add(DevicePtr begin, uint64_t bytes, ForgetCount* forgets) {
  MutexLock lock(mutex_);
  return AddLocked(begin, bytes, forgets);
}

void MirrorRegistry::Remove(DevicePtr begin) noexcept {
  MutexLock lock(mutex_);
  live_.FetchAdd(~uint64_t{0} * entries_.erase(begin.address()));
}

Expected<void> MirrorRegistry::Move(DevicePtr from, DevicePtr begin, uint64_t bytes) {
  MutexLock lock(mutex_);
  const auto own = entries_.extract(from.address());
  live_.FetchAdd(~uint64_t{0});
  Expected<void> added = AddLocked(begin, bytes, own.mapped().forgets);
  if (!added) {
    entries_.emplace(own.key(), own.mapped());
    live_.FetchAdd(1);
  }
  return added;
}

void MirrorRegistry::ForgetOverlappingOf(DevicePtr begin, uint64_t bytes) noexcept {
  const uint64_t end = begin.address() + bytes;
  MutexLock lock(mutex_);
  for (auto entry = FirstOverlap(begin.address(), end);
       entry != entries_.end() && entry->first < end; ++entry) {
    entry->second.forgets->FetchAdd(1);
    Reached(Mark::kForgottenByPlainCopy);
  }
}

}  // namespace h2d::internal
