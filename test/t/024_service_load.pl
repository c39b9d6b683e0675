# Many sessions at a time: joins, batches on a shared hash table, cancels, disconnects.
# No wrong answer, and nothing is left over.  Latencies and throughput are printed, and
# those of PostgreSQL alone.
#
#	GPUHASH_LOAD_SECONDS	15: how long; PostgreSQL alone takes a quarter of it
#	GPUHASH_LOAD_SESSIONS	32
#	GPUHASH_LOAD_ROWS		4000: of the outer relation
use GpuHash::Test 'module';
use File::Temp ();
use FindBin;
use GpuHash::Service;

my $seconds = $ENV{GPUHASH_LOAD_SECONDS} || 15;
my $sessions = $ENV{GPUHASH_LOAD_SESSIONS} || 32;
my $rows = $ENV{GPUHASH_LOAD_ROWS} || 4000;

# The server's development files may be elsewhere than its programs.
my $config = $ENV{PG_CONFIG} || GpuHash::Server::bindir() . '/pg_config';
chomp(my ($include, $libdir) = map { scalar `'$config' --$_` } qw(includedir libdir));
-f "$include/libpq-fe.h" or plan skip_all => "no libpq-fe.h in $include";
my $dir = File::Temp->newdir('gpuhashXXXXXX', DIR => $ENV{TMPDIR} || '/tmp');
my $built = `\${CC:-cc} -std=gnu11 -O2 -Wall -Wextra -Werror -I'$include' -o '$dir/service_load' '$FindBin::Bin/../load/service_load.c' -L'$libdir' -Wl,-rpath,'$libdir' -lpq 2>&1`;
is($?, 0, 'the load driver is built') or diag($built);

# workers look for requests as long as they do by default
my $service = GpuHash::Service->new(conf => ['max_connections = ' . ($sessions + 20), "work_mem = '16MB'", 'gpuhash.worker_spin = 500']);
my $server = $service->server;
ok($service->wait_ready, 'the worker finds its device');
my $inner = int($rows / 2);
$server->query(<<"SQL");
CREATE TABLE lo AS SELECT i AS id, CASE WHEN i % 11 = 0 THEN NULL ELSE i % 700 END AS k, 'key ' || i % 900 AS t FROM generate_series(1, $rows) i;
CREATE TABLE li AS SELECT i AS id, i % 900 AS k, 'key ' || i % 1000 AS t FROM generate_series(1, $inner) i;
VACUUM ANALYZE lo, li;
SELECT gpuhash_create('load', capacity => 1000000), gpuhash_create('load2', capacity => 1000000, host_copy => false);
SQL
is($server->query("SELECT engine FROM gpuhash_table_stats('load2')"), 'cuda', 'a hash table is on the device');

my $seed = seed();
note("$sessions sessions, $seconds s, $rows rows");
sub load
{
	my ($name, $time, $settings, $table) = @_;
	my $conninfo = "host=$server->{dir} port=5432 user=postgres dbname=postgres";
	my $out = `timeout @{[ int($time * 1.2 + 90) ]} '$dir/service_load' '$conninfo' $sessions $time $seed '$settings' '$table' 2>&1`;
	my $status = $?;
	note("$name: $_") for split /\n/, $out;
	is($status, 0, "$name: no wrong answer, no failed statement, none that hangs");
	like($out, qr/^wrong 0 cancelled [1-9]\d* disconnected [1-9]/m, "$name: there were cancels and disconnects");
	my ($count) = $out =~ /^join +count (\d+)/m;
	cmp_ok($count // 0, '>', 10 * $time, "$name: joins were done");
	return $out;
}

my %before = $service->workers;
note('before: ' . $service->leftovers);
$server->query('SELECT gpuhash_stat_reset()');
my $out = load('gpuhash', $seconds, 'SET client_min_messages = error', 'load');
like($out, qr/^$_ +count [1-9]/m, "gpuhash: $_ was done") for qw(limit error insert find delete);
my ($requests, $fallbacks) = split /\|/, $server->query('SELECT requests, fallbacks_device + fallbacks_timeout + fallbacks_worker_down + fallbacks_no_gpu FROM gpuhash_stat');
note($server->query(q{SELECT string_agg(format('%s %s', key, value), ', ') FROM gpuhash_stat, json_each_text(row_to_json(gpuhash_stat))}));
cmp_ok($requests, '>', 100, 'the worker did the work');
is($fallbacks, 0, 'and never failed');
is($server->query("SELECT engine FROM gpuhash_table_stats('load2')"), 'cuda', 'the hash table is still on the device');
my %after = $service->workers;
is($after{0}, $before{0}, 'it is still the same');
note('after: ' . $service->settle(1));
load('PostgreSQL alone', $seconds / 4, 'SET gpuhash.enabled = off', '');

# the tables hold what cancelled statements left in them, so they go first
$server->query("SELECT gpuhash_drop('load'), gpuhash_drop('load2')");
like($service->settle, $GpuHash::Service::CLEAN, 'no device memory, buffer, slot or table is left over');
$service->stop;
unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');

done_testing();
