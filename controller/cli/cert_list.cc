#include "controller/cli/cert_list.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/status.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kDay = 86400;

struct Row {
  std::string whose;
  tls::CertificateInfo info;
  bool of_previous = false;  // signed by the authority that goes
};

absl::StatusOr<std::vector<Row>> Rows(const certs::Authority& authority) {
  std::vector<Row> rows;
  rows.push_back({"authority " + authority.ca(), authority.info()});
  MUSTER_ASSIGN_OR_RETURN(const tls::CertificateInfo controller, authority.Controller());
  rows.push_back({"controller", controller, controller.issuer_key != authority.info().own_key});
  MUSTER_ASSIGN_OR_RETURN(const auto issued, authority.Issued());
  for (const auto& [host, info] : issued) {
    rows.push_back({"host " + host, info, info.issuer_key != authority.info().own_key});
  }
  return rows;
}

bool NeedsCare(const tls::CertificateInfo& info, int64_t now_s) {
  return !CertificateWarning("", info.not_after_s, now_s).empty();
}

}  // namespace

std::string CertificateWarning(const std::string& whose, int64_t ends_s, int64_t now_s) {
  const int64_t left = ends_s - now_s;
  if (ends_s == 0 || left >= kCertificateWarningDays * kDay) return "";
  if (left < 0) return whose + ": its certificate expired " + tls::FormatSpan(-left) + " ago";
  return whose + ": its certificate ends in " + tls::FormatSpan(left);
}

std::string DescribeValidity(const tls::CertificateInfo& info, int64_t now_s) {
  if (now_s < info.not_before_s) return "not before " + tls::FormatTime(info.not_before_s);
  const int64_t left = info.not_after_s - now_s;
  if (left < 0) return "EXPIRED " + tls::FormatSpan(-left) + " ago";
  return "in " + tls::FormatSpan(left) + (NeedsCare(info, now_s) ? ": renew it" : "");
}

absl::StatusOr<std::string> CertTable(const certs::Authority& authority, int64_t now_s,
                                      const Style& style) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Row> rows, Rows(authority));
  Table table({"CERTIFICATE", "ENDS", "", "SHA-256"});
  for (const Row& row : rows) {
    const std::string validity = DescribeValidity(row.info, now_s);
    table.Add({row.whose, tls::FormatTime(row.info.not_after_s),
               NeedsCare(row.info, now_s) ? style.Yellow(validity) : validity,
               row.info.fingerprint.substr(0, 23) +
                   (row.of_previous ? "  of the previous authority" : "")});
  }
  return table.Render(style);
}

absl::StatusOr<std::string> CertJson(const certs::Authority& authority, int64_t now_s) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Row> rows, Rows(authority));
  Json certificates = Json::array();
  for (const Row& row : rows) {
    certificates.push_back({{"of", row.whose},
                            {"not_before", row.info.not_before_s},
                            {"not_after", row.info.not_after_s},
                            {"needs_care", NeedsCare(row.info, now_s)},
                            {"previous_authority", row.of_previous},
                            {"serial", row.info.serial},
                            {"sha256", row.info.fingerprint}});
  }
  return Json{
      {"ca", authority.ca()}, {"rotating", authority.rotating()}, {"certificates", certificates}}
      .dump();
}

}  // namespace muster::cli
