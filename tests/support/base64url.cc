#include "h2d/tests/support/base64url.h"

#include <algorithm>

namespace h2d::testing {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

size_t EncodeBase64UrlTo(std::span<const uint8_t> bytes, char* out, size_t capacity) noexcept {
  size_t length = 0;
  uint32_t bits = 0;
  uint32_t held = 0;
  for (size_t i = 0; i < bytes.size() || held > 0;) {
    if (held < 6) {
      const bool more = i < bytes.size();
      bits = bits << 8 | (more ? bytes[i++] : 0U);
      held += 8;
      if (!more) {  // the last character: what is held, then zeros
        if (length < capacity) out[length++] = kAlphabet[bits >> (held - 6) & 63];
        return length;
      }
    }
    held -= 6;
    if (length == capacity) return length;
    out[length++] = kAlphabet[bits >> held & 63];
  }
  return length;
}

std::string EncodeBase64Url(std::span<const uint8_t> bytes) {
  std::string text(bytes.size() * 4 / 3 + 4, '\0');
  text.resize(EncodeBase64UrlTo(bytes, text.data(), text.size()));
  return text;
}

std::optional<std::vector<uint8_t>> DecodeBase64Url(std::string_view text) {
  if (text.size() % 4 == 1) return std::nullopt;
  std::vector<uint8_t> bytes;
  uint32_t bits = 0;
  uint32_t held = 0;
  for (const char c : text) {
    const size_t digit = kAlphabet.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes.push_back(static_cast<uint8_t>(bits >> held));
    }
  }
  return bytes;
}

}  // namespace h2d::testing
