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


/* the bit fields of a request that the module knows, as one word */

#define NGX_HTTP_COMBINED_UPSTREAMS_HEADER_ONLY           0x00000001
#define NGX_HTTP_COMBINED_UPSTREAMS_ERROR_PAGE            0x00000002
#define NGX_HTTP_COMBINED_UPSTREAMS_INTERNAL              0x00000004
#define NGX_HTTP_COMBINED_UPSTREAMS_KEEPALIVE             0x00000008
#define NGX_HTTP_COMBINED_UPSTREAMS_LINGERING_CLOSE       0x00000010
#define NGX_HTTP_COMBINED_UPSTREAMS_LIMIT_RATE_SET        0x00000020
#define NGX_HTTP_COMBINED_UPSTREAMS_CACHED                0x00000040
#define NGX_HTTP_COMBINED_UPSTREAMS_ALLOW_RANGES          0x00000080
#define NGX_HTTP_COMBINED_UPSTREAMS_SINGLE_RANGE          0x00000100
#define NGX_HTTP_COMBINED_UPSTREAMS_SUBREQUEST_RANGES     0x00000200
#define NGX_HTTP_COMBINED_UPSTREAMS_DISABLE_NOT_MODIFIED  0x00000400
#define NGX_HTTP_COMBINED_UPSTREAMS_FILTER_FINALIZE       0x00000800
#define NGX_HTTP_COMBINED_UPSTREAMS_POST_ACTION           0x00001000
#define NGX_HTTP_COMBINED_UPSTREAMS_BODY_NO_BUFFERING     0x00002000
#define NGX_HTTP_COMBINED_UPSTREAMS_READING_BODY          0x00004000


uint32_t ngx_http_combined_upstreams_request_flags(ngx_http_request_t *r);
void ngx_http_combined_upstreams_set_request_flags(ngx_http_request_t *r,
    uint32_t mask, uint32_t flags);

/* takes a reference to the main request, which its next finalization drops */
void ngx_http_combined_upstreams_request_ref(ngx_http_request_t *r);

/* what is sent is an expired cache entry */
ngx_uint_t ngx_http_combined_upstreams_cache_is_stale(ngx_http_upstream_t *u);

/* takes an error that nginx made out of the cache again, so that the next hop does not read it */
void ngx_http_combined_upstreams_cache_forget_error(ngx_http_request_t *r);

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
