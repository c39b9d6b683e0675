# Random aggregations by the device of the service give PostgreSQL's groups (GpuHash::RandomAggregateRun): the
# device is the stand-in for it (test/fault), unless GPUHASH_STAND_IN is "no".
#
#	GPUHASH_RANDOM_QUERIES		how many queries (600, and 200 by two devices); others of GpuHash::RandomRun
#	GPUHASH_GPUS				how many there are, where GPUHASH_STAND_IN is "no" (1)
use GpuHash::Test 'module';
use GpuHash::RandomAggregateRun;

GpuHash::RandomAggregateRun::test(queries => 600, device => 1);
SKIP:
{
	skip 'two devices: GPUHASH_GPUS does not say that there are two', 1 if ($ENV{GPUHASH_STAND_IN} || '') eq 'no' && ($ENV{GPUHASH_GPUS} || 1) < 2;
	GpuHash::RandomAggregateRun::test(queries => 200, device => 1, devices => 2);
}
done_testing();
