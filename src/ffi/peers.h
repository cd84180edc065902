/*
 * The peers of an upstream, for balancers built on ngx_http_upstream_rr_peers_t. Their locks are
 * macros, and what callbacks there are depends on how nginx was configured.
 */

#ifndef _NGX_HTTP_COMBINED_UPSTREAMS_PEERS_H_INCLUDED_
#define _NGX_HTTP_COMBINED_UPSTREAMS_PEERS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* one request's choice of peers, wrapped: the balancer's own callbacks and their data */

typedef struct {
    ngx_http_upstream_srv_conf_t   *upstream;
    ngx_http_upstream_t            *exchange;

    void                           *data;
    ngx_event_get_peer_pt           get;
    ngx_event_free_peer_pt          free;
    ngx_event_notify_peer_pt        notify;

#if (NGX_SSL || NGX_COMPAT)
    ngx_event_set_peer_session_pt   set_session;
    ngx_event_save_peer_session_pt  save_session;
#endif

    /* the next peer is to be the one tried last */
    ngx_uint_t                      again;  /* unsigned  again:1; */
} ngx_http_combined_upstreams_peer_t;


/* whether an upstream has one main peer, and no backup one, at this moment */
ngx_uint_t ngx_http_combined_upstreams_is_lone(
    ngx_http_upstream_srv_conf_t *us);

/* whether nginx takes an upstream's lone peer for one that cannot fail; no effect on others */
void ngx_http_combined_upstreams_set_single(ngx_http_upstream_srv_conf_t *us,
    ngx_uint_t single);

/* whether an upstream's peers are in shared memory */
ngx_uint_t ngx_http_combined_upstreams_has_zone(
    ngx_http_upstream_srv_conf_t *us);

/* puts callbacks before those that the balancer has set for a request; NULL: no memory */
ngx_http_combined_upstreams_peer_t *ngx_http_combined_upstreams_wrap_peer(
    ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *us,
    ngx_event_get_peer_pt get, ngx_event_free_peer_pt free);

/* whether a try failed only because the server had closed a kept-alive connection before */
ngx_uint_t ngx_http_combined_upstreams_is_stale(ngx_peer_connection_t *pc,
    ngx_http_upstream_t *u);

/* a singlet gets the resolver of its host, and a zone of its own if the host has one */
ngx_int_t ngx_http_combined_upstreams_inherit(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *singlet, ngx_http_upstream_srv_conf_t *host);

/*
 * From nginx 1.27.3 on, random draws among the backup peers from its table of the main ones if
 * there are less than two of these. The table gets the backup peers then: nobody else reads it.
 * conf is what the module random keeps for the upstream, whether that is its balancer or not;
 * without a pool the old table is freed, as nginx does at run time.
 */
ngx_int_t ngx_http_combined_upstreams_mend_random(
    ngx_http_upstream_srv_conf_t *us, void *conf, ngx_pool_t *pool);


#endif /* _NGX_HTTP_COMBINED_UPSTREAMS_PEERS_H_INCLUDED_ */
