#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::checkpoint {

// CRC-32C (Castagnoli), the checksum of checkpoint shards: finds a flipped bit, and one instruction
// computes eight bytes where the processor has SSE 4.2. `crc` is the value for the bytes before, 0
// at the start. Any thread.
uint32_t Crc32c(uint32_t crc, const void* data, size_t size);

namespace internal {
// The same without special instructions.
uint32_t Crc32cPortable(uint32_t crc, const void* data, size_t size);
}  // namespace internal

}  // namespace muster::checkpoint
