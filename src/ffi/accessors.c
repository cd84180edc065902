#include "accessors.h"


#if (NGX_HTTP_CACHE)
#define ngx_http_combined_upstreams_if_cache(expr)  expr
#else
#define ngx_http_combined_upstreams_if_cache(expr)
#endif


/* applies F(bit, field) to each bit field */

#define ngx_http_combined_upstreams_each_flag(F)                              \
    F(NGX_HTTP_COMBINED_UPSTREAMS_HEADER_ONLY, header_only)                   \
    F(NGX_HTTP_COMBINED_UPSTREAMS_ERROR_PAGE, error_page)                     \
    F(NGX_HTTP_COMBINED_UPSTREAMS_INTERNAL, internal)                         \
    F(NGX_HTTP_COMBINED_UPSTREAMS_KEEPALIVE, keepalive)                       \
    F(NGX_HTTP_COMBINED_UPSTREAMS_LINGERING_CLOSE, lingering_close)           \
    F(NGX_HTTP_COMBINED_UPSTREAMS_LIMIT_RATE_SET, limit_rate_set)             \
    ngx_http_combined_upstreams_if_cache(                                     \
    F(NGX_HTTP_COMBINED_UPSTREAMS_CACHED, cached))                            \
    F(NGX_HTTP_COMBINED_UPSTREAMS_ALLOW_RANGES, allow_ranges)                 \
    F(NGX_HTTP_COMBINED_UPSTREAMS_SINGLE_RANGE, single_range)                 \
    F(NGX_HTTP_COMBINED_UPSTREAMS_SUBREQUEST_RANGES, subrequest_ranges)       \
    F(NGX_HTTP_COMBINED_UPSTREAMS_DISABLE_NOT_MODIFIED, disable_not_modified) \
    F(NGX_HTTP_COMBINED_UPSTREAMS_FILTER_FINALIZE, filter_finalize)           \
    F(NGX_HTTP_COMBINED_UPSTREAMS_POST_ACTION, post_action)                   \
    F(NGX_HTTP_COMBINED_UPSTREAMS_BODY_NO_BUFFERING,                          \
      request_body_no_buffering)                                              \
    F(NGX_HTTP_COMBINED_UPSTREAMS_READING_BODY, reading_body)


uint32_t
ngx_http_combined_upstreams_request_flags(ngx_http_request_t *r)
{
    uint32_t  flags;

    flags = 0;

#define ngx_http_combined_upstreams_get(bit, field)                           \
    flags |= r->field ? bit : 0;

    ngx_http_combined_upstreams_each_flag(ngx_http_combined_upstreams_get)

    return flags;
}


void
ngx_http_combined_upstreams_set_request_flags(ngx_http_request_t *r,
    uint32_t mask, uint32_t flags)
{
#define ngx_http_combined_upstreams_set(bit, field)                           \
    if (mask & bit) {                                                         \
        r->field = (flags & bit) ? 1 : 0;                                     \
    }

    ngx_http_combined_upstreams_each_flag(ngx_http_combined_upstreams_set)
}


void
ngx_http_combined_upstreams_request_ref(ngx_http_request_t *r)
{
    r->main->count++;
}


ngx_uint_t
ngx_http_combined_upstreams_cache_is_stale(ngx_http_upstream_t *u)
{
#if (NGX_HTTP_CACHE)
    return u->cache_status == NGX_HTTP_CACHE_STALE;
#else
    return 0;
#endif
}


void
ngx_http_combined_upstreams_cache_forget_error(ngx_http_request_t *r)
{
#if (NGX_HTTP_CACHE)

    ngx_http_cache_t            *c;
    ngx_http_file_cache_t       *cache;
    ngx_http_file_cache_node_t  *node;

    c = r->cache;

    if (c == NULL || c->error == 0 || c->node == NULL) {
        return;
    }

    cache = c->file_cache;
    node = c->node;

    ngx_shmtx_lock(&cache->shpool->mutex);

    if (node->error == c->error) {
        node->error = 0;
        node->valid_sec = 0;
    }

    ngx_shmtx_unlock(&cache->shpool->mutex);

#endif
}


ngx_str_t *
ngx_http_combined_upstreams_cache_status(ngx_http_upstream_t *u)
{
#if (NGX_HTTP_CACHE)

    if (u->cache_status != 0) {
        return &ngx_http_cache_status[u->cache_status - 1];
    }

#endif

    return NULL;
}


void *
ngx_http_combined_upstreams_regex_compile(ngx_conf_t *cf, ngx_str_t *pattern,
    ngx_uint_t caseless)
{
#if (NGX_PCRE)

    u_char               errstr[NGX_MAX_CONF_ERRSTR];
    ngx_regex_compile_t  rc;

    ngx_memzero(&rc, sizeof(ngx_regex_compile_t));

    rc.pattern = *pattern;
    rc.pool = cf->pool;
    rc.options = caseless ? NGX_REGEX_CASELESS : 0;
    rc.err.len = NGX_MAX_CONF_ERRSTR;
    rc.err.data = errstr;

    if (ngx_regex_compile(&rc) != NGX_OK) {
        return NULL;
    }

    return rc.regex;

#else

    return NULL;

#endif
}


ngx_int_t
ngx_http_combined_upstreams_regex_match(void *regex, ngx_str_t *s)
{
#if (NGX_PCRE)

    if (ngx_regex_exec((ngx_regex_t *) regex, s, NULL, 0) >= 0) {
        return NGX_OK;
    }

#endif

    return NGX_DECLINED;
}
