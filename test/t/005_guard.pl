# An error under guard.c: the locks that it leaves are released, and no other; also the way that servers need whose
# lwlock.c has no list of what is held.
use GpuHash::Test 'module';

my $server = GpuHash::Server->new(module => 1);
for my $has_list ('true', 'false')
{
	# LWLocks hold interrupts off: one for the lock that is still held
	is($server->query("SELECT gpuhash_test_guard($has_list)"), 'done 0, held 1 0 0, interrupts held off 1',
		"an error under the guard, list of locks: $has_list");
}
my $error = () = $server->log =~ /out of memory, as a test wants it/g;
is($error, 2, 'the log has the errors');
$server->stop;
done_testing();
