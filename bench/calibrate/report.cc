#include "h2d/bench/calibrate/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

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
    if (one.samples.size() > 1) result.push_back(&one);
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

std::string Table(const std::vector<const Series*>& series) {
  std::string text = Format("%-22s", "GB/s (median)");
  const std::set<uint64_t> sizes = SizesOf(series);
  for (const uint64_t bytes : sizes) text += Format("%9s", SizeText(bytes).c_str());
  text += "\n";
  for (const Series* one : series) {
    text += Format("%-22s", one->way.c_str());
    for (const uint64_t bytes : sizes) {
      const Sample* const sample = one->At(bytes);
      text += sample == nullptr ? Format("%9s", "-") : Format("%9.2f", sample->gb_per_second());
    }
    text += "\n";
  }
  return text;
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
  std::string text = Table(BySize(series));
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
  text += Format("options.policy.flush_above_bytes = %llu;\n",
                 static_cast<unsigned long long>(chosen.policy.flush_above_bytes));
  text +=
      Format("options.threads = %d;\noptions.chunk_bytes = %llu;\noptions.max_chunks = %d;\n",
             static_cast<int>(chosen.threads), static_cast<unsigned long long>(chosen.chunk_bytes),
             static_cast<int>(chosen.max_chunks));
  text += Format("options.max_pinned_bytes = %llu;\noptions.ring_bytes = %llu;\n",
                 static_cast<unsigned long long>(chosen.max_pinned_bytes),
                 static_cast<unsigned long long>(chosen.ring_bytes));
  return text;
}

std::string ToJson(std::string_view device, const std::vector<Series>& series,
                   const UploaderOptions& chosen) {
  nlohmann::ordered_json json;
  json["device"] = device;
  json["policy"] = {
      {"pageable_through_pinned_below_bytes", chosen.policy.pageable_through_pinned_below_bytes},
      {"flush_above_bytes", chosen.policy.flush_above_bytes}};
  json["options"] = {{"threads", chosen.threads},
                     {"chunk_bytes", chosen.chunk_bytes},
                     {"min_chunk_bytes", chosen.min_chunk_bytes},
                     {"max_chunks", chosen.max_chunks},
                     {"max_pinned_bytes", chosen.max_pinned_bytes},
                     {"ring_bytes", chosen.ring_bytes}};
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
  constexpr std::array kColours = {"#1b6ca8", "#d1495b", "#66a182", "#edae49",
                                   "#6a4c93", "#2e4057", "#8d96a3"};
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
