/* SPDX-License-Identifier: Apache-2.0 */
/* kelp top: shows the models of a server, their rates, latencies and queues. On a terminal, the
 * view is live; otherwise it is printed once. */
#include "cli/cli.h"

#include "base/checked.h"
#include "base/clock.h"
#include "cli/top/view.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define USUAL_URL "http://localhost:8000"
#define MIN_INTERVAL_S 0.1
#define MAX_INTERVAL_S 3600.0
#define ENTER_SCREEN "\x1b[?1049h\x1b[?25l"
#define LEAVE_SCREEN "\x1b[?25h\x1b[?1049l"

typedef struct top_options {
    kelp_arg_list positionals;
    double interval;
    bool once;
    kelp_cli_http_options http;
} top_options;

#define AT(member) offsetof(top_options, member)
static const kelp_arg_spec specs[] = {
    {.name = "interval",
     .kind = KELP_ARG_F64,
     .offset = AT(interval),
     .value = "S",
     .help = "seconds between two samples (1)"},
    {.name = "once",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(once),
     .help = "print the view once, after one interval, also on a terminal"},
    KELP_CLI_HTTP_OPTIONS(AT(http)),
};
#undef AT

static void defaults(void *options) {
    ((top_options *)options)->interval = 1;
}

typedef struct top {
    const top_options *options;
    kelp_buf url; /* without a trailing '/' */
    kelp_cli_http *client;
    kelp_top_sample samples[2];
    size_t latest; /* index of the later sample */
    kelp_top_view view;
    char error[512];
    uint64_t next_ns; /* time of the next sample */
} top;

/* ---- samples ---- */
/* Reads a sample into the older slot. After a failure, the samples are unchanged. */
static kelp_status *take_sample(top *t) {
    kelp_top_sample sample;
    kelp_status *status = kelp_top_sample_read(t->client, t->view.url, &sample);
    if (status != NULL) {
        kelp_top_sample_deinit(&sample);
        return status;
    }
    t->latest = 1 - t->latest;
    kelp_top_sample_deinit(&t->samples[t->latest]);
    t->samples[t->latest] = sample;
    return NULL;
}

static uint64_t interval_ns(const top *t) {
    return (uint64_t)(t->options->interval * 1e9);
}

/* Takes the first two samples. */
static kelp_status *begin(top *t) {
    KELP_TRY(take_sample(t));
    struct timespec pause = {.tv_sec = (time_t)t->options->interval,
                             .tv_nsec = (long)(interval_ns(t) % 1000000000u)};
    while (nanosleep(&pause, &pause) != 0 && errno == EINTR) {
    }
    return take_sample(t);
}

static kelp_status *put_view(top *t, kelp_buf *out) {
    t->view.before = &t->samples[1 - t->latest];
    t->view.now = &t->samples[t->latest];
    return kelp_top_put_view(&t->view, out);
}

static kelp_status *print_once(top *t) {
    kelp_buf text;
    KELP_TRY(begin(t));
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_status *status = put_view(t, &text);
    if (status == NULL)
        status = kelp_cli_print(&text);
    kelp_buf_deinit(&text);
    return status;
}

/* ---- terminal ---- */
static volatile sig_atomic_t stop_requested;

static void on_signal(int number) {
    if (number != SIGWINCH)
        stop_requested = 1; /* SIGWINCH only interrupts poll */
}

static void write_all(const char *text, size_t length) {
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, text, length);
        if (written < 0 && errno != EINTR)
            return; /* the terminal has gone: reading from it fails next */
        text += written > 0 ? written : 0;
        length -= written > 0 ? (size_t)written : 0;
    }
}

static void read_size(top *t) {
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    t->view.rows = known ? size.ws_row : 24;
    t->view.width = known ? size.ws_col : 80;
}

/* Draws the view from the top left corner, and clears the rest of each line and of the screen. */
static kelp_status *draw(top *t) {
    kelp_buf lines, frame;
    read_size(t);
    kelp_buf_init(&lines, kelp_allocator_system());
    kelp_buf_init(&frame, kelp_allocator_system());
    kelp_status *status = put_view(t, &lines);
    kelp_buf_append_cstr(&frame, "\x1b[H");
    size_t row = 0;
    for (size_t i = 0; i < lines.length; i++) {
        if (lines.data[i] != '\n') {
            kelp_buf_append_char(&frame, lines.data[i]);
            continue;
        }
        /* The row of the heads is in reverse video; the last line has no line feed, to not scroll.
         */
        kelp_buf_append_cstr(&frame, "\x1b[K\x1b[0m");
        row++;
        if (i + 1 < lines.length)
            kelp_buf_append_cstr(&frame, row == 2 ? "\r\n\x1b[7m" : "\r\n");
    }
    kelp_buf_append_cstr(&frame, "\x1b[J");
    if (status == NULL)
        status = kelp_buf_status(&frame);
    if (status == NULL)
        write_all(frame.data, frame.length);
    kelp_buf_deinit(&lines);
    kelp_buf_deinit(&frame);
    return status;
}

/* Handles the bytes of keys. Returns false to quit. */
static bool handle_keys(top *t, const char *keys, size_t length) {
    enum { CONTROL_C = 3, CONTROL_D = 4 };
    for (size_t i = 0; i < length; i++) {
        bool is_arrow = i + 2 < length && keys[i] == '\x1b' && keys[i + 1] == '[';
        char key = is_arrow ? keys[i + 2] : keys[i];
        if (is_arrow)
            i += 2;
        if (!is_arrow && (key == 'q' || key == CONTROL_C || key == CONTROL_D))
            return false;
        if (key == 's')
            t->view.order = (t->view.order + 1) % KELP_TOP_ORDERS;
        else if (key == ' ')
            t->view.paused = !t->view.paused;
        else if ((key == 'k' || (is_arrow && key == 'A')) && t->view.first > 0)
            t->view.first--;
        else if ((key == 'j' || (is_arrow && key == 'B')) &&
                 t->view.first + 1 < t->samples[t->latest].count)
            t->view.first++;
    }
    return true;
}

/* Waits for a key, a signal or the next sample. Returns false to quit. */
static bool wait_for_event(top *t) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    uint64_t now_ns = kelp_now_ns();
    int timeout_ms = now_ns < t->next_ns ? (int)((t->next_ns - now_ns) / 1000000u) + 1 : 0;
    char keys[64];
    if (poll(&input, 1, timeout_ms) <= 0)
        return !stop_requested;
    ssize_t length = read(STDIN_FILENO, keys, sizeof keys);
    if (length <= 0)
        return length < 0 && errno == EINTR && !stop_requested;
    return handle_keys(t, keys, (size_t)length);
}

/* Replaces the samples once the interval is over. A server that does not respond is reported in the
 * view, and asked again. */
static void update(top *t) {
    uint64_t now_ns = kelp_now_ns();
    if (now_ns < t->next_ns)
        return;
    t->next_ns = now_ns + interval_ns(t);
    if (t->view.paused)
        return;
    kelp_status *status = take_sample(t);
    if (status != NULL)
        (void)kelp_status_format(status, t->error, sizeof t->error);
    t->view.error = status != NULL ? t->error : NULL;
    kelp_status_free(status);
    size_t count = t->samples[t->latest].count;
    t->view.first = KELP_MIN(t->view.first, count > 0 ? count - 1 : 0);
}

static kelp_status *run_live(top *t) {
    struct termios before, raw;
    struct sigaction action = {.sa_handler = on_signal};
    KELP_TRY(begin(t));
    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return KELP_ERROR(KELP_UNAVAILABLE, "cannot read the settings of the terminal: %s",
                          strerror(errno));
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
    sigaction(SIGWINCH, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    write_all(ENTER_SCREEN, strlen(ENTER_SCREEN));
    kelp_status *status = NULL;
    t->next_ns = kelp_now_ns() + interval_ns(t);
    do {
        update(t);
        status = draw(t);
    } while (status == NULL && wait_for_event(t));
    write_all(LEAVE_SCREEN, strlen(LEAVE_SCREEN));
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
    return status;
}

static kelp_status *run_top(top *t) {
    const char *url =
        t->options->positionals.count > 0 ? t->options->positionals.items[0] : USUAL_URL;
    if (!kelp_cli_http_is_url(url))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "expected a URL such as %s, found '%s'", USUAL_URL,
                          url);
    size_t length = strlen(url);
    while (url[length - 1] == '/')
        length--;
    kelp_buf_append(&t->url, url, length);
    t->view.url = kelp_buf_cstr(&t->url);
    KELP_TRY(kelp_buf_status(&t->url));
    KELP_TRY(kelp_cli_http_create(&t->options->http, &t->client));
    bool live = !t->options->once && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
    return live ? run_live(t) : print_once(t);
}

static int run(const kelp_command *command, void *options) {
    top t = {.options = options};
    if (!(t.options->interval >= MIN_INTERVAL_S && t.options->interval <= MAX_INTERVAL_S))
        return kelp_cli_usage(command, KELP_ERROR(KELP_INVALID_ARGUMENT,
                                                  "option '--interval': expected 0.1 to 3600"));
    kelp_buf_init(&t.url, kelp_allocator_system());
    kelp_status *status = run_top(&t);
    for (size_t i = 0; i < KELP_COUNT(t.samples); i++)
        kelp_top_sample_deinit(&t.samples[i]);
    kelp_cli_http_destroy(t.client);
    kelp_buf_deinit(&t.url);
    return kelp_cli_finish(status);
}

const kelp_command kelp_cmd_top = {
    .name = "top",
    .summary = "show models of a running server, with rates, latencies and queues",
    .usage = "[URL] [options]",
    .details =
        "The URL is that of the HTTP port (http://localhost:8000). The view is live on a terminal, "
        "and\nprinted once otherwise. Rates and means are those of the last interval. LATENCY is "
        "the mean time of\nrequests in the server, QUEUE and COMPUTE are parts of it. Keys: q "
        "quits, s changes the order,\nspace pauses, and the arrow keys scroll.",
    .examples = "  kelp top\n  kelp top http://localhost:8000 --once --interval 5\n"
                "  kelp top https://models.example:8000 --header 'Authorization: Bearer TOKEN'",
    .positional = "URL",
    .max_positionals = 1,
    .tables = KELP_ARG_TABLE(specs),
    .options_bytes = sizeof(top_options),
    .defaults = defaults,
    .run = run,
};
