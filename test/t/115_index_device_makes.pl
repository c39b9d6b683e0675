# The copy of an index on a device as it is made (src/index/copy_device.c): what is in the index, and what is written while its
# leaf pages are read; where the making ends early, by whoever, nothing is left of it, and the next one makes it.  In the place
# of the CUDA engine there is a stand-in (test/fault), unless GPUHASH_STAND_IN is "no".
use GpuHash::Test 'module';
use GpuHash::Index;
use GpuHash::Service;
use Time::HiRes qw(time sleep);

my $service = GpuHash::Service->new(conf => ['shared_buffers = 256MB', 'max_connections = 20', 'max_worker_processes = 16', 'bgwriter_lru_maxpages = 0', 'max_wal_size = 4GB']);
my $server = $service->server;
ok($service->wait_ready, 'the service is ready');
my ($session, $writer, $other) = map { $server->session } 1 .. 3;
my $QUERY = 'SELECT count(*), sum(o.v), sum(s.a), count(s.k) FROM o LEFT JOIN s ON s.k = o.k';
my $PREWARM = "SELECT gpuhash_prewarm('s_k')";
my $COPIES = "SELECT count(*) FROM gpuhash_resident WHERE relation::text = 's_k' AND tables = 1 AND device";
well($session, 'CREATE TABLE o AS SELECT i * 7919::bigint % 13000 - 1000 AS k, i::bigint AS v FROM generate_series(1, 30000) i');
well($session, 'VACUUM ANALYZE o');

sub fresh
{
	my ($rows, $options, $unlogged) = @_;
	my $index = $options || '(k) INCLUDE (a)';
	well($writer, "DROP TABLE IF EXISTS s; CREATE " . ($unlogged // '') . " TABLE s (k bigint, a bigint, c int); $rows; CREATE INDEX s_k ON s USING gpuhash $index");
	return well($writer, 'VACUUM ANALYZE s');
}
my $ROWS = 'INSERT INTO s SELECT i, i * 3, 0 FROM generate_series(1, 12000) i';

sub made { my ($what) = @_; return is(well($session, "$PREWARM > 0; $COPIES IS NOT NULL"), "t\n1", "$what: the copy is made") }

# PostgreSQL's answer, in one snapshot; by: by the copy, or not, or in whatever way; heap: with blocks of the table.
sub right
{
	my ($what, $by, %options) = @_;
	my $in = $options{in} // $session;
	my $query = $options{query} // $QUERY;
	well($in, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $got = well($in, $query);
	my $plan = well($in, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query");
	is($got, well($in, "SET LOCAL gpuhash.enabled = off; $query"), $what);
	well($in, 'COMMIT');
	return if !defined $by;
	($by ? \&like : \&unlike)->($plan, qr/Engine: cuda.*Inner Index: s\w*_k\n\s+Blocks From Index/s, '  ' . ($by ? '' : 'not ') . 'by the copy') or diag($plan);
	like($plan, qr/Blocks From Heap: [1-9]/, '  and blocks of the table') or diag($plan) if $options{heap};
	return $plan;
}

sub hold { my ($after) = @_; return $service->arm('index_leaf', 'hold', after => $after // 2) }
sub release { return $service->disarm }

sub await
{
	my ($what, $is_so) = @_;
	for (1 .. 600) { return 1 if $is_so->(); sleep 0.02 }
	return fail($what);
}

# A session makes the copy, and is held behind a leaf page.
sub hold_maker
{
	my ($in, $after) = @_;
	hold($after);
	$in->send($PREWARM);
	return await('the maker is held', sub { $service->fired == 1 });
}

# ------------------------------------------------------------------ what is in the index

# keys of many rows share their entries: those that are few are read on the host, and of too many there is no copy
fresh('INSERT INTO s SELECT i % 100, i, 0 FROM generate_series(1, 12000) i; INSERT INTO s SELECT i, i, 0 FROM generate_series(100, 9000) i', '(k)');
made('entries of several rows');
my $keys = 'SELECT count(*), sum(o.v), sum(s.k) FROM o JOIN s ON s.k = o.k';
right('entries of several rows', 1, query => $keys);
well($writer, 'DELETE FROM s WHERE k = 7 AND a < 700; INSERT INTO s SELECT 8, i, 1 FROM generate_series(1, 50) i');
right('some of them deleted, and others new', 1, query => $keys, heap => 1);
well($writer, 'VACUUM (INDEX_CLEANUP on) s');
right('and vacuumed', 1, query => $keys);
made('once more');
right('by the other one', 1, query => $keys);
fresh("INSERT INTO s SELECT i % 100, i, 0 FROM generate_series(1, 900000) i", '(k)');
is(well($session, "$PREWARM > 0; $COPIES IS NOT NULL"), "t\n0", 'of too many there is none on the device');
is(($service->disarm, well($session, "SELECT count(*) FROM gpuhash_resident WHERE relation::text = 's_k' AND device IS NULL"))[1], 1, '  but one in shared memory');
right('the join is made of pages', 0, query => 'SELECT count(*), sum(s.k) FROM o JOIN s ON s.k = o.k WHERE o.v < 300');

# nothing, a page, keys that are NULL
for my $case (['no rows', 'SELECT', 0], ['one page', 'INSERT INTO s SELECT i, i, 0 FROM generate_series(1, 100) i', 0], ['NULL keys', "$ROWS; INSERT INTO s SELECT NULL, i, 0 FROM generate_series(1, 1000) i", 1],
	['NULL keys alone', 'INSERT INTO s SELECT NULL, i, 0 FROM generate_series(1, 12000) i', undef], ['NULL columns', "$ROWS; UPDATE s SET a = NULL WHERE k % 3 = 0", undef])
{
	my ($what, $rows, $by) = @$case;
	fresh($rows);
	my ($out, $error) = $session->do("$PREWARM >= 0");
	like("$out$error", qr/^t$|no copy of index/, "$what: a copy is made, or none can be");
	for my $type (qw(LEFT RIGHT FULL INNER))
	{
		right("$what: $type", $by, query => $QUERY =~ s/LEFT/$type/r);
	}
	well($writer, 'INSERT INTO s VALUES (NULL, 5, 1), (5, 6, 1)');
	right("$what: $_, and rows that are new", undef, query => $QUERY =~ s/LEFT/$_/r) for qw(LEFT RIGHT FULL);
}

# values that are compressed in the index, or are long, and numerics
fresh("$ROWS; ALTER TABLE s ADD t text, ADD n numeric(20, 3); UPDATE s SET n = k / 7.0, t = CASE k % 500 WHEN 1 THEN repeat('long ', 500) || k WHEN 2 THEN repeat(md5(k::text), 10) WHEN 3 THEN NULL ELSE 't' || k END", '(k) INCLUDE (t, n)');
well($writer, 'VACUUM FULL s');
well($writer, 'VACUUM ANALYZE s');
made('long values');
for my $query ('SELECT s.t, count(*), sum(s.n) FROM o LEFT JOIN s ON s.k = o.k GROUP BY 1 ORDER BY length(s.t) DESC NULLS LAST, 1 LIMIT 80', 'SELECT count(s.t), sum(s.n), count(*) FROM o LEFT JOIN s ON s.k = o.k')
{
	right('long values', 1, query => $query);
	well($writer, 'UPDATE s SET n = n + 1 WHERE k IN (501, 502)');
	right('of which some have changed', undef, query => $query);
}

# a right or full join does not tell changes apart
fresh($ROWS);
made('right and full joins');
right("$_ JOIN", 1, query => $QUERY =~ s/LEFT/$_/r) for qw(RIGHT FULL);
well($writer, 'UPDATE s SET a = a + 1 WHERE k = 50');
right("$_ JOIN of rows that have changed", 0, query => $QUERY =~ s/LEFT/$_/r) for qw(RIGHT FULL);
right('but a left one does', 1, heap => 1);

# ------------------------------------------------------------------ who makes it

# what there is stays, whichever session looks, and whatever its executor of the service is
fresh($ROWS);
made('by one session');
my $since = well($session, "SELECT last_used FROM gpuhash_resident WHERE relation::text = 's_k' AND device = 0");
$service->arm('index_leaf', 'delay', ms => 1);
for (1 .. 6)
{
	my $in = $server->session;
	$in->send($PREWARM);
	cmp_ok(($in->receive)[0], '>', 0, 'another session finds it');
	push @{ $service->{sleepers} }, $in;
}
is($service->fired, 0, '  and makes none');
release();
$_->close for @{ $service->{sleepers} };

# two at a time
fresh($ROWS);
for my $first (0, 1)
{
	well($writer, 'UPDATE s SET a = a + 1 WHERE k < 300');
	well($writer, 'VACUUM s');
	hold_maker($session, 4);
	# with another fault armed the one that is held goes on, but not before it has begun
	$other->send($first ? "SELECT pg_sleep(0.3); $PREWARM" : $PREWARM);
	if (!$first)
	{
		my ($out, $error) = $other->receive;
		cmp_ok("$out$error", '>', 0, 'the second one is through before the first one');
	}
	release();
	my @out = map { ($_->receive)[0] } $first ? ($session, $other) : $session;
	cmp_ok($_ =~ /(\d+)\s*$/ ? $1 : 0, '>', 0, 'a maker of two is done: ' . ($first ? 'beside each other' : 'the first one')) for @out;
	is(well($session, "$COPIES IS NOT NULL"), 1, '  there is one copy');
	right('  of two', 1);
}

# ------------------------------------------------------------------ what is written meanwhile

# rows on blocks that come while it is made are none of the copy's
fresh($ROWS);
hold_maker($session, 2);
well($writer, 'INSERT INTO s SELECT i, -i, 2 FROM generate_series(11600, 11999) i');
release();
cmp_ok(($session->receive)[0], '>', 0, 'the table has grown while the copy was made');
right('the rows that are new', 1, heap => 1);
well($writer, 'VACUUM (INDEX_CLEANUP on) s');
right('and vacuumed', 1, heap => 1);
well($writer, 'DELETE FROM s WHERE c = 2');
well($writer, 'VACUUM (INDEX_CLEANUP on, TRUNCATE on) s');
right('deleted, and their blocks gone', 1);
right("deleted, and their blocks gone: $_", undef, query => $QUERY =~ s/LEFT/$_/r) for qw(RIGHT FULL);
well($writer, 'INSERT INTO s SELECT i, 7, 3 FROM generate_series(11500, 11900) i');
right('others there', undef);
well($writer, 'VACUUM s');
right('others there, vacuumed', undef);

# pages split, entries are removed, and rows change
# the pages are read where they are, and again as copies if they have changed; of what is not logged, they are copied at once
for my $case ([0, ''], [2, ''], [9, ''], [2, 'UNLOGGED'], [9, 'UNLOGGED'])
{
	my ($after, $unlogged) = @$case;
	my $what = "changes behind leaf page $after" . ($unlogged ? ', unlogged' : '');
	fresh($ROWS, undef, $unlogged);
	hold_maker($session, $after);
	well($writer, 'INSERT INTO s SELECT i, 1, 1 FROM generate_series(1, 12000, 8) i; DELETE FROM s WHERE k BETWEEN 5000 AND 5200; UPDATE s SET k = k + 1 WHERE k BETWEEN 9000 AND 9100');
	well($writer, 'VACUUM (INDEX_CLEANUP on) s');
	release();
	my ($out, $error) = $session->receive;
	is($error, '', "$what: it is made");
	right($what, undef);
	well($writer, 'DELETE FROM s WHERE c = 1');
	right('  rows are deleted', undef);
	well($writer, 'VACUUM (INDEX_CLEANUP on) s');
	right('  and vacuumed', undef);
}

# ------------------------------------------------------------------ where it ends early

sub memory_used { return well($other, "SELECT memory_used FROM gpuhash_devices WHERE engine = 'cuda'") }

# no more than before, at last; less where a table of the join before has gone
sub nothing_left
{
	my ($what, $before) = @_;
	my $used;
	for (1 .. 300) { last if ($used = memory_used()) <= $before; sleep 0.02 }
	return cmp_ok($used, '<=', $before, "$what: no memory of the device is left");
}

fresh($ROWS);
right('a join before', 0);
well($writer, 'DROP INDEX s_k; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a)');
well($session, 'SELECT count(*) FROM gpuhash_resident');
my $before = memory_used();
for my $how ('statement_timeout', 'cancelled', 'terminated')
{
	my $maker = $server->session;
	my $pid = well($maker, 'SELECT pg_backend_pid()');
	well($maker, "SET statement_timeout = '150ms'") if $how eq 'statement_timeout';
	hold_maker($maker, 3);
	sleep 0.2 if $how eq 'statement_timeout';
	well($other, "SELECT pg_cancel_backend($pid)") if $how eq 'cancelled';
	well($other, "SELECT pg_terminate_backend($pid)") if $how eq 'terminated';
	release();
	my ($out, $error) = eval { $maker->receive };
	like(($out // '') . ($error // $@), $how eq 'terminated' ? qr/57P01|terminat|closed|ended/ : qr/57014/, "$how: the making ends");
	await("$how: the process is free", sub { well($other, "SELECT count(*) FROM pg_stat_activity WHERE pid = $pid AND state = 'active'") == 0 });
	nothing_left($how, $before);
	is(well($other, "$COPIES IS NOT NULL"), 0, '  there is no copy');
	right("$how: a join", 0);
	eval { $maker->close };
}
# tables of joins may stay
well($writer, 'UPDATE s SET c = 1 WHERE k = 1');
well($writer, 'VACUUM s');

# the device fails at each request in turn, of an index of few leaf pages
fresh('INSERT INTO s SELECT i, i * 3, 0 FROM generate_series(1, 2400) i');
my ($tried, $n) = (0, 0);
for ($n = 0; $n < 60; $n++)
{
	well($writer, 'DROP INDEX s_k; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a)');
	$service->arm('any', 'launch', after => $n);
	my ($out, $error) = $session->do("$PREWARM > 0");
	my $fired = $service->disarm;
	last if $fired == 0;
	$tried++;
	is("$out$error", 't', "the device fails at request $n: no error");
	ok($service->wait_ready, '  and is back');
	right('  the answer', undef);
	well($session, $PREWARM);
	right('  and by the copy that is made then', 1);
}
cmp_ok($tried, '>=', 3, "$tried failures, of all requests of a copy that is made");
cmp_ok($n, '<', 60, '  and then none');

# ------------------------------------------------------------------ what becomes of the index

# a query has the copy, and then it is dropped, or made again
for my $sql ('DROP INDEX s_k', 'REINDEX INDEX s_k')
{
	fresh($ROWS);
	made($sql);
	my $cursor = $server->session;
	my $want = well($cursor, "SET gpuhash.enabled = off; $QUERY; RESET gpuhash.enabled");
	well($cursor, "BEGIN; SET LOCAL cursor_tuple_fraction = 1; DECLARE c CURSOR FOR SELECT s.a FROM o JOIN s ON s.k = o.k");
	well($cursor, 'FETCH 10 FROM c');
	$writer->send($sql);
	await("$sql waits", sub { well($other, 'SELECT count(*) FROM pg_locks WHERE NOT granted') > 0 });
	my $rest = () = split /\n/, well($cursor, 'FETCH ALL FROM c'), -1;
	well($cursor, 'COMMIT');
	is(($writer->receive)[1], '', "$sql is done");
	is(10 + $rest, well($cursor, 'SET gpuhash.enabled = off; SELECT count(*) FROM o JOIN s ON s.k = o.k'), '  the query had all rows');
	$cursor->close;
	right("$sql: a join", 0);
	is(well($other, "SELECT count(*) FROM gpuhash_resident WHERE device = 0 AND relation IS NOT NULL AND tables > 0 AND relation::text = 's_k'"), 0, '  by no copy');
}

# ------------------------------------------------------------------ joins that take it

fresh($ROWS);
made('several joins');
well($writer, 'CREATE TABLE s2 AS SELECT k, a AS b FROM s; CREATE INDEX s2_k ON s2 USING gpuhash (k) INCLUDE (b); CREATE TABLE plain AS SELECT k, a AS d FROM s');
well($writer, "VACUUM ANALYZE $_") for 's2', 'plain';
my $SEVERAL = 'SELECT count(*), sum(o.v), sum(s.a), sum(s2.b), sum(p.d) FROM o JOIN s ON s.k = o.k LEFT JOIN s2 ON s2.k = o.k LEFT JOIN plain p ON p.k = o.k';
my $PARALLEL = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0';
well($session, 'SET join_collapse_limit = 1');
for my $copies (1, 2)
{
	cmp_ok(well($session, "SELECT gpuhash_prewarm('s2_k')"), '>', 0, 'and another index') if $copies == 2;
	for my $workers (0, 1)
	{
		well($session, $workers ? $PARALLEL : 'SET max_parallel_workers_per_gather = 0');
		for my $again (1, 2)
		{
			my $plan = right("$copies of 3 joins, " . ($workers ? 'in parallel' : 'in one process'), 1, query => $SEVERAL);
			my $n = () = $plan =~ /Blocks From Index/g;
			is($n, $copies, "  by $copies copies");
		}
	}
}
well($session, 'SET max_parallel_workers_per_gather = 0');
well($writer, 'INSERT INTO s2 VALUES (9, 9); UPDATE s SET a = 0 WHERE k = 9');
right('rows of both have changed', 1, query => $SEVERAL, heap => 1);
well($session, 'BEGIN ISOLATION LEVEL SERIALIZABLE');
unlike(well($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $SEVERAL"), qr/Blocks From Index/, 'a serializable transaction does without');
well($session, 'COMMIT');

# ------------------------------------------------------------------ by whom it is made

for my $engine ('cuda', 'cpu')
{
	fresh($ROWS);
	well($session, "SET gpuhash.engine = '$engine'; $PREWARM");
	is(well($session, "SELECT string_agg(coalesce(device::text, 'shared memory'), ' ') FROM gpuhash_resident WHERE relation::text = 's_k' AND tables = 1"),
		$engine eq 'cuda' ? '0' : 'shared memory', "engine $engine: where the copy is");
	right('  the answer', undef);
	well($session, 'RESET gpuhash.engine');
}

# a thousand rows a key, one of which has changed; dropped behind a cursor; and gone with its worker
fresh('INSERT INTO s SELECT i % 20, i, 0 FROM generate_series(1, 20000) i');
made('many rows a key');
right('many rows a key', 1);
well($writer, 'INSERT INTO s VALUES (3, 3, 3)');
right('many rows a key, one of which is new', 1, heap => 1);
fresh($ROWS);
made('behind a cursor');
is(well($session, "BEGIN; DECLARE c CURSOR FOR $QUERY; DROP INDEX s_k; FETCH c"), well($session, "ROLLBACK; SET gpuhash.enabled = off; $QUERY"), 'an index that was dropped behind a cursor');
well($session, 'RESET gpuhash.enabled');
# what was kept meanwhile has taken it for gone
made('it is there again');
kill TERM => well($other, "SELECT worker_pid FROM gpuhash_devices WHERE engine = 'cuda'");
await('the worker has gone', sub { well($other, "SELECT worker_starts FROM gpuhash_devices WHERE engine = 'cuda'") > 1 });
ok($service->wait_ready && $service->wait_direct, 'and is back');
right('the copy has gone with its worker', 0);
made('it can be made again');
right('and is there', 1);

# in the background, once many blocks have changed
well($writer, 'ALTER SYSTEM SET gpuhash.reload_resident = on');
well($writer, 'SELECT pg_reload_conf()');
fresh($ROWS);
made('to be made again');
well($writer, 'DELETE FROM s WHERE k % 40 = 0');
well($writer, 'VACUUM (INDEX_CLEANUP on) s');
hold(2);
await('a worker makes another one', sub { well($session, $QUERY); $service->fired == 1 });
right('while it is made', undef);
well($writer, 'INSERT INTO s SELECT i, -2, 0 FROM generate_series(5000, 5010) i');
right('with rows that are new', undef);
release();
await('another one is there', sub { well($session, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $QUERY") =~ /Blocks From Index/ });
right('by the other one', 1, heap => 1);

$_->close for $session, $writer, $other;
like($service->settle, qr/buffers 0, slots 0/, 'no buffer is left over');
unlike($server->log, qr/PANIC|TRAP:|terminated by signal/, 'nothing failed');
# the next one has another library in the same place
$service->stop;

# of two devices each has one
SKIP: {
	skip 'two devices: GPUHASH_GPUS does not say that there are two', 1 if ($ENV{GPUHASH_STAND_IN} || '') eq 'no' && ($ENV{GPUHASH_GPUS} || 1) < 2;
	my $two = GpuHash::Service->new(devices => 2, conf => ['shared_buffers = 128MB']);
	ok($two->wait_ready, 'two devices are ready');
	my $in = $two->server->session;
	well($in, "CREATE TABLE o AS SELECT i AS k, i AS v FROM generate_series(1, 30000) i; CREATE TABLE s (k bigint, a bigint); INSERT INTO s SELECT i, i * 3 FROM generate_series(1, 12000) i; CREATE INDEX s_k ON s USING gpuhash (k) INCLUDE (a)");
	well($in, "VACUUM ANALYZE $_") for 's', 'o';
	well($in, $PREWARM) for 1, 2;
	is(well($in, "SELECT string_agg(device::text, ' ' ORDER BY device) FROM gpuhash_resident WHERE relation::text = 's_k' AND tables = 1"), '0 1', 'copies on two devices');
	my @sessions = ($in, map { $two->server->session } 1 .. 3);
	right('by a device', 1, in => $_) for @sessions;
	well($in, 'UPDATE s SET a = 0 WHERE k = 10');
	right('by a device, of what has changed', 1, in => $_, heap => 1) for @sessions;
	$_->close for @sessions;
	unlike($two->server->log, qr/PANIC|TRAP:|terminated by signal/, 'nothing failed there');
}
done_testing();
