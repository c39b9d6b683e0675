# DISCARD ALL and DISCARD TEMP: a session's own named tables go with its temporary tables, shared ones stay.
use GpuHash::Test;

my $names = q{SELECT coalesce(string_agg(name, ',' ORDER BY name), 'none') FROM gpuhash_tables};
my $make = q{SELECT gpuhash_create('a'), gpuhash_create('b', 0), gpuhash_create('c', 100, true); SELECT gpuhash_insert('a', 1, 10)};

{
	my $server = GpuHash::Server->new(conf => ["session_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'"]);
	$server->query('CREATE EXTENSION gpuhash; CREATE ROLE other; GRANT EXECUTE ON FUNCTION gpuhash_create, gpuhash_drop TO other');
	my $session = $server->session;
	my ($out, $err);

	$session->do($make);
	is(($session->do($names))[0], 'a,b,c', 'the session has tables');
	for my $what ('DISCARD PLANS', 'DISCARD SEQUENCES', 'RESET ALL')
	{
		$session->do($what);
		is(($session->do($names))[0], 'a,b,c', "$what leaves them");
	}
	$session->do('SET client_min_messages = warning; DISCARD ALL');
	is(($session->do($names))[0], 'none', 'DISCARD ALL drops them');
	like(($session->do(q{SELECT gpuhash_find('a', 1)}))[1], qr/42704/, 'and they are not found any more');

	# their names are free, their memory too
	is(($session->do(q{SELECT gpuhash_create('a'); SELECT gpuhash_find('a', 1) IS NULL}))[0] =~ s/^\n//r, 't', 'the name can be used again');
	my $memory = q{SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'gpuhash table'};
	is(($session->do($memory))[0], 1, 'it has a memory context');
	$session->do('DISCARD ALL');
	is(($session->do($memory))[0], 0, 'which went with it');

	# a failed DISCARD ALL drops nothing
	$session->do("SET client_min_messages = warning; $make");
	($out, $err) = $session->do('BEGIN; DISCARD ALL');
	like($err, qr/25001/, 'DISCARD ALL in a transaction is an error');
	$session->do('ROLLBACK');
	is(($session->do($names))[0], 'a,b,c', 'and leaves them');

	# tables of several roles, discarded by one of less rights
	$session->do("SET ROLE other; SELECT gpuhash_create('d'); RESET ROLE");
	is(($session->do($names))[0], 'a,b,c,d', 'a table of another role');
	$session->do('SET ROLE other');
	$session->do('DISCARD ALL');
	is(($session->do($names))[0], 'none', 'goes too, as at the end of the session');

	# DISCARD TEMP is for temporary tables, and for these; in a transaction, in a function, beside a cursor
	$session->do("SET client_min_messages = warning; $make");
	$session->do('DISCARD TEMP');
	is(($session->do($names))[0], 'none', 'DISCARD TEMP drops them');
	$session->do("$make; BEGIN");
	$session->do('DISCARD TEMP');
	$session->do('ROLLBACK');
	is(($session->do($names))[0], 'none', 'a rollback does not bring them back');
	$session->do($make);
	$session->do(q{SELECT gpuhash_insert('c', array_agg(i % 3), array_agg(decode(repeat('ab', 100), 'hex'))) FROM generate_series(1, 20000) i});
	$session->do(q{BEGIN; DECLARE cur CURSOR FOR SELECT key FROM gpuhash_find_all_bytea('c', ARRAY[0, 1, 2])});
	is(scalar(split /\n/, ($session->do('FETCH 10 FROM cur'))[0]), 10, 'a cursor over a table');
	$session->do('DISCARD TEMP');
	($out, $err) = $session->do('MOVE ALL FROM cur');
	like($err, qr/^$|42704/, 'which is dropped under it: it ends, or says so');
	$session->do('ROLLBACK');
	is(($session->do('SELECT 1'))[0], 1, 'the session goes on');
	$session->do(q{CREATE FUNCTION discards(i bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN IF i = 5 THEN DISCARD TEMP; END IF; RETURN i; END $$});
	$session->do($make);
	($out, $err) = $session->do(q{SELECT gpuhash_load('a', 'SELECT discards(i), i FROM generate_series(1, 100000) i')});
	like($err, qr/25006|42704|0A000/, 'a table that the query of its own load drops: an error');
	is(($session->do('SELECT 1'))[0], 1, 'and the session goes on');
	$session->close;
	$server->stop;
	unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
}

# loaded by one of its functions
{
	my $server = GpuHash::Server->new;
	$server->query('CREATE EXTENSION gpuhash');
	my $session = $server->session;
	$session->do("$make; SET gpuhash.engine = 'cpu'");
	$session->do('DISCARD ALL');
	is(($session->do($names))[0], 'none', 'loaded by a function: DISCARD ALL drops them');
	$session->close;
	$server->stop;
}

# shared tables
{
	my $server = GpuHash::Server->new(conf => ["shared_preload_libraries = 'gpuhash'", "gpuhash.engine = 'cpu'"]);
	$server->query('CREATE EXTENSION gpuhash');
	my $session = $server->session;
	$session->do($make);
	$session->do($_) for 'DISCARD ALL', 'DISCARD TEMP';
	is(($session->do($names))[0], 'a,b,c', 'with the service they stay');
	is(($session->do(q{SELECT gpuhash_find('a', 1)}))[0], 10, 'with what is in them');
	$session->close;
	$server->stop;
	unlike($server->log, qr/PANIC|TRAP|terminated by signal|leak/, 'a clean log');
}

done_testing();
