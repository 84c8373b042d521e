#include "trainer/checkpoint/safetensors_writer.h"

#include <nlohmann/json.hpp>

#include "trainer/checkpoint/durable_file.h"
#include "trainer/checkpoint/safetensors.h"

namespace muster::checkpoint {
namespace {

// The format wants the tensors' bytes to start at a multiple of 8: the header is padded with
// blanks.
constexpr size_t kHeaderAlignment = 8;

std::string MakeHeader(const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const uint64_t end = offset + tensor.nbytes();
    header[name] = {{"dtype", DTypeName(tensor.scalar_type())},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = tensors.empty() && metadata.empty() ? "{}" : header.dump();
  text.append((kHeaderAlignment - text.size() % kHeaderAlignment) % kHeaderAlignment, ' ');
  return text;
}

}  // namespace

FileSummary WriteSafetensors(const std::filesystem::path& path,
                             const std::vector<NamedTensor>& tensors,
                             const std::map<std::string, std::string>& metadata) {
  const std::string header = MakeHeader(tensors, metadata);
  const uint64_t length = header.size();
  DurableFile file(path);
  file.Write(&length, sizeof length);
  file.Write(header.data(), header.size());
  for (const NamedTensor& named : tensors) {
    const at::Tensor tensor = named.tensor.detach().cpu().contiguous();
    file.Write(tensor.const_data_ptr(), tensor.nbytes());
  }
  file.Finish();
  return {file.bytes(), file.crc32c()};
}

}  // namespace muster::checkpoint
