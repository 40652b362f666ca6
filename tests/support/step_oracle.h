// What a step writer was told since its last submit, and what its next one must and must not do.
#ifndef H2D_TESTS_SUPPORT_STEP_ORACLE_H_
#define H2D_TESTS_SUPPORT_STEP_ORACLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "h2d/stager/step_layout.h"
#include "h2d/tests/support/region_model.h"

namespace h2d::testing {

// Sends every write in full, and so tells what a slab must hold. What the writer has to know is
// followed for whole rows: of a row that is known in part either answer is right.
class StepOracle {
 public:
  explicit StepOracle(const StepLayout& layout);

  // One write, as it travels when nothing is left out.
  struct Asked {
    uint64_t offset = 0;  // in the slab
    Bytes bytes = {};
  };

  // Writes of the caller, each as the method of `StepWriter` says. Values are whole elements.
  void Set(size_t field, const Bytes& values) { Write(field, 0, 0, values, /*pad_rest=*/true); }
  void SetAt(size_t field, uint64_t row, uint64_t first, const Bytes& values) {
    Write(field, row, first, values, /*pad_rest=*/false);
  }
  void SetRow(size_t field, uint64_t row, const Bytes& values);
  void AppendToRow(size_t field, uint64_t row, const Bytes& values);
  void CopyRow(size_t field, uint64_t from, uint64_t to);
  void MoveRow(size_t field, uint64_t from, uint64_t to);
  void SwapRows(size_t field, uint64_t a, uint64_t b);

  // The field as it was last written, padding included, and the values of one row.
  Bytes FieldBytes(size_t field) const;
  // ... one row of it; a field without rows is one.
  Bytes RowBytes(size_t field, uint64_t row) const;
  uint64_t RowCount(size_t field, uint64_t row) const { return RowOf(field, row).count; }

  void Forget(size_t field);
  void ForgetAll();
  // Another path wrote the slab. The writer may notice only at its next submit, and then forgets as
  // well what was written since: that may be known or not.
  void Overwritten();
  void MayNotice();
  // What was asked was sent, or was there already.
  void Sent();

  const std::vector<Asked>& asked() const noexcept { return asked_; }
  uint64_t asked_bytes() const noexcept;
  bool asks(size_t field) const;
  // Nothing that was asked can differ; something that was asked does, or is unknown.
  bool must_skip() const noexcept { return same_; }
  bool must_travel() const noexcept { return differs_; }
  std::optional<bool> Knows(size_t field) const;

 private:
  enum class Known : uint8_t { kNothing, kSome, kAll };
  struct Row {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint64_t count = 0;
    Known known = Known::kNothing;
  };

  const StepLayout::FieldInfo& Info(size_t field) const { return layout_.fields()[field]; }
  Row& RowOf(size_t field, uint64_t row) { return rows_[first_row_[field] + row]; }
  const Row& RowOf(size_t field, uint64_t row) const { return rows_[first_row_[field] + row]; }
  void Write(size_t field, uint64_t row, uint64_t first, Bytes bytes, bool pad_rest);

  StepLayout layout_;
  Bytes image_;
  std::vector<Row> rows_;
  std::vector<size_t> first_row_;
  std::vector<Asked> asked_;
  bool same_ = true;
  bool differs_ = false;
  bool overwritten_ = false;  // and the writer may not have noticed
};

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_STEP_ORACLE_H_
