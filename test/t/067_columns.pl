# Columns of tables in shared memory, for the CPU engine: each query returns what PostgreSQL returns in the same snapshot,
# after every kind of change, beside sessions that write and vacuum, by several processes, with little memory.  And with the
# checks left out that this rests on (fault points), the tests find it: an answer differs.
#
#	GPUHASH_SECONDS		how long others write while queries run (6)
use GpuHash::Test 'module';
use Time::HiRes qw(time sleep);
use GpuHash::Index qw(write_until end_writers);
use GpuHash::Jobs;
use GpuHash::Resident 'well';
use GpuHash::Service;

my $seconds = $ENV{GPUHASH_SECONDS} || 6;
my $seed = seed();
my $service = GpuHash::Service->new(conf => [@GpuHash::Resident::CONF, 'max_worker_processes = 16', 'autovacuum = off']);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');

my $CPU = 'SET gpuhash.engine = cpu';
my $PARALLEL = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0';
my ($session, $other) = map { $server->session } 1, 2;
$session->do($CPU);
$other->do('SET gpuhash.enabled = off');

sub plan_of { my ($query) = @_; return well($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query") }

# Pages of which the query took columns.
sub column_pages { return GpuHash::Resident::column_pages($session, $_[0]) }

# The queries until columns are there, as far as they may be, and compared each time.
sub settle
{
	my ($what, $query) = @_;
	GpuHash::Resident::check($session, "$what, round $_", queries => $query) for 1 .. 3;
	return;
}

# ------------------------------------------------------------- kinds of values

# What each kind of column has: small and wide ranges, ends, NULLs, few texts and many.
my %KIND = (
	i2 => 'smallint, (i % 300)::smallint', i4 => 'int, i * 3 - 20000', i8 => 'bigint, i::bigint * 10000000000 - 7',
	id => 'oid, (4294967295 - i % 5)::oid', b => 'bool, i % 3 = 0', f4 => 'real, i / 8.0', f8 => "float8, CASE i % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' ELSE i / 7.0 END",
	n => 'numeric(12, 2), (i % 5000) / 4.0', wide => 'numeric(38, 4), i * 12345678901234567890123456.5', free => 'numeric, i / 3.0', d => "date, date '1999-12-31' + i % 4000",
	ts => "timestamp, timestamp '2020-02-29' + i * interval '1 min'", few => "text, 'text ' || i % 7", many => 'text, md5(i::text)', v => "varchar(20), repeat('v', i % 20)",
	c => "char(10), 'c' || i % 100", u => 'uuid, md5((i % 500)::text)::uuid', name => "name, ('n' || i % 30)::name", nothing => 'int, NULL::int',
	some => 'int, CASE WHEN i % 4 > 0 THEN i % 1000 END', text_or_null => "text, CASE WHEN i % 3 > 0 THEN 'x' || i % 11 END", same => 'int, 42');

sub make_kinds
{
	my ($rows) = @_;
	my @names = sort keys %KIND;
	my (@types, @values);
	for my $name (@names)
	{
		my ($type, $value) = $KIND{$name} =~ /^(\w+(?:\([\d, ]+\))?), (.*)$/s or die $name;
		push @types, "k_$name $type";
		push @values, $value;
	}
	well($other, 'CREATE TABLE kinds (i int, ' . join(', ', @types) . ') WITH (fillfactor = 80)');
	well($other, 'INSERT INTO kinds SELECT i, ' . join(', ', @values) . " FROM generate_series(1, $rows) i");
	return well($other, 'VACUUM ANALYZE kinds');
}

make_kinds(6000);
for my $name (sort keys %KIND)
{
	my $query = "SELECT k_$name, count(*), sum(i) FROM kinds WHERE i % 10 < 8 GROUP BY k_$name";
	settle("groups by $name", { groups => $query, least => "SELECT count(k_$name), min(i) FROM kinds WHERE k_$name IS NOT NULL" });
	# of these, groups are made of rows
	next if $name =~ /^(free|wide|name|u)$/;
	cmp_ok(column_pages($query), '>', 100, "groups by $name take columns");
}
settle('all of them at once', { all => 'SELECT count(*), ' . join(', ', map { "count(DISTINCT k_$_)" } sort keys %KIND) . ' FROM kinds' });
settle('places', { places => 'SELECT ctid, k_same FROM kinds WHERE k_few = \'text 3\'', rows => 'SELECT k_d, max(ctid) FROM kinds GROUP BY k_d' });

# rows that an engine hands back: their pages are read, and the values are PostgreSQL's
settle('rows that come back', { divided => 'SELECT k_few, sum(1000000000000 / nullif(k_some, 0)), sum(k_i8 * 40) FROM kinds WHERE i < 5000 GROUP BY k_few',
		floats => 'SELECT k_few, sum(k_f8), sum(k_f4), avg(k_wide) FROM kinds WHERE k_f8 <> \'NaN\' GROUP BY k_few' });
for my $query ('SELECT sum(1 / (i - 3000)) FROM kinds', 'SELECT k_few, sum(k_i8 * k_i8) FROM kinds GROUP BY 1')
{
	my (undef, $want) = $other->do($query);
	isnt($want, '', "an error: $query");
	for (1 .. 3) { my (undef, $got) = $session->do($query); is($got, $want, 'the same by columns') }
}

# --------------------------------------------------------------- every change

my $ROWS = 14000;
my %SUMS = %GpuHash::Resident::SUMS;

sub fresh
{
	my ($with) = @_;
	well($other, "DROP TABLE IF EXISTS t; CREATE TABLE t ($GpuHash::Resident::COLUMNS) WITH (" . ($with // 'fillfactor = 30, autovacuum_enabled = off') . '); INSERT INTO t ' . GpuHash::Resident::rows(1, $ROWS));
	well($other, 'VACUUM ANALYZE t');
	return;
}

fresh();
settle('a table', \%SUMS);
my $all = column_pages($SUMS{a});
cmp_ok($all, '>', 300, 'its columns are there');
cmp_ok(column_pages($SUMS{$_}), '>', 300, "$_: rows of a scan, by columns") for 'e', 'f';
like(well($session, "SELECT resident > 300 AND bytes > 0 AND device IS NULL FROM gpuhash_resident WHERE relation = 't'::regclass AND device IS NULL"), qr/^t$/, 'the view has them');

# the planner knows of them: pages need not be read
sub cost_of
{
	my ($query) = @_;
	my ($cost) = well($session, "SET gpuhash.force_offload = off; EXPLAIN $query") =~ /\(GpuHashAggregate\) +\(cost=[\d.]+\.\.([\d.]+)/;
	well($session, 'RESET gpuhash.force_offload');
	return $cost // -1;
}

fresh();
my $priced = 'SELECT g, sum(n) FROM t WHERE id > 5 GROUP BY g';
my $pages_cost = cost_of($priced);
settle('priced', { priced => $priced });
my $columns_cost = cost_of($priced);
cmp_ok($columns_cost, '>', 0, 'offloaded by costs');
cmp_ok($columns_cost, '<', 0.7 * $pages_cost, 'columns in memory cost less than pages');
cmp_ok(cost_of('SELECT g, sum(n), count(x) FROM t WHERE id > 5 GROUP BY g'), '>=', $pages_cost, 'where one column lacks, pages are read');
settle('the view\'s', \%SUMS);

for my $change ('UPDATE t SET n = n + 1 WHERE id % 100 = 7', 'DELETE FROM t WHERE id % 1000 = 3', 'INSERT INTO t ' . GpuHash::Resident::rows(20001, 20500), 'BEGIN; UPDATE t SET n = -1; ROLLBACK',
	'BEGIN; SAVEPOINT a; DELETE FROM t WHERE id % 5 = 1; ROLLBACK TO a; UPDATE t SET g = 3 WHERE id = 5; COMMIT', 'UPDATE t SET x = repeat(md5(id::text), 100) WHERE id % 500 = 1', 'SELECT count(*) FROM (SELECT FROM t FOR UPDATE) s',
	'DELETE FROM t WHERE id > 10000', 'INSERT INTO t ' . GpuHash::Resident::rows(10001, 14000), 'ALTER TABLE t ADD COLUMN later int DEFAULT 5', 'UPDATE t SET later = 6 WHERE id % 200 = 9',
	'ALTER TABLE t ALTER x TYPE varchar', 'CLUSTER t USING t_id', 'ALTER TABLE t ALTER n TYPE int USING n % 1000', 'TRUNCATE t', 'INSERT INTO t ' . GpuHash::Resident::rows(1, $ROWS))
{
	well($other, 'CREATE INDEX IF NOT EXISTS t_id ON t (id)') if $change =~ /^CLUSTER/;
	well($other, $change);
	GpuHash::Resident::check($session, "before VACUUM: $change", queries => \%SUMS);
	well($other, 'VACUUM t');
	settle("vacuumed: $change", \%SUMS);
}
cmp_ok(column_pages($SUMS{a}), '>', 100, 'columns are there again');
well($other, 'ALTER TABLE t ADD COLUMN last int DEFAULT 8');
settle('a column that tuples lack', { last => 'SELECT last, count(*), sum(n) FROM t GROUP BY last' });
cmp_ok(column_pages($SUMS{a}), '>', 100, 'does not take away the others');
well($other, "ALTER TABLE t ALTER x SET STORAGE external; UPDATE t SET x = repeat('long', 3000) WHERE id % 20 = 1");
well($other, 'VACUUM t');
settle('values that are not in the page', \%SUMS);
cmp_ok(column_pages($SUMS{a}), '>', 100, 'nor does one of these');

# values of two columns that cannot be read, each of few blocks, and together of more than may be lost
well($other, 'CREATE TABLE long (id int, yes bool, x text, y text) WITH (fillfactor = 30)');
well($other, "INSERT INTO long SELECT i, i % 3 = 0, CASE WHEN i % 500 = 1 THEN repeat('long ', 900) ELSE 'x' || i END, CASE WHEN i % 500 = 251 THEN repeat('more ', 900) ELSE 'y' || i END FROM generate_series(1, 4000) i");
well($other, 'VACUUM ANALYZE long');
my $long = { rows => 'SELECT ctid, id, yes, x, y FROM long WHERE yes AND x < y', groups => 'SELECT yes, x < y, count(*), sum(id) FROM long WHERE id % 7 < 5 GROUP BY 1, 2' };
settle('two columns with long values', $long);
cmp_ok(column_pages($long->{groups}), '>', 20, 'by columns');

# what was seen when the snapshot was taken
for my $level ('REPEATABLE READ', 'SERIALIZABLE')
{
	fresh();
	settle("$level, before", \%SUMS);
	well($session, "BEGIN ISOLATION LEVEL $level; SELECT count(*) FROM t");
	well($other, 'UPDATE t SET n = n + 1 WHERE id % 3 = 0');
	well($other, 'VACUUM t');
	GpuHash::Resident::check($session, "$level: an old snapshot", queries => \%SUMS, open => 1);
	well($session, 'INSERT INTO t ' . GpuHash::Resident::rows(30001, 30100));
	GpuHash::Resident::check($session, "$level: with changes of its own", queries => \%SUMS, open => 1);
	well($session, 'ROLLBACK');
	well($other, 'VACUUM t');
	settle("$level, afterwards", \%SUMS);
	well($session, "BEGIN ISOLATION LEVEL $level");
	cmp_ok(column_pages($SUMS{a}), '>', 100, "$level: takes columns");
	well($session, 'COMMIT');
	cmp_ok(column_pages($SUMS{a}), '>', 100, 'and leaves them');
}

# ----------------------------------------------------- several processes, memory

fresh();
well($session, $PARALLEL);
settle('by several processes', \%SUMS);
like(plan_of($SUMS{a}), qr/Workers Launched: 2(?s:.*)Column Pages: \d\d\d/, 'which take columns');
well($session, 'SET max_parallel_workers_per_gather = 0');

# an unlogged table's pages have no LSNs that tell of changes
well($other, 'ALTER TABLE t SET UNLOGGED; VACUUM t');
settle('unlogged', \%SUMS);
is(column_pages($SUMS{a}), 0, 'of which no columns are kept');

GpuHash::Resident::configure($other, 'gpuhash.resident_memory', 3);
fresh();
well($other, 'DROP TABLE IF EXISTS t2; CREATE TABLE t2 AS SELECT * FROM t');
well($other, 'INSERT INTO t2 SELECT * FROM t2') for 1 .. 3;
well($other, 'VACUUM ANALYZE t2');
for my $round (1 .. 2)
{
	settle("little memory, $round", \%SUMS);
	settle("of another table, $round", { map { ($_ => $SUMS{$_} =~ s/\bt\b/t2/gr) } 'a', 'b' });
	is(well($session, 'SELECT sum(bytes) <= 3 * 1024 * 1024 FROM gpuhash_resident WHERE device IS NULL'), 't', 'which is not exceeded');
}
GpuHash::Resident::configure($other, 'gpuhash.resident_memory', -1);
well($session, 'SET gpuhash.enable_resident = off');
is(column_pages($SUMS{a}), 0, 'gpuhash.enable_resident = off: none are used');
well($session, 'SET gpuhash.enable_resident = on');

# ------------------------------------------------------------ others that write

sub next_change
{
	my $id = int(rand($ROWS));
	my ($few, $many) = ("id BETWEEN $id AND $id + 8", 'id % 997 = ' . int(rand(997)));
	my @changes = ("UPDATE t SET n = n + 1, x = x || 1 WHERE $few", "DELETE FROM t WHERE $many", 'INSERT INTO t ' . GpuHash::Resident::rows($id, $id + 8),
		"BEGIN; UPDATE t SET n = -1 WHERE $few; ROLLBACK", "UPDATE t SET g = g + 1 WHERE $many");
	sleep rand() * 0.02;
	return $changes[int(rand(@changes))];
}

sub next_vacuum
{
	my @vacuums = ('VACUUM t', 'VACUUM (FREEZE) t', 'VACUUM (DISABLE_PAGE_SKIPPING) t');
	sleep rand() * 0.2;
	return $vacuums[int(rand(@vacuums))];
}

sub read_until
{
	my ($end, $settings) = @_;
	my $reader = $server->session;
	my %sum = (compared => 0, wrong => '');
	$reader->do($settings);
	while (time < $end)
	{
		my $answer = GpuHash::Resident::compare($reader, queries => \%SUMS);
		$sum{wrong} .= $answer->{wrong};
		$sum{compared} += $answer->{compared};
	}
	$reader->close;
	return \%sum;
}

fresh();
settle('before others write', \%SUMS);
my @readers = ($CPU, "$CPU; $PARALLEL", $CPU);
my $uses = "SELECT coalesce(sum(hits), 0) FROM gpuhash_resident WHERE relation::text = 't' AND device IS NULL";
my $before = well($session, $uses);
my $end = time + $seconds;
my @pids = write_until($server, $end + 60, $seed, { 0 => \&next_vacuum, 1 => \&next_change, 2 => \&next_change });
my @sums = GpuHash::Jobs::run(scalar @readers, sub { return read_until($end, $readers[$_[0]]) });
end_writers($server, @pids);
is($sums[$_]{wrong}, '', "no difference beside writers, to reader $_") for 0 .. $#readers;
cmp_ok($sums[$_]{compared}, '>', 2, 'which has compared') for 0 .. $#readers;
cmp_ok(well($session, $uses), '>', $before, 'and columns were used');

# ------------------------------------------------------- what the tests rest on

# Changes rows so that pages are all-visible again, of as many lines as before, with other rows.
my %CONTROL = (resident_map => 'UPDATE t SET n = n + 1 WHERE id % 100 = 7; VACUUM t',
	resident_heap => 'DELETE FROM t WHERE id > 6000; VACUUM (TRUNCATE off) t; INSERT INTO t SELECT i, i % 9, i * 8::bigint, i / 6.0, \'y\' || i % 40 FROM generate_series(6001, ' . $ROWS . ') i; VACUUM t');

for my $point (sort keys %CONTROL)
{
	for my $armed (0, 1)
	{
		fresh();
		settle("$point, before", \%SUMS);
		$service->arm($point, 'launch', times => 1 << 30) if $armed;
		well($other, $_) for split /; /, $CONTROL{$point};
		my $answer = GpuHash::Resident::compare($session, queries => \%SUMS);
		if ($armed)
		{
			cmp_ok($service->fired, '>', 0, "$point: it is left out");
			$service->disarm;
			isnt($answer->{wrong}, '', "$point: left out, it is found");
		}
		else { is($answer->{wrong}, '', "$point: looked at, there is no difference") }
	}
}

# ------------------------------------------------- pages that are not in the server's pool

$_->close for $session, $other;
like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
undef $server;
undef $service;
$service = GpuHash::Service->new(conf => ["shared_buffers = '2MB'", 'max_connections = 30', 'gpuhash.register_buffers = off']);
$server = $service->server;
ok($service->wait_ready, 'the service is ready, with a small pool');
($session, $other) = map { $server->session } 1, 2;
$session->do($CPU);
$other->do('SET gpuhash.enabled = off');
fresh();
settle('a small pool', \%SUMS);
well($other, "UPDATE t SET n = n + 1 WHERE (split_part(trim('()' FROM ctid::text), ',', 1)::int) % 64 < 30 AND id % 7 = 1");
for my $round (1 .. 2)
{
	settle("a small pool and stripes of which some blocks are right, $round", \%SUMS);
	well($session, $PARALLEL);
	settle("by several processes, $round", \%SUMS);
	well($session, 'SET max_parallel_workers_per_gather = 0');
	well($other, 'VACUUM t');
}
cmp_ok(column_pages($SUMS{a}), '>', 100, 'by columns');
$_->close for $session, $other;
like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
done_testing();
