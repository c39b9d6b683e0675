# Hash tables that all sessions of a database share: life and death, locks, what many
# sessions do at the same time, and what is left when a process or a database goes.
# Without a GPU.
use GpuHash::Test;
use Time::HiRes qw(sleep);

# files instead of shared memory objects, so that they can be counted
my $server = GpuHash::Server->new(conf => ["shared_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'",
	'dynamic_shared_memory_type = mmap', "gpuhash.shared_memory = '2MB'", 'jit = off', 'autovacuum = off', 'max_connections = 40']);
$server->query('CREATE EXTENSION gpuhash');

# Bytes of dynamic shared memory that are there; what the server itself takes is small.
sub shared_bytes
{
	my $blocks = 0;
	$blocks += (stat $_)[12] || 0 for glob "$server->{dir}/data/pg_dynshmem/*";
	return 512 * $blocks;
}

sub in_database
{
	my ($database, $sql) = @_;
	return $server->query("\\c $database\n$sql");
}

# ------------------------------------------------------------ life and death
my ($one, $two) = ($server->session, $server->session);
$one->do(q{SELECT gpuhash_create('t'), gpuhash_create('set', 0), gpuhash_create('wide', 100, true)});
$one->do(q{SELECT gpuhash_insert('t', 1, 10), gpuhash_insert('set', 5), gpuhash_insert('wide', ARRAY[1, 1], ARRAY[decode(repeat('ab', 100), 'hex'), decode(repeat('cd', 100), 'hex')])});
is(($two->do(q{SELECT gpuhash_find('t', 1), gpuhash_contains('set', 5), (SELECT count(*) FROM gpuhash_find_all_bytea('wide', ARRAY[1]))}))[0], '10|t|2', 'another session sees the tables');
is(($two->do(q{SELECT gpuhash_insert('t', 1, 11), gpuhash_insert('t', 2, 20), gpuhash_delete('set', ARRAY[5])}))[0], 'f|t|1', 'and changes them');
is(($one->do(q{SELECT gpuhash_find('t', ARRAY[1, 2]), gpuhash_contains('set', 5)}))[0], '{11,20}|f', 'which the first one sees');
is(($two->do(q{SELECT name, keys, reads, writes FROM (SELECT 't'::text) t(name), gpuhash_table_stats(name)}))[0], 't|2|3|3', 'reads and writes of all sessions are counted');
$two->do(q{BEGIN; SELECT gpuhash_insert('t', 3, 30); SELECT gpuhash_create('u'); ROLLBACK});
is(($one->do(q{SELECT gpuhash_find('t', 3), (SELECT count(*) FROM gpuhash_tables WHERE name = 'u')}))[0], '30|1', 'a rollback does not undo it');
$one->do('DISCARD ALL; SET client_min_messages = warning');
$one->close;
is(($two->do(q{SELECT gpuhash_find('t', ARRAY[1, 2, 3])}))[0], '{11,20,30}', 'they outlive the session that made them');
$one = $server->session;
$one->do(q{SELECT gpuhash_find('t', 1)});
$two->do(q{SELECT gpuhash_drop('t'), gpuhash_create('t', 5), gpuhash_insert('t', ARRAY[1], ARRAY['abcde'::bytea])});
is(($one->do(q{SELECT gpuhash_find_bytea('t', 1)}))[0], '\x6162636465', 'a table that was made anew is not taken for the old one');
like(($one->do(q{SELECT gpuhash_find('t', 1)}))[1], qr/42809/, 'its kind neither');
like(($one->do(q{SELECT gpuhash_create('t')}))[1], qr/42710/, 'a name is taken once');
$two->do(q{SELECT gpuhash_drop(name) FROM gpuhash_tables});
like(($one->do(q{SELECT gpuhash_find_bytea('t', 1)}))[1], qr/42704/, 'a table that is dropped is gone for all');
like(($one->do('SELECT gpuhash_mode()'))[0], qr/shared_preload_libraries/, 'the mode');

# --------------------------------------------------------------- databases
$server->query('CREATE DATABASE other');
in_database('other', q{CREATE EXTENSION gpuhash; SELECT gpuhash_create('t'), gpuhash_create('big')});
in_database('other', q{SELECT gpuhash_insert('t', 1, 99), gpuhash_load('big', 'SELECT i, i FROM generate_series(1, 1000000) i')});
cmp_ok(shared_bytes(), '>', 16_000_000, 'a large table takes shared memory');
like(($one->do(q{SELECT gpuhash_find('t', 1)}))[1], qr/42704: hash table "t" does not exist/, "another database's table does not exist here");
is(($one->do(q{SELECT gpuhash_create('t'), count(*) FROM gpuhash_tables}))[0], '|0', 'its names are free');
is(($one->do(q{SELECT gpuhash_insert('t', 1, 1); SELECT string_agg(name, ',') FROM gpuhash_tables}))[0], "t\nt", 'and not shown');
is(in_database('other', q{SELECT gpuhash_find('t', 1)}), '99', 'nor confused');
{
	my $connected = $server->session;
	$connected->do('\c other');
	my ($status, undef, $err) = $server->run('DROP DATABASE other');
	like($err, qr/being accessed/, 'a database in use is not dropped');
	is(($connected->do(q{SELECT gpuhash_find('t', 1), keys FROM gpuhash_table_stats('big')}))[0], '99|1000000', 'nor are its tables');
	$connected->close;
}
my $before = shared_bytes();
for (1 .. 50) { last if ($server->run('DROP DATABASE other'))[0] == 0; sleep 0.1 }
cmp_ok(shared_bytes(), '<', $before - 16_000_000, 'the tables of a dropped database give their memory back');
is(($one->do(q{SELECT gpuhash_find('t', 1)}))[0], '1', 'those of others stay');
is(($one->do(q{SELECT gpuhash_drop('t')}))[1], '', 'and can be dropped');

# -------------------------------------------------------------------- locks
# A session that holds the lock of a table for long: gpuhash_insert of a large array.
$server->query(q{CREATE TABLE large AS SELECT array_agg(i::bigint) AS k FROM generate_series(1, 8000000) i});
$one->do(q{SELECT gpuhash_create('t')});
my ($pid) = $two->do('SELECT pg_backend_pid()');
$one->send(q{SELECT gpuhash_insert('t', k, k) FROM large});
sleep 0.3 until $server->query(q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 26480 AND mode = 'ExclusiveLock' AND granted}) == 1;
$two->do("SET statement_timeout = '100ms'");
my $watch = stopwatch();
my (undef, $err) = $two->do(q{SELECT gpuhash_find('t', 1)});
my $waited = $watch->();
SKIP:
{
	skip 'the insert was too quick', 2 if $err eq '';
	like($err, qr/57014/, 'a wait for the lock of a table ends with statement_timeout');
	cmp_ok($waited, '<', 0.8, sprintf 'at once (%.0f ms)', $waited * 1000);
}
is(($one->receive)[0], '8000000', 'the holder is not disturbed');
$two->do('RESET statement_timeout');
is($server->query(q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'}), '0', 'no lock is left');
is(($two->do(q{BEGIN; SELECT gpuhash_find('t', 5), gpuhash_insert('t', -1, 1), (SELECT count(*) FROM gpuhash_find_all('t', ARRAY[7])); SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'; COMMIT}))[0], "5|t|1\n0", 'nor within a transaction');
$two->do(q{DO $$ BEGIN PERFORM gpuhash_find('t', k) FROM large; PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN NULL; END $$});
is($server->query(q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'}), '0', 'nor after an error');
# re-entrant: a query that reads and changes the table it is loaded into
is(($two->do(q{SELECT gpuhash_load('t', $$SELECT i, CASE WHEN gpuhash_insert('t', -i, gpuhash_find('t', i)) THEN -i ELSE 0 END FROM generate_series(2, 100001) i$$)}))[0], '100000', 'a load that changes its own table');
is(($two->do(q{SELECT gpuhash_find('t', ARRAY[-2, -100001, 2, 100001]), keys FROM gpuhash_table_stats('t')}))[0], '{2,100001,-2,-100001}|8100001', 'does both');
# parallel workers do not come in
my $parallel = q{SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0};
$server->query(q{CREATE TABLE rows AS SELECT i::bigint AS i FROM generate_series(1, 10000) i; ANALYZE rows;
	CREATE FUNCTION disguised(k bigint) RETURNS bigint LANGUAGE sql PARALLEL SAFE AS 'SELECT gpuhash_find(''t'', k)'});
$two->do($parallel);
my ($sum) = $two->do(q{SELECT sum(v) FROM unnest(gpuhash_find('t', (SELECT array_agg(i) FROM rows))) v});
is(($two->do(q{SELECT sum(gpuhash_find('t', i)) FROM rows}))[0], $sum, 'look-ups under a parallel plan are done by the leader');
$two->do('SET parallel_leader_participation = off');
like(($two->do(q{SELECT sum(disguised(i)) FROM rows}))[1], qr/cannot use hash table "t" in a parallel worker/, 'a worker is refused');
$two->do(q{RESET parallel_leader_participation; RESET max_parallel_workers_per_gather; SELECT gpuhash_drop('t')});

# --------------------------------------------------------- many at the same time
# All do random batches on the same tables.  What they were told must add up to what
# is there, and a batch that writes one value to a range of keys, larger than what an
# engine gets at a time, must be seen in full or not at all.
my $SEED = seed();
$server->query(<<'SQL');
SELECT gpuhash_create('counted'), gpuhash_create('many', 8, true), gpuhash_create('bytes', 40), gpuhash_create('whole'), gpuhash_create('keys', 0);
CREATE TABLE range AS SELECT array_agg(i::bigint) AS k FROM generate_series(1, 70000) i;
CREATE FUNCTION work(me int, seed float8, seconds float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	batch bigint[];
	steps int := 0;
	counted bigint := 0;
	many bigint := 0;
	bytes bigint := 0;
	keys bigint := 0;
	torn bigint := 0;
	wrong bigint := 0;
	n bigint;
	until timestamptz := clock_timestamp() + seconds * interval '1 second';
BEGIN
	PERFORM setseed(seed);
	WHILE clock_timestamp() < until LOOP
		steps := steps + 1;
		-- mostly small batches, now and then one that makes the tables grow or shrink
		SELECT array_agg(floor(random() * 40000)::bigint) INTO batch FROM generate_series(1, 1 + floor(random() ^ 6 * 30000)::int);
		CASE floor(random() * 9)::int
			WHEN 0, 1 THEN counted := counted + gpuhash_insert('counted', batch, batch);
			WHEN 2 THEN counted := counted - gpuhash_delete('counted', batch);
			WHEN 3 THEN
				PERFORM gpuhash_insert('many', batch, batch);
				many := many + cardinality(batch);
			WHEN 4 THEN many := many - gpuhash_delete('many', batch);
			WHEN 5 THEN
				bytes := bytes + gpuhash_insert('bytes', batch, (SELECT array_agg(decode(md5(x::text) || md5(x::text) || '0000000000000000', 'hex') ORDER BY o) FROM unnest(batch) WITH ORDINALITY u (x, o)));
				keys := keys + gpuhash_insert('keys', batch);
			WHEN 6 THEN
				bytes := bytes - gpuhash_delete('bytes', batch);
				keys := keys - gpuhash_delete('keys', batch);
			WHEN 7 THEN
				IF random() < 0.3 THEN
					PERFORM gpuhash_insert('whole', k, array_fill(me * 1000000::bigint + steps, ARRAY[70000])) FROM range;
				END IF;
				SELECT count(DISTINCT v) INTO n FROM range, unnest(gpuhash_find('whole', k)) v;
				torn := torn + (n > 1)::int;
			ELSE
				-- each value belongs to its key
				SELECT count(*) INTO n FROM unnest(batch, gpuhash_find('counted', batch)) u (k, v) WHERE v <> k;
				wrong := wrong + n;
				SELECT count(*) INTO n FROM gpuhash_find_all('many', batch) WHERE value <> key;
				wrong := wrong + n;
				SELECT count(*) INTO n FROM unnest(batch, gpuhash_find_bytea('bytes', batch)) u (k, v) WHERE v <> decode(md5(k::text) || md5(k::text) || '0000000000000000', 'hex');
				wrong := wrong + n;
		END CASE;
	END LOOP;
	RETURN format('%s %s %s %s %s %s %s', steps, torn, wrong, counted, many, bytes, keys);
END $$;
SQL

sub many_at_once
{
	my ($what, $seconds, $during) = @_;
	my @sessions = map { $server->session } 1 .. 8;
	$sessions[$_]->send(sprintf 'SELECT work(%d, %f, %f)', $_, ($SEED + $_) % 1000 / 1000, $seconds) for 0 .. $#sessions;
	$during->(@sessions) if $during;
	my @sums = (0) x 7;
	for my $session (@sessions)
	{
		my ($out, $messages) = $session->receive(120);
		is($messages, '', "$what: no error");
		my @told = split / /, $out;
		$sums[$_] += $told[$_] for 0 .. 6;
		$session->close;
	}
	my ($steps, $torn, $wrong, @told) = @sums;
	note("$steps batches");
	cmp_ok($steps, '>', 200, "$what: there was something to see");
	is($torn, 0, "$what: a batch is seen in full or not at all");
	is($wrong, 0, "$what: every value belongs to its key");
	my @there = split /\|/, $server->query(q{SELECT (SELECT entries FROM gpuhash_table_stats('counted')), (SELECT entries FROM gpuhash_table_stats('many')),
		(SELECT entries FROM gpuhash_table_stats('bytes')), (SELECT entries FROM gpuhash_table_stats('keys'))});
	is("@there", "@told", "$what: what was told adds up to what is there");
	my @found = split /\|/, $server->query(q{WITH a AS (SELECT array_agg(i::bigint) AS k FROM generate_series(0, 40000) i)
		SELECT (SELECT count(v) FROM unnest(gpuhash_find('counted', k)) v), (SELECT count(*) FROM gpuhash_find_all('many', k)),
			(SELECT count(v) FROM unnest(gpuhash_find_bytea('bytes', k)) v), (SELECT count(*) FILTER (WHERE v) FROM unnest(gpuhash_contains('keys', k)) v) FROM a});
	is("@found", "@told", "$what: and to what is found");
	$server->query(q{SELECT gpuhash_clear(name) FROM gpuhash_tables});
	return;
}
many_at_once('eight sessions', 8);

# sessions that are cancelled or ended in the middle leave whole tables
{
	my @sessions = map { $server->session } 1 .. 6;
	my @pids = map { ($_->do('SELECT pg_backend_pid()'))[0] } @sessions;
	for my $round (1 .. 6)
	{
		$_->do(sprintf 'SET statement_timeout = %d', 30 + rand 300) for @sessions;
		$sessions[$_]->send(sprintf 'SELECT work(%d, %f, 5)', $_, ($SEED + $_ + $round) % 1000 / 1000) for 0 .. $#sessions;
		sleep 0.1;
		$server->query("SELECT pg_cancel_backend($pids[0])");
		like(($_->receive)[1], qr/57014/, "round $round: cancelled") for @sessions;
	}
	$sessions[$_]->send(sprintf 'SET statement_timeout = 0; SELECT work(%d, %f, 30)', $_, ($SEED + $_) % 1000 / 1000) for 0 .. $#sessions;
	sleep 0.3;
	$server->query("SELECT pg_terminate_backend($_)") && sleep 0.05 for @pids;
	eval { $_->receive } for @sessions;
}
for (1 .. 50) { last if $server->query(q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%work(%' AND pid <> pg_backend_pid()}) == 0; sleep 0.1 }
is($server->query(q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'}), '0', 'no lock is left of those that ended');
is($server->query(q{WITH a AS (SELECT array_agg(i::bigint) AS k FROM generate_series(0, 40000) i)
	SELECT bool_and(n = s) FROM (SELECT (SELECT count(v) FROM unnest(gpuhash_find('counted', k)) v), (SELECT entries FROM gpuhash_table_stats('counted')) FROM a
		UNION ALL SELECT (SELECT count(*) FROM gpuhash_find_all('many', k)), (SELECT entries FROM gpuhash_table_stats('many')) FROM a
		UNION ALL SELECT (SELECT count(v) FROM unnest(gpuhash_find_bytea('bytes', k)) v), (SELECT entries FROM gpuhash_table_stats('bytes')) FROM a) t (n, s)}), 't', 'the tables are whole');
$server->query(q{SELECT gpuhash_clear(name) FROM gpuhash_tables});
many_at_once('after that', 3);
$server->query(q{SELECT gpuhash_drop(name) FROM gpuhash_tables});

# ------------------------------------------- tables come and go under others' hands
$server->query(<<'SQL');
CREATE FUNCTION churn(seed float8, seconds float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	name text;
	steps int := 0;
	until timestamptz := clock_timestamp() + seconds * interval '1 second';
	seen text;
BEGIN
	PERFORM setseed(seed);
	WHILE clock_timestamp() < until LOOP
		steps := steps + 1;
		name := 'c' || floor(random() * 3);
		BEGIN
			CASE floor(random() * 8)::int
				WHEN 0 THEN PERFORM gpuhash_create(name, capacity => floor(random() * 10000)::bigint);
				WHEN 1 THEN PERFORM gpuhash_drop(name);
				WHEN 2 THEN PERFORM gpuhash_clear(name);
				WHEN 3 THEN PERFORM gpuhash_load(name, 'SELECT i, i FROM generate_series(1, 40000) i');
				WHEN 4 THEN PERFORM count(*), sum(keys) FROM gpuhash_tables;
				WHEN 5 THEN PERFORM gpuhash_grant(name, 'public', 'read');
				WHEN 6 THEN
					PERFORM FROM unnest(gpuhash_find(name, (SELECT array_agg(i::bigint) FROM generate_series(1, 10000) i))) WITH ORDINALITY u (v, k) WHERE v <> k;
					IF FOUND THEN RETURN 'wrong value'; END IF;
				ELSE PERFORM gpuhash_insert(name, floor(random() * 100)::bigint, 1) FROM (SELECT 1) x WHERE false;
			END CASE;
		EXCEPTION WHEN undefined_object OR duplicate_object OR object_not_in_prerequisite_state THEN
			NULL;
		END;
	END LOOP;
	RETURN 'done';
END $$;
SQL
{
	my @sessions = map { $server->session } 1 .. 8;
	$sessions[$_]->send(sprintf 'SELECT churn(%f, 6)', ($SEED + $_) % 1000 / 1000) for 0 .. $#sessions;
	is(join('', $_->receive(120)), 'done', 'tables come and go') for @sessions;
	$server->query(q{SELECT gpuhash_drop(name) FROM gpuhash_tables});
	$_->close for @sessions;
}
# small blocks come from an area that stays for others
cmp_ok(shared_bytes(), '<', 12_000_000, 'and leave no memory behind');

# ------------------------------------------------------------ a failed creation
(undef, $err) = $one->do(q{SELECT gpuhash_create('huge', capacity => 10000000000)});
like($err, qr/53200/, 'a table that is too large');
is($server->query('SELECT count(*) FROM gpuhash_tables'), '0', 'leaves nothing');
$one->do("SET statement_timeout = '20ms'");
(undef, $err) = $one->do(q{SELECT gpuhash_create('slow', capacity => 30000000)});
like($err, qr/57014/, 'a cancelled creation');
$one->do('RESET statement_timeout');
is(($one->do(q{SELECT gpuhash_create('slow'), count(*) FROM gpuhash_tables}))[0], '|0', 'leaves its name free');
cmp_ok(shared_bytes(), '<', 12_000_000, 'and no memory taken');
($pid) = $two->do('SELECT pg_backend_pid()');
$two->send(q{SELECT gpuhash_create('ended', capacity => 60000000)});
sleep 0.05;
$server->query("SELECT pg_terminate_backend($pid)");
eval { $two->receive };
for (1 .. 50) { last if $server->query("SELECT count(*) FROM pg_stat_activity WHERE pid = $pid") == 0; sleep 0.1 }
is(($one->do(q{SELECT gpuhash_create('ended')}))[1], '', 'a creation whose process was ended leaves its name free');
cmp_ok(shared_bytes(), '<', 12_000_000, 'and no memory taken');

# ------------------------------------------------------------------ a crash
($pid) = $one->do('SELECT pg_backend_pid()');
kill 'KILL', $pid;
for (1 .. 100) { sleep 0.1; last if eval { ($server->run('SELECT 1'))[0] == 0 } }
is($server->query('SELECT count(*) FROM gpuhash_tables'), '0', 'after a crash of the server the tables are gone');
is($server->query(q{SELECT gpuhash_create('t'), gpuhash_insert('t', 1, 1), gpuhash_find('t', 1)}), '|t|1', 'and new ones can be made');
$server->stop;
$server->start;
is($server->query('SELECT count(*) FROM gpuhash_tables'), '0', 'after a restart, too');
$server->stop;
unlike($server->log, qr/PANIC|TRAP|leak|terminated by signal (?!9)/, 'a clean log');
done_testing();
