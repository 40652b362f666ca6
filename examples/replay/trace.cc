#include "h2d/examples/replay/trace.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace h2d::replay {
namespace {

constexpr std::string_view kHeader = "TIMESTAMP,ContextTokens,GeneratedTokens";

// Where an error is: "code.csv:17: ".
struct Place {
  std::string_view name;
  size_t line = 0;

  Unexpected Error(const std::string& what) const {
    return InvalidArgument(std::string(name) + ":" + std::to_string(line) + ": " + what);
  }
};

// Takes the next line off `text`, without its ending.
std::string_view NextLine(std::string_view& text) {
  const size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

// Reads exactly `width` digits off the front of `text`.
std::optional<int> TakeNumber(std::string_view& text, size_t width) {
  if (text.size() < width) return std::nullopt;
  int value = 0;
  for (const char c : text.substr(0, width)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  text.remove_prefix(width);
  return value;
}

bool TakeChar(std::string_view& text, char expected) {
  if (text.empty() || text.front() != expected) return false;
  text.remove_prefix(1);
  return true;
}

// Days since 1970-01-01 in the Gregorian calendar, or nothing for a date that does not exist.
std::optional<int64_t> DaysOf(int year, int month, int day) {
  static constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const auto is_leap = [](int y) { return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0; };
  if (year < 1970 || month < 1 || month > 12 || day < 1) return std::nullopt;
  const int february_29 = month == 2 && is_leap(year) ? 1 : 0;
  if (day > kDays[static_cast<size_t>(month - 1)] + february_29) return std::nullopt;
  const int past = year - 1;
  int64_t days = int64_t{365} * (year - 1970) + (past / 4 - past / 100 + past / 400) -
                 (1969 / 4 - 1969 / 100 + 1969 / 400);
  for (int m = 1; m < month; ++m) days += kDays[static_cast<size_t>(m - 1)];
  if (month > 2 && is_leap(year)) ++days;
  return days + day - 1;
}

// Nanoseconds of a fraction such as ".9799600"; 0 when there is none.
std::optional<int64_t> TakeFraction(std::string_view& text) {
  if (!TakeChar(text, '.')) return 0;
  int64_t nanoseconds = 0;
  size_t digits = 0;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    if (++digits > 9) return std::nullopt;
    nanoseconds = nanoseconds * 10 + (text.front() - '0');
    text.remove_prefix(1);
  }
  if (digits == 0) return std::nullopt;
  for (; digits < 9; ++digits) nanoseconds *= 10;
  return nanoseconds;
}

// Nanoseconds since 1970; years from 1970 to 2199 so that 64 bits hold them.
std::optional<int64_t> ParseTimestamp(std::string_view text) {
  const std::optional<int> year = TakeNumber(text, 4);
  if (!year || *year > 2199 || !TakeChar(text, '-')) return std::nullopt;
  const std::optional<int> month = TakeNumber(text, 2);
  if (!month || !TakeChar(text, '-')) return std::nullopt;
  const std::optional<int> day = TakeNumber(text, 2);
  if (!day || !(TakeChar(text, ' ') || TakeChar(text, 'T'))) return std::nullopt;
  const std::optional<int> hour = TakeNumber(text, 2);
  if (!hour || *hour > 23 || !TakeChar(text, ':')) return std::nullopt;
  const std::optional<int> minute = TakeNumber(text, 2);
  if (!minute || *minute > 59 || !TakeChar(text, ':')) return std::nullopt;
  const std::optional<int> second = TakeNumber(text, 2);
  if (!second || *second > 59) return std::nullopt;
  const std::optional<int64_t> fraction = TakeFraction(text);
  const std::optional<int64_t> days = DaysOf(*year, *month, *day);
  if (!fraction || !days || !(text.empty() || text == "Z" || text == "+00:00")) return std::nullopt;
  const int64_t seconds = ((*days * 24 + *hour) * 60 + *minute) * 60 + *second;
  return seconds * 1'000'000'000 + *fraction;
}

Expected<uint32_t> ParseTokens(std::string_view text, std::string_view column, uint32_t least,
                               const Place& place) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool out_of_range = error == std::errc::result_out_of_range;
  if (!out_of_range && (error != std::errc() || end != text.data() + text.size())) {
    return place.Error(std::string(column) + " is \"" + std::string(text) +
                       "\", which is not a whole number.");
  }
  if (out_of_range || value < least || value > kMaxTraceTokens) {
    return place.Error(std::string(column) + " is " + std::string(text) + "; it must lie between " +
                       std::to_string(least) + " and " + std::to_string(kMaxTraceTokens) + ".");
  }
  return static_cast<uint32_t>(value);
}

struct Fields {
  std::array<std::string_view, 3> columns;
  size_t count = 0;  // as many as the line has, beyond 3 too
};

Fields Split(std::string_view line) {
  Fields fields;
  for (;;) {
    const size_t comma = line.find(',');
    if (fields.count < fields.columns.size()) {
      fields.columns[fields.count] = line.substr(0, comma);
    }
    ++fields.count;
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

// One line; `arrival` of the answer is still absolute.
Expected<TraceRequest> ParseRequest(std::string_view line, const Place& place) {
  const Fields fields = Split(line);
  if (fields.count != fields.columns.size()) {
    return place.Error("the line has " + std::to_string(fields.count) +
                       (fields.count == 1 ? " column" : " columns") + " where 3 are needed (" +
                       std::string(kHeader) + ").");
  }
  const std::optional<int64_t> timestamp = ParseTimestamp(fields.columns[0]);
  if (!timestamp) {
    return place.Error("TIMESTAMP is \"" + std::string(fields.columns[0]) +
                       "\", which is not of the form YYYY-MM-DD HH:MM:SS.fraction.");
  }
  Expected<uint32_t> context = ParseTokens(fields.columns[1], "ContextTokens", 1, place);
  if (!context) return ErrorOf(context);
  Expected<uint32_t> generated = ParseTokens(fields.columns[2], "GeneratedTokens", 0, place);
  if (!generated) return ErrorOf(generated);
  return TraceRequest{std::chrono::nanoseconds(*timestamp), *context, *generated};
}

Unexpected CannotRead(const std::string& path, int reason) {
  return InvalidArgument("The trace \"" + path + "\" cannot be read: " + std::strerror(reason) +
                         ".");
}

}  // namespace

Expected<std::vector<TraceRequest>> ParseTrace(std::string_view text, std::string_view name) {
  Place place{name, 1};
  if (text.empty()) return place.Error("the file is empty.");
  if (const std::string_view header = NextLine(text); header != kHeader) {
    return place.Error("the header is \"" + std::string(header.substr(0, 80)) + "\" and not \"" +
                       std::string(kHeader) + "\".");
  }
  std::vector<TraceRequest> requests;
  while (!text.empty()) {
    ++place.line;
    const std::string_view line = NextLine(text);
    if (line.empty() && text.empty()) break;  // a blank line at the end is no request
    Expected<TraceRequest> request = ParseRequest(line, place);
    if (!request) return ErrorOf(request);
    if (!requests.empty() && request->arrival < requests.back().arrival) {
      return place.Error(
          "the request arrives before that of the line above; sort the file by its "
          "first column.");
    }
    requests.push_back(*request);
  }
  if (requests.empty()) return place.Error("the trace has a header and no request.");
  const std::chrono::nanoseconds start = requests.front().arrival;
  for (TraceRequest& request : requests) request.arrival -= start;
  return requests;
}

Expected<std::vector<TraceRequest>> ReadTrace(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (file == nullptr) return CannotRead(path, errno);
  std::string text;
  std::array<char, 1 << 16> chunk;
  while (const size_t bytes = std::fread(chunk.data(), 1, chunk.size(), file.get())) {
    text.append(chunk.data(), bytes);
  }
  if (std::ferror(file.get()) != 0) return CannotRead(path, errno);
  return ParseTrace(text, path);
}

}  // namespace h2d::replay
