#pragma once

#include <string>
#include <string_view>
#include <vector>

// Colours and tables for the terminal. Pure, but for Style::For.

namespace muster::cli {

// Colours, or none. A value.
class Style {
 public:
  Style() = default;  // plain
  explicit Style(bool colour) : colour_(colour) {}

  // Coloured when `fd` is a terminal that can, and NO_COLOR is not set (no-color.org).
  static Style For(int fd);

  bool colour() const { return colour_; }
  std::string Bold(std::string_view text) const { return Wrap("1", text); }
  std::string Dim(std::string_view text) const { return Wrap("2", text); }
  std::string Red(std::string_view text) const { return Wrap("31", text); }
  std::string Green(std::string_view text) const { return Wrap("32", text); }
  std::string Yellow(std::string_view text) const { return Wrap("33", text); }
  std::string Cyan(std::string_view text) const { return Wrap("36", text); }
  // One of six steady colours, so that neighbouring ranks look different.
  std::string Rank(unsigned rank, std::string_view text) const;

 private:
  std::string Wrap(const char* sgr, std::string_view text) const;

  bool colour_ = false;
};

// Columns two blanks apart, as wide as their widest cell; the last column is not padded. Cells may
// hold colours.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}

  // Columns that are flushed right, from 0.
  void AlignRight(std::vector<size_t> columns) { right_ = std::move(columns); }
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }

  std::string Render(const Style& style) const;

 private:
  std::vector<std::string> header_;
  std::vector<size_t> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace muster::cli
