#include "h2d/tests/support/byte_model.h"

namespace h2d::testing {

void ByteModel::Write(size_t offset, std::span<const uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) bytes_[offset + i] = bytes[i];
  others_.erase(others_.lower_bound(offset), others_.lower_bound(offset + bytes.size()));
}

void ByteModel::MayWrite(size_t offset, std::span<const uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes_[offset + i] != bytes[i]) others_[offset + i].insert(bytes[i]);
  }
}

bool ByteModel::May(size_t at, uint8_t value) const {
  if (bytes_[at] == value) return true;
  const auto others = others_.find(at);
  return others != others_.end() && others->second.contains(value);
}

bool ByteModel::Must(size_t at, uint8_t value) const {
  return bytes_[at] == value && !others_.contains(at);
}

std::optional<size_t> ByteModel::FirstWrong(const Bytes& seen) const {
  for (size_t at = 0; at < seen.size(); ++at) {
    if (!May(at, seen[at])) return at;
  }
  return std::nullopt;
}

}  // namespace h2d::testing
