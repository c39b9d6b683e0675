# Requests on pipelines that no client of ours would make: forged addresses of pages, sizes, names of what is used,
# options.  The worker refuses each or does what it may, and stays whole.
use GpuHash::Test 'module';
use GpuHash::Service;

my $service = GpuHash::Service->new;
my $server = $service->server;
ok($service->wait_ready, 'the worker finds its device');
$server->query('CREATE TABLE o AS SELECT i AS k, i::bigint AS v FROM generate_series(1, 2000) i; VACUUM (FREEZE) o');
my ($victim, $forger) = map { $server->session } 1, 2;
my @NAMES = qw(slot pipeline generation marking marking_generation table table_generation marks marks_generation);
my (%victim, %forger);
@victim{@NAMES} = split / /, ($victim->do('SELECT gpuhash_forge_hold_pipeline()'))[0];
@forger{@NAMES} = split / /, ($forger->do('SELECT gpuhash_forge_hold_pipeline()'))[0];
my ($tried, $refused) = (0, 0);
my $DONE = qr/^done, \d+ counted, 0 back$/;

sub forge
{
	my ($of, $page, $offset, $fields) = @_;
	my ($out, $err) = $forger->do("SELECT gpuhash_forge_pipeline('o'::regclass, $of->{pipeline}, $of->{generation}, '$page', $offset, '$fields')");
	return $out . $err;
}

sub refuses
{
	my ($what, $answer, $why) = @_;
	$tried++;
	$refused++ if like($answer, $why // qr/^invalid: ./, "$what: $answer");
	return;
}

# -------------------------------------------------------------------- addresses
like(forge(\%forger, 'own', 0, ''), $DONE, 'an honest request is served');
my $ELSEWHERE = qr/^invalid: a page of the request is not in memory/;
my $room = 512 * 1024;
refuses("a page at own buffer + $_", forge(\%forger, 'own', $_, ''), $ELSEWHERE) for $room - 65536 - 8176, $room - 65536 - 16, $room - 65536, -65536 - 16, 2 ** 40, -2 ** 40;
refuses("a page in another session's buffer + $_", forge(\%forger, $victim{slot}, $_, ''), $ELSEWHERE) for 0, 8192, $room - 8192, -8192, -16;
refuses("a page in the session's other buffer, and the next one", forge(\%forger, $forger{slot}, $room - 4096, ''), $ELSEWHERE);
refuses("a page at the area's end + $_", forge(\%forger, 'area end', $_, ''), $ELSEWHERE) for -8192, -4096, -16, 0, 8192;
refuses("a page at the area's begin + $_", forge(\%forger, 'area', $_, ''), $ELSEWHERE) for -8192, -16;
refuses("a page at the begin of shared_buffers + $_", forge(\%forger, 'pool', $_, ''), $ELSEWHERE) for -8192, -16, 16, 4096, 8176;
refuses("a page at the end of shared_buffers + $_", forge(\%forger, 'pool end', $_, ''), $ELSEWHERE) for -8176, -4096, -16, 0, 16, 8192;
refuses("a page in the service's own memory + $_", forge(\%forger, 'service', $_, ''), $ELSEWHERE) for 0, 4096, 65536;
refuses("a page at address $_", forge(\%forger, 'null', $_, ''), $ELSEWHERE) for 8192, -8192, '9223372036854775807';
refuses('a page at address 0', forge(\%forger, 'null', 0, ''), qr/^invalid: page 0 of a request is not/);
like(forge(\%forger, 'pool', 0, ''), qr/^done, \d+ counted, \d+ back$/, 'the first page of shared_buffers');
like(forge(\%forger, 'pool end', -8192, ''), qr/^done, \d+ counted, \d+ back$/, 'the last one');
like(forge(\%forger, $forger{slot}, 0, ''), qr/^done, \d+ counted, \d+ back$/, "the session's other buffer");
like(forge(\%forger, 'own', 16, ''), qr/^done, \d+ counted, \d+ back$/, 'bytes that are no page');
refuses('a page that is not aligned', forge(\%forger, 'own', 8, ''), qr/^invalid: .*aligned/);

# -------------------------------------------------------------- arrays and sizes
for my $array (qw(pages bitmaps back))
{
	for my $offset ($room, $room - 8, $room + 8, 4, 2 ** 31, '9223372036854775800', '18446744073709551608')
	{
		refuses("$array at $offset", forge(\%forger, 'own', 0, "brought.nbitmaps=5 $array=$offset"));
	}
}
refuses("$_ pages", forge(\%forger, 'own', 0, "brought.npages=$_")) for 32769, 65537, 2 ** 31, 4_294_967_295;
refuses("$_ words of bitmaps", forge(\%forger, 'own', 0, "bitmaps=8 brought.nbitmaps=$_")) for 65536, '2305843009213693952', '18446744073709551615';
refuses("room for $_ rows", forge(\%forger, 'own', 0, "brought.back_room=$_")) for 0, 65536, '2305843009213693952', '18446744073709551615';
like(forge(\%forger, 'own', 0, 'brought.back_room=1'), $DONE, 'room for fewer rows than there are');
refuses('no list of pages', forge(\%forger, 'own', 0, 'pages=18446744073709551615'));
refuses('no place for rows', forge(\%forger, 'own', 0, 'back=18446744073709551615'));
refuses("a buffer of $_ units", forge(\%forger, 'own', 0, "units=$_")) for 0, 2, 3, 4_294_967_295;
like(forge(\%forger, 'own', 0, "count=$_"), $DONE, "a count that nothing depends on: $_") for 0, 2 ** 40;
like(forge(\%forger, 'own', 0, 'brought.npages=0'), qr/^done, 0 counted/, 'no pages at all');
refuses("rows of kind $_", forge(\%forger, 'own', 0, "brought.kind=$_")) for 0, 3, 4, 5, 2 ** 31, 4_294_967_295;
refuses('rows as columns without any', forge(\%forger, 'own', 0, "brought.kind=2 brought.count=$_ vectors=18446744073709551615 given=18446744073709551615")) for 0, 1, 2 ** 40;
refuses("$_ bytes of results", forge(\%forger, 'own', 0, "op=9 count=$_")) for $room, '18446744073709551615';
refuses("results at $_", forge(\%forger, 'own', 0, "op=9 count=64 block=$_")) for $room, 4, '18446744073709551615';
refuses("results from $_ on", forge(\%forger, 'own', 0, "op=9 count=65536 cursor=$_"), qr/^invalid: .*from where they ended/) for 1, 8, 24, 2 ** 31, 2 ** 32, '18446744073709551615';

# ---------------------------------------------------------------- pages that stay
{
	my $span = sub { my ($root, $fields) = @_; return "brought.nspans=1 span=$root $fields" };
	my ($root) = $forger->do('SELECT gpuhash_forge_span(16)');
	like($root, qr/^\d+$/, "a span of 16 pages: $root");
	like(($forger->do("SELECT gpuhash_forge_span($_)"))[0], qr/^invalid: a span has no/, "a span of $_ pages") for 0, 65537, 4_294_967_295;
	like(forge(\%forger, 'own', 0, $span->($root, 'page.span=1 page.place=3')), $DONE, 'a page is put there');
	like(forge(\%forger, 'null', 0, $span->($root, 'page.span=1 page.place=3')), $DONE, 'and read there');
	refuses("place $_ of 16", forge(\%forger, 'null', 0, $span->($root, "page.span=1 page.place=$_")), qr/^invalid: /) for 16, 17, 2 ** 31, 4_294_967_295;
	refuses("span $_ of one", forge(\%forger, 'null', 0, $span->($root, "page.span=$_ page.place=0")), qr/^invalid: /) for 0, 2, 17, 4_294_967_295;
	refuses("$_ spans", forge(\%forger, 'null', 0, "brought.nspans=$_ span=$root page.span=1"), qr/^invalid: /) for 0, 2, 17, 4_294_967_295;
	refuses("the span $_", forge(\%forger, 'null', 0, $span->($_, 'page.span=1')), qr/^invalid: a request names a span that is gone/)
		for 0, 1, $root + 8192, $root - 8192, $victim{table}, '18446744073709551615';
	like(forge(\%forger, 'null', 0, $span->($root, 'page.span=1 page.place=9 page.lines=100')), qr/^done, \d+ counted, \d+ back$/, 'a place that nothing was put into');
}

# ------------------------------------------------------------------ rows as columns
sub columns
{
	my ($part, $address, $offset, $fields) = @_;
	my ($out, $err) = $forger->do("SELECT gpuhash_forge_columns('$part', '$address', $offset, '$fields')");
	return $out . $err;
}
my $at = 65536;		# 'own', from the buffer's begin on
my $OUTSIDE = qr/^invalid: .* outside its buffer/;
is(columns('nothing', 'null', 0, ''), 'done, 100 counted, 0 back', 'honest columns');
for my $part (qw(low high null))
{
	my $bytes = $part eq 'null' ? 100 : 800;
	like(columns($part, 'own', $room - $at - $bytes, ''), qr/^(?:done|invalid: a text)/, "$part at the buffer's end");
	refuses("$part at own buffer + $_", columns($part, 'own', $_, ''), $OUTSIDE) for $room - $at - $bytes + 1, $room - $at, -$at - 1, 2 ** 40, -2 ** 40;
	refuses("$part in another session's buffer", columns($part, $victim{slot}, 0, ''), $OUTSIDE);
	refuses("$part in the session's other buffer", columns($part, $forger{slot}, 0, ''), $OUTSIDE);
	refuses("$part in shared_buffers", columns($part, 'pool', 0, ''), $OUTSIDE);
	refuses("$part at address $_", columns($part, 'null', $_, ''), $OUTSIDE) for 1, -8, '9223372036854775807';
	refuses("no $part", columns($part, 'null', 0, ''));
}
is(columns('text', 'own', $room - $at - 10, ''), 'done, 100 counted, 0 back', "a text at the buffer's end");
refuses("a text at own buffer + $_", columns('text', 'own', $_, ''), $OUTSIDE) for $room - $at - 9, -$at - 1, 2 ** 40;
refuses("a text in $_", columns('text', $_, 0, ''), $OUTSIDE) for $victim{slot}, $forger{slot}, 'pool', 'service', 'null';
refuses("a text of $_ bytes", columns('length', 'null', $_, ''), $OUTSIDE) for $room, 2 ** 40, -1, '9223372036854775807';
for my $array (qw(given vectors))
{
	refuses("$array at $_", columns('nothing', 'null', 0, "$array=$_")) for $room, $room + 8, 4, 2 ** 31, '9223372036854775800', '18446744073709551608', '18446744073709551615';
}
refuses("$_ vectors", columns('nothing', 'null', 0, "brought.ngiven=$_")) for 0, 1, 3, 1000, 65536, 4_294_967_295;
refuses("$_ rows", columns('nothing', 'null', 0, "brought.count=$_ brought.back_room=$_")) for 64000, 2 ** 24, 2 ** 24 + 1, 2 ** 40, '18446744073709551615';
refuses("step $_", columns('nothing', 'null', 0, "brought.step=$_"), qr/^invalid: rows enter a pipeline of 1 steps/) for 2, 3, 4_294_967_295;
is(columns('nothing', 'null', 0, 'brought.step=1'), 'done, 100 counted, 0 back', 'columns that enter behind the first step');
is(columns('text', 'own', $room - $at - 10, 'brought.step=1'), 'done, 100 counted, 0 back', "likewise, with a text at the buffer's end");
refuses("likewise, with a text at own buffer + $_", columns('text', 'own', $_, 'brought.step=1'), $OUTSIDE) for $room - $at - 9, -$at - 1, 2 ** 40;
refuses("likewise, with a text of $_ bytes", columns('length', 'null', $_, 'brought.step=1'), $OUTSIDE) for $room, -1;
# what an instruction has made would not be looked at
refuses("a text that is no column's, in $_", columns('temporary', $_, 0, 'brought.step=1'), qr/^invalid: .*bring what is no column/) for 'own', 'null', $victim{slot}, 'service';
refuses('nor before the first step', columns('temporary', 'own', 0, ''), qr/^invalid: .*lack a vector/);
refuses('arrays that overlap', columns('nothing', 'null', 0, "brought.count=$_ brought.back_room=$_"), qr/^invalid: .* than its buffer/) for 16000, 30000;
is(columns('nothing', 'null', 0, 'brought.count=0'), 'done, 0 counted, 0 back', 'no rows');

# ------------------------------------------------------------ rows without a match
my %marking = (pipeline => $forger{marking}, generation => $forger{marking_generation});
my $rows = 'brought.kind=4 brought.back_room=100';
like(forge(\%marking, 'own', 0, ''), $DONE, 'a pipeline that marks');
like(forge(\%marking, 'own', 0, $rows), $DONE, 'no rows without a match');
refuses("rows that are none: $_", forge(\%marking, 'own', 0, "$rows $_"))
	for 'brought.count=1', 'brought.first=1', 'brought.first=1 brought.count=18446744073709551615', 'brought.first=18446744073709551615 brought.count=1', 'brought.count=18446744073709551615', 'brought.step=1', 'brought.step=4294967295';
sub unmatched
{
	my ($fields) = @_;
	my ($out, $err) = $forger->do("SELECT gpuhash_forge_unmatched('o'::regclass, '$fields')");
	return $out . $err;
}
my $MOST = 1 << 24;		# GH_REQUEST_LINES_MAX
is(unmatched("brought.first=$$_[0] brought.count=$$_[1]"), "done, $$_[1] counted, 0 back", "$$_[1] rows of a table from row $$_[0] on") for [0, 2000], [0, 0], [0, 1], [2000, 0], [1999, 1], [5, 1000];
is(unmatched('brought.back_room=1'), 'done, 2000 counted, 0 back', 'with room for fewer to come back');
refuses("$$_[1] rows of 2000 from row $$_[0] on", unmatched("brought.first=$$_[0] brought.count=$$_[1]"), qr/^invalid: a request is for/)
	for [0, 2001], [2000, 1], [1, 2000], [2001, 0], [0, $MOST - 1], [0, $MOST], [0, $MOST + 1], [0, 2 ** 32 + 10], [0, 2 ** 40], [0, '18446744073709551615'], [10, '18446744073709551615'], ['18446744073709551615', 2];
refuses("$_, of rows of a table", unmatched($_)) for 'brought.back_room=0', "back=18446744073709551615", "brought.back_room=$MOST", 'brought.back_room=18446744073709551615', 'brought.step=1', 'brought.step=4294967295', 'brought.back_room=65536';
refuses('rows of a source that is none', forge(\%marking, 'own', 0, "brought.kind=3 brought.count=$_ brought.back_room=100")) for 0, 1;

# --------------------------------------------------------- entries of other kinds
refuses("operation $_ on another session's pipeline", forge(\%victim, 'own', 0, "op=$_"), qr/^device error: .*another session/) for 8 .. 12;
refuses("operation $_ on a pipeline", forge(\%forger, 'own', 0, "op=$_"), qr/^(?:invalid|device error): ./) for 0 .. 7, 10, 13, 14, 99, 4_294_967_295;
my %table = (pipeline => $forger{table}, generation => $forger{table_generation});
my %marks = (pipeline => $forger{marks}, generation => $forger{marks_generation});
refuses("operation $_ on a table that was made", forge(\%table, 'own', 0, "op=$_"), qr/^(?:invalid|device error): ./) for 0 .. 5, 7 .. 9, 11, 13, 14, 99;
like(forge(\%table, 'own', 0, "op=$_"), qr/^done/, "operation $_ on it") for 6, 10, 12;

# Requests with arrays on it: it is a set, which nobody changes.
{
	my $none = '18446744073709551615';
	my $find = sub
	{
		my ($of, $fields) = @_;
		my ($out, $err) = $forger->do("SELECT gpuhash_forge_request($of->{table}, $of->{table_generation}, 'values_out=$none $fields', -1)");
		return $out . $err;
	};
	my $room = 512 * 1024;
	is($find->(\%forger, 'flags_out=4096'), 'done, 0 found', 'a find in it');
	is($find->(\%forger, 'run_op=7 counts_out=4096'), 'done, 0 found', 'a count in it');
	refuses('values of a find', $find->(\%forger, 'values_out=4096'), qr/^refused: values_out must be NULL/);
	refuses("values of a count at $_", $find->(\%forger, "run_op=7 counts_out=4096 values_out=$_"), qr/^refused: a count request has values_out/) for 8192, $room - 8;
	refuses("request $_ on it", $find->(\%forger, "run_op=$_ values_in=8192 values_out=16384 ops=32768 offsets_out=40960"), qr/^refused: a table that a pipeline made does not change/) for 1 .. 5, 8 .. 11;
	refuses("keys at $_", $find->(\%forger, "flags_out=4096 keys=$_"), qr/^refused: an array/) for $room, $room - 8, 4, 2 ** 31;
	refuses("flags at $_", $find->(\%forger, "flags_out=$_"), qr/^refused: an array/) for $room, $room - 8, 4, 2 ** 31;
	refuses("counts at $_", $find->(\%forger, "run_op=7 counts_out=$_"), qr/^refused: an array/) for $room, $room - 8, 4, 2 ** 31;
	refuses("$_ keys", $find->(\%forger, "flags_out=4096 count=$_"), qr/^refused: /) for 65537, 2 ** 30 + 1, $none;
	refuses("another session's", $find->(\%victim, 'flags_out=4096'), qr/^refused: .*another session/);
}
refuses("operation $_ on marks", forge(\%marks, 'own', 0, "op=$_"), qr/^(?:invalid|device error): ./) for 0 .. 14, 99;
refuses('an older pipeline of that number', forge(\%forger, 'own', 0, 'table_generation=' . ($forger{generation} + 1)), qr/^device error: /);

# ------------------------------------------------------------------ what is used
sub root { my ($of, $what) = @_; return (($of->{"${what}_generation"} // $of->{generation}) << 13 | $of->{$what}) + 1 }
sub names
{
	my ($which, $source, $table, $marks) = @_;
	my ($out, $err) = $forger->do("SELECT gpuhash_forge_names($which, $source, $table, $marks)");
	return $out . $err;
}
is(names($_, 0, 0, 0), 'ok: ', "a pipeline that uses what it should, $_") for 0, 1, 2;
is(names(0, 0, 0, -1), 'ok: ', 'no marks');
my %wrong = ("another session's table" => root(\%victim, 'table'), "another session's marks" => root(\%victim, 'marks'), "another session's pipeline" => root(\%victim, 'pipeline'),
	'none' => -1, 'an older one' => root(\%forger, 'table') + (1 << 13), 'a number that is none' => 8192, 'the largest number' => '9223372036854775807');
for my $what (sort keys %wrong)
{
	refuses("the table of a probe: $what", names(0, 0, $wrong{$what}, 0));
	refuses("the groups: $what", names(1, $wrong{$what}, 0, 0));
	refuses("the marks: $what", names(0, 0, 0, $wrong{$what})) if $what ne 'none';
}
my %own = map { $_ => root(\%forger, $_) } qw(table marks pipeline marking);
refuses("the table of a probe is a $_", names(0, 0, $own{$_}, 0)) for qw(marks pipeline marking);
refuses("the groups are a $_", names(1, $own{$_}, 0, 0)) for qw(marks table marking);
refuses("the marks are a $_", names(0, 0, 0, $own{$_})) for qw(table pipeline marking);
is(($victim->do("SELECT 'alive'"))[0], 'alive', 'the other session goes on');

# Groups of several sets.
sub sets
{
	my ($there, $said, $changed) = @_;
	my ($out, $err) = $forger->do("SELECT gpuhash_forge_sets($there, $said, '" . ($changed // '') . "')");
	return $out . $err;
}
is(sets($_, $_), 'ok: ', "$_ sets") for 1, 2, 3, 8;
is(sets(3, $_), 'ok: ', "$_ of 3 sets") for 0, 1, 2;
refuses("$_ of 2 sets", sets(2, $_)) for 3, 8, 9, 2 ** 20, 2 ** 31, 4_294_967_295;
refuses("$_ of 8 sets", sets(8, $_)) for 9, 1000, 4_294_967_295;
refuses("another $_ in a set", sets(2, 2, $_)) for 'key class', 'key vector', 'key padded', 'kind', 'class', 'argument', 'filter', 'filter class';

# Tables that this session may use, but that other threads of the worker do: threads go by the number of the entry.
{
	my ($same, $other) = (0, 0);
	for (1 .. 4)
	{
		my $sharer = $server->session;
		sub step { my ($of, $step, $root) = @_; return join '', $of->do("SELECT gpuhash_trial_shared('$step', $root, 'o'::regclass, 0, 0)") }
		my $root = step($sharer, 'make table', 0);
		is(step($sharer, 'finish table', 0), 0, 'a session makes a table for all');
		my $wanted = ($root - 1) % 4 == $forger{table} % 4;
		my $answer = names(0, 0, $root, -1);
		if ($wanted) { $same++; is($answer, 'ok: ', 'the table of a probe is of the same thread') }
		else { $other++; refuses('the table of a probe is of another thread', $answer, qr/^invalid: the table is another executor's/) }
		$sharer->send('SELECT 1');
		# it stays there, so that the next one is another process
		push @{ $forger{sharers} }, $sharer;
		push @{ $forger{roots} }, $root;
	}
	cmp_ok($other, '>', 0, 'some are of other threads');
	step($forger, 'release', $_) for @{ $forger{roots} };
	$_->receive, $_->close for @{ $forger{sharers} };
}

# ---------------------------------------------------------------------- options
my $seed = seed();
my ($blocks, $blocks_err) = $forger->do("SELECT gpuhash_forge_blocks(600, $seed)", 300);
like($blocks . $blocks_err, qr/^ok [1-9]\d*, .*invalid [1-9]\d*, /, 'damaged options');
unlike($blocks, qr/timeout|device error/, 'the worker answers each, and stays');
note($blocks);

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
