// What each byte of a region may hold: an oracle for writes of which several may have failed.
#ifndef H2D_TESTS_SUPPORT_BYTE_MODEL_H_
#define H2D_TESTS_SUPPORT_BYTE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "h2d/tests/support/region_model.h"

namespace h2d::testing {

// `RegionModel` holds whole images, whose number doubles with each write that may have failed; here
// a byte is judged by itself, whatever became of its neighbours.
class ByteModel {
 public:
  explicit ByteModel(Bytes initial) : bytes_(std::move(initial)) {}

  // The bytes were written.
  void Write(size_t offset, std::span<const uint8_t> bytes);
  // ... or not.
  void MayWrite(size_t offset, std::span<const uint8_t> bytes);

  // Whether a byte can hold `value`, and whether it can hold nothing else.
  bool May(size_t at, uint8_t value) const;
  bool Must(size_t at, uint8_t value) const;

  // The first byte of `seen` that no write has left there.
  std::optional<size_t> FirstWrong(const Bytes& seen) const;

  const Bytes& bytes() const noexcept { return bytes_; }

 private:
  Bytes bytes_;
  std::map<size_t, std::set<uint8_t>> others_;  // that a byte may hold instead
};

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_BYTE_MODEL_H_
