/*
 * nginx's structures as the C compiler lays them out: each function answers for the entry of its
 * number, and NULL past the last one.
 */

#include "accessors.h"


#define field(type, name)                                                     \
    { #type "." #name, sizeof(type), offsetof(type, name) }

typedef struct {
    const char  *name;
    size_t       size;
    size_t       offset;
} layout_field_t;


static layout_field_t  layout_fields[] = {
    field(ngx_http_request_t, connection),
    field(ngx_http_request_t, ctx),
    field(ngx_http_request_t, main_conf),
    field(ngx_http_request_t, loc_conf),
    field(ngx_http_request_t, write_event_handler),
    field(ngx_http_request_t, upstream),
    field(ngx_http_request_t, upstream_states),
    field(ngx_http_request_t, pool),
    field(ngx_http_request_t, header_in),
    field(ngx_http_request_t, headers_out),
    field(ngx_http_request_t, request_body),
    field(ngx_http_request_t, method),
    field(ngx_http_request_t, http_version),
    field(ngx_http_request_t, method_name),
    field(ngx_http_request_t, main),
    field(ngx_http_request_t, post_subrequest),
    field(ngx_http_request_t, content_handler),
    field(ngx_http_request_t, limit_rate),
    field(ngx_http_request_t, request_length),
    field(ngx_http_request_t, err_status),
    field(ngx_http_headers_out_t, headers),
    field(ngx_http_headers_out_t, trailers),
    field(ngx_http_headers_out_t, www_authenticate),
    field(ngx_http_request_body_t, bufs),
    field(ngx_http_request_body_t, chunked),
    field(ngx_http_upstream_t, conf),
    field(ngx_http_upstream_t, headers_in),
    field(ngx_http_upstream_t, resolved),
    field(ngx_http_upstream_t, buffer),
    field(ngx_http_upstream_t, input_filter_init),
    field(ngx_http_upstream_t, input_filter),
    field(ngx_http_upstream_t, input_filter_ctx),
    field(ngx_http_upstream_t, state),
    field(ngx_http_upstream_t, cleanup),
    field(ngx_http_upstream_headers_in_t, status_n),
    field(ngx_http_upstream_resolved_t, host),
    field(ngx_http_upstream_resolved_t, no_port),
    field(ngx_http_upstream_state_t, status),
    field(ngx_http_upstream_state_t, response_time),
    field(ngx_http_upstream_state_t, connect_time),
    field(ngx_http_upstream_state_t, header_time),
    field(ngx_http_upstream_state_t, response_length),
    field(ngx_http_upstream_state_t, bytes_sent),
    field(ngx_http_upstream_state_t, peer),
    field(ngx_http_upstream_server_t, addrs),
    field(ngx_http_upstream_server_t, naddrs),
    field(ngx_http_upstream_server_t, weight),
    field(ngx_http_upstream_server_t, max_conns),
    field(ngx_http_upstream_server_t, max_fails),
    field(ngx_http_upstream_server_t, fail_timeout),
    field(ngx_http_upstream_server_t, down),
    field(ngx_http_upstream_srv_conf_t, peer),
    field(ngx_http_upstream_srv_conf_t, srv_conf),
    field(ngx_http_upstream_srv_conf_t, servers),
    field(ngx_http_upstream_srv_conf_t, flags),
    field(ngx_http_upstream_srv_conf_t, host),
    field(ngx_http_upstream_header_t, handler),
    field(ngx_http_upstream_main_conf_t, headers_in_hash),
    field(ngx_http_upstream_main_conf_t, upstreams),
    field(ngx_http_core_main_conf_t, phases),
};


const char *
layout_field(size_t n, size_t *size, size_t *offset)
{
    if (n >= sizeof(layout_fields) / sizeof(layout_fields[0])) {
        return NULL;
    }

    *size = layout_fields[n].size;
    *offset = layout_fields[n].offset;

    return layout_fields[n].name;
}


/* sets the bit field of the number in zeroed memory */

#define bit(number, type, name)                                               \
    case number:                                                              \
        ((type *) memory)->name = 1;                                          \
        return #type "." #name

const char *
layout_bit(size_t n, void *memory)
{
    switch (n) {

    bit(0, ngx_http_upstream_t, store);
    bit(1, ngx_http_upstream_t, cacheable);
    bit(2, ngx_http_upstream_t, upgrade);
    bit(3, ngx_http_upstream_t, keepalive);
    bit(4, ngx_http_upstream_t, request_sent);
    bit(5, ngx_http_upstream_t, request_body_sent);
    bit(6, ngx_http_upstream_headers_in_t, connection_close);
    bit(7, ngx_http_upstream_server_t, backup);
    bit(8, ngx_http_variable_value_t, valid);
    bit(9, ngx_http_variable_value_t, no_cacheable);
    bit(10, ngx_http_variable_value_t, not_found);
    bit(11, ngx_http_variable_value_t, escape);
    bit(12, ngx_buf_t, temporary);

    default:
        return NULL;
    }
}


size_t
layout_request_size(void)
{
    return sizeof(ngx_http_request_t);
}


/* a bit field of a request by its number; what the module's accessors read and write */

#define request_bit(number, name)                                             \
    case number:                                                              \
        ((ngx_http_request_t *) memory)->name = 1;                            \
        return #name

const char *
layout_request_bit(size_t n, void *memory)
{
    switch (n) {

    request_bit(0, header_only);
    request_bit(1, error_page);
    request_bit(2, internal);
    request_bit(3, filter_finalize);
    request_bit(4, post_action);
    request_bit(5, request_body_no_buffering);
    request_bit(6, reading_body);
    request_bit(7, keepalive);
    request_bit(8, lingering_close);
    request_bit(9, limit_rate_set);
    request_bit(10, allow_ranges);
    request_bit(11, single_range);
    request_bit(12, subrequest_ranges);
    request_bit(13, disable_not_modified);
#if (NGX_HTTP_CACHE)
    request_bit(14, cached);
#endif

    default:
        return NULL;
    }
}


#define is_named(field)                                                       \
    (ngx_strcmp(name, #field) == 0)

/* -1: there is no such accessor */

int
layout_get(const char *name, void *r)
{
#define get(field)                                                            \
    if (is_named(field)) {                                                    \
        return ngx_http_combined_upstreams_get_##field(r);                    \
    }

    ngx_http_combined_upstreams_each_get(get)

    return -1;
}


int
layout_set(const char *name, void *r, ngx_uint_t value)
{
#define set(field)                                                            \
    if (is_named(field)) {                                                    \
        ngx_http_combined_upstreams_set_##field(r, value);                    \
        return 0;                                                             \
    }

    ngx_http_combined_upstreams_each_set(set)

    return -1;
}


/* carries what the module puts back from one request to another */

void
layout_carry(void *from, void *to)
{
    ngx_http_combined_upstreams_bits_t  bits;

    ngx_http_combined_upstreams_save_bits(from, &bits);
    ngx_http_combined_upstreams_restore_bits(to, &bits);
}
