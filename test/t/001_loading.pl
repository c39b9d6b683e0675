# The ways to load gpuhash: each gives a session that offloads joins.
use GpuHash::Test;
use GpuHash::Installation;

my $tables = <<'SQL';
CREATE TABLE outer_rows AS SELECT i, i % 1000 AS k FROM generate_series(1, 20000) i;
CREATE TABLE inner_rows AS SELECT i AS k FROM generate_series(1, 500) i;
ANALYZE;
SQL
my $join = 'SELECT count(*), sum(i) FROM outer_rows JOIN inner_rows USING (k)';
my $answer = '10000|97505000';

# What a session of this server says about the join after some SQL of its own.
sub check_session
{
	my ($server, $before, $name) = @_;
	my $plan = $server->query("$before; SET gpuhash.force_offload = on; EXPLAIN (COSTS OFF) $join;");
	like($plan, qr/Custom Scan \(GpuHashJoin\)/, "$name: the join is offloaded");
	is($server->query("$before; SET gpuhash.force_offload = on; $join;"), $answer, "$name: the answer is right");
	$plan = $server->query("$before; SET gpuhash.force_offload = on; SET gpuhash.enabled = off; EXPLAIN (COSTS OFF) $join;");
	unlike($plan, qr/GpuHashJoin/, "$name: gpuhash.enabled = off switches it off");
	return;
}

{
	my $server = GpuHash::Server->new;
	$server->query($tables);
	is($server->query($join), $answer, 'not loaded: the answer is right');
	unlike($server->query("SET gpuhash.force_offload = on; EXPLAIN $join"), qr/GpuHashJoin/, 'not loaded: nothing is offloaded');
	check_session($server, "LOAD 'gpuhash'", 'LOAD');
	$server->query("ALTER DATABASE postgres SET session_preload_libraries = 'gpuhash'");
	check_session($server, 'SELECT', 'session_preload_libraries');

	# a value that was set before the library came and that it does not know
	my (undef, undef, $err) = $server->run("SET gpuhash.batch_rows = 5; LOAD 'gpuhash'; SHOW gpuhash.batch_rows");
	like($err, qr/gpuhash\.batch_rows/, 'a bad setting from before is named');
	$server->query('ALTER DATABASE postgres RESET session_preload_libraries');
	(undef, undef, $err) = $server->run("LOAD 'gpuhash'; SET gpuhash.no_such_setting = 1");
	like($err, qr/42602|invalid configuration parameter/, 'an unknown setting is an error once loaded');
}
# which role may load it, as doc/install.md says
{
	my $own = GpuHash::Installation->new;
	my $libdir = $own->libdir;
	local $ENV{GPUHASH_BINDIR} = $own->bindir;
	my $server = GpuHash::Server->new;
	$server->query('CREATE EXTENSION gpuhash; CREATE ROLE plain LOGIN; GRANT CREATE ON SCHEMA public TO plain');
	my $as_plain = sub { my ($sql) = @_; return ($server->run("\\c - plain\n$sql"))[2] };
	my $loaded = sub { my ($sql) = @_; return ($server->run("\\c - plain\n$sql;\nSET gpuhash.no_such_setting = 1"))[2] =~ /42602/ ? 'loaded' : 'not loaded' };
	is($loaded->('SELECT 1'), 'not loaded', 'an ordinary role: not loaded at first');
	like($as_plain->("LOAD 'gpuhash'"), qr/42501: access to library "gpuhash" is not allowed/, 'LOAD is refused');
	like($as_plain->("ALTER ROLE plain SET session_preload_libraries = 'gpuhash'"), qr/42501/, 'session_preload_libraries, too');
	is($loaded->('SELECT gpuhash_mode()'), 'loaded', 'a call of a function loads it');
	$server->query("ALTER ROLE plain SET session_preload_libraries = 'gpuhash'");
	is($loaded->('SELECT 1'), 'loaded', 'a superuser sets session_preload_libraries for the role');
	$server->query('ALTER ROLE plain RESET session_preload_libraries; GRANT SET ON PARAMETER session_preload_libraries TO plain');
	is($as_plain->("ALTER ROLE plain SET session_preload_libraries = 'gpuhash'"), '', 'or lets the role do so');
	is($loaded->('SELECT 1'), 'loaded', 'which loads it');
	$server->query('ALTER ROLE plain RESET session_preload_libraries');

	# a link where all may load from
	mkdir "$libdir/plugins" or die $!;
	symlink '../gpuhash.so', "$libdir/plugins/gpuhash.so" or die $!;
	is($loaded->("LOAD '\$libdir/plugins/gpuhash'"), 'loaded', 'a link in plugins: LOAD');
	is($as_plain->("LOAD '\$libdir/plugins/gpuhash'; SELECT gpuhash_mode()"), '', 'and a function, of the same library');
	is($as_plain->("ALTER ROLE plain SET local_preload_libraries = 'gpuhash'"), '', 'and local_preload_libraries');
	is($loaded->('SELECT 1'), 'loaded', 'which loads it');
	is($as_plain->('SELECT gpuhash_mode()'), '', 'as the functions do');
	$server->stop;
	unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');
}
{
	my $server = GpuHash::Server->new(conf => ["shared_preload_libraries = 'gpuhash'"]);
	$server->query($tables);
	check_session($server, 'SELECT', 'shared_preload_libraries');
	my ($status, undef, $err) = $server->run('CREATE EXTENSION gpuhash');
	is($status, 0, 'shared_preload_libraries: CREATE EXTENSION') or diag($err);
	$server->stop;
	unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');
}

done_testing();
