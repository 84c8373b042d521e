#include "worker/shim/frame.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "common/unique_fd.h"

namespace muster::shim {
namespace {

std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? (c >> 1) ^ 0xedb88320u : c >> 1;
    table[i] = c;
  }
  return table;
}

std::string Failure(const char* what, const std::string& path) {
  return std::string(what) + " " + path + ": " + std::strerror(errno);
}

bool WriteAll(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    content.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

uint32_t Crc32(std::string_view data) {
  static const std::array<uint32_t, 256> table = MakeCrcTable();
  uint32_t crc = 0xffffffffu;
  for (const char c : data) crc = table[(crc ^ static_cast<uint8_t>(c)) & 0xff] ^ (crc >> 8);
  return crc ^ 0xffffffffu;
}

void FieldWriter::Bytes(std::string_view v) {
  U32(static_cast<uint32_t>(v.size()));
  out_.append(v);
}

std::string FieldReader::Bytes() {
  const uint32_t size = U32();
  if (!ok_ || size > data_.size()) {
    ok_ = false;
    return "";
  }
  std::string out(data_.substr(0, size));
  data_.remove_prefix(size);
  return out;
}

void FieldReader::Raw(void* out, size_t size) {
  if (!ok_ || size > data_.size()) {
    ok_ = false;
    return;
  }
  std::memcpy(out, data_.data(), size);
  data_.remove_prefix(size);
}

std::string EncodeFrame(std::string_view magic, uint32_t version, std::string_view payload) {
  FieldWriter header;
  header.U32(version);
  header.U32(Crc32(payload));
  header.U64(payload.size());
  std::string frame(magic);
  frame += header.Take();
  frame += payload;
  return frame;
}

std::optional<std::string_view> DecodeFrame(std::string_view magic, uint32_t version,
                                            std::string_view frame, std::string& error) {
  if (frame.size() < kFrameHeaderSize) {
    error = "shorter than its header";
    return std::nullopt;
  }
  if (frame.substr(0, magic.size()) != magic) {
    error = "not a " + std::string(magic) + " file";
    return std::nullopt;
  }
  FieldReader header(frame.substr(magic.size(), kFrameHeaderSize - magic.size()));
  const uint32_t found_version = header.U32();
  const uint32_t crc = header.U32();
  const uint64_t size = header.U64();
  const std::string_view payload = frame.substr(kFrameHeaderSize);
  if (found_version != version) {
    error = "version " + std::to_string(found_version) + ", expected " + std::to_string(version);
  } else if (size != payload.size() || size > kMaxPayload) {
    error = "length does not match";
  } else if (Crc32(payload) != crc) {
    error = "bad checksum";
  } else {
    return payload;
  }
  return std::nullopt;
}

bool WriteFileAtomic(const std::string& path, std::string_view content, std::string& error) {
  const std::string temporary = path + ".tmp";
  UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) {
    error = Failure("create", temporary);
    return false;
  }
  if (!WriteAll(fd.get(), content) || fsync(fd.get()) != 0) {
    error = Failure("write", temporary);
    unlink(temporary.c_str());
    return false;
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    error = Failure("rename", temporary);
    unlink(temporary.c_str());
    return false;
  }
  return true;
}

std::optional<std::string> ReadWholeFile(const std::string& path, uint64_t limit,
                                         std::string& error) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    error = Failure("open", path);
    return std::nullopt;
  }
  std::string content;
  char buffer[65536];
  while (true) {
    const ssize_t n = read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      error = Failure("read", path);
      return std::nullopt;
    }
    if (n == 0) return content;
    content.append(buffer, static_cast<size_t>(n));
    if (content.size() > limit) {
      error = path + ": larger than " + std::to_string(limit) + " bytes";
      return std::nullopt;
    }
  }
}

}  // namespace muster::shim
