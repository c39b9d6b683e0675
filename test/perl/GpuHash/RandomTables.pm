# GpuHash::RandomTables: random tables of all types, for random queries.
#
# Everything follows from Perl's random numbers: srand() first.
#
#	GpuHash::RandomTables::schema()		SQL that makes the tables
#	GpuHash::RandomTables::own($job)	and w0, w1, ..., facts that only one session writes to
#	GpuHash::RandomTables::change()		SQL that changes some of them, as another session may
#	GpuHash::RandomTables::settings()	SQL that sets what is drawn of %SETTINGS
#
# Facts have all of @COLUMN, an id of their own, and late and later, which were added to tables with rows:
# @FACTS, @CHANGING (those that change), "parted" and its parts, the views "barrier" and "both_tables".
# Dimensions d0 to d3 have few columns of other names.
package GpuHash::RandomTables;

use strict;
use warnings;
use Exporter 'import';
use GpuHash::RandomExpression 'one_of';

our @EXPORT_OK = qw(@COLUMN @FACTS @CHANGING $ALL);

# What is drawn for each query.
our %SETTINGS = (
	'gpuhash.batch_rows' => [256, 1000, 16384],
	'gpuhash.enable_scan' => [qw(on on on off)],
	'gpuhash.enable_join' => [qw(on on on off)],
	enable_partitionwise_aggregate => [qw(on off)],
	enable_partitionwise_join => [qw(on off)],
	enable_hashagg => [qw(on on off)],
	enable_nestloop => [qw(on on off)],
	enable_material => [qw(on on off)],
	join_collapse_limit => [8, 8, 8, 1],
	timezone => [map { "'$_'" } qw(UTC UTC Europe/Berlin America/New_York Australia/Lord_Howe Asia/Kolkata)],
	plan_cache_mode => [qw(auto force_generic_plan)]);

# ------------------------------------------------------------------- tables

# Columns: name, type as GpuHash::RandomExpression calls it or '' for one that it does not
# know, SQL type, what it is made of k (small, NULL for some) and i.
our @COLUMN = (
	[yes => 'bool', 'bool', 'k % 3 = 0'],
	[may => 'bool', 'bool', 'CASE WHEN i % 3 > 0 THEN k % 2 = 0 END'],
	[i2 => 'i2', 'int2', 'CASE k % 17 WHEN 0 THEN -32768 WHEN 1 THEN 32767 ELSE k % 300 - 100 END'],
	[i4 => 'i4', 'int4', 'CASE k % 19 WHEN 0 THEN -2147483648 WHEN 1 THEN 2147483647 ELSE i * 7919 % 2000 - 1000 END'],
	[i8 => 'i8', 'int8', "CASE k % 23 WHEN 0 THEN '-9223372036854775808'::int8 WHEN 1 THEN 9223372036854775807 ELSE i * i * 1000003 * (i % 3 - 1) END"],
	[whole => 'i4', 'whole', 'i % 100'],
	[f4 => 'f4', 'float4', "(CASE k % 29 WHEN 1 THEN 'NaN' WHEN 2 THEN 'inf' WHEN 3 THEN '-inf' WHEN 4 THEN '-0' WHEN 5 THEN '1e30' WHEN 6 THEN '1e-40' ELSE (i / 7.0)::text END)::float4"],
	[f8 => 'f8', 'float8', "(CASE k % 31 WHEN 1 THEN 'NaN' WHEN 2 THEN '-inf' WHEN 3 THEN '0' WHEN 4 THEN '-0' WHEN 5 THEN '1e150' WHEN 6 THEN '5e-324' ELSE ((i - 1000) / 3.0)::text END)::float8"],
	[n2 => 'numeric', 'numeric(12, 2)', 'k / 100.0 - 7'],
	[n5 => 'numeric', 'numeric(25, 5)', "CASE k % 37 WHEN 0 THEN 'NaN' WHEN 1 THEN 99999999999999999999.99999 WHEN 2 THEN -0.00001 ELSE i * 1.001 - 900 END"],
	[n0 => 'numeric', 'numeric(38, 0)', 'CASE k % 11 WHEN 0 THEN 99999999999999999999999999999999999999 WHEN 1 THEN -99999999999999999999999999999999999998 ELSE i * 12345678901234567::numeric END'],
	[wide => 'numeric', 'numeric(70, 10)', 'CASE k % 13 WHEN 0 THEN 1e55 WHEN 1 THEN -1e55 WHEN 2 THEN 0 ELSE k * 1.0000000001 END'],
	# equal ones show equal digits, and few show more than most
	[open_n => 'numeric', 'numeric', "CASE WHEN i % 997 = 0 THEN trim_scale(round(i / 7.0, 12)) WHEN i % 499 = 0 THEN 'NaN' WHEN i % 701 = 0 THEN 1e55 ELSE trim_scale(round(i / 7.0 - k, (k % 6)::int)) END"],
	[x => 'text', 'text', "CASE WHEN i % 41 = 0 THEN repeat('long ' || k, 900) ELSE repeat('t', (k % 4)::int) || k % 50 END"],
	[v => 'text', 'varchar(30)', "CASE k % 43 WHEN 0 THEN '' WHEN 1 THEN 't ' ELSE 't' || k % 40 END"],
	[c => 'char', 'char(6)', "'t' || k % 30"],
	[d => 'date', 'date', "CASE k % 47 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' ELSE (date '2000-01-01' + (k % 4000 - 2000)::int)::text END::date"],
	[ts => 'timestamp', 'timestamp', "CASE k % 53 WHEN 0 THEN 'infinity' ELSE (timestamp '1999-01-01' + k * interval '7 hours')::text END::timestamp"],
	[tz => 'timestamptz', 'timestamptz', "CASE WHEN i % 61 = 0 THEN 'infinity' ELSE timestamptz '1999-01-01 UTC' + k * interval '7 hours' END"],
	[tm => 'time', 'time', "time '00:00' + k % 1440 * interval '1 minute'"],
	[o => 'oid', 'oid', '(4294967295 - k % 20)'],
	# bytes
	[u => 'uuid', 'uuid', "CASE WHEN k % 9 > 0 THEN md5((k % 300)::text)::uuid ELSE '00000000-0000-0000-0000-0000000000ff' END"],
	[nm => 'name', 'name', "CASE k % 71 WHEN 0 THEN '' WHEN 1 THEN repeat('long', 16) WHEN 2 THEN 'é' ELSE 'name ' || k % 70 END"],
	[b => 'bytea', 'bytea', "CASE WHEN i % 43 = 0 THEN decode(repeat(md5(k::text), 90), 'hex') WHEN k % 9 > 0 THEN decode(md5((k % 300)::text), 'hex') ELSE '' END"],
	[mac => 'mac', 'macaddr', "CASE WHEN k % 8 > 0 THEN '08:00:2b:01:02:ff'::macaddr WHEN k % 16 > 0 THEN 'ff:00:2b:01:02:03'::macaddr ELSE trunc('12:34:56:00:00:07'::macaddr) END"],
	# numbers that do not come near any limit; sums of tame4, of joins too, have no rounding (up to two million rows), which depends on the order
	[g => 'i4', 'int4', 'k % 6'],
	[tame4 => 'f4', 'float4', '(k % 16) / 8.0'],
	[tame8 => 'f8', 'float8', '(i % 8000) / 8.0'],
	# what the engines do not know
	[any_n => '', 'numeric', "CASE k % 7 WHEN 0 THEN 'inf' WHEN 1 THEN 1.0 WHEN 2 THEN 1.00 ELSE i END::numeric"],
	[iv => '', 'interval', "k * interval '15 days'"],
	[e => '', 'label', "('e' || k % 5)::label"],
	[ch => '', '"char"', 'chr(97 + (k % 20)::int)'],
	[j => '', 'jsonb', "CASE WHEN i % 8 > 0 THEN jsonb_build_object('k', k, 'list', jsonb_build_array(i % 5, NULL, 'x')) END"],
	[ar => '', 'int4[]', 'CASE WHEN i % 6 > 0 THEN ARRAY[k::int4, NULL, i::int4] END'],
	[cp => '', 'pair', "ROW(k, repeat('p', (i % 5)::int))"],
	[rg => '', 'int4range', 'int4range((k % 9)::int, (k % 9 + i % 4)::int)'],
	[bt => '', 'varbit(20)', '(k % 1000)::int::bit(10)'],
	[ip => '', 'inet', "inet '10.0.0.0/8' + k % 300"],
	# what lies in another table
	[big => 'text', 'text', "CASE i % 97 WHEN 0 THEN (SELECT string_agg(md5((i + n)::text), '') FROM generate_series(1, 150) n) WHEN 1 THEN repeat('b', (i % 3000)::int) ELSE 'b' || k END"],
	# join keys
	[k4 => 'i4', 'int4', 'k'],
	[k8 => 'i8', 'int8', 'k % 50']);
our $ALL = join ', ', 'id', 'late', 'later', map { $_->[0] } @COLUMN;

our @FACTS = map { "f$_" } 0 .. 5;
our @CHANGING = qw(h0 h1);

sub rows_sql
{
	my ($rows, $first) = @_;
	my $distinct = one_of(1, 5, 60, 400, 3000);
	my $null = one_of(3, 11, 1000000);
	my $key = one_of("i % $distinct", "i * 7919 % $distinct", "i * i % $distinct");
	my $from = $first // 1;
	return 'SELECT i::int AS id, ' . join(', ', map { "($_->[3])::$_->[2]" } @COLUMN) .
		" FROM (SELECT i, CASE WHEN i % $null = 1 THEN NULL ELSE $key END AS k FROM generate_series($from\::int8, $from + $rows - 1) i) s";
}

# An empty table; its columns in any order, and some that were dropped.
sub table_sql
{
	my ($name, $options) = @_;
	my @columns = ('id int NOT NULL', map { "$_->[0] $_->[2]" } @COLUMN);
	my @place = map { rand } @columns;
	@columns = @columns[sort { $place[$a] <=> $place[$b] } 0 .. $#columns];
	my @gone = rand() < 0.4 ? ("gone1 " . one_of(qw(text int8 bool)), 'gone2 int') : ();
	splice @columns, int(rand(@columns)), 0, $_ for @gone;
	return "CREATE TABLE $name (" . join(', ', @columns) . ") $options;\n" .
		join('', map { "ALTER TABLE $name DROP COLUMN " . (split)[0] . ";\n" } @gone);
}

sub insert_sql
{
	my ($name, $rows, $first) = @_;
	return "INSERT INTO $name (id, " . join(', ', map { $_->[0] } @COLUMN) . ') ' . rows_sql($rows, $first) . ";\n";
}

# A partitioned table.  Tuples of some partitions lack columns, and those of the first one that is read may have them all.
sub partitioned_sql
{
	my $later = "ALTER TABLE parted ADD COLUMN late int4, ADD COLUMN later int4 DEFAULT 7;\n";
	if (rand() < 0.5)
	{
		return table_sql('parted', 'PARTITION BY HASH (g)') .
			join('', map { "CREATE TABLE parted$_ PARTITION OF parted FOR VALUES WITH (MODULUS 3, REMAINDER $_);\n" } 0 .. 2) .
			insert_sql('parted', 900) . $later . insert_sql('parted', 300, 2000);
	}
	return table_sql('parted', 'PARTITION BY RANGE (id)') . "CREATE TABLE parted1 PARTITION OF parted FOR VALUES FROM (1000) TO (2100);
CREATE TABLE parted2 PARTITION OF parted FOR VALUES FROM (2100) TO (3000);\n" .
		insert_sql('parted', 600, 1900) . $later . "CREATE TABLE parted0 PARTITION OF parted FOR VALUES FROM (0) TO (1000);\n" . insert_sql('parted', 600);
}

sub schema
{
	my $sql = "CREATE DOMAIN whole AS int4;\nCREATE TYPE label AS ENUM ('e0', 'e1', 'e2', 'e3', 'e4');\nCREATE TYPE pair AS (x int8, y text);\n";
	my @rows = (0, 1, 90, 700, 2500, 12000);
	for my $f (0 .. $#FACTS)
	{
		$sql .= table_sql($FACTS[$f], '') . insert_sql($FACTS[$f], int($rows[$f] / 2));
		# attributes that the tuples so far lack
		$sql .= "ALTER TABLE $FACTS[$f] ADD COLUMN late int4, ADD COLUMN later int4 DEFAULT 7;\n" . insert_sql($FACTS[$f], int(($rows[$f] + 1) / 2), 10000);
		$sql .= "UPDATE $FACTS[$f] SET late = id % 9, later = CASE WHEN id % 2 = 0 THEN id END WHERE id % 3 = 0;\nDELETE FROM $FACTS[$f] WHERE id % 17 = 5;\n";
	}
	# dimensions, by the key's values: unique ones, several of each, none; NULLs; wide rows
	$sql .= 'CREATE TABLE d0 AS SELECT i AS dk, i % 7 AS dg, i * 100000 AS dv, (i % 4)::numeric(6, 2) AS dn, \'name \' || i % 9 AS dt, i / 8.0::float8 AS df, i % 3 = 0 AS db, date \'2000-01-01\' + i AS dd FROM generate_series(0, 60) i;
CREATE TABLE d1 AS SELECT CASE WHEN i % 20 > 0 THEN (i % 40)::int8 END AS dk, i % 3 AS dg, CASE WHEN i % 5 > 0 THEN i END AS dv, (i / 3.0)::numeric(8, 3) AS dn, repeat(\'name \' || i % 30, 30) AS dt, i / 8.0::float8 AS df, NULL::bool AS db, date \'2000-01-01\' + i % 5 AS dd FROM generate_series(1, 120) i;
CREATE TABLE d2 AS SELECT i::int2 AS dk, i AS dg, i AS dv, i::numeric(5, 1) AS dn, \'one \' || i AS dt, i::float8 AS df, true AS db, date \'2000-01-01\' AS dd FROM generate_series(3, 12) i;
' . join('', map { "ALTER TABLE $_ ADD COLUMN dx text, ADD COLUMN dy varchar, ADD COLUMN dc char(8), ADD COLUMN du uuid, ADD COLUMN dw bytea, ADD COLUMN dz name, ADD COLUMN dm numeric(12, 2);
UPDATE $_ SET dx = 't' || dk % 40, dy = 'b' || dk, dc = 't' || dk % 30, du = md5(dk::text)::uuid, dw = decode(md5(dk::text), 'hex'), dz = 'name ' || dk % 70, dm = dk / 100.0 - 7;
" } qw(d0 d1 d2)) . 'CREATE TABLE d3 (LIKE d0);
ALTER TABLE d0 ADD PRIMARY KEY (dk);
ALTER TABLE d2 ADD PRIMARY KEY (dk);
CREATE UNIQUE INDEX ON f3 (id);
CREATE UNIQUE INDEX ON f5 (id);
';
	$sql .= partitioned_sql();
	for my $h (@CHANGING)
	{
		$sql .= table_sql($h, 'WITH (fillfactor = ' . one_of(60, 100) . ', autovacuum_enabled = off)') . "ALTER TABLE $h ADD COLUMN late int4, ADD COLUMN later int4 DEFAULT 7;\n" . insert_sql($h, 1500) . "CREATE INDEX ON $h (id);\n";
	}
	$sql .= "CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM f3 WHERE id % 5 <> 2;
CREATE VIEW both_tables AS SELECT $ALL FROM f2 WHERE g > 1 UNION ALL SELECT $ALL FROM f3 WHERE may;
";
	return $sql . "VACUUM ANALYZE;\n";
}

sub own
{
	my ($job) = @_;
	return table_sql("w$job", '') . "ALTER TABLE w$job ALTER id DROP NOT NULL, ADD COLUMN late int4, ADD COLUMN later int4 DEFAULT 7;\n" . insert_sql("w$job", 500) . "ANALYZE w$job;\n";
}

# One statement, or several in a transaction, of a session that changes the tables.
sub change
{
	my $h = one_of(@CHANGING);
	my ($n, $m) = (1 + int(rand(9)), 2 + int(rand(8)));
	my $first = 10000 + int(rand(1e6));
	my @kind = (
		"UPDATE $h SET i4 = $n, tame8 = tame8 + 0.125, n2 = n2 + 1 WHERE id % $m = 1",
		"UPDATE $h SET id = id + 1, x = x || '.' WHERE id % 13 = $n",
		"DELETE FROM $h WHERE id % 10 = $n; " . insert_sql($h, 150, $first),
		"DELETE FROM $h WHERE ctid IN (SELECT ctid FROM $h LIMIT 200); " . insert_sql($h, 200, $first),
		"BEGIN; UPDATE $h SET k4 = k4 + 1 WHERE id % $m = 0; ROLLBACK",
		"BEGIN; SAVEPOINT s; DELETE FROM $h WHERE id % $m = 0; ROLLBACK TO s; UPDATE $h SET g = $n WHERE id % 20 = $m; COMMIT",
		"BEGIN; SELECT count(*) FROM (SELECT 1 FROM $h WHERE id % $m = 0 FOR SHARE) s; COMMIT",
		"VACUUM $h", "VACUUM (FREEZE) $h", "VACUUM ANALYZE $h");
	return one_of(@kind);
}

sub settings
{
	return join('; ', map { "SET $_ = " . one_of(@{ $SETTINGS{$_} }) } sort keys %SETTINGS) .
		($ENV{GPUHASH_RANDOM_SETTINGS} ? "; $ENV{GPUHASH_RANDOM_SETTINGS}" : '');
}

1;
