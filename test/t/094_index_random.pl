# Random joins over random tables whose indexes have copies (src/join/probed_copy.c, src/scan/keys.c): keys of one and two columns, of all widths, with few or
# many rows each and NULLs, values of all types, between random changes, savepoints that are rolled back, VACUUMs of all kinds, and
# DDL; in whatever way the planner takes.  The answer is PostgreSQL's.
#
#	GPUHASH_SECONDS		of comparisons (40)
#	GPUHASH_SEED		to begin with
use GpuHash::Test 'module';
use GpuHash::Index;
use Time::HiRes qw(time);

my $seconds = $ENV{GPUHASH_SECONDS} || 40;
seed();
my $server = GpuHash::Server->new(module => 1, conf => ["shared_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'", 'autovacuum = off', 'jit = off',
	'max_worker_processes = 12', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'min_parallel_index_scan_size = 0']);
my $session = $server->session;

sub one { return $_[int(rand(@_))] }

# Of row i: whole numbers in a range that has so many values, and all else by that.
my %values = (
	int2 => sub { "(i * 7919::bigint % $_[0] - 50)::int2" },
	int4 => sub { "(i * 7919::bigint % $_[0] - 50)::int4" },
	int8 => sub { "i * 7919::bigint % $_[0] - 50" },
	date => sub { "'2000-01-01'::date + (i * 31::bigint % $_[0])::int" },
	timestamp => sub { "'2000-01-01'::timestamp + (i * 31::bigint % $_[0]) * interval '1 hour'" },
	bool => sub { 'i % 3 = 0' },
	'numeric(12, 2)' => sub { "(i * 13::bigint % $_[0]) / 100.0" },
	numeric => sub { "(i * 13::bigint % $_[0]) / 7.0" },
	text => sub { "CASE WHEN i % 11 = 0 THEN '' ELSE repeat('x', (i % 50)::int) || i % 97 END" },
	'varchar(20)' => sub { "'v' || i * 17::bigint % $_[0]" },
	uuid => sub { "md5((i % $_[0])::text)::uuid" },
	name => sub { "('n' || i * 17::bigint % $_[0])::name" },
	bytea => sub { "decode(md5((i % $_[0])::text), 'hex')" });
my @integers = qw(int2 int4 int8);
my %sum = map { $_ => 1 } @integers, 'numeric(12, 2)', 'numeric';

# A column, at times NULL.
sub value
{
	my ($type, $range) = @_;
	my $value = $values{$type}->($type eq 'int2' && $range > 30000 ? 30000 : $range);
	return rand() < 0.3 ? 'CASE WHEN i % ' . (2 + int(rand(30))) . " > 0 THEN $value END" : $value;
}

# Where it can be: not of a table that is not vacuumed, or of keys that are all NULL.
sub prewarm
{
	my (undef, $error) = $session->do("SELECT gpuhash_prewarm('r_k')");
	like($error, qr/no copy of index/, 'there can be none') if $error ne '';
	return;
}

# A new table and its index: what queries and changes need to know of it.
sub make_table
{
	my $rows = one(3000, 10000, 30000);
	my $range = one(200, $rows / 3, $rows, $rows * 3);
	my %table = (rows => $rows, range => int($range), keys => rand() < 0.65 ? 1 : 2);
	my @types = (one(@integers), one(@integers), map { one(keys %values) } 1 .. 4);
	my @columns = ('k', 'l', 'c1', 'c2', 'c3', 'c4');
	$table{type} = { map { $columns[$_] => $types[$_] } 0 .. $#types };
	my $second = $table{keys} == 2 ? one(3, 40, 1000) : $range;
	my @fills = (value($types[0], $table{range}), value($types[1], int($second)), map { value($types[$_], $table{range}) } 2 .. 5);
	$table{fill} = join ', ', map { "($fills[$_])::$types[$_]" } 0 .. $#types;
	# one that is not in the index is for updates in place
	my @in = grep { $_ ne 'c4' && $_ ne 'k' && ($table{keys} == 1 || $_ ne 'l') } @columns;
	@in = grep { rand() < 0.8 } @in;
	$table{in} = ['k', ($table{keys} == 2 ? 'l' : ()), @in];
	my $include = @in ? 'INCLUDE (' . join(', ', @in) . ')' : '';
	$table{index} = 'CREATE INDEX r_k ON r USING gpuhash (' . ($table{keys} == 2 ? 'k, l' : 'k') . ") $include";
	well($session, 'DROP TABLE IF EXISTS r; CREATE TABLE r (' . join(', ', map { "$columns[$_] $types[$_]" } 0 .. $#types) . ', mark bigint) WITH (fillfactor = ' . one(60, 80, 100) . ')');
	well($session, "INSERT INTO r SELECT $table{fill}, i FROM generate_series(1, $rows) i" . (rand() < 0.5 ? ' ORDER BY i * 7919::bigint % 10007' : '') . "; $table{index}");
	my @outer = (one(@integers), one(@integers));
	well($session, "DROP TABLE IF EXISTS o; CREATE TABLE o AS SELECT (" . value($outer[0], int($table{range} * 1.3)) . ")::$outer[0] AS k, (" . value($outer[1], int($second)) . ")::$outer[1] AS l, i::bigint AS v FROM generate_series(1, " . one(100, 4000, 20000) . ') i');
	well($session, "VACUUM ANALYZE $_") for 'r', 'o';
	prewarm() if rand() < 0.8;
	return \%table;
}

sub change
{
	my ($table) = @_;
	my $some = 'mark % ' . one(7, 101, 997, 4001) . ' = ' . int(rand(7));
	my $insert = "INSERT INTO r SELECT $table->{fill}, i FROM generate_series(1 + " . int(rand(50000)) . '::bigint, ' . int(50000 + rand(200)) . ', ' . one(13, 499) . ') i';
	my $columns = one(grep { $_ ne 'k' } @{ $table->{in} }, 'k');
	my $update = "UPDATE r SET $columns = s.$columns FROM (SELECT $columns, mark AS other FROM r WHERE $some) s WHERE mark = s.other + 1";
	return one($insert, "DELETE FROM r WHERE $some", $update, "UPDATE r SET mark = mark WHERE $some", "SELECT count(c4) FROM r WHERE k BETWEEN 10 AND 60",
		"SAVEPOINT x; $insert; DELETE FROM r WHERE $some; ROLLBACK TO x", "SAVEPOINT x; DELETE FROM r WHERE $some; RELEASE x", "SAVEPOINT x; TRUNCATE r; ROLLBACK TO x", 'SAVEPOINT x; REINDEX INDEX r_k; ROLLBACK TO x',
		"SAVEPOINT x; DROP INDEX r_k; $insert; ROLLBACK TO x");
}

# Outside of a transaction
sub maintain
{
	my ($table) = @_;
	return one(('VACUUM (INDEX_CLEANUP on) r') x 6, ('VACUUM r') x 4, 'VACUUM (INDEX_CLEANUP off) r', 'VACUUM (FREEZE) r', ('VACUUM ANALYZE r') x 3, 'VACUUM (DISABLE_PAGE_SKIPPING) r', 'REINDEX INDEX r_k', 'REINDEX INDEX CONCURRENTLY r_k',
		'VACUUM FULL r', 'CLUSTER r USING r_k', "TRUNCATE r; INSERT INTO r SELECT $table->{fill}, i FROM generate_series(1, $table->{rows}) i", "BEGIN; TRUNCATE r; INSERT INTO r SELECT $table->{fill}, i FROM generate_series(1, 5000) i; ROLLBACK",
		"DROP INDEX r_k; $table->{index}; VACUUM r");
}

sub query
{
	my ($table) = @_;
	my @in = @{ $table->{in} };
	my $on = $table->{keys} == 2 && rand() < 0.85 ? one('r.k = o.k AND r.l = o.l', 'o.l = r.l AND o.k = r.k') : one('r.k = o.k', 'o.k = r.k');
	my $kind = rand();
	my $where = rand() < 0.25 ? ' WHERE o.v % 3 = 1' : '';
	return 'SELECT count(*), sum(o.v) FROM o' . ($where || ' WHERE true') . ' AND ' . one('', 'NOT ') . "EXISTS (SELECT FROM r WHERE $on" . (rand() < 0.3 ? " AND r.$in[0]::int8 <> o.v % 50" : '') . ')' if $kind < 0.35;
	my @out = map { my $type = $table->{type}{$_}; $sum{$type} && rand() < 0.6 ? "sum(r.$_)" : $type ne 'bool' && $type ne 'uuid' && $sum{$type} ? "max(r.$_)" : "count(r.$_)" } grep { rand() < ($table->{type}{$_} eq 'numeric' ? 0.1 : 0.7) } @in;
	my $by = rand() < 0.3 ? 'r.' . one(@in) : rand() < 0.3 ? 'o.v % 5' : '';
	my $joins = one('o JOIN r', 'o LEFT JOIN r', 'r JOIN o', 'r RIGHT JOIN o') . " ON $on" . (rand() < 0.15 ? " AND r.$in[0]::int8 > o.v % 60" : '');
	my $only = $by eq 'o.v % 5' ? 'r.mark % 5' : $by;
	return 'SELECT ' . join(', ', ($only ? $only : ()), 'count(*)', @out) . " FROM r WHERE r.k IN (SELECT o.k FROM o$where)" . ($only ? ' GROUP BY 1' : '') if $kind > 0.85;
	my $query = 'SELECT ' . join(', ', ($by ? $by : ()), 'count(*)', 'sum(o.v)', @out) . " FROM $joins$where" . ($by ? ' GROUP BY 1' : '');
	return $query;
}

sub settings
{
	return join '; ', 'SET gpuhash.force_offload = ' . one('on', 'on', 'off'), 'SET gpuhash.setup_cost = ' . one(0, 100), 'SET max_parallel_workers_per_gather = ' . one(0, 0, 0, 2),
		"SET work_mem = '" . one('64kB', '1MB', '4MB', '64MB') . "'", 'SET enable_hashjoin = ' . one('on', 'on', 'off'), 'SET random_page_cost = ' . one(1.1, 4);
}

sub sorted { return join "\n", sort split /\n/, $_[0] }

my ($compared, $taken, $by_keys, $partly, $wrong) = (0, 0, 0, 0, 0);

# With and without gpuhash, in the same snapshot or transaction.
sub compare
{
	my ($table) = @_;
	my ($settings, $query) = (settings(), query($table));
	my ($plan) = well($session, "$settings; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query");
	my $with = sorted(well($session, $query));
	my $want = sorted(well($session, "SET gpuhash.enabled = off; $query; SET gpuhash.enabled = on"));
	$compared++;
	$taken++ if $plan =~ /Inner Index/;
	$by_keys++ if $plan =~ /Keys: \d/;
	$partly++ if $plan =~ /Blocks From Heap/;
	return if $with eq $want;
	$wrong++;
	diag("$settings; $query\n$with\nnot\n$want\n$plan\n$table->{index}; types " . join(', ', map { "$_ $table->{type}{$_}" } sort keys %{ $table->{type} }) . "; $table->{fill}");
	return;
}

my $end = time + $seconds;
while (time < $end && $wrong < 5)
{
	my $table = make_table();
	for (1 .. 6)
	{
		compare($table) for 1 .. 4;
		if (rand() < 0.6)
		{
			well($session, 'BEGIN' . one('', ' ISOLATION LEVEL REPEATABLE READ', ' ISOLATION LEVEL SERIALIZABLE'));
			for (1 .. 1 + int(rand(3)))
			{
				well($session, change($table));
				compare($table) if rand() < 0.7;
			}
			well($session, one('COMMIT', 'COMMIT', 'ROLLBACK'));
		}
		well($session, maintain($table)) if rand() < 0.8;
		prewarm() if rand() < 0.3;
	}
}
is($wrong, 0, "none of $compared answers was wrong");
cmp_ok($taken, '>', $compared / 30, "$taken by copies, $by_keys more by keys, of all $partly with blocks of the table");
unlike($server->log, qr/PANIC|TRAP:|terminated by signal/, 'nothing failed');
done_testing();
