// The wire format of muster.v1 as a committed text: a change of any field number, type, label or
// name of a message, enum or method shows here. Additions are fine: refresh the file with
// MUSTER_UPDATE_GOLDEN=1. Anything else breaks running workers, which are of another version during
// an upgrade.
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "muster/v1/control.pb.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/worker.pb.h"

namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

std::string TypeName(const FieldDescriptor& field) {
  if (field.message_type() != nullptr) return field.message_type()->full_name();
  if (field.enum_type() != nullptr) return field.enum_type()->full_name();
  return field.type_name();
}

std::string Label(const FieldDescriptor& field) {
  if (field.is_repeated()) return "repeated ";
  if (field.real_containing_oneof() != nullptr) return "oneof ";
  return field.has_presence() && field.message_type() == nullptr ? "optional " : "";
}

// One line for each thing that the wire depends on.
void Describe(const Descriptor& message, std::set<std::string>& lines) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    lines.insert(message.full_name() + " " + std::to_string(field.number()) + " " + Label(field) +
                 TypeName(field) + " " + field.name());
  }
}

void Describe(const EnumDescriptor& e, std::set<std::string>& lines) {
  for (int i = 0; i < e.value_count(); ++i) {
    lines.insert(e.full_name() + " " + std::to_string(e.value(i)->number()) + " " +
                 e.value(i)->name());
  }
}

void Describe(const FileDescriptor& file, std::set<std::string>& lines) {
  for (int i = 0; i < file.message_type_count(); ++i) Describe(*file.message_type(i), lines);
  for (int i = 0; i < file.enum_type_count(); ++i) Describe(*file.enum_type(i), lines);
  for (int i = 0; i < file.service_count(); ++i) {
    for (int j = 0; j < file.service(i)->method_count(); ++j) {
      const auto& method = *file.service(i)->method(j);
      lines.insert(method.full_name() + " (" + (method.client_streaming() ? "stream " : "") +
                   method.input_type()->full_name() + ") -> (" +
                   (method.server_streaming() ? "stream " : "") +
                   method.output_type()->full_name() + ")");
    }
  }
}

TEST(Descriptor, WireFormatIsTheCommittedOne) {
  std::set<std::string> lines;
  Describe(*muster::v1::JobSpec::descriptor()->file(), lines);
  Describe(*muster::v1::Desired::descriptor()->file(), lines);
  Describe(*muster::v1::Job::descriptor()->file(), lines);

  const std::string path = std::string(std::getenv("MUSTER_GOLDEN")) + "/muster_v1.desc.txt";
  if (std::getenv("MUSTER_UPDATE_GOLDEN") != nullptr) {
    std::ofstream out(path);
    for (const std::string& line : lines) out << line << "\n";
  }
  std::set<std::string> committed;
  std::ifstream in(path);
  ASSERT_TRUE(in) << path;
  for (std::string line; std::getline(in, line);) committed.insert(line);

  for (const std::string& line : committed) {
    EXPECT_TRUE(lines.count(line)) << "removed or changed, breaks the wire: " << line;
  }
  for (const std::string& line : lines) {
    EXPECT_TRUE(committed.count(line))
        << "new: refresh " << path << " (MUSTER_UPDATE_GOLDEN=1): " << line;
  }
}

}  // namespace
