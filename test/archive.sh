#!/usr/bin/env bash
#
# archive.sh: real data that every Debian or Ubuntu machine can get, the index
# of its package archive: which file is in which packages, and the packages.
#
#	archive.sh fetch FOLDER		let apt fetch the index into FOLDER
#	archive.sh load FOLDER ROWS	SQL for psql that creates and fills the tables
#	archive.sh queries		lines of "title|query", each one answer row
#
# The fetch uses apt with lists of its own, so that no root is needed and the
# system's lists stay as they are.  `load` makes two tables, from the first
# ROWS lines of the index, or from all for 0:
#	archive_files (path, basename, package)	a file in several packages: several rows
#	archive_packages (package, version, section, architecture, installed_size in kB)

archive_is_there() { ls "$1"/lists/*Contents* "$1"/lists/*Packages* >/dev/null 2>&1; }

archive_fetch() {
	local folder target
	folder=$(realpath "$1") || return
	mkdir -p "$folder/state" "$folder/lists/partial" "$folder/cache/archives/partial"
	{
		cat <<-CONF
			Dir::State "$folder/state";
			Dir::State::Lists "$folder/lists";
			Dir::Cache "$folder/cache";
			Acquire::Languages "none";
		CONF
		# shellcheck disable=SC2016 # apt fills in what stands in $()
		# one index for each part of the archive, or, in older archives, one for all
		for target in 'Contents-deb "$(COMPONENT)/Contents-$(ARCHITECTURE)"' 'Contents-deb-legacy "Contents-$(ARCHITECTURE)"'; do
			cat <<-CONF
				Acquire::IndexTargets::deb::${target%% *} {
					MetaKey ${target#* };
					ShortDescription "Contents-\$(ARCHITECTURE)";
					Description "\$(RELEASE)/\$(COMPONENT) \$(ARCHITECTURE) Contents";
					KeepCompressed "true";
					PDiffs "false";
					Identifier "${target%% *}";
				};
			CONF
		done
		echo 'Acquire::IndexTargets::deb::Contents-deb-legacy::Fallback-Of "Contents-deb";'
	} >"$folder/apt.conf"
	APT_CONFIG=$folder/apt.conf LC_ALL=C apt-get update -q
	archive_is_there "$folder"
}

# For scripts that use lib.sh: sets GPUHASH_ARCHIVE to the folder with the data, and
# fetches it where it is not there yet; fails where apt is not there or fails.  It is
# kept in build/archive of the checkout, or, where the caller cannot write there, in
# the caller's cache.  To be called before gh_main.
archive_get() {
	local folder=${GPUHASH_ARCHIVE:-}
	if [ -z "$folder" ]; then
		folder=$GH_HOME/build/archive
		archive_is_there "$folder" || mkdir -p "$folder" 2>/dev/null || true
		if ! archive_is_there "$folder" && [ ! -w "$folder" ]; then
			folder=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/gpuhash/archive
			mkdir -p "$folder" || return
		fi
	fi
	export GPUHASH_ARCHIVE
	GPUHASH_ARCHIVE=$(realpath "$folder") || return
	if archive_is_there "$GPUHASH_ARCHIVE"; then
		return
	fi
	gh_have apt-get || return
	gh_say "  apt-get fetches the index of the package archive, about 90 MB, into $GPUHASH_ARCHIVE"
	mkdir -p "$GPUHASH_ARCHIVE" || return
	gh_trap_end
	gh_progress "$GPUHASH_ARCHIVE/fetch.log" archive_status archive_fetch "$GPUHASH_ARCHIVE" || return
	trap - EXIT INT TERM HUP
	gh_say "  fetched; it is kept there for the next time"
}

# How much there is, and the last line of the log.
archive_status() { printf '%s MB fetched; %s\n' "$(du -sm "${1%/*}/lists" 2>/dev/null | cut -f 1)" "$(tail -n 1 "$1")"; }

archive_cat() {
	local file
	for file in "$1"/lists/*"$2"*; do
		/usr/lib/apt/apt-helper cat-file "$file"
	done
}

archive_load() {
	local folder=$1 rows=$2
	cat <<-'SQL'
		BEGIN;
		CREATE TABLE archive_files (path text NOT NULL, basename text NOT NULL, package text NOT NULL);
		CREATE TABLE archive_packages (package text NOT NULL, version text NOT NULL, section text,
			architecture text NOT NULL, installed_size bigint);
		COPY archive_files FROM stdin;
	SQL
	# "path   section/package,section/package"; a path may hold spaces
	archive_cat "$folder" Contents | awk -v rows="$rows" '
		NF < 2 || (rows > 0 && n >= rows) { next }
		{
			place = $NF
			path = substr($0, 1, length($0) - length(place))
			sub(/[ \t]+$/, "", path)
			gsub(/\\/, "\\\\", path)
			gsub(/\t/, "\\t", path)
			base = path
			sub(/^.*\//, "", base)
			count = split(place, packages, ",")
			for (i = 1; i <= count; i++) {
				sub(/^.*\//, "", packages[i])
				print path "\t" base "\t" packages[i]
				n++
			}
		}' || return
	printf '%s\n' '\.' 'COPY archive_packages FROM stdin;'
	archive_cat "$folder" Packages | awk -v OFS='\t' '
		/^[A-Z][A-Za-z-]*: / { name = $1; value = $0; sub(/^[^ ]* /, "", value); gsub(/\\/, "\\\\", value); field[name] = value }
		/^$/ { put() }
		END { put() }
		function put() {
			if ("Package:" in field)
				print field["Package:"], field["Version:"], known("Section:"), field["Architecture:"], known("Installed-Size:")
			split("", field)
		}
		function known(name) { return name in field ? field[name] : "\\N" }'
	printf '%s\n' '\.' 'COMMIT;' 'VACUUM ANALYZE archive_files;' 'VACUUM ANALYZE archive_packages;'
}

archive_queries() {
	cat <<-'SQL'
		inner, sums by section|SELECT count(*), sum(hashtextextended(x::text, 0)) FROM (SELECT p.section, count(*), sum(p.installed_size) FROM archive_files f JOIN archive_packages p ON p.package = f.package GROUP BY p.section) x
		inner, every joined row|SELECT count(*), sum(hashtextextended(f.path || p.version, 0)) FROM archive_files f JOIN archive_packages p ON p.package = f.package
		left, packages without files as well|SELECT count(*), count(f.path), sum(hashtextextended(coalesce(f.path, p.version), 0)) FROM archive_packages p LEFT JOIN archive_files f ON f.package = p.package
		left, with a condition beside the key|SELECT count(*), count(p.package), sum(hashtextextended(f.path || coalesce(p.version, ''), 0)) FROM archive_files f LEFT JOIN archive_packages p ON p.package = f.package AND p.installed_size > length(f.path) * 100
		two keys, manual pages and their translations|SELECT count(*), sum(hashtextextended(a.path || b.path, 0)) FROM archive_files a JOIN archive_files b ON b.package = a.package AND b.basename = a.basename WHERE a.path LIKE 'usr/share/man/man%' AND b.path LIKE 'usr/share/man/%'
		names of commands among all names, skewed|SELECT count(*), sum(hashtextextended(a.path || b.path, 0)) FROM archive_files a JOIN archive_files b ON b.basename = a.basename WHERE b.path LIKE 'usr/bin/%'
		integers of different width|SELECT count(*), sum(hashtextextended(f.path, 0)) FROM archive_files f JOIN (SELECT installed_size, count(*) FROM archive_packages GROUP BY 1) s ON s.installed_size = length(f.path)
		three tables|SELECT count(*), sum(hashtextextended(f.path || p.version || q.version, 0)) FROM archive_files f JOIN archive_packages p ON p.package = f.package JOIN archive_packages q ON q.package = f.basename
	SQL
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	set -euo pipefail
	case ${1:-} in
		fetch) archive_fetch "$2" ;;
		load) archive_load "$2" "$3" ;;
		queries) archive_queries ;;
		*) sed -n '3,16s/^# \{0,1\}//p' "$0"; exit 2 ;;
	esac
fi
