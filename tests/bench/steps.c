/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single steps: the processor's trap flag, set and cleared in the saved flags of a signal frame,
 * raises SIGTRAP before each next instruction, whose bytes the handler then looks at. Only what
 * lies between the two marks counts, so the path through raise() does not.
 *
 * System calls at full speed: syscall user dispatch turns each into SIGSYS while a selector byte
 * says so. The handler opens the selector and steps back onto the instruction, so the call is
 * made after all; that there was one is enough to know.
 */
#include "steps.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>

#if defined(__x86_64__)

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

enum {
	DISPATCH_OFF = 0,
	DISPATCH_ON = 1,
	SELECT_ALLOW = 0,
	SELECT_BLOCK = 1,
	TRAP_FLAG = 0x100,
	SYSCALL_BYTES = 2,
};

static volatile sig_atomic_t counting;
static volatile sig_atomic_t stop_stepping;
static volatile char selector;
static volatile sig_atomic_t caught;
static struct steps found;

static bool is_prefix(uint8_t b)
{
	return b == 0x66 || b == 0x67 || b == 0xf2 || b == 0xf3 || b == 0x2e || b == 0x36 ||
	       b == 0x3e || b == 0x26 || b == 0x64 || b == 0x65;
}

static bool is_rex(uint8_t b)
{
	return (b & 0xf0) == 0x40;
}

static void look_at(const uint8_t *p)
{
	found.instructions++;
	while (is_prefix(*p))
		p++;
	if (*p == 0xf0) {
		found.locked++;
		return;
	}
	if (is_rex(*p))
		p++;
	/* an exchange with memory locks without saying so */
	if ((*p == 0x86 || *p == 0x87) && (p[1] & 0xc0) != 0xc0)
		found.locked++;
	if (p[0] == 0x0f && p[1] == 0x05)
		found.system_calls++;
}

static void on_step(int sig, siginfo_t *info, void *frame)
{
	ucontext_t *u = frame;
	const uint8_t *at;

	(void)sig;
	(void)info;
	if (stop_stepping) {
		u->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
		return;
	}
	u->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
	memcpy(&at, &u->uc_mcontext.gregs[REG_RIP], sizeof(at));
	if (counting)
		look_at(at);
}

static void on_system_call(int sig, siginfo_t *info, void *frame)
{
	ucontext_t *u = frame;

	(void)sig;
	(void)info;
	caught = 1;
	selector = SELECT_ALLOW;
	u->uc_mcontext.gregs[REG_RIP] -= SYSCALL_BYTES;
}

static bool catch_signal(int sig, void (*handler)(int, siginfo_t *, void *), struct sigaction *old)
{
	struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};

	sigemptyset(&a.sa_mask);
	return !sigaction(sig, &a, old);
}

bool steps_count(void (*fn)(void *ctx), void *ctx, struct steps *out)
{
	struct sigaction old;

	if (!catch_signal(SIGTRAP, on_step, &old))
		return false;
	memset(&found, 0, sizeof(found));
	counting = 0;
	stop_stepping = 0;
	raise(SIGTRAP);
	counting = 1;
	fn(ctx);
	counting = 0;
	stop_stepping = 1;
	/* one more instruction is stepped here, and its trap ends it */
	__asm__ volatile("nop");
	sigaction(SIGTRAP, &old, NULL);
	*out = found;
	return found.instructions > 0;
}

bool steps_any_system_call(void (*fn)(void *ctx), void *ctx, bool *any)
{
	struct sigaction old;

	caught = 0;
	selector = SELECT_ALLOW;
	if (!catch_signal(SIGSYS, on_system_call, &old))
		return false;
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, DISPATCH_ON, 0, 0, &selector)) {
		sigaction(SIGSYS, &old, NULL);
		return false;
	}
	selector = SELECT_BLOCK;
	fn(ctx);
	selector = SELECT_ALLOW;
	prctl(PR_SET_SYSCALL_USER_DISPATCH, DISPATCH_OFF, 0, 0, 0);
	sigaction(SIGSYS, &old, NULL);
	*any = caught;
	return true;
}

#else

bool steps_count(void (*fn)(void *ctx), void *ctx, struct steps *out)
{
	(void)fn;
	(void)ctx;
	(void)out;
	return false;
}

bool steps_any_system_call(void (*fn)(void *ctx), void *ctx, bool *any)
{
	(void)fn;
	(void)ctx;
	(void)any;
	return false;
}

#endif
