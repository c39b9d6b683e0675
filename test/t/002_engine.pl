# gpuhash.engine where the GPU may be missing: clear errors, quiet fallback.
use GpuHash::Test;

my $server = GpuHash::Server->new(conf => ["session_preload_libraries = 'gpuhash'", "gpuhash.force_offload = on"]);
$server->query('CREATE EXTENSION gpuhash');
$server->query(<<'SQL');
CREATE TABLE outer_rows AS SELECT i, i % 1000 AS k FROM generate_series(1, 20000) i;
CREATE TABLE inner_rows AS SELECT i AS k FROM generate_series(1, 500) i;
ANALYZE;
SQL
my $join = 'SELECT count(*), sum(i) FROM outer_rows JOIN inner_rows USING (k)';
my $answer = '10000|97505000';

# an engine that does not exist
my ($status, $out, $err) = $server->run("SET gpuhash.engine = 'opencl'");
like($err, qr/22023.*gpuhash\.engine/, 'an unknown engine is refused');
like($err, qr/HINT:.*auto.*cuda.*cpu/, 'with the choices in the hint');

# cuda: either it works, or it says why not, and the session goes on
my $session = $server->session;
$session->do("SET gpuhash.engine = 'cuda'");
($out, $err) = $session->do($join);
my $gpu = $out eq $answer;
SKIP: {
	skip 'the CUDA engine works here', 2 if $gpu;
	like($err, qr/ERROR:  55000: the CUDA engine is not available: \S/, 'cuda without a GPU: an error that says why');
	like($err, qr/HINT:.*gpuhash\.engine/, 'with the setting in the hint');
}
SKIP: {
	skip 'there is no CUDA engine here', 1 unless $gpu;
	like($server->query("SET gpuhash.engine = 'cuda'; EXPLAIN (ANALYZE) $join"), qr/Engine: cuda/, 'cuda: EXPLAIN says so');
}
($out, $err) = $session->do($join);
ok($gpu ? $out eq $answer : $err =~ /55000/, 'a second try gives the same');
($out, $err) = $session->do("SET gpuhash.engine = 'cpu'; $join");
is("$out$err", $answer, 'the session goes on, with the CPU engine');
($out) = $session->do("EXPLAIN (ANALYZE) $join");
like($out, qr/Engine: cpu/, 'EXPLAIN says so');

# the planner never needs a GPU
($out, $err) = $session->do("SET gpuhash.engine = 'cuda'; EXPLAIN (COSTS OFF) $join");
like($out, qr/GpuHashJoin/, 'EXPLAIN without ANALYZE needs no GPU');
$session->close;

# auto: nothing is said, neither to the client nor to the log
my $before = length $server->log;
$session = $server->session;
for (1 .. 5)
{
	($out, $err) = $session->do($join);
	is("$out$err", $answer, "auto: run $_, no message");
}
$session->close;
is(substr($server->log, $before), '', 'auto: nothing in the server log');

$server->stop;
unlike($server->log, qr/PANIC|TRAP|terminated by signal/, 'a clean log');

done_testing();
