/*
 * What Rust cannot safely reach through the generated bindings.
 *
 * From nginx 1.29.3 on, bindgen lays the bit fields of ngx_http_request_t out wrongly; here the C
 * compiler that built nginx reads and writes them. The rest are macros, and structures that depend
 * on how nginx was configured.
 */

#ifndef _NGX_HTTP_COMBINED_UPSTREAMS_ACCESSORS_H_INCLUDED_
#define _NGX_HTTP_COMBINED_UPSTREAMS_ACCESSORS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* single bit fields of a request */

#define ngx_http_combined_upstreams_each_get(F)                               \
    F(cached)                                                                 \
    F(filter_finalize)                                                        \
    F(header_only)                                                            \
    F(internal)                                                               \
    F(post_action)                                                            \
    F(request_body_no_buffering)

#define ngx_http_combined_upstreams_each_set(F)                               \
    F(error_page)                                                             \
    F(header_only)                                                            \
    F(reading_body)                                                           \
    F(request_body_no_buffering)

#define ngx_http_combined_upstreams_declare_get(field)                        \
    ngx_uint_t ngx_http_combined_upstreams_get_##field(ngx_http_request_t *r);
#define ngx_http_combined_upstreams_declare_set(field)                        \
    void ngx_http_combined_upstreams_set_##field(ngx_http_request_t *r,       \
        ngx_uint_t value);

ngx_http_combined_upstreams_each_get(ngx_http_combined_upstreams_declare_get)
ngx_http_combined_upstreams_each_set(ngx_http_combined_upstreams_declare_set)


/* all bit fields of a request, to put those back that a response changes */

typedef struct {
    uint64_t  words[4];
} ngx_http_combined_upstreams_bits_t;

void ngx_http_combined_upstreams_save_bits(ngx_http_request_t *r,
    ngx_http_combined_upstreams_bits_t *bits);
void ngx_http_combined_upstreams_restore_bits(ngx_http_request_t *r,
    const ngx_http_combined_upstreams_bits_t *bits);
ngx_uint_t ngx_http_combined_upstreams_saved_error_page(
    const ngx_http_combined_upstreams_bits_t *bits);

/* takes a reference to the main request, which its next finalization drops */
void ngx_http_combined_upstreams_request_ref(ngx_http_request_t *r);

/* what is sent is an expired cache entry */
ngx_uint_t ngx_http_combined_upstreams_cache_is_stale(ngx_http_upstream_t *u);

/*
 * takes out of the cache again what a hop that is over has left in it: an error that nginx made, so
 * that the next hop does not read it, and the use that it counted (proxy_cache_min_uses)
 */
void ngx_http_combined_upstreams_cache_forget_hop(ngx_http_request_t *r);

/*
 * a variable's value: bindgen sets and reads its length, a bit field, bit by bit; NULL: there is
 * none
 */
void ngx_http_combined_upstreams_set_value(ngx_http_variable_value_t *v,
    u_char *data, size_t len);
ngx_str_t ngx_http_combined_upstreams_get_value(
    const ngx_http_variable_value_t *v);

/*
 * the index, from the given one on, of a variable that was evaluated for the request, is kept, and
 * has this value; NGX_DECLINED: there is none
 */
ngx_int_t ngx_http_combined_upstreams_kept_variable(ngx_http_request_t *r,
    ngx_uint_t index, u_char *data, size_t len);

/* the text of $upstream_cache_status for this upstream; NULL: no cache took part */
ngx_str_t *ngx_http_combined_upstreams_cache_status(ngx_http_upstream_t *u);

/*
 * nginx's own regular expressions: NULL where the pattern is bad, or nginx has none of them; the
 * result of a match is NGX_OK or NGX_DECLINED
 */
void *ngx_http_combined_upstreams_regex_compile(ngx_conf_t *cf,
    ngx_str_t *pattern, ngx_uint_t caseless);
ngx_int_t ngx_http_combined_upstreams_regex_match(void *regex, ngx_str_t *s);


#endif /* _NGX_HTTP_COMBINED_UPSTREAMS_ACCESSORS_H_INCLUDED_ */
