# Named hash tables when their GPU fails: with a host copy nothing is lost,
# without one every call says so until the table is cleared.  A stand-in for the
# CUDA engine (test/fault) fails on demand.
use GpuHash::Test;
use GpuHash::Fault;

my $fault = GpuHash::Fault->needed;
my $server = GpuHash::Server->new(conf => [
	"session_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cuda'", 'jit = off']);

sub fail_after { return $fault->fail_after(@_) }
sub repair { return $fault->repair }

$server->query('CREATE EXTENSION gpuhash');
$server->query(<<'SQL');
CREATE TABLE keys AS
	SELECT n, array_agg(x ORDER BY o) AS k, array_agg(x * 10 ORDER BY o) AS v,
		array_agg(decode(lpad(to_hex(x), 16, '0') || md5(x::text), 'hex') ORDER BY o) AS b
	FROM (SELECT n, i * 7919 % 30000 AS x, i * 31 % 20011 AS o FROM generate_series(1, 3) n, generate_series(n::bigint, 20000) i) s
	GROUP BY n;
-- everything that is in the tables, values as bytea
CREATE FUNCTION content() RETURNS TABLE (t text, key bigint, value bytea) LANGUAGE sql AS $$
	WITH everything AS MATERIALIZED (SELECT array_agg(i::bigint) AS k FROM generate_series(0, 30000) i)
	SELECT 'one', key, int8send(value) FROM everything, gpuhash_find_all('one', k)
	UNION ALL SELECT 'many', key, int8send(value) FROM everything, gpuhash_find_all('many', k)
	UNION ALL SELECT 'wide', key, value FROM everything, gpuhash_find_all_bytea('wide', k)
	UNION ALL SELECT 'wide_many', key, value FROM everything, gpuhash_find_all_bytea('wide_many', k)
	UNION ALL SELECT 'set', i, NULL FROM everything, unnest(k, gpuhash_contains('set', k)) u (i, found) WHERE found
$$;
SQL

my $CREATE = q{SELECT gpuhash_create('one'), gpuhash_create('many', multi => true), gpuhash_create('wide', 24),
	gpuhash_create('wide_many', 24, true), gpuhash_create('set', 0)};
my %INSERT = (
	one => q{gpuhash_insert('one', k, v)}, many => q{gpuhash_insert('many', k, v)}, set => q{gpuhash_insert('set', k)},
	wide => q{gpuhash_insert('wide', k, b)}, wide_many => q{gpuhash_insert('wide_many', k, b)});

sub difference
{
	my ($session) = @_;
	my ($out, $err) = $session->do(q{SELECT count(*) FROM
		((TABLE before EXCEPT ALL SELECT * FROM content()) UNION ALL (SELECT * FROM content() EXCEPT ALL TABLE before)) d});
	diag($err) if $err =~ /ERROR/;
	return $out;
}

# a look-up of so many keys goes to the device
my $LARGE = q{(SELECT array_agg(i::bigint) FROM generate_series(1, 5000) i)};

# found by a look-up
my $session = $server->session;
$session->do($CREATE);
$session->do("SELECT $INSERT{$_} FROM keys") for sort keys %INSERT;
my ($out, $err) = $session->do(q{SELECT DISTINCT engine, device, status FROM gpuhash_tables});
is($out, 'cuda|0|ready', 'tables are on the device');
$session->do('CREATE TEMP TABLE before AS SELECT * FROM content()');
fail_after(0);
($out, $err) = $session->do(q{SELECT gpuhash_find('one', 7919)});
is("$out$err", '79190', 'a small look-up does not need the device');
($out, $err) = $session->do(qq{SET client_min_messages = warning; SELECT (gpuhash_find('one', $LARGE || 7919::bigint))[5001]});
is($out, '79190', 'the look-up that finds the device failed is answered');
like($err, qr/WARNING.*hash table "one" continues on the CPU engine/, 'and says what happened');
($out, $err) = $session->do(qq{SELECT (gpuhash_find('one', $LARGE || 7919::bigint))[5001]});
is("$out$err", '79190', 'once');
is(difference($session), '0', 'nothing is lost');
($out, $err) = $session->do(q{SELECT DISTINCT engine, device, status FROM gpuhash_tables});
is($out, 'cpu||ready', 'tables are on the host');
is(($session->do(q{SELECT engine_reason FROM gpuhash_table_stats('one')}))[0], 'the GPU failed', 'which says why');
($out, $err) = $session->do(q{SELECT gpuhash_delete('wide', k[1:100]), gpuhash_insert('wide', k, b) FROM keys WHERE n = 1});
is($out, '100|100', 'and can be changed');
repair();
$session->do(qq{SELECT gpuhash_find('one', $LARGE)});
is(($session->do(q{SELECT engine FROM gpuhash_tables WHERE name = 'one'}))[0], 'cpu', 'it does not try the device again at once');
$session->close;

# in the middle of a modification, at every kind of table and after every number of requests
for my $table (sort keys %INSERT)
{
	for my $requests (0, 1, 2, 5)
	{
		repair();
		$session = $server->session;
		$session->do('SET gpuhash.engine = cpu');
		$session->do($CREATE);
		my $changes = "SELECT $INSERT{$table} FROM keys ORDER BY n; SELECT gpuhash_delete('$table', k[500:1500]) FROM keys WHERE n = 2";
		my ($want) = $session->do($changes);
		$session->do('CREATE TEMP TABLE before AS SELECT * FROM content()');
		$session->do('SELECT gpuhash_drop(name) FROM gpuhash_tables');
		$session->do('SET gpuhash.engine = cuda');
		$session->do($CREATE);
		fail_after($requests);
		my ($got, $messages) = $session->do($changes);
		is($got, $want, "$table: the same counts, with a failure after $requests requests");
		unlike($messages, qr/ERROR/, "$table: no error");
		is(difference($session), '0', "$table: the same content");
		$session->close;
	}
}
repair();

# cancelled changes: device and host copy stay the same
$session = $server->session;
$session->do($CREATE);
my $cancelled = 0;
srand(20240607);
for (1 .. 150)
{
	my $table = (sort keys %INSERT)[ int rand 5 ];
	my $n = 1 + int rand 3;
	my $change = rand() < 0.6 ? $INSERT{$table} : sprintf("gpuhash_delete('%s', k[%d:%d])", $table, rand 10000, 10000 + rand 10000);
	# the change many times over: more work than any of the timeouts allows
	my (undef, $messages) = $session->do(sprintf('SET statement_timeout = %d; SELECT %s FROM keys, generate_series(1, 20) WHERE n = %d',
		1 + rand 8, $change, $n));
	$cancelled++ if $messages =~ /57014/;
}
$session->no_timeout;
cmp_ok($cancelled, '>=', 20, 'of 150 changes, many were cancelled');
note("$cancelled of 150 changes were cancelled");
$session->do('CREATE TEMP TABLE before AS SELECT * FROM content()');
is(($session->do(q{SELECT count(*) FROM before WHERE t LIKE 'wide%' AND value <> decode(lpad(to_hex(key), 16, '0') || md5(key::text), 'hex')}))[0],
	'0', 'every value belongs to its key');
fail_after(0);
is(difference($session), '0', 'after cancelled changes, the host copy has what the device had');
is(($session->do('SELECT DISTINCT engine FROM gpuhash_tables'))[0], 'cpu', 'all on the host');
$session->close;
repair();

# cancelled gpuhash_clear: what it began is finished, in the table, its values and the host copy
$session = $server->session;
$session->do(q{SELECT gpuhash_create('w', 32); SET statement_timeout = 0});
my $FILL = sprintf q{SELECT gpuhash_load('w', 'SELECT i, ''\x%s''::bytea FROM generate_series(1, 1000000) i')}, 'ab' x 32;
$session->do($FILL);
my ($bytes) = $session->do(q{SELECT bytes FROM gpuhash_tables});
$cancelled = 0;
for my $timeout (1, 2, 1, 2, 1, 2)
{
	(undef, $err) = $session->do("SET statement_timeout = $timeout; SELECT gpuhash_clear('w')");
	$cancelled++ if $err =~ /57014/;
	$session->no_timeout;
	$session->do($FILL);
}
($out) = $session->do(q{SELECT keys, entries FROM gpuhash_tables});
is($out, '1000000|1000000', "full again after $cancelled of 6 cancelled clears");
cmp_ok(($session->do(q{SELECT bytes FROM gpuhash_tables}))[0], '<', 1.05 * $bytes, 'and no larger: no slot of a value was lost');
# a cancel that is there when the clear begins
my $CANCELLED_CLEAR = q{SELECT pg_cancel_backend(pg_backend_pid()), gpuhash_clear('w')};
(undef, $err) = $session->do($CANCELLED_CLEAR);
like($err, qr/57014/, 'a clear that is cancelled at once');
is(($session->do(q{SELECT keys, bytes < 1000000 FROM gpuhash_tables}))[0], '0|t', 'leaves an empty table');
$session->do($FILL);
(undef, $err) = $session->do($CANCELLED_CLEAR);
like($err, qr/57014/, 'cancelled again');
fail_after(0);
($out, $err) = $session->do(qq{SELECT array_remove(gpuhash_find_bytea('w', $LARGE), NULL)});
is("$out$err", '{}', 'no key comes back from the host copy when the device fails then');
is(($session->do(q{SELECT keys, engine FROM gpuhash_tables}))[0], '0|cpu', 'empty');
repair();
$session->do('SET gpuhash.engine = cuda');
$session->do(q{SELECT gpuhash_drop('w'), gpuhash_create('w')});
$session->do(q{SELECT gpuhash_insert('w', 1, 1)});
fail_after(0);
($out, $err) = $session->do(q{SELECT gpuhash_clear('w')});
like($err, qr/WARNING.*continues on the CPU engine/, 'a clear that finds the device failed');
is(($session->do(q{SELECT keys, engine FROM gpuhash_tables}))[0], '0|cpu', 'is done in the host copy');
$session->close;
repair();

# without a host copy
$session = $server->session;
$session->do(q{SELECT gpuhash_create('t', host_copy => false), gpuhash_create('w', 100, host_copy => false)});
$session->do(q{SELECT gpuhash_insert('t', 1, 1), gpuhash_insert('w', ARRAY[1], ARRAY[decode(repeat('ab', 100), 'hex')])});
fail_after(0);
for my $sql (
	q{SELECT gpuhash_find('t', 1)}, q{SELECT gpuhash_insert('t', 2, 2)}, q{SELECT gpuhash_delete('t', ARRAY[1])},
	q{SELECT gpuhash_load('t', 'SELECT 1, 1')}, q{SELECT * FROM gpuhash_table_stats('t')},
	q{SELECT gpuhash_find_bytea('w', 1)})
{
	(undef, $err) = $session->do($sql);
	like($err, qr/55000: hash table "[tw]" was lost with its GPU.*HINT: .*gpuhash_clear/s, "lost: $sql");
}
is(($session->do(q{SELECT name, status, engine IS NULL, keys IS NULL FROM gpuhash_tables}))[0], "t|lost|t|t\nw|lost|t|t", 'the view says lost');
(undef, $err) = $session->do(q{SELECT gpuhash_clear('t')});
like($err, qr/55000/, 'not to be cleared while the device fails and must be used');
($out, $err) = $session->do(q{SET gpuhash.engine = auto; SELECT gpuhash_clear('t'), gpuhash_clear('w')});
is($err, '', 'but cleared when another engine may be');
is(($session->do(q{SELECT gpuhash_insert('t', 2, 3), gpuhash_find('t', 2), gpuhash_find('t', 1), gpuhash_find_bytea('w', 1)}))[0], 't|3||', 'and used again');
repair();
$session->do(q{SET gpuhash.engine = cuda; SELECT gpuhash_create('u', host_copy => false)});
fail_after(0);
$session->do(q{SELECT gpuhash_find('u', 1)});
repair();
$session->do(q{SELECT gpuhash_clear('u')});
is(($session->do(q{SELECT engine, status FROM gpuhash_tables WHERE name = 'u'}))[0], 'cuda|ready', 'a device that works again is used again');
fail_after(0);
is(($session->do(q{SELECT gpuhash_drop('u'); SELECT count(*) FROM gpuhash_tables WHERE name = 'u'}))[0], "\n0", 'a lost table can be dropped');
repair();

# a copy comes back with a large read, once a minute after a failure has passed
$session->do(q{SELECT gpuhash_create('c'), gpuhash_create('cm', 24, true), gpuhash_create('cs', 0)});
$session->do(q{SELECT gpuhash_insert('c', k, v), gpuhash_insert('cm', k, b), gpuhash_insert('cs', k) FROM keys WHERE n < 3});
my $EVERYTHING = q{SELECT md5(string_agg(x, ',' ORDER BY x)) FROM (
	SELECT k || ':' || coalesce(v::text, '-') AS x FROM unnest((SELECT array_agg(i::bigint) FROM generate_series(0, 30000) i), gpuhash_find('c', (SELECT array_agg(i::bigint) FROM generate_series(0, 30000) i))) u (k, v)
	UNION ALL SELECT 'm' || key || ':' || md5(value) FROM gpuhash_find_all_bytea('cm', (SELECT array_agg(i::bigint) FROM generate_series(0, 30000) i))
	UNION ALL SELECT 's' || f::text FROM unnest(gpuhash_contains('cs', (SELECT array_agg(i::bigint) FROM generate_series(0, 30000) i))) f
	UNION ALL SELECT 'n' || f::text FROM unnest(gpuhash_contains('cm', (SELECT array_agg(i::bigint) FROM generate_series(0, 30000) i))) f) y};
my ($content) = $session->do($EVERYTHING);
# a cancelled change leaves a copy that is not to be used, and that is no failure
(undef, $err) = $session->do(q{SELECT pg_cancel_backend(pg_backend_pid()), gpuhash_insert('c', k, v), gpuhash_insert('cm', k[1:0], b[1:0]), gpuhash_insert('cs', k) FROM keys WHERE n = 1});
like($err, qr/57014/, 'a change that is cancelled');
is(($session->do(q{SELECT name, engine FROM gpuhash_tables WHERE name = 'c'}))[0], 'c|cpu', 'leaves the table on the host');
is(($session->do($EVERYTHING))[0], $content, 'with its content');
is(($session->do(q{SELECT name, engine, device_bytes > 0 FROM gpuhash_tables WHERE name LIKE 'c%'}))[0], "c|cuda|t\ncm|cuda|t\ncs|cuda|t", 'a large read brings it back to the device');
is(($session->do($EVERYTHING))[0], $content, 'with its content again');
$session->do('SET gpuhash.engine = cpu; SELECT gpuhash_create(\'never\'); SET gpuhash.engine = cuda');
$session->do(qq{SELECT gpuhash_find('never', $LARGE)});
is(($session->do(q{SELECT engine FROM gpuhash_tables WHERE name = 'never'}))[0], 'cpu', 'a table made with engine = cpu stays there');

# gpuhash.fallback = error
$session->do(q{SET gpuhash.fallback = error; SELECT gpuhash_create('f'), gpuhash_insert('f', 1, 1)});
fail_after(0);
(undef, $err) = $session->do(qq{SELECT gpuhash_find('f', $LARGE)});
like($err, qr/55000: could not use hash table "f" on the GPU/, 'fallback = error: the call that meets the failure ends');
is(($session->do(qq{SELECT (gpuhash_find('f', $LARGE))[1]}))[0], '1', 'the next one has the host copy');
$session->close;
repair();

$server->stop;
unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');
done_testing();
