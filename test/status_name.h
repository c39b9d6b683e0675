/*
 * status_name.h
 *		Statuses of the engines by name, as tests and benchmarks show them.
 */
#ifndef GH_TEST_STATUS_NAME_H
#define GH_TEST_STATUS_NAME_H

#include "engine/engine.h"

static inline const char *
gh_status_name(GhStatus status)
{
	switch (status)
	{
		case GH_OK:
			return "ok";
		case GH_BUSY:
			return "busy";
		case GH_STOPPED:
			return "stopped";
		case GH_TOO_SMALL:
			return "too small";
		case GH_NO_MEMORY:
			return "no memory";
		case GH_LIMIT:
			return "limit";
		case GH_TOO_MANY:
			return "too many";
		case GH_NO_BUFFERS:
			return "no buffers";
		case GH_INVALID:
			return "invalid";
		case GH_UNSUPPORTED:
			return "unsupported";
		case GH_DECLINED:
			return "declined";
		case GH_UNAVAILABLE:
			return "unavailable";
		case GH_TIMEOUT:
			return "timeout";
		case GH_DEVICE_ERROR:
			return "device error";
	}
	return "unknown";
}

#endif							/* GH_TEST_STATUS_NAME_H */
