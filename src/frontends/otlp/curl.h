/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of libcurl that Kelp uses, loaded from libcurl.so.4 for the first exporter or
 * download. Constants and signatures: curl.h and multi.h of libcurl 7.68, which are stable across
 * versions of libcurl.so.4. Declared here, so that the build needs no headers of libcurl, and
 * programs that export and download nothing need no library.
 */
#ifndef KELP_FRONTENDS_OTLP_CURL_H_
#define KELP_FRONTENDS_OTLP_CURL_H_

#include <kelp/status.h>

#include <time.h>

typedef struct kelp_curl_easy CURL;
typedef struct kelp_curl_multi CURLM;
typedef struct kelp_curl_slist curl_slist;

/* Options of curl_easy_setopt. */
enum {
    CURLOPT_LOW_SPEED_LIMIT = 19,
    CURLOPT_LOW_SPEED_TIME = 20,
    CURLOPT_NOPROGRESS = 43,
    CURLOPT_POST = 47,
    CURLOPT_FOLLOWLOCATION = 52,
    CURLOPT_MAXREDIRS = 68,
    CURLOPT_HTTPGET = 80,
    CURLOPT_HTTP_VERSION = 84,
    CURLOPT_NOSIGNAL = 99,
    CURLOPT_TIMEOUT_MS = 155,
    CURLOPT_CONNECTTIMEOUT_MS = 156,
    CURLOPT_PROTOCOLS = 181,
    CURLOPT_REDIR_PROTOCOLS = 182,
    CURLOPT_WRITEDATA = 10001,
    CURLOPT_URL = 10002,
    CURLOPT_USERPWD = 10005,
    CURLOPT_RANGE = 10007,
    CURLOPT_ERRORBUFFER = 10010,
    CURLOPT_POSTFIELDS = 10015,
    CURLOPT_USERAGENT = 10018,
    CURLOPT_HTTPHEADER = 10023,
    CURLOPT_SSLCERT = 10025,
    CURLOPT_HEADERDATA = 10029,
    CURLOPT_XFERINFODATA = 10057,
    CURLOPT_CAINFO = 10065,
    CURLOPT_SSLKEY = 10087,
    CURLOPT_AWS_SIGV4 = 10305, /* 7.75 */
    CURLOPT_WRITEFUNCTION = 20011,
    CURLOPT_HEADERFUNCTION = 20079,
    CURLOPT_XFERINFOFUNCTION = 20219,
    CURLOPT_POSTFIELDSIZE_LARGE = 30120
};
enum { CURLINFO_RESPONSE_CODE = 0x200002 };
enum { CURL_GLOBAL_DEFAULT = 3 };
enum { CURL_HTTP_VERSION_1_1 = 2 };
enum { CURLPROTO_HTTP = 1, CURLPROTO_HTTPS = 2 };
enum {
    CURLE_OK = 0,
    CURLE_UNSUPPORTED_PROTOCOL = 1,
    CURLE_URL_MALFORMAT = 3,
    CURLE_WRITE_ERROR = 23,
    CURLE_OUT_OF_MEMORY = 27,
    CURLE_TOO_MANY_REDIRECTS = 47,
    CURLE_PEER_FAILED_VERIFICATION = 60
};
enum { CURLMSG_DONE = 1 };
#define CURL_ERROR_SIZE 256

/* A message of curl_multi_info_read. */
typedef struct CURLMsg {
    int msg;
    CURL *easy_handle;
    union {
        void *whatever;
        int result;
    } data;
} CURLMsg;

typedef struct kelp_curl {
    int (*curl_global_init)(long flags);
    CURL *(*curl_easy_init)(void);
    void (*curl_easy_cleanup)(CURL *easy);
    int (*curl_easy_setopt)(CURL *easy, int option, ...);
    int (*curl_easy_getinfo)(CURL *easy, int info, ...);
    int (*curl_easy_perform)(CURL *easy);
    void (*curl_easy_reset)(CURL *easy);
    const char *(*curl_easy_strerror)(int result);
    CURLM *(*curl_multi_init)(void);
    int (*curl_multi_cleanup)(CURLM *multi);
    int (*curl_multi_add_handle)(CURLM *multi, CURL *easy);
    int (*curl_multi_remove_handle)(CURLM *multi, CURL *easy);
    int (*curl_multi_perform)(CURLM *multi, int *out_running);
    int (*curl_multi_poll)(CURLM *multi, void *extra_fds, unsigned extra_count, int timeout_ms,
                           int *out_ready);
    int (*curl_multi_wakeup)(CURLM *multi);
    CURLMsg *(*curl_multi_info_read)(CURLM *multi, int *out_left);
    curl_slist *(*curl_slist_append)(curl_slist *list, const char *text);
    void (*curl_slist_free_all)(curl_slist *list);
    time_t (*curl_getdate)(const char *text, const time_t *unused);
} kelp_curl;

/* Returns the functions. FAILED_PRECONDITION if the library is not installed or too old. Any
 * thread. */
kelp_status *kelp_curl_load(const kelp_curl **out) KELP_MUST_USE;

#endif
