/*
 * gpuhash_test.h
 *		What the files of this module share.
 */
#ifndef GPUHASH_TEST_H
#define GPUHASH_TEST_H

/* Throws unless a superuser calls, in a server with the service. */
extern void gh_test_needs_service(void);

#endif							/* GPUHASH_TEST_H */
