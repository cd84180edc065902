#include "peers.h"


#if (nginx_version >= 1027003)

/* what ngx_http_upstream_random_module keeps for an upstream */

typedef struct {
    ngx_http_upstream_rr_peer_t                 *peer;
    ngx_uint_t                                   range;
} ngx_http_combined_upstreams_random_range_t;

typedef struct {
    ngx_uint_t                                   two;
#if (NGX_HTTP_UPSTREAM_ZONE)
    ngx_uint_t                                   config;
#endif
    ngx_http_combined_upstreams_random_range_t  *ranges;
} ngx_http_combined_upstreams_random_t;

#endif


#if (NGX_SSL || NGX_COMPAT)

static ngx_int_t ngx_http_combined_upstreams_set_session(
    ngx_peer_connection_t *pc, void *data);
static void ngx_http_combined_upstreams_save_session(
    ngx_peer_connection_t *pc, void *data);

#endif

static void ngx_http_combined_upstreams_notify_peer(ngx_peer_connection_t *pc,
    void *data, ngx_uint_t type);


#define ngx_http_combined_upstreams_is_lone_locked(peers)                     \
    ((peers)->number == 1                                                     \
     && ((peers)->next == NULL || (peers)->next->number == 0))


ngx_uint_t
ngx_http_combined_upstreams_is_lone(ngx_http_upstream_srv_conf_t *us)
{
    ngx_uint_t                     lone;
    ngx_http_upstream_rr_peers_t  *peers;

    peers = us->peer.data;

    ngx_http_upstream_rr_peers_rlock(peers);

    lone = ngx_http_combined_upstreams_is_lone_locked(peers);

    ngx_http_upstream_rr_peers_unlock(peers);

    return lone;
}


void
ngx_http_combined_upstreams_set_single(ngx_http_upstream_srv_conf_t *us,
    ngx_uint_t single)
{
    ngx_http_upstream_rr_peers_t  *peers;

    peers = us->peer.data;

    /* most requests find it as it is to be: nginx sets it anew only after DNS changes */

    if (peers->single == single) {
        return;
    }

    ngx_http_upstream_rr_peers_wlock(peers);

    if (ngx_http_combined_upstreams_is_lone_locked(peers)) {
        peers->single = single;
    }

    ngx_http_upstream_rr_peers_unlock(peers);
}


ngx_uint_t
ngx_http_combined_upstreams_has_zone(ngx_http_upstream_srv_conf_t *us)
{
#if (NGX_HTTP_UPSTREAM_ZONE)
    return us->shm_zone != NULL;
#else
    return 0;
#endif
}


ngx_http_combined_upstreams_peer_t *
ngx_http_combined_upstreams_wrap_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us, ngx_event_get_peer_pt get,
    ngx_event_free_peer_pt free)
{
    ngx_peer_connection_t               *pc;
    ngx_http_combined_upstreams_peer_t  *peer;

    peer = ngx_pcalloc(r->pool, sizeof(ngx_http_combined_upstreams_peer_t));
    if (peer == NULL) {
        return NULL;
    }

    pc = &r->upstream->peer;

    peer->upstream = us;
    peer->exchange = r->upstream;

    peer->data = pc->data;
    peer->get = pc->get;
    peer->free = pc->free;

    pc->data = peer;
    pc->get = get;
    pc->free = free;

#if (NGX_SSL || NGX_COMPAT)

    if (pc->set_session) {
        peer->set_session = pc->set_session;
        pc->set_session = ngx_http_combined_upstreams_set_session;
    }

    if (pc->save_session) {
        peer->save_session = pc->save_session;
        pc->save_session = ngx_http_combined_upstreams_save_session;
    }

#endif

    if (pc->notify) {
        peer->notify = pc->notify;
        pc->notify = ngx_http_combined_upstreams_notify_peer;
    }

    return peer;
}


#if (NGX_SSL || NGX_COMPAT)

static ngx_int_t
ngx_http_combined_upstreams_set_session(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_combined_upstreams_peer_t  *peer = data;

    return peer->set_session(pc, peer->data);
}


static void
ngx_http_combined_upstreams_save_session(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_combined_upstreams_peer_t  *peer = data;

    peer->save_session(pc, peer->data);
}

#endif


static void
ngx_http_combined_upstreams_notify_peer(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t type)
{
    ngx_http_combined_upstreams_peer_t  *peer = data;

    peer->notify(pc, peer->data, type);
}


ngx_uint_t
ngx_http_combined_upstreams_is_stale(ngx_peer_connection_t *pc,
    ngx_http_upstream_t *u)
{
    ngx_connection_t  *c;

    c = pc->connection;

    if (!pc->cached || c == NULL || u->state->bytes_received != 0) {
        return 0;
    }

    return c->read->eof || c->read->error || c->write->error;
}


ngx_int_t
ngx_http_combined_upstreams_inherit(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *singlet, ngx_http_upstream_srv_conf_t *host)
{
#if (NGX_HTTP_UPSTREAM_ZONE)

    size_t           size;
    ngx_str_t        name;
    ngx_shm_zone_t  *zone;

#if (nginx_version >= 1027003)
    singlet->resolver = host->resolver;
    singlet->resolver_timeout = host->resolver_timeout;
#endif

    zone = host->shm_zone;

    if (zone == NULL) {
        return NGX_OK;
    }

    name.len = zone->shm.name.len + 1 + singlet->host.len;
    name.data = ngx_pnalloc(cf->pool, name.len);
    if (name.data == NULL) {
        return NGX_ERROR;
    }

    ngx_sprintf(name.data, "%V/%V", &zone->shm.name, &singlet->host);

    /*
     * A singlet keeps a little more than its host: a part for the backup servers, and longer names.
     * A size of zero means that no line gives it; nginx complains of the host's.
     */

    size = zone->shm.size;

    if (size) {
        size += 4 * ngx_pagesize + ngx_align(4 * name.len, ngx_pagesize);
    }

    singlet->shm_zone = ngx_shared_memory_add(cf, &name, size,
                                              &ngx_http_upstream_module);
    if (singlet->shm_zone == NULL) {
        return NGX_ERROR;
    }

    singlet->shm_zone->init = zone->init;
    singlet->shm_zone->data = zone->data;
    singlet->shm_zone->noreuse = 1;

#endif

    return NGX_OK;
}


#if (nginx_version >= 1027003)

ngx_int_t
ngx_http_combined_upstreams_mend_random(ngx_http_upstream_srv_conf_t *us,
    void *conf, ngx_pool_t *pool)
{
    ngx_http_combined_upstreams_random_t  *random = conf;

    size_t                                       size;
    ngx_uint_t                                   i, mended, total_weight;
    ngx_http_upstream_rr_peer_t                 *peer;
    ngx_http_upstream_rr_peers_t                *peers, *backup;
    ngx_http_combined_upstreams_random_range_t  *ranges;

    if (random->ranges == NULL) {
        /* another balancer */
        return NGX_OK;
    }

    peers = us->peer.data;
    backup = peers->next;

    ngx_http_upstream_rr_peers_rlock(peers);

    mended = (peers->number > 1 || backup == NULL
              || (peers->number == 1
                  && random->ranges[0].peer != peers->peer));

    ngx_http_upstream_rr_peers_unlock(peers);

    if (mended) {
        return NGX_OK;
    }

    ngx_http_upstream_rr_peers_rlock(backup);

    size = backup->number * sizeof(ngx_http_combined_upstreams_random_range_t);

    ranges = pool ? ngx_palloc(pool, size) : ngx_alloc(size, ngx_cycle->log);
    if (ranges == NULL) {
        ngx_http_upstream_rr_peers_unlock(backup);
        return NGX_ERROR;
    }

    total_weight = 0;

    for (peer = backup->peer, i = 0; peer; peer = peer->next, i++) {
        ranges[i].peer = peer;
        ranges[i].range = total_weight;
        total_weight += peer->weight;
    }

    ngx_http_upstream_rr_peers_unlock(backup);

    if (pool == NULL) {
        ngx_free(random->ranges);
    }

    random->ranges = ranges;

    return NGX_OK;
}

#else

ngx_int_t
ngx_http_combined_upstreams_mend_random(ngx_http_upstream_srv_conf_t *us,
    void *conf, ngx_pool_t *pool)
{
    return NGX_OK;
}

#endif
