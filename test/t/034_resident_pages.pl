# Pages of a table that stay on the device are PostgreSQL's at every event in its life: queries by the device return
# what PostgreSQL does in the same snapshot.  Pages are read where they are, or copied, by chance.  In the place of the
# CUDA engine there is a stand-in (test/fault), unless GPUHASH_STAND_IN is "no".
#
#	GPUHASH_EVENTS		random events, one after the other (60)
use GpuHash::Test 'module';
use GpuHash::Resident qw(well $compared $used);
use GpuHash::Service;

my $events = $ENV{GPUHASH_EVENTS} || 60;
my $ROWS = 3000;
my $seed = seed();
my $in_place = $seed % 2;

my $service = GpuHash::Service->new(conf => [@GpuHash::Resident::CONF, 'wal_level = replica', 'gpuhash.register_buffers = ' . ($in_place ? 'on' : 'off')]);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');
my ($session, $other, $reader) = map { $server->session } 1 .. 3;
$other->do('SET gpuhash.enabled = off');

# How many pages of the first query were on the device.
sub check { my ($what, %options) = @_; return GpuHash::Resident::check($options{session} // $session, $what, %options)->{resident} // 0 }

sub fresh { return GpuHash::Resident::fresh($other, $ROWS, @_) }

# ---------------------------------------------------------- the life of a table

my $BEFORE_FREEZE = 'BEGIN; TRUNCATE t; COPY t FROM PROGRAM \'seq -f "%.0f	1	2	3	y" 1 2000\' WITH (FREEZE)';

# What is done to a table that is on the device as a whole, and how many of its pages still are as they are: of so many,
# the least and the most of those that the next query uses.  Undef: it depends.
my @EVENTS = (
	['nothing', 'SELECT 1', sub { @_[0, 0] }],
	['UPDATE of a row, HOT', 'UPDATE t SET n = -5 WHERE id = 77', sub { ($_[0] - 1) x 2 }],
	['UPDATE of all', 'UPDATE t SET n = n + 1, b = -b', sub { (0, 0) }],
	['DELETE of a row', 'DELETE FROM t WHERE id = 77', sub { ($_[0] - 1) x 2 }],
	['DELETE of all', 'DELETE FROM t', sub { (0, 0) }],
	['INSERT', 'INSERT INTO t ' . GpuHash::Resident::rows(1, 3), sub { ($_[0] - 1, $_[0]) }],
	['locks', 'SELECT count(*) FROM (SELECT FROM t WHERE id % 50 = 3 FOR UPDATE) s; SELECT count(*) FROM (SELECT FROM t WHERE id % 70 = 5 FOR KEY SHARE) s', sub { @_[0, 0] }],
	['UPDATE rolled back', 'BEGIN; UPDATE t SET n = 1, x = NULL WHERE id = 77; ROLLBACK', sub { ($_[0] - 1) x 2 }],
	['INSERT rolled back', 'BEGIN; INSERT INTO t ' . GpuHash::Resident::rows(1, 2000) . '; ROLLBACK', undef],
	['subtransactions', 'BEGIN; SAVEPOINT a; UPDATE t SET n = 2 WHERE id = 5; ROLLBACK TO a; DELETE FROM t WHERE id = 2500; SAVEPOINT b; DELETE FROM t WHERE id = 600; RELEASE b; COMMIT', undef],
	['UPDATE and VACUUM', 'UPDATE t SET n = -5 WHERE id = 77; VACUUM t', sub { ($_[0] - 1) x 2 }],
	['UPDATE of many and VACUUM', 'UPDATE t SET n = -5 WHERE id % 300 = 7; VACUUM t', undef],
	['DELETE, VACUUM, and rows in the lines that were freed', 'DELETE FROM t WHERE id % 100 = 3; VACUUM t; INSERT INTO t ' . GpuHash::Resident::rows(5001, 5400) . '; VACUUM t', undef],
	['UPDATE rolled back, and VACUUM', 'BEGIN; UPDATE t SET n = 1 WHERE id = 77; ROLLBACK; VACUUM t', sub { ($_[0] - 1) x 2 }],
	['VACUUM alone', 'VACUUM t', sub { @_[0, 0] }],
	['VACUUM FREEZE', 'VACUUM (FREEZE) t', undef],
	['UPDATE and VACUUM FREEZE', 'UPDATE t SET x = x || 1 WHERE id < 100; VACUUM (FREEZE) t', undef],
	['VACUUM of all pages', 'UPDATE t SET n = -5 WHERE id = 77; VACUUM (DISABLE_PAGE_SKIPPING) t', undef],
	['VACUUM FULL', 'DELETE FROM t WHERE id % 3 = 0; VACUUM FULL t', sub { (0, 0) }],
	['CLUSTER', 'CREATE INDEX t_n ON t (n DESC); CLUSTER t USING t_n; DROP INDEX t_n', sub { (0, 0) }],
	['VACUUM that truncates', 'DELETE FROM t WHERE id > 2000; VACUUM t', undef],
	['VACUUM that truncates, and the pages made again', 'DELETE FROM t WHERE id > 2000; VACUUM t; INSERT INTO t ' . GpuHash::Resident::rows(6001, 7000), undef],
	['the same, and VACUUM', 'DELETE FROM t WHERE id > 2000; VACUUM t; INSERT INTO t ' . GpuHash::Resident::rows(6001, 7000) . '; VACUUM t', undef],
	['VACUUM that truncates all', 'DELETE FROM t; VACUUM t; INSERT INTO t ' . GpuHash::Resident::rows(6001, 9000) . '; VACUUM t', sub { (0, 0) }],
	['COPY FREEZE', "$BEFORE_FREEZE; COMMIT", sub { (0, 0) }],
	['COPY FREEZE rolled back', "$BEFORE_FREEZE; ROLLBACK", sub { @_[0, 0] }],
	['COPY FREEZE twice in a transaction', "$BEFORE_FREEZE; TRUNCATE t; COPY t FROM PROGRAM 'seq -f \"%.0f\t4\t5\t6\tz\" 1 2000' WITH (FREEZE); COMMIT", sub { (0, 0) }],
	['TRUNCATE', 'TRUNCATE t', sub { (0, 0) }],
	['TRUNCATE, and rows', 'TRUNCATE t; INSERT INTO t ' . GpuHash::Resident::rows(3001, 6000) . '; VACUUM t', sub { (0, 0) }],
	['TRUNCATE rolled back', 'BEGIN; TRUNCATE t; INSERT INTO t ' . GpuHash::Resident::rows(3001, 6000) . '; ROLLBACK', sub { @_[0, 0] }],
	['a column', 'ALTER TABLE t ADD COLUMN c int', sub { @_[0, 0] }],
	['a column with a default', 'ALTER TABLE t ADD COLUMN c int DEFAULT 7; INSERT INTO t VALUES (1, 2, 3, 4, 5, 6)', sub { ($_[0] - 1, $_[0]) }],
	['a column with a default of its own for each row', 'ALTER TABLE t ADD COLUMN c float8 DEFAULT random()', sub { (0, 0) }],
	['a column less', 'ALTER TABLE t ADD COLUMN c int DEFAULT 7; ALTER TABLE t DROP COLUMN c', sub { @_[0, 0] }],
	['a column of another type', 'ALTER TABLE t ALTER COLUMN n TYPE numeric USING n + 1', sub { (0, 0) }],
	['unlogged', 'ALTER TABLE t SET UNLOGGED', sub { (0, 0) }],
	['unlogged and logged', 'ALTER TABLE t SET UNLOGGED; UPDATE t SET n = 1 WHERE id < 9; ALTER TABLE t SET LOGGED; VACUUM t', sub { (0, 0) }],
	['another one of the name', "DROP TABLE t; CREATE TABLE t ($GpuHash::Resident::COLUMNS); INSERT INTO t " . GpuHash::Resident::rows(3001, 5000) . '; VACUUM t', sub { (0, 0) }],
	['another one takes its name', "CREATE TABLE s ($GpuHash::Resident::COLUMNS); INSERT INTO s SELECT id, g, -n, b, x FROM t; VACUUM s; ALTER TABLE t RENAME TO was_t; ALTER TABLE s RENAME TO t; DROP TABLE was_t", sub { (0, 0) }],
	['an index that is built', 'UPDATE t SET n = 3 WHERE id = 7; CREATE INDEX ON t (g)', sub { ($_[0] - 1) x 2 }]);

my $all = fresh();
my $answer = GpuHash::Resident::compare($session);
is($answer->{wrong}, '', 'a table that is on the device');
cmp_ok($answer->{by}{$_}, '>=', $all, "$_: all of its pages are used") for sort keys %GpuHash::Resident::QUERY;

for (@EVENTS)
{
	my ($name, $sql, $uses) = @$_;
	my $pages = fresh();
	well($other, $sql);
	my $resident = check($name);
	if (defined $uses)
	{
		my ($least, $most) = $uses->($pages);
		ok($resident >= $least && $resident <= $most, "$name: of $pages pages, $resident were used") or diag("not $least..$most");
	}
	# and the pages that are there from then on
	check("$name: once more");
	well($other, 'VACUUM t');
	check("$name: after VACUUM");
	check("$name: and as it is then");
}

# Of a scan that begins anew before its rows have come out, or ends early, pages are put there once.
{
	well($other, "DROP TABLE t; CREATE TABLE t ($GpuHash::Resident::COLUMNS) WITH (fillfactor = 10, autovacuum_enabled = off); INSERT INTO t " . GpuHash::Resident::rows(1, $ROWS) . '; VACUUM t');
	well($session, 'CREATE TEMP TABLE few AS SELECT 100000 + i * 100 AS k FROM generate_series(1, 6) i; ANALYZE few;
		SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET seq_page_cost = 0.05;
		SET gpuhash.device_start_cost = 0; SET gpuhash.device_page_cost = 0.0001; SET gpuhash.device_bus_cost = 0');
	my $plan = well($session, "EXPLAIN (ANALYZE, COSTS OFF) SELECT count(*) FROM few WHERE EXISTS (SELECT FROM t WHERE t.n > 0 AND t.id + few.k > 100100 AND t.x <> 'a')");
	like($plan, qr/Semi Join.*GpuHashScan\) on t .*loops=6.*Engine: cuda/s, 'a scan on the device begins anew') or diag($plan);
	well($session, 'SELECT id, x FROM t WHERE n > -1 LIMIT 3');
	well($session, 'RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_material; RESET seq_page_cost;
		RESET gpuhash.device_start_cost; RESET gpuhash.device_page_cost; RESET gpuhash.device_bus_cost; DROP TABLE few');
	check('after scans that began anew') for 1, 2;
}

# Pages that changed get places in a few large pieces: each is a request of its own.
{
	well($other, "DROP TABLE t; CREATE TABLE t ($GpuHash::Resident::COLUMNS) WITH (fillfactor = 10, autovacuum_enabled = off); INSERT INTO t " . GpuHash::Resident::rows(1, 20000) . '; VACUUM t');
	GpuHash::Resident::warm($session);
	well($other, 'UPDATE t SET n = n + 1; VACUUM t; VACUUM t');
	my $before = well($session, 'SELECT requests FROM gpuhash_stat');
	well($session, 'SELECT sum(n) FROM t');
	my ($requests, $resident) = split /\|/, well($session, "SELECT requests - $before, (SELECT resident FROM gpuhash_resident WHERE relation = 't'::regclass) FROM gpuhash_stat");
	cmp_ok($requests, '<', 60, "$requests requests to bring pages of which $resident are there then");
	check('as it is then');
}

# Pages that lie scattered, since each second one has changed, are put in order by gpuhash_prewarm, if nobody uses them.
{
	my $COUNTS = 'SELECT pages - pages_resident, pages FROM gpuhash_stat';
	# how many pages it sends, and has looked at
	my $sent = sub { my @before = split /\|/, well($session, $COUNTS); GpuHash::Resident::warm($session); my @after = split /\|/, well($session, $COUNTS); return $after[0] - $before[0] };
	well($other, "DROP TABLE t; CREATE TABLE t ($GpuHash::Resident::COLUMNS) WITH (fillfactor = 10, autovacuum_enabled = off); INSERT INTO t " . GpuHash::Resident::rows(1, 5000) . '; VACUUM t; VACUUM t');
	my $pages = GpuHash::Resident::warm($session);
	is($sent->(), 0, 'pages in order are not sent again');
	well($other, "UPDATE t SET n = n + 1 WHERE ctid IN (SELECT format('(%s,1)', 2 * b)::tid FROM generate_series(0, $pages / 2 - 1) b); VACUUM t; VACUUM t");
	check('each second page has changed') for 1, 2;
	$service->arm('scan', 'delay', times => 1, ms => 1000);
	$reader->send('SELECT sum(n) FROM t');
	for (1 .. 100) { last if $service->fired > 0; select undef, undef, undef, 0.01 }
	is($sent->(), 0, 'nothing is given up that somebody uses');
	$reader->receive;
	$service->disarm;
	is($sent->(), $pages, "all $pages pages are sent in order");
	is($sent->(), 0, 'and then no more');
	is(check('in order'), $pages, 'all are there');
}

# Pages that changed and were vacuumed stay again, with the lines that VACUUM has freed; and so do they when these have tuples.
# Of a copy it is not known whether it was made before a line got a tuple.
if ($in_place)
{
	ok($service->wait_direct, 'pages are read where they are');
	fresh();
	well($other, 'DELETE FROM t WHERE id % 40 = 7; UPDATE t SET n = -5 WHERE id % 30 = 7; VACUUM t');
	check('lines were freed');
	my $pages = well($other, "SELECT pg_relation_size('t') / 8192");
	is(check('lines are free'), $pages, "all $pages pages are on the device");
	well($other, 'INSERT INTO t ' . GpuHash::Resident::rows(7001, 7020));
	cmp_ok(check('some have tuples'), '<', $pages, 'pages with new tuples were not used');
	well($other, 'VACUUM t');
	check('all is visible');
	is(check('once more'), $pages, "all $pages pages are on the device again");
}

# A page whose LSN is what it was need not be sent again, and need not be looked at again.
my $pages = fresh();
well($other, 'UPDATE t SET n = 0 WHERE id = 7; VACUUM t');
check('the page of the map has another LSN');
my $COUNTS = q{SELECT sum(hits), sum(revalidated) FROM gpuhash_resident WHERE relation::text = 't'};
my ($hits, $revalidated) = split /\|/, well($session, $COUNTS);
cmp_ok($revalidated, '>=', $pages - 2, "of $pages pages, $revalidated were looked at, and had not changed");
my $resident = check('and once more');
my ($hits_then, $revalidated_then) = split /\|/, well($session, $COUNTS);
is($revalidated_then, $revalidated, 'none is looked at again');
cmp_ok($hits_then - $hits, '>=', 5 * ($pages - 2), 'all are found');

# ---------------------------------------------- a transaction's own changes, cursors

fresh();
well($session, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
check('in a transaction', open => 1);
well($session, 'UPDATE t SET n = n + 1 WHERE id % 10 = 3; INSERT INTO t ' . GpuHash::Resident::rows(8001, 8100));
check('with changes of its own', open => 1);
well($session, 'SAVEPOINT a; DELETE FROM t WHERE id < 1000; SAVEPOINT b; UPDATE t SET x = NULL WHERE id > 2900');
check('with those of subtransactions', open => 1);
well($session, 'ROLLBACK TO b');
check('one of which is rolled back', open => 1);
well($session, 'ROLLBACK TO a');
check('as is the other one', open => 1);
well($other, 'DELETE FROM t WHERE id = 1002; UPDATE t SET n = 0 WHERE id = 1500; VACUUM t');
check('and others have written', open => 1);
well($session, 'TRUNCATE t; INSERT INTO t ' . GpuHash::Resident::rows(1, 50));
check('a new file of its own', open => 1);
well($session, 'ROLLBACK');
check('after ROLLBACK');
well($other, 'VACUUM t');
check('and VACUUM');

# A file that is truncated in place, for it is the transaction's own: pages of as many rows, that are others.
fresh();
well($session, $BEFORE_FREEZE);
check('COPY FREEZE in the transaction', open => 1) for 1, 2;
for my $value (5, 6)
{
	well($session, "TRUNCATE t; COPY t FROM PROGRAM 'seq -f \"%.0f\t1\t$value\t3\ty\" 1 2000' WITH (FREEZE)");
	check('the same file, with other rows', open => 1) for 1, 2;
}
well($session, 'SAVEPOINT a; DELETE FROM t WHERE id % 3 = 0; ROLLBACK TO a; COMMIT');
check('after COMMIT') for 1, 2;

# In read committed, each query has a snapshot of its own.
well($session, 'BEGIN');
for my $change ('UPDATE t SET n = 1 WHERE id = 20', 'DELETE FROM t WHERE id = 30; VACUUM t', 'INSERT INTO t ' . GpuHash::Resident::rows(8501, 8501), 'VACUUM (FREEZE) t')
{
	well($other, $change);
	check("READ COMMITTED: $change", open => 1);
}
well($session, 'COMMIT');

# Rows of a cursor are those of its snapshot, whatever is done after it was opened.
for my $case (
	['nothing was read', ''], ['some rows were read', 'FETCH 500 FROM c'])
{
	my ($name, $fetch) = @$case;
	for my $query (@GpuHash::Resident::QUERY{qw(groups joined scan)})
	{
		for my $change ('UPDATE t SET n = n + 5 WHERE id % 7 = 1', 'DELETE FROM t WHERE id % 200 = 6', 'INSERT INTO t ' . GpuHash::Resident::rows(7001, 7100))
		{
			fresh();
			my $native = $server->session;
			well($native, 'SET gpuhash.enabled = off; BEGIN ISOLATION LEVEL REPEATABLE READ');
			my $want = join "\n", sort split /\n/, well($native, $query);
			well($session, "BEGIN; DECLARE c NO SCROLL CURSOR FOR $query");
			my $got = well($session, $fetch);
			well($other, "$change; VACUUM t; VACUUM (FREEZE) t");
			well($session, $change);
			check('beside a cursor', session => $reader);
			$got .= "\n" . well($session, 'FETCH ALL FROM c');
			is(join("\n", sort grep { $_ ne '' } split /\n/, $got), $want, "the rows of a cursor of which $name: $change");
			well($session, 'COMMIT');
			$native->close;
			$compared++;
			check('and the next query');
		}
	}
}

# Rows in their order, back and forth, and again and again: the scan becomes PostgreSQL's at some page, of which it may
# be that nobody has read it.
my $BOTH = 'SELECT ctid, t.* FROM t WHERE n > -1000000000';
my @WAYS = (
	['back and forth', map { "DECLARE c SCROLL CURSOR FOR $BOTH; $_; CLOSE c" } 'FETCH 10 FROM c; FETCH BACKWARD 5 FROM c; FETCH ALL FROM c', 'FETCH 700 FROM c; FETCH BACKWARD 300 FROM c; FETCH 900 FROM c; FETCH BACKWARD ALL FROM c; FETCH ALL FROM c',
		'MOVE ALL FROM c; FETCH BACKWARD ALL FROM c', 'FETCH LAST FROM c; FETCH FIRST FROM c; FETCH ABSOLUTE 1234 FROM c; FETCH RELATIVE -1200 FROM c; FETCH RELATIVE 2500 FROM c'],
	['again', 'SELECT v.k, s.* FROM (VALUES (1), (2), (1)) v(k), LATERAL (SELECT ctid, id, n FROM t WHERE g < v.k OFFSET 0) s', 'SELECT v.k, s.* FROM (VALUES (1), (2), (3)) v(k), LATERAL (SELECT ctid, id, n FROM t WHERE n > v.k LIMIT 500 * v.k) s', 'SELECT * FROM (SELECT ctid, id FROM t WHERE n > 0 LIMIT 1700) s OFFSET 1600']);
for my $change ('SELECT 1', 'UPDATE t SET n = n + 1 WHERE id % 400 = 7', 'DELETE FROM t WHERE id BETWEEN 600 AND 900; VACUUM t')
{
	fresh();
	well($other, $change);
	for my $way (@WAYS)
	{
		my ($name, @scripts) = @$way;
		for my $i (0 .. $#scripts)
		{
			well($session, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
			my $got = well($session, $scripts[$i]);
			is($got, well($session, "SET LOCAL gpuhash.enabled = off; $scripts[$i]"), "$name, $i, after $change");
			well($session, 'COMMIT');
			$compared++;
		}
	}
}

# ------------------------------------------------------------- one after the other

my @RANDOM = (
	sub { 'UPDATE t SET n = n + 1 WHERE id % 500 = ' . int(rand(500)) }, sub { 'DELETE FROM t WHERE id % 900 = ' . int(rand(900)) },
	sub { my $i = 10000 + int(rand(10000)); 'INSERT INTO t ' . GpuHash::Resident::rows($i, $i + int(rand(80))) },
	sub { 'BEGIN; UPDATE t SET b = 0 WHERE id % 300 = ' . int(rand(300)) . '; ROLLBACK' }, sub { 'VACUUM t' }, sub { 'VACUUM t' }, sub { 'VACUUM (FREEZE) t' },
	sub { 'SELECT count(*) FROM (SELECT FROM t WHERE id % 40 = ' . int(rand(40)) . ' FOR UPDATE) s' }, sub { 'DELETE FROM t WHERE ctid >= \'(60,0)\'; VACUUM t' },
	sub { 'BEGIN; SAVEPOINT a; DELETE FROM t WHERE id % 90 = ' . int(rand(90)) . '; ROLLBACK TO a; UPDATE t SET g = 3 WHERE id % 700 = ' . int(rand(700)) . '; COMMIT' },
	sub { 'VACUUM (DISABLE_PAGE_SKIPPING) t' }, sub { 'CHECKPOINT' }, sub { 'UPDATE t SET x = x || 1 WHERE g = ' . int(rand(60)) }, sub { rand() < 0.2 ? 'VACUUM FULL t' : 'SELECT 1' });

fresh();
for my $event (1 .. $events)
{
	my $sql = $RANDOM[int(rand(@RANDOM))]->();
	well($other, $sql);
	# not each change is followed by a query
	check("event $event: $sql") if rand() < 0.7;
}
check('after the last event');

# ------------------------------------------------------- two pages of the map

# A row a page; the second page of the map begins with the block of that number.
my $SECOND = 32672;
my %LARGE = (sums => 'SELECT count(*), sum(n), sum(b), min(id), max(id) FROM t', scan => 'SELECT ctid, id, n FROM t WHERE n > 0');
well($session, "DROP TABLE t; CREATE TABLE t ($GpuHash::Resident::COLUMNS) WITH (fillfactor = 10, autovacuum_enabled = off); INSERT INTO t SELECT i, 0, i, 0, repeat('x', 900) FROM generate_series(0, $SECOND + 300) i; VACUUM ANALYZE t");
# VACUUM passes over pages that are being written
for (1 .. 10)
{
	well($other, 'VACUUM t');
	last if well($other, "SELECT relallvisible = relpages FROM pg_class WHERE oid = 't'::regclass") eq 't';
}
$pages = GpuHash::Resident::warm($session);
is($pages, $SECOND + 301, 'a table with two pages of its map') or
	diag(well($session, q{SELECT relallvisible, relpages, (SELECT row(r.*) FROM gpuhash_resident r WHERE relation = 't'::regclass) FROM pg_class WHERE relname = 't'}));
is(check('it is on the device', queries => \%LARGE), $pages, 'as a whole');
for my $rows ("5, $SECOND - 1", "$SECOND, $SECOND + 300", "7, $SECOND + 2")
{
	well($other, "UPDATE t SET n = n + 1 WHERE id IN ($rows)");
	$resident = check("rows $rows have changed", queries => \%LARGE);
	# pages that are read ahead may be sent again
	ok($resident <= $pages - 2 && $resident > $pages - 500, "their pages are not used, most of the others are: $resident of $pages");
	# what was sent for that query is there now: this one finds others
	well($other, "UPDATE t SET n = n + 1 WHERE id IN ($rows)");
	my $plan = join("\n", $session->do('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT sum(n) FROM t'));
	like($plan, qr/Page Supply: resident\s+Resident Pages: \d+\s+Pages Pinned: \d+\s+Pages Copied: \d+/,
		'most were there, and of the others EXPLAIN tells how they came') or diag($plan);
	well($other, "DELETE FROM t WHERE id IN ($rows); VACUUM t");
	check("rows $rows are gone", queries => \%LARGE);
	well($other, "INSERT INTO t SELECT i, 1, i + 5, 0, repeat('y', 900) FROM unnest(ARRAY[$rows]) i; VACUUM t");
	check("and there are others", queries => \%LARGE) for 1, 2;
}

note("$compared answers were compared, $used pages of them were on the device before");
cmp_ok($used, '>', 10000, 'pages were used that were on the device');
$_->close for $session, $other, $reader;
like($service->settle, $GpuHash::Service::CLEAN, 'all was given back');
unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
done_testing();
