#!/usr/bin/env bash
# The box's side runs between clone and exec, where no lock of the C library may be taken: its library
# may call only what is listed in box_symbols. So it has no malloc, no stdio, no locale, no lookups.
#
#	nm_check.sh BUILDDIR
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
library=$1/src/box/libbox.a

[ -e "$library" ] || { echo "there is no $library"; exit 1; }
LC_ALL=C sort -c "$here/box_symbols"
defined=$(nm --defined-only "$library" 2>/dev/null | awk 'NF == 3 {print $3}' | LC_ALL=C sort -u)
wanted=$(nm -u "$library" 2>/dev/null | awk '$1 == "U" {print $2}' | LC_ALL=C sort -u)
# The sanitizers' own calls are in every file of such a build.
extra=$(comm -23 <(comm -23 <(echo "$wanted") <(echo "$defined")) "$here/box_symbols" | grep -vE '^__(asan|ubsan|sanitizer)_' || true)
if [ -n "$extra" ]; then
	printf 'src/box may not call:\n%s\n' "$extra"
	exit 1
fi
