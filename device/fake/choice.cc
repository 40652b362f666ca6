#include "h2d/device/fake/choice.h"

#include <algorithm>
#include <array>
#include <utility>

namespace h2d {

std::string_view ToString(ChoiceSite site) noexcept {
  constexpr std::array<std::string_view, kChoiceSites> kNames = {
      "source read", "torn chunk",  "pageable",       "latency",    "batch order",
      "seen late",   "wait answer", "enqueue blocks", "allocation", "task",
      "free",        "stuck",       "confidential"};
  const auto index = static_cast<size_t>(site);
  return index < kNames.size() ? kNames[index] : "unknown";
}

uint32_t ChoiceSource::Choose(uint64_t operation, ChoiceSite site, uint32_t n) {
  if (n <= 1) return 0;
  uint32_t& times = AskedBy(operation).times[static_cast<size_t>(site)];
  return Draw({operation, site, times++}, n) % n;
}

ChoiceSource::Asked& ChoiceSource::AskedBy(uint64_t operation) {
  auto found = asked_.begin();
  while (found != asked_.end() && found->operation != operation) ++found;
  if (found == asked_.end()) {
    if (asked_.size() == kRemembered) asked_.pop_back();
    asked_.insert(asked_.begin(), Asked{operation, {}});
  } else {
    std::rotate(asked_.begin(), found, found + 1);
  }
  return asked_.front();
}

uint32_t HashChoices::Draw(const ChoicePoint& point, uint32_t n) {
  constexpr std::array<uint32_t, 4> kUnkindOfEight = {0, 1, 4, 8};
  const auto site = static_cast<uint64_t>(point.site);
  const uint32_t unkind = kUnkindOfEight[MixBits(seed_ ^ MixBits(site + 1)) & 3];
  const uint64_t bits = MixBits(MixBits(seed_ + 0x9e3779b97f4a7c15ULL * (point.operation + 1)) ^
                                (site << 32 | point.repeat));
  if ((bits >> 32 & 7) >= unkind) return 0;
  return static_cast<uint32_t>(bits & 0xffffff) % n;
}

ByteChoices::ByteChoices(std::vector<std::vector<uint8_t>> by_operation)
    : by_operation_(std::move(by_operation)), cursors_(by_operation_.size(), 0) {}

uint32_t ByteChoices::Draw(const ChoicePoint& point, uint32_t) {
  if (point.operation >= by_operation_.size()) return 0;
  const auto& bytes = by_operation_[point.operation];
  size_t& cursor = cursors_[point.operation];
  return cursor < bytes.size() ? bytes[cursor++] : 0;
}

uint32_t ScriptedChoices::Draw(const ChoicePoint& point, uint32_t) {
  const auto found = answers_.find(point);
  return found == answers_.end() ? 0 : found->second;
}

std::map<ChoicePoint, uint32_t> RecordingChoices::Script() const {
  std::map<ChoicePoint, uint32_t> script;
  for (const Choice& choice : choices_) {
    if (choice.answer != 0) script[choice.point] = choice.answer;
  }
  return script;
}

uint32_t RecordingChoices::Draw(const ChoicePoint& point, uint32_t n) {
  const uint32_t answer = source_->Choose(point.operation, point.site, n);
  choices_.push_back({point, n, answer});
  return answer;
}

}  // namespace h2d
