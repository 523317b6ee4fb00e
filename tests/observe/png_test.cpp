#include <gtest/gtest.h>
#include <zlib.h>

#include "observe/draw/palette.h"
#include "observe/draw/png/png_font.h"
#include "observe/draw/png/png_image.h"
#include "observe/draw/png/png_plot.h"

namespace megalith::observe {
namespace {

uint32_t big_endian(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// The rows of a PNG file as this house writes them, every checksum verified.
std::string pixels_of(const std::string& file) {
  EXPECT_EQ(file.substr(0, 8), std::string("\x89PNG\r\n\x1a\n", 8));
  std::string packed;
  uint32_t width = 0, height = 0;
  for (size_t at = 8; at < file.size();) {
    const uint32_t size = big_endian(file, at);
    const std::string chunk = file.substr(at + 4, size + 4);
    EXPECT_EQ(big_endian(file, at + 8 + size),
              crc32(0, reinterpret_cast<const Bytef*>(chunk.data()), static_cast<uInt>(chunk.size())));
    if (chunk.starts_with("IHDR")) width = big_endian(chunk, 4), height = big_endian(chunk, 8);
    if (chunk.starts_with("IDAT")) packed += chunk.substr(4);
    at += size + 12;
  }
  uLongf length = (width * 3 + 1) * height;
  std::string rows(length, '\0');
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(rows.data()), &length, reinterpret_cast<const Bytef*>(packed.data()),
                       packed.size()),
            Z_OK);
  EXPECT_EQ(length, rows.size());
  return rows;
}

TEST(PngImage, PaintsWithSoftEdges) {
  PngImage image(20, 10, 0xffffff);
  image.fill({2.5, 2, 4, 4}, 0x000000, 1.0);
  EXPECT_EQ(image.at(3, 3), 0x000000u);
  EXPECT_EQ(image.at(2, 3), 0x808080u);  // half covered
  EXPECT_EQ(image.at(7, 3), 0xffffffu);
  // Crossing strokes paint once.
  image.stroke({{{10, 5}, {18, 5}}, {{14, 2}, {14, 8}}}, 2.0, 0xff0000, 0.5, image.bounds());
  EXPECT_EQ(image.at(14, 5), image.at(11, 5));
  // Not outside the clip, and not outside the image.
  image.stroke({{{-100, 9}, {100, 9}}}, 2.0, 0x00ff00, 1.0, {0, 0, 20, 8});
  EXPECT_EQ(image.at(5, 9), 0xffffffu);
}

TEST(PngImage, EncodesWhatWasPainted) {
  PngImage image(3, 2, 0x102030);
  image.fill({0, 0, 1, 1}, 0xff0001, 1.0);
  const std::string rows = pixels_of(image.encode());
  EXPECT_EQ(rows.substr(0, 7), std::string("\0\xff\0\x01\x10\x20\x30", 7));
}

TEST(PngFont, HasEveryPrintableLetter) {
  for (char letter = '!'; letter <= '~'; ++letter) {
    const std::string word(1, letter);
    const std::vector<Segment> strokes = text_strokes(word, {0, 100}, 20);
    EXPECT_FALSE(strokes.empty()) << letter;
    for (const auto& [from, to] : strokes) {
      EXPECT_GE(from.x, -1.5) << letter;
      EXPECT_LE(from.x, text_width(word, 20) + 1.5) << letter;
      EXPECT_GE(from.y, 80.0) << letter;
      EXPECT_LE(from.y, 106.0) << letter;
    }
  }
  EXPECT_EQ(text_width("", 20), 0.0);
  // One box for one character that is not ASCII.
  EXPECT_EQ(text_strokes("é", {0, 0}, 20).size(), 4u);
}

TEST(PngPicture, ShowsTheCurveOnLightAndOnDark) {
  const Plot plot{.title = "Loss", .series = {{"a", "train", {{0, 1}, {1, 2}}}, {"b", "validation", {{0, 2}, {1, 1}}}}};
  for (const bool dark : {false, true}) {
    const std::string rows = pixels_of(png_picture(plot, dark));
    const Ink& ink = ink_named("train");
    const uint32_t colour = dark ? ink.dark : ink.light;
    const std::string pixel = {static_cast<char>(colour >> 16), static_cast<char>(colour >> 8),
                               static_cast<char>(colour)};
    EXPECT_NE(rows.find(pixel), std::string::npos);
  }
  EXPECT_FALSE(
      png_picture(Bars{.title = "Memory", .bars = {{"weights", {{"weights", "memory", 1.0, ""}}, "1 B"}}}, false)
          .empty());
}

}  // namespace
}  // namespace megalith::observe
