#pragma once

#include <cstdint>
#include <string>

namespace muster::facts {

// SHA-256 in hex of an open plain file of `size` bytes: of all of it up to `whole_limit` bytes, of
// 64 blocks of 64 KiB spread evenly over a larger one, its first and last bytes included. "" when
// it can't be read: errno says why, 0 that it ends before its size. Blocks as long as the file
// system does.
std::string FileSum(int fd, uint64_t size, uint64_t whole_limit);

}  // namespace muster::facts
