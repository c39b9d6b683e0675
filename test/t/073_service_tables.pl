# Named tables with the service: the copy on the device, tables on the device alone, all
# faults of device and worker, many sessions at the same time, eviction.
use GpuHash::Test 'module';
use Time::HiRes qw(time sleep);
use GpuHash::Service;

my $CLEAN = $GpuHash::Service::CLEAN;
my $TIMEOUT = 500;
my $service = GpuHash::Service->new(conf => ["gpuhash.device_timeout = '${TIMEOUT}ms'", "gpuhash.shared_memory = '8MB'"]);
my $server = $service->server;
ok($service->wait_ready, 'the worker finds its device');

$server->query(<<'SQL');
CREATE TABLE keys AS
	SELECT n, array_agg(x ORDER BY o) AS k, array_agg(x * 10 ORDER BY o) AS v,
		array_agg(decode(lpad(to_hex(x), 16, '0') || md5(x::text), 'hex') ORDER BY o) AS b
	FROM (SELECT n, i * 7919 % 120000 AS x, i * 31 % 80021 AS o FROM generate_series(1, 2) n, generate_series(n::bigint, 80000) i) s
	GROUP BY n;
CREATE TABLE wanted (k bigint[]);
INSERT INTO wanted SELECT array_agg(i::bigint) FROM generate_series(0, 120000) i;
-- a digest of all that is in the table of that kind, read through the device if it is there
CREATE FUNCTION content(kind text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	CASE kind
		WHEN 'one' THEN SELECT count(v) || '/' || sum(hashint8(u.k) # hashint8(v)) INTO result FROM wanted w, unnest(w.k, gpuhash_find('one', w.k)) u (k, v);
		WHEN 'wide' THEN SELECT count(v) || '/' || sum(hashint8(u.k) # hashtext(v::text)) INTO result FROM wanted w, unnest(w.k, gpuhash_find_bytea('wide', w.k)) u (k, v);
		WHEN 'set' THEN SELECT count(*) || '/' || sum(hashint8(u.k)) INTO result FROM wanted w, unnest(w.k, gpuhash_contains('set', w.k)) u (k, v) WHERE v;
		WHEN 'many' THEN SELECT count(*) || '/' || sum(hashint8(key) # hashint8(value)) || '/' || (SELECT count(*) FROM wanted w, unnest(gpuhash_contains('many', w.k)) c WHERE c)
			INTO result FROM wanted w, gpuhash_find_all('many', w.k);
		ELSE SELECT count(*) || '/' || sum(hashint8(key) # hashtext(value::text)) || '/' || (SELECT count(*) FROM wanted w, unnest(gpuhash_contains('wide_many', w.k)) c WHERE c)
			INTO result FROM wanted w, gpuhash_find_all_bytea('wide_many', w.k);
	END CASE;
	RETURN result;
END $$;
SQL

my %CREATE = (one => "'one'", many => "'many', multi => true", wide => "'wide', 24", wide_many => "'wide_many', 24, true", set => "'set', 0");
my %INSERT = (
	one => q{gpuhash_insert('one', k, v)}, many => q{gpuhash_insert('many', k, v)}, set => q{gpuhash_insert('set', k)},
	wide => q{gpuhash_insert('wide', k, b)}, wide_many => q{gpuhash_insert('wide_many', k, b)});

# What is done to a table, in order; the counts it tells.
sub changes
{
	my ($table) = @_;
	return ("SELECT $INSERT{$table} FROM keys WHERE n = 1", "SELECT gpuhash_delete('$table', k[500:41000]) FROM keys WHERE n = 2", "SELECT $INSERT{$table} FROM keys WHERE n = 2");
}

my $session = $server->session;
sub engine { my ($table) = @_; return ($session->do("SELECT engine FROM gpuhash_tables WHERE name = '$table'"))[0] }

# What comes out without a device, each step.
my (%want, %want_content);
$session->do('SET gpuhash.engine = cpu');
for my $table (sort keys %CREATE)
{
	$session->do("SELECT gpuhash_create($CREATE{$table})");
	$want{$table} = [ map { ($session->do($_))[0] } changes($table) ];
	($want_content{$table}) = $session->do("SELECT content('$table')");
	$session->do("SELECT gpuhash_drop('$table')");
}
$session->do('SET gpuhash.engine = cuda');

# ------------------------------------------------------------ without a fault
for my $copy ('true', 'false')
{
	for my $table (sort keys %CREATE)
	{
		$session->do("SELECT gpuhash_create($CREATE{$table}, host_copy => $copy)");
		is(engine($table), 'cuda', "$table, host_copy $copy: is on the device");
		my ($out, $err);
		is_deeply([ map { ($session->do($_))[0] } changes($table) ], $want{$table}, "$table, host_copy $copy: the same counts");
		is(($session->do("SELECT content('$table')"))[0], $want_content{$table}, "$table, host_copy $copy: the same content");
		is(engine($table), 'cuda', "$table, host_copy $copy: is still there");
		my $other = $server->session;
		is(($other->do("SELECT content('$table')"))[0], $want_content{$table}, "$table, host_copy $copy: the same in another session");
		is(($other->do("SELECT gpuhash_clear('$table'); SELECT keys, device_bytes > 0 FROM gpuhash_table_stats('$table')"))[0], "\n0|t", "$table, host_copy $copy: cleared by another session");
		$other->close;
		is(($session->do("SELECT content('$table')"))[0], '', "$table, host_copy $copy: empty");
		$session->do("SELECT gpuhash_drop('$table')");
	}
}
# all values of one key do not fit a buffer: a larger one
$session->do(q{SELECT gpuhash_create('many', multi => true, host_copy => false), gpuhash_load('many', 'SELECT 7, i FROM generate_series(1, 300000) i'), gpuhash_insert('many', k, v) FROM keys WHERE n = 1});
is(($session->do(q{SELECT count(*), count(DISTINCT value) FROM gpuhash_find_all('many', ARRAY[7, 1, 2]) WHERE key = 7}))[0], '300000|300000', 'a key with many values');
$session->do(q{SELECT gpuhash_load('many', 'SELECT -8, i FROM generate_series(1, 1200000) i')});
like(($session->do(q{SELECT count(*) FROM gpuhash_find_all('many', ARRAY[-8])}))[1], qr/53400.*gpuhash.shared_memory/s, 'with more than the transfer area takes');
is(($session->do(q{SELECT gpuhash_delete('many', ARRAY[-8])}))[0], '1200000', 'can be removed');
$session->do(q{SELECT gpuhash_drop('many')});
like($service->settle, $CLEAN, 'nothing is left over');

# -------------------------------------------------------------------- faults
# Each fault, at each point, after some passages, in the middle of changes and reads: a
# table with a copy goes on without an error, and has what it should.
my @points = qw(create insert upsert add delete find find_all clear stats allocation reply destroy);
my @kinds = qw(no_memory limit launch sticky term hang delay);
my %hit;
my $turn = 0;
for my $table (sort keys %CREATE)
{
	my @bad;
	for my $point (@points)
	{
		for my $kind (@kinds)
		{
			# the slow ones now and then
			next if $kind =~ /hang|sticky|term/ && ($point . $table) !~ /^(?:upsertone|addmany|findwide|deleteset|createone|replyone|clearone)$/;
			my $after = ($turn++ % 2) * 2;
			my $what = "$kind at $point after $after";
			unless ($service->wait_ready) { push @bad, "$what: no worker"; next }
			$service->arm($point, $kind, after => $after, ms => 3);
			my ($out, $err) = $session->do("SELECT gpuhash_create($CREATE{$table})");
			# refused at creation: with engine = cuda that is an error
			my ($refused) = $session->do("SELECT count(*) = 0 FROM gpuhash_tables WHERE name = '$table'");
			if ($refused eq 't')
			{
				push @bad, "$what: $err" unless $err =~ /53200|53400|55000/ && $point =~ /create|allocation|reply/;
				$session->do("SET gpuhash.engine = auto; SELECT gpuhash_create($CREATE{$table}); SET gpuhash.engine = cuda");
			}
			my @told = map { my ($o, $e) = $session->do($_); push @bad, "$what: $e" if $e =~ /ERROR/; $o } changes($table);
			my ($content, $message) = $session->do("SELECT content('$table')");
			push @bad, "$what: told @told" if "@told" ne "@{$want{$table}}";
			push @bad, "$what: content $content $message" if $content ne $want_content{$table};
			($out, $err) = $session->do("SELECT gpuhash_clear('$table'); SELECT keys FROM gpuhash_table_stats('$table')");
			push @bad, "$what: after a clear $out $err" if $out ne "\n0";
			$session->do("SELECT gpuhash_drop('$table')");
			my $fired = $service->disarm;
			$hit{$kind}++ if $fired;
			if ($fired && $kind =~ /hang|sticky|term|launch/) { sleep 0.7 if $kind eq 'hang'; $service->wait_ready }
			my $left = $service->settle;
			push @bad, "$what: $left" if $left !~ $CLEAN;
		}
	}
	is(join("\n", @bad), '', "$table: goes on after every fault");
}
note(join ', ', map { "$_: $hit{$_}" } sort keys %hit);
cmp_ok(scalar(keys %hit), '==', scalar(@kinds), 'faults of all kinds happened');
$session->close;

# --------------------------------------------------------------- a lost table
$session = $server->session;
$service->wait_ready;
$session->do(q{SELECT gpuhash_create('alone', host_copy => false), gpuhash_insert('alone', 1, 1), gpuhash_create('safe'), gpuhash_insert('safe', 1, 1)});
my ($worker) = values %{ { $service->workers } };
kill 'TERM', $worker;
for (1 .. 200) { sleep 0.05; my ($now) = values %{ { $service->workers } }; last if !$now || $now != $worker }
my (undef, $err) = $session->do(q{SELECT gpuhash_find('alone', 1)});
like($err, qr/55000: hash table "alone" was lost with its GPU.*HINT: .*gpuhash_clear/s, 'the worker ended: a table on the device alone is lost');
my $other = $server->session;
like(($other->do(q{SELECT gpuhash_insert('alone', 1, 2)}))[1], qr/55000: hash table "alone" was lost/, 'for all sessions');
is(($other->do(q{SELECT name, status, engine IS NULL FROM gpuhash_tables WHERE name = 'alone'}))[0], 'alone|lost|t', 'the view says so');
is(($other->do(q{SELECT gpuhash_find('safe', 1)}))[0], '1', 'one with a host copy is not');
$service->wait_ready;
is(($other->do(q{SELECT gpuhash_clear('alone'); SELECT gpuhash_insert('alone', 2, 3)}))[1], '', 'clear brings it back');
is(($session->do(q{SELECT gpuhash_find('alone', ARRAY[1, 2]), engine FROM gpuhash_table_stats('alone')}))[0], '{NULL,3}|cuda', 'empty, on the device, for the others, too');
$session->do(q{SELECT gpuhash_drop('alone'), gpuhash_drop('safe')});

# a cancelled change of a table on the device alone is done or not, but the table is whole
$session->do(q{SELECT gpuhash_create('alone', host_copy => false)});
my $cancelled = 0;
for (1 .. 30)
{
	(undef, $err) = $session->do(sprintf q{SET statement_timeout = %d; SELECT gpuhash_insert('alone', k, v), gpuhash_delete('alone', k[1:30000]) FROM keys, generate_series(1, 20)}, 1 + rand 30);
	$cancelled++ if $err =~ /57014/;
}
$session->no_timeout;
cmp_ok($cancelled, '>', 10, "of 30 changes $cancelled were cancelled");
is(($session->do(q{SELECT count(v) = (SELECT keys FROM gpuhash_table_stats('alone')), bool_and(v = u.k * 10) FROM wanted w, unnest(w.k, gpuhash_find('alone', w.k)) u (k, v)}))[0], 't|t', 'the table is whole');
$session->do(q{SELECT gpuhash_drop('alone')});

# a table with a copy: after cancelled changes the device has what the host has
$session->do(q{SELECT gpuhash_create('one'), gpuhash_create('many', multi => true)});
my $differ = q{SELECT count(*) FROM wanted w, unnest(w.k, gpuhash_find('one', w.k),
	ARRAY(SELECT v FROM generate_series(0, 40) g, LATERAL (SELECT array_agg(i::bigint) AS k FROM generate_series(g * 3000, least(g * 3000 + 2999, 120000)) i) s, unnest(s.k, gpuhash_find('one', s.k)) u (k, v) ORDER BY u.k)) d (k, device, host) WHERE device IS DISTINCT FROM host};
$cancelled = 0;
my @wrong;
for (1 .. 60)
{
	(undef, $err) = $session->do(sprintf q{SET statement_timeout = %d; SELECT gpuhash_insert('one', k, v), gpuhash_insert('one', k[1:40000], k[1:40000]), gpuhash_delete('one', k[20000:60000]) FROM keys, generate_series(1, 20)}, 1 + rand 40);
	$cancelled++ if $err =~ /57014/;
	$session->no_timeout;
	my ($differences, $message) = $session->do($differ);
	push @wrong, "$differences $message, after: $err" if $differences ne '0';
}
cmp_ok($cancelled, '>', 20, "of 60 changes $cancelled were cancelled");
is(join("\n", @wrong), '', 'the device never differs from the host');
is(engine('one'), 'cuda', 'the copy came back each time');
$session->do(q{SELECT gpuhash_drop('one'), gpuhash_drop('many')});

# fallback = error: an error once, and nothing lost
$session->do(q{SET gpuhash.fallback = error; SELECT gpuhash_create('one')});
$service->arm('upsert', 'launch');
(undef, $err) = $session->do("SELECT $INSERT{one} FROM keys WHERE n = 1");
like($err, qr/55000: could not use hash table "one" on the GPU/, 'fallback = error: the call that meets the failure ends');
$service->disarm;
is(($session->do(q{SELECT count(v) FROM wanted w, unnest(gpuhash_find('one', w.k)) v}))[0], (split m{\|}, $want{one}[0])[0], 'the next one finds the host, which has it all');
$session->do(q{RESET gpuhash.fallback; SELECT gpuhash_drop('one')});

# ------------------------------------------------- no GPU when it was created
$session->do(q{SET gpuhash.engine = cpu; SELECT gpuhash_create('host'); SET gpuhash.engine = cuda});
$service->wait_ready;
($worker) = values %{ { $service->workers } };
kill 'TERM', $worker;
for (1 .. 200) { sleep 0.05; last unless ($service->ask('SELECT gpuhash_fault_ready()')) }
(my $out, $err) = $session->do("SELECT gpuhash_create($CREATE{one})");
is("$out$err", '', 'a table that is created while the worker is away');
$session->do($_) for changes('one');
is(engine('one'), 'cpu', 'is on the host');
ok($service->wait_ready, 'the worker is back');
is(($session->do(q{SELECT content('one')}))[0], $want_content{one}, 'a large read');
is(engine('one'), 'cuda', 'takes it to the device');
is(($session->do(q{SELECT content('one')}))[0], $want_content{one}, 'which answers the same');
$session->do(q{SELECT gpuhash_insert('host', k, v) FROM keys; SELECT count(v) FROM wanted w, unnest(gpuhash_find('host', w.k)) v});
is(engine('host'), 'cpu', 'but not one that was created with engine = cpu');
$session->do(q{SELECT gpuhash_drop(name) FROM gpuhash_tables});

# ------------------------------------------------------ many at the same time
my $SEED = seed();
$server->query(<<'SQL');
CREATE TABLE range AS SELECT array_agg(i::bigint) AS k FROM generate_series(1, 70000) i;
CREATE FUNCTION work(me int, seed float8, seconds float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	batch bigint[];
	steps int := 0;
	one bigint := 0;
	many bigint := 0;
	torn bigint := 0;
	wrong bigint := 0;
	n bigint;
	until timestamptz := clock_timestamp() + seconds * interval '1 second';
BEGIN
	PERFORM setseed(seed);
	WHILE clock_timestamp() < until LOOP
		steps := steps + 1;
		SELECT array_agg(floor(random() * 40000)::bigint) INTO batch FROM generate_series(1, 1 + floor(random() ^ 3 * 10000)::int);
		CASE floor(random() * 8)::int
			WHEN 0, 1 THEN one := one + gpuhash_insert('one', batch, batch);
			WHEN 2 THEN one := one - gpuhash_delete('one', batch);
			WHEN 3 THEN
				PERFORM gpuhash_insert('many', batch, batch);
				many := many + cardinality(batch);
			WHEN 4 THEN many := many - gpuhash_delete('many', batch);
			WHEN 5 THEN
				IF random() < 0.4 THEN
					PERFORM gpuhash_insert('whole', k, array_fill(me * 1000000::bigint + steps, ARRAY[70000])) FROM range;
				END IF;
				SELECT count(DISTINCT v) INTO n FROM range, unnest(gpuhash_find('whole', k)) v;
				torn := torn + (n > 1)::int;
			ELSE
				SELECT count(*) INTO n FROM unnest(batch, gpuhash_find('one', batch)) u (k, v) WHERE v <> k;
				wrong := wrong + n;
				SELECT count(*) INTO n FROM gpuhash_find_all('many', batch) WHERE value <> key;
				wrong := wrong + n;
		END CASE;
	END LOOP;
	RETURN format('%s %s %s %s %s', steps, torn, wrong, one, many);
END $$;
SQL

# What all sessions were told must be what is there, on the host and on the device.
sub many_at_once
{
	my ($what, $copy, $during) = @_;
	$server->query(qq{SELECT gpuhash_create('one', host_copy => $copy), gpuhash_create('many', multi => true, host_copy => $copy), gpuhash_create('whole', host_copy => $copy)});
	my @sessions = map { $server->session } 1 .. 8;
	$sessions[$_]->send(sprintf 'SELECT work(%d, %f, 5)', $_, ($SEED + $_) % 1000 / 1000) for 0 .. $#sessions;
	$during->() if $during;
	my @sums = (0) x 5;
	for my $session (@sessions)
	{
		my ($told, $messages) = $session->receive(120);
		unlike($messages, qr/ERROR/, "$what: no error");
		my @told = split / /, $told;
		$sums[$_] += $told[$_] for 0 .. 4;
		$session->close;
	}
	my ($steps, $torn, $wrong, @told) = @sums;
	note("$steps batches");
	cmp_ok($steps, '>', 100, "$what: there was something to see");
	is($torn, 0, "$what: a batch is seen in full or not at all");
	is($wrong, 0, "$what: every value belongs to its key");
	my $there = q{SELECT (SELECT entries FROM gpuhash_table_stats('one')), (SELECT entries FROM gpuhash_table_stats('many'))};
	is($server->query($there), join('|', @told), "$what: what was told adds up to what is there");
	is($server->query(q{SELECT (SELECT count(v) FROM wanted w, unnest(gpuhash_find('one', w.k)) v), (SELECT count(*) FROM wanted w, gpuhash_find_all('many', w.k))}), join('|', @told), "$what: and to what is found");
	my $found = $server->query(q{SELECT string_agg(name || '=' || engine, ' ' ORDER BY name) FROM gpuhash_tables});
	note($found);
	$server->query(q{SELECT gpuhash_drop(name) FROM gpuhash_tables});
	return $found;
}
is(many_at_once('with a copy', 'true'), 'many=cuda one=cuda whole=cuda', 'the copies are still there');
is(many_at_once('on the device alone', 'false'), 'many=cuda one=cuda whole=cuda', 'the tables are still there');
many_at_once('with faults', 'true', sub {
	for my $round (1 .. 12)
	{
		$service->arm((qw(upsert add delete find any))[ rand 5 ], (qw(launch no_memory limit delay))[ rand 4 ], after => int(rand 20), ms => 5);
		sleep 0.3;
	}
	$service->disarm;
});
many_at_once('with a worker that ends', 'true', sub {
	for (1, 2) { sleep 1; kill 'TERM', values %{ { $service->workers } } }
});
$service->wait_ready;
like($service->settle, $CLEAN, 'nothing is left over');

# sessions that end or are cancelled in the middle
{
	$server->query(q{SELECT gpuhash_create('one'), gpuhash_create('many', multi => true), gpuhash_create('whole')});
	my @sessions = map { $server->session } 1 .. 6;
	my @pids = map { ($_->do('SELECT pg_backend_pid()'))[0] } @sessions;
	for my $round (1 .. 5)
	{
		$_->do(sprintf 'SET statement_timeout = %d', 30 + rand 300) for @sessions;
		$sessions[$_]->send(sprintf 'SELECT work(%d, %f, 5)', $_, ($SEED + $_ + $round) % 1000 / 1000) for 0 .. $#sessions;
		like(($_->receive)[1], qr/57014/, "round $round: cancelled") for @sessions;
	}
	$sessions[$_]->send(sprintf 'SET statement_timeout = 0; SELECT work(%d, %f, 30)', $_, ($SEED + $_) % 1000 / 1000) for 0 .. $#sessions;
	sleep 0.3;
	$server->query("SELECT pg_terminate_backend($_)") && sleep 0.05 for @pids;
	eval { $_->receive } for @sessions;
	for (1 .. 50) { last if $server->query(q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%work(%' AND pid <> pg_backend_pid()}) == 0; sleep 0.1 }
	my $both = q{SELECT (SELECT count(v) || '/' || sum(v) FROM wanted w, unnest(gpuhash_find('one', w.k)) v), (SELECT count(*) FROM wanted w, gpuhash_find_all('many', w.k))};
	my $through_device = $server->query($both);
	my ($on) = $server->query(q{SELECT string_agg(name || '=' || engine, ' ' ORDER BY name) FROM gpuhash_tables WHERE name = 'one'});
	is($on, 'one=cuda', 'a copy that a cancelled change left unsure is made anew by a large read');
	is($server->query(q{SELECT (SELECT entries FROM gpuhash_table_stats('one')), (SELECT entries FROM gpuhash_table_stats('many'))}), $through_device =~ s{/-?\d*}{}r, 'host and copy have the same');
	# through the host alone: small reads
	is($server->query(q{SELECT count(v) || '/' || sum(v) FROM generate_series(0, 39) g, LATERAL (SELECT array_agg(i::bigint) AS k FROM generate_series(g * 1000, g * 1000 + 999) i) s, unnest(gpuhash_find('one', s.k)) v}), (split /\|/, $through_device)[0], 'and the host finds the same');
	$server->query(q{SELECT gpuhash_drop(name) FROM gpuhash_tables});
	like($service->settle, $CLEAN, 'nothing is left over');
}

# ------------------------------------------------------------------ eviction
$server->query("ALTER SYSTEM SET gpuhash.device_memory_limit = '24MB'; SELECT pg_reload_conf()");
sleep 1.2;
$server->query('CREATE DATABASE other');
$server->query("\\c other\nCREATE EXTENSION gpuhash; SELECT gpuhash_create('far', capacity => 400000); SELECT gpuhash_insert('far', 1, 1)");
$session->do(q{SELECT gpuhash_create('old', capacity => 400000), gpuhash_insert('old', 5, 50)});
is(engine('old'), 'cuda', 'a table on a small device');
sleep 1.5;
(undef, $err) = $session->do(q{SELECT gpuhash_create('new', capacity => 700000)});
is($err, '', 'another one, for which there is no room');
is(engine('new'), 'cuda', 'gets it');
is(engine('old'), 'cpu', 'from one that was idle');
is(($session->do(q{SELECT gpuhash_find('old', 5), engine_reason FROM gpuhash_table_stats('old')}))[0], q{50|others needed the GPU's memory}, 'which is on the host now');
is($server->query("\\c other\nSELECT gpuhash_find('far', 1), engine FROM gpuhash_table_stats('far')"), '1|cpu', 'and one of another database');
(undef, $err) = $session->do(q{SELECT gpuhash_create('more', capacity => 700000)});
like($err, qr/53400/, 'tables in use are left alone');
$session->do(q{SELECT gpuhash_drop(name) FROM gpuhash_tables});
for (1 .. 50) { last if ($server->run('DROP DATABASE other'))[0] == 0; sleep 0.1 }
like($service->settle, $CLEAN, 'nothing is left over, of the dropped database neither');

$session->close;
$other->close;
$service->stop;
unlike($server->log, qr/PANIC|TRAP|leak|terminated by signal/, 'a clean log');
done_testing();
