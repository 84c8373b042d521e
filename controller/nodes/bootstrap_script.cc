#include "controller/nodes/bootstrap_script.h"

#include <absl/strings/str_cat.h>

#include <string_view>

namespace muster::nodes {
namespace {

// After the lines that set name, path, and by architecture sum, bytes and need (KiB).
constexpr char kScript[] = R"sh(
uid=$(id -u) mask=$(umask)
umask 077

use() {
  umask "$mask"
  exec "$1" bridge --name "$name"
}

fail() {
  echo "muster: $*" >&2
  exit 3
}

# How many of the given are real folders and files of ours that nobody else can write to, and the bytes of the files.
count() {
  ls -ldn "$@" 2>/dev/null | (
    n=0 b=0
    while read -r mode x owner x size x; do
      case $mode:$owner in
      d????-??-*:$uid) n=$((n + 1)) ;;
      -????-??-*:$uid) n=$((n + 1)) b=$((b + size)) ;;
      esac
    done
    echo "$n $b"
  )
}

# Whether the worker lies in $d, whole.
have() {
  v=$d/bin/$sum
  [ -x "$v/musterd" ] && [ -x "$v/muster-shim" ] &&
    [ "$(count "$d" "$d/bin" "$v" "$v/musterd" "$v/muster-shim")" = "5 $bytes" ]
}

# Whether $d can take the worker; $t is then a new folder in it. Else why not is added to $why.
pick() {
  no=
  [ -d "$d" ] || e=$(mkdir -p "$d" 2>&1) || no=$e
  [ "$no" ] || [ "$(count "$d")" = "1 0" ] ||
    no="not a folder of yours alone (it is a link, belongs to another user, or others can write to it)"
  [ "$no" ] || [ -d "$d/bin" ] || e=$(mkdir -p "$d/bin" 2>&1) || no=$e
  [ "$no" ] || [ "$(count "$d/bin")" = "1 0" ] || no="its bin is not a folder of yours alone"
  if [ ! "$no" ]; then
    free=$(LC_ALL=C df -Pk "$d/bin" 2>/dev/null | { read -r x; read -r x x x free x; echo "$free"; })
    case $free in
    '' | *[!0-9]*) ;;
    *) [ "$free" -ge "$need" ] || no="no space ($need KiB needed, $free KiB free)" ;;
    esac
  fi
  if [ ! "$no" ]; then
    if t=$(mktemp -d "$d/bin/.push-XXXXXX" 2>&1); then
      trap 'rm -rf "$t"' EXIT
      { echo "#!/bin/sh" >"$t/try" && chmod 700 "$t/try"; } 2>/dev/null || no="no space"
      [ "$no" ] || "$t/try" 2>/dev/null || no="programs may not run there (noexec)"
      [ ! "$no" ] || rm -rf "$t"
    else
      no=$t
    fi
  fi
  [ "$no" ] || return 0
  why="$why; $d: $no"
  return 1
}

# Gets $1 of the programs into $t.
receive() {
  printf '\nMUSTER-SEND file=%s arch=%s gzip=%s to=%s\n' "$1" "$arch" "$zip" "$d/bin"
  read -r n || exit 3
  head -c "$n" | ($unzip >"$t/$1" || { cat >/dev/null; exit 1; }) || fail "could not write $t/$1 ($need KiB needed)"
}

set -- "$MUSTER_STATE" "/var/tmp/muster-$uid" "/tmp/muster-$uid" "${HOME:+$HOME/.cache/muster}" "/dev/shm/muster-$uid"
if [ "$sum" ]; then
  for d; do
    have && use "$v/musterd"
  done
  for p in "$path" musterd; do
    p=$(command -v "$p") && [ "$("$p" --checksum 2>/dev/null </dev/null)" = "$sum" ] && use "$p"
  done
else
  d= zip=0
  printf '\nMUSTER-SEND file=musterd arch=%s gzip=0 to=\n' "$arch"
  read -r n
  exit 3
fi

trap 'exit 3' HUP INT TERM PIPE
why= picked=
for d; do
  case $d in
  /*) pick && picked=1 && break ;;
  esac
done
[ "$picked" ] || fail "no folder on this host can take the worker${why}; make room in one of them, or let MUSTER_STATE of this account name another"
if command -v gzip >/dev/null; then zip=1 unzip="gzip -dc"; else zip=0 unzip=cat; fi
receive muster-shim
receive musterd
chmod 700 "$t/muster-shim" "$t/musterd"
if command -v sha256sum >/dev/null; then
  got=$(cat "$t/muster-shim" "$t/musterd" | sha256sum)
else
  got=$("$t/musterd" --checksum </dev/null)
fi
[ "${got%% *}" = "$sum" ] || fail "what arrived in $t is not what was sent"
v=$d/bin/$sum
mkdir -p "$v" && mv -f "$t/muster-shim" "$v/" && mv -f "$t/musterd" "$v/" || fail "could not put the worker into $v"
rm -rf "$t"
have || fail "$v is not what was put there"
use "$v/musterd"
)sh";

std::string Quote(std::string_view word) {
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

}  // namespace

std::string BootstrapScript(const Bootstrap& bootstrap) {
  std::string script =
      absl::StrCat("name=", Quote(bootstrap.name), "\npath=", Quote(bootstrap.musterd),
                   "\narch=$(uname -m)\ncase $arch in\n");
  for (const WorkerBuild& build : bootstrap.builds) {
    constexpr uint64_t kFileSystemsOwn = 256;  // KiB
    const uint64_t need = build.bytes / 1024 + kFileSystemsOwn;
    absl::StrAppend(&script, Quote(build.arch), ") sum=", build.checksum, " bytes=", build.bytes,
                    " need=", need, " ;;\n");
  }
  absl::StrAppend(&script, "*) sum= ;;\nesac", kScript);
  return script;
}

}  // namespace muster::nodes
