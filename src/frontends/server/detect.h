/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KELP_FRONTENDS_SERVER_DETECT_H_
#define KELP_FRONTENDS_SERVER_DETECT_H_

#include "frontends/http/thread.h"

/* Creates a connection whose version of HTTP is not known yet. The first bytes of the client select
 * it. Takes the socket, also on failure. Any thread. */
kelp_status *kelp_http_detect_create(kelp_http_thread *thread, int take_fd,
                                     kelp_http_connection **out) KELP_MUST_USE;

#endif
