/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the hunt: hunt.c makes faults and heals, promise.c looks at what must hold. */
#ifndef HC_HUNTIMP_H
#define HC_HUNTIMP_H

#include "hunt.h"

#include "net.h"

#define NODES_MAX 64u
#define RAILS_MAX 8u

/* Since when something is as it should be; HC_NEVER: it is not. */
struct hunt_health {
	uint64_t node[NODES_MAX]; /* its daemon runs, by one setting */
	uint64_t port[NODES_MAX][RAILS_MAX];
	uint64_t *wire; /* [from][to][rail] */
};

/* Numbered test messages of one node to another. */
struct hunt_mail {
	uint32_t sent, from_life; /* of this life of the sender */
	uint32_t took, to_life;   /* the last one that this life of the receiver took */
};

struct hunter {
	struct hunt *h;
	struct sim *sim;
	bool down[NODES_MAX], frozen[NODES_MAX]; /* killed or crashed; standing still */
	uint64_t thawed[NODES_MAX];              /* when it went on last */
	struct hunt_health ok;
	struct hunt_mail *mail; /* [from][to] */
};

__attribute__((format(printf, 2, 3))) void hunt_broken(struct hunt *h, const char *fmt, ...);

/* After each step of a core. */
void hunt_check(struct sim *s, uint32_t node, void *arg);
/* A core took a numbered message. */
void hunt_took(struct sim *s, uint32_t node, uint32_t from, uint32_t life, const struct hc_frame *f,
	       void *arg);
/* One numbered message. */
void hunt_post(struct hunter *w, uint32_t from, uint32_t to);
/* All that was posted last has come. */
bool hunt_mail_came(const struct hunter *w);
/* Of a whole run: nobody fills the log. */
void hunt_check_log(struct hunter *w);

static inline struct hunt_mail *hunt_mail_of(const struct hunter *w, uint32_t from, uint32_t to)
{
	return &w->mail[from * w->h->nodes + to];
}

static inline uint64_t *hunt_wire_of(const struct hunter *w, uint32_t from, uint32_t to,
				     uint32_t rail)
{
	return &w->ok.wire[(from * w->h->nodes + to) * w->h->rails + rail];
}

#endif
