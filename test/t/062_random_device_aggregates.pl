# Random aggregations by the device of the service give PostgreSQL's groups (GpuHash::RandomAggregateRun): the
# device is the stand-in for it (test/fault), unless GPUHASH_STAND_IN is "no".
#
#	GPUHASH_RANDOM_QUERIES		how many queries (600, and 200 by two devices); others of GpuHash::RandomRun
use GpuHash::Test 'module';
use GpuHash::RandomAggregateRun;

GpuHash::RandomAggregateRun::test(queries => 600, device => 1);
SKIP:
{
	skip 'two devices: how many GPUs there are is not known', 1 if ($ENV{GPUHASH_STAND_IN} || '') eq 'no';
	GpuHash::RandomAggregateRun::test(queries => 200, device => 1, devices => 2);
}
done_testing();
