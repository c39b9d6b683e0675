#!/bin/bash
# index_core.sh: PostgreSQL's own regression files of indexes with the access method gpuhash in the place of btree.
#
#	PGHOST=... PGPORT=... PGUSER=... PG_CONFIG=... test/index_core.sh [FOLDER]
#
# Against a server that is up, of an installation that has PostgreSQL's regression files (as make check-core), as a superuser,
# with gpuhash installed.  Each file is run twice, in databases of its own (index_core_btree, index_core_gpuhash): as it is, and
# with CREATE INDEX without an access method, or with btree, made USING gpuhash (UNIQUE ones from 18 on).  It prints how many lines
# of the output differ, but for the name, to be looked at: an operator class of an extension has a schema in messages, and is a
# dependency.  FOLDER keeps all outputs.  Ten seconds; no part of make check, as there is no list of what may differ.
set -euo pipefail

FILES=${FILES:-create_index btree_index index_including indexing}
out=${1:-$(mktemp -d)}
inputs=$(cd "$(dirname "$("${PG_CONFIG:-pg_config}" --pgxs)")/../test/regress" && pwd -P)
libdir=$("${PG_CONFIG:-pg_config}" --pkglibdir)
psql=$("${PG_CONFIG:-pg_config}" --bindir)/psql
[ -f "$inputs/sql/create_index.sql" ] || { echo "index_core.sh: $inputs has no regression files" >&2; exit 2; }
version=$("$psql" -XAtd postgres -c 'SHOW server_version_num')
unique=no
[ "$version" -lt 180000 ] || unique=yes

# The file on standard input, for one of the two.
for_gpuhash() {
	UNIQUE=$unique perl -0777 -pe '
		my $unique = $ENV{UNIQUE} eq "yes" ? qr/(?:UNIQUE\s+)?/i : qr//;
		s/(\bCREATE\s+${unique}INDEX\s+(?:CONCURRENTLY\s+)?(?:IF\s+NOT\s+EXISTS\s+)?(?:(?!ON\s)[\w."]+\s+)?ON\s+(?:ONLY\s+)?[\w."]+)\s*\(/$1 USING gpuhash (/gi;
		s/(\bCREATE\s+${unique}INDEX\b[^;]*?\bUSING\s+)btree\b/$1gpuhash/gi'
}

# Statements and results of a file, in the database of its access method.
run_file() {
	local way=$1 file=$2
	"$psql" -X -a -q -d "index_core_$way" -v HIDE_TABLEAM=on -v HIDE_TOAST_COMPRESSION=on <"$out/$way/$file.sql" >"$out/$way/$file.out" 2>&1 || true
}

export PG_ABS_SRCDIR=$inputs PG_LIBDIR=$libdir PG_DLSUFFIX=.so PGTZ=America/Los_Angeles PGDATESTYLE='Postgres, MDY'
for way in btree gpuhash; do
	mkdir -p "$out/$way"
	"$psql" -Xqd postgres -c "DROP DATABASE IF EXISTS index_core_$way" -c "CREATE DATABASE index_core_$way TEMPLATE template0 LOCALE 'C'" 2>/dev/null
	"$psql" -Xqd "index_core_$way" -c 'SET client_min_messages = warning; CREATE EXTENSION gpuhash' -c "ALTER DATABASE index_core_$way SET gpuhash.enabled = off"
	for file in test_setup $FILES; do
		if [ $way = btree ]; then cat "$inputs/sql/$file.sql"; else for_gpuhash <"$inputs/sql/$file.sql"; fi >"$out/$way/$file.sql"
		run_file $way "$file"
	done
done
# What is the same but for the name, and for widths that follow from it.
plain() {
	sed -E 's/( USING (btree|gpuhash))? *\(/(/gI; s/gpuhash/btree/g; s/ +/ /g; s/ $//; s/^-[-+]+$/-/' "$1"
}

for file in $FILES; do
	diff -u <(plain "$out/btree/$file.out") <(plain "$out/gpuhash/$file.out") >"$out/$file.diff" || true
	printf '%-16s %s statements with gpuhash, %s lines differ\n' "$file" "$(grep -c 'USING gpuhash' "$out/gpuhash/$file.sql")" \
		"$(grep -cE '^[-+]([^-+]|$)' "$out/$file.diff" || true)"
done
echo "outputs and differences: $out"
