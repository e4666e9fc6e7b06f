/* SPDX-License-Identifier: Apache-2.0 */
#include "server/metrics/exposition.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/str.h"
#include "base/wire/protobuf_write.h"

#include <math.h>

/* ---- OpenMetrics ---- */

void kelp_exposition_to_openmetrics(kelp_buf *inout_text) {
    static const char type[] = "# TYPE ", counter[] = " counter", unknown[] = " unknown";
    char *at = inout_text->data, *end = at + inout_text->length;
    while (!inout_text->failed && at < end) {
        char *next = memchr(at, '\n', (size_t)(end - at));
        next = next != NULL ? next : end;
        size_t length = (size_t)(next - at);
        if (length > sizeof type + sizeof counter && !memcmp(at, type, sizeof type - 1) &&
            !memcmp(next - (sizeof counter - 1), counter, sizeof counter - 1))
            memcpy(next - (sizeof counter - 1), unknown, sizeof unknown - 1);
        at = next + 1;
    }
    kelp_buf_append_cstr(inout_text, "# EOF\n");
}

/* ---- protobuf: fields of the messages ---- */

enum { FAMILY_NAME = 1, FAMILY_HELP, FAMILY_TYPE, FAMILY_METRIC };
enum { METRIC_LABEL = 1, METRIC_GAUGE, METRIC_COUNTER, METRIC_SUMMARY, METRIC_HISTOGRAM = 7 };
enum { LABEL_NAME = 1, LABEL_VALUE };
enum { VALUE = 1 };                                        /* of Gauge and Counter */
enum { SAMPLE_COUNT = 1, SAMPLE_SUM, BUCKET_OR_QUANTILE }; /* of Summary and Histogram */
enum { SCHEMA = 5, ZERO_THRESHOLD, ZERO_COUNT, POSITIVE_SPAN = 12, POSITIVE_DELTA };
enum { SPAN_OFFSET = 1, SPAN_LENGTH };
enum { KEY = 1, COUNT_OF_KEY }; /* of Quantile: quantile, value */
enum { BUCKET_COUNT = 1, BUCKET_BOUND };

typedef enum kind { COUNTER, GAUGE, SUMMARY, UNTYPED, HISTOGRAM } kind;

/* The state of the conversion. */
typedef struct converter {
    kelp_buf *out;
    kelp_buf family;  /* the message of the current family, without metrics of which lines follow */
    kelp_buf metric;  /* the current metric: its labels */
    kelp_buf items;   /* its buckets or quantiles, as fields */
    kelp_buf scratch; /* a message within */
    kelp_buf spans, deltas;
    kelp_str name;
    kind kind;
    kelp_str labels; /* of the current metric, without le and quantile; .data NULL: none */
    uint64_t count;
    double sum, zero_count;
    bool is_native;
    bool failed; /* there was no memory */
} converter;

static kelp_status *malformed(kelp_str line) {
    return KELP_ERROR(KELP_INTERNAL, "malformed line in the page of metrics: '%.*s'",
                      KELP_STR_ARG(line));
}

/* Empties a buffer, whose failure is kept. */
static void empty(converter *c, kelp_buf *buf) {
    c->failed = c->failed || buf->failed;
    kelp_buf_clear(buf);
}

/* Maps integers so that those near 0 are short. */
static uint64_t zigzag(int64_t value) {
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static void put_u64(kelp_buf *buf, uint32_t number, uint64_t value) {
    kelp_protobuf_put_i64(buf, number, (int64_t)value);
}

/* ---- protobuf: labels ---- */

/* Appends text without escapes, until `stop`. Returns its position. */
static const char *put_unescaped(kelp_buf *out, const char *at, const char *end, char stop) {
    for (; at < end && *at != stop; at++) {
        if (*at == '\\' && at + 1 < end)
            kelp_buf_append_char(out, *++at == 'n' ? '\n' : *at);
        else
            kelp_buf_append_char(out, *at);
    }
    return at;
}

/* Removes and returns the name of the next label, and its value without escapes. */
static bool next_label(converter *c, kelp_str *inout, kelp_str *out_name, kelp_buf *out_value) {
    const char *equals = inout->length ? memchr(inout->data, '=', inout->length) : NULL;
    empty(c, out_value);
    if (equals == NULL)
        return false;
    *out_name = (kelp_str){inout->data, (size_t)(equals - inout->data)};
    const char *end = inout->data + inout->length;
    const char *at = put_unescaped(out_value, equals + 2, end, '"');
    at = KELP_MIN(at + 1, end);
    at += at < end && *at == ',';
    *inout = (kelp_str){at, (size_t)(end - at)};
    return true;
}

static void put_labels(converter *c, kelp_str labels) {
    kelp_str name;
    kelp_buf value;
    kelp_buf_init(&value, c->out->allocator);
    while (next_label(c, &labels, &name, &value)) {
        kelp_protobuf_put_str(&c->scratch, LABEL_NAME, name);
        kelp_protobuf_put_str(&c->scratch, LABEL_VALUE, (kelp_str){value.data, value.length});
        kelp_protobuf_put_message(&c->metric, METRIC_LABEL, &c->scratch);
    }
    kelp_buf_deinit(&value);
}

/* ---- protobuf: metrics and families ---- */

static void put_native(converter *c) {
    put_u64(&c->scratch, SCHEMA, zigzag(KELP_NATIVE_SCHEMA));
    kelp_protobuf_put_f64(&c->scratch, ZERO_THRESHOLD, 1.0 / 1024);
    put_u64(&c->scratch, ZERO_COUNT, (uint64_t)c->zero_count);
    kelp_buf_append(&c->scratch, c->spans.data, c->spans.length);
    if (c->deltas.length > 0)
        kelp_protobuf_put_bytes(&c->scratch, POSITIVE_DELTA, c->deltas.data, c->deltas.length);
}

/* Ends the current summary or histogram. */
static void end_metric(converter *c) {
    if (c->labels.data == NULL)
        return;
    put_labels(c, c->labels);
    put_u64(&c->scratch, SAMPLE_COUNT, c->count);
    kelp_protobuf_put_f64(&c->scratch, SAMPLE_SUM, c->sum);
    kelp_buf_append(&c->scratch, c->items.data, c->items.length);
    if (c->is_native)
        put_native(c);
    kelp_protobuf_put_message(&c->metric, c->kind == SUMMARY ? METRIC_SUMMARY : METRIC_HISTOGRAM,
                              &c->scratch);
    kelp_protobuf_put_message(&c->family, FAMILY_METRIC, &c->metric);
    empty(c, &c->items);
    empty(c, &c->spans);
    empty(c, &c->deltas);
    c->labels = (kelp_str){0};
    c->is_native = false;
}

static void end_family(converter *c) {
    end_metric(c);
    if (c->family.length > 0) {
        kelp_protobuf_put_varint(c->out, c->family.length);
        kelp_buf_append(c->out, c->family.data, c->family.length);
    }
    empty(c, &c->family);
}

/* Begins a family with the line "# HELP NAME TEXT". */
static void begin_family(converter *c, kelp_str rest) {
    const char *space = memchr(rest.data, ' ', rest.length);
    size_t length = space != NULL ? (size_t)(space - rest.data) : rest.length;
    end_family(c);
    c->name = (kelp_str){rest.data, length};
    kelp_protobuf_put_str(&c->family, FAMILY_NAME, c->name);
    if (space == NULL)
        return;
    (void)put_unescaped(&c->scratch, space + 1, rest.data + rest.length, '\n');
    kelp_protobuf_put_message(&c->family, FAMILY_HELP, &c->scratch);
}

/* Reads the line "# TYPE NAME KIND". */
static void set_type(converter *c, kelp_str rest) {
    static const char *const names[] = {" counter", " gauge", " summary", "", " histogram"};
    c->kind = UNTYPED;
    for (size_t i = 0; i < KELP_COUNT(names); i++) {
        size_t length = strlen(names[i]);
        if (length > 0 && rest.length > length &&
            !memcmp(rest.data + rest.length - length, names[i], length))
            c->kind = (kind)i;
    }
    put_u64(&c->family, FAMILY_TYPE, c->kind);
}

/* Reads the comment of a native histogram, which belongs to the current metric. */
static kelp_status *read_native(converter *c, kelp_str line) {
    kelp_str rest = line;
    int64_t last_index = 0, last_count = 0;
    uint64_t total = 0;
    for (int field = 0; rest.length > 0; field++) {
        const char *space = memchr(rest.data, ' ', rest.length);
        kelp_str word = {rest.data, space != NULL ? (size_t)(space - rest.data) : rest.length};
        rest = (kelp_str){word.data + word.length, rest.length - word.length};
        rest = kelp_str_trim(rest);
        if (field < 2) {
            if (!kelp_parse_f64(word, field == 0 ? &c->sum : &c->zero_count))
                return malformed(line);
            continue;
        }
        const char *colon = memchr(word.data, ':', word.length);
        int64_t index, count;
        if (colon == NULL ||
            !kelp_parse_i64((kelp_str){word.data, (size_t)(colon - word.data)}, &index) ||
            !kelp_parse_i64((kelp_str){colon + 1, word.length - (size_t)(colon - word.data) - 1},
                            &count))
            return malformed(line);
        /* A span for each bucket: its offset from the end of the previous one. */
        put_u64(&c->scratch, SPAN_OFFSET, zigzag(field == 2 ? index : index - last_index - 1));
        put_u64(&c->scratch, SPAN_LENGTH, 1);
        kelp_protobuf_put_message(&c->spans, POSITIVE_SPAN, &c->scratch);
        kelp_protobuf_put_varint(&c->deltas, zigzag(count - last_count));
        last_index = index;
        last_count = count;
        total += (uint64_t)count;
    }
    c->is_native = true;
    c->count = total + (uint64_t)c->zero_count;
    return NULL;
}

/* ---- protobuf: samples ---- */

/* Removes the last label, le or quantile, and returns its value. */
static kelp_str take_last_label(kelp_str *inout_labels) {
    const char *at = inout_labels->data + inout_labels->length - 1; /* the closing quote */
    const char *end = at;
    while (at > inout_labels->data && at[-1] != '"')
        at--;
    kelp_str value = {at, (size_t)(end - at)};
    while (at > inout_labels->data && at[-1] != ',')
        at--;
    size_t length = (size_t)(at - inout_labels->data);
    inout_labels->length = length > 0 ? length - 1 : 0;
    return value;
}

/* Adds a sample of a summary or histogram to the metric of its labels. */
static kelp_status *add_part(converter *c, kelp_str suffix, kelp_str labels, double value) {
    kelp_str key = {0};
    bool is_item = suffix.length == 0 || kelp_str_is(suffix, "_bucket");
    if (is_item)
        key = take_last_label(&labels);
    if (c->labels.data == NULL || !kelp_str_equal(c->labels, labels))
        end_metric(c);
    c->labels = (kelp_str){labels.data != NULL ? labels.data : "", labels.length};
    if (kelp_str_is(suffix, "_sum")) {
        c->sum = value;
    } else if (kelp_str_is(suffix, "_count")) {
        c->count = (uint64_t)value;
    } else {
        double bound = HUGE_VAL;
        if (!kelp_str_is(key, "+Inf") && !kelp_parse_f64(key, &bound))
            return malformed(key);
        if (c->kind == SUMMARY) {
            kelp_protobuf_put_f64(&c->scratch, KEY, bound);
            kelp_protobuf_put_f64(&c->scratch, COUNT_OF_KEY, value);
        } else {
            put_u64(&c->scratch, BUCKET_COUNT, (uint64_t)value);
            kelp_protobuf_put_f64(&c->scratch, BUCKET_BOUND, bound);
        }
        kelp_protobuf_put_message(&c->items, BUCKET_OR_QUANTILE, &c->scratch);
    }
    return NULL;
}

static void add_single(converter *c, kelp_str labels, double value) {
    put_labels(c, labels);
    kelp_protobuf_put_f64(&c->scratch, VALUE, value);
    kelp_protobuf_put_message(&c->metric, c->kind == COUNTER ? METRIC_COUNTER : METRIC_GAUGE,
                              &c->scratch);
    kelp_protobuf_put_message(&c->family, FAMILY_METRIC, &c->metric);
}

static bool parse_value(kelp_str text, double *out) {
    if (kelp_str_is(text, "NaN"))
        *out = NAN;
    else if (kelp_str_is(text, "+Inf") || kelp_str_is(text, "-Inf"))
        *out = text.data[0] == '+' ? HUGE_VAL : -HUGE_VAL;
    else
        return kelp_parse_f64(text, out);
    return true;
}

/* Returns the end of the labels of a line, which begin at `at`: a brace outside of quotes. */
static const char *find_brace(const char *at, const char *end) {
    bool quoted = false;
    for (; at < end && (quoted || *at != '}'); at++) {
        if (*at == '"')
            quoted = !quoted;
        else if (*at == '\\' && quoted)
            at++;
    }
    return at < end ? at : NULL;
}

/* Reads the line "NAME{LABELS} VALUE". */
static kelp_status *read_sample(converter *c, kelp_str line) {
    const char *end = line.data + line.length, *at = line.data;
    kelp_str labels = {0};
    double value;
    while (at < end && *at != '{' && *at != ' ')
        at++;
    kelp_str name = {line.data, (size_t)(at - line.data)};
    if (at < end && *at == '{') {
        const char *brace = find_brace(at, end);
        if (brace == NULL)
            return malformed(line);
        labels = (kelp_str){at + 1, (size_t)(brace - at) - 1};
        at = brace + 1;
    }
    if (!parse_value(kelp_str_trim((kelp_str){at, (size_t)(end - at)}), &value) ||
        !kelp_str_starts(name, c->name))
        return malformed(line);
    if (c->kind != SUMMARY && c->kind != HISTOGRAM) {
        add_single(c, labels, value);
        return NULL;
    }
    kelp_str suffix = {name.data + c->name.length, name.length - c->name.length};
    return add_part(c, suffix, labels, value);
}

static kelp_status *read_line(converter *c, kelp_str line) {
    static const kelp_str help = {"# HELP ", 7}, type = {"# TYPE ", 7}, native = {"# NATIVE ", 9};
    if (kelp_str_starts(line, help))
        begin_family(c, (kelp_str){line.data + help.length, line.length - help.length});
    else if (kelp_str_starts(line, type))
        set_type(c, (kelp_str){line.data + type.length, line.length - type.length});
    else if (kelp_str_starts(line, native))
        return read_native(c, (kelp_str){line.data + native.length, line.length - native.length});
    else if (line.length > 0)
        return read_sample(c, line);
    return NULL;
}

kelp_status *kelp_exposition_put_protobuf(kelp_str text, kelp_buf *out) {
    converter c = {.out = out};
    kelp_buf *const own[] = {&c.family, &c.metric, &c.items, &c.scratch, &c.spans, &c.deltas};
    kelp_status *status = NULL;
    for (size_t i = 0; i < KELP_COUNT(own); i++)
        kelp_buf_init(own[i], out->allocator);
    while (text.length > 0 && status == NULL) {
        const char *newline = memchr(text.data, '\n', text.length);
        size_t length = newline != NULL ? (size_t)(newline - text.data) : text.length;
        status = read_line(&c, (kelp_str){text.data, length});
        size_t taken = KELP_MIN(length + 1, text.length);
        text = (kelp_str){text.data + taken, text.length - taken};
    }
    if (status == NULL)
        end_family(&c);
    for (size_t i = 0; i < KELP_COUNT(own); i++) {
        empty(&c, own[i]);
        kelp_buf_deinit(own[i]);
    }
    if (status == NULL && c.failed)
        status = kelp_status_oom();
    return status != NULL ? status : kelp_buf_status(out);
}
