#include "accessors.h"


#define ngx_http_combined_upstreams_define_get(field)                         \
    ngx_uint_t                                                                \
    ngx_http_combined_upstreams_get_##field(ngx_http_request_t *r)            \
    {                                                                         \
        return r->field;                                                      \
    }

#define ngx_http_combined_upstreams_define_set(field)                         \
    void                                                                      \
    ngx_http_combined_upstreams_set_##field(ngx_http_request_t *r,            \
        ngx_uint_t value)                                                     \
    {                                                                         \
        r->field = value;                                                     \
    }


ngx_http_combined_upstreams_define_get(filter_finalize)
ngx_http_combined_upstreams_define_get(header_only)
ngx_http_combined_upstreams_define_get(internal)
ngx_http_combined_upstreams_define_get(post_action)
ngx_http_combined_upstreams_define_get(request_body_no_buffering)

ngx_http_combined_upstreams_each_set(ngx_http_combined_upstreams_define_set)


ngx_uint_t
ngx_http_combined_upstreams_get_cached(ngx_http_request_t *r)
{
#if (NGX_HTTP_CACHE)
    return r->cached;
#else
    return 0;
#endif
}


/* the bit fields of a request stand between these two of its fields */

#define NGX_HTTP_COMBINED_UPSTREAMS_BITS_START                                \
    (offsetof(ngx_http_request_t, cleanup) + sizeof(ngx_http_cleanup_t *))
#define NGX_HTTP_COMBINED_UPSTREAMS_BITS_SIZE                                 \
    (offsetof(ngx_http_request_t, state)                                      \
     - NGX_HTTP_COMBINED_UPSTREAMS_BITS_START)

_Static_assert(NGX_HTTP_COMBINED_UPSTREAMS_BITS_SIZE
               <= sizeof(ngx_http_combined_upstreams_bits_t),
               "the bit fields of a request take more room than is kept");


void
ngx_http_combined_upstreams_save_bits(ngx_http_request_t *r,
    ngx_http_combined_upstreams_bits_t *bits)
{
    ngx_memcpy(bits, (u_char *) r + NGX_HTTP_COMBINED_UPSTREAMS_BITS_START,
               NGX_HTTP_COMBINED_UPSTREAMS_BITS_SIZE);
}


/* a request in which nothing but the bit fields may be looked at */

#define ngx_http_combined_upstreams_saved(bits)                               \
    ((const ngx_http_request_t *)                                             \
     ((uintptr_t) (bits) - NGX_HTTP_COMBINED_UPSTREAMS_BITS_START))


void
ngx_http_combined_upstreams_restore_bits(ngx_http_request_t *r,
    const ngx_http_combined_upstreams_bits_t *bits)
{
    const ngx_http_request_t  *saved;

    saved = ngx_http_combined_upstreams_saved(bits);

    r->error_page = saved->error_page;
    r->keepalive = saved->keepalive;
    r->lingering_close = saved->lingering_close;
    r->limit_rate_set = saved->limit_rate_set;
    r->allow_ranges = saved->allow_ranges;
    r->single_range = saved->single_range;
    r->subrequest_ranges = saved->subrequest_ranges;
    r->disable_not_modified = saved->disable_not_modified;

#if (NGX_HTTP_CACHE)
    r->cached = saved->cached;
#endif
}


ngx_uint_t
ngx_http_combined_upstreams_saved_error_page(
    const ngx_http_combined_upstreams_bits_t *bits)
{
    return ngx_http_combined_upstreams_saved(bits)->error_page;
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


#if (NGX_HTTP_CACHE)

/* nginx's own lookup, which it does not export; the zone is locked */

static ngx_http_file_cache_node_t *
ngx_http_combined_upstreams_cache_lookup(ngx_http_file_cache_t *cache,
    u_char *key)
{
    ngx_int_t                    rc;
    ngx_rbtree_key_t             node_key;
    ngx_rbtree_node_t           *node, *sentinel;
    ngx_http_file_cache_node_t  *fcn;

    ngx_memcpy((u_char *) &node_key, key, sizeof(ngx_rbtree_key_t));

    node = cache->sh->rbtree.root;
    sentinel = cache->sh->rbtree.sentinel;

    while (node != sentinel) {

        if (node_key != node->key) {
            node = (node_key < node->key) ? node->left : node->right;
            continue;
        }

        fcn = (ngx_http_file_cache_node_t *) node;

        rc = ngx_memcmp(&key[sizeof(ngx_rbtree_key_t)], fcn->key,
                        NGX_HTTP_CACHE_KEY_LEN - sizeof(ngx_rbtree_key_t));

        if (rc == 0) {
            return fcn;
        }

        node = (rc < 0) ? node->left : node->right;
    }

    return NULL;
}

#endif


void
ngx_http_combined_upstreams_cache_forget_hop(ngx_http_request_t *r)
{
#if (NGX_HTTP_CACHE)

    ngx_http_cache_t            *c;
    ngx_http_file_cache_t       *cache;
    ngx_http_file_cache_node_t  *node;

    c = r->cache;

    if (c == NULL || c->node == NULL) {
        return;
    }

    cache = c->file_cache;

    ngx_shmtx_lock(&cache->shpool->mutex);

    /* the request no longer holds its node: it may have been freed */

    node = ngx_http_combined_upstreams_cache_lookup(cache, c->key);

    if (node) {
        if (node->uses > 0) {
            node->uses--;
        }

        if (c->error && node->error == c->error) {
            node->error = 0;
            node->valid_sec = 0;
        }
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


void
ngx_http_combined_upstreams_set_value(ngx_http_variable_value_t *v,
    u_char *data, size_t len)
{
    v->valid = data != NULL;
    v->not_found = data == NULL;
    v->no_cacheable = 1;
    v->escape = 0;
    v->len = len;
    v->data = data;
}


ngx_str_t
ngx_http_combined_upstreams_get_value(const ngx_http_variable_value_t *v)
{
    ngx_str_t  text;

    if (v->valid && !v->not_found) {
        text.len = v->len;
        text.data = v->data;

    } else {
        ngx_str_null(&text);
    }

    return text;
}


ngx_int_t
ngx_http_combined_upstreams_kept_variable(ngx_http_request_t *r,
    ngx_uint_t index, u_char *data, size_t len)
{
    ngx_http_variable_value_t  *v;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);

    for ( /* void */ ; index < cmcf->variables.nelts; index++) {

        v = &r->variables[index];

        if (v->len == len && v->valid && !v->not_found && !v->no_cacheable
            && ngx_memcmp(v->data, data, len) == 0)
        {
            return index;
        }
    }

    return NGX_DECLINED;
}
