#include "controller/store/sqlite.h"

#include <absl/strings/str_cat.h>
#include <sqlite3.h>

#include "common/status.h"

namespace muster::store {
namespace {

constexpr int kBusyTimeoutMs = 5000;

absl::Status ToStatus(sqlite3* db, int code) {
  const std::string message =
      absl::StrCat("SQLite: ", db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code));
  switch (code & 0xff) {
    case SQLITE_OK:
      return absl::OkStatus();
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(message);
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(message);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(message);
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return absl::PermissionDeniedError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Statement& Statement::Bind(int index, int64_t value) {
  sqlite3_bind_int64(statement_.get(), index, value);
  return *this;
}

Statement& Statement::Bind(int index, std::string_view text) {
  sqlite3_bind_text64(statement_.get(), index, text.data(), text.size(), SQLITE_TRANSIENT,
                      SQLITE_UTF8);
  return *this;
}

Statement& Statement::BindBlob(int index, std::string_view bytes) {
  // A null pointer would bind NULL.
  const char* const data = bytes.empty() ? "" : bytes.data();
  sqlite3_bind_blob64(statement_.get(), index, data, bytes.size(), SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::BindNull(int index) {
  sqlite3_bind_null(statement_.get(), index);
  return *this;
}

absl::StatusOr<bool> Statement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return ToStatus(sqlite3_db_handle(statement_.get()), code);
}

absl::Status Statement::Run() {
  const auto row = Step();
  Reset();
  return row.status();
}

void Statement::Reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

int64_t Statement::Int(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string Statement::Bytes(int column) const {
  const void* const data = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return data == nullptr ? ""
                         : std::string(static_cast<const char*>(data), static_cast<size_t>(size));
}

bool Statement::IsNull(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

void Database::Close::operator()(sqlite3* db) const {
  sqlite3_close_v2(db);
}

absl::StatusOr<Database> Database::Open(const std::string& path, Mode mode) {
  sqlite3* raw = nullptr;
  const int flags =
      mode == Mode::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database;
  database.db_.reset(raw);
  if (code != SQLITE_OK) return Annotate(ToStatus(raw, code), "open " + path);
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  MUSTER_RETURN_IF_ERROR(Annotate(database.Execute("PRAGMA foreign_keys=ON"), path));
  return database;
}

absl::StatusOr<Statement> Database::Prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int code =
      sqlite3_prepare_v2(db_.get(), sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  if (code != SQLITE_OK) return ToStatus(db_.get(), code);
  Statement statement;
  statement.statement_.reset(raw);
  return statement;
}

absl::Status Database::Execute(const std::string& sql) {
  const int code = sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : ToStatus(db_.get(), code);
}

absl::StatusOr<int64_t> Database::QueryInt(std::string_view sql) {
  MUSTER_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  MUSTER_ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return absl::NotFoundError(absl::StrCat("no row: ", std::string(sql)));
  return statement.Int(0);
}

}  // namespace muster::store
