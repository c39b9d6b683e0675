# Requests on scans that no client of ours would make: forged addresses of pages, sizes,
# plans.  The worker refuses each or does what it may, and stays whole.
use GpuHash::Test 'module';
use GpuHash::Service;

my $service = GpuHash::Service->new;
my $server = $service->server;
ok($service->wait_ready, 'the worker finds its device');
$server->query('CREATE TABLE o AS SELECT i AS k, i::bigint AS v FROM generate_series(1, 2000) i; VACUUM (FREEZE) o');
my ($victim, $forger) = map { $server->session } 1, 2;
my (%victim, %forger);
@victim{qw(slot scan generation table table_generation right right_generation)} = split / /, ($victim->do('SELECT gpuhash_forge_hold_scan()'))[0];
@forger{qw(slot scan generation table table_generation right right_generation)} = split / /, ($forger->do('SELECT gpuhash_forge_hold_scan()'))[0];
my ($tried, $refused) = (0, 0);
my $DONE = qr/^done, \d+ counted, 0 back$/;

sub forge
{
	my ($of, $page, $offset, $fields) = @_;
	my ($out, $err) = $forger->do("SELECT gpuhash_forge_scan('o'::regclass, $of->{scan}, $of->{generation}, '$page', $offset, '$fields')");
	return $out . $err;
}

sub refuses
{
	my ($what, $answer, $why) = @_;
	$tried++;
	$refused++ if like($answer, $why // qr/^refused: ./, "$what: $answer");
	return;
}

# -------------------------------------------------------------------- addresses
like(forge(\%forger, 'own', 0, ''), $DONE, 'an honest request is served');
my $ELSEWHERE = qr/^refused: a page of the request is not in memory/;
my $room = 512 * 1024;
refuses("a page at own buffer + $_", forge(\%forger, 'own', $_, ''), $ELSEWHERE) for $room - 65536 - 8176, $room - 65536 - 16, $room - 65536, -65536 - 16, 2 ** 40, -2 ** 40;
refuses("a page in another session's buffer + $_", forge(\%forger, $victim{slot}, $_, ''), $ELSEWHERE) for 0, 8192, $room - 8192, -8192, -16;
refuses("a page in the session's other buffer, and the next one", forge(\%forger, $forger{slot}, $room - 4096, ''), $ELSEWHERE);
refuses("a page at the area's end + $_", forge(\%forger, 'area end', $_, ''), $ELSEWHERE) for -8192, -4096, -16, 0, 8192;
refuses("a page at the area's begin + $_", forge(\%forger, 'area', $_, ''), $ELSEWHERE) for -8192, -16;
refuses("a page at the end of shared_buffers + $_", forge(\%forger, 'pool end', $_, ''), $ELSEWHERE) for -8176, -4096, -16, 0, 16, 8192;
refuses("a page at the begin of shared_buffers + $_", forge(\%forger, 'pool', $_, ''), $ELSEWHERE) for -8192, -16, 16, 4096, 8176;
refuses("a page in the service's own memory + $_", forge(\%forger, 'service', $_, ''), $ELSEWHERE) for 0, 4096, 65536;
refuses("a page at address $_", forge(\%forger, 'null', $_, ''), $ELSEWHERE) for 0, 8192, -8192, '9223372036854775807';
# what is allowed, whatever is in it
like(forge(\%forger, 'pool', 0, ''), qr/^done, \d+ counted, \d+ back$/, 'the first page of shared_buffers');
like(forge(\%forger, 'pool end', -8192, ''), qr/^done, \d+ counted, \d+ back$/, 'the last one');
like(forge(\%forger, $forger{slot}, 0, ''), qr/^done, \d+ counted, \d+ back$/, "the session's other buffer");
like(forge(\%forger, 'own', 16, ''), qr/^done, \d+ counted, \d+ back$/, 'bytes that are no page');
refuses('a page that is not aligned', forge(\%forger, 'own', 8, ''), qr/^refused: .*aligned/);

# -------------------------------------------------------------- arrays and sizes
for my $array (qw(pages bitmaps back))
{
	for my $offset ($room, $room - 8, $room + 8, 4, 2 ** 31, '9223372036854775800', '18446744073709551608')
	{
		refuses("$array at $offset", forge(\%forger, 'own', 0, "nbitmaps=5 $array=$offset"));
	}
}
refuses("$_ pages", forge(\%forger, 'own', 0, "count=$_")) for 32769, 65537, 2 ** 31, 2 ** 32 + 1, '18446744073709551615';
refuses("$_ words of bitmaps", forge(\%forger, 'own', 0, "bitmaps=8 nbitmaps=$_")) for 65536, '2305843009213693952', '18446744073709551615';
refuses("room for $_ rows", forge(\%forger, 'own', 0, "back_room=$_")) for 0, 1, 65536, '2305843009213693952', '18446744073709551615';
refuses('no list of pages', forge(\%forger, 'own', 0, 'pages=18446744073709551615'));
refuses('no place for rows', forge(\%forger, 'own', 0, 'back=18446744073709551615'));
refuses("a buffer of $_ units", forge(\%forger, 'own', 0, "units=$_")) for 0, 2, 3, 4_294_967_295;
like(forge(\%forger, 'own', 0, 'count=0'), qr/^done, 0 counted/, 'no pages at all');
refuses("$_ bytes of results", forge(\%forger, 'own', 0, "op=9 count=$_")) for $room, '18446744073709551615';
refuses("results at $_", forge(\%forger, 'own', 0, "op=9 count=64 block=$_")) for $room, 4, '18446744073709551615';
like(forge(\%forger, 'own', 0, "op=9 count=65536 cursor=$_"), qr/^(?:done|refused)/, "results from group $_ on") for 1, 2 ** 31, 2 ** 32, '18446744073709551615';

# ------------------------------------------------- rows of a table without a match
my %right = (scan => $forger{right}, generation => $forger{right_generation});
my $rows = 'count=0 unmatched=1';
like(forge(\%right, 'own', 0, ''), qr/^done, 0 counted, 0 back$/, 'a right join with a table of no rows');
like(forge(\%right, 'own', 0, $rows), qr/^done, 0 counted, 0 back$/, 'none of its rows');
refuses("rows that are none: $_", forge(\%right, 'own', 0, "$rows $_"))
	for 'nrows=1', 'first_row=1', 'first_row=1 nrows=1', 'nrows=131072', 'nrows=16777217', 'first_row=1 nrows=18446744073709551615', 'first_row=18446744073709551615 nrows=1', 'first_row=9223372036854775808 nrows=9223372036854775808', 'nrows=18446744073709551615';
refuses("rows and $_ pages", forge(\%right, 'own', 0, "unmatched=1 count=$_"), qr/^refused: a request is for pages, or/) for 1, 65537, '18446744073709551615';
refuses("rows asked for by $_", forge(\%right, 'own', 0, "count=0 unmatched=$_"), qr/^refused: a request is for pages, or/) for 2, 256, 2 ** 31, 4_294_967_295;
refuses('rows of no table', forge(\%forger, 'own', 0, "$rows nrows=$_")) for 0, 1;
refuses('rows of the table itself', forge({ scan => $forger{table}, generation => $forger{table_generation} }, 'own', 0, "$rows nrows=$_")) for 0, 1;
refuses("rows of another session's scan", forge({ scan => $victim{right}, generation => $victim{right_generation} }, 'own', 0, $rows), qr/^refused: .*another session/);
like(forge(\%right, 'own', 0, "$rows pages=$_ bitmaps=$_ back=$_ back_room=$_"), qr/^done, 0 counted, 0 back$/, 'arrays that nothing is read from or written to') for 2 ** 31, '18446744073709551600';

# -------------------------------------------------------------- scans and tables
refuses("operation $_ on another session's scan", forge(\%victim, 'own', 0, "op=$_"), qr/^refused: .*another session/) for 7 .. 11;
refuses("operation $_ on a scan", forge(\%forger, 'own', 0, "op=$_")) for 0 .. 7, 12, 99, 4_294_967_295;
refuses('an older scan of that number', forge(\%forger, 'own', 0, 'table_generation=' . ($forger{generation} + 1)));
refuses('pages for a table that was made', forge({ scan => $forger{table}, generation => $forger{table_generation} }, 'own', 0, ''));
refuses('a table of a scan that makes groups', forge(\%forger, 'own', 0, 'op=10'));
is(($victim->do("SELECT 'alive'"))[0], 'alive', 'the other session goes on');

# ------------------------------------------------------------------------ plans
my $seed = seed();
my ($plans, $plans_err) = $forger->do("SELECT gpuhash_forge_plans(400, $seed)", 300);
like($plans . $plans_err, qr/^made [1-9]\d*, refused [1-9]\d*: ./, 'damaged plans');
note($plans);

note("$tried forged requests, $refused refused");
is($refused, $tried, 'all were refused');
like(forge(\%forger, 'own', 0, ''), $DONE, 'an honest request is served');
my %workers = $service->workers;
$_->close for $victim, $forger;
like($service->settle, $GpuHash::Service::CLEAN, 'nothing is left over');
is(join(',', values %{ { $service->workers } }), $workers{0}, 'the worker is still the same');
$service->stop;
unlike($server->log, qr/PANIC|TRAP|terminated by signal|its gpuhash worker ends/, 'a clean log');

done_testing();
