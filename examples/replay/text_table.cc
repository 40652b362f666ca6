#include "h2d/examples/replay/text_table.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace h2d::replay {
namespace {

std::string Decimals(double value, int decimals, const char* unit) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.*f %s", decimals, value, unit);
  return text.data();
}

}  // namespace

std::string TextTable::ToString() const {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string fill(widths[i] - row[i].size(), ' ');
      line += i == 0 ? row[i] + fill : "  " + fill + row[i];
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string WithCommas(uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

std::string BytesText(uint64_t bytes) {
  static constexpr std::array<const char*, 4> kUnits = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return std::to_string(bytes) + " B";
  auto value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  for (; value >= 999.95 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  return Decimals(value, 1, kUnits[unit]);
}

std::string PercentText(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (part > 0 && percent < 0.05) return "< 0.1 %";
  if (part < whole && percent >= 99.95) return "> 99.9 %";
  return Decimals(percent, 1, "%");
}

std::string DurationText(uint64_t nanoseconds) {
  const auto value = static_cast<double>(nanoseconds);
  if (nanoseconds < 1'000) return std::to_string(nanoseconds) + " ns";
  if (nanoseconds < 1'000'000) return Decimals(value / 1e3, 1, "us");
  if (nanoseconds < 1'000'000'000) return Decimals(value / 1e6, 1, "ms");
  return Decimals(value / 1e9, 1, "s");
}

}  // namespace h2d::replay
