// Base64 with the alphabet that URLs, file names and shells leave alone (RFC 4648, section 5),
// without padding characters.
#ifndef H2D_TESTS_SUPPORT_BASE64URL_H_
#define H2D_TESTS_SUPPORT_BASE64URL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace h2d::testing {

std::string EncodeBase64Url(std::span<const uint8_t> bytes);

// Nothing when `text` has a character outside the alphabet or an impossible length.
std::optional<std::vector<uint8_t>> DecodeBase64Url(std::string_view text);

// Writes the encoding into `out` and answers its length; cuts it when `capacity` is too small.
// Async-signal-safe.
size_t EncodeBase64UrlTo(std::span<const uint8_t> bytes, char* out, size_t capacity) noexcept;

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_BASE64URL_H_
