#include "observe/draw/png/png_image.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace megalith::observe {

namespace {

double distance(double x, double y, const Segment& segment) {
  const auto& [from, to] = segment;
  const double along_x = to.x - from.x;
  const double along_y = to.y - from.y;
  const double length = along_x * along_x + along_y * along_y;
  const double share =
      length > 0.0 ? std::clamp(((x - from.x) * along_x + (y - from.y) * along_y) / length, 0.0, 1.0) : 0.0;
  return std::hypot(x - from.x - share * along_x, y - from.y - share * along_y);
}

// Whole pixels that cover [low, high], within [0, limit).
struct PixelRange {
  int begin = 0;
  int end = 0;

  PixelRange(double low, double high, int limit)
      : begin(static_cast<int>(std::clamp(std::floor(low), 0.0, static_cast<double>(limit)))),
        end(static_cast<int>(std::clamp(std::ceil(high), 0.0, static_cast<double>(limit)))) {}
  int size() const { return std::max(0, end - begin); }
};

void append_big_endian(std::string& bytes, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>((value >> shift) & 0xff);
}

void append_chunk(std::string& file, std::string_view type, std::string_view content) {
  append_big_endian(file, static_cast<uint32_t>(content.size()));
  const size_t covered = file.size();
  file.append(type).append(content);
  const uLong crc =
      crc32(0, reinterpret_cast<const Bytef*>(file.data() + covered), static_cast<uInt>(file.size() - covered));
  append_big_endian(file, static_cast<uint32_t>(crc));
}

std::string deflated(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string packed(size, '\0');
  const int result = compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                               reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), Z_BEST_COMPRESSION);
  MEGALITH_CHECK(result == Z_OK, "zlib says {}", result);
  packed.resize(size);
  return packed;
}

}  // namespace

PngImage::PngImage(int width, int height, uint32_t paper)
    : width_(width), height_(height), rgb_(static_cast<size_t>(width) * static_cast<size_t>(height) * 3) {
  fill(bounds(), paper, 1.0);
}

uint32_t PngImage::at(int x, int y) const {
  const uint8_t* pixel = &rgb_[(static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)) * 3];
  return static_cast<uint32_t>(pixel[0]) << 16 | static_cast<uint32_t>(pixel[1]) << 8 | pixel[2];
}

void PngImage::blend(int x, int y, uint32_t colour, double coverage) {
  uint8_t* pixel = &rgb_[(static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)) * 3];
  for (int channel = 0; channel < 3; ++channel) {
    const double wanted = (colour >> (16 - 8 * channel)) & 0xff;
    pixel[channel] =
        static_cast<uint8_t>(std::lround(std::lerp(static_cast<double>(pixel[channel]), wanted, coverage)));
  }
}

void PngImage::stroke(const std::vector<Segment>& segments, double width, uint32_t colour, double opacity,
                      const Rectangle& clip) {
  const double reach = width / 2 + 0.5;
  const PixelRange columns(clip.x, clip.x + clip.width, width_);
  const PixelRange rows(clip.y, clip.y + clip.height, height_);
  std::vector<float> coverage(static_cast<size_t>(columns.size()) * static_cast<size_t>(rows.size()), 0.0F);
  for (const Segment& segment : segments) {
    const auto [left, right] = std::minmax(segment.first.x, segment.second.x);
    const auto [top, bottom] = std::minmax(segment.first.y, segment.second.y);
    const PixelRange across(left - reach, right + reach, columns.end);
    const PixelRange down(top - reach, bottom + reach, rows.end);
    for (int y = std::max(down.begin, rows.begin); y < down.end; ++y) {
      for (int x = std::max(across.begin, columns.begin); x < across.end; ++x) {
        const double covered = std::clamp(reach - distance(x + 0.5, y + 0.5, segment), 0.0, 1.0);
        float& known = coverage[static_cast<size_t>(y - rows.begin) * static_cast<size_t>(columns.size()) +
                                static_cast<size_t>(x - columns.begin)];
        known = std::max(known, static_cast<float>(covered));
      }
    }
  }
  for (size_t i = 0; i < coverage.size(); ++i) {
    if (coverage[i] == 0.0F) continue;
    const int x = columns.begin + static_cast<int>(i % static_cast<size_t>(columns.size()));
    const int y = rows.begin + static_cast<int>(i / static_cast<size_t>(columns.size()));
    blend(x, y, colour, opacity * static_cast<double>(coverage[i]));
  }
}

void PngImage::fill(const Rectangle& box, uint32_t colour, double opacity) {
  const PixelRange columns(box.x, box.x + box.width, width_);
  const PixelRange rows(box.y, box.y + box.height, height_);
  const auto overlap = [](int pixel, double low, double size) {
    return std::max(0.0, std::min(pixel + 1.0, low + size) - std::max(static_cast<double>(pixel), low));
  };
  for (int y = rows.begin; y < rows.end; ++y) {
    for (int x = columns.begin; x < columns.end; ++x) {
      blend(x, y, colour, opacity * overlap(x, box.x, box.width) * overlap(y, box.y, box.height));
    }
  }
}

std::string PngImage::encode() const {
  std::string header;
  append_big_endian(header, static_cast<uint32_t>(width_));
  append_big_endian(header, static_cast<uint32_t>(height_));
  header += std::string("\x08\x02\x00\x00\x00", 5);  // eight bits each of red, green and blue; not interlaced
  std::string rows;
  const size_t stride = static_cast<size_t>(width_) * 3;
  for (size_t y = 0; y < static_cast<size_t>(height_); ++y) {
    rows += '\0';  // this row as it is, without a filter
    rows.append(reinterpret_cast<const char*>(rgb_.data()) + y * stride, stride);
  }
  std::string file("\x89PNG\r\n\x1a\n", 8);
  append_chunk(file, "IHDR", header);
  append_chunk(file, "IDAT", deflated(rows));
  append_chunk(file, "IEND", "");
  return file;
}

}  // namespace megalith::observe
