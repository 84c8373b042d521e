#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

// A thin owner of SQLite's handles: Status instead of codes, nothing more. One thread at a time.

namespace muster::store {

// A prepared statement. Bind from 1, Step until false, read columns from 0, Reset to use it again.
class Statement {
 public:
  Statement() = default;
  Statement& Bind(int index, int64_t value);
  Statement& Bind(int index, std::string_view text);
  Statement& BindBlob(int index, std::string_view bytes);
  Statement& BindNull(int index);

  // True: a row is there. False: done.
  absl::StatusOr<bool> Step();
  // Runs a statement that gives no rows, and resets it.
  absl::Status Run();
  void Reset();

  int64_t Int(int column) const;
  // Text or blob; empty for NULL.
  std::string Bytes(int column) const;
  bool IsNull(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  enum class Mode { kReadWrite, kReadOnly };
  // Opens (ReadWrite: makes) the file; foreign keys on, and a busy time-out of five seconds.
  static absl::StatusOr<Database> Open(const std::string& path, Mode mode);

  absl::StatusOr<Statement> Prepare(std::string_view sql);
  // Several statements without parameters or rows.
  absl::Status Execute(const std::string& sql);
  // The single number that `sql` gives.
  absl::StatusOr<int64_t> QueryInt(std::string_view sql);

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  std::unique_ptr<sqlite3, Close> db_;
};

}  // namespace muster::store
