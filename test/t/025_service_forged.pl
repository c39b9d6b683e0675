# Requests that no client of ours would make, past all checks of the client: the worker
# refuses each, and no session's buffer or table is touched.
use GpuHash::Test 'module';
use GpuHash::Service;

my $service = GpuHash::Service->new;
my $server = $service->server;
ok($service->wait_ready, 'the worker finds its device');

# Each has a table and a buffer of known content; the first one's buffers come first.
my ($victim, $forger) = map { $server->session } 1, 2;
my (%victim, %forger);
@victim{qw(slot table generation)} = split / /, ($victim->do('SELECT gpuhash_forge_hold()'))[0];
@forger{qw(slot table generation)} = split / /, ($forger->do('SELECT gpuhash_forge_hold()'))[0];
my ($tried, $refused) = (0, 0);

# What becomes of a find of 100 keys with changes.
sub forge
{
	my ($of, $fields, $appended) = @_;
	$appended //= -1;
	my ($out, $err) = $forger->do("SELECT gpuhash_forge_request($of->{table}, $of->{generation}, '$fields', $appended)");
	return $out . $err;
}

sub refuses
{
	my ($what, $answer, $why) = @_;
	$tried++;
	$refused++ if like($answer, $why // qr/^refused: ./, "$what: $answer");
	return;
}

sub all_intact
{
	my ($what) = @_;
	is(($victim->do('SELECT gpuhash_forge_held()'))[0], 'intact', "$what: the other session's buffer and table are intact");
	is(($forger->do('SELECT gpuhash_forge_held()'))[0], 'intact', "$what: and this session's");
	is(forge(\%forger, ''), 'done, 100 found', "$what: an honest request is served");
	return;
}

all_intact('before');

# ------------------------------------------------------------- arrays and sizes
my $room = 512 * 1024;
for my $array (qw(keys values_in ops values_out flags_out counts_out offsets_out))
{
	for my $offset ($room, $room - 8, $room + 8, 4, 2 ** 31, '9223372036854775800', '18446744073709551608')
	{
		refuses("$array at $offset", forge(\%forger, "$array=$offset"));
	}
}
refuses("$_ keys", forge(\%forger, "count=$_")) for 65536, 2 ** 30 + 1, '2305843009213693952', '18446744073709551615';
refuses('more done than asked for', forge(\%forger, 'done=101'));
refuses('no keys', forge(\%forger, 'keys=18446744073709551615'));
# units beyond the buffer, alone and to reach into the next one
for my $units (0, 2, 3, 100, 1_000_000, 4_294_967_295)
{
	refuses("a buffer of $units units", forge(\%forger, "units=$units"));
	refuses("a buffer of $units units, keys in the next one", forge(\%forger, "units=$units keys=$room"));
	refuses("a buffer of $units units, results into the next one", forge(\%forger, "units=$units values_out=$room"));
}
is(forge(\%forger, 'on_device=1'), 'done, 100 found', 'arrays are in the buffer, whatever a request says');
refuses("room for $_ values", forge(\%forger, "run_op=8 values_capacity=$_")) for $room, '2305843009213693952';
all_intact('arrays');

# ------------------------------------------------------------------ operations
refuses("operation $_", forge(\%forger, "run_op=$_")) for 0, 12, 99, 4_294_967_295;
refuses("request $_", forge(\%forger, "op=$_")) for 0, 7, 99, 4_294_967_295;
refuses('a table that is there made again', forge(\%forger, 'op=2'));
all_intact('operations');

# ---------------------------------------------------------------------- tables
refuses('the table of another session', forge(\%victim, ''), qr/^refused: .*another session/);
refuses("clear, reserve, flush or stats ($_) of another session's table", forge(\%victim, "op=$_ keys_wanted=100000")) for 3, 4, 5, 6;
refuses("another session's table made again", forge(\%victim, 'op=2'));
refuses("an insert into another session's table", forge(\%victim, 'run_op=1 values_in=8192'));
refuses("a delete from another session's table", forge(\%victim, 'run_op=9 values_out=18446744073709551615'));
refuses('an older table of that number', forge(\%forger, 'table_generation=' . ($forger{generation} + 1)));
refuses('a table that was freed', forge(\%forger, "table_generation=$_")) for '18446744073709551615';
refuses("table $_", forge(\%forger, "table=$_")) for 100, 8191, 8192, 8192 + $forger{table}, 4_294_967_295;
all_intact('tables');

# ------------------------------------------------------------------ other slots
refuses("another session's slot in the ring", forge(\%forger, '', $victim{slot}), qr/^not answered$/);
refuses('a slot that does not exist', forge(\%forger, '', 2_000_000_000), qr/^not answered$/);
refuses('a device that does not exist', forge(\%forger, 'device=77'), qr/^not answered$/);
all_intact('slots');

note("$tried forged requests, $refused refused");
is($refused, $tried, 'all were refused');
my %workers = $service->workers;
$_->close for $victim, $forger;
like($service->settle, $GpuHash::Service::CLEAN, 'nothing is left over');
is(join(',', values %{ { $service->workers } }), $workers{0}, 'the worker is still the same');
$service->stop;
unlike($server->log, qr/PANIC|TRAP|terminated by signal|its gpuhash worker ends/, 'a clean log');

done_testing();
