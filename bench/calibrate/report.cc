#include "h2d/bench/calibrate/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace h2d::calibrate {
namespace {

constexpr uint64_t kNoBorder = std::numeric_limits<uint64_t>::max();

__attribute__((format(printf, 1, 2))) std::string Format(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

std::string SizeText(uint64_t bytes) {
  if (bytes >= uint64_t{1} << 30) return std::to_string(bytes >> 30) + " GiB";
  if (bytes >= uint64_t{1} << 20) return std::to_string(bytes >> 20) + " MiB";
  return std::to_string(bytes >> 10) + " KiB";
}

std::vector<const Series*> BySize(const std::vector<Series>& series) {
  std::vector<const Series*> result;
  for (const Series& one : series) {
    if (one.samples.size() > 1 && !one.of_sweep() && !one.of_loops()) result.push_back(&one);
  }
  return result;
}

std::set<uint64_t> SizesOf(const std::vector<const Series*>& series) {
  std::set<uint64_t> sizes;
  for (const Series* one : series) {
    for (const Sample& sample : one->samples) sizes.insert(sample.bytes);
  }
  return sizes;
}

std::string Head(const char* title, const std::set<uint64_t>& sizes) {
  std::string text = Format("%-36s", title);
  for (const uint64_t bytes : sizes) text += Format("%9s", SizeText(bytes).c_str());
  return text + "\n";
}

template <class Value>
std::string Row(const std::string& name, const std::set<uint64_t>& sizes, const Value& value) {
  std::string text = Format("%-36s", name.c_str());
  for (const uint64_t bytes : sizes) {
    const double number = value(bytes);
    text += number > 0 ? Format("%9.2f", number) : Format("%9s", "-");
  }
  return text + "\n";
}

std::string Times(const char* title, const std::vector<const Series*>& series,
                  const std::set<uint64_t>& sizes) {
  std::string text = Head(title, sizes);
  for (const Series* one : series) {
    text += Row(one->name(), sizes, [&](uint64_t bytes) {
      const Sample* const sample = one->At(bytes);
      return sample == nullptr ? 0 : sample->seconds * 1e6;
    });
  }
  return text;
}

std::string Table(const std::vector<const Series*>& series) {
  const std::set<uint64_t> sizes = SizesOf(series);
  std::string text = Head("GB/s (median)", sizes);
  for (const Series* one : series) {
    text += Row(one->way, sizes, [&](uint64_t bytes) {
      const Sample* const sample = one->At(bytes);
      return sample == nullptr ? 0 : sample->gb_per_second();
    });
  }
  return text + "\n" + Times("us (median)", series, sizes);
}

// How many times as fast as another; 0 where one of them was not measured.
double Ratio(const Series& series, const Series& other, uint64_t bytes) {
  const Sample* const sample = series.At(bytes);
  const Sample* const beside = other.At(bytes);
  return sample == nullptr || beside == nullptr ? 0 : beside->seconds / sample->seconds;
}

const Series* Find(const std::vector<const Series*>& series, std::string_view way) {
  for (const Series* one : series) {
    if (one->way == way) return one;
  }
  return nullptr;
}

struct Pair {
  const char* way;
  const char* other;
};
constexpr Pair kPairs[] = {{"pinned, uploader", "pinned, raw"},
                           {"pinned, uploader", "pinned, and record"},
                           {"pinned, uploader, declared", "pinned, raw"},
                           {"pageable, uploader", "pageable, driver"},
                           {"pageable, uploader, directly", "pageable, driver"},
                           {"pageable, uploader, after a pause", "pageable, driver, after a pause"},
                           {"pageable, pipeline", "pageable, driver"},
                           {"pageable, ring", "pageable, driver"},
                           {"pageable, uploader", "pinned, raw"},
                           {"file, uploader", "file, driver"},
                           {"file, uploader", "pinned, raw"}};
constexpr Pair kPairsInLoops[] = {
    {"loops, pinned, uploader", "loops, pinned, and record"},
    {"loops, pinned, uploader, declared", "loops, pinned, and record"},
    {"loops, pageable, uploader", "loops, pageable, driver"},
    {"loops, pageable, uploader, directly", "loops, pageable, driver"}};

std::string Ratios(const char* title, std::span<const Pair> pairs,
                   const std::vector<const Series*>& series) {
  const std::set<uint64_t> sizes = SizesOf(series);
  std::string text = Head(title, sizes);
  for (const Pair& pair : pairs) {
    const Series* const one = Find(series, pair.way);
    const Series* const other = Find(series, pair.other);
    if (one == nullptr || other == nullptr) continue;
    text +=
        Row(one->name() + " as", sizes, [&](uint64_t bytes) { return Ratio(*one, *other, bytes); });
    text.insert(text.size() - 1, "   " + other->name());
  }
  return text;
}

// Each variant beside the driver of the same turns.
std::string SweepTable(const std::vector<Series>& series) {
  std::string text;
  const Series* driver = nullptr;
  std::set<uint64_t> sizes;
  for (const Series& one : series) {
    if (!one.of_sweep()) continue;
    if (text.empty()) {
      sizes = SizesOf({&one});
      text = "\n" + Head("times as fast as the driver, with", sizes);
    }
    if (one.way == Series::kSweepDriver) {
      driver = &one;
    } else {
      text += Row(one.way.substr(Series::kSweep.size()), sizes,
                  [&](uint64_t bytes) { return Ratio(one, *driver, bytes); });
    }
  }
  return text;
}

// Small sources one behind the other, and each beside what it is compared with.
std::string LoopTable(const std::vector<Series>& series) {
  std::vector<const Series*> loops;
  for (const Series& one : series) {
    if (one.of_loops()) loops.push_back(&one);
  }
  if (loops.empty()) return "";
  return "\n" + Times("us a call, in loops of 1,000", loops, SizesOf(loops)) + "\n" +
         Ratios("times as fast, in loops of 1,000", kPairsInLoops, loops);
}

// Where a sample lies in the picture.
class Plot {
 public:
  static constexpr double kWidth = 900;
  static constexpr double kHeight = 520;
  static constexpr double kLeft = 60;
  static constexpr double kRight = 220;
  static constexpr double kTop = 40;
  static constexpr double kBottom = 50;

  Plot(const std::set<uint64_t>& sizes, double most)
      : least_(std::log2(static_cast<double>(*sizes.begin()))),
        span_(std::max(std::log2(static_cast<double>(*sizes.rbegin())) - least_, 1.0)),
        most_(most) {}

  double X(uint64_t bytes) const {
    const double part = (std::log2(static_cast<double>(bytes)) - least_) / span_;
    return kLeft + part * (kWidth - kLeft - kRight);
  }
  double Y(double gb_per_second) const {
    return kHeight - kBottom - gb_per_second / most_ * (kHeight - kTop - kBottom);
  }

 private:
  double least_;
  double span_;
  double most_;
};

std::string Axes(const Plot& plot, const std::set<uint64_t>& sizes, double most) {
  std::string svg;
  for (const uint64_t bytes : sizes) {
    svg += Format("<text x='%.1f' y='%.1f' text-anchor='middle'>%s</text>\n", plot.X(bytes),
                  Plot::kHeight - 28, SizeText(bytes).c_str());
  }
  for (int i = 0; i <= 6; ++i) {
    const double value = most * i / 6;
    svg += Format("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='#ddd'/>\n", Plot::kLeft,
                  plot.Y(value), Plot::kWidth - Plot::kRight, plot.Y(value));
    svg += Format("<text x='%.1f' y='%.1f' text-anchor='end'>%.0f</text>\n", Plot::kLeft - 6,
                  plot.Y(value) + 4, value);
  }
  svg += Format("<text x='%.1f' y='%.1f'>size of the source; GB/s upwards</text>\n", Plot::kLeft,
                Plot::kHeight - 8);
  return svg;
}

}  // namespace

std::string ToText(const std::vector<Series>& series, const UploaderOptions& chosen) {
  const std::vector<const Series*> by_size = BySize(series);
  std::string text = Table(by_size) + "\n" + Ratios("times as fast", kPairs, by_size) +
                     LoopTable(series) + SweepTable(series);
  text += "\npageable, pipeline, at the largest size (GB/s, median and worst)\n";
  for (const Series& one : series) {
    if (one.samples.size() != 1) continue;
    const Sample& sample = one.samples.front();
    text += Format("  %3d threads, chunks of %-9s %7.2f %7.2f\n", static_cast<int>(one.threads),
                   SizeText(one.chunk_bytes).c_str(), sample.gb_per_second(),
                   static_cast<double>(sample.bytes) / sample.worst_seconds * 1e-9);
  }
  const uint64_t border = chosen.policy.pageable_through_pinned_below_bytes;
  text += "\nh2d::UploaderOptions options;\n";
  text += "options.policy.pageable_through_pinned_below_bytes = " +
          (border == kNoBorder ? "std::numeric_limits<uint64_t>::max()" : std::to_string(border)) +
          ";\n";
  text += Format(
      "// Sources below this have to stay until SourceReusable says otherwise; 0: none are.\n"
      "options.policy.pageable_through_pinned_from_bytes = %llu;\n",
      static_cast<unsigned long long>(chosen.policy.pageable_through_pinned_from_bytes));
  text +=
      Format("options.threads = %d;\noptions.chunk_bytes = %llu;\noptions.max_chunks = %d;\n",
             static_cast<int>(chosen.threads), static_cast<unsigned long long>(chosen.chunk_bytes),
             static_cast<int>(chosen.max_chunks));
  text += Format(
      "options.max_pinned_bytes = %llu;\noptions.ring_bytes = %llu;\n"
      "options.min_chunk_bytes = %llu;\noptions.piece_bytes = %llu;\noptions.wake_bytes = %llu;\n"
      "options.awake_for = std::chrono::nanoseconds(%lld);\n",
      static_cast<unsigned long long>(chosen.max_pinned_bytes),
      static_cast<unsigned long long>(chosen.ring_bytes),
      static_cast<unsigned long long>(chosen.min_chunk_bytes),
      static_cast<unsigned long long>(chosen.piece_bytes),
      static_cast<unsigned long long>(chosen.wake_bytes),
      static_cast<long long>(chosen.awake_for.count()));
  return text;
}

std::string ToJson(std::string_view device, const std::vector<Series>& series,
                   const UploaderOptions& chosen) {
  nlohmann::ordered_json json;
  json["device"] = device;
  json["policy"] = {
      {"pageable_through_pinned_below_bytes", chosen.policy.pageable_through_pinned_below_bytes},
      {"pageable_through_pinned_from_bytes", chosen.policy.pageable_through_pinned_from_bytes}};
  json["options"] = {{"threads", chosen.threads},
                     {"chunk_bytes", chosen.chunk_bytes},
                     {"min_chunk_bytes", chosen.min_chunk_bytes},
                     {"max_chunks", chosen.max_chunks},
                     {"max_pinned_bytes", chosen.max_pinned_bytes},
                     {"ring_bytes", chosen.ring_bytes},
                     {"piece_bytes", chosen.piece_bytes},
                     {"wake_bytes", chosen.wake_bytes},
                     {"awake_for_ns", chosen.awake_for.count()}};
  for (const Series& one : series) {
    nlohmann::ordered_json samples;
    for (const Sample& sample : one.samples) {
      samples.push_back({{"bytes", sample.bytes},
                         {"median_seconds", sample.seconds},
                         {"worst_seconds", sample.worst_seconds}});
    }
    json["series"].push_back({{"way", one.way},
                              {"threads", one.threads},
                              {"chunk_bytes", one.chunk_bytes},
                              {"samples", samples}});
  }
  return json.dump(2) + "\n";
}

std::string ToSvg(std::string_view device, const std::vector<Series>& series) {
  constexpr std::array kColours = {"#1b6ca8", "#d1495b", "#66a182", "#edae49", "#6a4c93", "#2e4057",
                                   "#8d96a3", "#00798c", "#b5651d", "#c98bb9", "#5c8001"};
  const std::vector<const Series*> lines = BySize(series);
  const std::set<uint64_t> sizes = SizesOf(lines);
  if (sizes.empty()) return {};
  double most = 1;
  for (const Series* one : lines) {
    for (const Sample& sample : one->samples) most = std::max(most, sample.gb_per_second());
  }
  const Plot plot(sizes, most);
  std::string svg = Format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='%.0f' height='%.0f' font-family='sans-serif' "
      "font-size='12'>\n<rect width='100%%' height='100%%' fill='white'/>\n",
      Plot::kWidth, Plot::kHeight);
  svg += Format("<text x='%.1f' y='22' font-size='15'>Bandwidth to the device: ", Plot::kLeft) +
         std::string(device) + "</text>\n" + Axes(plot, sizes, most);
  for (size_t i = 0; i < lines.size(); ++i) {
    const char* const colour = kColours[i % kColours.size()];
    std::string points;
    for (const Sample& sample : lines[i]->samples)
      points += Format("%.1f,%.1f ", plot.X(sample.bytes), plot.Y(sample.gb_per_second()));
    svg += Format("<polyline fill='none' stroke='%s' stroke-width='2' points='", colour) + points +
           "'/>\n";
    svg += Format("<text x='%.1f' y='%.1f' fill='%s'>", Plot::kWidth - Plot::kRight + 12,
                  Plot::kTop + 18.0 * static_cast<double>(i + 1), colour) +
           lines[i]->way + "</text>\n";
  }
  return svg + "</svg>\n";
}

}  // namespace h2d::calibrate
