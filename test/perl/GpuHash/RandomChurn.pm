# GpuHash::RandomChurn: tables with indexes of gpuhash, what others do to them meanwhile, and random queries.
#
#	my $churn = GpuHash::RandomChurn->new($session)	makes tables that are new: t1 to t3, each with an index
#										<table>_k, and others at times; parts, a partitioned one; and o, which
#										nobody changes
#	$churn->change($number)				a change of few blocks, by the process of that number
#	$churn->keep						VACUUMs, copies that are made, and DDL
#	$churn->own($table)					changes in an open transaction
#	my ($query, $name) = $churn->query	one that returns the same rows however often it is run, in any
#										order, and a table of it that others change
#	settings							of the planner and the engine
#	$EXPECTED							errors that may come of others' work
package GpuHash::RandomChurn;

use strict;
use warnings;
use GpuHash::Index 'well';

# a deadlock, rows that a transaction may not see as changed, a lock that is waited for too long, what another
# one has dropped or made, no copy, an index that is in use, and a partition that is being detached; and what
# follows in the transaction
our $EXPECTED = qr/ERROR:  (?:40P01|40001|55P03|42P01|42P07|42704|55000|55006|42809|23514|25P02|3B001):/;

sub one { return $_[int(rand(@_))] }

# Of row i, with so many values; the columns of o that it is compared with.
my %types = (
	int2 => [sub { "(i * 7919::bigint % $_[0] - 50)::int2" }, qw(k2 k4 k4 k8 k8)],
	int4 => [sub { "(i * 7919::bigint % $_[0] - 50)::int4" }, qw(k2 k4 k4 k8 k8)],
	int8 => [sub { "i * 7919::bigint % $_[0] - 50" }, qw(k2 k4 k4 k8 k8)],
	date => [sub { "'2000-01-01'::date + (i * 31::bigint % $_[0])::int" }, ('d') x 7, 'ts'],
	timestamp => [sub { "timestamp '2000-01-01' + i * 31::bigint % $_[0] * interval '24h'" }, ('ts') x 7, 'd'],
	numeric => [sub { "(i * 13::bigint % $_[0])::numeric" }, qw(nu k4)],
	text => [sub { "'v' || i * 17::bigint % $_[0]" }, 'tx'],
	uuid => [sub { "md5((i % $_[0])::text)::uuid" }, 'u']);
my @COPIED = qw(int2 int4 int4 int8 int8 date timestamp);
my @OTHERS = qw(numeric text uuid);
# Values beside the key, of which some are compressed in the index.
my $TEXTS = "CASE i % 50 WHEN 0 THEN repeat('long ', 300) || i % 97 WHEN 1 THEN NULL WHEN 2 THEN ''
	ELSE 'x' || i % 300 END";
my %values = (
	a => ['bigint', 'i * 31::bigint % 100003'],
	l => ['int', 'i % 40'],
	n => ['numeric(12, 2)', 'CASE WHEN i % 9 > 0 THEN (i * 13::bigint % 5000) / 100.0 END'],
	t => ['text', $TEXTS],
	f => ['bool', 'i % 3 = 0']);
my @VALUES = sort keys %values;
my $REST = "c int DEFAULT 0, pad text DEFAULT repeat('p', 60)";

# At times NULL.
sub nulls
{
	my ($value) = @_;
	return rand() < 0.3 ? 'CASE WHEN i % ' . (5 + int(rand(30))) . " > 0 THEN $value END" : $value;
}

# ------------------------------------------------------------------ tables

# What is known of a table: its rows, by an expression over i, and its index.
sub choose_table
{
	my ($name) = @_;
	my $rows = one(3000, 5000, 8000);
	my $type = rand() < 0.85 ? one(@COPIED) : one(@OTHERS);
	my %table = (name => $name, rows => $rows, type => $type, two => $type =~ /^int[24]$/ && rand() < 0.15);
	$table{range} = int(one(100, $rows / 5, $rows, $rows, $rows * 3));
	$table{range} = 30000 if $type eq 'int2' && $table{range} > 30000;
	my @in = grep { rand() < ($_ eq 'a' ? 0.9 : 0.7) } grep { !($table{two} && $_ eq 'l') } @VALUES;
	@in = ('a') if !@in;
	$table{in} = \@in;
	$table{fill} = join ', ', nulls($types{$type}[0]->($table{range})), map { $values{$_}[1] } @VALUES;
	$table{columns} = join ', ', 'k', @VALUES;
	my $keys = $table{two} ? 'k, l' : rand() < 0.1 ? 'k DESC' : 'k';
	my $options = rand() < 0.2 ? ' WITH (deduplicate_items = off)' : '';
	$table{on} = "ON $name USING gpuhash ($keys) INCLUDE (" . join(', ', @in) . ")$options";
	$table{persistence} = rand() < 0.15 ? 'UNLOGGED ' : '';
	return \%table;
}

# Those rows of it.
sub insert_rows
{
	my ($table, $series) = @_;
	my $rows = "SELECT $table->{fill} FROM generate_series($series) i";
	return "INSERT INTO $table->{name} ($table->{columns}) $rows";
}

sub make_table
{
	my ($session, $table) = @_;
	my $name = $table->{name};
	my $columns = join ', ', "k $table->{type}", (map { "$_ $values{$_}[0]" } @VALUES), $REST;
	my $fill = one(70, 90, 100);
	well($session, "CREATE $table->{persistence}TABLE $name ($columns) WITH (fillfactor = $fill)");
	my $order = rand() < 0.5 ? ' ORDER BY i * 7919::bigint % 10007' : '';
	well($session, insert_rows($table, "1, $table->{rows}") . $order);
	well($session, "CREATE INDEX ${name}_k $table->{on}");
	my $other = one('(l)', '((a % 100))', '(l) WHERE f', '(k) WHERE a > 500');
	well($session, "CREATE INDEX ON $name USING gpuhash $other") if rand() < 0.4;
	return;
}

sub make_parts
{
	my ($session) = @_;
	well($session, "CREATE TABLE parts (k int, a bigint, $REST) PARTITION BY RANGE (k)");
	for my $part (0 .. 2)
	{
		my ($from, $to) = ($part * 2000, ($part + 1) * 2000);
		well($session, "CREATE TABLE parts$part PARTITION OF parts FOR VALUES FROM ($from) TO ($to)");
	}
	well($session, 'INSERT INTO parts SELECT i % 6000, i FROM generate_series(1, 9000) i');
	well($session, 'CREATE INDEX parts_k ON parts USING gpuhash (k) INCLUDE (a)');
	return;
}

sub make_outer
{
	my ($session) = @_;
	my $rows = one(6000, 30000, 30000, 30000, 50000);
	my $range = one(2000, 9000, 20000);
	my %of = (
		k2 => '(i * 7919::bigint % 9000 - 100)::int2',
		k4 => "(i * 7919::bigint % $range - 100)::int4",
		k8 => "i * 31::bigint % $range - 100",
		d => "'2000-01-01'::date + (i * 7::bigint % $range)::int",
		ts => "'2000-01-01'::timestamp + (i * 7::bigint % ($range * 2)) * interval '12 hours'",
		nu => "(i * 7::bigint % $range)::numeric / " . one(1, 2),
		tx => "'v' || i * 3::bigint % $range",
		u => "md5((i % $range)::text)::uuid");
	my @columns = map { nulls($of{$_}) . " AS $_" } sort keys %of;
	my $columns = join ', ', @columns, 'i::bigint AS v', 'i % 40 AS l';
	well($session, "CREATE TABLE o AS SELECT $columns FROM generate_series(1, $rows) i");
	return;
}

sub new
{
	my ($class, $session) = @_;
	my $self = bless { tables => [map { choose_table("t$_") } 1 .. 3], names => 0 }, $class;
	well($session, 'DROP TABLE IF EXISTS o, t1, t2, t3, parts, parts1, parts2 CASCADE');
	make_table($session, $_) for @{ $self->{tables} };
	make_parts($session);
	make_outer($session);
	well($session, "VACUUM ANALYZE $_") for qw(o parts t1 t2 t3);
	# of some there is none
	$session->do("SET gpuhash.engine = 'auto'; SELECT gpuhash_prewarm('$_')") for $self->indexes;
	well($session, 'RESET gpuhash.engine');
	return $self;
}

sub indexes { return qw(t1_k t2_k t3_k parts_k) }
sub table { my ($self) = @_; return one(@{ $self->{tables} }) }

# ------------------------------------------------------------------ changes

# A few rows together.
sub few
{
	my ($name) = @_;
	my ($from, $most) = (int(rand(120)), one(1, 3, 10));
	return "ctid IN (SELECT ctid FROM $name WHERE ctid >= '($from,1)' ORDER BY ctid LIMIT $most)";
}

sub insert
{
	my ($table) = @_;
	my $from = int(rand(50000));
	return insert_rows($table, "$from, " . ($from + one(0, 2, 8)) . '::bigint');
}

sub simple
{
	my ($table) = @_;
	my $name = $table->{name};
	my $few = few($name);
	my $column = one(grep { $_ ne 'f' } 'k', @{ $table->{in} });
	my $value = "(SELECT $column FROM $name WHERE $column IS NOT NULL LIMIT 1)";
	return one((insert($table)) x 2, ("DELETE FROM $name WHERE $few") x 2,
		map { "UPDATE $name SET $_ WHERE $few" } 'c = c + 1', 'a = a + 1', "$column = $value");
}

# With savepoints, in whatever transaction.
sub own
{
	my ($self, $table) = @_;
	my @changes;
	for (1 .. 1 + int(rand(3)))
	{
		my $change = simple($table);
		push @changes, one($change, $change, "SAVEPOINT x; $change; " . one('ROLLBACK TO x', 'RELEASE x'));
	}
	return join '; ', @changes;
}

sub change
{
	my ($self, $number) = @_;
	my $table = $self->table;
	my $name = $table->{name};
	my $changes = $self->own($table);
	my $prepared = "p$number." . $self->{names}++;
	my $k = int(rand(6000));
	my $copied = $table->{type} =~ /^int/ ? 'k, a' : 'n, a';
	my $end = one('COMMIT', 'ROLLBACK');
	my $key = "(SELECT k FROM $name WHERE " . few($name) . ' LIMIT 1)';
	return one((simple($table)) x 3, "BEGIN; $changes; $end",
		"BEGIN; $changes; PREPARE TRANSACTION '$prepared'; SELECT pg_sleep(0.1); $end PREPARED '$prepared'",
		# marks entries of rows that are gone
		"SET enable_bitmapscan = off; SELECT count(c) FROM $name WHERE k = $key",
		"INSERT INTO parts SELECT $k, $k", "DELETE FROM parts WHERE k BETWEEN $k AND " . ($k + 3),
		"UPDATE parts SET k = (k + " . one(1, 2000) . ") % 6000 WHERE k = $k",
		# many rows at a time
		"COPY $name ($copied) FROM PROGRAM 'seq -f %g,7 $k " . ($k + 5) . "' WITH (FORMAT csv)");
}

# Copies end with most of these.
sub ddl
{
	my ($self) = @_;
	my $table = $self->table;
	my ($name, $index, $on) = ($table->{name}, "$table->{name}_k", $table->{on});
	my $insert = insert($table);
	my $all = insert_rows($table, "1, $table->{rows}");
	my $end = one('COMMIT', 'ROLLBACK');
	return one(
		"REINDEX INDEX $index", "REINDEX INDEX CONCURRENTLY $index",
		"VACUUM FULL $name", "CLUSTER $name USING $index",
		"DROP INDEX CONCURRENTLY $index; CREATE INDEX CONCURRENTLY $index $on",
		"BEGIN; TRUNCATE $name; $insert; ROLLBACK", "BEGIN; TRUNCATE $name; $all; COMMIT",
		"BEGIN; DROP INDEX $index; $insert; ROLLBACK", "BEGIN; REINDEX INDEX $index; $insert; $end",
		"BEGIN; ALTER INDEX $index RENAME TO other; CREATE INDEX $index $on; DROP INDEX other; $end",
		"ALTER TABLE $name ALTER c TYPE " . one('int', 'bigint'),
		"ALTER TABLE $name ADD x int DEFAULT 7; ALTER TABLE $name DROP x",
		"ALTER TABLE $name ADD x float DEFAULT random(); ALTER TABLE $name DROP x",
		"ALTER INDEX $index SET (fillfactor = " . one(50, 90) . ')',
		"ALTER TABLE $name SET " . one('LOGGED', 'UNLOGGED'),
		(map { "ALTER $_ SET TABLESPACE " . one('place', 'pg_default') } "TABLE $name", "INDEX $index"),
		"ALTER TABLE parts DETACH PARTITION parts1; UPDATE parts1 SET a = a + 1 WHERE k % 500 = 0;
			ALTER TABLE parts ATTACH PARTITION parts1 FOR VALUES FROM (2000) TO (4000)",
		"ALTER TABLE parts DETACH PARTITION parts2 CONCURRENTLY;
			ALTER TABLE parts ATTACH PARTITION parts2 FOR VALUES FROM (4000) TO (6000)") .
		"; VACUUM (INDEX_CLEANUP on, ANALYZE) $name; SELECT gpuhash_prewarm('$index')";
}

sub keep
{
	my ($self) = @_;
	my $name = one((qw(t1 t2 t3)) x 2, 'parts');
	return $self->ddl if rand() < 0.07;
	my $engine = one('cpu', 'cuda', 'auto', 'auto');
	return "SET gpuhash.engine = '$engine'; SELECT gpuhash_prewarm('${name}_k')" if rand() < 0.25;
	my $end = "(SELECT '(' || greatest(pg_relation_size('$name') / 8192 - 2, 0) || ',0)')::text::tid";
	my $cut = "DELETE FROM $name WHERE ctid >= $end; VACUUM (INDEX_CLEANUP on, TRUNCATE on) $name";
	return $cut if rand() < 0.1;
	my $how = one(('INDEX_CLEANUP on') x 2, 'INDEX_CLEANUP auto', 'INDEX_CLEANUP off',
		'FREEZE, INDEX_CLEANUP on', 'TRUNCATE off, INDEX_CLEANUP on', 'DISABLE_PAGE_SKIPPING',
		'ANALYZE, PARALLEL 2, INDEX_CLEANUP on');
	return "VACUUM ($how) $name";
}

# ------------------------------------------------------------------ queries

sub outer_keys { my ($table) = @_; my (undef, @with) = @{ $types{ $table->{type} } }; return @with }
sub has { my ($table, $column) = @_; return grep { $_ eq $column } @{ $table->{in} } }

sub on
{
	my ($table, $name) = @_;
	my $second = $table->{two} && rand() < 0.85 ? " AND $name.l = o.l" : '';
	return "$name.k = o." . one(outer_keys($table)) . $second;
}

# Of columns that are in the index.
sub out
{
	my ($table, $name) = @_;
	my %of = (
		a => "sum($name.a)",
		l => "sum($name.l)",
		n => one("sum($name.n)", "max($name.n)"),
		t => one("count($name.t)", ("sum(length($name.t))") x 2, "max($name.t)"),
		f => "count(*) FILTER (WHERE $name.f)");
	return join ', ', 'count(*)', grep { rand() < 0.7 } map { $of{$_} } @{ $table->{in} };
}

sub parts_query
{
	my $where = one('', ' WHERE o.v % 3 = 1', ' WHERE parts.k < 3000');
	my $join = one('JOIN', 'LEFT JOIN') . ' parts ON parts.k = o.' . one(qw(k2 k4 k8));
	my $not = one('', 'NOT ');
	return one("SELECT count(*), sum(o.v), sum(parts.a) FROM o $join$where",
		'SELECT k / 100, count(*), sum(a) FROM parts GROUP BY 1',
		'SELECT count(*), sum(a) FROM parts WHERE k IN (SELECT k4 FROM o WHERE v % 5 = 0)',
		"SELECT count(*), sum(v) FROM o WHERE ${not}EXISTS (SELECT FROM parts WHERE parts.k = o.k4)");
}

sub semi_query
{
	my ($self, $table, $where) = @_;
	my $on = on($table, 'r') . (rand() < 0.3 && has($table, 'a') ? ' AND r.a > o.v' : '');
	my $not = one('', 'NOT ');
	my $exists = "EXISTS (SELECT FROM $table->{name} r WHERE $on)";
	return "SELECT count(*), sum(o.v) FROM o WHERE $not$exists$where";
}

# Rows with some keys, or what they come to.
sub keys_query
{
	my ($self, $table) = @_;
	my $rows = join ', ', 'r.k', map { "r.$_" } grep { rand() < 0.5 } @{ $table->{in} };
	my $select = 'SELECT ' . (rand() < 0.6 ? $rows : out($table, 'r')) . " FROM $table->{name} r WHERE r.k";
	my ($outer, $most) = (one(outer_keys($table)), one(50, 300, 1000));
	return "$select IN (SELECT o.$outer FROM o WHERE o.v < $most)" if rand() < 0.5;
	my $key = $types{ $table->{type} }[0]->($table->{range});
	my $series = 'generate_series(' . int(rand(500)) . ', ' . one(510, 800, 1500) . ') i';
	my @keys = map { rand() < 0.01 ? 'NULL' : int(rand($table->{range})) - 50 } 1 .. one(20, 200, 1000);
	my $any = $table->{type} !~ /^int/ || rand() < 0.5 ? "ARRAY(SELECT ($key)::$table->{type} FROM $series)" :
		"'{" . join(',', @keys) . "}'::int8[]";
	return "$select = ANY ($any)" . (rand() < 0.2 && has($table, 'a') ? ' AND r.a % 3 > 0' : '');
}

sub groups_query
{
	my ($self, $table) = @_;
	my $by = one('r.k', 'r.a % 17', 'r.l');
	my $where = one('', ' WHERE r.a % 2 = 0');
	return "SELECT $by, " . out($table, 'r') . " FROM $table->{name} r$where GROUP BY $by";
}

sub two_query
{
	my ($self, $table) = @_;
	my $other = $self->table;
	my $first = one('JOIN', 'LEFT JOIN') . " $table->{name} r ON " . on($table, 'r');
	my $second = one('JOIN', 'LEFT JOIN', 'LEFT JOIN') . " $other->{name} s ON " . on($other, 's');
	# of many rows a key of each the join has millions
	my $where = one('', '', ' WHERE o.v % 4 = 1');
	$where = ' WHERE o.v < 500' if $table->{range} < 1000 || $other->{range} < 1000;
	return 'SELECT count(*), sum(o.v), ' . out($other, 's') . " FROM o $first $second$where";
}

sub join_query
{
	my ($self, $table, $where) = @_;
	my $by = rand() < 0.3 ? one('o.v % 5', map { "r.$_" } grep { $_ ne 'a' } @{ $table->{in} }) : '';
	my $type = one('JOIN', 'LEFT JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN');
	# PostgreSQL itself has no full join of a further condition
	my $on = on($table, 'r') . ($type ne 'FULL JOIN' && rand() < 0.15 ? ' AND r.a > o.v * 3' : '');
	my $out = ($by ? "$by, " : '') . 'sum(o.v), ' . out($table, 'r');
	$where =~ s/^ AND/ WHERE/;
	return "SELECT $out FROM o $type $table->{name} r ON $on$where" . ($by ? ' GROUP BY 1' : '');
}

sub query
{
	my ($self) = @_;
	my $table = $self->table;
	my $name = $table->{name};
	my $kind = rand();
	my $where = rand() < 0.15 ? ' AND o.v % 3 = 1' : '';
	return (parts_query(), 'parts') if $kind < 0.06;
	return ($self->semi_query($table, $where), $name) if $kind < 0.22;
	return ($self->keys_query($table), $name) if $kind < 0.42;
	return ($self->groups_query($table), $name) if $kind < 0.46;
	return ($self->two_query($table), $name) if $kind < 0.62;
	return ($self->join_query($table, $where), $name) if $kind < 0.92;
	my $most = $table->{range} < 1000 ? 400 : one(400, 12000);
	my $joined = "o JOIN $name r ON " . on($table, 'r');
	return ("SELECT r.k, r.$table->{in}[0], o.v FROM $joined WHERE o.v < $most", $name);
}

# Not all kinds of joins are off: loops over whole tables take a minute.
sub settings
{
	my @off = (split(/ /, one(('mergejoin nestloop') x 4, 'hashjoin nestloop', 'nestloop', '')),
		one(('indexonlyscan') x 2, 'bitmapscan'), one(('material') x 2, 'seqscan'));
	my %set = (
		'gpuhash.engine' => one('cpu', 'cuda', 'cuda', 'auto'),
		'gpuhash.force_offload' => one(('on') x 7, 'off'),
		max_parallel_workers_per_gather => one(0, 0, 0, 2),
		work_mem => one('64kB', '1MB', ('4MB') x 2, ('64MB') x 2),
		random_page_cost => one(1.1, 4),
		map { ("enable_$_" => 'off') } @off);
	return join '; ', map { "SET LOCAL $_ = '$set{$_}'" } sort keys %set;
}

1;
